"""Outputs that are maps from labels to numbers become tensors, when that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command_line.program import in_child
from onnx import parser

import splitgraph

MODEL = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 1]>
g (float[N, 2] x) => (int64[N] label, seq(map(int64, float)) scores) {
  label, p = ai.onnx.ml.LinearClassifier <classlabels_ints: ints = [7, 8, 9], intercepts: floats = [0.0, 1.0, 2.0],
    coefficients: floats = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], post_transform = "SOFTMAX"> (x)
  scores = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [7, 8, 9]> (p)
}"""
ALONE = """<ir_version: 8, opset_import: ["ai.onnx.ml" : 1]>
g (float[N, 2] x) => (seq(map(string, float)) y) {
  y = ai.onnx.ml.ZipMap <classlabels_strings: strings = ["a", "b"]> (x)
}"""
ROWS = np.array([[0.5, -1.0], [2.0, 0.25], [-1.0, 0.0]], "float32")


def _model(text: str = MODEL) -> onnx.ModelProto:
    return parser.parse_model(text)


def _run(model: onnx.ModelProto) -> list[object]:
    return list(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": ROWS}))


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_the_option_is_true_or_false(value: object) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="drop_zipmap"):
        splitgraph.convert(_model(), drop_zipmap=value)  # type: ignore[arg-type]


def test_a_model_without_maps_stays() -> None:
    model = _model(MODEL.replace("ai.onnx.ml.ZipMap <classlabels_int64s: ints = [7, 8, 9]>", "Identity"))
    model.graph.output[1].type.CopyFrom(onnx.helper.make_tensor_type_proto(1, ["N", 3]))
    rewrite = splitgraph.convert(model, drop_zipmap=True)
    assert not rewrite.changes
    assert rewrite.model == model


def test_maps_that_a_node_reads_stay() -> None:
    model = _model(
        MODEL.replace("seq(map(int64, float)) scores", "int64 n").replace("(p)", "(p)\n n = SequenceLength (scores)")
    )
    rewrite = splitgraph.convert(model, drop_zipmap=True)
    assert not rewrite.changes
    assert [(finding.code, finding.severity) for finding in rewrite.diagnostics] == [("SG426", "warning")]


IN_FUNCTION = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 1, "own" : 1]>
g (float[N, 2] x) => (seq(map(int64, float)) y) { y = own.maps (x) }
<domain: "own", opset_import: ["" : 13, "ai.onnx.ml" : 1]>
maps (p) => (z) { z = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [7, 8]> (p) }"""
IN_BODY = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 1]>
g (float[N, 2] x, bool c) => (seq(map(int64, float)) y) {
  y = If (c) <then_branch = a () => (seq(map(int64, float)) z) {
      z = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [7, 8]> (x)
    }, else_branch = b () => (seq(map(int64, float)) w) {
      w = ai.onnx.ml.ZipMap <classlabels_int64s: ints = [9, 8]> (x)
    }>
}"""


@pytest.mark.parametrize(("text", "count"), [(IN_FUNCTION, 1), (IN_BODY, 2)], ids=["function", "body"])
def test_maps_of_a_function_or_a_body_stay_with_a_note(text: str, count: int) -> None:
    model = _model(text)
    rewrite = splitgraph.convert(model, drop_zipmap=True)
    assert rewrite.model == model
    assert not rewrite.changes
    notes = [(finding.code, finding.severity) for finding in rewrite.diagnostics]
    assert notes == [("SG426", "warning")] * count
    assert all("in a function or a body" in finding.message for finding in rewrite.diagnostics)


def _of_shape(*shape: int | str, opset: int | None = None) -> onnx.ModelProto:
    model = _model(ALONE)
    declared = model.graph.input[0].type.tensor_type
    declared.ClearField("shape")
    if shape:
        declared.CopyFrom(onnx.helper.make_tensor_type_proto(1, shape).tensor_type)
    if opset is not None:
        model.opset_import.add(domain="", version=opset)
    return model


def test_a_tensor_of_unknown_rank_below_opset_11_stays_with_a_note() -> None:
    model = _of_shape(opset=10)
    rewrite = splitgraph.convert(model, drop_zipmap=True)
    assert rewrite.model == model
    (note,) = rewrite.diagnostics
    assert "needs opset 11" in note.message


@pytest.mark.parametrize(
    ("shape", "opset", "rows"),
    [
        ((2,), 8, ROWS[0]),
        ((2,), None, ROWS[0]),
        (("N",), 17, ROWS[0]),
        ((), 11, ROWS[0]),
        ((), 11, ROWS),
        ((), None, ROWS[0]),
        (("N", 2), 8, ROWS),
    ],
    ids=str,
)
def test_each_map_is_a_row(shape: tuple[int | str, ...], opset: int | None, rows: np.ndarray) -> None:
    model = _of_shape(*shape, opset=opset)
    result = splitgraph.convert(model, drop_zipmap=True).model
    if shape:
        onnx.checker.check_model(result, full_check=True)
    maps, table = (
        onnxruntime.InferenceSession(each.SerializeToString()).run(None, {"x": rows})[0] for each in (model, result)
    )
    np.testing.assert_array_equal(table, [list(row.values()) for row in maps])
    declared = result.graph.output[0].type.tensor_type
    assert declared.elem_type == onnx.TensorProto.FLOAT
    assert len(declared.shape.dim) == 2


def test_a_vector_that_a_node_makes_is_a_row() -> None:
    model = _model(ALONE.replace("float[N, 2] x", "float[2] x").replace("(x)\n}", "(n)\n n = Neg (x)\n}"))
    nodes = [*model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    model.opset_import.add(domain="", version=13)
    result = splitgraph.convert(model, drop_zipmap=True, verify=True).model
    assert [node.op_type for node in result.graph.node] == ["Neg", "Flatten"]
    assert str(splitgraph.infer(result).types["y"]) == "float32[1, 2]"
    got = onnxruntime.InferenceSession(result.SerializeToString()).run(None, {"x": ROWS[0]})[0]
    np.testing.assert_array_equal(got, -ROWS[:1])


def test_two_maps_of_one_tensor_are_two_outputs() -> None:
    text = MODEL.replace("scores)", "scores, seq(map(string, float)) named)").replace(
        "(p)", '(p)\n named = ai.onnx.ml.ZipMap <classlabels_strings: strings = ["a", "b", "c"]> (p)'
    )
    model = _model(text)
    result = splitgraph.convert(model, drop_zipmap=True, verify=True).model
    onnx.checker.check_model(result, full_check=True)
    assert [node.op_type for node in result.graph.node] == ["LinearClassifier", "Identity"]
    wanted = [list(row.values()) for row in _run(model)[1]]  # type: ignore[attr-defined]
    for table in _run(result)[1:]:
        np.testing.assert_array_equal(table, wanted)


def test_the_numbers_of_each_row_are_the_output() -> None:
    model = _model()
    maps = _run(model)[1]
    rewrite = splitgraph.convert(model, drop_zipmap=True, verify=True)
    result = rewrite.model
    onnx.checker.check_model(result, full_check=True)
    assert [value.name for value in result.graph.output] == ["label", "scores"]
    assert [node.op_type for node in result.graph.node] == ["LinearClassifier"]
    np.testing.assert_array_equal(_run(result)[1], [list(row.values()) for row in maps])  # type: ignore[attr-defined]
    assert rewrite.verified
    assert [change.before for change in rewrite.changes] == ["ai.onnx.ml.ZipMap-1"]
    (note,) = rewrite.diagnostics
    assert note.code == "SG426"
    assert "7, 8, 9" in note.message
    assert str(splitgraph.infer(result).types["scores"]) == "float32[N, 3]"
    assert model == _model()


def test_the_labels_stay_as_another_output() -> None:
    model = _model(MODEL.replace("int64[N] label, ", "int64[N] label, float[N, 3] p, "))
    result = splitgraph.convert(model, drop_zipmap=True, verify=True).model
    assert [node.op_type for node in result.graph.node] == ["LinearClassifier", "Identity"]
    onnx.checker.check_model(result, full_check=True)


def test_a_model_of_maps_alone_imports_what_it_uses() -> None:
    result = splitgraph.convert(_model(ALONE), drop_zipmap=True).model
    assert [entry.domain for entry in result.opset_import] == [""]
    onnx.checker.check_model(result, full_check=True)
    np.testing.assert_array_equal(_run(result)[0], ROWS)


def test_with_standard_no_operator_of_the_domain_is_left() -> None:
    result = splitgraph.convert(_model(), drop_zipmap=True, standard=True, opset=11, verify=True)
    assert {node.domain for node in result.model.graph.node} == {""}
    assert result.to_opset == {"": 11}
    assert result.verified


def test_an_ir_has_no_maps(tmp_path: Path) -> None:
    done = in_child("-m", "splitgraph", "convert", "--help")
    assert "--drop-zipmap" in done.stdout
    path = tmp_path / "model.onnx"
    onnx.save(_model(), path)
    done = in_child("-m", "splitgraph", "convert", str(path), "--drop-zipmap")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.nozipmap.onnx").exists()
    again = in_child("-m", "splitgraph", "convert", str(tmp_path / "model.nozipmap.onnx"), "--drop-zipmap")
    assert "has no output that is made of maps" in again.stdout
