"""TypeProto to ValueType and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from splitgraph.dim import Dim, DimLike, read_dim_param
from splitgraph.graph.nesting import MOST_NESTED
from splitgraph.onnx_proto import TensorShapeProto, TypeProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS, UNKNOWN, ValueType

ParseDim = Callable[[str], DimLike | None]

# The largest dimension that a model can declare.
LARGEST_DIM = 2**63 - 1


def value_type(proto: TypeProto, parse: ParseDim = read_dim_param) -> ValueType:
    """What a TypeProto declares; dimensions that it leaves unset or marks as unknown are None. A type that is nested
    too deep is unknown.
    """
    around: list[TypeProto] = []
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        around.append(proto)
        if len(around) > MOST_NESTED:
            return UNKNOWN
        proto = _held(proto, kind)
    found = UNKNOWN
    if kind == "tensor_type" or kind == "sparse_tensor_type":
        held = getattr(proto, kind)
        dtype = DTYPE_NAMES.get(held.elem_type)
        shape = tuple(_dim(dim, parse) for dim in held.shape.dim) if held.HasField("shape") else None
        found = ValueType("tensor" if kind == "tensor_type" else "sparse_tensor", dtype, shape)
    for outer in reversed(around):
        found = _holding(outer, found)
    return found


_HOLDING = frozenset({"sequence_type", "optional_type", "map_type"})


def _held(proto: TypeProto, kind: str) -> TypeProto:
    """The element type of a sequence or an optional value, or the type of a map's values."""
    held: TypeProto = proto.map_type.value_type if kind == "map_type" else getattr(proto, kind).elem_type
    return held


def _holding(outer: TypeProto, held: ValueType) -> ValueType:
    """The type of a sequence, an optional value or a map of these."""
    kind = outer.WhichOneof("value")
    if kind == "map_type":
        return ValueType("map", DTYPE_NAMES.get(outer.map_type.key_type), None, held)
    name = "sequence" if kind == "sequence_type" else "optional"
    if held.kind in ("tensor", "unknown"):
        return ValueType(name, held.dtype, held.shape)
    if held.kind == "sequence":
        return ValueType(name, held.dtype, held.shape, held)
    return ValueType(name, None, None, held)


def nested_types(proto: TypeProto) -> int:
    """How many sequences, optional values and maps a type is nested in."""
    depth = 0
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        proto, depth = _held(proto, kind), depth + 1
    return depth


def tensor_types(proto: TypeProto) -> Iterator[Any]:
    """The tensor types in a type: itself, or those of what a sequence, an optional value or a map holds."""
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        proto = _held(proto, kind)
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(proto, kind)


def opaque_text(proto: TypeProto) -> str:
    """An opaque type, or a type that holds one, as "sequence(opaque(domain.name))"; "" for any other type."""
    around = []
    while (kind := proto.WhichOneof("value")) in _HOLDING:
        around.append(kind.removesuffix("_type"))
        proto = _held(proto, kind)
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
    """A TypeProto of the type; None when its kind or element type is unknown, so that nothing can be declared."""
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


def write_shape(value: ValueType, held: TypeProto.Tensor) -> None:
    """Write the shape, leaving unknown dimensions unset; nothing at all for an unknown rank."""
    if value.shape is None:
        return
    shape = held.shape
    shape.SetInParent()
    for dim in value.shape:
        write_dim(dim, shape.dim.add())


def write_dim(dim: DimLike | None, entry: TensorShapeProto.Dimension) -> None:
    """Write a dimension in place of what is there; an unknown one is left as it is."""
    if isinstance(dim, int):
        # What the format's 64 bits cannot hold is left unset.
        if dim <= LARGEST_DIM:
            entry.dim_value = dim
    elif isinstance(dim, Dim):
        entry.dim_param = str(dim)
