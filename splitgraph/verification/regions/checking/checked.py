"""What a check knows of regions, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import onnx

from splitgraph.verification.engines.engine_process import RegionRecord, Suspect
from splitgraph.verification.models.model_files import ModelFile
from splitgraph.verification.regions.checking.reading import ConstantChange
from splitgraph.verification.regions.checking.region_job import AskedCopies, FileOfModel, KindMessage
from splitgraph.verification.regions.drawing.axes import AxesOfKind
from splitgraph.verification.regions.drawing.ranges import Range
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.cut import constants_read
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.judging.arbiter import Opinion
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


_WRITTEN_OUT = "operators were written out, and unusual numbers give other results"
_UNHEARD = "whether the models differ or only the kernels of the engine is not known, which no other engine runs here"


@dataclass(slots=True)
class CheckedKind:
    """Regions that are alike. models, files: before and after. fixed: the positions of inputs that do not change.
    signed: those of outputs in which 0.0 and -0.0 are not the same. ranges: of each input, see `ValueRanges`. is_exact,
    has_same_kernels, regroups: see `Arbiter`. drawn: what happened on drawn values. crashed: it ended the process of
    the engine. changes: the constants that have other elements in the second model, and asked: what of them a run
    should read; read: the numbers of what was read. judged: what the arbiter said of suspects, by their identity.
    """

    models: Sequence[onnx.ModelProto]
    files: Sequence[ModelFile]
    fixed: Sequence[int]
    signed: Sequence[int]
    ranges: Sequence[Range | None]
    is_exact: bool
    has_same_kernels: bool
    regroups: bool
    drawn: RegionRecord | None = None
    is_by_reference: bool = False
    crashed: bool = False
    changes: Sequence[ConstantChange] = ()
    asked: list[AskedElements] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    judged: dict[int, tuple[Suspect, Opinion]] = field(default_factory=dict)

    def message(self, axes: AxesOfKind, *, is_strict: bool, has_jumps: bool) -> KindMessage:
        """Return what an engine process reads of the kind. axes: along which inputs may get other sizes."""
        return KindMessage(
            files=list(map(FileOfModel.of, self.files)),
            fixed=self.fixed,
            signed=self.signed,
            ranges=self.ranges,
            is_exact=self.is_exact or is_strict,
            regroups=self.regroups,
            has_jumps=has_jumps,
            open_axes=[(place, sorted(own)) for place, own in axes.open.items()],
            named_axes=sorted(sorted(group) for group in axes.named),
            asked=[
                AskedCopies(number, asked.side, list(map(FileOfModel.of, asked.files)))
                for number, asked in enumerate(self.asked)
                if number not in self.read
            ],
        )

    def unread(self, *, is_needed: bool = True) -> list[ConstantChange]:
        """Return the constants of which no run read what differs. is_needed: only those that a run must read."""
        numbers = {asked.change for number, asked in enumerate(self.asked) if number not in self.read}
        changes = [self.changes[number] for number in sorted(numbers)]
        return [change for change in changes if change.is_needed or not is_needed]


class AskedElements(NamedTuple):
    """Elements that a run should read. files: copies of one side in which they are others."""

    change: int
    side: int
    files: Sequence[ModelFile]


@dataclass(slots=True)
class CheckedRegion:
    """A region and its kind. records: what happened on the values of the first model, run by run."""

    region: FoundRegion
    kind: int
    records: list[RegionRecord] = field(default_factory=list)
    opinions: list[tuple[Suspect, Opinion]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RegionResults:
    """Says what became of regions. uncaptured: why the engine returns no inner values, "" if it does. is_always_empty:
    tells of a value of the first model whether it never has elements.
    """

    found: ModelRegions
    uncaptured: str
    is_always_empty: Callable[[str], bool]

    def of(self, kind: CheckedKind, member: CheckedRegion, inner: Region | None) -> Region:
        """Return what became of a region. kind: of the region. inner: what differs in a body of it."""
        region = member.region
        records = [*member.records, *([kind.drawn] if kind.drawn is not None else [])]
        unread = tuple(self._unread(kind, member))
        cases = sum(record.cases for record in records)
        before = tuple(self.found.before.location(index) for index in region.before if index not in region.context)
        others = {self.found.partners[index] for index in region.context}
        after = tuple(self.found.after.location(index) for index in region.after if index not in others)
        wrong = next(((s, o) for s, o in member.opinions if o.cause == "models"), None)
        unjudged = next(((s, o) for s, o in member.opinions if o.cause == "late"), None)
        unheard = next(((s, o) for s, o in member.opinions if o.cause == "unheard"), None)
        special = next(((s, o) for s, o in member.opinions if o.cause == "special"), None)
        is_open = unjudged is not None or any(record.is_open for record in records)
        verdict: Verdict = "equal"
        reason = ""
        if wrong is not None:
            verdict, reason = "different", _told(member, *wrong)
        elif inner is not None:
            verdict, reason = "different", _told_inside(inner)
        elif broken := next((record.broken for record in records if record.broken), ""):
            verdict, reason = "not-run", f"splitgraph failed on drawn values, which is a fault of splitgraph: {broken}"
        elif any(record.dropped for record in records):
            count = sum(record.dropped for record in records)
            verdict, reason = "not-run", f"it differs on {count} more sets of values than could be judged"
        elif not cases and not self._has_nothing_to_compare(kind, member):
            verdict, reason = "not-run", self._why_unchecked(kind, member)
        elif unjudged is not None:
            verdict, reason = "not-run", f"there was no time to judge a difference: {_told(member, *unjudged)}"
        elif unheard is not None:
            verdict, reason = "not-run", f"{_UNHEARD}: {_told(member, *unheard)}"
        elif special is not None:
            verdict, reason = "not-run", f"{_WRITTEN_OUT}: {_told(member, *special)}"
        elif kind.unread():
            what = "it" if all(change.only is None for change in kind.unread()) else "all of it"
            verdict, reason = "not-run", f"{', '.join(unread)}, and no input was found that reads {what}"
        else:
            reason = next((_explained(o) for _, o in member.opinions if o.cause == "engine" and o.who), "")
            reason = reason or (STOPPED if is_open else "")
        # Drawn numbers of any size have differences of any size.
        is_drawn = verdict == "different" or not any(record.cases for record in member.records)
        telling = records if is_drawn else member.records
        diffs = [record.max_abs_diff for record in telling if record.max_abs_diff is not None]
        name = (before or after or (region.outputs[0].before,))[0]
        return Region(name, before, after, cases, max(diffs, default=None), verdict, reason, is_open, unread)

    def _unread(self, kind: CheckedKind, member: CheckedRegion) -> Iterator[str]:
        """Yield where constants differ that no run read."""
        for change in kind.unread():
            name = self._constant_name(kind, member, change)
            place = change.first_place()
            more = ", …" if max(places.size for places in change.places) > 1 else ""
            where = f" at {place}{more}" if place else ""
            own = f"is only in the {('first', 'second')[change.side]} model"
            yield f"{name} {own}" if change.only is not None else f"{name} differs{where}"

    def _constant_name(self, kind: CheckedKind, member: CheckedRegion, change: ConstantChange) -> str:
        """Return the name of a constant, and the node that reads it."""
        side, region = self.found.sides[change.side], member.region
        model = kind.models[change.side]
        own = held_constants(model, has_all_attributes=True)[change.positions[change.side]]
        name = constants_read(region, side, change.side).get(own.name, own.name)
        kept = region.context if change.side == 0 else {self.found.partners[index] for index in region.context}
        # A node reads a value, or has an attribute; and what a body holds belongs to one that changed.
        indices = sorted((region.before, region.after)[change.side], key=lambda index: (index in kept, index))
        operators = {op_type for op_type, _ in own.readers}
        holders = [index for index in indices if side.nodes[index].op_type in operators]
        readers = [index for index in indices if name in side.reads[index]]
        reader = next(iter([*readers, *holders, *indices]), None)
        return f"`{name}`" if reader is None else f"`{name}` of {side.location(reader)}"

    def _has_nothing_to_compare(self, kind: CheckedKind, member: CheckedRegion) -> bool:
        """Return True if a region ran, and nothing that it computes ever has elements."""
        is_checked = not self.uncaptured and not kind.crashed
        return is_checked and all(self.is_always_empty(border.before) for border in member.region.outputs)

    def _why_unchecked(self, kind: CheckedKind, member: CheckedRegion) -> str:
        if self.uncaptured:
            return f"the engine returns no inner values: {self.uncaptured}"
        if kind.crashed:
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
