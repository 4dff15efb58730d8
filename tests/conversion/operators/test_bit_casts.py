"""BitCast below opset 26: the bits of integers, also as floats; never those of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, refusal, run, run_reference
from onnx import helper, numpy_helper

from splitgraph.model.value_type import DTYPE_NUMBERS

FLOATS = [("float16", 16), ("bfloat16", 16), ("float32", 32), ("float64", 64)]


def bit_cast(dtype: str, wanted: str, shape: Any = ("n",)) -> onnx.ModelProto:
    node = helper.make_node("BitCast", ["a"], ["c"], to=DTYPE_NUMBERS[wanted])
    return build(node, 26, {"a": (dtype, shape)}, {"c": (wanted, shape)})


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype]))


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("float32", "int32"), ("float32", "uint32"), ("float64", "int64"), ("float16", "int16"), ("bfloat16", "float16")],
)
@pytest.mark.parametrize("target", [25, 18])
def test_bits_of_floats_are_refused(dtype: str, wanted: str, target: int) -> None:
    assert f"no older operator gives the bits of {dtype} as {wanted}" in refusal(bit_cast(dtype, wanted), target)


@pytest.mark.parametrize(("wanted", "width"), [*FLOATS, ("int8", 8), ("int16", 16)])
def test_an_unknown_type_is_refused(wanted: str, width: int) -> None:
    node = helper.make_node("BitCast", ["b"], ["c"], to=DTYPE_NUMBERS[wanted])
    model = build(node, 26, {"a": (f"int{width}", ("n",))}, {"c": (wanted, ("n",))})
    model.graph.node.insert(0, helper.make_node("Unheard", ["a"], ["b"], domain="other"))
    model.opset_import.add(domain="other", version=1)
    assert "is unknown" in refusal(model, 18)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("int8", "uint8"), ("uint64", "int64"), ("bool", "uint8"), ("bool", "int8"), ("int16", "int16")],
)
def test_integers(dtype: str, wanted: str) -> None:
    if dtype == "bool":
        a = np.array([True, False])
    else:
        limits = np.iinfo(dtype)
        a = np.array([limits.min, 0, 1, limits.max // 2, limits.max // 2 + 1, limits.max], dtype)
    assert_same([a.view(wanted)], run(converted(bit_cast(dtype, wanted), 18), {"a": a}))


def bits_of(width: int) -> Array:
    """Each sign and exponent with fractions from 0 to the last, and random numbers; all there are of 16 bits."""
    if width == 16:
        return np.arange(2**16, dtype=np.uint16)
    fraction = {32: 23, 64: 52}[width]
    heads = np.arange(2 ** (width - fraction), dtype=np.uint64)[:, None] << np.uint64(fraction)
    tails = np.array([0, 1, 2, 2 ** (fraction - 1), 2**fraction - 2, 2**fraction - 1], np.uint64)
    drawn = np.random.default_rng(0).integers(0, 2**width - 1, 20_000, np.uint64, endpoint=True)
    return np.concatenate([(heads | tails).reshape(-1), drawn]).astype(f"uint{width}")


@pytest.mark.parametrize(("wanted", "width"), FLOATS)
@pytest.mark.parametrize("sign", ["int", "uint"])
@pytest.mark.parametrize("target", [25, 18, 13, 9])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_floats_are_computed_to_the_last_bit(wanted: str, width: int, sign: str, target: int) -> None:
    dtype, bits = f"{sign}{width}", bits_of(width)
    if wanted == "bfloat16" and target < 13:
        assert "bfloat16" in refusal(bit_cast(dtype, wanted), target)
        return
    after = converted(bit_cast(dtype, wanted), target)
    # onnxruntime has no opset 25's IR version that the model has kept.
    after.ir_version = 10
    feeds, expected = {"a": bits.view(dtype)}, bits.view(numpy_type(wanted))
    for [found] in (run_reference(after, feeds), *([] if wanted == "bfloat16" or target > 24 else [run(after, feeds)])):
        is_nan = np.isnan(expected.astype(np.float64))
        assert found.dtype == expected.dtype
        assert np.array_equal(np.isnan(found.astype(np.float64)), is_nan)
        assert np.array_equal(found.view(bits.dtype)[~is_nan], bits[~is_nan])


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_shapes(shape: tuple[int, ...]) -> None:
    held = np.full(shape, 1.5, np.float32)
    [found] = run(converted(bit_cast("int32", "float32", shape), 13), {"a": held.view(np.int32)})
    assert found.shape == shape and np.array_equal(found, held)


def test_a_constant_is_carried_too() -> None:
    node = helper.make_node("BitCast", ["a"], ["c"], to=DTYPE_NUMBERS["float64"])
    held = np.array([-0.0, np.inf, 5e-324, np.pi])
    model = build(node, 26, {"x": ("int64", (4,))}, {"c": ("float64", (4,))})
    model.graph.initializer.append(numpy_helper.from_array(held.view(np.int64), "a"))
    [found] = run(converted(model, 18), {"x": np.zeros(4, np.int64)})
    assert np.array_equal(found.view(np.int64), held.view(np.int64))
