"""Quantization: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

HELD = "float[1] scale = {1}, uint8 zp = {0}, int8 zp8 = {0}, float[3] scales = {1, 1, 1}, float rate = {1}"

INVALID = [
    ("quantize-axis", "float[2,4] x", "y = QuantizeLinear<axis=2>(x, scales)", 13, "it must be in [-2, 1]"),
    ("quantize-scales", "float[2,4] x", "y = QuantizeLinear(x, scales)", 13, "equal, not 4 and 3"),
    ("quantize-types", "float[2,4] x", "y = QuantizeLinear<output_dtype=3>(x, scale, zp)", 21, "output_dtype is int8"),
    ("quantize-precision", "float[2,4] x", "y = QuantizeLinear<precision=99>(x, scale)", 23, "is not an element type"),
    ("dequantize-types", "uint8[2,4] x", "y = DequantizeLinear(x, scale, zp8)", 13, "same element type"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset, constants=HELD), expected)


SHAPES = [
    ("quantize", "float[N,4] x", "y = QuantizeLinear(x, scale, zp8)", 13, "int8[N, 4]"),
    ("quantize-attribute", "float[N,4] x", "y = QuantizeLinear<output_dtype=22>(x, scale)", 21, "int4[N, 4]"),
    ("quantize-default", "float[N,4] x", "y = QuantizeLinear(x, scale)", 10, "uint8[N, 4]"),
    ("dequantize", "uint8[N,4] x, float16 s", "y = DequantizeLinear(x, s)", 19, "float16[N, 4]"),
    (
        "dequantize-attribute",
        "uint8[N,4] x, float s",
        "y = DequantizeLinear<output_dtype=10>(x, s)",
        23,
        "float16[N, 4]",
    ),
    ("dynamic", "float[N,4] x", "y, s, z = DynamicQuantizeLinear(x)", 11, "uint8[N, 4]"),
    ("dynamic-scale", "float[N,4] x", "z, y, w = DynamicQuantizeLinear(x)", 11, "float32[]"),
    (
        "conv-quantized",
        "uint8[B,2,N] a, int8[3,2,3] b",
        "y = QLinearConv(a, rate, zp, b, rate, zp8, rate, zp)",
        10,
        "uint8[B, 3, N - 2]",
    ),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected
