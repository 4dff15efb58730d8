"""Attributes of nodes: whether two are the same, and what a person reads of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from splitgraph.attributes import HOLDING_GRAPHS, attribute_value
from splitgraph.differences.constants import Folder, constant, sparse_constant
from splitgraph.onnx_proto import AttributeProto, NodeProto

# Elements of a list, and characters of a string, that a text shows.
_SHOWN = 16
_LONGEST_STRING = 60

_TENSORS = frozenset({AttributeProto.TENSOR, AttributeProto.TENSORS})
_SPARSE_TENSORS = frozenset({AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS})


def attributes_of(node: NodeProto) -> dict[str, AttributeProto]:
    """The attributes by name."""
    return {attribute.name: attribute for attribute in node.attribute}


def attribute_texts(node: NodeProto, folder: Folder) -> Mapping[str, str]:
    """The value of each attribute as text, by name."""
    return {attribute.name: _text(attribute, folder) for attribute in node.attribute}


def different_attributes(before: NodeProto, after: NodeProto, folders: tuple[Folder, Folder]) -> tuple[str, ...]:
    """The names of the attributes that only one node has, or whose values differ. Graphs are not looked into.

    folders: of external data of the two models.
    """
    one, two = attributes_of(before), attributes_of(after)
    names = [name for name in one if name not in two or not _are_same(one[name], two[name], folders)]
    return (*names, *(name for name in two if name not in one))


def _are_same(one: AttributeProto, two: AttributeProto, folders: tuple[Folder, Folder]) -> bool:
    if one.type != two.type or one.ref_attr_name != two.ref_attr_name:
        return False
    if one.type in HOLDING_GRAPHS:
        return len(one.graphs) == len(two.graphs)
    if one.type in _TENSORS or one.type in _SPARSE_TENSORS:
        make: Any = constant if one.type in _TENSORS else sparse_constant
        held, others = _listed(one), _listed(two)
        return len(held) == len(others) and all(
            make(item, folders[0]).equals(make(other, folders[1])) for item, other in zip(held, others, strict=True)
        )
    return _written(one) == _written(two)


def _written(attribute: AttributeProto) -> bytes:
    """The bytes of an attribute without its documentation. Not its value: NaN equals nothing, and 0.0 equals -0.0."""
    if not attribute.doc_string:
        written: bytes = attribute.SerializeToString(deterministic=True)
        return written
    plain = AttributeProto()
    plain.CopyFrom(attribute)
    plain.ClearField("doc_string")
    return _written(plain)


def _listed(attribute: AttributeProto) -> Sequence[Any]:
    value = attribute_value(attribute)
    return value if isinstance(value, tuple) else (value,)


def _text(attribute: AttributeProto, folder: Folder) -> str:
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type in HOLDING_GRAPHS:
        return "graph" if attribute.type == AttributeProto.GRAPH else f"{len(attribute.graphs)} graphs"
    value = attribute_value(attribute)
    if not isinstance(value, tuple):
        return _item_text(attribute, value, folder)
    shown = [_item_text(attribute, item, folder) for item in value[:_SHOWN]]
    left = f", … ({len(value):,} in all)" if len(value) > _SHOWN else ""
    return f"[{', '.join(shown)}{left}]"


def _item_text(attribute: AttributeProto, item: Any, folder: Folder) -> str:
    if attribute.type in _TENSORS:
        return constant(item, folder).text
    if attribute.type in _SPARSE_TENSORS:
        return sparse_constant(item, folder).text
    if isinstance(item, float):
        return f"{item:.9g}"
    if isinstance(item, str):
        ending = "" if len(item) <= _LONGEST_STRING else f"… ({len(item):,} characters)"
        return f'"{item[:_LONGEST_STRING]}{ending}"'
    if item is None or not isinstance(item, int):
        return "none" if item is None else "type"
    return str(item)
