"""Whether the element types of a node's inputs are among those that its operator's schema allows."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from onnx import defs

from splitgraph.inference.operators import Operator
from splitgraph.value_type import ValueType

if TYPE_CHECKING:
    from splitgraph.inference.context import NodeContext

# What a schema says of one input: the types that it may have, and the variable that it shares with other inputs, ""
# for none.
Constraint = tuple[frozenset[str], str]

_KINDS = (("tensor(", ""), ("seq(tensor(", "sequence of "), ("optional(tensor(", "optional of "))
_LONG_NAMES = {"float": "float32", "double": "float64"}


def check_element_types(ctx: NodeContext, operator: Operator) -> None:
    """Report an input of a type that the schema does not allow, or of another type than an input it must match."""
    key = tuple([None if known is None else _type_text(known) for known in ctx.inputs])
    found = _mismatch(operator.domain, ctx.node.op_type, operator.since_version, key)
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
def _mismatch(domain: str, op_type: str, since_version: int, given: tuple[str | None, ...]) -> str | None:
    constraints = _constraints(domain, op_type, since_version)
    bound: dict[str, tuple[int, str]] = {}
    for index, text in enumerate(given):
        constraint = constraints[min(index, len(constraints) - 1)] if constraints else None
        if text is None or constraint is None:
            continue
        allowed, variable = constraint
        if text not in allowed:
            return f"input {index} is {text}; it must be {_choice(allowed)}"
        if not variable:
            continue
        earlier = bound.setdefault(variable, (index, text))
        if earlier[1] != text:
            return f"input {index} is {text} and input {earlier[0]} is {earlier[1]}; both must be of one type"
    return None


@lru_cache(maxsize=1024)
def _constraints(domain: str, op_type: str, since_version: int) -> tuple[Constraint | None, ...]:
    schema: Any = defs.get_schema(op_type, since_version, domain)
    variables = {held.type_param_str: held.allowed_type_strs for held in schema.type_constraints}
    found: list[Constraint | None] = []
    for formal in schema.inputs:
        # Not `formal.types`, which says the same: onnx below 1.21 cannot hand that over to Python.
        types = variables.get(formal.type_str, [formal.type_str])
        allowed = frozenset(text for written in types if (text := _plain(written)) is not None)
        shares = formal.type_str in variables and formal.is_homogeneous
        found.append((allowed, formal.type_str if shares else "") if allowed else None)
    return tuple(found)


def _plain(written: str) -> str | None:
    """A schema's spelling of a type in ours; None for one that this check does not follow."""
    for prefix, kind in _KINDS:
        if written.startswith(prefix):
            name = written[len(prefix) :].rstrip(")")
            return kind + _LONG_NAMES.get(name, name)
    return None


def _choice(allowed: frozenset[str]) -> str:
    names = sorted(allowed)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
