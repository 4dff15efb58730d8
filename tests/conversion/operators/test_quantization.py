"""QuantizeLinear and DequantizeLinear over their boundaries, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    number_of,
    operators,
    refusal,
    run,
    run_reference,
)
from onnx import helper

Shape = Sequence[int | str]


def quantize(
    opset: int, x: Shape, scale: Shape, dtype: str, float_type: str = "float32", zero: bool = True, **attributes: Any
) -> onnx.ModelProto:
    inputs = {"x": (float_type, x), "s": (float_type, scale)} | ({"z": (dtype, scale)} if zero else {})
    return build(
        helper.make_node("QuantizeLinear", list(inputs), ["y"], **attributes), opset, inputs, {"y": (dtype, x)}
    )


def dequantize(
    opset: int, x: Shape, scale: Shape, dtype: str, float_type: str = "float32", zero: bool = True, **attributes: Any
) -> onnx.ModelProto:
    inputs = {"x": (dtype, x), "s": (float_type, scale)} | ({"z": (dtype, scale)} if zero else {})
    node = helper.make_node("DequantizeLinear", list(inputs), ["y"], **attributes)
    return build(node, opset, inputs, {"y": (float_type, x)})


def feeds_of(model: onnx.ModelProto, sizes: dict[str, int] | None = None) -> dict[str, Any]:
    found, generator = {}, np.random.default_rng(3)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [dim.dim_value or (sizes or {}).get(dim.dim_param, 0) for dim in dims]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            found[value.name] = generator.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
        elif value.name == "s":
            found[value.name] = generator.choice([0.25, 0.5, 2.0, 3.0], shape).astype(dtype)
        else:
            halves = generator.integers(-2000, 2000, shape) / 4
            found[value.name] = halves.astype(dtype)
    if "z" in found and found["x"].dtype == np.int32:
        found["z"][...] = 0
    return found


REFUSED = [
    (quantize(19, (2, 3), (), "float8e4m3fn"), 18, "does not take float8e4m3fn"),
    (dequantize(25, (4,), (), "int2", zero=False), 24, "int2"),
    (quantize(13, (2, 3), ("n",), "int8", axis=5), 12, "does not fit axis 5"),
]


@pytest.mark.parametrize(("model", "target", "words"), REFUSED)
def test_refused(model: onnx.ModelProto, target: int, words: str) -> None:
    assert words in refusal(model, target)


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("scale", [(), (1,)])
def test_one_scale_stays(make: Any, scale: tuple[int, ...]) -> None:
    before = make(13, (2, 3), scale, "int8", axis=0)
    after = converted(before, 10)
    # Below 13 scale and zero point are scalars.
    assert operators(after) == [*["Reshape"] * 2 * len(scale), before.graph.node[0].op_type]
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("make", [quantize, dequantize])
def test_one_scale_without_a_zero_point_stays(make: Any) -> None:
    """The axis by default, 1, is none of the data's."""
    before = make(13, (2,), (1,), "uint8", zero=False)
    after = converted(before, 12)
    assert operators(after)[-1] == before.graph.node[0].op_type
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("zero", [True, False])
def test_one_scale_for_each_index_below_13(make: Any, dtype: str, axis: int, zero: bool) -> None:
    if not zero and dtype == "int8" and make is quantize:
        return
    shape = (2, 3, 4)
    for declared in (shape, ("a", "b", "c")):
        before = make(13, declared, (declared[axis],), dtype, zero=zero, axis=axis)
        feeds = feeds_of(before, {"a": 2, "b": 3, "c": 4})
        assert_same(run(before, feeds), run(converted(before, 12), feeds))


def test_int32_below_13() -> None:
    before = dequantize(13, (2, 3), (3,), "int32", zero=False)
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(converted(before, 12), feeds))


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8", "uint8"])
@pytest.mark.parametrize(("block", "size"), [(2, 4), (3, 7), (4, 3)])
@pytest.mark.parametrize("target", [20, 18, 12])
def test_one_scale_for_each_block_below_21(make: Any, dtype: str, block: int, size: int, target: int) -> None:
    blocks = -(-size // block)
    for declared in ((2, size, 3), ("a", "b", "c")):
        scale = (declared[0], blocks if declared[1] == size else "d", declared[2])
        before = make(21, declared, scale, dtype, axis=1, block_size=block)
        feeds = feeds_of(before, {"a": 2, "b": size, "c": 3, "d": blocks})
        assert_same(run_reference(before, feeds), run(converted(before, target), feeds))


FLOAT8 = ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("target", [20, 19])
def test_blocks_of_float8_below_21(make: Any, dtype: str, zero: bool, target: int) -> None:
    """The zero point is 0: a product of what Cast gives, or what Cast makes of a quotient."""
    for saturate in (1, 0) if make is quantize else (None,):
        attributes = {} if saturate is None else {"saturate": saturate}
        if make is quantize and not zero:
            attributes["output_dtype"] = number_of(dtype)
        before = make(21, (2, 7), (2, 3), dtype, zero=zero, axis=1, block_size=3, **attributes)
        feeds = feeds_of(before)
        if zero:
            feeds["z"] = np.zeros_like(feeds["z"])
        found, expected = (run_reference(each, feeds)[0] for each in (converted(before, target), before))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_precision_of_another_type_is_no_idle_attribute() -> None:
    """Below 23 the data and the scale are of one type."""
    inputs = {"x": ("float16", (2, 3)), "s": ("float32", ())}
    before = build(
        helper.make_node("QuantizeLinear", list(inputs), ["y"], precision=number_of("float32")),
        23,
        inputs,
        {"y": ("uint8", (2, 3))},
    )
    feeds = {"x": np.array([[-1, 0.5, 1.5], [2.5, 700, 3]], np.float16), "s": np.array(0.5, np.float32)}
    assert_same(run_reference(before, feeds), run(converted(before, 22), feeds))


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("uint8", 0, 255),
        ("int8", -128, 127),
        ("uint16", 0, 65535),
        ("int16", -32768, 32767),
        ("uint4", 0, 15),
        ("int4", -8, 7),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_what_is_out_of_range_is_the_nearest_number(dtype: str, low: int, high: int) -> None:
    inputs = {"x": ("float32", (5,)), "s": ("float16", ()), "z": (dtype, ())}
    before = build(helper.make_node("QuantizeLinear", list(inputs), ["y"]), 23, inputs, {"y": (dtype, (5,))})
    after = converted(before, 22)
    assert "Clip" in operators(after)
    feeds = {"x": np.array([-1e6, low, 0, high, 1e6], np.float32), "s": np.array(1, np.float16)}
    feeds["z"] = np.zeros((), helper.tensor_dtype_to_np_dtype(number_of(dtype)))
    (found,) = run_reference(after, feeds)
    assert found.astype(np.int64).tolist() == [low, low, 0, high, high]


@pytest.mark.parametrize(
    ("data", "scale", "attributes", "casts"),
    [
        ("float32", "float16", {}, 1),
        ("int32", "float32", {}, 1),
        ("float32", "float16", {"precision": number_of("float32")}, 1),
        ("float32", "float32", {"precision": number_of("float16"), "saturate": 0}, 2),
    ],
)
@pytest.mark.parametrize("target", [22, 20])
def test_float8_is_divided_in_one_type_below_23(
    data: str, scale: str, attributes: dict[str, int], casts: int, target: int
) -> None:
    dtype = "float8e5m2"
    inputs = {"x": (data, (2, 3)), "s": (scale, ()), "z": (dtype, ())}
    node = helper.make_node("QuantizeLinear", list(inputs), ["y"], **attributes)
    before = build(node, 23, inputs, {"y": (dtype, (2, 3))})
    after = converted(before, target)
    assert operators(after) == [*["Cast"] * casts, "QuantizeLinear"]
    feeds = {"x": np.array([[-1, 3, 15], [25, 70, 9]]).astype(data), "s": np.array(0.5).astype(scale)}
    feeds["z"] = np.zeros((), helper.tensor_dtype_to_np_dtype(number_of(dtype)))
    found, expected = (run_reference(each, feeds)[0] for each in (after, before))
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float8e4m3fn"])
@pytest.mark.parametrize("float_type", ["float32", "float16"])
def test_attributes_that_say_what_holds_below_23(dtype: str, float_type: str) -> None:
    number = number_of(float_type)
    for before in (
        quantize(23, (2, 3), (), dtype, float_type, precision=number),
        dequantize(23, (2, 3), (), dtype, float_type, output_dtype=number),
    ):
        (node,) = converted(before, 22).graph.node
        assert (node.op_type, list(node.attribute)) == (before.graph.node[0].op_type, [])


def test_eight_bit_floats_in_another_type_than_the_scale_below_23() -> None:
    before = dequantize(23, (2, 3), (), "float8e4m3fn", output_dtype=number_of("float16"))
    before.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert operators(converted(before, 22)) == ["Cast", "Mul", "Cast"]


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize("scale", [(), (3,)])
@pytest.mark.parametrize("target", [20, 13])
def test_sixteen_bits_below_21(make: Any, dtype: str, scale: tuple[int, ...], target: int) -> None:
    before = make(21, (2, 3), scale, dtype)
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(converted(before, target), feeds))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_output_dtype_below_21(dtype: str) -> None:
    before = quantize(21, (2, 3), (3,), dtype, zero=False, output_dtype=number_of(dtype))
    after = converted(before, 20)
    assert ("QuantizeLinear" in operators(after)) == (dtype in ("int8", "uint8"))
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("scale", [(), (3,)])
def test_halves_below_19(make: Any, scale: tuple[int, ...]) -> None:
    before = make(19, (2, 3), scale, "uint8", "float16")
    feeds = feeds_of(before)
    assert_same(run_reference(before, feeds), run(converted(before, 18), feeds))


@pytest.mark.parametrize(("dtype", "opset"), [("int4", 21), ("uint4", 21), ("int2", 25), ("uint2", 25)])
@pytest.mark.parametrize("zero", [True, False])
def test_narrow_constants_become_bytes(dtype: str, opset: int, zero: bool) -> None:
    numbers = np.array([[0, 1, 1], [1, 0, 1]])
    held = {"x": numbers, "z": numbers[0]} if zero else {"x": numbers}
    node = helper.make_node("DequantizeLinear", ["x", "s", *("z" for _ in range(zero))], ["y"], axis=1)
    before = build(node, opset, {"s": ("float32", (3,))}, {"y": ("float32", (2, 3))})
    for name, values in held.items():
        tensor = helper.make_tensor(name, number_of(dtype), values.shape, values.reshape(-1).tolist())
        before.graph.initializer.append(tensor)
    feeds = {"s": np.array([0.5, 2, 3], np.float32)}
    after = converted(before, 19)
    assert operators(after) == ["DequantizeLinear"]
    assert_same([((numbers - (numbers[0] if zero else 0)) * feeds["s"]).astype(np.float32)], run(after, feeds))


def test_narrow_constants_in_blocks() -> None:
    numbers = np.array([[0, 1, 7, -8, 3]])
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=2)
    before = build(node, 21, {"s": ("float32", (1, 3))}, {"y": ("float32", (1, 5))})
    before.graph.initializer.append(helper.make_tensor("x", number_of("int4"), (1, 5), numbers.reshape(-1).tolist()))
    feeds = {"s": np.array([[0.5, 2, 3]], np.float32)}
    expected = (numbers * np.repeat(feeds["s"], 2, axis=1)[:, :5]).astype(np.float32)
    for target in (20, 13):
        assert_same([expected], run(converted(before, target), feeds))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_scales_of_halves_below_21(dtype: str) -> None:
    shapes = {"a": (2, 4), "b": (4, 3), "y": (1,)}
    inputs = {}
    for name, shape in shapes.items():
        inputs |= {name: (dtype, shape), f"{name}_scale": ("float16", (1,)), f"{name}_zero": (dtype, (1,))}
    del inputs["y"]
    before = build(helper.make_node("QLinearMatMul", list(inputs), ["out"]), 21, inputs, {"out": (dtype, (2, 3))})
    feeds = feeds_of(before)
    for name in shapes:
        feeds[f"{name}_scale"] = np.array([0.5], np.float16)
    assert_same(run_reference(before, feeds), run(converted(before, 10), feeds))


@pytest.mark.parametrize("make", [quantize, dequantize])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_no_quantization_below_10(make: Any, dtype: str) -> None:
    before = make(10, (2, 3), (), dtype)
    after = converted(before, 9)
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(operators(after))
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(after, feeds))


def matmul_or_conv(op: str, dtype: str, weights: Shape, bias: bool = False, **attributes: Any) -> onnx.ModelProto:
    shapes: dict[str, Shape] = (
        {"a": (2, 4), "b": (4, 3)} if op == "QLinearMatMul" else {"a": (1, 2, 5, 5), "b": (3, 2, 2, 2)}
    )
    inputs: dict[str, tuple[str, Shape]] = {}
    for name, scale in (("a", ()), ("b", weights)):
        inputs |= {name: (dtype, shapes[name]), f"{name}_s": ("float32", scale), f"{name}_z": (dtype, scale)}
    inputs |= {"y_s": ("float32", (1,)), "y_z": (dtype, (1,))} | ({"bias": ("int32", (3,))} if bias else {})
    out: Shape = (2, 3) if op == "QLinearMatMul" else (1, 3, "h", "w")
    return build(helper.make_node(op, list(inputs), ["y"], **attributes), 10, inputs, {"y": (dtype, out)})


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("QLinearMatMul", {}), ("QLinearConv", {}), ("QLinearConv", {"pads": [1, 0, 0, 1], "strides": [2, 1]})],
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("weights", [(), (1,), (3,)])
@pytest.mark.parametrize("bias", [False, True])
def test_no_quantized_products_below_10(op: str, attributes: Any, dtype: str, weights: Shape, bias: bool) -> None:
    before = matmul_or_conv(op, dtype, weights, bias and op == "QLinearConv", **attributes)
    feeds = feeds_of(before)
    feeds["b_z"][...] = 0 if dtype == "int8" else 128
    feeds |= {f"{name}_s": np.full(feeds[f"{name}_s"].shape, 2.0**-k, np.float32) for k, name in enumerate("aby")}
    feeds["y_s"] = np.array([64], np.float32)
    if "bias" in feeds:
        feeds["bias"] = np.array([100, -3000, 7], np.int32)
    assert_same(run(before, feeds), run(converted(before, 9), feeds))


@pytest.mark.parametrize("index", [1, 2, 4, 5, 6, 7])
def test_what_may_be_for_each_row_is_not_taken_for_a_scalar(index: int) -> None:
    before = matmul_or_conv("QLinearMatMul", "uint8", ())
    before.graph.input[index].type.tensor_type.ClearField("shape")
    name = before.graph.input[index].name
    assert f"the rank of '{name}' is unknown" in refusal(before, 9)


def test_a_bias_may_be_left_out_by_name() -> None:
    before = matmul_or_conv("QLinearConv", "uint8", ())
    feeds = feeds_of(before)
    feeds |= {f"{name}_s": np.full(feeds[f"{name}_s"].shape, 0.5, np.float32) for name in "aby"}
    expected = run(before, feeds)
    before.graph.node[0].input.append("")
    assert_same(expected, run(converted(before, 9), feeds))


@pytest.mark.parametrize("source", [10, 13])
@pytest.mark.parametrize("target", [19, 22, 23])
def test_integers_with_a_float_scale_above_18(source: int, target: int) -> None:
    inputs: dict[str, Any] = {"x": ("int32", ("n",)), "s": ("float32", ()), "z": ("int8", ())}
    before = build(helper.make_node("QuantizeLinear", list(inputs), ["y"]), source, inputs, {"y": ("int8", ("n",))})
    after = converted(before, target)
    assert operators(after) == (["QuantizeLinear"] if target == 23 else ["Cast", "QuantizeLinear"])
    x = np.array([0, 1, 2, 3, 5, -1, -3, -5, 300, -300, 2**31 - 1, -(2**31)], np.int32)
    feeds = {"x": x, "s": np.array(2, np.float32), "z": np.array(3, np.int8)}
    expected = np.clip(np.rint(x.astype(np.float32) / 2) + 3, -128, 127).astype(np.int8)
    assert_same([expected], run_reference(converted(after, 18), feeds))
    if target < 23:
        assert_same([expected], run(after, feeds))


@pytest.mark.parametrize(
    ("source", "target", "scale", "attributes"),
    [
        (19, 18, (), {}),
        (21, 18, (3,), {"axis": 1}),
        (21, 20, (1, 3), {"axis": 0, "block_size": 5}),
        (23, 18, (), {"precision": number_of("int32")}),
    ],
)
def test_quotients_of_integers_are_rounded_to_even(
    source: int, target: int, scale: tuple[int, ...], attributes: dict[str, int]
) -> None:
    before = quantize(source, (5, 3), scale, "uint8", "int32", **attributes)
    x = np.array([[0, 1, 2], [3, 5, 7], [-1, -3, -5], [11, 13, 300], [2**31 - 1, -(2**31), 9]], np.int32)
    feeds = {"x": x, "s": np.full(scale, 2, np.int32), "z": np.full(scale, 7, np.uint8)}
    expected = np.clip(np.rint(x / 2.0) + 7, 0, 255).astype(np.uint8)
    assert_same([expected], run_reference(converted(before, target), feeds))


@pytest.mark.parametrize(("rows", "opset"), [("N", 10), ("N", 9), ("2", 8), ("2", 7)])
def test_a_range_of_the_data_below_11(rows: str, opset: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 6, opset_import: ["": 11]> g (float[{rows}, 4] x) => (uint8[{rows}, 4] y, float s, uint8 z)
        {{ y, s, z = DynamicQuantizeLinear(x) }}"""
    )
    after = converted(model, opset)
    drawn = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    # The scale of nothing but zeros is 1.
    for x in (drawn, np.abs(drawn), -np.abs(drawn), np.zeros_like(drawn), np.ones_like(drawn)):
        assert_same(run(model, {"x": x}), run(after, {"x": x}))
