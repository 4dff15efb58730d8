"""Let one engine run both models, on more and more inputs until their outputs prove enough."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.value_type import UNKNOWN
from splitgraph.verification.comparison import MOST_MEASURED, Comparison, OutOfTimeError
from splitgraph.verification.engines.engine_process import Attempt, EngineFailure, EngineRun, Extras, Workplace
from splitgraph.verification.help_texts import is_installed
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.later_attempts import FURTHER_ROUNDS, RETRY_POLICY, batches
from splitgraph.verification.inputs.model_inputs import InputError
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.inputs.unusual import UnusualKind
from splitgraph.verification.models.dependence import read_dependence
from splitgraph.verification.models.model_files import weights_of
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.rounding.isolate import Case, agree_in_isolation, isolate
from splitgraph.verification.rounding.measure import measure_rounding, rounding_note
from splitgraph.verification.values import Value, tensors_of
from splitgraph.verification.verdict.evidence import Evidence
from splitgraph.verification.verdict.judge import (
    EngineVerdict,
    Judge,
    ask_reference,
    deployment_note,
    find_unexpected,
    obstacle_of,
    openvino_fault,
    rewritten_nodes,
)

# Above so many bytes of weights, loading a model once more takes too long for what it shows.
_LARGE_WEIGHTS = 2**28
# The rounding errors of two engines add up differently over a model. A wrong split differs by far more than this.
_RTOL_BETWEEN_ENGINES = 1e-3
_ATOL_BETWEEN_ENGINES = 1e-4
# The same for weights that are stored as float16: what OpenVINO computes from weights before it stores them is rounded
# once more.
_RTOL_OF_HALVES = 2e-3
_ATOL_OF_HALVES = 1e-3

# Unusual inputs are made of inputs of at most so many bytes.
_LARGEST_BASE = 2**26
# How messages call unusual inputs. On those of _PLAIN, engines agree; another engine must confirm the others.
_UNUSUAL = {
    "steps": "halves, whole numbers and constants of the model as inputs",
    "ends": "the ends of the types as inputs",
    "gaps": "NaN and infinities as inputs",
    "sizes": "inputs with dimensions of size 1 or 0",
}
_WHOSE = {
    "first": "the first model",
    "second": "the second model",
    "both": "both models",
    "neither": "some numbers",
}
_PLAIN = ("steps", "sizes")

_ONLY_ONES = (
    "the models ran only with size 1 for every dynamic dimension, which proves little; the model has a size rule that "
    "splitgraph cannot see: give real sizes with --bind"
)


class UnusualInputs(NamedTuple):
    """Unusual inputs. kind: what is unusual about them."""

    kind: UnusualKind | Literal["sizes"]
    inputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Question:
    """Holds the models and settings that are the same for every engine.

    maker: draws the inputs. second_maker: draws the inputs of later attempts, if there is one. rounding: the second
    model is a rewrite with other arithmetic (see `rounding.measure`).
    """

    before: ComparedModel
    after: ComparedModel
    maker: InputMaker
    second_maker: InputMaker | None
    samples: int
    rtol: float
    atol: float
    rounding: bool

    @property
    def has_half_weights(self) -> bool:
        """Return True if one of the models stores its weights as float16, and the other one does not."""
        return self.before.has_half_weights != self.after.has_half_weights


@dataclass(slots=True)
class EngineTrial:
    """Runs both models with one engine, or with one engine for each model, joined by "+".

    share: the share of the remaining time that a run may take. given: the inputs of each case and attempt so far.
    extras: unusual inputs, on which both models run, too.
    """

    question: Question
    place: Workplace
    engine: str
    deadline: float
    share: float
    given: dict[tuple[int, int], Mapping[str, Value]] = field(default_factory=dict)
    ran: EngineRun = field(default_factory=EngineRun)
    extras: list[UnusualInputs] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)

    def decide(self) -> EngineVerdict:
        """Run the models and return the outcome. Raises InputError if no inputs can be made, ValueError for a provider
        that is not available.
        """
        lacking = next((name for name in self.engine.split("+") if not is_installed(name)), None)
        fault = "is not installed" if lacking is not None else self._known_fault()
        if fault is not None:
            return EngineVerdict(None, fault)
        try:
            return self._decide()
        except OutOfTimeError:
            return EngineVerdict(None, "the comparison of the outputs did not finish in the time that was left")

    def _decide(self) -> EngineVerdict:
        evidence = self._new_evidence()
        too_late = self._run_cases(evidence)
        if too_late is not None:
            return too_late
        outcome = self._judge()
        if outcome.verdict == "equal":
            outcome = self._with_extras(outcome, evidence)
        if outcome.verdict == "equal":
            outcome = self._with_evidence(outcome, evidence)
        if outcome.verdict == "equal":
            accepted = [attempt for _, attempt in self.ran.outputs[0]]
            if (self.question.second_maker or self.question.maker).has_only_ones(accepted):
                self.notes.append(diagnostic("SG505", _ONLY_ONES, severity="info"))
            deployment = deployment_note(self.ran.undeployed)
            self.notes += [deployment] if deployment else []
            idle = self._idle_providers()
            self.notes += [idle] if idle else []
        if outcome.verdict is not None:
            self.notes += filter(None, [self._unexpected_outputs()])
            self.notes += self._what_was_run()
        return replace(outcome, notes=(*outcome.notes, *self.notes), providers=tuple(self.ran.providers))

    def _run_cases(self, evidence: Evidence) -> EngineVerdict | None:
        """Run both models on every case, and on other inputs where the first model refuses them.

        Returns an outcome if making the inputs takes too long.
        """
        maker, samples = self.question.maker, self.question.samples
        sizes: list[SymbolSizes] = []
        drawn: dict[tuple[int, int], Mapping[str, Value]] = {}
        for case in range(samples):
            if time.monotonic() > self.deadline:
                return EngineVerdict(None, f"the inputs of {samples} cases could not be made in time")
            drawn[case, 0], chosen = maker.draw(case, 0, sizes)
            sizes.append(chosen)
        is_onnxruntime = self.engine.split("+")[-1] == "onnxruntime" and not self.question.after.is_ir
        self._draw_extras(drawn[0, 0])
        self._run(drawn, evidence, deploy=is_onnxruntime and not self._has_large_weights, with_extras=True)
        for attempts in FURTHER_ROUNDS if maker.varies else ():
            accepted = {case for case, _ in self.ran.outputs[0]}
            rejected = [case for case in range(samples) if case not in accepted]
            obstacle = obstacle_of(self.ran)
            # If the second model is invalid, the verdict still depends on whether the first one runs.
            if not rejected or (obstacle is not None and not (obstacle.invalid and obstacle.model == 1)):
                break
            kept = [chosen for case, chosen in enumerate(sizes) if case in accepted]
            again = {key: inputs for case in rejected for key, inputs in self._further_attempts(case, attempts, kept)}
            if again:
                self._run(again, evidence)
        return None

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

    def _run(
        self,
        drawn: Mapping[tuple[int, int], Mapping[str, Value]],
        evidence: Evidence,
        *,
        deploy: bool = False,
        with_extras: bool = False,
    ) -> EngineRun:
        """Run both models on more inputs, and record the results."""
        left = (self.deadline - time.monotonic()) * self.share
        attempts = [Attempt(case, attempt, inputs) for (case, attempt), inputs in drawn.items()]
        plain = self._comparison()
        extras = tuple(extra.inputs for extra in self.extras) if with_extras else ()
        added = Extras(extras, plain.rtol, plain.atol, plain.only_finite)
        run = self.place.run(self.engine, attempts, max(left, 0.0), evidence.probe(deploy=deploy), added)
        if run.refused:
            raise ValueError(run.refused)
        self.ran.providers = run.providers or self.ran.providers
        self.ran.idle = run.idle or self.ran.idle
        run.failures = [_blame_inputs(failure) for failure in run.failures]
        self.given.update(drawn)
        evidence.add(run, drawn)
        for own, outputs in zip(self.ran.outputs, run.outputs, strict=True):
            own.update(outputs)
        self.ran.failures.extend(run.failures)
        self.ran.undeployed.update(run.undeployed)
        self.ran.opsets.update(run.opsets)
        self.ran.extras_run += run.extras_run
        self.ran.extras.update(run.extras)
        return run

    def _draw_extras(self, base: Mapping[str, Value]) -> None:
        """Draw unusual inputs, of the sizes of a case. Two engines treat many of them differently, and a rewrite with
        other arithmetic may round them differently, so that they get fewer.
        """
        maker, is_mixed = self.question.maker, "+" in self.engine
        size = sum(array.nbytes for value in base.values() for array in tensors_of(value))
        if not maker.varies or self._has_large_weights or size > _LARGEST_BASE:
            return
        kinds: Sequence[UnusualKind] = (
            () if is_mixed else ("steps",) if self._is_cautious else ("steps", "ends", "gaps")
        )
        self.extras = [UnusualInputs(kind, inputs) for kind, inputs in maker.unusual(base, kinds)]
        self.extras += [UnusualInputs("sizes", inputs) for inputs in maker.small((1,) if self._is_cautious else (1, 0))]

    @property
    def _is_cautious(self) -> bool:
        """Return True if unusual numbers show differences that are no mistakes."""
        return self.question.rounding or "openvino" in self.engine

    def _with_extras(self, outcome: EngineVerdict, evidence: Evidence) -> EngineVerdict:
        """Return the outcome for equal outputs, after the unusual inputs, if one of them shows a difference."""
        if self.extras and (0, 0) not in self.ran.outputs[0]:
            # The model refused the sizes that they were made of.
            accepted = min(self.ran.outputs[0])
            self._draw_extras(self.given[accepted])
            self._run({accepted: self.given[accepted]}, evidence, with_extras=True)
        names = [value.name for value in self.question.before.interface.graph.output]
        for number, outputs in sorted(self.ran.extras.items()):
            plain, case = self._comparison(), self.question.samples + number
            difference = plain.compare_outputs(names, *outputs, case)
            if difference is not None and self._is_confirmed(self.extras[number], outputs, names):
                diffs = plain.max_abs_diff, plain.max_rel_diff
                told = f"{difference.reason}, on {_UNUSUAL[self.extras[number].kind]}"
                return EngineVerdict(
                    "different",
                    difference=replace(difference, reason=told),
                    cases=case + 1,
                    max_abs_diff=diffs[0],
                    max_rel_diff=diffs[1],
                )
        return outcome

    def _is_confirmed(self, extra: UnusualInputs, outputs: tuple[list[Value], list[Value]], names: list[str]) -> bool:
        """Return True if a difference on unusual inputs is one of the models."""
        if self.question.rounding:
            isolated = isolate(self.question.before, self.question.after)
            case = {0: Case(extra.inputs, outputs[0])}
            tolerances = self.question.rtol, self.question.atol
            settings = self.engine, self.deadline, tolerances, self.place.settings
            if isolated is None or agree_in_isolation(self.question.before, isolated, case, *settings):
                return False
        if self.engine != "onnxruntime":
            return extra.kind in _PLAIN
        verdict, _ = ask_reference(self.place, extra.inputs, outputs, names, self._comparison())
        return verdict == "different" or (verdict is None and extra.kind in _PLAIN)

    @property
    def _has_large_weights(self) -> bool:
        """Return True if loading a model once more takes too long. Then the weights are not changed, and the result is
        not loaded with optimisations.
        """
        return weights_of([self.question.before.model]) > _LARGE_WEIGHTS

    def _new_evidence(self) -> Evidence:
        """Return evidence without any runs; the first model decides which tests its outputs have."""
        before = self.question.before
        model = before.analysis.model
        types = [before.analysis.types.get(value.name, UNKNOWN) for value in model.graph.output]
        empty = [position for position, known in enumerate(types) if known.shape is not None and 0 in known.shape]
        dependence, maker = read_dependence(model), self.question.maker
        if self._has_large_weights:
            dependence = replace(dependence, weights=())
        names = [value.name for value in before.interface.graph.output]
        by_inputs, by_given = dependence.on_inputs(maker.varying()), dependence.on_inputs(maker.given)
        return Evidence(names, dependence, by_inputs, frozenset(empty), self._comparison(), by_given=by_given)

    def _with_evidence(self, outcome: EngineVerdict, evidence: Evidence) -> EngineVerdict:
        """Return the outcome for equal outputs, after more cases if some outputs are silent so far."""
        for numbers in batches() if self.question.maker.varies else ():
            if not evidence.silent() or time.monotonic() > self.deadline:
                break
            bases = evidence.best()
            keys = [(self.question.samples + number, bases[number % len(bases)][1]) for number in numbers]
            refilled = self.question.maker.refill([self.given[key] for key in bases], numbers)
            run = self._run(dict(zip(keys, refilled, strict=True)), evidence)
            # A limit of the engine for unusual numbers proves nothing.
            limits = [failure for failure in run.failures if failure.unsupported]
            self.ran.failures = [failure for failure in self.ran.failures if failure not in limits]
            outcome = self._judge()
            if outcome.verdict != "equal":
                return outcome
        finding = evidence.finding()
        self.notes += [finding] if finding else []
        if finding is not None and finding.code == "SG506":
            return EngineVerdict("not-run")
        return replace(outcome, cases=evidence.meaningful_cases)

    def _what_was_run(self) -> Iterator[Diagnostic]:
        """Yield notes on what was run, where that is not the model as it is written."""
        for model, opset in sorted(self.ran.opsets.items()):
            which, name = ("first", "second")[model], self.engine.split("+")[-1 if model else 0]
            text = f"{name} ran the {which} model as opset {opset}, at which its operators mean the same"
            yield diagnostic("SG511", text, severity="info")
        if self.question.has_half_weights:
            halved, exact = ("first", "second") if self.question.before.has_half_weights else ("second", "first")
            text = (
                f"the {halved} model stores its weights as float16, so those of the {exact} one were rounded to float16"
            )
            yield diagnostic("SG511", text, severity="info")

    def _known_fault(self) -> str | None:
        """Return a known fault of OpenVINO that affects one of the models; None without one."""
        names = self.engine.split("+")
        for subject, name in ((self.question.before, names[0]), (self.question.after, names[-1])):
            fault = openvino_fault(subject.analysis) if name == "openvino" else None
            if fault is not None:
                return fault
        return None

    def _idle_providers(self) -> Diagnostic | None:
        """Return a warning about providers that were asked for and ran nothing."""
        if not self.ran.idle:
            return None
        names, others = self.ran.idle, [name for name in self.ran.providers if name not in self.ran.idle]
        text = f"{' and '.join(names)} ran no node of a model; {' and '.join(others)} did"
        return diagnostic("SG510", text, severity="warning")

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

    def _comparison(self) -> Comparison:
        rtol, atol = self.question.rtol, self.question.atol
        if "+" in self.engine:
            rtol, atol = max(rtol, _RTOL_BETWEEN_ENGINES), max(atol, _ATOL_BETWEEN_ENGINES)
        if self.question.has_half_weights:
            rtol, atol = max(rtol, _RTOL_OF_HALVES), max(atol, _ATOL_OF_HALVES)
        return Comparison(rtol, atol, only_finite="+" in self.engine, deadline=self.deadline)

    def _judge(self) -> EngineVerdict:
        """Return the outcome of the runs so far."""
        judge = Judge(self.question.before, self.question.after, self.question.samples)
        outcome = judge.judge(self.ran, self.given, self._comparison())
        if self.question.rounding and outcome.verdict == "different":
            outcome = self._allow_for_rounding(judge, outcome)
        return self._after_reference(outcome) if outcome.verdict == "different" else outcome

    def _after_reference(self, outcome: EngineVerdict) -> EngineVerdict:
        """Return no verdict if the outputs differ in onnxruntime, but not in the reference evaluator: onnxruntime has
        kernels that deviate from the specification. Only nodes that were rewritten can show that.
        """
        case = None if outcome.difference is None else outcome.difference.case
        pairs = {key[0]: key for key in self.ran.outputs[0].keys() & self.ran.outputs[1].keys()}
        if self.engine != "onnxruntime" or outcome.difference is None or case not in pairs:
            return outcome
        nodes = rewritten_nodes(self.question.before, self.question.after)
        if nodes is None:
            return outcome
        names = [value.name for value in self.question.before.interface.graph.output]
        key = pairs[case]
        outputs = self.ran.outputs[0][key], self.ran.outputs[1][key]
        verdict, who = ask_reference(self.place, self.given[key], outputs, names, self._comparison())
        if verdict != "equal":
            return outcome
        told = f"{outcome.difference.name}: {outcome.difference.reason}"
        reason = f"it computes {_WHOSE[who]} differently from the reference evaluator, in which both models are equal"
        return EngineVerdict(None, f"{reason}; rewritten nodes: {nodes}; {told}")

    def _allow_for_rounding(self, judge: Judge, outcome: EngineVerdict) -> EngineVerdict:
        """Return the outcome again, with differences allowed that rounding explains."""
        before, run, plain = self.question.before, self.ran, self._comparison()
        if judge.judge(run, self.given, replace(plain, atol=math.inf)).verdict == "different":
            return outcome
        names = [value.name for value in before.interface.graph.output]
        cases = {
            key[0]: Case(self.given[key], outputs)
            for key, outputs in run.outputs[0].items()
            if key in run.outputs[1] and plain.compare_outputs(names, outputs, run.outputs[1][key], key[0])
        }
        arrays = (array for case in cases.values() for value in case.outputs for array in tensors_of(value))
        if max((array.size for array in arrays), default=0) > MOST_MEASURED:
            return EngineVerdict(
                None, "the outputs differ, and are too large to measure how much rounding changes them"
            )
        tolerances = plain.rtol, plain.atol
        for allowance in measure_rounding(
            before, self.question.after, cases, self.engine, self.deadline, tolerances, self.place.settings
        ):
            verdict = judge.judge(run, self.given, replace(plain, excuse=allowance.excuse))
            if verdict.verdict != "different":
                note = rounding_note(allowance) if verdict.verdict == "equal" else None
                return replace(verdict, notes=(*verdict.notes, note)) if note else verdict
        return outcome


def _blame_inputs(failure: EngineFailure) -> EngineFailure:
    """Turn a division by zero in the first model into a refusal of its inputs: if the inputs are too small for a model,
    a size becomes 0, and onnxruntime crashes when it divides by this size.
    """
    is_crash = failure.stage == "run" and failure.model == 0 and failure.reason.startswith("crashed (SIGFPE)")
    return replace(failure, unsupported=False) if is_crash else failure
