"""Check the regions of two models with an engine, and say what became of each.

1. The engine compares each region on the values of the first model, while it runs that (`local_check`).
2. It compares each kind of region on drawn values. A kind that it cannot run alone goes to the reference evaluator.
3. Where its answers differ, the `arbiter` is asked before anything is said.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import onnx

from splitgraph.model.value_type import UNKNOWN
from splitgraph.model.values import type_proto
from splitgraph.options import ATOL_WRITTEN_OUT
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine_process import EngineRun, RegionRecord, Suspect, Workplace
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.dependence import values_of_elements
from splitgraph.verification.models.model_files import write_model
from splitgraph.verification.models.model_pair import ComparedModel, caller_inputs, default_names
from splitgraph.verification.regions.checking.batches import in_batches
from splitgraph.verification.regions.checking.checked import (
    VALUES,
    AskedElements,
    CheckedKind,
    CheckedRegion,
    RegionResults,
)
from splitgraph.verification.regions.checking.lengths import Lengths
from splitgraph.verification.regions.checking.planted import Cut
from splitgraph.verification.regions.checking.reachable import reachable_changes
from splitgraph.verification.regions.checking.reading import find_changes, questions
from splitgraph.verification.regions.checking.region_job import DrawnKind, MemberMessage, RegionJob
from splitgraph.verification.regions.drawing.amounts import beyond_types
from splitgraph.verification.regions.drawing.axes import RegionAxes
from splitgraph.verification.regions.drawing.draw import PLAIN, is_fully_drawn, overflow_in_float16
from splitgraph.verification.regions.drawing.ranges import Range, ValueRanges
from splitgraph.verification.regions.finding.cut import (
    cut_out,
    has_same_kernels,
    has_same_operators,
    have_other_constants,
    regroups_sums,
)
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.finding.folding import folded
from splitgraph.verification.regions.finding.known_within import known_within
from splitgraph.verification.regions.judging.arbiter import Arbiter, Opinion
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.regions.sizes.size_limits import SizeLimit, told_unreached
from splitgraph.verification.verification import Region

_REFERENCE = "reference"
# The process of an engine ends this much later if it does not end its work by itself.
_LATE_SECONDS = 5.0
# So many drawn cases of a kind may end the process of the engine.
_MOST_ENDING = 8


class LocalCheck:
    """The regions of two models, prepared for the engines of a workplace."""

    def __init__(
        self,
        found: ModelRegions,
        regions: Sequence[FoundRegion],
        pair: tuple[ComparedModel, ComparedModel],
        place: Workplace,
        tolerances: tuple[float, float],
        seed: int,
        *,
        is_strict: bool = False,
        has_jumps: bool = False,
        drawable: Collection[str] | None = None,
        ranges: Mapping[str, Range | None] | None = None,
        cut: Cut = cut_out,
    ) -> None:
        """regions: of those that were found. tolerances: (rtol, atol). is_strict: whatever is not the same bit for bit
        must be rounding. has_jumps: drawn values include those at which results jump. drawable: the values of the first
        model that may change; those that depend on its inputs if nothing is given. ranges: of inputs of the model. cut:
        cuts a region out of one of the models.
        """
        self.found = found
        self._is_strict, self._has_jumps = is_strict, has_jumps
        self._known: Mapping[str, Range | None] = ranges or {}
        self._ranges = ValueRanges(found.before, self._known)
        self._pair, self._place, self._tolerances, self._seed = pair, place, tolerances, seed
        self._kinds: list[CheckedKind] = []
        self.members: list[CheckedRegion] = []
        self._uncaptured = ""
        self._bases: dict[int, Path] = {}
        self._base_seconds: dict[int, float] = {}
        self._folder = place.new_folder()
        first = pair[0].model
        assert isinstance(first, onnx.ModelProto)
        # An input with a default is not always given.
        self._inputs = caller_inputs(first).keys() - pair[0].left_out - default_names(first)
        self._axes = RegionAxes(found, self._inputs)
        self._drawable = values_of_elements(first) if drawable is None else drawable
        # Sizes at which changed nodes decide otherwise: those that no input has, and those for which there was no time.
        self.unreached: Sequence[SizeLimit] = ()
        self.late: Sequence[SizeLimit] = ()
        # What was asked about that was not looked at from a size on.
        self.unsearched: Sequence[SizeLimit] = ()
        # Of a kind, what differs inside of its bodies (see `inside`).
        self.inner: dict[int, Region] = {}
        known: dict[tuple[object, ...], int] = {}
        for region in regions:
            parts = (cut(region, side, number) for number, side in enumerate(found.sides))
            models = [
                folded(model, side.folder, known_within(region, side, number, model))
                for number, (model, side) in enumerate(zip(parts, found.sides, strict=True))
            ]
            fixed = [
                place
                for place, border in enumerate(region.inputs)
                if border.before not in self._drawable or self._is_always_empty(border.before)
            ]
            written = [hashlib.sha256(model.SerializeToString(deterministic=True)).digest() for model in models]
            signed = [place for place, border in enumerate(region.outputs) if border.before in found.signs_matter]
            # How large a sum is hangs on lengths, and not only on the range of what is added up.
            grows = self._axes.add_up(region)
            limits = [None if grows else self.range_of(border.before) for border in region.inputs]
            # Of several nodes, one may undo what another one changes.
            is_one = len(region.before) - len(region.context) == 1
            key = (*written, *fixed, is_one, *signed, *limits)
            if key not in known:
                known[key] = len(self._kinds)
                self._kinds.append(self._written(models, fixed, signed, limits, is_one=is_one))
            self.members.append(CheckedRegion(region, known[key]))

    def _written(
        self,
        models: Sequence[onnx.ModelProto],
        fixed: Sequence[int],
        signed: Sequence[int],
        ranges: Sequence[Range | None],
        *,
        is_one: bool,
    ) -> CheckedKind:
        number = len(self._kinds)
        names = (f"kind_{number}_before", f"kind_{number}_after")
        files = [
            write_model(model, self._folder / name, compared.folder)
            for model, name, compared in zip(models, names, self._pair, strict=True)
        ]
        is_exact = (
            is_one
            and self._tolerances[1] < ATOL_WRITTEN_OUT
            and has_same_operators(*models)
            and have_other_constants(models, self._pair, self._tolerances[0])
        )
        regroups = regroups_sums(*models)
        return CheckedKind(models, files, fixed, signed, ranges, is_exact, has_same_kernels(*models), regroups)

    # Inside of bodies --------------------------------------------------------------------------------------------

    @property
    def settings(self) -> EngineSettings:
        """Return the settings of the engines."""
        return self._place.settings

    def is_drawable(self, name: str) -> bool:
        """Return True for a value of the first model that may change."""
        return name in self._drawable

    def range_of(self, name: str) -> Range | None:
        """Return the range of a value of the first model."""
        return self._ranges.of(name)

    def inside(
        self,
        found: ModelRegions,
        regions: Sequence[FoundRegion],
        pair: tuple[ComparedModel, ComparedModel],
        place: Workplace,
        drawable: Collection[str],
        ranges: Mapping[str, Range | None],
    ) -> LocalCheck:
        """Return a check of regions of a body, with the tolerances of this one."""
        return LocalCheck(found, regions, pair, place, self._tolerances, self._seed, drawable=drawable, ranges=ranges)

    def regions_with_values(self) -> list[tuple[int, FoundRegion, Path]]:
        """Return the kinds that values reached, and that do not differ so far: the number, a region of each, and the
        file of the values.
        """
        first: dict[int, FoundRegion] = {}
        for member in self.members:
            has_values = member.kind in self._bases and not self._kinds[member.kind].crashed
            if has_values and self._result(member).verdict != "different":
                first.setdefault(member.kind, member.region)
        return [(kind, region, self._bases[kind]) for kind, region in first.items()]

    def forget_captured(self) -> None:
        """Forget what was found on the values of the first model."""
        for member in self.members:
            member.records.clear()

    # Jobs --------------------------------------------------------------------------------------------------------

    def job(
        self,
        sizes: Sequence[SymbolSizes],
        drawn: Mapping[int, Sequence[int]] | None = None,
        seconds: float = 0.0,
        *,
        only_asks: bool = False,
    ) -> RegionJob | None:
        """Return what an engine process reads of the regions; None if there is nothing to check.

        sizes: of the cases. drawn: the kinds to compare on drawn values, each with the cases that end the engine;
        seconds: for all of these. only_asks: nothing is compared, and only what the regions read of their constants is
        asked.
        """
        open_members = [
            number
            for number, member in enumerate(self.members)
            if not self._kinds[member.kind].crashed
            and (not only_asks or self._kinds[member.kind].unread(is_needed=False))
        ]
        if not open_members or self._uncaptured:
            return None
        model = self._pair[0].model
        assert isinstance(model, onnx.ModelProto)
        needed = (border.before for m in self.members for border in (*m.region.inputs, *m.region.outputs))
        regions = ((member.kind, member.region) for member in self.members)
        axes_of_kinds = self._axes.of_kinds((bool(kind.fixed) for kind in self._kinds), regions)
        kinds = [
            kind.message(axes, is_strict=self._is_strict, has_jumps=self._has_jumps)
            for kind, axes in zip(self._kinds, axes_of_kinds, strict=True)
        ]
        rtol, atol = self._tolerances
        return RegionJob(
            outputs=[value.name for value in model.graph.output],
            captured=sorted(set(needed) - self._inputs),
            kinds=kinds,
            members=list(map(self._message, self.members)),
            batches=self._batches(open_members, sizes),
            drawn=[
                DrawnKind(kind, str(self._bases[kind]), self._base_seconds[kind], ending)
                for kind, ending in (drawn or {}).items()
            ],
            seconds=seconds,
            rtol=rtol,
            atol=atol,
            seed=self._seed,
            only_asks=only_asks,
        )

    def _message(self, member: CheckedRegion) -> MemberMessage:
        inputs = [border.before for border in member.region.inputs]
        outputs = [border.before for border in member.region.outputs]
        return MemberMessage(member.kind, inputs, list(map(self._declared, inputs)), outputs)

    def grows(self, number: int) -> bool:
        """Return True for a region that adds up along an open axis, or casts to a type that does not hold all lengths:
        what it shows at some lengths says little of others.
        """
        member = self.members[number]
        is_narrow = self._axes.is_any_open and bool(beyond_types(self._kinds[member.kind].models))
        return is_narrow or self._axes.add_up(member.region)

    def _declared(self, name: str) -> str:
        """Return the inferred type of a value, as hexadecimal digits; "" if it is not known."""
        proto = type_proto(self._pair[0].analysis.types.get(name, UNKNOWN))
        return "" if proto is None else proto.SerializeToString().hex()

    def _batches(self, numbers: Collection[int], sizes: Sequence[SymbolSizes]) -> list[list[int]]:
        """Return the regions in batches whose values fit in memory together."""
        regions = ((number, self.members[number].region) for number in numbers)
        needed = ((number, [border.before for border in (*one.inputs, *one.outputs)]) for number, one in regions)
        return in_batches(needed, self._pair[0].analysis.types, sizes)

    def batches_of_values(self, names: Sequence[str], sizes: Sequence[SymbolSizes]) -> list[list[int]]:
        """Return the numbers of values in batches that fit in memory together."""
        needed = ((number, [name]) for number, name in enumerate(names))
        return in_batches(needed, self._pair[0].analysis.types, sizes)

    def _is_always_empty(self, name: str) -> bool:
        return 0 in (self._pair[0].analysis.types.get(name, UNKNOWN).shape or ())

    # Results of jobs ---------------------------------------------------------------------------------------------

    def add(self, run: EngineRun) -> bool:
        """Record what happened in a run; return True if it must be repeated, because a region ended the process."""
        for number, record in run.regions.items():
            if record.cases or record.suspects or record.unchecked:
                self.members[number].records.append(record)
        self._uncaptured = self._uncaptured or run.uncaptured
        for kind, path in run.bases.items():
            self._bases.setdefault(kind, path)
            self._base_seconds.setdefault(kind, run.base_seconds[kind])
        self._add_read(run)
        if run.crashed is not None:
            self._kinds[self.members[run.crashed].kind].crashed = True
        return run.crashed is not None

    def _add_read(self, run: EngineRun) -> None:
        for kind, numbers in run.read.items():
            self._kinds[kind].read |= numbers

    def ask(self) -> bool:
        """Prepare to ask which of the constants that differ are read; return True if runs of other sizes may be needed.

        Regions that differ are not asked.
        """
        folders = [compared.folder for compared in self._pair]
        known = ((name, self._known.get(self.found.name_before(name) or "")) for name in self.found.after.types)
        ranges = self._ranges, ValueRanges(self.found.after, dict(known))
        for number, kind in enumerate(self._kinds):
            members = [member for member in self.members if member.kind == number]
            if kind.crashed or all(self._result(member).verdict != "equal" for member in members):
                continue
            changes = find_changes(kind.models, folders, self._tolerances[0])
            regions = [member.region for member in members]
            kind.changes = [*reachable_changes(changes, kind.models, regions, self.found, ranges)]
            for question in questions(kind.models, folders, kind.changes):
                name = f"kind_{number}_asked_{len(kind.asked)}"
                files = [
                    write_model(model, self._folder / f"{name}_{copy}", folders[question.side])
                    for copy, model in enumerate(question.models)
                ]
                kind.asked.append(AskedElements(question.change, question.side, files))
        return self.has_unread(is_needed=False) or bool(self.lengths.type_ends())

    def has_unread(self, *, is_needed: bool) -> bool:
        """Return True if no run so far read some elements of constants that differ. is_needed: see `ConstantChange`."""
        return any(kind.unread(is_needed=is_needed) for kind in self._kinds)

    @property
    def lengths(self) -> Lengths:
        """Return the lengths of dimensions that may make a run read what no run read so far."""
        return Lengths(self.found, self._kinds, self.members, [compared.folder for compared in self._pair])

    def ask_drawn(self, engine: str, deadline: float) -> None:
        """Ask each kind on drawn values that has something unread which a run must read."""
        left = deadline - time.monotonic()
        self._ask_kinds(engine, left, drawing=left)

    def ask_bases(self, engine: str, seconds: float) -> None:
        """Ask each kind on values of the first model that reached it and were kept: no model runs for these.

        seconds: the most that this may take.
        """
        self._ask_kinds(engine, seconds, drawing=0.0)

    def _ask_kinds(self, engine: str, seconds: float, *, drawing: float) -> None:
        """Ask the kinds that have something unread. drawing: for so many of the seconds, values are drawn."""
        numbers = (number for number in self._bases if self._kinds[number].unread(is_needed=drawing > 0))
        waiting = dict[int, Sequence[int]].fromkeys(numbers, ())
        if waiting and seconds > 0:
            job = self.job((), waiting, drawing, only_asks=True)
            self._add_read(self._place.run(engine, [], seconds, regions=job))

    def draw(self, engine: str, deadline: float) -> None:
        """Compare each kind on drawn values; those that the engine cannot run, with the reference evaluator. An
        absolute difference that a caller allows means nothing for numbers of any size, which then are not drawn: one
        that is larger than for operators that were written out.
        """
        if self._tolerances[1] > ATOL_WRITTEN_OUT:
            return
        self._draw(engine, self._bases.keys(), deadline)
        left = [number for number in self._bases if not self._is_checked(number)]
        if left and engine != _REFERENCE and not self._place.settings.custom_ops:
            self._draw(_REFERENCE, left, deadline)

    def _draw(self, engine: str, kinds: Collection[int], deadline: float) -> None:
        # The cheapest first.
        waiting = {number: list[int]() for number in sorted(kinds, key=self._base_seconds.__getitem__)}
        while waiting and (left := deadline - time.monotonic()) > 0:
            run = self._place.run(engine, [], left + _LATE_SECONDS, regions=self.job((), waiting, left))
            for number, record in run.drawn.items():
                kind = self._kinds[number]
                if record.cases or record.suspects or kind.drawn is None:
                    kind.drawn, kind.is_by_reference = record, engine == _REFERENCE
                waiting.pop(number, None)
            if run.crashed is None:
                break
            # Drawn values may end an engine, which says nothing about the models: the others are compared.
            if run.crashed in waiting and time.monotonic() < deadline:
                kind, ending = self._kinds[run.crashed], waiting[run.crashed]
                # What ends it again was no drawn case, but comes after all of them.
                if run.crashed_case is None or run.crashed_case in ending or len(ending) == _MOST_ENDING:
                    kind.drawn = kind.drawn or RegionRecord(is_open=True)
                    del waiting[run.crashed]
                else:
                    ending.append(run.crashed_case)
        for number in waiting:
            self._kinds[number].drawn = self._kinds[number].drawn or RegionRecord(is_open=True)

    def _is_checked(self, number: int) -> bool:
        kind = self._kinds[number]
        records = [record for member in self.members if member.kind == number for record in member.records]
        return not kind.crashed and all(record.cases and not record.unchecked for record in records)

    def settle(self, engine: str, deadline: float) -> None:
        """Ask the arbiter about everything that differs, about values of the first model first."""
        for member in self.members:
            suspects = [suspect for record in member.records for suspect in record.suspects]
            member.opinions = self._opinions(engine, deadline, self._kinds[member.kind], suspects)
        shared = []
        for kind in self._kinds:
            asked = _REFERENCE if kind.is_by_reference else engine
            shared.append(self._opinions(asked, deadline, kind, [] if kind.drawn is None else kind.drawn.suspects))
        for member in self.members:
            member.opinions += shared[member.kind]

    def _opinions(
        self, engine: str, deadline: float, kind: CheckedKind, suspects: Sequence[Suspect]
    ) -> list[tuple[Suspect, Opinion]]:
        """Return an opinion of each suspect, up to the first that the models are to blame for."""
        tolerances = (0.0, 0.0) if self._is_strict else self._tolerances
        traits = kind.is_exact, kind.has_same_kernels, kind.regroups
        arbiter = Arbiter(engine, *tolerances, deadline, kind.signed, *traits)
        new = [suspect for suspect in suspects if id(suspect) not in kind.judged]
        judged = arbiter.judge_each(kind.models, [compared.folder for compared in self._pair], new)
        opinions: list[tuple[Suspect, Opinion]] = []
        for suspect in suspects:
            known = kind.judged.get(id(suspect))
            opinion = next(judged) if known is None else known[1]
            if opinion.cause != "late":
                kind.judged[id(suspect)] = suspect, opinion
            opinions.append((suspect, self._weighed(suspect, opinion)))
            if opinions[-1][1].cause == "models":
                break
        return opinions

    def _weighed(self, suspect: Suspect, opinion: Opinion) -> Opinion:
        """Return what an opinion means where operators were written out, which the absolute tolerance tells."""
        if suspect.kind == "captured" or self._tolerances[1] < ATOL_WRITTEN_OUT:
            return opinion
        # Formulas of several operators round otherwise than the kernel of one, which does not make the kernel doubtful;
        # and they overflow, saturate and meet NaN at other places.
        if opinion.cause == "engine":
            return opinion._replace(who="")
        is_unusual = suspect.kind not in PLAIN or overflow_in_float16(suspect.inputs)
        return opinion._replace(cause="special") if opinion.cause == "models" and is_unusual else opinion

    def case_of(self, number: int) -> int:
        """Return the case in which a region differs: the first one for drawn values."""
        suspects = (suspect for suspect, opinion in self.members[number].opinions if opinion.cause == "models")
        return next((suspect.case for suspect in suspects if suspect.kind == "captured"), 0)

    def has_suspects(self, number: int) -> bool:
        """Return True if a region gave two answers on some values, whatever is to blame."""
        member = self.members[number]
        drawn = self._kinds[member.kind].drawn
        records = [*member.records, *([] if drawn is None else [drawn])]
        return any(record.suspects or record.dropped for record in records)

    def is_noise(self, number: int) -> bool:
        """Return True if a region differs because rounding leaves no digit of one side."""
        return any(o.cause == "models" and o.loss is not None for _, o in self.members[number].opinions)

    def differs_at_drawn(self, number: int) -> bool:
        """Return True if ordinary drawn numbers show that a region differs, and no values of the first model do."""
        blamed = self._blamed(number)
        return not {"normal", "together"}.isdisjoint(blamed) and "captured" not in blamed

    def differs_at_values(self, number: int) -> bool:
        """Return True if values of the first model show that a region differs, other than in constants that sizes meet:
        those are not drawn, and few runs reach them. What is computed of constants alone says no size of any run.
        """
        region = self.members[number].region
        if region.inputs and not all(self.is_drawable(border.before) for border in region.outputs):
            return "captured" in self._blamed(number)
        return any(s.kind == "captured" and o.cause == "models" for s, o in self.members[number].opinions)

    def _blamed(self, number: int) -> list[str]:
        """Return the kinds of values that show that a region differs; none if only its constants are others."""
        models = self._kinds[self.members[number].kind].models
        if has_same_operators(*models) and have_other_constants(models, self._pair, self._tolerances[0]):
            # Other weights are a difference, whether this model can show it or not.
            return []
        return [suspect.kind for suspect, opinion in self.members[number].opinions if opinion.cause == "models"]

    def differs_at_jumps(self, number: int) -> bool:
        """Return True if a region differs where a result jumps, and rounding is not all of it. The evaluator rounds
        otherwise than the engine, and so need not jump there.
        """
        return any(s.kind == "jumps" and o.cause != "rounding" for s, o in self.members[number].opinions)

    def is_driven(self, number: int) -> bool:
        """Return True if a region was compared on all kinds of drawn values, each of its inputs that may change did so,
        and each condition in its context was true and false.
        """
        member = self.members[number]
        kind = self._kinds[member.kind]
        if kind.drawn is None or not kind.drawn.cases or kind.drawn.is_open or not is_fully_drawn(kind.models):
            return False
        moved = set(kind.drawn.moved).union(*(record.moved for record in member.records), kind.fixed)
        if len(moved) < len(member.region.inputs):
            # A position that is the same in all cases reads one of several values.
            return False
        seen = set(kind.drawn.seen).union(*(record.seen for record in member.records))
        conditions = (
            place
            for place, border in enumerate(member.region.outputs)
            if self.found.before.makers.get(border.before) in member.region.context
            and border.before in self._drawable
            and self.found.before.types.get(border.before, UNKNOWN).dtype == "bool"
        )
        return all({(place, False), (place, True)} <= seen for place in conditions)

    def losses(self) -> list[tuple[str, Loss, str]]:
        """Return the regions in which a side loses digits on numbers that are not unusual: the name of the region, the
        largest loss, and the values that show it.
        """
        found: list[tuple[str, Loss, str]] = []
        for member, region in zip(self.members, self.results(), strict=True):
            told = [(opinion.loss, suspect.kind) for suspect, opinion in member.opinions if suspect.kind in PLAIN]
            losses = [(loss, kind) for loss, kind in told if loss is not None]
            if losses and region.verdict == "equal":
                loss, kind = max(losses, key=lambda each: each[0].digits)
                found.append((region.name, loss, VALUES[kind]))
        return found

    def results(self) -> tuple[Region, ...]:
        """Return what became of each region, in the order of the first model."""
        return tuple(map(self._result, self.members))

    def _result(self, member: CheckedRegion) -> Region:
        results = RegionResults(self.found, self._uncaptured, self._is_always_empty)
        return results.of(self._kinds[member.kind], member, self.inner.get(member.kind))

    def with_unreached(self, regions: Sequence[Region]) -> tuple[Region, ...]:
        """Return regions that are equal again: as "not-run" where no input has a size at which they decide otherwise,
        and as open where there was no time for it.
        """
        outputs = {self._result(member).name: member.region.outputs for member in self.members}
        limits = self.unreached, self.late, self.unsearched
        return tuple(told_unreached(region, outputs.get(region.name, ()), *limits) for region in regions)
