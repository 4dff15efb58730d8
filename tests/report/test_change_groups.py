"""Groups of nodes that differ: what belongs to what, and what has one text."""

from __future__ import annotations

import pytest

from splitgraph.differences import NodeDifference, NodeForm
from splitgraph.reports.change_groups import change_groups, owners_of, what_changed


def form(operator: str, name: str, inputs: str, outputs: str, **attributes: str) -> NodeForm:
    return NodeForm(f"main/{name}", name, operator, False, tuple(inputs.split()), tuple(outputs.split()), attributes)


def added(operator: str, name: str, inputs: str, outputs: str, *others: str) -> NodeDifference:
    return NodeDifference(f"main/{name}", "added", None, form(operator, name, inputs, outputs), others=others)


def removed(operator: str, name: str, inputs: str, outputs: str) -> NodeDifference:
    return NodeDifference(f"main/{name}", "removed", form(operator, name, inputs, outputs), None)


def changed(name: str, before: str, after: str, *places: int) -> NodeDifference:
    forms = form("A-1", name, before, f"{name}o"), form("A-2", name, after, f"{name}o")
    return NodeDifference(f"main/{name}", "changed", *forms, ("inputs",), inputs=places)


CHANGED = changed("a", "x", "x c", 1)
OTHER = changed("b", "x", "x c", 1)
CONSTANT = added("Constant-13", "c", "", "c")

OWNERS = [
    ([], {}),
    # Nobody who differs reads it.
    ([CONSTANT], {}),
    # Two read it.
    ([CONSTANT, CHANGED, OTHER], {}),
    ([CHANGED, OTHER], {}),
    ([CONSTANT, CHANGED], {0: 1}),
    # On the way: its reader belongs to the changed node.
    ([added("Constant-13", "k", "", "k"), added("Cast-13", "t", "k", "c"), CHANGED], {0: 2, 1: 2}),
    # The changed node read it before, and does not now.
    ([removed("Constant-13", "k", "", "k"), changed("a", "k", "x", 0)], {0: 1}),
    # It takes the place of a removed one.
    ([removed("Split-13", "s", "x", "p q"), added("Slice-13", "l", "x", "p", "main/s")], {1: 0}),
    # Two that read each other, in a model with a cycle.
    ([added("A-1", "m", "n", "m"), added("A-1", "n", "m", "n")], {1: 0}),
]


@pytest.mark.parametrize(("nodes", "owners"), OWNERS)
def test_what_belongs_to_what(nodes: list[NodeDifference], owners: dict[int, int]) -> None:
    assert owners_of(nodes) == owners
    # Every node is in one group, once.
    grouped = [node for group in change_groups(nodes) for cluster in group.clusters for node in cluster]
    assert sorted(map(id, grouped)) == sorted(map(id, nodes))


def test_one_change_of_many_nodes_is_one_group() -> None:
    nodes = [changed(f"n{index}", "x", f"x c{index}", 1) for index in range(5)]
    constants = [added("Constant-13", f"c{index}", "", f"c{index}") for index in range(4)]
    groups = change_groups([*constants, *nodes])
    assert [(len(group.clusters), group.first.location, group.others) for group in groups] == [
        (4, "main/n0", "Constant-13"),
        # Without a constant of its own, it is another change.
        (1, "main/n4", ""),
    ]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (CONSTANT, ""),
        (added("Slice-13", "l", "x", "p", "main/s"), "replaces removed nodes"),
        (CHANGED, "input 1 added"),
        (changed("a", "x c", "x", 1), "input 1 removed"),
        (changed("a", "x", "y", 0), "input 0 changed"),
        (
            NodeDifference(
                "main/a", "changed", form("A-1", "a", "x", "y", k="1", m="1"), form("A-1", "a", "x", "y", k="2", n="1"),
                ("attributes",), attributes=("k", "m", "n"),
            ),
            "k changed, m removed, n added",
        ),
        (NodeDifference("main/a", "changed", form("A-1", "a", "x", "y"), form("A-2", "a", "x", "y"), ("version",)),
         "only the version"),
    ],
)  # fmt: skip
def test_what_changed_has_no_values(node: NodeDifference, text: str) -> None:
    assert what_changed(node) == text
