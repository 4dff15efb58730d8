"""onnxruntime's convolution in blocks of channels (com.microsoft.nchwc): refusals, types and shapes by hand, and what
its optimizer makes of a network against what that gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from splitgraph.dim import Dim, evaluate
from splitgraph.inference import infer_model

DOMAIN = "com.microsoft.nchwc"
IMAGE = ["B", 12, "H", "W"]
SIZES = {"B": 2, "H": 17, "W": 20}


def model_of(operator: str, shapes: list[list[int | str]], attributes: dict[str, Any]) -> onnx.ModelProto:
    names = [f"i{index}" for index in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes, strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], name="node", domain=DOMAIN, **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])


REFUSED: list[tuple[str, list[list[int | str]], dict[str, Any], str]] = [
    ("ReorderOutput", [IMAGE], {}, "channels is 0"),
    ("ReorderInput", [["B", 3, "L"]], {}, "must have rank 4"),
    ("Upsample", [IMAGE], {"scales": [2, 2]}, "one of at least 1 is required for each of 4 dimensions"),
    ("Upsample", [IMAGE], {"scales": [1, 1, 0, 2]}, "one of at least 1 is required for each of 4 dimensions"),
    ("MaxPool", [IMAGE], {}, "'kernel_shape' is required"),
]


@pytest.mark.parametrize(("operator", "shapes", "attributes", "words"), REFUSED)
def test_refused(operator: str, shapes: list[list[int | str]], attributes: dict[str, Any], words: str) -> None:
    (found,) = infer_model(model_of(operator, shapes, attributes)).diagnostics
    assert found.severity == "error"
    assert words in found.message


KNOWN: list[tuple[str, list[list[int | str]], dict[str, Any], str]] = [
    # How many channels fill whole blocks, the processor says.
    ("ReorderInput", [IMAGE], {}, "float32[B, ?, H, W]"),
    ("ReorderInput", [["B", "H", "W", 12]], {"channels_last": 1}, "float32[B, ?, H, W]"),
    ("ReorderInput", [["B", "C", "H", "W"]], {}, "float32[B, ?, H, W]"),
    ("ReorderInput", [["B", 32, "H", "W"]], {}, "float32[B, 32, H, W]"),
    ("ReorderInput", [["B", "H", "W", 32]], {"channels_last": 1}, "float32[B, 32, H, W]"),
    ("ReorderOutput", [["B", 16, "H", "W"]], {"channels": 12}, "float32[B, 12, H, W]"),
    ("ReorderOutput", [["B", 16, "H", "W"]], {"channels": 12, "channels_last": 1}, "float32[B, H, W, 12]"),
    ("Conv", [["B", 16, "H", "W"], [16, 12, 3, 3]], {"pads": [1, 0, 1, 0]}, "float32[B, 16, H, W - 2]"),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2]}, "float32[B, 12, H//2, W//2]"),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 1]}, "float32[B, 12, H - 2, W]"),
    ("GlobalAveragePool", [IMAGE], {}, "float32[B, 12, 1, 1]"),
    ("GlobalMaxPool", [IMAGE], {}, "float32[B, 12, 1, 1]"),
    ("Upsample", [IMAGE], {"scales": [1, 1, 2, 3]}, "float32[B, 12, 2*H, 3*W]"),
]


@pytest.mark.parametrize(("operator", "shapes", "attributes", "expected"), KNOWN)
def test_known(operator: str, shapes: list[list[int | str]], attributes: dict[str, Any], expected: str) -> None:
    analysis = infer_model(model_of(operator, shapes, attributes))
    assert analysis.ok, analysis.diagnostics
    assert str(analysis.types["y"]).replace("unk0", "?") == expected


@pytest.mark.parametrize(("operator", "shapes", "attributes", "expected"), KNOWN)
def test_the_shape_of_the_input_may_be_unknown(
    operator: str, shapes: list[list[int | str]], attributes: dict[str, Any], expected: str
) -> None:
    model = model_of(operator, shapes, attributes)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    analysis = infer_model(model)
    assert analysis.ok, analysis.diagnostics
    assert (analysis.types["y"].dtype, analysis.types["y"].rank) in {("float32", 4), ("float32", None)}


def test_what_the_optimizer_makes_gives_what_was_inferred(tmp_path: Path) -> None:
    """Blocks of channels or not, as this processor has it."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[B,3,H,W] x, float[12,3,3,3] first, float[12,12,3,3] second, float[12,1,3,3] each)
        => (float[a,b,c,d] y, float[e,f,g,h] z, float[i,j,k,l] u) {
          p = Conv<pads=[1,1,1,1], strides=[2,2]>(x, first)
          q = Relu(p)
          r = Conv<pads=[1,1,1,1]>(q, second)
          s = Conv<group=12>(r, each)
          t = MaxPool<kernel_shape=[3,3], strides=[2,2]>(s)
          scales = Constant<value_floats=[1.0,1.0,2.0,2.0]>()
          v = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(t, , scales)
          y = Conv<pads=[1,1,1,1]>(v, second)
          w = AveragePool<kernel_shape=[2,2]>(r)
          z = GlobalAveragePool(w)
          u = Concat<axis=1>(w, w)
        }"""
    )
    rng = np.random.default_rng(0)
    for value in model.graph.input[1:]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        held = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(held, value.name))
    del model.graph.input[1:]
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    optimized = onnx.load(options.optimized_model_filepath)
    for value in optimized.graph.output:
        value.type.tensor_type.ClearField("shape")
    analysis = infer_model(optimized)
    assert analysis.ok
    ran = session.run(None, {"x": np.zeros((2, 3, 17, 20), np.float32)})
    for value, real in zip(optimized.graph.output, ran, strict=True):
        shape = analysis.types[value.name].shape or ()
        assert [evaluate(dim, SIZES) if isinstance(dim, Dim) else dim for dim in shape] == list(real.shape)
