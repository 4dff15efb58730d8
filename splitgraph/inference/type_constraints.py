"""Whether the element types of a node's inputs are among those that its operator's schema allows."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from splitgraph.inference.operators import Operator
from splitgraph.inference.schemas import Schema
from splitgraph.value_type import ValueType

if TYPE_CHECKING:
    from splitgraph.inference.context import NodeContext


def check_element_types(ctx: NodeContext, operator: Operator) -> None:
    """Report an input of a type that the schema does not allow, or of another type than an input it must match."""
    if operator.schema is None:
        return
    key = tuple([None if known is None else _type_text(known) for known in ctx.inputs])
    found = _mismatch(operator.schema, key)
    if found is not None:
        ctx.find("SG302", f"{ctx.node.op_type}-{operator.since_version}: {found}")


def _type_text(known: ValueType) -> str | None:
    """The type without its shape, as schemas write it with our names of element types; None when it is not known."""
    if known.dtype is None or known.element is not None:
        return None
    if known.kind == "tensor":
        return known.dtype
    return f"{known.kind} of {known.dtype}" if known.kind in ("sequence", "optional") else None


@lru_cache(maxsize=4096)
def _mismatch(schema: Schema, given: tuple[str | None, ...]) -> str | None:
    formals = schema.inputs
    bound: dict[str, tuple[int, str]] = {}
    for index, text in enumerate(given):
        formal = formals[min(index, len(formals) - 1)] if formals else None
        if text is None or formal is None or formal.allowed is None:
            continue
        if text not in formal.allowed:
            return f"input {index} is {text}; it must be {_choice(formal.allowed)}"
        if not formal.variable:
            continue
        earlier = bound.setdefault(formal.variable, (index, text))
        if earlier[1] != text:
            return f"input {index} is {text} and input {earlier[0]} is {earlier[1]}; both must be of one type"
    return None


def _choice(allowed: frozenset[str]) -> str:
    names = sorted(allowed)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
