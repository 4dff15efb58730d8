"""The shape of the scale of QuantizeLinear and DequantizeLinear, as onnxruntime takes it: one, by axis, by block."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph

Shape = list[int | str] | None


def quantization(
    op: str, opset: int, shape: Shape, scale: Shape, axis: int = 1, block: int = 0, zero: bool = True
) -> onnx.ModelProto:
    integers, floats = TensorProto.INT8, TensorProto.FLOAT
    data, made = (integers, floats) if op == "DequantizeLinear" else (floats, integers if zero else TensorProto.UINT8)
    attributes = {"axis": axis, **({"block_size": block} if block else {})}
    inputs = [("x", data, shape), ("scale", floats, scale), ("zero", integers, scale)]
    names = ["x", "scale", "zero"][: 2 + zero]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], "node", **attributes)],
        "g",
        [helper.make_tensor_value_info(*each) for each in inputs[: 2 + zero]],
        [helper.make_tensor_value_info("y", made, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


BOTH = ["QuantizeLinear", "DequantizeLinear"]
# Data, scale, axis, block_size, and what is said.
WRONG = [
    ([4, 6], [], 1, 2, "rank 0; with block_size 2"),
    ([4, 6], [1], 1, 2, "rank 1; with block_size 2"),
    ([4, 6], [6], 1, 2, "rank 1; with block_size 2"),
    ([2, 4, 6], [4, 3], 2, 2, "rank 2; with block_size 2"),
    ([4, 6], [4, 3, 1], 1, 2, "rank 3; with block_size 2"),
    ([4, 6], [4, 2], 1, 2, "has 2 elements on axis 1, but the input has 3 blocks"),
    ([4, 6], [2, 3], 1, 2, "has 2 elements on axis 0, but the input has 4 elements"),
    ([4, 7], [4, 3], 1, 2, "but the input has 4 blocks"),
    (["N", 6], [3], 1, 2, "rank 1; with block_size 2"),
    (None, [], 1, 2, "the rank of the input"),
    ([4, 6], [4, 3], 1, 0, "rank 2; without block_size"),
    ([4, 6], [1, 1], 1, 0, "rank 2; without block_size"),
    (None, [2, 3], 1, 0, "rank 2; without block_size"),
]


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("op", BOTH)
@pytest.mark.parametrize(("shape", "scale", "axis", "block", "words"), WRONG)
def test_a_scale_that_does_not_fit(
    op: str, shape: Shape, scale: Shape, axis: int, block: int, words: str, zero: bool
) -> None:
    model = quantization(op, 21, shape, scale, axis, block, zero)
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.severity) == ("SG302", "error")
    assert words in found.message
    for target in (23, 20, 18, 12, 9):
        with pytest.raises(splitgraph.ConversionError, match="the scale has"):
            (splitgraph.upgrade if target > 21 else splitgraph.downgrade)(model, target)


RIGHT: list[tuple[Shape, Shape, int, int]] = [
    ([4, 6], [], 1, 0),
    ([4, 6], [1], 1, 0),
    ([4, 6], [6], 1, 0),
    ([4, 6], [4], 0, 0),
    (["N", 6], [6], 1, 0),
    ([4, 6], [4, 3], 1, 2),
    ([4, 6], [2, 6], 0, 2),
    ([4, 7], [4, 4], -1, 2),
    ([2, 4, 6], [2, 2, 6], 1, 2),
    (["N", 6], ["N", 3], 1, 2),
    (["N", "M"], ["N", "K"], 1, 2),
    (None, [4, 3], 1, 2),
    (None, None, 1, 2),
]


@pytest.mark.parametrize("op", BOTH)
@pytest.mark.parametrize(("shape", "scale", "axis", "block"), RIGHT)
def test_a_scale_that_fits(op: str, shape: Shape, scale: Shape, axis: int, block: int) -> None:
    assert not splitgraph.infer(quantization(op, 21, shape, scale, axis, block)).diagnostics


@pytest.mark.parametrize("opset", [13, 19])
@pytest.mark.parametrize("op", BOTH)
def test_before_there_were_blocks(op: str, opset: int) -> None:
    assert not splitgraph.infer(quantization(op, opset, [4, 6], [6])).diagnostics
    assert not splitgraph.infer(quantization(op, opset, [4, 6], [1])).diagnostics
    (found,) = splitgraph.infer(quantization(op, opset, [4, 6], [4, 6])).diagnostics
    assert "without block_size" in found.message
