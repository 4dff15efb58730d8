"""Check the regions of two models with an engine, and say what became of each.

1. Each region is cut out, and those that are alike are put together (`alike`).
2. The engine compares each region on the values of the first model, while it runs that (`jobs`, `local_check`).
3. It compares each kind of region on drawn values. A kind that it cannot run alone goes to the reference evaluator.
4. Where its answers differ, the arbiter is asked before anything is said (`blame`).
5. If regions are equal although their constants differ, the engine is asked which of these a run reads (`asking`).
6. Each region gets a verdict (`results`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from splitgraph.options import ATOL_WRITTEN_OUT
from splitgraph.verification.engines.engine_process import EngineRun, RegionRecord, Workplace
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.regions.checking import blame
from splitgraph.verification.regions.checking.alike import with_kinds
from splitgraph.verification.regions.checking.asking import Lengths, ask_kind
from splitgraph.verification.regions.checking.checked import CheckedKind, CheckedRegion
from splitgraph.verification.regions.checking.jobs import job_of
from splitgraph.verification.regions.checking.planted import Cut
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.checking.region_job import RegionJob
from splitgraph.verification.regions.checking.results import losses, region_result
from splitgraph.verification.regions.finding.cut import cut_out
from splitgraph.verification.regions.finding.find import FoundRegion
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.regions.sizes.size_limits import MissedLimits
from splitgraph.verification.verification import Region

# The process of an engine ends this much later if it does not end its work by itself.
_LATE_SECONDS = 5.0
# So many drawn cases of a kind may end the process of the engine.
_MOST_ENDING = 8


class LocalCheck:
    """Some of the regions of two models, prepared for the engines of a workplace, and what happened to them so far."""

    def __init__(
        self, question: RegionQuestion, regions: Sequence[FoundRegion], place: Workplace, cut: Cut = cut_out
    ) -> None:
        """regions: of those that were found. cut: cuts a region out of one of the models."""
        self.question, self.found, self.place = question, question.found, place
        self._folder = place.new_folder()
        self.members, self._kinds = with_kinds(question, regions, cut, self._folder)
        # Why the engine returns no inner values.
        self._uncaptured = ""

    # On values of the first model --------------------------------------------------------------------------------

    def job(
        self, sizes: Sequence[SymbolSizes], *, only_asks: bool = False, counted: Collection[int] | None = None
    ) -> RegionJob | None:
        """Return what an engine process reads to check the regions while it runs the first model; None if there is
        nothing to check. sizes: of the cases. only_asks, counted: see `job_of`.
        """
        return self._job(sizes, {}, 0.0, only_asks=only_asks, counted=counted)

    def _job(
        self,
        sizes: Sequence[SymbolSizes],
        drawn: Mapping[int, Sequence[int]],
        seconds: float,
        *,
        only_asks: bool,
        counted: Collection[int] | None = None,
    ) -> RegionJob | None:
        if self._uncaptured:
            return None
        members, kinds = self.members, self._kinds
        return job_of(self.question, members, kinds, sizes, drawn, seconds, only_asks=only_asks, counted=counted)

    def counted(self) -> frozenset[int]:
        """Return the numbers of the regions that read a dimension which elements of inputs may decide."""
        return frozenset(
            number
            for number, member in enumerate(self.members)
            if any(self.question.is_counted(border.before) for border in member.region.inputs)
        )

    def add(self, run: EngineRun) -> bool:
        """Record what happened in a run; return True if it must be repeated, because a region ended the process."""
        for number, record in run.regions.items():
            if record.cases or record.suspects or record.unchecked:
                self.members[number].records.append(record)
        self._uncaptured = self._uncaptured or run.uncaptured
        for number, path in run.bases.items():
            kind = self._kinds[number]
            if kind.base is None:
                kind.base, kind.base_seconds = path, run.base_seconds[number]
        self._add_read(run)
        if run.crashed is not None:
            self.members[run.crashed].kind.crashed = True
        return run.crashed is not None

    def forget_captured(self) -> None:
        """Forget what was found on the values of the first model."""
        for member in self.members:
            member.records.clear()

    def reached(self) -> list[CheckedRegion]:
        """Return a region of each kind that values reached, and that does not differ so far."""
        first: dict[int, CheckedRegion] = {}
        for member in self.members:
            if member.kind.base is not None and not member.kind.crashed and self._result(member).verdict != "different":
                first.setdefault(member.kind.number, member)
        return list(first.values())

    # On drawn values ---------------------------------------------------------------------------------------------

    def draw(self, engine: str, deadline: float) -> None:
        """Compare each kind on drawn values; those that the engine cannot run, with the reference evaluator. An
        absolute difference that a caller allows means nothing for numbers of any size, which then are not drawn: one
        that is larger than for operators that were written out.
        """
        if self.question.tolerances[1] > ATOL_WRITTEN_OUT:
            return
        based = [kind for kind in self._kinds if kind.base is not None]
        self._draw(engine, based, deadline)
        left = [kind for kind in based if not self._is_checked(kind)]
        if left and engine != blame.REFERENCE and not self.place.settings.custom_ops:
            self._draw(blame.REFERENCE, left, deadline)

    def _draw(self, engine: str, kinds: Sequence[CheckedKind], deadline: float) -> None:
        # The cheapest first.
        waiting = {kind.number: list[int]() for kind in sorted(kinds, key=lambda kind: kind.base_seconds)}
        while waiting and (left := deadline - time.monotonic()) > 0:
            job = self._job((), waiting, left, only_asks=False)
            run = self.place.run(engine, [], left + _LATE_SECONDS, regions=job)
            for number, record in run.drawn.items():
                kind = self._kinds[number]
                if record.cases or record.suspects or kind.drawn is None:
                    kind.drawn, kind.is_by_reference = record, engine == blame.REFERENCE
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

    def _is_checked(self, kind: CheckedKind) -> bool:
        records = [record for member in self.members if member.kind is kind for record in member.records]
        return not kind.crashed and all(record.cases and not record.unchecked for record in records)

    # What is read of constants that differ -----------------------------------------------------------------------

    def ask(self) -> bool:
        """Prepare to ask which of the constants that differ are read; return True if runs of other sizes may be needed.

        Regions that differ are not asked.
        """
        for kind in self._kinds:
            members = [member for member in self.members if member.kind is kind]
            if not kind.crashed and any(self._result(member).verdict == "equal" for member in members):
                ask_kind(self.question, kind, [member.region for member in members], self._folder)
        return self.has_unread(is_needed=False) or bool(self.lengths.type_ends())

    def has_unread(self, *, is_needed: bool) -> bool:
        """Return True if no run so far read some elements of constants that differ. is_needed: see `ConstantChange`."""
        return any(kind.unread(is_needed=is_needed) for kind in self._kinds)

    @property
    def lengths(self) -> Lengths:
        """Return the lengths of dimensions that may make a run read what no run read so far."""
        return Lengths(self.found, self._kinds, self.members, self.question.folders)

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
        waiting: dict[int, Sequence[int]] = {
            kind.number: () for kind in self._kinds if kind.base is not None and kind.unread(is_needed=drawing > 0)
        }
        if waiting and seconds > 0:
            job = self._job((), waiting, drawing, only_asks=True)
            self._add_read(self.place.run(engine, [], seconds, regions=job))

    def _add_read(self, run: EngineRun) -> None:
        for number, read in run.read.items():
            self._kinds[number].read |= read

    # What became of the regions ----------------------------------------------------------------------------------

    def settle(self, engine: str, deadline: float) -> None:
        """Ask the arbiter about everything that differs."""
        blame.settle(self.question, self.members, self._kinds, engine, deadline)

    def results(self) -> tuple[Region, ...]:
        """Return what became of each region, in the order of the first model."""
        return tuple(map(self._result, self.members))

    def _result(self, member: CheckedRegion) -> Region:
        return region_result(self.question, member, self._uncaptured)

    def losses(self) -> list[tuple[str, Loss, str]]:
        """Return the regions in which a side loses digits (see `results.losses`)."""
        return losses(self.members, self.results())

    def with_missed(self, regions: Sequence[Region], missed: MissedLimits) -> tuple[Region, ...]:
        """Return regions that are equal again: as "not-run" where no input has a size at which they decide otherwise,
        and as open where there was no time for it.
        """
        outputs = {self._result(member).name: member.region.outputs for member in self.members}
        return tuple(missed.judged(region, outputs.get(region.name, ())) for region in regions)
