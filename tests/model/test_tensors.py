"""The elements of tensors are read, and rounded, without NumPy, exactly as NumPy and onnx do it."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from splitgraph.inference.rules.arithmetic import round_to
from splitgraph.model.value_type import DTYPE_NAMES
from splitgraph.model.values import tensor_contents

# Of the types that the installed onnx has.
NUMBERS = [
    number
    for number in TensorProto.DataType.values()
    if not DTYPE_NAMES.get(number, "string").startswith(("string", "complex"))
]
VALUES = [0, 1, 0, 1, 1, 0]
UNREADABLE = ("float8", "float6e", "float4")


def _expected(held: TensorProto) -> list[float]:
    return [float(item) for item in numpy_helper.to_array(held).reshape(-1)]


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: DTYPE_NAMES[number])
@pytest.mark.parametrize("dims", [(), (6,), (2, 3), (0,)], ids=str)
def test_the_elements_are_those_that_onnx_reads(number: int, raw: bool, dims: tuple[int, ...]) -> None:
    values = VALUES[: math.prod(dims)]
    held = helper.make_tensor("t", number, dims, values)
    if raw:
        held = numpy_helper.from_array(numpy_helper.to_array(held), "t")
    found = tensor_contents(held)
    if DTYPE_NAMES[number].startswith(UNREADABLE):
        assert found is None
        return
    assert found is not None
    assert found.shape == dims
    assert list(found.items) == _expected(held)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: DTYPE_NAMES[number])
@pytest.mark.parametrize("size", [1, 5, 7, 100])
def test_bytes_that_do_not_fit_are_not_read(number: int, size: int) -> None:
    held = TensorProto(name="t", data_type=number, dims=[3], raw_data=b"\1" * size)
    found = tensor_contents(held)
    if found is not None:
        assert list(found.items) == _expected(held)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint16, np.uint32, np.uint64])
def test_extreme_elements(dtype: Any) -> None:
    info = np.finfo(dtype) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype)
    held = numpy_helper.from_array(np.array([info.min, info.max, 1], dtype))
    found = tensor_contents(held)
    assert found is not None
    assert list(found.items) == [item.item() for item in numpy_helper.to_array(held)]


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["float32", "float16"]))
def test_rounding_is_that_of_numpy(value: float, dtype: str) -> None:
    """Of float16 only what needs none is said: runtimes differ in where they round."""
    with np.errstate(over="ignore"):
        expected = float(np.asarray(value).astype(dtype))
    is_said = math.isfinite(expected) and (dtype == "float32" or expected == value)
    assert round_to(dtype, value) == (expected if is_said else None)


@given(st.integers(0, 2**16 - 1))
def test_every_float16_rounds_to_itself(bits: int) -> None:
    (value,) = struct.unpack("<e", struct.pack("<H", bits))
    if math.isfinite(value):
        assert round_to("float16", value) == value
