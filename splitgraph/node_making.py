"""Attributes and nodes made of Python values, as onnx.helper makes them, which would import onnx."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

from splitgraph.onnx_proto import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto


def _as_it_is(value: Any) -> Any:
    return value


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


# What Python type an attribute's value has, how it is written, its field and type, and those of a list of such values.
_WRITERS: tuple[tuple[Any, Callable[[Any], Any], str, int, str, int], ...] = (
    (Integral, int, "i", AttributeProto.INT, "ints", AttributeProto.INTS),
    (Real, float, "f", AttributeProto.FLOAT, "floats", AttributeProto.FLOATS),
    ((str, bytes), _encoded, "s", AttributeProto.STRING, "strings", AttributeProto.STRINGS),
    (TensorProto, _as_it_is, "t", AttributeProto.TENSOR, "tensors", AttributeProto.TENSORS),
    (GraphProto, _as_it_is, "g", AttributeProto.GRAPH, "graphs", AttributeProto.GRAPHS),
    (TypeProto, _as_it_is, "tp", AttributeProto.TYPE_PROTO, "type_protos", AttributeProto.TYPE_PROTOS),
)


def make_attribute(name: str, value: Any) -> AttributeProto:
    """An attribute that holds an int, float, str, bytes, TensorProto, GraphProto or TypeProto, or several of one kind.

    An AttributeProto, which refers to an attribute of the enclosing function, is copied under the name. Raises
    ValueError for an empty list, of which nothing says what it would hold, and TypeError for anything else.
    """
    if isinstance(value, AttributeProto):
        return AttributeProto(name=name, type=value.type, ref_attr_name=value.ref_attr_name)
    is_list = not isinstance(value, (str, bytes)) and isinstance(value, Iterable)
    items = list(value) if is_list else [value]
    if not items:
        raise ValueError(f"the attribute {name!r} would be an empty list, and nothing says of what")
    for kinds, written, field, kind, list_field, list_kind in _WRITERS:
        if all(isinstance(item, kinds) for item in items):
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
    """A node with these attributes, in the order of their names; one that is None is left out.

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
