"""Models that onnxruntime has optimized go back to operators of ai.onnx, verified equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from conversion.operators.standard.one_node import every_node
from onnx import numpy_helper, parser

import splitgraph

MODELS = Path(__file__).parents[4] / "models"
LEVELS = onnxruntime.GraphOptimizationLevel


def optimized(model: Path, folder: Path, level: LEVELS = LEVELS.ORT_ENABLE_EXTENDED) -> Path:
    """Return what onnxruntime writes of a model at a level of optimization."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(folder / model.name)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    return folder / model.name


@pytest.mark.parametrize("name", ["c2f.opset13", "gpt2.opset11", "gpt2.opset18.dynamo", "shufflenet.opset17"])
def test_optimized_models(name: str, tmp_path: Path) -> None:
    model = optimized(MODELS / f"{name}.onnx", tmp_path)
    assert any(node.domain == "com.microsoft" for node in every_node(onnx.load(model).graph))
    rewrite = splitgraph.convert(model, standard=True, verify=True)
    assert {node.domain for node in every_node(rewrite.onnx_model.graph)} == {""}
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal", rewrite.verification


def test_layouts_of_one_processor_are_refused(tmp_path: Path) -> None:
    model = optimized(MODELS / "shufflenet.opset17.onnx", tmp_path, LEVELS.ORT_ENABLE_ALL)
    if not any(node.domain == "com.microsoft.nchwc" for node in every_node(onnx.load(model).graph)):
        pytest.skip("this processor has no blocked layout")
    with pytest.raises(splitgraph.ConversionError, match="save it again at the level extended"):
        splitgraph.convert(model, standard=True)


def _constants(**arrays: np.ndarray) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def test_negative_numbers_of_a_bias_are_no_places() -> None:
    # No run has so many rows of so many elements.
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g (uint8[N, 60000] x) => (uint8[N, 2] y)
        { y = com.microsoft.QGemm (x, s, z, w, s, z, b, t, z) }"""
    )
    model.graph.initializer.extend(
        _constants(
            s=np.float32(0.5),
            z=np.uint8(3),
            w=np.resize(np.uint8([2, 3, 4]), (60000, 2)),
            b=np.int32([-18702, 900]),
            t=np.float32(40),
        )
    )
    rewrite = splitgraph.convert(model, standard=True, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal", rewrite.verification


def test_what_does_not_depend_on_numbers_may_have_fewer_dimensions() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (uint8[N, 3, 2, 64] x, uint8[3, 2, 64] v) => (uint8[N, 3, 2, 64] y)
        { a = com.microsoft.QLinearMul (v, s, z, v, s, z, s, z)
          y = com.microsoft.QLinearAdd (x, s, z, a, s, z, s, z) }"""
    )
    model.graph.initializer.extend(_constants(s=np.float32(0.02), z=np.uint8(128)))
    rewrite = splitgraph.convert(model, standard=True, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal", rewrite.verification
