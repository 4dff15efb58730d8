"""Proofs that splits are equal for every size: what has none, then splits and the slices that stand for them."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper
from sliced_models import END, gather_node, held, model_of, sliced

import splitgraph
from splitgraph.verification.verdict.proofs import prove_equal_splits


def split(shape: Any, lengths: Any = None, *, opset: int = 13, parts: int = 2, axis: int = 0) -> onnx.ModelProto:
    inputs, initializers = ["x"], []
    if lengths is not None:
        inputs.append("lengths")
        initializers.append(held("lengths", lengths))
    names = [f"y{index}" for index in range(parts)]
    node = helper.make_node("Split", inputs, names, name="split", axis=axis)
    return model_of([node], names, shape, opset=opset, initializers=initializers)


def proofs(before: onnx.ModelProto, after: onnx.ModelProto) -> tuple[str, ...]:
    return prove_equal_splits(splitgraph.infer(before), splitgraph.infer(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (split((6, 4)), sliced([(0, 2), (2, 6)])),
        (split((6, 4)), sliced([(3, 6), (0, 3)])),
        (split((6, 6)), sliced([(0, 3), (3, 6)], (6, 6), axis=1)),
        (split((6, 4)), sliced([(0, 3), (3, 5)])),
        (split(("N", 4)), sliced([(0, 3), (3, END)], ("N", 4))),
        (split(("N", 4)), sliced([(0, 3), (3, END)], ("M", 4))),
        (sliced([(0, 3), (3, 6)]), sliced([(0, 3), (3, 6)])),
        (model_of([*gather_node("y0", 0), *gather_node("y1", 1)], ["y0", "y1"], (2, 4)), split((2, 4))),
    ],
)
def test_no_proof(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    assert proofs(before, after) == ()


@pytest.mark.parametrize(
    ("plain", "slices"),
    [
        (split((6, 4)), sliced([(0, 3), (3, 6)])),
        (split((6, 4), [2, 4]), sliced([(0, 2), (-4, END)])),
    ],
)
def test_splits_and_slices(plain: onnx.ModelProto, slices: onnx.ModelProto) -> None:
    assert proofs(plain, slices) == ("main/split",)
    assert proofs(slices, plain) == ("main/y0_slice",)


@pytest.mark.parametrize("shape", [(6, 4), ("N", 4)])
def test_a_conversion_is_proved(shape: Any) -> None:
    plain = split(shape)
    slices = splitgraph.convert(plain, "slice").model
    assert proofs(plain, slices) == ("main/split",)


@pytest.mark.parametrize("bounds", [[(0, 3), (3, END)], [(-3, END), (0, -3)], [(0, 2), (2, 4), (4, END)]])
def test_a_conversion_from_slices_is_proved(bounds: Any) -> None:
    slices = sliced(bounds, ("N", 4))
    plain = splitgraph.convert(slices, "split").model
    assert proofs(slices, plain) == ("main/y0_slice",)
    assert proofs(plain, slices) == ("main/y0_slice",)
