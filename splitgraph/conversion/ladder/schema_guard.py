"""The part of the guard that compares attributes, inputs and outputs with the schema beyond a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.onnx_proto import AttributeProto
from splitgraph.schemas import Formal, FormalAttribute, OperatorVersion

# Attributes that never had an effect on the result.
_WITHOUT_EFFECT = frozenset({"consumed_inputs"})


def leaves_every_node_alone(old: OperatorVersion, new: OperatorVersion) -> bool:
    """True when attributes, inputs and outputs of every node fit both versions without an edit."""
    if old.attributes.keys() != new.attributes.keys() or new.deprecated > old.deprecated:
        return False
    for name, formal in new.attributes.items():
        before = old.attributes[name]
        if formal.type != before.type or formal.default_value != before.default_value:
            return False
        if formal.required > before.required:
            return False
    return _takes_all(old.inputs, new.inputs) and _takes_all(old.outputs, new.outputs)


def carry_attributes(crossing: Crossing) -> list[Diagnostic]:
    """Edit a node's attributes for the other version: write out defaults that differ, remove attributes without effect.

    Returns the blockers: attributes whose value the other version cannot express, and missing ones that it requires.
    """
    old, new = crossing.old.attributes, crossing.new.attributes
    blockers: list[Diagnostic] = []
    for name in list(crossing.attributes):
        if name in old and name not in new:
            blockers += _leave_behind(crossing, name, old[name])
        elif name in old and crossing.attributes[name].type != new[name].type:
            blockers += _change_type(crossing, name, new[name])
        elif name in new and name not in old and name not in crossing.reasons:
            blockers.append(
                _blocker(
                    crossing, f"reads the attribute {name} {crossing.side}; at the opset of this node it has no meaning"
                )
            )
    for name, formal in new.items():
        if name not in crossing.same_defaults:
            blockers += _write_out(crossing, name, old.get(name), formal)
    return blockers


def carry_slots(crossing: Crossing) -> list[Diagnostic]:
    """The blockers for inputs and outputs that the other version lacks, and for missing ones that it requires."""
    node, old, new = crossing.facts.node, crossing.old, crossing.new
    problems = _slot_problems("input", node.input, old.inputs, new.inputs, new.max_inputs)
    problems += _slot_problems("output", node.output, old.outputs, new.outputs, new.max_outputs)
    known = _slot_problems("input", node.input, old.inputs, old.inputs, old.max_inputs)
    known += _slot_problems("output", node.output, old.outputs, old.outputs, old.max_outputs)
    return [_blocker(crossing, problem) for problem in problems if problem not in known]


def _leave_behind(crossing: Crossing, name: str, formal: FormalAttribute) -> list[Diagnostic]:
    value = crossing.value(name)
    if name in _WITHOUT_EFFECT:
        crossing.drop(name, why=f"it has no effect, and does not exist {crossing.side}")
        return []
    if value is not UNRESOLVED and (value == formal.default_value or _means_absent(name, value)):
        crossing.drop(name, why=f"it has its default value, and does not exist {crossing.side}")
        return []
    return [_blocker(crossing, f"has no attribute {name} {crossing.side}; here it is {_in_words(value)}")]


def _change_type(crossing: Crossing, name: str, formal: FormalAttribute) -> list[Diagnostic]:
    value = crossing.value(name)
    converted = _as_type(value, formal.type)
    if converted is None:
        kind = AttributeProto.AttributeType.Name(formal.type)
        return [_blocker(crossing, f"takes {name} as {kind} {crossing.side}; here it is {_in_words(value)}")]
    crossing.set(name, converted, f"the attribute has another type {crossing.side}")
    return []


def _write_out(
    crossing: Crossing, name: str, before: FormalAttribute | None, formal: FormalAttribute
) -> list[Diagnostic]:
    """Write out the default of an attribute that the node lacks or, as a reference, may lack; or return a blocker."""
    if before is not None and before.default_value != formal.default_value:
        if not crossing.has(name) and before.default is not None:
            crossing.set_default(name, before.default, f"it has another default {crossing.side}")
            return []
        if crossing.value(name) in (None, UNRESOLVED):
            return [_blocker(crossing, f"has another default for {name} {crossing.side}")]
    if formal.required and not crossing.has(name):
        return [_blocker(crossing, f"needs the attribute {name} {crossing.side}")]
    return []


def _means_absent(name: str, value: Any) -> bool:
    return name == "dilations" and isinstance(value, tuple) and set(value) == {1}


def _as_type(value: Any, number: int) -> int | float | None:
    """The value as INT or FLOAT, None where that is not exact."""
    if number == AttributeProto.INT and isinstance(value, float) and value.is_integer():
        return int(value)
    if number == AttributeProto.FLOAT and isinstance(value, int) and abs(value) <= 2**24:
        return float(value)
    return None


def _takes_all(old: Sequence[Formal], new: Sequence[Formal]) -> bool:
    if len(new) < len(old):
        return False
    for before, after in zip(old, new, strict=False):
        if before.option != after.option and (before.option, after.option) != ("single", "optional"):
            return False
        if after.min_count > before.min_count:
            return False
    return all(formal.option != "single" for formal in new[len(old) :])


def _slot_problems(
    kind: str, names: Sequence[str], old: Sequence[Formal], formals: Sequence[Formal], most: int
) -> list[str]:
    problems = []
    for position in range(most, len(names)):
        formal = old[min(position, len(old) - 1)] if old else None
        problems.append(f"has no {kind} {formal.name if formal else position}")
    for position, formal in enumerate(formals):
        given = len(names) - position
        if formal.option != "variadic":
            given = int(position < len(names) and names[position] != "")
        needed = {"single": 1, "optional": 0, "variadic": formal.min_count}[formal.option]
        if given < needed:
            problems.append(f"needs the {kind} {formal.name}")
    return problems


def _blocker(crossing: Crossing, problem: str) -> Diagnostic:
    version = crossing.upper.since_version
    message = f"{crossing.upper.op} {problem}"
    if crossing.side not in message:
        message += f" {crossing.side}"
    help = f"Stop at opset {version - 1 if crossing.upward else version}, or change the node."
    return diagnostic("SG406", message, crossing.facts.location, help=help)


def _in_words(value: Any) -> str:
    if value is UNRESOLVED:
        return "an attribute of the function"
    text = repr(value) if isinstance(value, (str, int, float, tuple)) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."
