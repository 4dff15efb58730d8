"""Run the regions of two models: on drawn values, and on inputs of other lengths, amounts and sizes."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import NamedTuple

from splitgraph.verification.engines.engine_process import Attempt
from splitgraph.verification.inputs.other_amounts import with_other_amounts
from splitgraph.verification.inputs.other_counts import with_other_counts
from splitgraph.verification.models.model_pair import wrong_shapes
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.checking.checked import CheckedRegion
from splitgraph.verification.regions.checking.inside import look_inside
from splitgraph.verification.regions.checking.planted import Cut, PlantedFault, with_faults
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.finding.constants import thresholds_of
from splitgraph.verification.regions.finding.cut import cut_out
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.sizes.size_limits import (
    MissedLimits,
    SizeSearch,
    find_size_limits,
    lengths_of_two,
    unshared,
)
from splitgraph.verification.regions.sizes.windows import window_lengths
from splitgraph.verification.verdict.case_runs import CaseRuns
from splitgraph.verification.verification import Region

# So many inputs with other amounts run at once.
_AT_ONCE = 32


class RegionRuns(NamedTuple):
    """Runs regions beyond the values of the cases. runs: of the whole models."""

    runs: CaseRuns
    local: LocalCheck

    def check_apart(self) -> MissedLimits:
        """Compare the regions on drawn values, judge what differs, and look for runs that read other constants, in the
        time that there is for it. Return the sizes that were to run, and did not.
        """
        runs, local = self
        checking = runs.budget.checking_ends(runs.ran.seconds)
        if runs.question.maker.varies:
            local.draw(runs.engine, checking)
        local.settle(runs.engine, runs.budget.judging_ends(checking))
        if not runs.question.maker.varies:
            return MissedLimits()
        has_amounts = self._run_with_amounts()
        # The search takes of the time of the runs that follow.
        limit = runs.budget.checking_ends(runs.ran.seconds)
        search = find_size_limits(local.found, runs.question.maker.sizes_beside, runs.budget.searching_ends())
        missed = self._run_at_limits(search, limit)
        if self._run_over_windows() or has_amounts or search.limits:
            local.settle(runs.engine, runs.budget.judging_ends(checking))
        look_inside(local, runs.engine, runs.budget.judging_ends(checking), runs.budget)
        if local.ask():
            self._read_constants()
        if self._run_with_counts():
            local.settle(runs.engine, runs.budget.judging_ends(checking))
        return missed

    def _run_with_amounts(self) -> bool:
        """Run the first model with other lengths, axes and offsets where inputs say these; return True if any do."""
        runs, local = self
        limit = runs.budget.checking_ends(runs.ran.seconds)
        maker, model = runs.question.maker, runs.question.before.analysis.model
        drawn = with_other_amounts(maker, model, [each.inputs for each in runs.accepted()], local.lengths.limits())
        case, has_any = max(runs.given)[0], False
        while time.monotonic() < limit and (some := list(islice(drawn, _AT_ONCE))):
            self._run_without_ending([Attempt(case + n, 0, inputs) for n, inputs in enumerate(some, 1)], limit)
            has_any = True
        return has_any

    def _run_with_counts(self) -> bool:
        """Run the regions that read a dimension which elements decide, on inputs whose elements decide otherwise;
        return True if there are any.
        """
        runs, local = self
        counted, limit = local.counted(), runs.budget.checking_ends(runs.ran.seconds)
        if not counted:
            return False
        before = runs.question.before
        thresholds = thresholds_of(before.analysis.model, before.folder)
        drawn = with_other_counts(runs.question.maker, [each.inputs for each in runs.accepted()], thresholds)
        case = max(runs.given)[0]
        attempts = [Attempt(case + number, 0, inputs) for number, inputs in enumerate(drawn, 1)]
        if attempts and time.monotonic() < limit:
            self._run_without_ending(attempts, limit, counted)
        return bool(attempts)

    def _run_without_ending(
        self, attempts: Sequence[Attempt], limit: float, counted: Collection[int] | None = None
    ) -> None:
        """Run the regions on inputs that need not be valid. Those that end the process, that the first model refuses,
        or for which it gives other shapes than it declares prove nothing. counted: see `LocalCheck.job`.
        """
        runs, local = self
        run = partial(runs.place.run, runs.engine, only_first=True)
        first = run(attempts, max(limit - time.monotonic(), 0.0))
        declared = runs.question.before.interface.graph.output
        names = [value.name for value in declared]
        outputs = {key: dict(zip(names, values, strict=True)) for key, values in first.outputs[0].items()}
        valid = [
            attempt
            for attempt in attempts
            if (found := outputs.get((attempt.case, attempt.attempt))) and not wrong_shapes(declared, found)
        ]
        job = local.job(runs.sizes, counted=counted)
        ran = run(valid, max(limit - time.monotonic(), 0.0), regions=job) if valid else first
        if ran.crashed is None and not any(failure.unsupported for failure in (*first.failures, *ran.failures)):
            local.add(ran)
        elif len(attempts) > 1 and time.monotonic() < limit:
            half = len(attempts) // 2
            for some in (attempts[:half], attempts[half:]):
                self._run_without_ending(some, limit, counted)

    def _run_at_limits(self, search: SizeSearch, limit: float) -> MissedLimits:
        """Run the models at sizes at which changed nodes decide something about sizes; return those at which no input
        has run. limit: until which time runs begin.
        """
        runs, local = self
        case = max(runs.given)[0]
        tried, late = set[int](), set[int]()
        for length in sorted({each.length for each in search.limits}):
            if time.monotonic() > limit:
                late.add(length)
                continue
            for inputs in runs.question.maker.reaching(length):
                case += 1
                tried.add(length)
                run_on_values(runs, local, [Attempt(case, 0, inputs)])
        for lengths in lengths_of_two(search, runs.question.maker.reached_alone()):
            for inputs in runs.question.maker.reaching_each(lengths) if time.monotonic() < limit else ():
                case += 1
                run_on_values(runs, local, [Attempt(case, 0, inputs)])
        told = unshared(search.limits)
        return MissedLimits(
            unreached=[each for each in told if each.length not in tried | late],
            late=[each for each in told if each.length in late],
            unsearched=search.unsearched,
        )

    def _run_over_windows(self) -> bool:
        """Run the models on data that is longer than the windows of changed nodes; return True if there are any."""
        runs, local = self
        limit = runs.budget.checking_ends(runs.ran.seconds)
        wanted, case = window_lengths(local.found), max(runs.given)[0]
        for lengths in wanted:
            ways = (list(runs.question.maker.reaching(length)) for length in lengths)
            for inputs in next(filter(None, ways), []) if time.monotonic() < limit else ():
                case += 1
                run_on_values(runs, local, [Attempt(case, 0, inputs)])
        return bool(wanted)

    def _read_constants(self) -> None:
        """Look for runs that read the constants in which the models differ: the runs so far, of which some values were
        kept, drawn values that need no run of a whole model, inputs of the sizes that the constants have, and inputs of
        other sizes.
        """
        runs, local = self
        limit = runs.budget.checking_ends(runs.ran.seconds)
        local.ask_bases(runs.engine, runs.seconds_left())
        if local.has_unread(is_needed=False):
            run_on_values(runs, local, runs.accepted(), only_asks=True)
        if local.has_unread(is_needed=True):
            local.ask_drawn(runs.engine, (time.monotonic() + limit) / 2)
        self._run_lengths(local.lengths.near(), limit)
        self._run_lengths(local.lengths.far(), limit)
        local.settle(runs.engine, runs.budget.judging_ends(limit))

    def _run_lengths(self, lengths: Sequence[int], limit: float) -> None:
        """Compare the regions on inputs of these sizes, as long as there is something to look for."""
        runs, local = self
        ends, case = local.lengths.type_ends(), max(runs.given)[0]
        for length in lengths:
            for inputs in runs.question.maker.reaching(length):
                is_wanted = length in ends or local.has_unread(is_needed=False)
                if not is_wanted or time.monotonic() > limit:
                    break
                case += 1
                run_on_values(runs, local, [Attempt(case, 0, inputs)])


def local_check(
    runs: CaseRuns,
    found: ModelRegions,
    regions: Sequence[FoundRegion],
    *,
    has_jumps: bool = False,
    cut: Cut = cut_out,
) -> LocalCheck:
    """Return a check of some regions, with the tolerances of the question."""
    question = runs.question
    pair, tolerances = (question.before, question.after), (question.rtol, question.atol)
    asked = RegionQuestion(found, pair, tolerances, question.seed, has_jumps=has_jumps)
    return LocalCheck(asked, regions, runs.place, cut)


def checked(
    runs: CaseRuns, regions: Sequence[FoundRegion], found: ModelRegions, *, has_jumps: bool = False
) -> LocalCheck:
    """Return what became of further regions, on the same values as the others."""
    local = local_check(runs, found, regions, has_jumps=has_jumps)
    run_on_values(runs, local, runs.accepted())
    local.settle(runs.engine, runs.budget.judging_ends(time.monotonic()))
    # Drawn values add nothing to a difference that values of the first model show.
    if all(result.verdict != "different" for result in local.results()):
        RegionRuns(runs, local).check_apart()
    return local


def shows(
    runs: CaseRuns, faults: Mapping[FoundRegion, PlantedFault], found: ModelRegions, clear: Set[FoundRegion]
) -> bool:
    """Return True if each region would be different with a fault in one of its values. clear: those that give one
    answer on all values without it: then no arbiter needs to say what two answers mean.
    """
    cut = with_faults(faults, found)
    if cut is None:
        return False
    local = local_check(runs, found, list(faults), has_jumps=True, cut=cut)

    def is_shown(member: CheckedRegion, result: Region) -> bool:
        return member.has_suspects() if member.region in clear else result.verdict == "different"

    def are_shown(checking: float) -> bool:
        if not clear >= faults.keys():
            local.settle(runs.engine, runs.budget.judging_ends(checking))
        return all(map(is_shown, local.members, local.results()))

    run_on_values(runs, local, runs.accepted())
    if are_shown(time.monotonic()):
        return True
    if not runs.question.maker.varies:
        return False
    checking = runs.budget.checking_ends(runs.ran.seconds)
    local.draw(runs.engine, checking)
    return are_shown(checking)


def run_on_values(runs: CaseRuns, local: LocalCheck, attempts: Sequence[Attempt], *, only_asks: bool = False) -> None:
    """Run regions again on the values of the first model."""
    job = local.job(runs.sizes, only_asks=only_asks)
    local.add(runs.place.run(runs.engine, attempts, runs.seconds_left(), regions=job, only_first=True))
