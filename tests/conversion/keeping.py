"""One node that the climb may keep or edit, but not replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from splitgraph.conversion.cache import ConversionCache
from splitgraph.conversion.climb import Climb
from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.ladder import Ladder
from splitgraph.conversion.node import Node, changed_attributes
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.names import FreshNames
from splitgraph.model.value_type import UNKNOWN, ValueType


class GivenTypes(KnownValues):
    """Values of which only types are known."""

    def __init__(self, types: Mapping[str, ValueType]) -> None:
        self._given = types

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value, or UNKNOWN."""
        return self._given.get(name, UNKNOWN)


def kept_or_edited(
    node: onnx.NodeProto,
    source: int,
    target: int,
    types: Mapping[str, ValueType],
    location: str = "main/n",
    *,
    in_function: bool = False,
) -> tuple[Node, str, list[Diagnostic]]:
    """Return the node at the target, why it was edited, and the blockers."""
    values = GivenTypes(types)
    cache = ConversionCache(values, FreshNames(()))
    climb = Climb(Ladder(source, target, values, in_function, lambda _: True, cache=cache), location, None)
    (made,) = climb.take(Node.of(node), source, is_own=True)
    return made, "; ".join(climb.edited.values()), climb.blockers


def type_at(
    position: int,
    kinds: Sequence[str | None],
    dtypes: Sequence[str | None],
    shapes: Sequence[tuple[int | None, ...] | None] = (),
) -> ValueType:
    """Return the type at a position of lists; what they do not reach is unknown."""
    kind, dtype, shape = (given[position] if position < len(given) else None for given in (kinds, dtypes, shapes))
    return ValueType(kind or "unknown", dtype, shape)


def check(
    op: str,
    source: int,
    target: int,
    inputs: int | Sequence[str] = 1,
    outputs: int | Sequence[str] = 1,
    *,
    dtypes: Sequence[str | None] = ("float32",) * 8,
    out: Sequence[str | None] = ("float32",) * 8,
    kinds: Sequence[str | None] = ("tensor",) * 8,
    out_kinds: Sequence[str | None] = ("tensor",) * 8,
    shapes: Sequence[tuple[int | None, ...] | None] = (),
    in_function: bool = False,
    references: Sequence[tuple[str, int]] = (),
    **attributes: Any,
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Return the attributes that the guard edits, None for those that it removes, and the blockers."""
    names = [
        [f"{letter}{i}" for i in range(n)] if isinstance(n, int) else list(n)
        for letter, n in (("x", inputs), ("y", outputs))
    ]
    node = helper.make_node(op, *names, name="n", **attributes)
    for name, number in references:
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name="outer", type=number))
    before = node.SerializeToString()
    types = {name: type_at(position, out_kinds, out) for position, name in enumerate(node.output)}
    types |= {name: type_at(position, kinds, dtypes, shapes) for position, name in enumerate(node.input)}
    made, why, blockers = kept_or_edited(node, source, target, types, in_function=in_function)
    assert node.SerializeToString() == before
    assert all(d.severity == "error" and d.location == "main/n" and d.help for d in blockers)
    edits = {} if blockers else edited(node, made.attributes)
    assert why or not edits
    return edits, blockers


def edited(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> dict[str, Any]:
    """Return the attributes of a node that are others, or gone (None), among these attributes."""
    changed = changed_attributes(node, attributes)
    return {name: helper.get_attribute_value(attributes[name]) if name in attributes else None for name in changed}
