"""What one engine makes of two models: it runs both on more and more inputs, until they show enough."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.advice import is_installed
from splitgraph.execution.assignments import Assignment
from splitgraph.execution.attempts import FURTHER_ROUNDS, MANNERS
from splitgraph.execution.child import Attempt, EngineRun, Failure, Workplace
from splitgraph.execution.comparison import Comparison
from splitgraph.execution.dependence import read_dependence
from splitgraph.execution.deployment import deployment_note
from splitgraph.execution.evidence import Evidence
from splitgraph.execution.inputs import InputMaker
from splitgraph.execution.judging import Judge, Outcome, obstacle_of
from splitgraph.execution.model_files import weights_of
from splitgraph.execution.model_inputs import InputError
from splitgraph.execution.openvino_faults import openvino_fault
from splitgraph.execution.ordinary_inputs import batches
from splitgraph.execution.sensitivity import Case, measure_movements, rounding_note
from splitgraph.execution.subjects import Subject
from splitgraph.execution.values import Value
from splitgraph.value_type import UNKNOWN

# Rounding errors of different engines add up differently over a model; what a split gets wrong is far beyond this.
# Bytes of weights.
_LARGE_WEIGHTS = 2**28
_RTOL_BETWEEN_ENGINES = 1e-3
_ATOL_BETWEEN_ENGINES = 1e-4

_ONLY_ONES = "the model runs only at sizes of 1 of those that were tried, which show little: give others with --bind"


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be found out, whichever engine is asked.

    maker: of the inputs. second_maker: what later attempts are drawn by, where there is one. rounding: the second model
    is a rewrite with other arithmetic (see `sensitivity`).
    """

    before: Subject
    after: Subject
    maker: InputMaker
    second_maker: InputMaker | None
    samples: int
    rtol: float
    atol: float
    rounding: bool


@dataclass(slots=True)
class EngineTrial:
    """One engine, or one for each model joined by "+", while it is asked.

    share: of the time that is left until the deadline, what a run may take.
    """

    question: Question
    place: Workplace
    engine: str
    deadline: float
    share: float
    given: dict[tuple[int, int], Mapping[str, Value]] = field(default_factory=dict)
    ran: EngineRun = field(default_factory=EngineRun)
    notes: list[Diagnostic] = field(default_factory=list)

    def decide(self) -> Outcome:
        """Run the models and judge. Raises InputError where no inputs can be made."""
        lacking = next((name for name in self.engine.split("+") if not is_installed(name)), None)
        fault = "is not installed" if lacking is not None else self._known_fault()
        if fault is not None:
            return Outcome(None, fault)
        evidence = self._new_evidence()
        late = self._run_cases(evidence)
        if late is not None:
            return late
        outcome = self._judge()
        if outcome.verdict == "equal":
            outcome = self._with_evidence(outcome, evidence)
        if outcome.verdict == "equal":
            accepted = [attempt for _, attempt in self.ran.outputs[0]]
            if (self.question.second_maker or self.question.maker).has_only_ones(accepted):
                self.notes.append(diagnostic("SG505", _ONLY_ONES, severity="info"))
            deployment = deployment_note(self.ran.undeployed)
            self.notes += [deployment] if deployment else []
        return replace(outcome, notes=(*outcome.notes, *self.notes))

    def _run_cases(self, evidence: Evidence) -> Outcome | None:
        """Run both models on every case, with other inputs where the first one refuses; an outcome where that takes too
        long.
        """
        maker, samples = self.question.maker, self.question.samples
        sizes: list[Assignment] = []
        drawn: dict[tuple[int, int], Mapping[str, Value]] = {}
        for case in range(samples):
            if time.monotonic() > self.deadline:
                return Outcome(None, f"the inputs of {samples} cases could not be made in the time given")
            drawn[case, 0], chosen = maker.draw(case, 0, sizes)
            sizes.append(chosen)
        is_deployed = self.engine.split("+")[-1] == "onnxruntime" and not self.question.after.is_ir
        is_deployed = is_deployed and not self._has_large_weights
        self._run(drawn, evidence, deploy=is_deployed)
        for attempts in FURTHER_ROUNDS if maker.varies else ():
            accepted = {case for case, _ in self.ran.outputs[0]}
            rejected = [case for case in range(samples) if case not in accepted]
            obstacle = obstacle_of(self.ran)
            # Where the second model is invalid, whether the first one runs is still to be told.
            if not rejected or (obstacle is not None and not (obstacle.invalid and obstacle.model == 1)):
                break
            kept = [chosen for case, chosen in enumerate(sizes) if case in accepted]
            again = {key: inputs for case in rejected for key, inputs in self._further_attempts(case, attempts, kept)}
            if again:
                self._run(again, evidence)
        return None

    def _further_attempts(
        self, case: int, attempts: Iterable[int], kept: Sequence[Assignment]
    ) -> Iterator[tuple[tuple[int, int], Mapping[str, Value]]]:
        for attempt in attempts:
            second = self.question.second_maker if MANNERS[attempt].is_lenient else None
            try:
                inputs, _ = (second or self.question.maker).draw(case, attempt, () if second else kept)
            except InputError:  # the sizes are too large; why smaller ones were refused is what the caller has to hear
                continue
            yield (case, attempt), inputs

    def _run(
        self, drawn: Mapping[tuple[int, int], Mapping[str, Value]], evidence: Evidence, *, deploy: bool = False
    ) -> EngineRun:
        """Run both models on more inputs, and take what comes of it."""
        left = (self.deadline - time.monotonic()) * self.share
        attempts = [Attempt(case, attempt, inputs) for (case, attempt), inputs in drawn.items()]
        found = self.place.run(self.engine, attempts, max(left, 0.0), evidence.probe(deploy=deploy))
        found.failures = [_of_its_inputs(failure) for failure in found.failures]
        self.given.update(drawn)
        evidence.take(found, drawn)
        for own, other in zip(self.ran.outputs, found.outputs, strict=True):
            own.update(other)
        self.ran.failures.extend(found.failures)
        self.ran.undeployed.update(found.undeployed)
        return found

    @property
    def _has_large_weights(self) -> bool:
        """True where loading a model once more takes longer than what it would show is worth: neither is it then asked
        whether outputs move with the weights, nor whether the result loads with all optimisations.
        """
        return weights_of([self.question.before.model]) > _LARGE_WEIGHTS

    def _new_evidence(self) -> Evidence:
        """Of nothing yet; what to ask of the outputs follows from the first model."""
        before = self.question.before
        model = before.analysis.model
        types = [before.analysis.types.get(value.name, UNKNOWN) for value in model.graph.output]
        empty = [position for position, known in enumerate(types) if known.shape is not None and 0 in known.shape]
        dependence, varying = read_dependence(model), self.question.maker.varying()
        if self._has_large_weights:
            dependence = replace(dependence, weights=())
        names = [value.name for value in before.interface.graph.output]
        return Evidence(names, dependence, dependence.on_inputs(varying), frozenset(empty), self._comparison())

    def _with_evidence(self, outcome: Outcome, evidence: Evidence) -> Outcome:
        """The outcome of results that are equal, after more cases where those so far show nothing of some outputs."""
        for numbers in batches() if self.question.maker.varies else ():
            if not evidence.silent() or time.monotonic() > self.deadline:
                break
            bases = evidence.best()
            keys = [(self.question.samples + number, bases[number % len(bases)][1]) for number in numbers]
            refilled = self.question.maker.refill([self.given[key] for key in bases], numbers)
            found = self._run(dict(zip(keys, refilled, strict=True)), evidence)
            # What the engine cannot do with unusual numbers says nothing.
            lacking = [failure for failure in found.failures if failure.unsupported]
            self.ran.failures = [failure for failure in self.ran.failures if failure not in lacking]
            outcome = self._judge()
            if outcome.verdict != "equal":
                return outcome
        finding = evidence.finding()
        self.notes += [finding] if finding else []
        if finding is not None and finding.code == "SG506":
            return Outcome("not-run")
        return replace(outcome, cases=evidence.telling)

    def _known_fault(self) -> str | None:
        """What OpenVINO is known to do wrong in one of the models, for which the model is not to blame."""
        names = self.engine.split("+")
        for subject, name in ((self.question.before, names[0]), (self.question.after, names[-1])):
            fault = openvino_fault(subject.analysis) if name == "openvino" else None
            if fault is not None:
                return fault
        return None

    def _comparison(self) -> Comparison:
        rtol, atol = self.question.rtol, self.question.atol
        if "+" in self.engine:
            return Comparison(max(rtol, _RTOL_BETWEEN_ENGINES), max(atol, _ATOL_BETWEEN_ENGINES))
        return Comparison(rtol, atol)

    def _judge(self) -> Outcome:
        """What the runs so far show."""
        judge = Judge(self.question.before, self.question.after, self.question.samples)
        outcome = judge.judge(self.ran, self.given, self._comparison())
        if self.question.rounding and outcome.verdict == "different":
            return self._allow_for_rounding(judge, outcome)
        return outcome

    def _allow_for_rounding(self, judge: Judge, outcome: Outcome) -> Outcome:
        """The outcome, or another where rounding moves the first model as far as the second differs from it."""
        before, run, plain = self.question.before, self.ran, self._comparison()
        if judge.judge(run, self.given, Comparison(self.question.rtol, math.inf)).verdict == "different":
            return outcome
        names = [value.name for value in before.interface.graph.output]
        cases = {
            key[0]: Case(self.given[key], outputs)
            for key, outputs in run.outputs[0].items()
            if key in run.outputs[1] and plain.compare_outputs(names, outputs, run.outputs[1][key], key[0])
        }
        tolerances = plain.rtol, plain.atol
        for movements in measure_movements(before, self.question.after, cases, self.engine, self.deadline, tolerances):
            found = judge.judge(run, self.given, Comparison(*tolerances, movements))
            if found.verdict != "different":
                note = rounding_note(movements) if found.verdict == "equal" else None
                return replace(found, notes=(*found.notes, note)) if note else found
        return outcome


def _of_its_inputs(failure: Failure) -> Failure:
    """A crash of the first model while it runs, as a refusal of what it was given: onnxruntime divides by sizes that
    inputs too small for a model make 0, and dies of it.
    """
    is_crash = failure.stage == "run" and failure.model == 0 and failure.reason.startswith("crashed (SIGFPE)")
    return replace(failure, unsupported=False) if is_crash else failure
