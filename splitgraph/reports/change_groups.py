"""Nodes that differ, in groups: the same change of many nodes is one entry, with the nodes that were added or removed
for it. `diff` on the command line and the page of changes show these groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from splitgraph.differences import NodeDifference, NodeForm


class ChangeGroup(NamedTuple):
    """Changes of one kind. clusters: for each, the node that changed, and the nodes that were added or removed for it;
    all have the same operators.
    """

    clusters: tuple[tuple[NodeDifference, ...], ...]

    @property
    def first(self) -> NodeDifference:
        """The change that the group is named by."""
        return self.clusters[0][0]

    @property
    def others(self) -> str:
        """The operators that were added or removed for each: "ReduceMean-13 × 2, Sub-13"."""
        return _counts(self.clusters[0][1:])


def change_groups(nodes: Sequence[NodeDifference]) -> list[ChangeGroup]:
    """Return the nodes in groups, in the order of the first change of each."""
    owners = owners_of(nodes)
    clusters: dict[int, list[NodeDifference]] = {}
    for place, node in enumerate(nodes):
        owner = owners.get(place, place)
        clusters.setdefault(owner, [nodes[owner]])
        if owner != place:
            clusters[owner].append(node)
    groups: dict[tuple[object, ...], list[tuple[NodeDifference, ...]]] = {}
    for cluster in clusters.values():
        first = cluster[0]
        key = (first.kind, _operator(first.before), _operator(first.after), what_changed(first), _counts(cluster[1:]))
        groups.setdefault(key, []).append(tuple(cluster))
    return [ChangeGroup(tuple(group)) for group in groups.values()]


def owners_of(nodes: Sequence[NodeDifference]) -> dict[int, int]:
    """Return, by its position, the position of the change that a node belongs to: a node that was added in place of a
    removed one, and one that is read only on the way to another changed node.
    """
    removed = {node.location: place for place, node in enumerate(nodes) if node.kind == "removed"}
    owners = {
        place: removed[gone[0]]
        for place, node in enumerate(nodes)
        if node.kind == "added" and (gone := [each for each in node.others if each in removed])
    }
    sides = _readers(nodes, 0), _readers(nodes, 1)
    # Backwards, so that the owner of what reads a node is known first.
    for place in reversed(range(len(nodes))):
        node = nodes[place]
        form = node.after if node.kind == "added" else node.before
        if node.kind == "changed" or place in owners or form is None:
            continue
        readers = sides[node.kind == "added"]
        found = {owners.get(reader, reader) for name in form.outputs for reader in readers.get(name, ())}
        if len(found) == 1 and place not in found and _sides(nodes[min(found)])[node.kind == "added"] is not None:
            owners[place] = found.pop()
    return {place: _last(owners, place) for place in owners}


def _last(owners: Mapping[int, int], place: int) -> int:
    """Return the end of a chain of owners, or where it comes back to itself."""
    seen = {place}
    while (owner := owners.get(place)) is not None and owner not in seen:
        seen.add(owner)
        place = owner
    return place


def what_changed(node: NodeDifference) -> str:
    """Return what differs in a node without its values, so that many nodes have one text: "axes removed, input 1
    added".
    """
    before, after = node.before, node.after
    if before is None or after is None:
        return ("replaces removed nodes" if before is None else "replaced by other nodes") if node.others else ""
    held = before.attributes, after.attributes
    told = [f"{name} {_verb(name in held[0], name in held[1])}" for name in node.attributes]
    given = [{place for place, name in enumerate(form.inputs) if name} for form in (before, after)]
    told += [f"input {place} {_verb(place in given[0], place in given[1])}" for place in node.inputs]
    return ", ".join(told) or ("only the version" if node.only_version else "")


def _verb(was: bool, stays: bool) -> str:
    return "changed" if was == stays else "removed" if was else "added"


def _sides(node: NodeDifference) -> tuple[NodeForm | None, NodeForm | None]:
    return node.before, node.after


def _readers(nodes: Sequence[NodeDifference], side: int) -> Mapping[str, list[int]]:
    """Return the positions of the nodes that read each value in one of the models."""
    readers: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        form = _sides(node)[side]
        for name in () if form is None else form.inputs:
            readers.setdefault(name, []).append(place)
    return readers


def _operator(form: NodeForm | None) -> str:
    return "" if form is None else form.operator


def _counts(nodes: Sequence[NodeDifference]) -> str:
    """Return the operators of nodes with their numbers, in the order of the alphabet."""
    counts = Counter(_operator(node.after or node.before) for node in nodes)
    return ", ".join(name if number == 1 else f"{name} × {number}" for name, number in sorted(counts.items()))
