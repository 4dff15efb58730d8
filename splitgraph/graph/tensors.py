"""Elements of constant tensors, and tensors made from elements."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from splitgraph.contents import MAX_ITEMS, Contents, Item
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, ValueType, tensor

_INTEGERS = frozenset(
    {"uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "uint4", "int4", "uint2", "int2", "bool"}
)
_FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})
# How raw data is laid out, and the field that holds the elements where there is none.
_LAYOUTS = {
    "int64": ("q", "int64_data"),
    "int32": ("i", "int32_data"),
    "float32": ("f", "float_data"),
    "float64": ("d", "double_data"),
}


def tensor_type(proto: TensorProto) -> ValueType:
    """The type of a constant tensor."""
    return tensor(DTYPE_NAMES.get(proto.data_type), tuple(proto.dims))


def is_external(proto: TensorProto) -> bool:
    """True when the tensor's data is in another file."""
    return bool(proto.data_location == TensorProto.EXTERNAL)


def tensor_contents(proto: TensorProto) -> Contents | None:
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
    if dtype in _LAYOUTS:
        # What shapes are made of, and so most of what is read: without NumPy, which takes five times as long.
        layout, field = _LAYOUTS[dtype]
        raw, size = proto.raw_data, struct.calcsize(f"<{count}{layout}")
        given = struct.unpack(f"<{count}{layout}", raw) if len(raw) == size and raw else tuple(getattr(proto, field))
        return Contents(shape, given) if len(given) == count else None
    from onnx import numpy_helper

    try:
        array = numpy_helper.to_array(proto)
    except (ValueError, TypeError):
        # Fewer or more bytes than the shape needs: the checker's matter; here the elements are simply not known.
        return None
    flat = array.reshape(-1)
    if dtype in _INTEGERS:
        return Contents(shape, tuple(int(item) for item in flat))
    return Contents(shape, tuple(float(item) for item in flat))


def int64_tensor(name: str, values: Sequence[int] | int) -> TensorProto:
    """An int64 tensor: 1-D for a sequence, 0-D for an int."""
    items = (values,) if isinstance(values, int) else tuple(values)
    raw = struct.pack(f"<{len(items)}q", *items)
    dims = () if isinstance(values, int) else (len(items),)
    return TensorProto(name=name, data_type=TensorProto.INT64, dims=dims, raw_data=raw)
