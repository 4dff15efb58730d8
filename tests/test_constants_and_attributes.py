"""Constants and attributes are read and written without onnx's helpers, exactly as those do it."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from splitgraph.conversion.finish.ir_needs import _TYPES
from splitgraph.graph.tensors import tensor_contents
from splitgraph.inference.rules.arithmetic import round_to
from splitgraph.node_making import make_attribute, make_node
from splitgraph.tensor_bytes import byte_size
from splitgraph.value_type import DTYPE_NAMES

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


@pytest.mark.parametrize("number", sorted({*TensorProto.DataType.values()} - {TensorProto.UNDEFINED}))
def test_every_element_type_of_the_installed_onnx_is_known(number: int) -> None:
    name = TensorProto.DataType.Name(number)
    assert number in DTYPE_NAMES, f"name {name} in splitgraph/value_type.py"
    sized = byte_size(TensorProto(data_type=number, dims=[8])) is not None
    assert sized or number == TensorProto.STRING, f"say in splitgraph/tensor_bytes.py how many bits {name} takes"
    assert number < TensorProto.BFLOAT16 or number in _TYPES, f"add {name} to splitgraph/conversion/finish/ir_needs.py"


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


TENSOR = numpy_helper.from_array(np.ones(3, np.float32), "held")
GRAPH = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [])
ATTRIBUTES = [
    *(1, True, -(2**63), 2.5, -0.0, "text", b"\xff\x00", "", TENSOR, GRAPH, onnx.TypeProto()),
    *([1, 2], (1.5, 2), [1, 2.5], ["a", b"b"], [TENSOR, TENSOR], [GRAPH], range(3)),
    *(np.int64(3), np.float32(0.3), [np.int32(3)], np.array([1, 2]), np.array([0.5])),
]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=lambda value: type(value).__name__)
def test_an_attribute_is_the_one_that_onnx_makes(value: Any) -> None:
    made = make_attribute("key", value)
    assert made.SerializeToString() == helper.make_attribute("key", value).SerializeToString()


@pytest.mark.parametrize("value", [None, [1, "a"], object()], ids=lambda value: type(value).__name__)
def test_what_is_no_attribute_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="an attribute cannot hold"):
        make_attribute("key", value)


@pytest.mark.parametrize("value", [[], (), {}, np.array([])], ids=lambda value: type(value).__name__)
def test_an_empty_list_has_no_type(value: Any) -> None:
    with pytest.raises(ValueError, match="'key' would be an empty list"):
        make_attribute("key", value)


def test_a_node_is_the_one_that_onnx_makes() -> None:
    given = {"z": 1, "a": [1, 2], "missing": None}
    made = make_node("Split", ["x", ""], ["a", "b"], name="n", domain="d", **given)
    assert made == helper.make_node("Split", ["x", ""], ["a", "b"], name="n", domain="d", **given)
    graph = onnx.GraphProto()
    assert make_node("Relu", ["x"], ["y"], graph=graph) is graph.node[0]
