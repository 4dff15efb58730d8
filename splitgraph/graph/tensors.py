"""Elements of constant tensors, and tensors made from elements."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from splitgraph.contents import MAX_ITEMS, MAX_LISTED, MAX_RANK, Contents, Item
from splitgraph.deferred import numpy_helper
from splitgraph.onnx_proto import GraphProto, TensorProto
from splitgraph.tensor_places import is_in_other_file, with_elements
from splitgraph.value_type import DTYPE_NAMES, ValueType, tensor

_INTEGERS = frozenset(
    {"uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "uint4", "int4", "uint2", "int2", "bool"}
)
# The types of axes, sizes and lengths.
_LISTED = frozenset({"int32", "int64"})
INTEGER_TYPES = frozenset(number for number, name in DTYPE_NAMES.items() if name in _INTEGERS)
_FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})
# The layout of an element in raw data, and the field that holds the elements where there is no raw data and that needs
# no decoding.
_LAYOUTS = {
    "bool": ("?", "int32_data"),
    "int8": ("b", None),
    "uint8": ("B", None),
    "int16": ("h", None),
    "uint16": ("H", None),
    "float16": ("e", None),
    "int32": ("i", "int32_data"),
    "uint32": ("I", None),
    "int64": ("q", "int64_data"),
    "uint64": ("Q", "uint64_data"),
    "float32": ("f", "float_data"),
    "float64": ("d", "double_data"),
}


def tensor_type(proto: TensorProto) -> ValueType:
    """The type of a constant tensor."""
    return _type_of(proto.data_type, tuple(proto.dims))


@lru_cache(maxsize=4096)
def _type_of(data_type: int, dims: tuple[int, ...]) -> ValueType:
    return tensor(DTYPE_NAMES.get(data_type), dims)


def tensor_contents(proto: TensorProto) -> Contents | None:
    """The elements of a small constant tensor of numbers, booleans or strings, or of a list of integers; None when
    large, external, malformed or of another type.
    """
    shape = tuple(proto.dims)
    count = 1
    for dim in shape:
        count *= dim
    dtype = DTYPE_NAMES.get(proto.data_type)
    most = MAX_LISTED if len(shape) == 1 and dtype in _LISTED else MAX_ITEMS
    if count > most or count < 0 or len(shape) > MAX_RANK or dtype is None or is_in_other_file(proto):
        return None
    proto = with_elements(proto)
    items: tuple[Item, ...] | None
    if dtype == "string":
        items = tuple(text.decode("utf-8", "replace") for text in proto.string_data)
        return Contents(shape, items) if len(items) == count else None
    if dtype not in _INTEGERS and dtype not in _FLOATS:
        return None
    items = _plain_items(proto, dtype, count)
    if items is None:
        items = _decoded_items(proto, dtype)
    return None if items is None or len(items) != count else Contents(shape, items)


def _plain_items(proto: TensorProto, dtype: str, count: int) -> tuple[Item, ...] | None:
    """The elements of a type that Python's struct reads, None when not there or of another type: without NumPy, which
    is slow for the few elements that shapes are made of, and to import.
    """
    layout, field = _LAYOUTS.get(dtype, ("", None))
    raw = proto.raw_data
    items: tuple[Item, ...] | None = None
    if raw and layout and len(raw) == struct.calcsize(f"<{count}{layout}"):
        items = struct.unpack(f"<{count}{layout}", raw)
    elif field is not None and not raw:
        items = tuple(getattr(proto, field))
    return tuple(map(int, map(bool, items))) if items and dtype == "bool" else items


def _decoded_items(proto: TensorProto, dtype: str) -> tuple[Item, ...] | None:
    try:
        flat = array_of(proto).reshape(-1)
    except (ValueError, TypeError):
        # Fewer or more bytes than the shape needs: the checker's matter; here the elements are simply not known.
        return None
    return tuple(int(item) for item in flat) if dtype in _INTEGERS else tuple(float(item) for item in flat)


def array_of(proto: TensorProto) -> Any:
    """The elements of a constant tensor as a NumPy array, read from the model's file where they stayed in it. Raises
    what `onnx.numpy_helper.to_array` does of a malformed tensor, and ModelError where the file was changed.
    """
    return numpy_helper.to_array(with_elements(proto))


def int64_tensor(name: str, values: Sequence[int] | int, graph: GraphProto | None = None) -> TensorProto:
    """An int64 tensor: 1-D for a sequence, 0-D for an int. graph: to whose initializers it is added; None for a tensor
    by itself.
    """
    items = (values,) if isinstance(values, int) else tuple(values)
    raw = struct.pack(f"<{len(items)}q", *items)
    dims = () if isinstance(values, int) else (len(items),)
    make = TensorProto if graph is None else graph.initializer.add
    made: TensorProto = make(name=name, data_type=TensorProto.INT64, dims=dims, raw_data=raw)
    return made
