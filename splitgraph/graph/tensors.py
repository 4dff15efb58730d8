"""Elements of constant tensors, and tensors made from elements."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import onnx
from onnx import numpy_helper

from splitgraph.contents import MAX_ITEMS, Contents, Item
from splitgraph.value_type import DTYPE_NAMES, ValueType, tensor

_INTEGERS = frozenset(
    {"uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "uint4", "int4", "uint2", "int2", "bool"}
)
_FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


def tensor_type(proto: onnx.TensorProto) -> ValueType:
    """The type of a constant tensor."""
    return tensor(DTYPE_NAMES.get(proto.data_type), tuple(proto.dims))


def is_external(proto: onnx.TensorProto) -> bool:
    """True when the tensor's data is in another file."""
    return bool(proto.data_location == onnx.TensorProto.EXTERNAL)


def tensor_contents(proto: onnx.TensorProto) -> Contents | None:
    """The elements of a small constant tensor of numbers, booleans or strings; None when large, external, malformed or
    of another type.
    """
    shape = tuple(proto.dims)
    count = 1
    for dim in shape:
        count *= dim
    dtype = DTYPE_NAMES.get(proto.data_type)
    if count > MAX_ITEMS or count < 0 or is_external(proto) or dtype is None:
        return None
    if dtype == "string":
        items: tuple[Item, ...] = tuple(text.decode("utf-8", "replace") for text in proto.string_data)
        return Contents(shape, items) if len(items) == count else None
    if dtype not in _INTEGERS and dtype not in _FLOATS:
        return None
    if dtype == "int64":
        # What shapes are made of, and so most of what is read: without NumPy, which takes five times as long.
        raw, size = proto.raw_data, struct.calcsize(f"<{count}q")
        given = struct.unpack(f"<{count}q", raw) if len(raw) == size else tuple(proto.int64_data[:])
        return Contents(shape, given) if len(given) == count else None
    try:
        array = numpy_helper.to_array(proto)
    except (ValueError, TypeError):
        # Fewer or more bytes than the shape needs: the checker's matter; here the elements are simply not known.
        return None
    flat = array.reshape(-1)
    if dtype in _INTEGERS:
        return Contents(shape, tuple(int(item) for item in flat))
    return Contents(shape, tuple(float(item) for item in flat))


def int64_tensor(name: str, values: Sequence[int] | int) -> onnx.TensorProto:
    """An int64 tensor: 1-D for a sequence, 0-D for an int."""
    items = (values,) if isinstance(values, int) else tuple(values)
    raw = struct.pack(f"<{len(items)}q", *items)
    dims = () if isinstance(values, int) else (len(items),)
    return onnx.TensorProto(name=name, data_type=onnx.TensorProto.INT64, dims=dims, raw_data=raw)
