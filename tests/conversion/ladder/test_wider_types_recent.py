"""Widening of what was taken only from opset 26 on."""

from __future__ import annotations

import numpy as np
import onnx
from conversion.operators.execute import assert_same, build, converted, operators, run_reference
from onnx import helper


def test_unique_16_bit_floats() -> None:
    node = helper.make_node("Unique", ["x"], ["y", "first", "place", "count"])
    outputs = {"y": ("bfloat16", [None]), **{name: ("int64", [None]) for name in ("first", "place", "count")}}
    before = build(node, 28, {"x": ("bfloat16", ("n",))}, outputs)
    after = converted(before, 27)
    assert operators(after) == ["Cast", "Unique", "Cast"]
    kind = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    x = np.array([2.5, -1.0, 2.5, 1e38, np.inf, 1e-40, -np.inf, 0.0, -1.0], np.float32).astype(kind)
    assert_same(run_reference(before, {"x": x}), run_reference(after, {"x": x}))
