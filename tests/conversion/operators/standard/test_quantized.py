"""Quantized operators of com.microsoft in operators of ai.onnx, bit for bit.

Half of the scales are powers of two, with which many quotients lie in the middle of two integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal
from onnx import TensorProto, helper, parser

import splitgraph

_RNG = np.random.default_rng(5)
_NEW_AND_OLD = (24, 13)
_TYPES = ("uint8", "int8")
_EXACT = {"rtol": 0, "atol": 0}


def _bytes(dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return _RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def _scale(halves: bool) -> Array:
    return np.array(_RNG.choice([0.5, 0.25, 1, 0.125]) if halves else _RNG.uniform(0.005, 0.1), np.float32)


def _zero(dtype: str) -> Array:
    return np.array(_bytes(dtype, 1)[0])


def _quantized(dtype: str, halves: bool, *shape: int) -> list[Array | None]:
    return [_bytes(dtype, *shape), _scale(halves), _zero(dtype)]


def _result(dtype: str, halves: bool) -> list[Array | None]:
    return [_scale(halves), _zero(dtype)]


# Elementwise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize(
    ("left", "right"), [((5, 400), (5, 400)), ((5, 400), (400,)), ((1, 400), (5, 1)), ((400,), ()), ((0, 3), (3,))]
)
def test_arithmetic(operator: str, dtype: str, halves: bool, left: Any, right: Any) -> None:
    inputs = [*_quantized(dtype, halves, *left), *_quantized(dtype, halves, *right), *_result(dtype, halves)]
    constants = frozenset({1, 2, 4, 5, 6, 7}) if halves else frozenset()
    case = Case(operator, inputs, constants=constants, free=left == (5, 400) == right, **_EXACT)
    check(case, _NEW_AND_OLD if left == right else (17,))


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("operator", ["QLinearLeakyRelu", "QLinearSigmoid"])
@pytest.mark.parametrize("constants", [frozenset(), frozenset({1, 2, 3, 4})])
@pytest.mark.parametrize("alpha", [None, 0.25, -0.5, 0.3])
def test_activations(operator: str, dtype: str, halves: bool, constants: frozenset[int], alpha: float | None) -> None:
    if operator == "QLinearSigmoid" and alpha is not None:
        return
    attributes = {} if alpha is None else {"alpha": alpha}
    inputs = [*_quantized(dtype, halves, 3, 700), *_result(dtype, halves)]
    case = Case(operator, inputs, attributes, constants=constants, free=not halves, **_EXACT)
    check(case, _NEW_AND_OLD if alpha is None else (17,))


@pytest.mark.parametrize("operator", ["QLinearLeakyRelu", "QLinearSigmoid"])
def test_a_zero_point_that_is_left_out(operator: str) -> None:
    data, scale, _ = _quantized("uint8", True, 3, 400)
    check(Case(operator, [data, scale, None, *_result("uint8", True)], **_EXACT))
    # The kernel ends the process without a zero point of the result, which therefore is not run.
    assert "no zero point for its result" in refusal(Case(operator, [data, scale, _zero("uint8"), scale]))


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("QLinearAdd", [*_quantized("uint8", True, 3), *_quantized("uint8", True, 3), _scale(True)]),
        (
            "QLinearMul",
            [*_quantized("uint8", True, 3), *_quantized("uint8", True, 3)[:2], None, *_result("uint8", True)],
        ),
        ("QLinearAveragePool", [*_quantized("uint8", True, 1, 1, 4), _scale(True)]),
    ],
)
def test_a_zero_point_that_onnxruntime_requires(operator: str, inputs: list[Array | None]) -> None:
    attributes = {"kernel_shape": [2]} if "Pool" in operator else {}
    assert "no zero point" in refusal(Case(operator, inputs, attributes))


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize(("opset", "axis"), [(12, 0), (12, 1), (12, -1), (13, 0), (13, 1), (13, -1)])
@pytest.mark.parametrize("scale", [1 / 256, 1 / 128, 0.0041, 0.0075, 0.3])
def test_softmax(dtype: str, opset: int, axis: int, scale: float) -> None:
    target = [np.array(scale, np.float32), _zero(dtype)]
    inputs = [*_quantized(dtype, False, 4, 5, 12), *target]
    case = Case("QLinearSoftmax", inputs, {"opset": opset, "axis": axis}, free=scale == 0.3, **_EXACT)
    check(case, _NEW_AND_OLD if scale == 0.3 else (17,))


@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("zero", [0, 3])
def test_halves_of_softmax(zero: int, dtype: str, steps: int) -> None:
    # Two equal maxima, alone and beside a number that leaves them a little less than a half.
    data = np.array([[100, 100, 0, 0], [100, 100, 7, 3], [90, 100, 100, 100], [1, 50, 50, 10]], dtype)
    for scale in (0.17, 1):
        target = [np.array(1 / steps, np.float32), np.array(zero, dtype)]
        inputs = [data, np.array(scale, np.float32), np.array(1, dtype), *target]
        check(Case("QLinearSoftmax", inputs, {"opset": 13, "axis": -1}, **_EXACT), (24, 17))


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("other", [(4, 500), (500,), (1,)])
def test_where(dtype: str, halves: bool, other: tuple[int, ...]) -> None:
    condition = _RNG.random((4, 500)) < 0.5
    inputs = [
        condition,
        *_quantized(dtype, halves, 4, 500),
        *_quantized(dtype, halves, *other),
        *_result(dtype, halves),
    ]
    check(Case("QLinearWhere", inputs, **_EXACT), _NEW_AND_OLD)


@pytest.mark.parametrize("constants", [frozenset(), frozenset({0, 1, 3, 4, 6, 7, 9, 10})])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dtype: str, axis: int, halves: bool, constants: frozenset[int]) -> None:
    target = _result(dtype, halves)
    shapes = [[3, 400], [3, 400], [3, 400]]
    shapes[1][axis] = 2
    parts = [_quantized(dtype, halves, *shape) for shape in shapes]
    parts[2][1:] = target
    case = Case(
        "QLinearConcat", [*target, *parts[0], *parts[1], *parts[2]], {"axis": axis}, constants=constants, **_EXACT
    )
    check(case, _NEW_AND_OLD if axis == 1 else (17,))


def test_constants_of_integers_in_a_function() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1, "own" : 1]>
    g (uint8[N] a, float s, uint8 z) => (uint8[N] y) { y = own.F(a, s, z) }
    <domain: "own", opset_import: ["" : 17, "com.microsoft" : 1]>
    F (a, s, z) => (y) { y = com.microsoft.QLinearAdd(a, s, z, a, s, z, s, z) }"""
    rewrite = splitgraph.convert(parser.parse_model(text), standard=True, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
    constants = [node for node in rewrite.model.functions[0].node if node.op_type == "Constant"]
    assert TensorProto.UINT8 in {helper.get_attribute_value(node.attribute[0]).data_type for node in constants}


# Pools ---------------------------------------------------------------------------------------------------------------


def _image(dtype: str, halves: bool, last: int, sides: tuple[int, ...]) -> list[Array | None]:
    shape = (2, *sides, 30) if last else (2, 30, *sides)
    return [*_quantized(dtype, halves, *shape), *_result(dtype, halves)]


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("sides", [(4, 7), (3, 3), (5,), (2, 3, 4)])
def test_global_average_pool(dtype: str, halves: bool, last: int, sides: tuple[int, ...]) -> None:
    case = Case(
        "QLinearGlobalAveragePool", _image(dtype, halves, last, sides), {"channels_last": last}, free=halves, **_EXACT
    )
    check(case, _NEW_AND_OLD if len(sides) == 2 else (17,))


_WINDOWS: tuple[dict[str, Any], ...] = (
    *({}, {"strides": [2, 1]}, {"pads": [1, 0, 0, 1]}, {"pads": [1, 0, 0, 1], "count_include_pad": 1}),
    *({"ceil_mode": 1, "strides": [2, 2]}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    {"ceil_mode": 1, "count_include_pad": 1, "strides": [2, 2], "pads": [1, 1, 0, 0]},
    {"ceil_mode": 1, "count_include_pad": 1, "strides": [3, 2]},
    {"ceil_mode": 1, "count_include_pad": 1, "strides": [1, 1]},
)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("attributes", _WINDOWS)
def test_average_pool(attributes: dict[str, Any], dtype: str, halves: bool, last: int) -> None:
    more = {"kernel_shape": [3, 2], "channels_last": last, **attributes}
    case = Case("QLinearAveragePool", _image(dtype, halves, last, (6, 7)), more, **_EXACT)
    check(case, _NEW_AND_OLD if halves and last else (17,))


def _ordinary(sides: tuple[int, ...], last: int = 0) -> list[Array | None]:
    """An image and a result whose means often lie next to a half."""
    scale = np.array(0.1, np.float32)
    shape = (4, *sides, 8) if last else (4, 8, *sides)
    return [_bytes("uint8", *shape), scale, np.uint8(1), scale, np.uint8(3)]


_UNEVEN: tuple[dict[str, Any], ...] = (
    {"ceil_mode": 1, "strides": [3, 3]},
    {"ceil_mode": 1, "strides": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    {"ceil_mode": 1, "strides": [2, 3], "pads": [0, 1, 1, 1]},
    {"auto_pad": "VALID", "ceil_mode": 1, "strides": [1, 4]},
    # Strides larger than windows: the kernel skips elements before the first window.
    *({"auto_pad": kind, "strides": [5, 4]} for kind in ("SAME_LOWER", "SAME_UPPER")),
)


@pytest.mark.parametrize("sides", [(64,), (16, 16), (6, 6, 6)])
def test_means_are_rounded_as_the_kernel_rounds_them(sides: tuple[int, ...]) -> None:
    more = {"kernel_shape": [2] * len(sides)}
    check(Case("QLinearAveragePool", _ordinary(sides), more, **_EXACT), (24, 19, 18, 13))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("attributes", _UNEVEN)
def test_windows_of_uneven_images(attributes: dict[str, Any], free: bool) -> None:
    more = {"kernel_shape": [2, 2], "channels_last": int(free), **attributes}
    check(Case("QLinearAveragePool", _ordinary((7, 9), int(free)), more, free=free, **_EXACT), (24, 17, 11))


def test_large_windows_need_an_ordered_sum() -> None:
    more = {"kernel_shape": [9, 8], "pads": [1, 0, 0, 2], "ceil_mode": 1, "strides": [3, 2]}
    case = Case("QLinearAveragePool", _ordinary((13, 14)), more, **_EXACT)
    check(case, (24, 19))
    assert "adds them in another order" in refusal(case, 18)
    same = Case("QLinearAveragePool", case.inputs, {"kernel_shape": [9, 8], "auto_pad": "SAME_UPPER"}, free=True)
    assert "depends on sizes" in refusal(same, 24)


# Layers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize(("data", "weights"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
def test_conv(data: str, weights: str, channels: bool, bias: bool, last: int) -> None:
    scales = np.asarray(_RNG.uniform(0.01, 0.1, 6 if channels else ()), np.float32)
    zeros = np.zeros(6, weights) if channels else _zero(weights)
    image = _quantized(data, False, *((2, 5, 6, 4) if last else (2, 4, 5, 6)))
    inputs = [*image, _bytes(weights, 6, 2, 2, 3), scales, zeros, np.array(0.7, np.float32), _zero(data)]
    if bias:
        inputs.append(_RNG.integers(-300, 300, 6).astype(np.int32))
    attributes = {"group": 2, "pads": [1, 0, 0, 1], "strides": [2, 1], "channels_last": last}
    constants = frozenset({3, 4, 5}) if bias else frozenset()
    check(Case("QLinearConv", inputs, attributes, constants=constants, **_EXACT), _NEW_AND_OLD if bias else (17,))


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, "one", "default"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_quantize_and_dequantize(dtype: str, axis: Any, zero: bool) -> None:
    shape = (3, 4, 2)
    count = {"one": (1,), "default": (4,)}.get(
        axis, () if axis is None else (shape[axis],) if axis in (0, 1, -1) else ()
    )
    attributes = {"axis": axis} if isinstance(axis, int) else {}
    scale = np.asarray(_RNG.uniform(0.05, 0.5, count), np.float32)
    point = _bytes(dtype, *count) if count else _zero(dtype)
    data = (_RNG.standard_normal(shape) * 50).astype(np.float32)
    opsets = (24, 17) if axis is None else (24,)
    if zero or dtype == "uint8":
        quantize = [data, scale, point] if zero else [data, scale]
        check(Case("QuantizeLinear", quantize, attributes, **_EXACT), opsets)
    dequantize = [_bytes(dtype, *shape), scale, point] if zero else [_bytes(dtype, *shape), scale]
    check(Case("DequantizeLinear", dequantize, attributes, **_EXACT), opsets)


def test_dequantize_int32() -> None:
    data = _RNG.integers(-1000, 1000, (3, 4)).astype(np.int32)
    check(Case("DequantizeLinear", [data, np.array(0.3, np.float32)], **_EXACT))


def _lstm(dtype: str, columns: bool, direction: str, **more: Any) -> Case:
    directions = 2 if direction == "bidirectional" else 1
    length, batch, size, hidden = 4, 2, 3, 5
    zero = 0 if dtype == "int8" else 120
    scale_shape = (directions, 4 * hidden) if columns else (directions,)
    scales = [_RNG.uniform(0.002, 0.006, scale_shape).astype(np.float32) for _ in range(2)]
    zeros = np.full(scale_shape, zero, dtype)
    weights, recurrence = _bytes(dtype, directions, size, 4 * hidden), _bytes(dtype, directions, hidden, 4 * hidden)
    state = (directions, batch, hidden)
    optional: list[Array | None] = [
        _RNG.standard_normal((directions, 8 * hidden)).astype(np.float32) if more.pop("bias", True) else None,
        np.array([4, 2], np.int32) if more.pop("lengths", False) else None,
        *[_RNG.standard_normal(state).astype(np.float32) if more.get("start") else None for _ in range(2)],
        _RNG.standard_normal((directions, 3 * hidden)).astype(np.float32) if more.get("peep") else None,
    ]
    inputs = [_RNG.standard_normal((length, batch, size)).astype(np.float32), weights, recurrence, *optional]
    inputs += [scales[0], zeros, scales[1], zeros]
    return Case(
        "DynamicQuantizeLSTM",
        inputs,
        {"hidden_size": hidden, "direction": direction},
        outputs=3,
        constants=frozenset({1, 2, 8, 9, 10, 11}),
        rtol=3e-2,
        atol=3e-2,
    )


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("dtype", _TYPES)
def test_dynamic_quantize_lstm(dtype: str, columns: bool, direction: str) -> None:
    check(_lstm(dtype, columns, direction), _NEW_AND_OLD)
    check(_lstm(dtype, columns, direction, start=True, peep=True), (17,))
    check(_lstm(dtype, columns, direction, lengths=True, bias=False), (17,))
