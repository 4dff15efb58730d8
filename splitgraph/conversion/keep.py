"""Keeping a node at a boundary between two versions of its operator.

The decision about the boundary comes first (`operators/registry.py`): its step keeps the node, edits it, or raises
`Inexact`. Then come the schemas: attributes, inputs and outputs must exist on the other side, and the element types
must be allowed there. What cannot be proved is refused, with every reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import decision
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.context import rule_of
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas import Formal, FormalAttribute, OperatorVersion, versions_of
from splitgraph.model.schemas.experimental import UNSPECIFIED, experiments_end, was_experimental
from splitgraph.model.schemas.fit import (
    Slot,
    fits_but_for_young_types,
    misfits,
    mistyped,
    types_always_fit,
    unequal_pair,
)
from splitgraph.model.schemas.history import meant_opset, meant_version, versions_between
from splitgraph.splits import SPLIT_OPERATORS

# Exceptions of steps for nodes with missing or wrong inputs and attributes.
CONTRADICTIONS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
# Attributes that never had an effect on the result.
_WITHOUT_EFFECT = frozenset({"consumed_inputs"})


@dataclass(frozen=True, slots=True)
class Route:
    """The version of a node's operator, and the boundaries that the node crosses, each as (older, newer) version."""

    start: OperatorVersion
    upward: bool
    boundaries: tuple[tuple[OperatorVersion, OperatorVersion], ...]
    exists_from: int
    check_types: bool


@cache
def route_of(op: str, from_opset: int, to_opset: int, domain: str = "") -> Route | str | None:
    """Return the route of an operator's nodes between two opsets of its domain; None where all are kept, a message
    where there is none.
    """
    if domain:
        return _route(op, from_opset, to_opset, domain)
    if op in SPLIT_OPERATORS:
        raise ValueError(f"{op} has conversions of its own")
    meant = meant_opset(op, from_opset)
    if meant != from_opset:
        # onnxruntime wrote the node and runs it at every opset; onnx's own version does not exist below `meant`.
        return None if to_opset < meant else route_of(op, meant, to_opset)
    if meant_version(op, from_opset) is None:
        if op in UNSPECIFIED and from_opset < experiments_end(op) <= to_opset:
            return f"{op} was experimental and is gone from opset {experiments_end(op)} on: {UNSPECIFIED[op]}"
        if is_unknown(op, from_opset):
            return None
    return _route(op, from_opset, to_opset, "")


def _route(op: str, from_opset: int, to_opset: int, domain: str) -> Route | str | None:
    start = meant_version(op, from_opset, domain)
    if start is None and domain and not versions_of(domain, op):
        return None
    if start is None:
        where = f"{domain} {from_opset}" if domain else f"ai.onnx at opset {from_opset}"
        return f"{op} is not an operator of {where}, so that its meaning there is unknown"
    end = meant_version(op, to_opset, domain)
    if end is not None and end.since_version == start.since_version:
        return None
    upward = to_opset > from_opset
    versions = versions_between(op, min(from_opset, to_opset), max(from_opset, to_opset), domain)
    boundaries = tuple(pairwise(versions)) if upward else tuple(pairwise(versions))[::-1]
    check_types = not types_always_fit(start, versions[-1 if upward else 0])
    if end is not None and not check_types and all(_keeps_every_node(pair, upward) for pair in boundaries):
        return None
    return Route(start, upward, boundaries, versions[0].since_version, check_types)


def is_unknown(op: str, opset: int) -> bool:
    """Return True for an operator that ai.onnx does not have at any opset, such as the plugin of a runtime; or that it
    had as an experiment below this opset.
    """
    if was_experimental(op):
        return op in UNSPECIFIED or opset >= experiments_end(op)
    return not versions_of("", op) and rule_of("", op) is None


def _keeps_every_node(boundary: tuple[OperatorVersion, OperatorVersion], upward: bool) -> bool:
    older, newer = boundary
    if decision(newer.op, newer.since_version, newer.domain) is not None:
        return False
    return leaves_every_node_alone(older, newer) if upward else leaves_every_node_alone(newer, older)


def leaves_every_node_alone(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Return True when attributes, inputs and outputs of every node fit both versions without an edit."""
    if old.attributes.keys() != new.attributes.keys() or new.deprecated > old.deprecated:
        return False
    for name, formal in new.attributes.items():
        before = old.attributes[name]
        if formal.type != before.type or formal.default_value != before.default_value:
            return False
        if formal.required > before.required:
            return False
    return _takes_all(old.inputs, new.inputs) and _takes_all(old.outputs, new.outputs)


def _takes_all(old: Sequence[Formal], new: Sequence[Formal]) -> bool:
    if len(new) < len(old):
        return False
    for before, after in zip(old, new, strict=False):
        if before.option != after.option and (before.option, after.option) != ("single", "optional"):
            return False
        if after.min_count > before.min_count:
            return False
    return all(formal.option != "single" for formal in new[len(old) :])


def keep(node: NodeAtBoundary) -> list[Diagnostic]:
    """Edit a node so that it means the same on the other side of its boundary, whatever its element types are; or
    return the blockers.
    """
    rule = decision(node.upper.op, node.upper.since_version, node.upper.domain)
    if rule is not None:
        try:
            (rule.up if node.upward else rule.down)(node)
        except Inexact:
            message = f"{node.upper.op} changes at {node.named(node.upper.since_version)}: {rule.reason}"
            help = f"Stop at {node.named(node.stop)}{', ' + rule.hint if rule.hint else ''}."
            return [diagnostic("SG405", message, node.around.location, help=help, blocking_opset=node.opset)]
    return carry_attributes(node) + carry_slots(node)


def carry_attributes(node: NodeAtBoundary) -> list[Diagnostic]:
    """Edit a node's attributes for the other version: write out defaults that differ, remove attributes without effect.

    Return the blockers: attributes whose value the other version cannot express, and missing ones that it requires.
    """
    old, new = node.old.attributes, node.new.attributes
    blockers: list[Diagnostic] = []
    for name in list(node.attributes):
        if name in old and name not in new:
            blockers += _leave_behind(node, name, old[name])
        elif name in old and node.attributes[name].type != new[name].type:
            blockers += _change_type(node, name, new[name])
        elif name in new and name not in old and name not in node.reasons:
            blockers.append(
                _blocker(node, f"reads the attribute {name} {node.side}; at the opset of this node it has no meaning")
            )
    for name, formal in new.items():
        if name not in node.same_defaults:
            blockers += _write_out(node, name, old.get(name), formal)
    return blockers


def carry_slots(node: NodeAtBoundary) -> list[Diagnostic]:
    """Return the blockers for inputs and outputs that the other version lacks, and for missing ones that it
    requires.
    """
    came = node.came
    found, known = (
        [str(each) for each in misfits(version, {}, came.inputs, came.outputs, node.old) if each.kind != "attribute"]
        for version in (node.new, node.old)
    )
    return [_blocker(node, problem) for problem in found if problem not in known]


def _leave_behind(node: NodeAtBoundary, name: str, formal: FormalAttribute) -> list[Diagnostic]:
    value = node.value(name)
    if name in _WITHOUT_EFFECT:
        node.drop(name, why=f"it has no effect, and does not exist {node.side}")
        return []
    means_absent = name == "dilations" and isinstance(value, tuple) and set(value) == {1}
    if value is not UNRESOLVED and (value == formal.default_value or means_absent):
        node.drop(name, why=f"it has its default value, and does not exist {node.side}")
        return []
    return [_blocker(node, f"has no attribute {name} {node.side}; here it is {_in_words(value)}")]


def _change_type(node: NodeAtBoundary, name: str, formal: FormalAttribute) -> list[Diagnostic]:
    value = node.value(name)
    converted = _as_type(value, formal.type)
    if converted is None:
        kind = AttributeProto.AttributeType.Name(formal.type)
        return [_blocker(node, f"takes {name} as {kind} {node.side}; here it is {_in_words(value)}")]
    node.set(name, converted, f"the attribute has another type {node.side}")
    return []


def _write_out(
    node: NodeAtBoundary, name: str, before: FormalAttribute | None, formal: FormalAttribute
) -> list[Diagnostic]:
    """Write out the default of an attribute that the node lacks or, as a reference, may lack; or return a blocker."""
    if before is not None and before.default_value != formal.default_value:
        if not node.has(name) and before.default is not None:
            node.set_default(name, before.default, f"it has another default {node.side}")
            return []
        if node.value(name) in (None, UNRESOLVED):
            return [_blocker(node, f"has another default for {name} {node.side}")]
    if formal.required and not node.has(name):
        return [_blocker(node, f"needs the attribute {name} {node.side}")]
    return []


def _as_type(value: Any, number: int) -> int | float | None:
    """Return the value as INT or FLOAT, None where that is not exact."""
    if number == AttributeProto.INT and isinstance(value, float) and value.is_integer():
        return int(value)
    if number == AttributeProto.FLOAT and isinstance(value, int) and abs(value) <= 2**24:
        return float(value)
    return None


def _blocker(node: NodeAtBoundary, problem: str) -> Diagnostic:
    message = f"{node.upper.op} {problem}"
    if node.side not in message:
        message += f" {node.side}"
    help = f"Stop at {node.named(node.stop)}, or change the node."
    return diagnostic("SG406", message, node.around.location, help=help, blocking_opset=node.opset)


def _in_words(value: Any) -> str:
    if value is UNRESOLVED:
        return "an attribute of the function"
    text = repr(value) if isinstance(value, (str, int, float, tuple)) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."


def carry_types(
    node: NodeAtBoundary, slots: Sequence[Slot], reported: set[str], *, is_blocked: bool
) -> list[Diagnostic]:
    """Return the blockers for element types that the other version does not take. slots: of the node. reported: the
    groups of slots that have a blocker; this adds to them. is_blocked: the boundary or an earlier one has another
    blocker. Its renamed inputs may have another meaning, so that they are not compared.
    """
    version, around, blockers = node.new, node.around, list[Diagnostic]()

    def block(message: str, *slots: Slot) -> None:
        help = type_advice(node.named(node.stop), *slots)
        blockers.append(diagnostic("SG403", message, around.location, help=help, blocking_opset=node.opset))

    for slot in mistyped(slots, version, skip_renamed=is_blocked):
        young = fits_but_for_young_types(slot, version)
        if young:
            around.assumptions[f"{version.op} does not take {young} {node.side}"] = None
        elif slot.group not in reported:
            reported.add(slot.group)
            block(misfit_message(version.op, slot, node.side, around.in_function), slot)
    pair = None if is_blocked else unequal_pair(slots, version)
    if pair is not None and not reported & {slot.group for slot in pair}:
        reported |= {slot.group for slot in pair}
        labels, types = (slot.label for slot in pair), (slot.type_text or "unknown" for slot in pair)
        message = f"{version.op} needs one element type for {' and '.join(labels)} {node.side}; here they are "
        block(message + " and ".join(types), *pair)
    return blockers


def type_advice(stop: str, *slots: Slot) -> str:
    """Return the advice about element types; only tensors can be cast."""
    cast = ", or cast the input" if all(slot.is_castable for slot in slots) else ""
    return f"Stop at {stop}{cast}."


def misfit_message(op: str, slot: Slot, side: str, in_function: bool) -> str:
    """Return the message for an element type that an operator does not take on one side of a boundary ("below opset
    13").
    """
    if slot.type_text:
        return f"{op} does not take {slot.type_text} {side} ({slot.label})"
    why = " (the body of a function declares no types)" if in_function else ""
    return f"{op} does not take every element type {side}, and that of its {slot.label} is unknown{why}"
