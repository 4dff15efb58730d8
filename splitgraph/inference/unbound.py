"""Nodes in a function's body as written that refer to an attribute of the function: what holds of them at every call.

An operator's rule is run, and gives what it gives unless it asks for such an attribute, or whether it is there: it is
neither absent nor anything else, as each call says. What a rule does before it asks holds whatever the answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from splitgraph.inference.context import NodeContext, Rule
from splitgraph.inference.operators import Operator
from splitgraph.inference.type_constraints import check_element_types, only_dtype
from splitgraph.schemas import Formal, OperatorVersion
from splitgraph.value_type import UNKNOWN, ValueType, tensor


class _Asked(Exception):
    """A rule asked for an attribute that only a call of the function tells."""


class UnboundContext(NodeContext):
    """A node as its rule sees it, but for the attributes that nobody knows: to ask for one of them ends the rule."""

    __slots__ = ()

    def __init__(self, ctx: NodeContext) -> None:
        super().__init__(ctx.walk, ctx.node, ctx.opset, ctx.since_version, ctx.index, ctx.given)
        self.errors, self.obligations = ctx.errors, ctx.obligations
        self.contents_out, self.sequences_out = ctx.contents_out, ctx.sequences_out

    def attribute(self, name: str, default: Any = None) -> Any:
        """As of any node."""
        if self.is_unbound(name):
            raise _Asked
        return super().attribute(name, default)

    def has_attribute(self, name: str) -> bool:
        """As of any node."""
        if self.is_unbound(name):
            raise _Asked
        return super().has_attribute(name)


def infer_unbound(ctx: NodeContext, operator: Operator, rule: Rule | None) -> Sequence[ValueType]:
    """The types of the outputs as far as they are the same for every value of the attributes that nobody knows."""
    outputs = None if rule is None else _without_asking(ctx, rule)
    if operator.schema is None:
        return outputs or ()
    if not ctx.errors:
        check_element_types(ctx, operator)
    if outputs is not None or ctx.errors:
        return outputs or ()
    # onnx's own inference would take the attribute for 0.
    return [_schema_type(ctx, operator.schema, formal) for formal in operator.schema.outputs]


def _without_asking(ctx: NodeContext, rule: Rule) -> Sequence[ValueType] | None:
    """What the rule gives; None when it asks for what nobody knows."""
    state = ctx.walk.state
    quiet, muted = state.quiet, state.muted
    try:
        return rule(UnboundContext(ctx))
    except _Asked:
        # The rule may have been about to walk a body.
        state.quiet, state.muted = quiet, muted
        ctx.contents_out.clear()
        ctx.sequences_out.clear()
        return None


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
