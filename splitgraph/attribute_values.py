"""Attribute values as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from splitgraph.onnx_proto import AttributeProto


class _Unresolved:
    """The value of an attribute that refers to an attribute of a function, where the call is not known."""

    def __repr__(self) -> str:
        return "UNRESOLVED"


UNRESOLVED: Final = _Unresolved()

# What Constant may hold besides tensors, by attribute: the element type of the tensor that means the same. Those with
# an "s" are lists, 1-D; the others are one element, 0-D.
CONSTANT_DTYPES: Mapping[str, str] = {
    "value_int": "int64",
    "value_ints": "int64",
    "value_float": "float32",
    "value_floats": "float32",
    "value_string": "string",
    "value_strings": "string",
}
# Graphs that an attribute holds.
HOLDING_GRAPHS = frozenset({AttributeProto.GRAPH, AttributeProto.GRAPHS})


def _texts(written: list[bytes]) -> tuple[str, ...]:
    # A tree has a hundred thousand strings, and few different ones.
    texts = {each: each.decode("utf-8", "replace") for each in set(written)}
    return tuple([texts[each] for each in written])


_READERS: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.INT: lambda a: a.i,
    AttributeProto.FLOAT: lambda a: a.f,
    AttributeProto.STRING: lambda a: a.s.decode("utf-8", "replace"),
    AttributeProto.INTS: lambda a: tuple(a.ints),
    AttributeProto.FLOATS: lambda a: tuple(a.floats),
    AttributeProto.STRINGS: lambda a: _texts(a.strings[:]),
    AttributeProto.TENSOR: lambda a: a.t,
    AttributeProto.SPARSE_TENSOR: lambda a: a.sparse_tensor,
    AttributeProto.GRAPH: lambda a: a.g,
    AttributeProto.TYPE_PROTO: lambda a: a.tp,
    AttributeProto.GRAPHS: lambda a: tuple(a.graphs),
    AttributeProto.TENSORS: lambda a: tuple(a.tensors),
    AttributeProto.SPARSE_TENSORS: lambda a: tuple(a.sparse_tensors),
    AttributeProto.TYPE_PROTOS: lambda a: tuple(a.type_protos),
}


def attribute_value(attribute: AttributeProto) -> Any:
    """The value of an attribute as int, float, str, tuple of those, TensorProto, GraphProto or TypeProto; None when it
    has no type.
    """
    reader = _READERS.get(attribute.type)
    return None if reader is None else reader(attribute)
