"""Attributes and nodes as Python values: read, and made as onnx.helper makes them, which would import onnx."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Final

from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto

# Reading -------------------------------------------------------------------------------------------------------------


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
    texts = {encoded: encoded.decode("utf-8", "replace") for encoded in set(written)}
    return tuple([texts[encoded] for encoded in written])


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
    """Return the value of an attribute as int, float, str, tuple of those, TensorProto, GraphProto or TypeProto; None
    when it has no type.
    """
    reader = _READERS.get(attribute.type)
    return None if reader is None else reader(attribute)


# Making --------------------------------------------------------------------------------------------------------------


def _as_it_is(value: Any) -> Any:
    return value


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


# For each Python type: how a value is written, its field and attribute type, and the field and type of a list of
# values.
_WRITERS: tuple[tuple[Any, Callable[[Any], Any], str, int, str, int], ...] = (
    (Integral, int, "i", AttributeProto.INT, "ints", AttributeProto.INTS),
    (Real, float, "f", AttributeProto.FLOAT, "floats", AttributeProto.FLOATS),
    ((str, bytes), _encoded, "s", AttributeProto.STRING, "strings", AttributeProto.STRINGS),
    (TensorProto, _as_it_is, "t", AttributeProto.TENSOR, "tensors", AttributeProto.TENSORS),
    (GraphProto, _as_it_is, "g", AttributeProto.GRAPH, "graphs", AttributeProto.GRAPHS),
    (TypeProto, _as_it_is, "tp", AttributeProto.TYPE_PROTO, "type_protos", AttributeProto.TYPE_PROTOS),
)


def make_attribute(name: str, value: Any) -> AttributeProto:
    """Return an attribute that holds an int, float, str, bytes, TensorProto, GraphProto or TypeProto, or several of one
    kind.

    An AttributeProto, which refers to an attribute of the enclosing function, is copied under the name. Raises
    ValueError for an empty list, of which nothing says what it would hold, and TypeError for anything else.
    """
    if isinstance(value, AttributeProto):
        return AttributeProto(name=name, type=value.type, ref_attr_name=value.ref_attr_name)
    is_list = not isinstance(value, (str, bytes)) and isinstance(value, Iterable)
    items = list(value) if is_list else [value]
    if not items:
        raise ValueError(f"the attribute {name!r} would be an empty list, and nothing says of what")
    # Trees have lists of a million numbers, of one type.
    types = {type(item): item for item in items}.values()
    for kinds, written, field, kind, list_field, list_kind in _WRITERS:
        if all(isinstance(item, kinds) for item in types):
            given = [written(item) for item in items]
            fields: dict[str, Any] = (
                {"type": list_kind, list_field: given} if is_list else {"type": kind, field: given[0]}
            )
            return AttributeProto(name=name, **fields)
    raise TypeError(f"an attribute cannot hold {value!r}")


def make_node(
    op_type: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    name: str = "",
    domain: str = "",
    graph: GraphProto | None = None,
    **attributes: Any,
) -> NodeProto:
    """Return a node with these attributes, in the order of their names; one that is None is left out.

    graph: where it is added; None for a node by itself.
    """
    make = NodeProto if graph is None else graph.node.add
    node: NodeProto = make(op_type=op_type, input=inputs, output=outputs)
    if attributes:
        given = sorted((key, value) for key, value in attributes.items() if value is not None)
        node.attribute.extend([make_attribute(key, value) for key, value in given])
    if name:
        node.name = name
    if domain:
        node.domain = domain
    return node
