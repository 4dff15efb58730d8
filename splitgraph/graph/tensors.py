"""Elements of constant tensors, and tensors made from elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
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
    if dtype == "int64" and not proto.raw_data:
        return Contents(shape, tuple(proto.int64_data)) if len(proto.int64_data) == count else None
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
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)
