"""Kinds of nodes that are kept in whatever shapes: networks have a few kinds in many shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from splitgraph.conversion.boundary_crossing import NodeFacts
from splitgraph.conversion.ladder.conversion_cache import MOST_ATTRIBUTE_BYTES, Key
from splitgraph.conversion.ladder.guard import CONTRADICTIONS, check_node
from splitgraph.conversion.ladder.values import Values
from splitgraph.graph.scopes import OPERATORS_WITH_BODIES
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.value_type import Shape


class _ShapeAsked(Exception):
    """Raised where what becomes of a node depends on its shapes."""


class _Untold(Sequence["Shape | None"]):
    """Shapes that nobody may look at."""

    def __len__(self) -> int:
        raise _ShapeAsked

    def __getitem__(self, index: Any) -> Any:
        raise _ShapeAsked


@dataclass(slots=True)
class NodeKinds:
    """The kinds of nodes of one graph, each an operator with its attributes and element types, and whether the guard
    keeps them without asking for a shape.
    """

    values: Values
    _kept: dict[Key, bool] = field(default_factory=dict)

    def are_kept(self, node: NodeProto, facts_of: Callable[[NodeProto], NodeFacts]) -> bool:
        """True for a node of a kind that is kept; False where its shapes may decide, or it is no kind's. facts_of: what
        is known of a node.
        """
        kind = self._kind_of(node)
        if kind is None:
            return False
        kept = self._kept.get(kind)
        if kept is None:
            try:
                kept = not any(check_node(replace(facts_of(node), input_shapes=_Untold())))
            except (_ShapeAsked, *CONTRADICTIONS):
                # A node that contradicts itself raises the same where it is carried, which knows what to make of it.
                kept = False
            self._kept[kind] = kept
        return kept

    def _kind_of(self, node: NodeProto) -> Key | None:
        attributes = _compared(node)
        if attributes is None:
            return None
        inputs, outputs = node.input[:], node.output[:]
        types = [self.values.type_of(name) if name else None for name in (*inputs, *outputs)]
        kinds = [None if value is None else (value.kind, value.dtype) for value in types]
        return (node.op_type, len(inputs), *kinds, *attributes)


def _compared(node: NodeProto) -> Sequence[object] | None:
    """What of a node's attributes the guard may look at; None for bodies, and for what is too long to compare."""
    if node.op_type == "Constant":
        # Which elements it holds makes no difference to a constant tensor.
        return [(each.name, each.type, each.ref_attr_name, each.t.data_type) for each in node.attribute]
    if not node.attribute:
        return ()
    if node.op_type in OPERATORS_WITH_BODIES or node.ByteSize() > MOST_ATTRIBUTE_BYTES:
        return None
    return [*map(AttributeProto.SerializeToString, node.attribute[:])]
