"""Let one engine run both models and check their regions, and put the verdict together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification import help_texts
from splitgraph.verification.budget import Budget
from splitgraph.verification.comparison import Comparison, OutOfTimeError
from splitgraph.verification.engines.engine_process import Attempt, EngineFailure, EngineRun, Workplace
from splitgraph.verification.help_texts import is_installed
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.later_attempts import FURTHER_ROUNDS, RETRY_POLICY
from splitgraph.verification.inputs.model_inputs import InputError
from splitgraph.verification.inputs.other_amounts import with_other_amounts
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.dependence import outputs_of_inputs
from splitgraph.verification.models.model_files import weights_of
from splitgraph.verification.models.model_pair import ComparedModel, wrong_shapes
from splitgraph.verification.regions.check import LocalCheck
from splitgraph.verification.regions.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.inside import look_inside
from splitgraph.verification.regions.lost_digits import Loss
from splitgraph.verification.regions.size_limits import find_size_limits, lengths_of_two, unshared
from splitgraph.verification.values import Value, tensors_of
from splitgraph.verification.verdict.changed_in_ir import constants_that_differ, rows_that_differ, unread_constants
from splitgraph.verification.verdict.deciding_parts import deciding_part
from splitgraph.verification.verdict.evidence import find_silence
from splitgraph.verification.verdict.judge import (
    EngineVerdict,
    Judge,
    deployment_note,
    find_unexpected,
    obstacle_of,
)
from splitgraph.verification.verdict.region_notes import MOST_NAMED, loss_note, stopped_notes, unchecked_note
from splitgraph.verification.verdict.run_notes import idle_providers, known_fault, what_was_run
from splitgraph.verification.verdict.second_look import SecondLook
from splitgraph.verification.verdict.wide_inputs import WideInputs
from splitgraph.verification.verdict.wide_look import (
    WideLook,
    overflows_alone,
    runner_of,
)
from splitgraph.verification.verification import STOPPED, Difference, Region

# Above so many bytes of weights, loading a model once more takes too long for what it shows.
_LARGE_WEIGHTS = 2**28
# The rounding errors of two engines add up differently over a model. A wrong split differs by far more than this.
_RTOL_BETWEEN_ENGINES = 1e-3
_ATOL_BETWEEN_ENGINES = 1e-4
# The same for weights that are stored as float16: what OpenVINO computes from weights before it stores them is rounded
# once more.
_RTOL_OF_HALVES = 2e-3
_ATOL_OF_HALVES = 1e-3

_ONLY_ONES = (
    "the models ran only with size 1 for every dynamic dimension, which proves little; the model has a size rule that "
    "splitgraph cannot see: give real sizes with --bind"
)
# So many inputs with other amounts run at once.
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Question:
    """Holds the models and settings that are the same for every engine.

    maker: draws the inputs. second_maker: draws the inputs of later attempts, if there is one. found: the regions of
    two ONNX models. seed: of the values that are drawn for regions. coarse: what the outputs may differ by where no
    region does (rtol, atol), because of the types that the models compute in.
    """

    before: ComparedModel
    after: ComparedModel
    maker: InputMaker
    second_maker: InputMaker | None
    samples: int
    rtol: float
    atol: float
    found: ModelRegions | None
    seed: int
    coarse: tuple[float, float] = (0.0, 0.0)

    @property
    def has_half_weights(self) -> bool:
        """Return True if one of the models stores its weights as float16, and the other one does not."""
        return self.before.has_half_weights != self.after.has_half_weights


@dataclass(slots=True)
class EngineTrial:
    """Runs both models with one engine, or with one engine for each model, joined by "+".

    share: the share of the remaining time that a run may take. given: the inputs of each case and attempt so far.
    sizes: those of the cases. local: the regions, None for models that only run as a whole. losses: see
    `LocalCheck.losses`.
    """

    question: Question
    place: Workplace
    engine: str
    budget: Budget
    share: float
    given: dict[tuple[int, int], Mapping[str, Value]] = field(default_factory=dict)
    sizes: list[SymbolSizes] = field(default_factory=list)
    ran: EngineRun = field(default_factory=EngineRun)
    notes: list[Diagnostic] = field(default_factory=list)
    local: LocalCheck | None = None
    losses: list[tuple[str, Loss, str]] = field(default_factory=list)

    @property
    def deadline(self) -> float:
        """When everything ends."""
        return self.budget.deadline

    def decide(self) -> EngineVerdict:
        """Run the models and return the outcome. Raises InputError if no inputs can be made, ValueError for a provider
        that is not available.
        """
        lacking = next((name for name in self.engine.split("+") if not is_installed(name)), None)
        fault = (
            "is not installed"
            if lacking is not None
            else known_fault(self.engine, self.question.before, self.question.after)
        )
        if fault is not None:
            return EngineVerdict(None, fault)
        try:
            return self._decide()
        except OutOfTimeError:
            return EngineVerdict(None, "the comparison of the outputs did not finish in the time that was left")

    def _decide(self) -> EngineVerdict:
        found = self.question.found
        if found is not None and "+" not in self.engine:
            self.local = self._local_check(found, found.regions)
        too_late = self._run_cases()
        if too_late is not None:
            return too_late
        judge = Judge(self.question.before, self.question.after, self.question.samples)
        outcome = judge.judge(self.ran, self.given, self._comparison())
        if outcome.verdict is not None:
            outcome = self._with_evidence(outcome) if self.local is None else self._with_regions(outcome, self.local)
        if outcome.verdict == "equal":
            self.notes += self._limits()
        if outcome.verdict is not None:
            self.notes += filter(None, [self._unexpected_outputs()])
            self.notes += what_was_run(self.engine, self.ran, self.question.before, self.question.after)
        return replace(outcome, notes=(*outcome.notes, *self.notes), providers=tuple(self.ran.providers))

    # Runs --------------------------------------------------------------------------------------------------------

    def _run_cases(self) -> EngineVerdict | None:
        """Run both models on every case, and on other inputs where the first model refuses them.

        Returns an outcome if making the inputs takes too long.
        """
        maker, samples = self.question.maker, self.question.samples
        drawn: dict[tuple[int, int], Mapping[str, Value]] = {}
        for case in range(samples):
            if time.monotonic() > self.deadline:
                return EngineVerdict(None, f"the inputs of {samples} cases could not be made in time")
            drawn[case, 0], chosen = maker.draw(case, 0, self.sizes)
            self.sizes.append(chosen)
        is_onnxruntime = self.engine.split("+")[-1] == "onnxruntime" and not self.question.after.is_ir
        deploy = samples if is_onnxruntime and not self._has_large_weights else 0
        small = {} if self._has_large_weights or not maker.varies else self._small_cases(drawn.values())
        if not self._run(drawn | small, deploy=deploy):
            # One of the small cases ended the engine, which says nothing about the models.
            self._run(drawn, deploy=deploy)
        for attempts in FURTHER_ROUNDS if maker.varies else ():
            accepted = {case for case, _ in self.ran.outputs[0]}
            rejected = [case for case in range(samples) if case not in accepted]
            obstacle = obstacle_of(self.ran)
            # If the second model is invalid, the verdict still depends on whether the first one runs.
            if not rejected or (obstacle is not None and not (obstacle.invalid and obstacle.model == 1)):
                break
            kept = [chosen for case, chosen in enumerate(self.sizes) if case in accepted]
            again = {key: inputs for case in rejected for key, inputs in self._further_attempts(case, attempts, kept)}
            if again:
                self._run(again)
        return None

    def _small_cases(self, drawn: Iterable[Mapping[str, Value]]) -> dict[tuple[int, int], Mapping[str, Value]]:
        """Return further cases, with dimensions of size 1 and 0 that no case has; models need not accept them."""
        sizes = (1,) if "openvino" in self.engine else (1, 0)
        known = list(map(_shapes, drawn))
        small = (inputs for inputs in self.question.maker.small(sizes) if _shapes(inputs) not in known)
        return {(self.question.samples + number, 0): inputs for number, inputs in enumerate(small)}

    def _further_attempts(
        self, case: int, attempts: Iterable[int], kept: Sequence[SymbolSizes]
    ) -> Iterator[tuple[tuple[int, int], Mapping[str, Value]]]:
        for attempt in attempts:
            second = self.question.second_maker if RETRY_POLICY[attempt].only_split_rules else None
            try:
                inputs, _ = (second or self.question.maker).draw(case, attempt, () if second else kept)
            except InputError:  # too large; the caller needs to know why the engine refused smaller sizes
                continue
            yield (case, attempt), inputs

    def _run(self, drawn: Mapping[tuple[int, int], Mapping[str, Value]], *, deploy: int = 0) -> bool:
        """Run both models on more inputs, and record the results; return False if a small case ended the engine, and
        nothing was recorded.
        """
        attempts = [Attempt(case, attempt, inputs) for (case, attempt), inputs in drawn.items()]
        while True:
            left = (self.deadline - time.monotonic()) * self.share
            regions = None if self.local is None else self.local.job(self.sizes)
            run = self.place.run(self.engine, attempts, max(left, 0.0), deploy=deploy, regions=regions)
            if run.refused:
                raise ValueError(run.refused)
            if self.local is None or not self.local.add(run):
                break
        of_small = [failure for failure in run.failures if (failure.case or 0) >= self.question.samples]
        if any(failure.unsupported for failure in of_small) and not run.outputs[1]:
            return False
        run.failures = [_blame_inputs(failure) for failure in run.failures if failure not in of_small]
        self.ran.providers = run.providers or self.ran.providers
        self.ran.idle = run.idle or self.ran.idle
        self.given.update(drawn)
        for own, outputs in zip(self.ran.outputs, run.outputs, strict=True):
            own.update(outputs)
        self.ran.failures.extend(run.failures)
        self.ran.undeployed.update(run.undeployed)
        self.ran.deviating.update(run.deviating)
        self.ran.opsets.update(run.opsets)
        for model, seconds in run.seconds.items():
            self.ran.seconds[model] = max(self.ran.seconds.get(model, 0.0), seconds)
        return True

    # Regions -----------------------------------------------------------------------------------------------------

    def _local_check(
        self, found: ModelRegions, regions: Sequence[FoundRegion], *, has_jumps: bool = False
    ) -> LocalCheck:
        pair = self.question.before, self.question.after
        tolerances = self.question.rtol, self.question.atol
        return LocalCheck(found, regions, pair, self.place, tolerances, self.question.seed, has_jumps=has_jumps)

    def _with_regions(self, outcome: EngineVerdict, local: LocalCheck) -> EngineVerdict:
        """Return the verdict from the outputs and from the regions."""
        self._check_apart(local)
        regions = local.results()
        if outcome.verdict == "different" and all(region.verdict == "equal" for region in regions):
            outcome = self._with_allowance(outcome)
        again = SecondLook(local, self._checked, self.notes)
        regions = again.result(regions, is_equal=outcome.verdict == "equal")
        if outcome.verdict == "equal":
            regions = local.with_unreached(regions)
        self.losses = [*local.losses(), *again.losses]
        outcome = replace(outcome, regions=regions)
        if again.different is not None:
            return self._different(outcome, *again.different)
        if outcome.verdict == "different":
            return self._explained(outcome, local)
        self.notes += stopped_notes(regions)
        unchecked = [region for region in regions if region.verdict == "not-run"]
        if unchecked:
            self.notes.append(unchecked_note(unchecked))
            return replace(outcome, verdict="not-run")
        return outcome

    def _check_apart(self, local: LocalCheck) -> None:
        """Compare the regions on drawn values, judge what differs, and look for runs that read other constants, in the
        time that there is for it.
        """
        checking = self.budget.checking_ends(self.ran.seconds)
        if self.question.maker.varies:
            local.draw(self.engine, checking)
        local.settle(self.engine, self.budget.judging_ends(checking))
        if not self.question.maker.varies:
            return
        if self._run_with_amounts(local) | self._run_at_limits(local):
            local.settle(self.engine, self.budget.judging_ends(checking))
        look_inside(local, self.engine, self.budget.judging_ends(checking), self.budget)
        if local.ask():
            self._read_constants(local)

    def _run_with_amounts(self, local: LocalCheck) -> bool:
        """Run the first model with other lengths, axes and offsets where inputs say these; return True if any do."""
        limit = self.budget.checking_ends(self.ran.seconds)
        maker, model = self.question.maker, self.question.before.analysis.model
        drawn = with_other_amounts(maker, model, [each.inputs for each in self._accepted()], local.lengths.limits())
        case, has_any = max(self.given)[0], False
        while time.monotonic() < limit and (some := list(islice(drawn, _AT_ONCE))):
            self._run_without_ending(local, [Attempt(case + n, 0, inputs) for n, inputs in enumerate(some, 1)], limit)
            has_any = True
        return has_any

    def _run_without_ending(self, local: LocalCheck, attempts: Sequence[Attempt], limit: float) -> None:
        """Run the regions on inputs that need not be valid. Those that end the process, that the first model refuses,
        or for which it gives other shapes than it declares prove nothing.
        """
        run = partial(self.place.run, self.engine, only_first=True)
        first = run(attempts, max(limit - time.monotonic(), 0.0))
        declared = self.question.before.interface.graph.output
        names = [value.name for value in declared]
        outputs = {key: dict(zip(names, values, strict=True)) for key, values in first.outputs[0].items()}
        valid = [
            attempt
            for attempt in attempts
            if (found := outputs.get((attempt.case, attempt.attempt))) and not wrong_shapes(declared, found)
        ]
        ran = run(valid, max(limit - time.monotonic(), 0.0), regions=local.job(self.sizes)) if valid else first
        if ran.crashed is None and not any(failure.unsupported for failure in (*first.failures, *ran.failures)):
            local.add(ran)
        elif len(attempts) > 1 and time.monotonic() < limit:
            half = len(attempts) // 2
            for some in (attempts[:half], attempts[half:]):
                self._run_without_ending(local, some, limit)

    def _run_at_limits(self, local: LocalCheck) -> bool:
        """Run the models at sizes at which changed nodes decide something about sizes; return True if there are any."""
        limit = self.budget.checking_ends(self.ran.seconds)
        search = find_size_limits(local.found, self.question.maker.sizes_beside, self.budget.searching_ends())
        limits = search.limits
        case = max(self.given)[0]
        tried, late = set[int](), set[int]()
        for length in sorted({each.length for each in limits}):
            if time.monotonic() > limit:
                late.add(length)
                continue
            for inputs in self.question.maker.reaching(length):
                case += 1
                tried.add(length)
                self._run_local(local, [Attempt(case, 0, inputs)])
        for lengths in lengths_of_two(search, self.question.maker.reached_alone()):
            for inputs in self.question.maker.reaching_each(lengths) if time.monotonic() < limit else ():
                case += 1
                self._run_local(local, [Attempt(case, 0, inputs)])
        local.late = [each for each in unshared(limits) if each.length in late]
        local.unsearched = search.unsearched
        local.unreached = [each for each in unshared(limits) if each.length not in tried | late]
        return bool(limits)

    def _read_constants(self, local: LocalCheck) -> None:
        """Look for runs that read the constants in which the models differ: the runs so far, drawn values that need no
        run of a whole model, inputs of the sizes that the constants have, and inputs of other sizes.
        """
        limit = self.budget.checking_ends(self.ran.seconds)
        self._run_local(local, self._accepted(), only_asks=True)
        if local.has_unread(is_needed=True):
            local.ask_drawn(self.engine, (time.monotonic() + limit) / 2)
        self._run_lengths(local, local.lengths.near(), limit)
        self._run_lengths(local, local.lengths.far(), limit)
        local.settle(self.engine, self.budget.judging_ends(limit))

    def _run_lengths(self, local: LocalCheck, lengths: Sequence[int], limit: float) -> None:
        """Compare the regions on inputs of these sizes, as long as there is something to look for."""
        ends, case = local.lengths.type_ends(), max(self.given)[0]
        for length in lengths:
            for inputs in self.question.maker.reaching(length):
                is_wanted = length in ends or local.has_unread(is_needed=False)
                if not is_wanted or time.monotonic() > limit:
                    break
                case += 1
                self._run_local(local, [Attempt(case, 0, inputs)])

    def _with_allowance(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome again, with what equal regions justify. The first model runs without returning inner
        values: an engine rounds a number of 16 bits that it returns, and need not round one that it does not. So the
        outputs may differ by a few such roundings, too.
        """
        left = max(self.deadline - time.monotonic(), 0.0)
        run = self.place.run(self.engine, self._accepted(), left, only_first=True)
        if run.outputs[0].keys() < self.ran.outputs[0].keys():
            return outcome
        self.ran.outputs[0].update(run.outputs[0])
        judge = Judge(self.question.before, self.question.after, self.question.samples)
        plain, coarse = self._comparison(), self.question.coarse
        allowed = replace(plain, rtol=max(plain.rtol, coarse[0]), atol=max(plain.atol, coarse[1]))
        return judge.judge(self.ran, self.given, allowed)

    def _checked(self, region: FoundRegion, found: ModelRegions, *, has_jumps: bool = False) -> LocalCheck:
        """Return what became of a further region, on the same values as the others."""
        local = self._local_check(found, [region], has_jumps=has_jumps)
        self._run_local(local, self._accepted())
        local.settle(self.engine, self.budget.judging_ends(time.monotonic()))
        # Drawn values add nothing to a difference that values of the first model show.
        if all(result.verdict != "different" for result in local.results()):
            self._check_apart(local)
        return local

    def _different(self, outcome: EngineVerdict, region: Region, name: str, case: int) -> EngineVerdict:
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

    def _explained(self, outcome: EngineVerdict, local: LocalCheck) -> EngineVerdict:
        """Return the outcome for outputs that differ though no region does."""
        regions = outcome.regions
        assert outcome.difference is not None
        told = f"{outcome.difference.name}: {outcome.difference.reason}"
        blamed = [region for region in regions if region.reason not in ("", STOPPED)]
        if blamed:
            names = ", ".join(region.name for region in blamed[:MOST_NAMED])
            return EngineVerdict(None, f"{names}: {blamed[0].reason}; {told}")
        are_equal = bool(regions) and all(region.verdict == "equal" for region in regions)
        rounded = [region for region in regions if region.max_abs_diff]
        is_rounding = self._is_rounding() if are_equal and rounded else False
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
            reason = "; ".join(filter(None, (outcome.difference.reason, told, self._where_they_part(local))))
            return replace(outcome, difference=replace(outcome.difference, reason=reason))
        reason = "; ".join(filter(None, (outcome.difference.reason, self._where_they_part(local))))
        return replace(outcome, difference=replace(outcome.difference, reason=reason))

    def _where_they_part(self, local: LocalCheck) -> str:
        """Return the first value in which both models differ, and the node that computes it; "" if none is found."""
        found = local.found
        values = found.common_values()
        locate = {
            "values": [[border.before, border.after] for border in values],
            "batches": local.batches_of_values([border.before for border in values], self.sizes),
            "rtol": self.question.rtol,
            "atol": self.question.atol,
        }
        left = max(self.deadline - time.monotonic(), 0.0)
        run = self.place.run(self.engine, self._accepted(), left, locate=locate)
        if run.parting is None:
            return ""
        number, case, reason = run.parting
        maker = found.before.makers[values[number].before]
        node, location = found.before.nodes[maker], found.before.location(maker)
        read = ", ".join(filter(None, node.input)) or "nothing"
        what = f"{values[number].before} of {location} ({node.op_type} of {read})"
        return f"the models part at {what}, input {case + 1}: {reason}"

    def _differing(self) -> list[Attempt]:
        """Return the inputs on which the outputs differ."""
        names = [value.name for value in self.question.before.interface.graph.output]
        return [
            Attempt(*key, self.given[key])
            for key, before in sorted(self.ran.outputs[0].items())
            if key in self.ran.outputs[1]
            and self._comparison().compare_outputs(names, before, self.ran.outputs[1][key], key[0]) is not None
        ]

    def _accepted(self) -> list[Attempt]:
        """Return the inputs that the first model accepted."""
        return [Attempt(*key, self.given[key]) for key in sorted(self.ran.outputs[0])]

    def _with_all_cases(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome with the number of all cases, and with what differs in them: the judge ends at the first
        difference.
        """
        comparison = self._comparison()
        for key, after in self.ran.outputs[1].items():
            for before, other in zip(self.ran.outputs[0][key], after, strict=True):
                comparison.compare_outputs([""], [before], [other], key[0])
        cases = sum(case < self.question.samples for case, _ in self.ran.outputs[1])
        return replace(outcome, cases=cases, max_abs_diff=comparison.max_abs_diff, max_rel_diff=comparison.max_rel_diff)

    def _is_rounding(self) -> bool | None:
        """Return True if whatever a region computes differently is rounding, on the values of both models: then the
        outputs differ by that, and by what the same nodes make of it. None if there is no time to judge that.
        """
        found, pair = self.question.found, (self.question.before, self.question.after)
        assert found is not None
        first = self._rounds_only(found, pair, found.regions)
        if not first:
            return first
        turned = pair[1], pair[0]
        with self.place.swapped():
            other = ModelRegions(*turned)
            return self._rounds_only(other, turned, other.regions)

    def _rounds_only(
        self, found: ModelRegions, pair: tuple[ComparedModel, ComparedModel], regions: Sequence[FoundRegion]
    ) -> bool | None:
        """Return True if regions round alone, those that do not as one; None if that could not be judged."""
        tolerances = self.question.rtol, self.question.atol
        local = LocalCheck(found, regions, pair, self.place, tolerances, self.question.seed, is_strict=True)
        for attempt in self._differing():
            # One by one: regions whose values do not fit in memory together are compared on the first of several.
            self._run_local(local, [attempt])
        local.settle(self.engine, self.deadline)
        results = local.results()
        different = [number for number, region in enumerate(results) if region.verdict != "equal"]
        if len(different) > 1:
            return self._rounds_only(found, pair, [found.joined([local.members[n].region for n in different])])
        is_open = any(region.verdict == "not-run" and region.is_open for region in results)
        return None if is_open else not different

    def _run_local(self, local: LocalCheck, attempts: Sequence[Attempt], *, only_asks: bool = False) -> None:
        """Run the regions again on the values of the first model."""
        left = max(self.deadline - time.monotonic(), 0.0)
        job = local.job(self.sizes, only_asks=only_asks)
        local.add(self.place.run(self.engine, attempts, left, regions=job, only_first=True))

    # Notes -------------------------------------------------------------------------------------------------------

    def _with_evidence(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome of models that only run as a whole: equal outputs must prove something."""
        if outcome.verdict == "equal" and self.question.maker.varies:
            outcome = self._looked_at_widely(outcome)
        if outcome.verdict != "equal":
            return outcome
        before, maker = self.question.before, self.question.maker
        model = before.analysis.model
        names = [value.name for value in before.interface.graph.output]
        varying = outputs_of_inputs(model, maker.varying())
        tested = varying | outputs_of_inputs(model, maker.given)
        cases = [(self.given[key], outputs) for key, outputs in sorted(self.ran.outputs[0].items())]
        finding = find_silence(names, cases, varying, tested, self._comparison())
        self.notes += [finding] if finding else []
        return replace(outcome, verdict="not-run") if finding is not None and finding.code == "SG506" else outcome

    def _looked_at_widely(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome again, with what inputs show that draw out what an IR has."""
        question, pair = self.question, (self.question.before, self.question.after)
        if not any(model.is_ir for model in pair):
            return outcome
        ends, seconds = self.budget.checking_ends(self.ran.seconds), sum(self.ran.seconds.values())
        accepted = self._accepted()
        names = [value.name for value in pair[0].interface.graph.output]
        has_two, is_alike = "+" in self.engine, not question.has_half_weights
        comparison, run = self._comparison(), partial(self.place.run, self.engine)
        tells = not overflows_alone(self.ran)
        runner = runner_of(run, comparison, is_one=is_alike and not has_two, overflow_tells=tells)
        by_one = partial(self.place.run, "openvino"), replace(comparison, only_finite=False)
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
            told += unread_constants(changes, pair, self.place.settings, read, self.budget.judging_ends(ends))
        if not told:
            return outcome
        text = f"not verified: {'; '.join(told)}"
        self.notes.append(diagnostic("SG506", text, severity="warning", help=help_texts.INPUTS))
        return replace(outcome, verdict="not-run")

    def _limits(self) -> Iterator[Diagnostic]:
        """Yield what limits the verdict "equal"."""
        accepted = [attempt for case, attempt in self.ran.outputs[0] if case < self.question.samples]
        if (self.question.second_maker or self.question.maker).has_only_ones(accepted):
            yield diagnostic("SG505", _ONLY_ONES, severity="info")
        if self.losses:
            yield loss_note(self.losses)
        deployment = deployment_note(self.ran)
        if deployment is not None:
            yield deployment
        idle = idle_providers(self.ran)
        if idle is not None:
            yield idle

    def _unexpected_outputs(self) -> Diagnostic | None:
        """Return a warning if the first model does not give the outputs that the caller expects."""
        given = {key: self.question.maker.case_of(key[0]) for key in self.ran.outputs[0]}
        # The expected outputs belong to the given inputs alone.
        whole = {
            key: case
            for key, case in given.items()
            if key[0] < self.question.samples and not self.given[key].keys() - case.inputs.keys()
        }
        return find_unexpected(self.question.before, self.ran.outputs[0], whole, self._comparison())

    @property
    def _has_large_weights(self) -> bool:
        """Return True if loading a model once more takes too long. Then the result is not loaded with optimisations."""
        return weights_of([self.question.before.model]) > _LARGE_WEIGHTS

    def _comparison(self) -> Comparison:
        rtol, atol = self.question.rtol, self.question.atol
        if "+" in self.engine:
            rtol, atol = max(rtol, _RTOL_BETWEEN_ENGINES), max(atol, _ATOL_BETWEEN_ENGINES)
        if self.question.has_half_weights:
            rtol, atol = max(rtol, _RTOL_OF_HALVES), max(atol, _ATOL_OF_HALVES)
        return Comparison(rtol, atol, only_finite="+" in self.engine, deadline=self.deadline)


def _shapes(inputs: Mapping[str, Value]) -> dict[str, list[tuple[int, ...]]]:
    return {name: [array.shape for array in tensors_of(value)] for name, value in inputs.items()}


def _blame_inputs(failure: EngineFailure) -> EngineFailure:
    """Turn a division by zero in the first model into a refusal of its inputs: if the inputs are too small for a model,
    a size becomes 0, and onnxruntime crashes when it divides by this size.
    """
    is_crash = failure.stage == "run" and failure.model == 0 and failure.reason.startswith("crashed (SIGFPE)")
    return replace(failure, unsupported=False) if is_crash else failure
