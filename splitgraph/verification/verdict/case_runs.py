"""Run two models as a whole with one engine, on all cases, and record what they gave."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.verification.budget import Budget
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engines.engine_process import Attempt, EngineFailure, EngineRun, Workplace
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.later_attempts import FURTHER_ROUNDS, RETRY_POLICY
from splitgraph.verification.inputs.model_inputs import InputError
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.models.model_files import weights_of
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.checking.check import LocalCheck
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.values import Value, tensors_of
from splitgraph.verification.verdict.judge import EngineVerdict, obstacle_of

# Above so many bytes of weights, loading a model once more takes too long for what it shows.
_LARGE_WEIGHTS = 2**28
# The rounding errors of two engines add up differently over a model. A wrong split differs by far more than this.
_RTOL_BETWEEN_ENGINES = 1e-3
_ATOL_BETWEEN_ENGINES = 1e-4
# The same for weights that are stored as float16: what OpenVINO computes from weights before it stores them is rounded
# once more.
_RTOL_OF_HALVES = 2e-3
_ATOL_OF_HALVES = 1e-3


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
class CaseRuns:
    """Runs both models with one engine, or with one engine for each model, joined by "+".

    share: the share of the remaining time that a run may take. local: the regions, which run on the values of the first
    model; None for models that only run as a whole. given: the inputs of each case and attempt so far. sizes: those of
    the cases. ran: what happened.
    """

    question: Question
    place: Workplace
    engine: str
    budget: Budget
    share: float
    local: LocalCheck | None = None
    given: dict[tuple[int, int], Mapping[str, Value]] = field(default_factory=dict)
    sizes: list[SymbolSizes] = field(default_factory=list)
    ran: EngineRun = field(default_factory=EngineRun)

    @property
    def deadline(self) -> float:
        """When everything ends."""
        return self.budget.deadline

    def seconds_left(self) -> float:
        """Return how long a run may take that ends with everything."""
        return max(self.deadline - time.monotonic(), 0.0)

    def run(self) -> EngineVerdict | None:
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
        # One case shows what optimizations do to a model; the others would only be slower.
        deploy = int(is_onnxruntime and not self._has_large_weights)
        small = {} if self._has_large_weights or not maker.varies else self._small_cases(drawn.values())
        if not self._run_both(drawn | small, deploy=deploy):
            # One of the small cases ended the engine, which says nothing about the models.
            self._run_both(drawn, deploy=deploy)
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
                self._run_both(again)
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

    def _run_both(self, drawn: Mapping[tuple[int, int], Mapping[str, Value]], *, deploy: int = 0) -> bool:
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

    def accepted(self) -> list[Attempt]:
        """Return the inputs that the first model accepted."""
        return [Attempt(*key, self.given[key]) for key in sorted(self.ran.outputs[0])]

    def differing(self) -> list[Attempt]:
        """Return the inputs on which the outputs differ."""
        names = [value.name for value in self.question.before.interface.graph.output]
        return [
            Attempt(*key, self.given[key])
            for key, before in sorted(self.ran.outputs[0].items())
            if key in self.ran.outputs[1]
            and self.comparison().compare_outputs(names, before, self.ran.outputs[1][key], key[0]) is not None
        ]

    @property
    def _has_large_weights(self) -> bool:
        """Return True if loading a model once more takes too long. Then the result is not loaded with optimisations."""
        return weights_of([self.question.before.model]) > _LARGE_WEIGHTS

    def comparison(self) -> Comparison:
        """Return how outputs are compared."""
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
