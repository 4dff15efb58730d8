"""The guard of opset conversion: it decides whether a node is kept, edited, or refused.

A node is kept where every boundary between the two opsets allows that. Where its operator changes, the decision in
`boundaries` comes first, then the schemas: attributes, inputs and outputs must exist on the other side, and the element
types must be allowed there. The guard sees one node only. It refuses what it cannot prove, with every reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from splitgraph.conversion.ladder.schema_guard import carry_attributes, carry_slots, leaves_every_node_alone
from splitgraph.conversion.nodes.crossing import Crossing, NodeFacts
from splitgraph.conversion.nodes.element_types import (
    Slot,
    fits_but_for_young_types,
    misfits,
    slots_of,
    types_always_fit,
    unequal_pair,
)
from splitgraph.conversion.nodes.node import Node, changed_attributes
from splitgraph.conversion.operators import Rule, decision
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.context import rule_of
from splitgraph.schemas import OperatorVersion, versions_of
from splitgraph.schemas.history import version_at, versions_between
from splitgraph.schemas.of_onnxruntime import meant_opset, removed_at
from splitgraph.variants import SPLIT_OPERATORS

__all__ = [
    "CONTRADICTIONS",
    "NodeFacts",
    "Route",
    "blockers_at",
    "check_node",
    "misfit_message",
    "route_of",
]

# Exceptions of the guard and of adapters for nodes with missing or wrong inputs and attributes.
CONTRADICTIONS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Route:
    """The version of a node's operator, and the boundaries that the node crosses, each as (older, newer) version."""

    start: OperatorVersion
    upward: bool
    crossings: tuple[tuple[OperatorVersion, OperatorVersion], ...]
    exists_from: int
    check_types: bool


def is_kept(facts: NodeFacts) -> bool:
    """Return True for a node that means the same at the target opset as it is."""
    edited, _, blockers = check_node(facts)
    return edited is None and not blockers


def check_node(facts: NodeFacts) -> tuple[Node | None, str, list[Diagnostic]]:
    """Return the node with other attributes (None: it is kept as it is) and why, so that it means the same at the
    target opset; or the blockers.

    Blockers (severity "error", SG403 to SG406) come alone. Nodes of other domains are kept. Raises ValueError for an
    operator of the split family, which has conversions of its own.
    """
    node = facts.node
    if node.domain not in ("", "ai.onnx"):
        return None, "", []
    route = route_of(node.op_type, facts.source, facts.target)
    if route is None:
        return None, "", []
    if isinstance(route, str):
        return None, "", [diagnostic("SG404", route, facts.location, help="Correct the model's opset import first.")]
    attributes = {attribute.name: attribute for attribute in node.attribute}
    reasons: dict[str, str] = {}
    blockers = _missing_below(facts, route)
    for older, newer in route.crossings:
        blockers += _cross(Crossing(facts, route.upward, older, newer, attributes, reasons))
    if route.check_types:
        blockers += _check_types(facts, route, bool(blockers))
    if blockers:
        return None, "", blockers
    changed = changed_attributes(node, attributes)
    if not changed:
        return None, "", []
    edited = Node(node.op_type, node.input[:], node.output[:], attributes, node, node.name)
    return edited, "; ".join(reasons[name] for name in changed), []


def blockers_at(crossing: Crossing) -> list[Diagnostic]:
    """The blockers of a node at one boundary; edits the attributes of the crossing."""
    found = _cross(crossing)
    route = Route(crossing.old, crossing.upward, ((crossing.lower, crossing.upper),), 1, check_types=True)
    return found + _check_types(crossing.facts, route, bool(found))


@cache
def route_of(op: str, source: int, target: int) -> Route | str | None:
    """The route of an operator's nodes between two opsets; None where all are kept, a message where there is none."""
    if op in SPLIT_OPERATORS:
        raise ValueError(f"{op} is not converted by the generic guard")
    meant = meant_opset(op, source)
    if meant != source:
        # onnxruntime wrote the node and runs it at every opset; onnx's own version does not exist below `meant`.
        return None if target < meant else route_of(op, meant, target)
    start = version_at(op, source)
    if start is None and is_unknown(op):
        return None
    if start is None:
        return f"{op} is not an operator of ai.onnx at opset {source}, so that its meaning there is unknown"
    end = version_at(op, target)
    if end is not None and end.since_version == start.since_version:
        return None
    upward = target > source
    versions = versions_between(op, min(source, target), max(source, target))
    crossings = tuple(pairwise(versions)) if upward else tuple(pairwise(versions))[::-1]
    check_types = not types_always_fit(start, versions[-1 if upward else 0])
    if end is not None and not check_types and all(_keeps_every_node(pair, upward) for pair in crossings):
        return None
    return Route(start, upward, crossings, versions[0].since_version, check_types)


def is_unknown(op: str) -> bool:
    """True for an operator that ai.onnx does not have, such as the plugin of a runtime, or that onnxruntime has at old
    opsets only.
    """
    return not versions_of("", op) and (rule_of("", op) is None or removed_at(op, 0) > 0)


def _keeps_every_node(crossing: tuple[OperatorVersion, OperatorVersion], upward: bool) -> bool:
    older, newer = crossing
    if decision(newer.op, newer.since_version) is not None:
        return False
    return leaves_every_node_alone(older, newer) if upward else leaves_every_node_alone(newer, older)


def _missing_below(facts: NodeFacts, route: Route) -> list[Diagnostic]:
    if route.upward or route.exists_from <= facts.target:
        return []
    message = f"{route.start.op} exists from opset {route.exists_from} on"
    return [diagnostic("SG404", message, facts.location, help=f"Stop at opset {route.exists_from}.")]


def _cross(crossing: Crossing) -> list[Diagnostic]:
    """Edit a node's attributes for the other side of one boundary, or return the blockers."""
    rule = decision(crossing.upper.op, crossing.upper.since_version)
    predicate = None if rule is None else rule.up if crossing.upward else rule.down
    if rule is not None and predicate is not None and not predicate(crossing):
        return [_changed_meaning(crossing, rule)]
    return carry_attributes(crossing) + carry_slots(crossing)


def _changed_meaning(crossing: Crossing, rule: Rule) -> Diagnostic:
    version = crossing.upper.since_version
    message = f"{crossing.upper.op} changes at opset {version}: {rule.reason}"
    help = f"Stop at opset {version - 1 if crossing.upward else version}{', ' + rule.hint if rule.hint else ''}."
    return diagnostic("SG405", message, crossing.facts.location, help=help)


def _check_types(facts: NodeFacts, route: Route, is_blocked: bool) -> list[Diagnostic]:
    """Blockers for element types that some version on the way does not take, each at the first such version.

    is_blocked: some boundary has a blocker. Its renamed inputs may have another meaning, so that they are not compared.
    """
    slots = slots_of(facts, route.start)
    found: list[Diagnostic] = []
    reported: set[str] = set()
    for older, newer in route.crossings:
        version, boundary = (newer if route.upward else older), newer.since_version
        side = f"from opset {boundary} on" if route.upward else f"below opset {boundary}"
        stop = boundary - 1 if route.upward else boundary
        for slot in misfits(slots, version, skip_renamed=is_blocked):
            young = fits_but_for_young_types(slot, version)
            if young:
                facts.assumptions[f"{version.op} does not take {young} {side}"] = None
            elif slot.group not in reported:
                reported.add(slot.group)
                message = misfit_message(version.op, slot, side, facts.in_function)
                found.append(diagnostic("SG403", message, facts.location, help=type_advice(stop, slot)))
        pair = None if is_blocked else unequal_pair(slots, version)
        if pair is not None and not reported & {slot.group for slot in pair}:
            reported |= {slot.group for slot in pair}
            message = _unequal_message(version.op, *pair, side)
            found.append(diagnostic("SG403", message, facts.location, help=type_advice(stop, *pair)))
    return found


def _unequal_message(op: str, one: Slot, other: Slot, side: str) -> str:
    types = f"{one.found or 'unknown'} and {other.found or 'unknown'}"
    return f"{op} needs one element type for {one.label} and {other.label} {side}; here they are {types}"


def type_advice(stop: int, *slots: Slot) -> str:
    """The advice about element types; only tensors can be cast."""
    cast = ", or cast the input" if all(slot.is_castable for slot in slots) else ""
    return f"Stop at opset {stop}{cast}."


def misfit_message(op: str, slot: Slot, side: str, in_function: bool) -> str:
    """The message for an element type that an operator does not take on one side of a boundary ("below opset 13")."""
    if slot.found:
        return f"{op} does not take {slot.found} {side} ({slot.label})"
    why = " (the body of a function declares no types)" if in_function else ""
    return f"{op} does not take every element type {side}, and that of its {slot.label} is unknown{why}"
