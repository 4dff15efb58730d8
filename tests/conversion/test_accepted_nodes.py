"""Conversions of models with accepted errors: what still blocks them, and that the accepted nodes stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph import ConversionError, SplitgraphError
from splitgraph.conversion.rewrite import Rewrite

INVALID = "[bad] y = Sqrt(z)"
SPLIT = "[s] a, b = Split<axis = 1>(x)"
BOTH = f"{INVALID} {SPLIT}"
FUNCTION = '<domain: "l", opset_import: ["": 13]> f (q) => (r) { [in] r = Sqrt(q) }'


def model(body: str = BOTH, opset: int = 13, outputs: str = "", functions: str = "") -> onnx.ModelProto:
    """A graph with the inputs x: float[N, 4] and z: int64[3]."""
    text = f'<ir_version: 8, opset_import: ["": {opset}, "l": 1]> g (float[N, 4] x, int64[3] z) => ({outputs})'
    return onnx.parser.parse_model(f"{text} {{ {body} }} {functions}")


def up(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.upgrade(made, 18, accept=accept)


def up20(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.upgrade(made, 20, accept=accept)


def down(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.downgrade(made, 11, accept=accept)


def plain(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, "split", explicit_lengths=True, accept=accept)


def sliced(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, "slice", accept=accept)


def variadic(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, "variadic-split", accept=accept)


def both(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, "split", opset=18, accept=accept)


def for_target(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, target="mnn", accept=accept)


def for_target_at(made: onnx.ModelProto, *accept: str) -> Rewrite:
    return splitgraph.convert(made, target="onnxruntime", opset=18, accept=accept)


Convert = Callable[..., Rewrite]
EVERY: list[Convert] = [up, down, plain, sliced, variadic, both, for_target, for_target_at]


@pytest.mark.parametrize("convert", EVERY)
def test_errors_block_unless_they_are_accepted(convert: Convert) -> None:
    for accept in ([], ["SG212"], ["SG302@main/s"], ["SG302@main/bad/*"]):
        with pytest.raises(ConversionError) as raised:
            convert(model(), *accept)
        assert [found.code for found in raised.value.diagnostics] == ["SG302", *["SG606"] * len(accept)]


@pytest.mark.parametrize("convert", EVERY)
def test_codes_that_cannot_be_accepted(convert: Convert) -> None:
    with pytest.raises(SplitgraphError, match=r"SG201 .* cannot be accepted") as raised:
        convert(model(), "SG201")
    assert not isinstance(raised.value, ConversionError)


@pytest.mark.parametrize("convert", EVERY)
def test_an_acceptance_that_nothing_needs_is_a_note(convert: Convert) -> None:
    made = model(SPLIT)
    rewrite = convert(made, "SG302")
    assert [found.message for found in rewrite.diagnostics if found.code == "SG606"] == [
        "SG302 was accepted, but the model has no error SG302"
    ]
    assert rewrite.accepted == ()
    assert rewrite.model == convert(made).model


@pytest.mark.parametrize("convert", EVERY)
@pytest.mark.parametrize("accept", ["SG302", "SG302@main/bad", "SG302@main/*"])
def test_an_accepted_node_stays(convert: Convert, accept: str) -> None:
    made = model()
    rewrite = convert(made, accept)
    assert [(found.code, found.location) for found in rewrite.accepted] == [("SG302", "main/bad")]
    assert not [found for found in rewrite.diagnostics if found.code == "SG606"]
    assert made.graph.node[0] in rewrite.model.graph.node
    # All else is converted as without the node.
    without = convert(model(SPLIT))
    others = [node.op_type for node in rewrite.model.graph.node if node.name != "bad"]
    assert others == [node.op_type for node in without.model.graph.node]
    assert [change.after for change in rewrite.changes] == [change.after for change in without.changes]


# Models with an accepted error that the conversion itself needs, and the codes of the blockers.
NEEDED = {
    "the operator changes": (up, "[bad] y = ReduceMax<axes = [9]>(x)", "SG302", "SG302"),
    "the operator changes, but not this node": (down, "[bad] y = Softmax<axis = 1, foo = 2>(x)", "SG212", "SG212"),
    "an attribute would go": (
        down,
        "[bad] y = GatherND<batch_dims = 7>(x, z)",
        "SG302",
        "SG302",
    ),
    "an attribute would get a meaning": (up, "[bad] y = Shape<start = 1>(x)", "SG212", "SG212"),
    "the operator has no meaning": (up, "[bad] y = Gelu(x)", "SG214", "SG214"),
    "the lengths": (down, f"[bad] w = Sqrt(z) i = Shape(w) {SPLIT[:-3]}(x, i)", "SG302", "SG202"),
}


@pytest.mark.parametrize(("convert", "body", "accept", "blocker"), NEEDED.values(), ids=NEEDED)
def test_what_the_conversion_needs(convert: Convert, body: str, accept: str, blocker: str) -> None:
    with pytest.raises(ConversionError) as raised:
        convert(model(body), accept)
    found = raised.value.diagnostics
    assert blocker in {each.code for each in found}
    assert all(each.help.startswith("It cannot be accepted:") for each in found if each.code == accept)


def test_slices_are_joined_only_if_all_are_sound() -> None:
    bounds = "".join(f"i{index} = Constant<value_ints = [{index}]>() " for index in (0, 1, 2, 4))
    slices = "a = Slice{}(x, i0, i2, i1) b = Slice(x, i2, i4, i1)"
    joined = splitgraph.convert(model(bounds + slices.format("")), "split").model
    assert "Split" in [node.op_type for node in joined.graph.node]
    made = model(bounds + slices.format("<foo = 1>"))
    assert splitgraph.convert(made, "split", accept=["SG212"]).model == made


def test_what_depends_on_the_node_needs_its_type() -> None:
    """Nothing is concluded: a split of what the node gives is converted only where its type does not matter."""
    made = model("[bad] y = Sqrt(z) [s] a, b, c = Split(y)")
    assert [change.after for change in up(made, "SG302").changes] == ["Split-18"]
    with pytest.raises(ConversionError, match="element type"):
        splitgraph.downgrade(made, 1, accept=["SG302"])


def test_a_repaired_split_is_no_accepted_finding() -> None:
    made = model(BOTH, 18)
    rewrite = splitgraph.upgrade(made, 20, accept=["SG302", "SG207"])
    assert [found.code for found in rewrite.accepted] == ["SG302"]
    assert [found.code for found in rewrite.diagnostics] == ["SG401"]
    formed = splitgraph.convert(made, "split", opset=20, accept=["SG302", "SG207"])
    assert [found.code for found in formed.diagnostics] == ["SG401"]


def test_nodes_are_known_after_they_moved() -> None:
    """Unnamed nodes are named by their place, which sorting changes."""
    made = model("a, b = Split<axis = 1>(w) y = Sqrt(z) w = Relu(x)")
    rewrite = splitgraph.convert(made, "split", opset=18, accept=["SG302@main/Sqrt#1"])
    assert [found.location for found in rewrite.accepted] == ["main/Sqrt#1"]
    assert [node.op_type for node in rewrite.model.graph.node] == ["Sqrt", "Relu", "Split"]


# A node whose error is accepted, and a node that differs from it only in its graph, in its call, or not at all.
TWINS = {
    "in two branches": (
        "q = If(c) <then_branch = t () => (int64[3] o) { [bad] o = Sqrt(z) },"
        " else_branch = e () => (int64[3] o) { [bad2] o = Sqrt(z) }>",
        "",
        "main/q/then_branch/bad",
        "main/q/else_branch/bad2",
    ),
    "in two nodes": (
        "q = If(c) <then_branch = t () => (int64[3] o) { [bad] o = Sqrt(z) },"
        " else_branch = e () => (int64[3] o) { o = Identity(z) }>"
        "p = If(c) <then_branch = t () => (int64[3] o) { [bad] o = Sqrt(z) },"
        " else_branch = e () => (int64[3] o) { o = Identity(z) }>",
        "",
        "main/q/then_branch/bad",
        "main/p/then_branch/bad",
    ),
    "in a function": ("[bad] r = Sqrt(z) [call] y = l.f(z)", FUNCTION, "main/bad", "main/call/in"),
    "outside the function": ("[bad] r = Sqrt(z) [call] y = l.f(z)", FUNCTION, "main/call/in", "main/bad"),
    "in two calls": ("[one] y = l.f(z) [two] y2 = l.f(z)", FUNCTION, "main/one/in", "main/two/in"),
    "in two functions": (
        "[one] y = l.f(z) [two] y2 = l.f2(z)",
        FUNCTION + FUNCTION.replace("f (q)", "f2 (q)"),
        "main/one/in",
        "main/two/in",
    ),
    "without outputs": ("[bad] = Floor(x) [bad2] = Floor(x)", "", "main/bad", "main/bad2"),
}
# Splits with which a conversion walks the model a second time: one that it repairs, and one that it moves.
WALKED_AGAIN = {"repaired": (18, "[s] a, b = Split<axis = 1>(x)"), "moved": (17, "[s] a, b = Split(w) w = Relu(x)")}


@pytest.mark.parametrize("again", WALKED_AGAIN)
@pytest.mark.parametrize("twins", TWINS)
@pytest.mark.parametrize("convert", [up20, sliced, for_target_at])
def test_an_error_like_an_accepted_one_is_not_accepted(convert: Convert, twins: str, again: str) -> None:
    body, functions, bad, other = TWINS[twins]
    opset, split = WALKED_AGAIN[again]
    condition = "k = Constant<value = int64 {0}>() l = Gather(z, k) c = Cast<to = 9>(l)"
    made = model(f"{condition} {body} {split}", opset, functions=functions)
    for node in made.graph.node:
        node.name = node.name or next(iter(node.output), "")
    code = "SG212" if twins == "without outputs" else "SG302"
    with pytest.raises(ConversionError) as raised:
        convert(made, f"{code}@{bad}")
    assert (code, other) in {(found.code, found.location) for found in raised.value.diagnostics}
    rewrite = convert(made, f"{code}@{bad}", f"{code}@{other}")
    assert {found.location for found in rewrite.accepted} == {bad, other}


def test_in_functions() -> None:
    made = model(f"[one] y = l.f(z) {SPLIT}", functions=FUNCTION)
    assert up(made, "SG302@main/one/in").model.functions[0].node[0].op_type == "Sqrt"
    assert [node.op_type for node in plain(made, "SG302").model.graph.node] == ["Sqrt", "Split"]
    # Where functions are inlined, the node has a name that nobody accepted.
    with pytest.raises(ConversionError, match="SG302"):
        plain(made, "SG302@main/one/in")


def test_the_model_is_not_changed() -> None:
    made = model()
    before = made.SerializeToString(deterministic=True)
    up(made, "SG302")
    assert made.SerializeToString(deterministic=True) == before
