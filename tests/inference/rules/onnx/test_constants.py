"""BitCast; and ConstantFill, an operator that was experimental and of which onnx keeps no schema."""

from __future__ import annotations

import pytest
from node_models import NEWEST_OPSET, infer_nodes, shape_text

INVALID = [
    ("opset", "float[2] x", "y = ConstantFill(x)", 9, "removed at opset 9"),
    ("both", "float[2] x", "y = ConstantFill<shape=[2]>(x)", 6, "only one is allowed"),
    ("negative", "float[2] x", "y = ConstantFill<shape=[-2]>()", 6, "negative dimension -2"),
    ("negative-extra", "float[2] x", "y = ConstantFill<extra_shape=[-2]>(x)", 6, "negative dimension -2"),
    ("rank", "int64[2,2] x", "y = ConstantFill<input_as_shape=1>(x)", 6, "it must have rank 1"),
    ("type", "float[2] x", "y = ConstantFill<dtype=99>(x)", 6, "99, which is not an element type"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_invalid(inputs: str, body: str, opset: int, said: str) -> None:
    found = shape_text(inputs, body, opset=opset)
    assert found.startswith("SG302") and said in found


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        ("float[N] x", "y = ConstantFill<shape=[2, 3]>()", "float32[2, 3]"),
        ("float[N, 3] x", "y = ConstantFill(x)", "float32[N, 3]"),
        ("float[N, 3] x", "y = ConstantFill<dtype=7, extra_shape=[4]>(x)", "int64[N, 3, 4]"),
        ("float[N, 3] x", "s = Shape(x) y = ConstantFill<dtype=9, input_as_shape=1>(s)", "bool[N, 3]"),
        ("float[N] x", "y = ConstantFill()", "float32[...]"),
        ("int64[2] x", "y = ConstantFill<input_as_shape=1, extra_shape=[5]>(x)", "float32[?, ?, 5]"),
    ],
)
def test_shapes(inputs: str, body: str, expected: str) -> None:
    assert shape_text(inputs, body, opset=6) == expected


def test_elements_are_known() -> None:
    analysis = infer_nodes("float[N] x", "s = ConstantFill<dtype=7, value=3.0, shape=[2]>() y = Reshape(x, s)", opset=6)
    assert str(analysis.types["y"]) == "float32[3, 3]"


def test_a_bit_cast_keeps_the_shape() -> None:
    # BitCast is younger than the oldest onnx that is supported.
    if NEWEST_OPSET >= 26:
        assert shape_text("float[N,4] x", "y = BitCast<to=6>(x)", opset=26) == "int32[N, 4]"
