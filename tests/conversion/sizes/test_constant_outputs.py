"""Outputs that are constants: a number there that was a size follows it, or stays, and which is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

# What gives y[1, 7, 2], and the lengths of it that a caller wants beside.
_Y = "y = Relu(x)"


def model(outputs: str, inside: str, weights: str = "") -> ModelProto:
    """Return a model of x[1, 7, 2] whose first output is y."""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 7, 2] x) => (float[a, b, c] y, {outputs}) {weights} '
        f"{{ {_Y} {inside} }}"
    )


INITIALIZER = model("int64[1] n", "", "<int64[1] n = {7}>")
CONSTANT = model("int64 n", "n = Constant<value = int64 {7}>()")
TWO = model("int64[3] n", "", "<int64[3] n = {2, 7, 7}>")
CHAIN = model("int64[1] n", "n = Neg(k)", "<int64[1] k = {-7}>")
READ_TOO = model("int64[1] n, int64[1] m", "m = Neg(n)", "<int64[1] n = {7}>")


def _questions(made: ModelProto, **said: object) -> list[str]:
    try:
        splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    except splitgraph.ConversionError as error:
        return [f"{each.code} {each.location}: {each.message}" for each in error.diagnostics]
    return []


@pytest.mark.parametrize(
    ("made", "entries"),
    [(INITIALIZER, [0]), (CONSTANT, [0]), (TWO, [1, 2]), (CHAIN, [0]), (READ_TOO, [0])],
    ids=["initializer", "constant", "two entries", "computed from a constant", "read by a node, too"],
)
def test_what_is_asked(made: ModelProto, entries: list[int]) -> None:
    assert _questions(made) == [
        f"SG421 main/n: entry {entry} can mean 7 whatever the size of the data, or T" for entry in entries
    ]


@pytest.mark.parametrize(
    ("made", "said", "expected"),
    [
        (INITIALIZER, {"follow": ["main/n[0]=T"]}, [[9]]),
        (INITIALIZER, {"keep": ["main/n[0]"]}, [[7]]),
        (CONSTANT, {"follow": ["main/n[0]=T"]}, [9]),
        (CONSTANT, {"keep": ["main/n[0]"]}, [7]),
        (TWO, {"follow": ["main/n[2]=T"], "keep": ["main/n[1]"]}, [[2, 7, 9]]),
        (READ_TOO, {"follow": ["main/n[0]=T"]}, [[9], [-7]]),
        (CHAIN, {"follow": ["main/n[0]=T"]}, [[9]]),
    ],
)
def test_answers_are_taken(made: ModelProto, said: dict[str, list[str]], expected: list[object]) -> None:
    rewrite = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((1, 9, 2), np.float32)})
    assert [each.tolist() for each in found[1:]] == expected


@pytest.mark.parametrize(
    "made",
    [
        model("int64[1] n", "", "<int64[1] n = {6}>"),
        model("int64[2] n", "", "<int64[2] n = {0, 1}>"),
        model("float[1] n", "", "<float[1] n = {7}>"),
        model("int64[3] s", "s = Shape<start = 0>(x)"),
    ],
    ids=["no size", "0 and 1", "no integer", "a shape"],
)
def test_other_constants_stay_as_they_are(made: ModelProto) -> None:
    after = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False).model
    assert [node.op_type for node in after.graph.node] == [node.op_type for node in made.graph.node]
    assert after.graph.initializer == made.graph.initializer


LESS = model("int64[1] n", "", "<int64[1] n = {6}>")


@pytest.mark.parametrize(
    ("made", "said", "told"),
    [
        # It may be a size less one, of which nothing speaks.
        (LESS, {}, ["main/n"]),
        (LESS, {"keep": ["main/n[0]"]}, []),
        (LESS, {"follow": ["main/n[0]=T - 1"]}, []),
        (model("int64[2] n", "", "<int64[2] n = {0, 1}>"), {}, []),
        (model("float[1] n", "", "<float[1] n = {6}>"), {}, []),
    ],
    ids=["a size less one", "which stays", "which follows", "0 and 1", "no integer"],
)
def test_what_stays_is_said(made: ModelProto, said: dict[str, list[str]], told: list[str]) -> None:
    rewrite = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    assert [each.location for each in rewrite.diagnostics if each.code == "SG424"] == told
    found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((1, 9, 2), np.float32)})[1]
    assert "follow" not in said or found.tolist() == [8]


def test_a_batch_of_any_size_has_no_other_constants() -> None:
    after = splitgraph.reshape(INITIALIZER, batch="N", verify=False).model
    assert [node.op_type for node in after.graph.node] == ["Relu"]


# Axes -----------------------------------------------------------------------------------------------------------------

_ROWS = "3, 1, 4, 1, 5, 9, 2"
_TABLE = f"float[7] k = {{{_ROWS}}}"
_BRANCHES = "then_branch = g1 () => (float[7] t) { t = Neg(k) }, else_branch = g2 () => (float[7] e) { e = Abs(k) }"
# Tables that end with the old length: the model has no other rows.
TABLES = {
    "initializer": model("float[7] c", "", f"<{_TABLE.replace(' k', ' c')}>"),
    "Constant": model("float[7] c", f"c = Constant<value = float[7] {{{_ROWS}}}>()"),
    "Identity": model("float[7] c", "c = Identity(k)", f"<{_TABLE}>"),
    "elementwise": model("float[7] c", "d = Neg(k) c = Mul(d, k)", f"<{_TABLE}>"),
    "Concat": model("float[7] c", "c = Concat<axis = 0>(k, l)", "<float[3] k = {1, 2, 3}, float[4] l = {1, 2, 3, 4}>"),
    "Reshape": model("float[7] c", "c = Reshape(k, s)", "<float[1, 7] k = {3, 1, 4, 1, 5, 9, 2}, int64[1] s = {7}>"),
    "Gather": model("float[7] c", "c = Gather(k, i)", "<float[2] k = {1, 2}, int64[7] i = {0, 1, 1, 0, 0, 1, 1}>"),
    "MatMul": model("float[7] c", "c = MatMul(k, w)", f"<{_TABLE}, float[7, 7] w = {{{', '.join([_ROWS] * 7)}}}>"),
    "Range of floats": model("float[n] c", "c = Range(s, l, d)", "<float s = {0}, float l = {7}, float d = {1}>"),
    "random numbers": model("float[7] c", "c = RandomNormal<shape = [7]>()"),
    "integers": model("int64[7] c", "", f"<int64[7] c = {{{_ROWS}}}>"),
    "strings": model("string[7] c", "", '<string[7] c = {"a", "b", "a", "c", "a", "b", "d"}>'),
    "branches": model("float[7] c", f"c = If(f) <{_BRANCHES}>", f"<bool f = {{1}}, {_TABLE}>"),
}
# Constants that can go on.
_ONES = ", ".join(["1"] * 7)
ALIKE = model("float[7] c", "", f"<float[7] c = {{{_ONES}}}>")
COUNTED = model("int64[7] c", "", "<int64[7] c = {0, 1, 2, 3, 4, 5, 6}>")
SLICED = model(
    "float[7] c", "c = Slice(k, s, e)", "<float[9] k = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[1] s = {0}, int64[1] e = {7}>"
)


def _asked(axis: int, name: str = "c") -> str:
    sizes = f"the size 7 of {name!r} whatever the size of the data, or the size T of {name!r}"
    return f"SG421 main/{name}: entry {axis} can mean {sizes}"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        *((made, [_asked(0)]) for name, made in TABLES.items() if name != "MatMul"),
        (TABLES["MatMul"], [_asked(0)]),
        (ALIKE, [_asked(0)]),
        (COUNTED, [_asked(0)]),
        (SLICED, [_asked(0)]),
        (model("float[2, 7] c", "", f"<float[2, 7] c = {{{_ROWS}, {_ROWS}}}>"), [_asked(1)]),
        # The two Identity nodes that read c and d are alike.
        (
            model("float[7] c, float[7] d", "", f"<float[7] c = {{{_ROWS}}}, float[7] d = {{{_ROWS}}}>"),
            [_asked(0), _asked(0, "d")],
        ),
        (model("float[7] c", "e = Identity(k)", f"<float[7] c = {{{_ROWS}}}, {_TABLE}>"), [_asked(0)]),
    ],
)
def test_axes_that_are_asked(made: ModelProto, expected: list[str]) -> None:
    assert _questions(made) == expected


@pytest.mark.parametrize("name", TABLES)
def test_what_can_only_stay_stays(name: str) -> None:
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(TABLES[name], {"x": [1, "T", 2]}, verify=False)
    told = 'If it stays: reshape --keep "main/c[0]". If it follows, the model says nothing of other places: export the '
    assert refused.value.diagnostics[0].help == f"{told}model with another length."
    after = splitgraph.reshape(TABLES[name], {"x": [1, "T", 2]}, keep=["main/c[0]"], verify=False).model
    assert after.graph.node == TABLES[name].graph.node
    assert not _questions(TABLES[name], keep=["main/c[0]"])
    refusals = _questions(TABLES[name], follow=["main/c[0]=T"])
    assert [each[:17] for each in refusals] == ["SG420 main/c: nee"]
    assert "c_constant" not in refusals[0]


@pytest.mark.parametrize(
    ("made", "said", "expected"),
    [
        (ALIKE, {"follow": ["main/c[0]=T"]}, [1] * 9),
        (ALIKE, {"keep": ["main/c[0]"]}, [1] * 7),
        (COUNTED, {"follow": ["main/c[0]=T"]}, [*range(9)]),
        (SLICED, {"follow": ["main/c[0]=T"]}, [*range(1, 10)]),
        (SLICED, {"keep": ["main/c[0]"]}, [*range(1, 8)]),
        # One place less: nothing asks about it, and an answer is taken.
        (model("float[6] c", "", "<float[6] c = {1, 1, 1, 1, 1, 1}>"), {"follow": ["main/c[0]=T - 1"]}, [1] * 8),
    ],
)
def test_answers_about_axes_are_taken(made: ModelProto, said: dict[str, list[str]], expected: list[int]) -> None:
    rewrite = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=True, **said)  # type: ignore[call-overload]
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((1, 9, 2), np.float32)})
    assert found[1].tolist() == expected


@pytest.mark.parametrize(
    ("made", "place"),
    [
        (model("float[2] c", "", "<float[2] c = {7, 1}>"), "main/c[0]"),
        (TABLES["Range of floats"], "main/Range#1[0]"),
    ],
)
def test_a_float_says_no_size(made: ModelProto, place: str) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="there, which is no integer, and so no size"):
        splitgraph.reshape(made, {"x": [1, "T", 2]}, follow=[f"{place}=T"], verify=False)


def test_a_slice_of_a_table_gives_no_more_than_there_is() -> None:
    rewrite = splitgraph.reshape(SLICED, {"x": [1, "T", 2]}, follow=["main/c[0]=T"], verify=False)
    assert [(each.code, each.message) for each in rewrite.diagnostics] == [("SG423", "needs T to be at most 9")]
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.reshape(SLICED, {"x": [1, 10, 2]}, follow=["main/c[0]=x[1]"], verify=False)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (model("float[6] c", "", "<float[6] c = {1, 2, 3, 4, 5, 6}>"), []),
        (model("float[2] c", "", "<float[2] c = {1, 2}>"), []),
        (model("float[1] c", "", "<float[1] c = {7}>"), []),
        # The number that makes the axis is asked about where it stands, and once.
        (
            model("float[n] c", "d = ConstantOfShape(s) c = Neg(d)", "<int64[1] s = {7}>"),
            ["SG421 main/ConstantOfShape#1: entry 0 can mean 7 whatever the size of the data, or T"],
        ),
        (
            model("float[n] c", "c = Neg(k)", f"<float[7] k = {{{_ONES}}}>"),
            [
                "SG421 main/Neg#1: entry 0 can mean the size 7 of 'k' whatever the size of the data, or the size T of "
                "'k'"
            ],
        ),
    ],
    ids=["another length", "a size that stays", "one", "asked about before", "weights that were asked about"],
)
def test_other_axes_are_not_asked_about(made: ModelProto, expected: list[str]) -> None:
    assert _questions(made) == expected


def test_what_is_answered_before_is_not_asked_again() -> None:
    made = model("float[n] c", "d = ConstantOfShape(s) c = Neg(d)", "<int64[1] s = {7}>")
    assert not _questions(made, keep=["main/ConstantOfShape#1[0]"])


NEEDED = model("float[1, 7, 2] z, float[7, 1] c", "c = Neg(k) z = Add(x, c)", f"<float[7, 1] k = {{{_ONES}}}>")


def test_a_constant_that_a_node_needs_follows() -> None:
    after = splitgraph.reshape(NEEDED, {"x": [1, "T", 2]}, verify=False).model
    found = ReferenceEvaluator(after).run(None, {"x": np.zeros((1, 9, 2), np.float32)})
    assert [each.shape for each in found[1:]] == [(1, 9, 2), (9, 1)]
    refusals = _questions(NEEDED, keep=["main/c[0]"])
    assert refusals == ["SG420 main/c: 'c' has T along axis 0, because a node needs that; it cannot stay"]


# Batches --------------------------------------------------------------------------------------------------------------


def _with_two_items(kind: str, nodes: str, weights: str) -> ModelProto:
    made = model(kind, nodes, weights)
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    return made


_ALIKE = "float[2, 3] c = {1, 1, 1, 1, 1, 1}"
OF_A_BATCH = {
    "initializer": _with_two_items("float[2, 3] c", "", f"<{_ALIKE}>"),
    "read by others": _with_two_items("float[2, 3] c", "d = Neg(c)", f"<{_ALIKE}>"),
    "computed": _with_two_items("float[2, 3] c", "c = Identity(k)", f"<{_ALIKE.replace(' c', ' k')}>"),
    "second axis": _with_two_items("float[3, 2] c", "", "<float[3, 2] c = {1, 1, 1, 1, 1, 1}>"),
}
_WANTED = [
    ({"batch": "N"}, "N"),
    ({"batch": 5}, "x[0]"),
    ({"shapes": {"x": ["N", 7, 2]}}, "N"),
    ({"shapes": {"x": [5, 7, 2]}}, "x[0]"),
]


@pytest.mark.parametrize("name", OF_A_BATCH)
@pytest.mark.parametrize(("wanted", "dim"), _WANTED)
def test_a_constant_as_large_as_a_batch_is_asked_about(name: str, wanted: dict[str, Any], dim: str) -> None:
    made, axis = OF_A_BATCH[name], int(name == "second axis")
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(made, **wanted)
    told = f"entry {axis} can mean the size 2 of 'c' whatever the size of the data, or the size {dim} of 'c'"
    assert [(each.location, each.message) for each in refused.value.diagnostics] == [("main/c", told)]
    for said, size in (({"keep": [f"main/c[{axis}]"]}, 2), ({"follow": [f"main/c[{axis}]={dim}"]}, 4)):
        rewrite = splitgraph.reshape(made, **wanted, **said, verify=True)
        assert rewrite.verification is not None
        assert rewrite.verification.verdict == "equal"
        if wanted.get("batch") == "N":
            found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((4, 7, 2), np.float32)})
            assert found[1].shape == ((3, size) if axis else (size, 3))


@pytest.mark.parametrize(
    ("kind", "weights"),
    [
        ("float[3] c", "float[3] c = {2, 2, 2}"),
        ("float[1, 3] c", "float[1, 3] c = {2, 2, 2}"),
        ("float c", "float c = {2}"),
    ],
)
def test_a_constant_of_another_size_than_a_batch_is_not_asked_about(kind: str, weights: str) -> None:
    made = _with_two_items(kind, "", f"<{weights}>")
    assert splitgraph.reshape(made, batch="N", verify=False).model.graph.node == made.graph.node


def test_a_table_as_large_as_a_batch_can_only_stay() -> None:
    made = _with_two_items("float[2] c", "", "<float[2] c = {1, 2}>")
    assert splitgraph.reshape(made, batch="N", keep=["main/c[0]"]).model.graph.node == made.graph.node
    with pytest.raises(splitgraph.ConversionError, match="not the same all along it"):
        splitgraph.reshape(made, batch="N", follow=["main/c[0]=N"])


@pytest.mark.parametrize("second", ["d = Identity(k)", "e = Identity(k) d = Neg(e)"])
def test_a_number_is_asked_about_beside_an_equal_node(second: str) -> None:
    made = model("int64[1] n, int64[1] d", second, "<int64[1] n = {7}, int64[1] k = {7}>")
    assert "SG421 main/n: entry 0 can mean 7 whatever the size of the data, or T" in _questions(made)
