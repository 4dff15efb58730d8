"""A model that has something in its way is folded before all else; one that is read stays."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx.parser
import pytest

import splitgraph

# What PyTorch writes for x.flatten(1) of a tensor with free sizes.
BATCH_OF = "s = Shape(x) n = Gather<axis = 0>(s, i) u = Unsqueeze(n, a) t = Concat<axis = 0>(u, four, rest)"
FIRST = "<int64 i = {0}, int64[1] a = {0}, int64[1] four = {4}, int64[1] rest = {-1}>"


def model(body: str, data: str, more: str = "", opset: int = 13) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({data}) => (y) {more} {{ {body} }}'
    return splitgraph.infer(onnx.parser.parse_model(text)).model


def operators(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


FIXED = model(f"{BATCH_OF} y = Reshape(x, t)", "float[2, 4, 3, 5] x", FIRST)
FREE_BATCH = model(f"{BATCH_OF} y = Reshape(x, t)", "float[N, 4, 3, 5] x", FIRST)
FREE = model(f"{BATCH_OF} y = Reshape(x, t)", "float[N, 4, H, W] x", FIRST)
# Its own -1 is meant anyway, and no dimension beside it is computed.
ROWS = model(
    "s = Shape(x) n = Gather<axis = 0>(s, i) u = Unsqueeze(n, a) t = Concat<axis = 0>(u, rest) y = Reshape(x, t)",
    "float[N, 6] x",
    "<int64 i = {0}, int64[1] a = {0}, int64[1] rest = {6}>",
)
# M * 6 is computed, and only a -1 can stand for it; beside an N of 0 it would mean nothing.
JOINED = model(
    "s = Shape(x) n = Slice(s, z, o) m = Slice(s, o, w) k = Mul(m, six) t = Concat<axis = 0>(n, k) y = Reshape(x, t)",
    "float[N, M, 6] x",
    "<int64[1] z = {0}, int64[1] o = {1}, int64[1] w = {2}, int64[1] six = {6}>",
)
ELEMENTS = model("y = Range(a, x, b)", "int64 x", "<int64 a = {0}, int64 b = {1}>")


@pytest.mark.parametrize(
    "given", [FIXED, FREE_BATCH, FREE, ROWS, ELEMENTS], ids=["fixed", "batch", "free", "rows", "elements"]
)
def test_what_is_read_is_not_folded(given: onnx.ModelProto) -> None:
    rewrite = splitgraph.convert(given, target="onnxruntime")
    assert (rewrite.model, rewrite.changes) == (given, ())
    assert splitgraph.check(given, "onnxruntime").runs is True


@pytest.mark.parametrize(
    ("given", "left", "codes"),
    [
        (ROWS, ["Reshape"], ()),
        # A -1 of the model beside a dimension that may be 0 is the model's own.
        (FREE_BATCH, ["Reshape"], ()),
        (FREE, ["Reshape"], ()),
        (
            model("s = Shape(x) t = Concat<axis = 0>(s, a) y = Reshape(x, t)", "float[N, M] x", "<int64[1] a = {1}>"),
            ["Reshape"],
            (),
        ),
        (JOINED, ["Reshape"], ("SG423",)),
    ],
)  # fmt: skip
def test_what_is_in_the_way_is_folded(given: onnx.ModelProto, left: Sequence[str], codes: Sequence[str]) -> None:
    """OpenCV 4 reads no Shape of open dimensions."""
    checked = splitgraph.check(given, "opencv@4.10.0")
    assert checked.runs is False
    rewrite = splitgraph.convert(given, target="opencv@4.10.0", verify=True)
    assert operators(rewrite.model) == left
    assert rewrite.verified
    assert [note.code for note in rewrite.diagnostics if note.code == "SG423"] == list(codes)


def test_a_fold_that_needs_dimensions_above_0_says_where() -> None:
    rewrite = splitgraph.convert(JOINED, target="opencv@4.10.0")
    (note,) = (note for note in rewrite.diagnostics if note.code == "SG423")
    assert (note.severity, note.operator) == ("info", "Reshape-13")
    # Folding for nobody in particular relies on no such thing.
    assert "Shape" in operators(splitgraph.convert(JOINED, fold=True).model)


def test_what_no_fold_removes_is_refused_in_the_users_words() -> None:
    """The Size is gone, and what is left is told of the user's node."""
    body = "s = Size(x) t = Unsqueeze(s, a) r = Reshape(x, t) y, z = Split<axis = 0>(r)"
    given = model(body, "float[2, 4] x", "<int64[1] a = {0}>")
    given.graph.node[3].name = "parts"
    with pytest.raises(splitgraph.ConversionError, match="a result of rank 1") as raised:
        splitgraph.convert(given, target="opencv@4.10.0")
    assert [blocker.location for blocker in raised.value.diagnostics] == ["main/parts"]


def test_check_says_what_folding_removes() -> None:
    found = splitgraph.check(JOINED, "opencv@4.10.0")
    assert (found.runs, found.after_conversion) == (False, True)
    errors = [finding for finding in found if finding.severity == "error"]
    assert {error.operator for error in errors} >= {"Slice-13", "Concat-13"}
    # What to do about all of them is said once.
    assert {error.help for error in errors} == {""}
    assert found.advice == ("runs after  splitgraph convert --target opencv@4.10.0",)


def test_dimensions_without_a_name_get_one_where_a_runtime_refuses_them() -> None:
    """tract does, and a name that the model has stays that of its own dimension."""
    text = '<ir_version: 8, opset_import: ["": 13]> g (float[dim_0, 4] a, float[?, 4, ?] x) => (float[dim_0, 4] y) {%s}'
    given = onnx.parser.parse_model(text % "y = Relu(a)")
    (error,) = (finding for finding in splitgraph.check(given, "tract") if finding.severity == "error")
    assert "neither a size nor a name: 'x'" in error.message
    rewrite = splitgraph.convert(given, target="tract", verify=True)
    assert rewrite.verified
    shapes = [value.type.tensor_type.shape.dim for value in rewrite.model.graph.input]
    assert [[dim.dim_param or dim.dim_value for dim in shape] for shape in shapes] == [
        ["dim_0", 4],
        ["dim_1", 4, "dim_2"],
    ]
    assert splitgraph.check(rewrite.model, "tract").runs
    # Nobody else asked for names.
    assert splitgraph.convert(given, target="onnxruntime").model == given


def test_declared_shapes_that_do_not_hold_go_where_a_runtime_believes_them() -> None:
    """torch declares the size of its example for what follows from a free one, and tract believes that."""
    text = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[N, 4] x) => (float[N, 4] y) <float[12, 4] h> '
        "{ h = Relu(x) y = Neg(h) }"
    )
    given = onnx.parser.parse_model(text)
    (error,) = (finding for finding in splitgraph.check(given, "tract") if finding.severity == "error")
    assert error.message.endswith("believes declared shapes, and that of 'h' does not hold in every run")
    rewrite = splitgraph.convert(given, target="tract", verify=True)
    assert rewrite.verified
    assert not rewrite.model.graph.value_info
    assert splitgraph.check(rewrite.model, "tract").runs
    # Nobody else is known to believe them, and one that holds is in nobody's way.
    assert splitgraph.check(given, "onnxruntime").runs
    given.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param = "N"
    assert splitgraph.check(given, "tract").runs


def test_nodes_get_constants_of_their_own_where_a_runtime_mixes_them_up() -> None:
    """OpenCV 4 refuses a bias of a product that is also that of a sum: torch's exporters write equal ones once."""
    body = "a = Mul(x, b) m = MatMul(a, w) s = Add(b, m) k = Size(s) c = Cast<to = 1>(k) y = Mul(s, c)"
    weights = ", ".join(["1, 2, 3, 4"] * 4)
    given = model(body, "float[2, 3, 4] x", f"<float[4] b = {{1, 2, 3, 4}}, float[4, 4] w = {{{weights}}}>")
    rewrite = splitgraph.convert(given, target="opencv@4.14.0", verify=True)
    assert rewrite.verified
    read = [name for node in rewrite.model.graph.node for name in node.input]
    constants = {tensor.name for tensor in rewrite.model.graph.initializer}
    assert "b_1" in constants
    assert all(read.count(name) == 1 for name in constants if name.startswith("b"))
    # Others read them, and a model that nothing is known to be in the way of stays.
    assert "b_1" not in [tensor.name for tensor in splitgraph.convert(given, target="tract").model.graph.initializer]
    plain = model("a = Mul(x, b) y = Add(a, b)", "float[2, 4] x", "<float[4] b = {1, 2, 3, 4}>")
    assert splitgraph.convert(plain, target="opencv@4.14.0").model == plain
