"""Explain outputs that differ: by a region that differs, by rounding, or by the first value in which models part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.checking.jobs import in_batches
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.verdict.case_runs import CaseRuns
from splitgraph.verification.verdict.judge import EngineVerdict, Judge
from splitgraph.verification.verdict.region_notes import MOST_NAMED
from splitgraph.verification.verdict.region_runs import run_on_values
from splitgraph.verification.verification import STOPPED, Difference, Region

# Outputs that differ by more are not looked at once more for what their readers undo.
_RTOL_OF_ROUNDING, _ATOL_OF_ROUNDING = 1e-3, 1e-4


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explains an outcome. runs: of the whole models. local: the regions. notes: get what is said."""

    runs: CaseRuns
    local: LocalCheck
    notes: list[Diagnostic] = field(default_factory=list)

    def with_allowance(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome again, with what equal regions justify. The first model runs without returning inner
        values: an engine rounds a number of 16 bits that it returns, and need not round one that it does not. So the
        outputs may differ by a few such roundings, too.
        """
        left = self.runs.seconds_left()
        run = self.runs.place.run(self.runs.engine, self.runs.accepted(), left, only_first=True)
        if run.outputs[0].keys() < self.runs.ran.outputs[0].keys():
            return outcome
        self.runs.ran.outputs[0].update(run.outputs[0])
        judge = Judge(self.runs.question.before, self.runs.question.after, self.runs.question.samples)
        plain, coarse = self.runs.comparison(), self.runs.question.coarse
        allowed = replace(plain, rtol=max(plain.rtol, coarse[0]), atol=max(plain.atol, coarse[1]))
        return judge.judge(self.runs.ran, self.runs.given, allowed)

    def by_region(self, outcome: EngineVerdict, region: Region, name: str, case: int) -> EngineVerdict:
        """Return the outcome for a region that differs. name, case: of the first value, and where it shows."""
        nodes = " → ".join(
            ", ".join(names[:MOST_NAMED]) or "a constant" for names in (region.nodes_before, region.nodes_after)
        )
        told = f"{nodes}: {region.reason}"
        if outcome.verdict == "different" and outcome.difference is not None:
            difference = replace(
                outcome.difference, reason=f"{outcome.difference.reason}; the first part that differs: {told}"
            )
            return replace(outcome, difference=difference)
        reason = f"{told}; the outputs are equal on the inputs that were tried"
        return replace(outcome, verdict="different", difference=Difference(name, case, reason))

    def is_near(self) -> bool:
        """Return True if the outputs differ by so little that it may be rounding."""
        plain = self.runs.comparison()
        near = replace(plain, rtol=max(plain.rtol, _RTOL_OF_ROUNDING), atol=max(plain.atol, _ATOL_OF_ROUNDING))
        judge = Judge(self.runs.question.before, self.runs.question.after, self.runs.question.samples)
        return judge.judge(self.runs.ran, self.runs.given, near).verdict == "equal"

    def explained(self, outcome: EngineVerdict, found: ModelRegions | None) -> EngineVerdict:
        """Return the outcome for outputs that differ though no region does. found: the regions, if they are not those
        of the question.
        """
        regions = outcome.regions
        assert outcome.difference is not None
        told = f"{outcome.difference.name}: {outcome.difference.reason}"
        blamed = [region for region in regions if region.reason not in ("", STOPPED)]
        if blamed:
            names = ", ".join(region.name for region in blamed[:MOST_NAMED])
            return EngineVerdict(None, f"{names}: {blamed[0].reason}; {told}")
        are_equal = bool(regions) and all(region.verdict == "equal" for region in regions)
        rounded = [region for region in regions if region.max_abs_diff]
        is_rounding = self._is_rounding(found) if are_equal and rounded else False
        if is_rounding is None:
            text = f"not verified: some outputs differ ({told}); whether that is rounding was not judged in time"
            self.notes.append(diagnostic("SG506", text, severity="warning", help=help_texts.LONGER))
            return replace(outcome, verdict="not-run", difference=None)
        if is_rounding:
            text = (
                f"some outputs differ by more than the tolerances ({told}); {len(rounded)} changed parts round "
                "differently, which vanishes in float64, and the rest of the model amplifies that"
            )
            self.notes.append(diagnostic("SG504", text, severity="info"))
            return self._with_all_cases(replace(outcome, verdict="equal", difference=None))
        if are_equal and not rounded:
            told = "every part that differs computes the same when it runs alone"
            reason = "; ".join(filter(None, (outcome.difference.reason, told, self._where_they_part())))
            return replace(outcome, difference=replace(outcome.difference, reason=reason))
        reason = "; ".join(filter(None, (outcome.difference.reason, self._where_they_part())))
        return replace(outcome, difference=replace(outcome.difference, reason=reason))

    def _where_they_part(self) -> str:
        """Return the first value in which both models differ, and the node that computes it; "" if none is found."""
        found = self.local.found
        values, types = found.common_values(), self.local.question.types
        locate = {
            "values": [[border.before, border.after] for border in values],
            "batches": in_batches(((n, [value.before]) for n, value in enumerate(values)), types, self.runs.sizes),
            "rtol": self.runs.question.rtol,
            "atol": self.runs.question.atol,
        }
        left = self.runs.seconds_left()
        run = self.runs.place.run(self.runs.engine, self.runs.accepted(), left, locate=locate)
        if run.parting is None:
            return ""
        number, case, reason = run.parting
        maker = found.before.makers[values[number].before]
        node, location = found.before.nodes[maker], found.before.location(maker)
        read = ", ".join(filter(None, node.input)) or "nothing"
        what = f"{values[number].before} of {location} ({node.op_type} of {read})"
        return f"the models part at {what}, input {case + 1}: {reason}"

    def _with_all_cases(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome with the number of all cases, and with what differs in them: the judge ends at the first
        difference.
        """
        comparison = self.runs.comparison()
        for key, after in self.runs.ran.outputs[1].items():
            for before, other in zip(self.runs.ran.outputs[0][key], after, strict=True):
                comparison.compare_outputs([""], [before], [other], key[0])
        cases = sum(case < self.runs.question.samples for case, _ in self.runs.ran.outputs[1])
        return replace(outcome, cases=cases, max_abs_diff=comparison.max_abs_diff, max_rel_diff=comparison.max_rel_diff)

    def _is_rounding(self, found: ModelRegions | None) -> bool | None:
        """Return True if whatever a region computes differently is rounding, on the values of both models: then the
        outputs differ by that, and by what the same nodes make of it. None if there is no time to judge that.
        """
        found = found or self.runs.question.found
        pair = self.runs.question.before, self.runs.question.after
        assert found is not None
        first = self._rounds_only(found, pair, found.regions)
        if not first:
            return first
        turned = pair[1], pair[0]
        with self.runs.place.swapped():
            other = found.turned()
            return self._rounds_only(other, turned, other.regions)

    def _rounds_only(
        self, found: ModelRegions, pair: tuple[ComparedModel, ComparedModel], regions: Sequence[FoundRegion]
    ) -> bool | None:
        """Return True if regions round alone, those that do not as one; None if that could not be judged."""
        tolerances = self.runs.question.rtol, self.runs.question.atol
        question = RegionQuestion(found, pair, tolerances, self.runs.question.seed, is_strict=True)
        local = LocalCheck(question, regions, self.runs.place)
        for attempt in self.runs.differing():
            # One by one: regions whose values do not fit in memory together are compared on the first of several.
            run_on_values(self.runs, local, [attempt])
        local.settle(self.runs.engine, self.runs.deadline)
        results = local.results()
        different = [number for number, region in enumerate(results) if region.verdict != "equal"]
        if len(different) > 1:
            return self._rounds_only(found, pair, [found.joined([local.members[n].region for n in different])])
        is_open = any(region.verdict == "not-run" and region.is_open for region in results)
        return None if is_open else not different
