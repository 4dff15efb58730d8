"""Say what became of regions: the verdict about each, and the reason for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.regions.checking.checked import CheckedRegion
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.checking.reading import ConstantChange
from splitgraph.verification.regions.drawing.draw import PLAIN
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.cut import constants_read
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.regions.judging.arbiter import Opinion
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.verification import STOPPED, Region, Verdict

# How values of a kind are told.
VALUES: Mapping[str, str] = {
    "captured": "values of the first model",
    "normal": "ordinary numbers",
    "together": "ordinary numbers, drawn several times",
    "steps": "halves, whole numbers and its own constants",
    "ends": "the ends of the types",
    "gaps": "NaN and infinities",
    "mixed": "few numbers in all combinations",
    "rows": "positions in a table",
    "counts": "numbers of iterations, and lengths",
    "tiny": "tiny numbers",
    "jumps": "inputs at which a result jumps",
}
# Why there is no verdict about values that differ, by what the arbiter says of them.
_NO_VERDICT = {
    "late": "there was no time to judge a difference",
    "unheard": (
        "whether the models differ or only the kernels of the engine is not known, which no other engine runs here"
    ),
    "special": "operators were written out, and unusual numbers give other results",
}


def region_result(question: RegionQuestion, member: CheckedRegion, uncaptured: str) -> Region:
    """Return what became of a region. uncaptured: why the engine returns no inner values, "" if it does."""
    found, region, records = question.found, member.region, member.all_records()
    before = tuple(found.before.location(index) for index in region.before if index not in region.context)
    others = {found.partners[index] for index in region.context}
    after = tuple(found.after.location(index) for index in region.after if index not in others)
    unread = tuple(_unread(found, member))
    verdict, reason = _verdict(question, member, uncaptured, unread)
    is_open = bool(member.suspects_by("late")) or any(record.is_open for record in records)
    if verdict == "equal":
        reason = next((_explained(opinion) for _, opinion in member.suspects_by("engine") if opinion.who), "")
        reason = reason or (STOPPED if is_open else "")
    # Drawn numbers of any size have differences of any size.
    is_drawn = verdict == "different" or not any(record.cases for record in member.records)
    telling = records if is_drawn else member.records
    diffs = [record.max_abs_diff for record in telling if record.max_abs_diff is not None]
    cases = sum(record.cases for record in records)
    name = (before or after or (region.outputs[0].before,))[0]
    return Region(name, before, after, cases, max(diffs, default=None), verdict, reason, is_open, unread)


def _verdict(
    question: RegionQuestion, member: CheckedRegion, uncaptured: str, unread: Sequence[str]
) -> tuple[Verdict, str]:
    """Return the verdict about a region, with the reason unless it is equal. unread: where constants differ that no run
    read.
    """
    kind, records = member.kind, member.all_records()
    if wrong := member.suspects_by("models"):
        return "different", _told(member, *wrong[0])
    if kind.inner is not None:
        return "different", _told_inside(kind.inner)
    if broken := next((record.broken for record in records if record.broken), ""):
        return "not-run", f"splitgraph failed on drawn values, which is a fault of splitgraph: {broken}"
    if dropped := sum(record.dropped for record in records):
        return "not-run", f"it differs on {dropped} more sets of values than could be judged"
    if not any(record.cases for record in records) and not _has_nothing_to_compare(question, member, uncaptured):
        return "not-run", _why_unchecked(member, uncaptured)
    for cause, why in _NO_VERDICT.items():
        if doubtful := member.suspects_by(cause):
            return "not-run", f"{why}: {_told(member, *doubtful[0])}"
    if changes := kind.unread():
        what = "it" if all(change.only is None for change in changes) else "all of it"
        return "not-run", f"{', '.join(unread)}, and no input was found that reads {what}"
    return "equal", ""


def _unread(found: ModelRegions, member: CheckedRegion) -> Iterator[str]:
    """Yield where constants differ that no run read."""
    for change in member.kind.unread():
        name = _constant_name(found, member, change)
        place = change.first_place()
        more = ", …" if max(places.size for places in change.places) > 1 else ""
        where = f" at {place}{more}" if place else ""
        own = f"is only in the {('first', 'second')[change.side]} model"
        yield f"{name} {own}" if change.only is not None else f"{name} differs{where}"


def _constant_name(found: ModelRegions, member: CheckedRegion, change: ConstantChange) -> str:
    """Return the name of a constant, and the node that reads it."""
    side, region = found.sides[change.side], member.region
    own = held_constants(member.kind.models[change.side], has_all_attributes=True)[change.positions[change.side]]
    name = constants_read(region, side, change.side).get(own.name, own.name)
    kept = region.context if change.side == 0 else {found.partners[index] for index in region.context}
    # A node reads a value, or has an attribute; and what a body holds belongs to one that changed.
    indices = sorted((region.before, region.after)[change.side], key=lambda index: (index in kept, index))
    operators = {op_type for op_type, _ in own.readers}
    holders = [index for index in indices if side.nodes[index].op_type in operators]
    readers = [index for index in indices if name in side.reads[index]]
    reader = next(iter([*readers, *holders, *indices]), None)
    return f"`{name}`" if reader is None else f"`{name}` of {side.location(reader)}"


def _has_nothing_to_compare(question: RegionQuestion, member: CheckedRegion, uncaptured: str) -> bool:
    """Return True if a region ran, and nothing that it computes ever has elements."""
    is_checked = not uncaptured and not member.kind.crashed
    return is_checked and all(question.is_always_empty(border.before) for border in member.region.outputs)


def _why_unchecked(member: CheckedRegion, uncaptured: str) -> str:
    if uncaptured:
        return f"the engine returns no inner values: {uncaptured}"
    if member.kind.crashed:
        return "the engine crashed on this part of the model"
    reasons = (record.unchecked for record in member.records if record.unchecked)
    return next(reasons, "no values reached it, or only empty ones")


def _told(member: CheckedRegion, suspect: Suspect, opinion: Opinion) -> str:
    """Return how a region differs, and at which inputs."""
    names = [border.before for border in member.region.outputs]
    where = f"{VALUES[suspect.kind]} ({_inputs_text(suspect.inputs)})"
    blamed = f"; {_blamed(opinion)}" if opinion.who else ""
    noise = "" if opinion.loss is None else f"; in float64, both are equal, but no digit is left: {opinion.loss}"
    return f"{', '.join(names[:3])}: {suspect.reason}, on {where}{noise or blamed}"


def _told_inside(region: Region) -> str:
    """Return how a region in a body differs."""
    nodes = " → ".join(", ".join(names) or "a constant" for names in (region.nodes_before, region.nodes_after))
    return f"inside, {nodes}: {region.reason}"


def _explained(opinion: Opinion) -> str:
    return f"{_blamed(opinion)}, in which both are equal"


def _blamed(opinion: Opinion) -> str:
    whose = {"before": "the nodes of the first model", "after": "those of the second one", "both sides": "both sides"}
    return f"the engine computes {whose[opinion.who]} differently from the reference evaluator"


def _inputs_text(inputs: Mapping[str, Any]) -> str:
    return ", ".join(_value_text(value) for value in inputs.values()) or "no inputs"


def _value_text(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return type(value).__name__
    return f"{value.dtype}{list(shape)}"


def losses(members: Sequence[CheckedRegion], results: Sequence[Region]) -> list[tuple[str, Loss, str]]:
    """Return the regions in which a side loses digits on numbers that are not unusual: the name of the region, the
    largest loss, and the values that show it. results: what became of each.
    """
    found: list[tuple[str, Loss, str]] = []
    for member, region in zip(members, results, strict=True):
        told = [(opinion.loss, suspect.kind) for suspect, opinion in member.opinions if suspect.kind in PLAIN]
        own = [(loss, kind) for loss, kind in told if loss is not None]
        if own and region.verdict == "equal":
            loss, kind = max(own, key=lambda each: each[0].digits)
            found.append((region.name, loss, VALUES[kind]))
    return found
