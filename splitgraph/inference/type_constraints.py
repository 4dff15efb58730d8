"""Whether the element types of a node's inputs and outputs are among those that its operator's schema allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from splitgraph.diagnostics import Diagnostic
from splitgraph.inference.context import NodeContext
from splitgraph.inference.lenient_types import are_measured, as_int64, newer_version
from splitgraph.inference.operators import Operator
from splitgraph.schemas import OperatorVersion
from splitgraph.value_type import ValueType

_KINDS = (("tensor(", ""), ("seq(tensor(", "sequence of "), ("optional(tensor(", "optional of "))
_LONG_NAMES = {"float": "float32", "double": "float64"}


_REFUSED = "onnxruntime refuses the node"


def check_element_types(ctx: NodeContext, operator: Operator) -> Diagnostic | None:
    """Report an input of a type that the schema does not allow, or of another type than an input it must match. Gives
    the finding if it is a warning: runtimes read the node, all in one way.
    """
    if operator.schema is None:
        return None
    key = tuple([None if known is None else _type_text(known) for known in ctx.inputs])
    found = _mismatch(operator.schema, key)
    if found is None:
        return None
    text = f"{ctx.node.op_type}-{operator.since_version}: {found}"
    reading = _reading(operator.schema, key, operator.opset)
    if reading is None:
        ctx.find("SG302", text)
        return None
    text = f"{text}. OpenVINO and the reference evaluator read the node {reading}; {_REFUSED}"
    return ctx.find("SG302", text, severity="warning")


@lru_cache(maxsize=4096)
def _reading(schema: OperatorVersion, given: tuple[str | None, ...], opset: int) -> str | None:
    """How runtimes read a node with types that its schema does not allow; None where they do not, or disagree."""
    wide = as_int64(schema, given, opset)
    if wide is not None and _mismatch(schema, wide) is None:
        return "as if int32 were int64"
    newer = newer_version(schema, opset)
    if newer is not None and are_measured(schema, given) and _mismatch(newer, given) is None:
        return f"like {schema.op}-{newer.since_version}"
    return None


def check_output_types(ctx: NodeContext, operator: Operator, outputs: Sequence[ValueType]) -> None:
    """Report an output of a type that the schema does not allow, as an attribute may ask for one."""
    if operator.schema is None:
        return
    # A rule gives the outputs of every version, and a node may leave some of them out.
    asked = tuple([_type_text(value) if name else None for name, value in zip(ctx.outputs, outputs, strict=False)])
    found = _forbidden_output(operator.schema, asked)
    if found is not None:
        ctx.find("SG302", f"{ctx.node.op_type}-{operator.since_version}: {found}")


@lru_cache(maxsize=4096)
def _forbidden_output(schema: OperatorVersion, given: tuple[str | None, ...]) -> str | None:
    formals = schema.outputs
    for index, text in enumerate(given):
        allowed = _allowed(formals[min(index, len(formals) - 1)].types) if formals else None
        if text is not None and allowed and text not in allowed:
            return f"output {index} is {text}; it must be {_choice(allowed)}"
    return None


def _type_text(known: ValueType) -> str | None:
    """The type without its shape, as schemas write it with our names of element types; None when it is not known."""
    if known.dtype is None or known.element is not None:
        return None
    if known.kind == "tensor":
        return known.dtype
    return f"{known.kind} of {known.dtype}" if known.kind in ("sequence", "optional") else None


@lru_cache(maxsize=4096)
def _mismatch(schema: OperatorVersion, given: tuple[str | None, ...]) -> str | None:
    formals = schema.inputs
    bound: dict[str, tuple[int, str]] = {}
    for index, text in enumerate(given):
        formal = formals[min(index, len(formals) - 1)] if formals else None
        allowed = _allowed(formal.types) if formal is not None else None
        if text is None or formal is None or not allowed:
            continue
        if text not in allowed:
            return f"input {index} is {text}; it must be {_choice(allowed)}"
        if not formal.is_generic or not formal.homogeneous:
            continue
        earlier = bound.setdefault(formal.type_variable, (index, text))
        if earlier[1] != text:
            return f"input {index} is {text} and input {earlier[0]} is {earlier[1]}; both must have the same type"
    return None


@lru_cache(maxsize=1024)
def _allowed(types: frozenset[str]) -> frozenset[str]:
    return frozenset(text for spelled in types if (text := _plain(spelled)) is not None)


def _plain(spelled: str) -> str | None:
    """A schema's spelling of a type in ours; None for one that this check does not follow."""
    for prefix, kind in _KINDS:
        if spelled.startswith(prefix):
            name = spelled[len(prefix) :].rstrip(")")
            return kind + _LONG_NAMES.get(name, name)
    return None


def only_dtype(types: frozenset[str]) -> str | None:
    """The element type of a tensor that can have no other, None for all else; types: those that a schema allows."""
    text = _plain(next(iter(types))) if len(types) == 1 else None
    return None if text is None or " " in text else text


def element_types(types: frozenset[str]) -> frozenset[str]:
    """The element types of the tensors that a schema allows; types: all that it allows."""
    return frozenset(text for text in _allowed(types) if " " not in text)


def _choice(allowed: frozenset[str]) -> str:
    names = sorted(allowed)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
