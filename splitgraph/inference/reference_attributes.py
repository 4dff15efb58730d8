"""Nodes of a function body as written whose attributes refer to attributes of the function: inference of what holds for
every call.

The operator's rule runs as usual, until it reads such an attribute, or asks whether it is there: only a call decides
that. Everything that a rule does before holds for every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from splitgraph.inference.context import NodeContext, Rule
from splitgraph.inference.type_constraints import only_dtype
from splitgraph.inference.walked_node import WalkedNode
from splitgraph.schemas import Formal, OperatorVersion
from splitgraph.value_type import UNKNOWN, ValueType, tensor


class _Asked(Exception):
    """A rule read an attribute that only a call of the function determines."""


class ReferenceContext(WalkedNode):
    """A node for its rule, where reading an unknown attribute ends the rule."""

    __slots__ = ()

    def __init__(self, ctx: WalkedNode) -> None:
        super().__init__(ctx.walk, ctx.node, ctx.opset, ctx.since_version, ctx.index, ctx.given)
        self.errors, self.obligations = ctx.errors, ctx.obligations
        self.contents_out, self.sequences_out = ctx.contents_out, ctx.sequences_out

    def attribute(self, name: str, default: Any = None) -> Any:
        """As of any node."""
        if self.is_unresolved(name):
            raise _Asked
        return super().attribute(name, default)

    def has_attribute(self, name: str) -> bool:
        """As of any node."""
        if self.is_unresolved(name):
            raise _Asked
        return super().has_attribute(name)


def without_asking(ctx: WalkedNode, rule: Rule) -> Sequence[ValueType] | None:
    """The output types that a rule gives without reading an unknown attribute; None when it reads one."""
    try:
        return rule(ReferenceContext(ctx))
    except _Asked:
        ctx.contents_out.clear()
        ctx.sequences_out.clear()
        return None


def schema_types(ctx: NodeContext, schema: OperatorVersion) -> list[ValueType]:
    """The output types that follow from the schema alone: element types, where they do not depend on attributes."""
    return [_schema_type(ctx, schema, formal) for formal in schema.outputs]


def _schema_type(ctx: NodeContext, schema: OperatorVersion, output: Formal) -> ValueType:
    """A tensor of the only element type that the output can have, or of that of an input which must have the same."""
    only = only_dtype(output.types)
    if only is not None:
        return tensor(only, None)
    if output.is_generic and output.homogeneous:
        for index, formal in enumerate(schema.inputs):
            if formal.type_variable == output.type_variable and formal.homogeneous:
                known = ctx.input(index)
                if known.kind == "tensor" and known.dtype is not None:
                    return tensor(known.dtype, None)
    return UNKNOWN
