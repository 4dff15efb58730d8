"""Layers of an OpenVINO IR that are written as ONNX compute what OpenVINO computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import numpy_helper, parser

from splitgraph.formats import load_ir
from splitgraph.verification.models.ir_as_onnx import as_onnx
from splitgraph.verification.models.ir_constants import changed_constants
from splitgraph.verification.reference.evaluator import load, run
from splitgraph.verification.verdict.ir_and_onnx import constants_of_one

F, I64 = np.float32, np.int64
LINE = "(float[2, 8] x) => (float[2, 8] y)"
HELD: dict[str, Any] = {
    "k": F(0.5),
    "l": F(-0.25),
    "one": np.array([1]),
    "two": np.array([2]),
    "w": np.arange(64, dtype=F).reshape(8, 8) / 64,
    "rows": np.array([3, 1, 0]),
    "turned": np.array([8, 2]),
    "parts": np.array([3, 5]),
    "places": np.array([[0, 1, 0, 1, 1, 0, 1, 0]]),
}
LAYERS = {
    "arithmetic": f"{LINE} {{ a = Mul(x, k) b = Sub(a, l) c = Div(b, k) y = Add(c, x) }}",
    "a remainder": "(int64[4] x) => (int64[4] y) { y = Mod(x, two) }",
    "comparisons": f"{LINE} {{ a = Greater(x, k) b = LessOrEqual(x, l) c = Or(a, b) d = Not(c) y = Where(d, x, k) }}",
    "limits": f"{LINE} {{ a = Clip(x, l, k) b = Max(a, l) y = Min(b, x) }}",
    "means": "(float[2, 8] x) => (float[2] y) { y = ReduceMean<keepdims = 0>(x, one) }",
    "sums": "(float[2, 8] x) => (float[2, 1] y) "
    "{ a = ReduceSum<keepdims = 1>(x, one) y = ReduceMax<keepdims = 1>(a, one) }",
    "bends": f"{LINE} {{ a = HardSigmoid(x) b = Relu(x) c = Abs(x) d = Add(a, b) y = Mul(d, c) }}",
    "a product of matrices": f"{LINE} {{ a = Gemm<transB = 1>(x, w) y = Softmax<axis = 1>(a) }}",
    "rows of a table": "(float[8, 2] x) => (float[3, 2] y) { y = Gather(x, rows) }",
    "elements of a table": "(float[2, 8] x) => (float[1, 8] y) { y = GatherElements<axis = 0>(x, places) }",
    "shapes": "(float[2, 8] x) => (float[8, 2] y) "
    "{ a = Reshape(x, turned) b = Transpose<perm = [1, 0]>(x) y = Add(a, b) }",
    "parts": f"{LINE} {{ a, b = Split<axis = 1>(x, parts) c = Neg(a) y = Concat<axis = 1>(c, b) }}",
    "a slice": "(float[2, 8] x) => (float[2, 1] y) { y = Slice(x, one, two, one) }",
    "types": "(float[2, 8] x) => (int64[2, 8] y) { a = Floor(x) y = Cast<to = 7>(a) }",
}
# What has no short form is left out, with what reads it.
LEFT_OUT = "(float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] y) { a = Conv<pads = [1, 1, 1, 1]>(x, v) y = Relu(a) }"


def model_of(text: str, held: dict[str, Any]) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    read = {name for node in made.graph.node for name in node.input}
    tensors = (numpy_helper.from_array(np.asarray(array), name) for name, array in held.items() if name in read)
    made.graph.initializer.extend(tensors)
    return made


def as_ir(model: onnx.ModelProto, file: Path) -> Path:
    source = file.with_suffix(".onnx")
    onnx.save(model, source)
    openvino.save_model(openvino.convert_model(source), file, compress_to_fp16=False)
    return file


@pytest.mark.parametrize("text", LAYERS.values(), ids=LAYERS)
def test_what_is_written_computes_what_openvino_computes(text: str, tmp_path: Path) -> None:
    model = model_of(text, HELD)
    file = as_ir(model, tmp_path / "m.xml")
    (value,) = model.graph.input
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    given = np.random.default_rng(0).uniform(-3, 3, dims)
    given = given.astype(F) if value.type.tensor_type.elem_type == 1 else np.arange(given.size)
    expected = openvino.compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    written = as_onnx(load_ir(file), {"x": "x"})
    last = written.graph.node[-1].output[0]
    written.graph.output.add(name=last)
    found = np.asarray(run(load(written, tmp_path), {"x": given}, [last])[0])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_has_no_short_form_is_left_out(tmp_path: Path) -> None:
    model = model_of(LEFT_OUT, {"v": np.ones((1, 1, 3, 3), F)})
    assert not as_onnx(load_ir(as_ir(model, tmp_path / "m.xml")), {"x": "x"}).graph.node


TABLE = np.arange(1024, dtype=F).reshape(128, 8)
READ = "(int64[N] i) => (float[N, 8] y) { y = Gather(w, i) }"
SCALED = "(int64[N] i) => (float[N, 8] y) { v = Mul(w, t) y = Gather(v, i) }"
CHOSEN = "(float[N, 8] x) => (float[N, 8] y) { c = Greater(x, k) y = Where(c, o, x) }"
PAIRS: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[list[int]]]] = {
    "a table": (READ, {"w": TABLE}, {}, []),
    "a row": (READ, {"w": TABLE}, {"w": np.where(np.arange(128)[:, None] == 7, 0, TABLE).astype(F)}, [[7, 0]]),
    "a table that is computed": (SCALED, {"w": TABLE, "t": F(2)}, {}, []),
    "what a limit chooses": (CHOSEN, {"k": F(5), "o": F(1)}, {"o": F(2)}, [[]]),
    "limits": (CHOSEN, {"k": F(5), "o": F(1)}, {}, []),
}


@pytest.mark.parametrize(("text", "held", "changed", "places"), PAIRS.values(), ids=PAIRS)
def test_constants_of_an_ir_that_an_onnx_model_has_not(
    text: str, held: dict[str, Any], changed: dict[str, Any], places: list[list[int]], tmp_path: Path
) -> None:
    file = as_ir(model_of(text, held | changed), tmp_path / "m.xml")
    found = [*constants_of_one(model_of(text, held), None, load_ir(file))]
    assert [change.first_place() for change in found] == places


def test_constants_that_openvino_names_itself_have_partners(tmp_path: Path) -> None:
    """OpenVINO counts the names up, so that the two files have no name in common."""
    files = [as_ir(model_of(LAYERS["bends"], HELD), tmp_path / f"{name}.xml") for name in "ab"]
    assert not [*changed_constants(*map(load_ir, files))]
