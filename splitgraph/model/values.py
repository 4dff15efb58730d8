"""Types and constant tensors of a model: TypeProto to ValueType and back, TensorProto to Contents and back."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from splitgraph.dim import Dim, DimLike, read_dim_param
from splitgraph.model.deferred import numpy_helper
from splitgraph.model.onnx_proto import GraphProto, TensorProto, TensorShapeProto, TypeProto
from splitgraph.model.scopes import MOST_NESTED
from splitgraph.model.tensor_data import is_in_other_file, with_elements
from splitgraph.model.value_type import (
    DTYPE_NAMES,
    DTYPE_NUMBERS,
    MAX_ITEMS,
    MAX_LISTED,
    MAX_RANK,
    UNKNOWN,
    Contents,
    Item,
    ValueType,
    tensor,
)

# Types ---------------------------------------------------------------------------------------------------------------


ParseDim = Callable[[str], DimLike | None]

# The kinds of types that hold another type.
_HOLDING = frozenset({"sequence_type", "optional_type", "map_type"})
# The largest dimension that a model can declare.
LARGEST_DIM = 2**63 - 1


def value_type(proto: TypeProto, parse: ParseDim = read_dim_param) -> ValueType:
    """Return what a TypeProto declares; dimensions that it leaves unset or marks as unknown are None. A type that is
    nested too deep is unknown.
    """
    around: list[TypeProto] = []
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        around.append(proto)
        if len(around) > MOST_NESTED:
            return UNKNOWN
        proto = _element_of(proto, kind)
    value = UNKNOWN
    if kind == "tensor_type" or kind == "sparse_tensor_type":
        declared = getattr(proto, kind)
        dtype = DTYPE_NAMES.get(declared.elem_type)
        shape = tuple(_dim(dim, parse) for dim in declared.shape.dim) if declared.HasField("shape") else None
        value = ValueType("tensor" if kind == "tensor_type" else "sparse_tensor", dtype, shape)
    for outer in reversed(around):
        value = _holding(outer, value)
    return value


def _element_of(proto: TypeProto, kind: str) -> TypeProto:
    """Return the element type of a sequence or an optional value, or the type of a map's values."""
    element: TypeProto = proto.map_type.value_type if kind == "map_type" else getattr(proto, kind).elem_type
    return element


def _holding(outer: TypeProto, element: ValueType) -> ValueType:
    """Return the type of a sequence, an optional value or a map of these elements."""
    kind = outer.WhichOneof("value")
    if kind == "map_type":
        return ValueType("map", DTYPE_NAMES.get(outer.map_type.key_type), None, element)
    name = "sequence" if kind == "sequence_type" else "optional"
    if element.kind in ("tensor", "unknown"):
        return ValueType(name, element.dtype, element.shape)
    if element.kind == "sequence":
        return ValueType(name, element.dtype, element.shape, element)
    return ValueType(name, None, None, element)


def nested_types(proto: TypeProto) -> int:
    """Return how many sequences, optional values and maps a type is nested in."""
    depth = 0
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        proto, depth = _element_of(proto, kind), depth + 1
    return depth


def tensor_types(proto: TypeProto) -> Iterator[Any]:
    """Yield the tensor types in a type: itself, or those of what a sequence, an optional value or a map holds."""
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        proto = _element_of(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(proto, kind)


def opaque_text(proto: TypeProto) -> str:
    """Return an opaque type, or a type that holds one, as "sequence(opaque(domain.name))"; "" for any other type."""
    around = []
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        around.append(kind.removesuffix("_type"))
        proto = _element_of(proto, kind)
    if kind != "opaque_type":
        return ""
    text = f"opaque({'.'.join(filter(None, (proto.opaque_type.domain, proto.opaque_type.name)))})"
    for outer in reversed(around):
        text = f"{outer}({text})"
    return text


def _dim(dim: TensorShapeProto.Dimension, parse: ParseDim) -> DimLike | None:
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        value: int = dim.dim_value
        # Some exporters write -1 for a dynamic dimension; ONNX has no negative dimension.
        return value if value >= 0 else None
    return parse(dim.dim_param) if kind == "dim_param" else None


def type_proto(value: ValueType) -> TypeProto | None:
    """Return a TypeProto of the type; None when its kind or element type is unknown, so that nothing can be
    declared.
    """
    proto = TypeProto()
    return proto if write_type(value, proto) else None


def write_type(value: ValueType, proto: TypeProto) -> bool:
    """Write the type into a TypeProto; False when its kind or element type is unknown."""
    if value.kind in ("tensor", "sparse_tensor"):
        number = DTYPE_NUMBERS.get(value.dtype or "")
        if number is None:
            return False
        tensor: Any = proto.tensor_type if value.kind == "tensor" else proto.sparse_tensor_type
        tensor.elem_type = number
        write_shape(value, tensor)
        return True
    if value.kind in ("sequence", "optional"):
        outer: Any = proto.sequence_type if value.kind == "sequence" else proto.optional_type
        return write_type(value.element or ValueType("tensor", value.dtype, value.shape), outer.elem_type)
    if value.kind == "map" and value.element is not None:
        proto.map_type.key_type = DTYPE_NUMBERS.get(value.dtype or "", 0)
        return write_type(value.element, proto.map_type.value_type)
    return False


def write_shape(value: ValueType, declared: TypeProto.Tensor) -> None:
    """Write the shape, leaving unknown dimensions unset; nothing at all for an unknown rank."""
    if value.shape is None:
        return
    shape = declared.shape
    shape.SetInParent()
    for dim in value.shape:
        write_dim(dim, shape.dim.add())


def write_dim(dim: DimLike | None, entry: TensorShapeProto.Dimension) -> None:
    """Write a dimension in place of the old one; an unknown dimension changes nothing."""
    if isinstance(dim, int):
        # What the format's 64 bits cannot hold is left unset.
        if dim <= LARGEST_DIM:
            entry.dim_value = dim
    elif isinstance(dim, Dim):
        entry.dim_param = str(dim)


# Constant tensors ----------------------------------------------------------------------------------------------------


_INTEGERS = frozenset(
    {"uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "uint4", "int4", "uint2", "int2", "bool"}
)
# The types of axes, sizes and lengths.
_LISTED = frozenset({"int32", "int64"})
INTEGER_TYPES = frozenset(number for number, name in DTYPE_NAMES.items() if name in _INTEGERS)
_FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})
# The layout of an element in raw data, and the field that holds undecoded elements if there is no raw data.
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
    """Return the type of a constant tensor."""
    return _type_of(proto.data_type, tuple(proto.dims))


@lru_cache(maxsize=4096)
def _type_of(data_type: int, dims: tuple[int, ...]) -> ValueType:
    return tensor(DTYPE_NAMES.get(data_type), dims)


def tensor_contents(proto: TensorProto) -> Contents | None:
    """Return the elements of a small constant tensor of numbers, booleans or strings, or of a list of integers; None
    when large, external, malformed or of another type.
    """
    if not has_few_elements(proto) or is_in_other_file(proto):
        return None
    items = tensor_items(with_elements(proto))
    return None if items is None else Contents(tuple(proto.dims), items)


def has_few_elements(proto: TensorProto) -> bool:
    """Return True for a constant tensor whose elements inference knows if it can read them."""
    rank, count = len(proto.dims), 1
    for dim in proto.dims:
        count *= dim
    dtype = DTYPE_NAMES.get(proto.data_type)
    most = MAX_LISTED if rank == 1 and dtype in _LISTED else MAX_ITEMS
    return 0 <= count <= most and rank <= MAX_RANK and (dtype == "string" or dtype in _INTEGERS or dtype in _FLOATS)


def tensor_items(proto: TensorProto) -> tuple[Item, ...] | None:
    """Return all elements of a constant tensor that has them; None when malformed, complex, or of an unknown type."""
    count = math.prod(proto.dims)
    dtype = DTYPE_NAMES.get(proto.data_type)
    items: tuple[Item, ...] | None
    if dtype is None or dtype.startswith("complex"):
        return None
    if dtype == "string":
        items = tuple(text.decode("utf-8", "replace") for text in proto.string_data)
    else:
        items = _plain_items(proto, dtype, count)
        if items is None:
            items = _decoded_items(proto, dtype)
    return None if items is None or len(items) != count else items


def _plain_items(proto: TensorProto, dtype: str, count: int) -> tuple[Item, ...] | None:
    """Return the elements of a type that Python's struct reads, None when not there or of another type: without NumPy,
    which is slow for the few elements that shapes are made of, and to import.
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
    """Return the elements of a constant tensor as a NumPy array; elements that stayed in the model's file are read.

    Raises what `onnx.numpy_helper.to_array` raises for a malformed tensor, ValueError for one in another file, and
    ModelError if the file changed.
    """
    if is_in_other_file(proto):
        # onnx would look for the file in the folder of the process.
        raise ValueError(f"the elements of {proto.name!r} are in another file")
    return numpy_helper.to_array(with_elements(proto))


def int64_tensor(name: str, values: Sequence[int] | int, graph: GraphProto | None = None) -> TensorProto:
    """Return an int64 tensor: 1-D for a sequence, 0-D for an int. graph: if given, the tensor becomes one of its
    initializers.
    """
    items = (values,) if isinstance(values, int) else tuple(values)
    raw = struct.pack(f"<{len(items)}q", *items)
    dims = () if isinstance(values, int) else (len(items),)
    make = TensorProto if graph is None else graph.initializer.add
    made: TensorProto = make(name=name, data_type=TensorProto.INT64, dims=dims, raw_data=raw)
    return made
