"""Nodes that differ: which node is which, and what differs."""

from __future__ import annotations

import onnx
import pytest

from splitgraph import NodeDifference

from .written import diff, model, named, told, unnamed

CHAIN = "(float[N, 6] x) => (float[N, 6] y) {{ {} }}"
IF = (
    "(bool c, float[4] x) => (y) {{ y = If(c) <then_branch = t () => (a) {{ {} }}, "
    "else_branch = e () => (a) {{ a = Neg(x) }}> }}"
)
FUNCTION = '<domain: "mine", opset_import: ["": 18]> F (a) => (b) {{ b = {}(a) }}'


def with_functions(*operators: str) -> onnx.ModelProto:
    """A model with functions of one name, each of one operator."""
    functions = "".join(FUNCTION.format(operator) for operator in operators)
    return model("(float[N, 6] x) => (y) { y = mine.F(x) }", functions=functions)


def on_device(configuration: str) -> onnx.ModelProto:
    made = model(CHAIN.format("y = Relu(x)"))
    made.graph.node[0].device_configurations.add(configuration_id=configuration)
    return made


CASES: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, list[str]]] = {
    "an attribute": (
        model("(float[N, 6] x) => (y) { y = Softmax<axis = 0>(x) }"),
        model("(float[N, 6] x) => (y) { y = Softmax<axis = 1>(x) }"),
        ["changed Softmax#0: attributes"],
    ),
    "the devices of a node": (on_device("a"), on_device("b"), ["changed Relu#0: metadata"]),
    "the first of two functions of one name": (
        with_functions("Neg", "Abs"), with_functions("Relu", "Abs"), ["changed mine::F/Relu#0: operator"],
    ),
    "the second of two functions of one name": (
        with_functions("Neg", "Abs"), with_functions("Neg", "Relu"), ["changed mine::F/Relu#0: operator"],
    ),
    "a new name of a node": (
        named("(float[N, 6] x) => (y) { y = Relu(x) }", "one"),
        named("(float[N, 6] x) => (y) { y = Relu(x) }", "two"),
        ["changed two: name"],
    ),
    "a new name of a value: its producer, not its reader": (
        unnamed(CHAIN.format("a = Relu(x) y = Abs(a)")),
        unnamed(CHAIN.format("b = Relu(x) y = Abs(b)")),
        ["changed Relu#0: outputs"],
    ),
    "another version of the operator": (
        unnamed(CHAIN.format("y = Relu(x)"), opset=11),
        unnamed(CHAIN.format("y = Relu(x)"), opset=14),
        ["changed Relu#0: version"],
    ),
    "another operator under the same name": (
        named(CHAIN.format("y = Relu(x)"), "n"),
        named(CHAIN.format("y = Abs(x)"), "n"),
        ["changed n: operator"],
    ),
    "another operator without a name": (
        unnamed(CHAIN.format("y = Relu(x)")),
        unnamed(CHAIN.format("y = Abs(x)")),
        ["changed Abs#0: operator"],
    ),
    "another domain": (
        unnamed(CHAIN.format("y = Relu(x)")),
        unnamed(CHAIN.format("y = mine.Relu(x)")),
        ["changed Relu#0: domain"],
    ),
    "other inputs": (
        unnamed(CHAIN.format("a = Relu(x) b = Abs(x) y = Sub(a, b)")),
        unnamed(CHAIN.format("a = Relu(x) b = Abs(x) y = Sub(b, a)")),
        ["changed Sub#2: inputs"],
    ),
    "outputs in another order: every reader reads another value": (
        named(CHAIN.format("a, b = Split<axis = 1, num_outputs = 2>(x) y = Sub(a, b)"), "s", "m"),
        named(CHAIN.format("b, a = Split<axis = 1, num_outputs = 2>(x) y = Sub(a, b)"), "s", "m"),
        ["changed s: outputs", "changed m: inputs"],
    ),
    "a node more, at the end of a value": (
        named(CHAIN.format("y = Relu(x)"), "r"),
        named(CHAIN.format("a = Abs(x) y = Relu(a)"), "a", "r"),
        ["added a: ", "changed r: inputs"],
    ),
    "a node less": (
        named(CHAIN.format("a = Abs(x) y = Relu(a)"), "a", "r"),
        named(CHAIN.format("y = Relu(x)"), "r"),
        ["removed a: ", "changed r: inputs"],
    ),
    "names that moved on to other nodes: the operator and the values tell": (
        named(CHAIN.format("v1 = Relu(x) v2 = Abs(v1) y = Neg(v2)"), "n0", "n1", "n2"),
        named(CHAIN.format("v0 = Sin(x) v1 = Relu(v0) v2 = Abs(v1) y = Neg(v2)"), "n0", "n1", "n2", "n3"),
        ["added n0: ", "changed n1: inputs, name", "changed n2: name", "changed n3: name"],
    ),
    "a name that several nodes have": (
        named(CHAIN.format("a = Relu(x) b = Abs(a) y = Neg(b)"), "n", "n", "n"),
        named(CHAIN.format("a = Relu(x) b = Sin(a) y = Neg(b)"), "n", "n", "n"),
        ["changed n: operator"],
    ),
    "nothing has a name that stayed": (
        unnamed(CHAIN.format("a = Relu(x) b = Abs(a) c = Neg(b) d = Sin(c) y = Abs(d)")),
        unnamed(CHAIN.format("q = Relu(x) r = Abs(q) t = Sin(r) y = Abs(t)")),
        ["changed Relu#0: outputs", "changed Abs#1: outputs", "removed Neg#2: ", "changed Sin#2: inputs, outputs"],
    ),
    "a body": (
        model(IF.format("r = Relu(x) a = Abs(r)")),
        model(IF.format("r = Relu(x) a = Sin(r)")),
        ["changed If#0/then_branch/Sin#1: operator"],
    ),
    "a node with bodies that is gone": (
        model(IF.format("a = Relu(x)")),
        model("(bool c, float[4] x) => (y) { y = Identity(x) }"),
        [
            "changed Identity#0: operator, attributes, inputs",
            "removed If#0/then_branch/Relu#0: ",
            "removed If#0/else_branch/Neg#0: ",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_differs(case: str) -> None:
    before, after, expected = CASES[case]
    assert told(diff(before, after)) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_other_way_round(case: str) -> None:
    before, after, _ = CASES[case]
    other = {"added": "removed", "removed": "added", "changed": "changed"}
    one, two = diff(before, after), diff(after, before)
    assert sorted((node.kind, node.aspects) for node in one.nodes) == sorted(
        (other[node.kind], node.aspects) for node in two.nodes
    )
    assert {locations(node) for node in one.nodes} == {locations(node)[::-1] for node in two.nodes}


def locations(node: NodeDifference) -> tuple[str | None, ...]:
    return tuple(None if form is None else form.location for form in (node.before, node.after))


def test_a_split_that_became_slices() -> None:
    before = named("(float[N, 6] x) => (a, b) { a, b = Split<axis = 1, num_outputs = 2>(x) }", "s")
    after = named(
        "(float[N, 6] x) => (a, b) <int64[1] zero = {0}, int64[1] three = {3}, int64[1] six = {6}, int64[1] one = {1}> "
        "{ a = Slice(x, zero, three, one) b = Slice(x, three, six, one) }",
        "s",
        "t",
    )
    changed, added = diff(before, after).nodes
    assert (changed.kind, changed.before.operator, changed.after.operator) == ("changed", "Split-18", "Slice-13")
    assert (changed.others, changed.is_split) == (("main/t",), True)
    assert (added.kind, added.others, added.is_split) == ("added", ("main/s",), False)
    removed = diff(after, before).nodes[-1]
    assert (removed.kind, removed.others) == ("removed", ("main/s",))
    # Without the name, no slice is the split.
    after.graph.node[0].name = "u"
    assert [(node.kind, node.others) for node in diff(before, after).nodes] == [
        ("removed", ("main/u", "main/t")),
        ("added", ("main/s",)),
        ("added", ("main/s",)),
    ]


def test_the_form_of_a_node() -> None:
    before = named("(float[N, 6] x) => (a, b) { a, b = Split<axis = 1, num_outputs = 2>(x) }", "s")
    after = named("(float[N, 6] x, int64[2] l) => (a, b) { a, b = Split<axis = 1>(x, l) }", "s")
    (node,) = diff(before, after).nodes
    assert (node.location, node.aspects, node.attributes, node.inputs) == (
        "main/s", ("attributes", "inputs"), ("num_outputs",), (1,)
    )  # fmt: skip
    assert node.before.attributes == {"axis": "1", "num_outputs": "2"}
    assert (node.after.inputs, node.after.outputs, node.after.is_split) == (("x", "l"), ("a", "b"), True)


ATTRIBUTES = [
    ("ints = [1, 2]", "[1, 2]"),
    (f"ints = {list(range(20))}", f"[{', '.join(map(str, range(16)))}, … (20 in all)]"),
    ("f = 0.5", "0.5"),
    ("fs = [0.5, 1.0]", "[0.5, 1]"),
    ('s = "text"', '"text"'),
    (f's = "{"a" * 70}"', f'"{"a" * 60}… (70 characters)"'),
    ('ss = ["a", "b"]', '["a", "b"]'),
    ("t = int64[2] {4, 5}", "int64[2] = 4, 5"),
    ("t = float[1, 2] {0.25, 5}", "float32[1, 2] = 0.25, 5"),
    (f"t = int64[9] {{{', '.join('123456789')}}}", "int64[9]"),
    ("g = b () => (z) { z = Relu(x) }", "graph"),
]


@pytest.mark.parametrize(("written", "text"), ATTRIBUTES)
def test_the_text_of_an_attribute(written: str, text: str) -> None:
    before = unnamed("(float[N, 6] x) => (y) { y = mine.Op(x) }")
    after = unnamed(f"(float[N, 6] x) => (y) {{ y = mine.Op<{written}>(x) }}")
    node = diff(before, after).nodes[0]
    assert list(node.after.attributes.values()) == [text]
    assert not diff(after, after)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("f = 0.0", "f = -0.0"),
        ("i = 1", "i = 2"),
        ("i = 1", "i = [1]"),
        ("i = 1", "i = 1.0"),
        ("t = int64[1] {1}", "t = int64[1] {2}"),
        ("t = int64[1] {1}", "t = int64 {1}"),
        ("t = int64[1] {1}", "t = int32[1] {1}"),
        (f"t = int64[9] {{{', '.join('123456789')}}}", f"t = int64[9] {{{', '.join('123456788')}}}"),
        ('s = "' + "a" * 70 + '"', 's = "' + "a" * 69 + 'b"'),
    ],
)
def test_attributes_that_differ(one: str, two: str) -> None:
    before, after = (unnamed(f"(float[N, 6] x) => (y) {{ y = mine.Op<{each}>(x) }}") for each in (one, two))
    (node,) = diff(before, after).nodes
    assert (node.aspects, node.attributes) == (("attributes",), (one.partition(" =")[0],))


def test_metadata_of_a_node() -> None:
    before, after = (unnamed("(float[4] x) => (y) { y = Relu(x) }") for _ in range(2))
    after.graph.node[0].metadata_props.add(key="namespace", value="layer")
    assert told(diff(before, after)) == ["changed Relu#0: metadata"]
