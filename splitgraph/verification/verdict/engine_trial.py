"""Let one engine run both models and check their regions, and put the verdict together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.comparison import OutOfTimeError
from splitgraph.verification.help_texts import is_installed
from splitgraph.verification.models.dependence import outputs_of_inputs
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.judging.lost_digits import Loss
from splitgraph.verification.verdict.case_runs import CaseRuns
from splitgraph.verification.verdict.changed_in_ir import constants_that_differ, rows_that_differ, unread_constants
from splitgraph.verification.verdict.deciding_parts import deciding_part
from splitgraph.verification.verdict.evidence import find_silence
from splitgraph.verification.verdict.explanation import Explanation
from splitgraph.verification.verdict.judge import EngineVerdict, Judge, deployment_note, find_unexpected
from splitgraph.verification.verdict.region_notes import loss_note, stopped_notes, unchecked_note
from splitgraph.verification.verdict.region_runs import RegionRuns, checked, local_check, shows
from splitgraph.verification.verdict.run_notes import idle_providers, known_fault, what_was_run
from splitgraph.verification.verdict.second_look import SecondLook
from splitgraph.verification.verdict.wide_inputs import WideInputs
from splitgraph.verification.verdict.wide_look import WideLook, overflows_alone, runner_of

_ONLY_ONES = (
    "the models ran only with size 1 for every dynamic dimension, which proves little; the model has a size rule that "
    "splitgraph cannot see: give real sizes with --bind"
)


@dataclass(slots=True)
class EngineTrial:
    """Lets one engine decide. runs: both models as a whole. notes: what is said beside the verdict. losses: see
    `LocalCheck.losses`.
    """

    runs: CaseRuns
    notes: list[Diagnostic] = field(default_factory=list)
    losses: list[tuple[str, Loss, str]] = field(default_factory=list)

    def decide(self) -> EngineVerdict:
        """Run the models and return the outcome. Raises InputError if no inputs can be made, ValueError for a provider
        that is not available.
        """
        runs = self.runs
        lacking = next((name for name in runs.engine.split("+") if not is_installed(name)), None)
        pair = runs.question.before, runs.question.after
        fault = "is not installed" if lacking is not None else known_fault(runs.engine, *pair)
        if fault is not None:
            return EngineVerdict(None, fault)
        try:
            return self._decide()
        except OutOfTimeError:
            return EngineVerdict(None, "the comparison of the outputs did not finish in the time that was left")

    def _decide(self) -> EngineVerdict:
        runs = self.runs
        found = runs.question.found
        if found is not None and "+" not in runs.engine:
            runs.local = local_check(runs, found, found.regions)
        too_late = runs.run()
        if too_late is not None:
            return too_late
        judge = Judge(runs.question.before, runs.question.after, runs.question.samples)
        outcome = judge.judge(runs.ran, runs.given, runs.comparison())
        if outcome.verdict is not None:
            outcome = self._with_evidence(outcome) if runs.local is None else self._with_regions(outcome, runs.local)
        if outcome.verdict == "equal":
            self.notes += self._limits()
        if outcome.verdict is not None:
            self.notes += filter(None, [self._unexpected_outputs()])
            self.notes += what_was_run(runs.engine, runs.ran, runs.question.before, runs.question.after)
        return replace(outcome, notes=(*outcome.notes, *self.notes), providers=tuple(runs.ran.providers))

    def _with_regions(self, outcome: EngineVerdict, local: LocalCheck) -> EngineVerdict:
        """Return the verdict from the outputs and from the regions."""
        runs = self.runs
        missed = RegionRuns(runs, local).check_apart()
        explanation = Explanation(runs, local, self.notes)
        regions = local.results()
        if outcome.verdict == "different" and all(region.verdict == "equal" for region in regions):
            outcome = explanation.with_allowance(outcome)
        again = SecondLook(local, partial(checked, runs), partial(shows, runs), self.notes)
        is_equal = outcome.verdict == "equal"
        regions = again.result(regions, is_equal=is_equal, is_near=is_equal or explanation.is_near())
        if outcome.verdict == "equal":
            regions = local.with_missed(regions, missed)
        self.losses = [*local.losses(), *again.losses]
        outcome = replace(outcome, regions=regions)
        if again.different is not None:
            return explanation.by_region(outcome, *again.different)
        if outcome.verdict == "different":
            return explanation.explained(outcome, again.found)
        self.notes += stopped_notes(regions)
        unchecked = [region for region in regions if region.verdict == "not-run"]
        if unchecked:
            self.notes.append(unchecked_note(unchecked))
            return replace(outcome, verdict="not-run")
        return outcome

    # Models that only run as a whole -----------------------------------------------------------------------------

    def _with_evidence(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome of models that only run as a whole: equal outputs must prove something."""
        runs = self.runs
        if outcome.verdict == "equal" and runs.question.maker.varies:
            outcome = self._looked_at_widely(outcome)
        if outcome.verdict != "equal":
            return outcome
        before, maker = runs.question.before, runs.question.maker
        model = before.analysis.model
        names = [value.name for value in before.interface.graph.output]
        varying = outputs_of_inputs(model, maker.varying())
        tested = varying | outputs_of_inputs(model, maker.given)
        cases = [(runs.given[key], outputs) for key, outputs in sorted(runs.ran.outputs[0].items())]
        finding = find_silence(names, cases, varying, tested, runs.comparison())
        self.notes += [finding] if finding else []
        return replace(outcome, verdict="not-run") if finding is not None and finding.code == "SG506" else outcome

    def _looked_at_widely(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome again, with what inputs show that draw out what an IR has."""
        runs = self.runs
        question, pair = runs.question, (runs.question.before, runs.question.after)
        if not any(model.is_ir for model in pair):
            return outcome
        ends, seconds = runs.budget.checking_ends(runs.ran.seconds), sum(runs.ran.seconds.values())
        accepted = runs.accepted()
        names = [value.name for value in pair[0].interface.graph.output]
        has_two, is_alike = "+" in runs.engine, not question.has_half_weights
        comparison, run = runs.comparison(), partial(runs.place.run, runs.engine)
        tells = not overflows_alone(runs.ran)
        runner = runner_of(run, comparison, is_one=is_alike and not has_two, overflow_tells=tells)
        by_one = partial(runs.place.run, "openvino"), replace(comparison, only_finite=False)
        alone = runner_of(*by_one, is_one=is_alike) if has_two else None
        parts = [part for part in map(deciding_part, pair) if part is not None]
        changes = constants_that_differ(pair)
        base, first = accepted[0].inputs, rows_that_differ(changes)
        inputs = WideInputs(pair, question.maker, parts, base, first, is_alike, question.seed)
        count = int((ends - time.monotonic()) / max(seconds, 1e-6)) // (2 if has_two else 1)
        wide = WideLook(inputs, runner, alone, names).find(accepted, count, ends)
        if wide.difference is not None and wide.is_clear:
            return replace(outcome, verdict="different", difference=wide.difference)
        told = [] if wide.difference is None else [f"{wide.difference.name}: {wide.difference.reason}"]
        read = [*accepted, *wide.attempts]
        if not told:
            told += unread_constants(changes, pair, runs.place.settings, read, runs.budget.judging_ends(ends))
        if not told:
            return outcome
        text = f"not verified: {'; '.join(told)}"
        self.notes.append(diagnostic("SG506", text, severity="warning", help=help_texts.where_little_shows(text)))
        return replace(outcome, verdict="not-run")

    # Notes -------------------------------------------------------------------------------------------------------

    def _limits(self) -> Iterator[Diagnostic]:
        """Yield what limits the verdict "equal"."""
        runs = self.runs
        accepted = [attempt for case, attempt in runs.ran.outputs[0] if case < runs.question.samples]
        if (runs.question.second_maker or runs.question.maker).has_only_ones(accepted):
            yield diagnostic("SG505", _ONLY_ONES, severity="info")
        if self.losses:
            yield loss_note(self.losses)
        deployment = deployment_note(runs.ran)
        if deployment is not None:
            yield deployment
        idle = idle_providers(runs.ran)
        if idle is not None:
            yield idle

    def _unexpected_outputs(self) -> Diagnostic | None:
        """Return a warning if the first model does not give the outputs that the caller expects."""
        runs = self.runs
        given = {key: runs.question.maker.case_of(key[0]) for key in runs.ran.outputs[0]}
        # The expected outputs belong to the given inputs alone.
        whole = {
            key: case
            for key, case in given.items()
            if key[0] < runs.question.samples and not runs.given[key].keys() - case.inputs.keys()
        }
        return find_unexpected(runs.question.before, runs.ran.outputs[0], whole, runs.comparison())
