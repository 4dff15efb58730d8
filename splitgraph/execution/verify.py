"""Verifying a rewrite: both models are run on the same inputs, by one engine after the other until one can tell.

How a verdict comes about:

- A difference of the interface (names, order, declared types and ranks) is a difference without running anything.
- An engine decides only on cases that the first model ran on. It says "different" when a value differs, or when the
  second model declares a fixed shape or a type that the values contradict and the first does not; it says "equal" when
  all its cases were compared and are equal.
- An engine that crashes, runs out of time, cannot load one of the models, lacks something, runs the first model on none
  of the inputs, or gives the first model's outputs another type than declared has not run; the next one is tried.
- The second model refusing, while running, inputs on which the first one ran is a difference that no other engine can
  overrule, where the same engine runs it on other inputs: what it cannot do at all, or is known to refuse wrongly (see
  `engines.is_known_limit`), may be a limit of its own, and is a difference only if no other engine decides. OpenVINO
  alone runs IR, so that what it refuses there no other engine can run. The reference evaluator checks little and fails
  on some of what is right: other engines always overrule it.
- So is a second model that onnxruntime refuses to load as against ONNX's rules, for which it lacks nothing (see
  `engines.is_invalid`), where the first one runs: other engines do not look at those rules.
- A difference of floating-point numbers that rounding makes as well is none in a rewrite that rounds otherwise.
- A difference proves nothing where the models draw random numbers without a seed.

OpenVINO IR is run by OpenVINO alone. An ONNX model is compared with it as another engine runs it where there is one, as
OpenVINO's reading of ONNX is what is in question then; numbers are held to what two engines agree on.

A model whose only fault is a Split-18 without `split` and `num_outputs` is compared as what it must mean, with
`num_outputs` filled in; one with any other invalid split has no meaning to compare with.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution import advice
from splitgraph.execution.admission import engines_for, lacking_engine, meaningful
from splitgraph.execution.advice import is_installed
from splitgraph.execution.assignments import Assignment
from splitgraph.execution.attempts import FURTHER_ROUNDS, MANNERS
from splitgraph.execution.child import Attempt, EngineRun, Failure, Workplace, workplace
from splitgraph.execution.comparison import Comparison, caller_inputs, compare_interfaces, misfits, mistyped
from splitgraph.execution.engines import is_known_limit
from splitgraph.execution.inputs import InputMaker
from splitgraph.execution.memory import says_out_of_memory
from splitgraph.execution.model_inputs import InputError
from splitgraph.execution.openvino_faults import openvino_fault
from splitgraph.execution.proofs import prove_equal_splits
from splitgraph.execution.sensitivity import Case, measure_movements, rounding_note
from splitgraph.execution.subjects import Model, Subject, read_subjects
from splitgraph.execution.values import Value
from splitgraph.execution.verification import Difference, Verification
from splitgraph.execution.verify_arguments import Engine, check_arguments

# More seconds than any run takes, and fewer than the operating system's timers overflow at.
_LONGEST_TIMEOUT = 1e6
# What an engine may use of the time that is left, if another one comes after it.
_SHARE = 2 / 3
# Rounding errors of different engines add up differently over a model; what a split gets wrong is far beyond this.
_RTOL_BETWEEN_ENGINES = 1e-3
_ATOL_BETWEEN_ENGINES = 1e-4

_ONLY_ONES = "the model runs only at sizes of 1 of those that were tried, which show little: give others with --bind"


def verify_models(
    before: Model,
    after: Model,
    *,
    samples: int = 3,
    seed: int = 0,
    bind: Mapping[str, int] | None = None,
    inputs: Mapping[str, npt.NDArray[np.generic]] | None = None,
    engine: Engine = "auto",
    rtol: float = 1e-5,
    atol: float = 1e-6,
    rounding: bool = False,
    timeout: float = 300,
) -> Verification:
    """Run both models, ONNX or OpenVINO IR, on the same inputs and compare what they give; neither model is changed.

    samples: cases, with different sizes of the symbolic dimensions and different elements. seed: of the random
    elements. bind: sizes by symbol. inputs: arrays by name, the others are made up. rtol, atol: tolerances for
    floating-point numbers (see `comparison` for narrow types). rounding: the second model is a rewrite of the first
    with operators written as arithmetic, so that more is allowed where rounding does more (see `sensitivity`). timeout:
    seconds for everything. Raises ValueError for arguments that fit nothing.
    """
    check_arguments(samples, seed, engine, rtol, atol, timeout)
    deadline = time.monotonic() + min(timeout, _LONGEST_TIMEOUT)
    subjects = read_subjects(before, after)
    if isinstance(subjects, Difference):
        return Verification("different", "", 0, None, None, subjects, ())
    first, second = subjects
    maker = InputMaker(first.analysis, seed=seed, bind=bind, given=inputs, left_out=first.left_out)
    blank = Verification("not-run", "", 0, None, None, None, prove_equal_splits(first.analysis, second.analysis))
    difference = compare_interfaces(first.interface, second.interface)
    if difference is not None:
        return replace(blank, verdict="different", first_difference=difference)
    meaning, fault = meaningful(first, second)
    fault = fault or lacking_engine(engine, first, second)
    if fault is not None:
        return replace(blank, diagnostics=(fault,))
    if meaning is not first:
        maker = InputMaker(meaning.analysis, seed=seed, bind=bind, given=inputs, left_out=first.left_out)
    trial = _Trial(meaning, second, maker, samples if maker.varies else 1, rtol, atol)
    trial.rounding = rounding
    if engine != "auto":
        trial.wanted = engine
    if not bind and not inputs:
        trial.second_maker = _second_maker(second, first, seed)
    ports = [None if subject.ports is None else subject.ports.as_json() for subject in (meaning, second)]
    try:
        with workplace([meaning.model, second.model], ports) as place:
            return trial.decide(place, engines_for(engine, first, second), deadline, blank)
    except OSError as error:
        # A full disk, say, which is no fault of the models.
        reason = f"nothing can be run from the temporary folder {tempfile.gettempdir()}: {error.strerror or error}"
        help = "Make room there, or name another folder in the environment variable TMPDIR."
        found = diagnostic("SG501", reason, severity="warning", help=help)
        return replace(blank, diagnostics=(*trial.diagnostics, found))


def _second_maker(second: Subject, first: Subject, seed: int) -> InputMaker | None:
    """Draws inputs by what an ONNX model says of its dimensions, for an IR before it, whose dynamic dimensions have no
    names that could agree; None for other pairs.
    """
    if not first.is_ir or second.is_ir or second.ports is None:
        return None
    names = {own: shared for shared, own in second.ports.inputs.items()}
    return InputMaker(second.analysis, seed=seed, left_out=second.left_out, names=names)


@dataclass(slots=True)
class _Outcome:
    """What one engine found: a verdict, or None with the reason why it did not run.

    refusal: the second model refused inputs on which the first one ran, or is itself refused as invalid. is_final: no
    other engine can overrule that. inputs_refused: the first model ran on none of the inputs.
    """

    verdict: Literal["equal", "different"] | None
    reason: str = ""
    refusal: Difference | None = None
    is_final: bool = False
    difference: Difference | None = None
    cases: int = 0
    max_abs_diff: float | None = None
    max_rel_diff: float | None = None
    inputs_refused: bool = False


@dataclass(slots=True)
class _Trial:
    """One verification, while it goes on."""

    before: Subject
    after: Subject
    maker: InputMaker
    samples: int
    rtol: float
    atol: float
    rounding: bool = False
    # What later attempts are drawn by, where there is one.
    second_maker: InputMaker | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    memory_ran_out: bool = False
    # The engine that matters most, and those that did not decide, with the reason: "" where the first model ran on none
    # of the inputs.
    wanted: str = "onnxruntime"
    failed: list[tuple[str, str]] = field(default_factory=list)

    def decide(self, place: Workplace, engines: Sequence[str], deadline: float, blank: Verification) -> Verification:
        """Ask the engines in turn until one decides."""
        refusal: tuple[str, _Outcome] | None = None
        for position, engine in enumerate(engines):
            try:
                outcome = self._ask(place, engine, deadline, last=position == len(engines) - 1)
            except InputError as error:
                return self._not_run(blank, str(error), advice.INPUTS)
            if outcome.is_final and engine.split("+")[-1] != "reference":
                outcome = replace(outcome, verdict="different", difference=outcome.refusal)
            if outcome.verdict is not None:
                return self._decided(blank, engine, outcome)
            help = advice.after_failure(engine, engines[position + 1 :])
            self.diagnostics.append(diagnostic("SG503", f"{engine}: {outcome.reason}", severity="warning", help=help))
            self.failed.append((engine, "" if outcome.inputs_refused else outcome.reason))
            if outcome.refusal is not None and refusal is None:
                refusal = engine, outcome
        if refusal is None:
            return self._nothing_ran(blank)
        name, outcome = refusal
        return self._decided(blank, name, replace(outcome, verdict="different", difference=outcome.refusal))

    def _decided(self, blank: Verification, engine: str, outcome: _Outcome) -> Verification:
        difference = outcome.difference
        # What an invalid model would give does not matter.
        of_values = difference is not None and difference.case is not None
        if of_values and self.before.draws_random_numbers:
            return self._not_run(
                blank, "the model draws random numbers without a seed, so its outputs cannot be compared", advice.SEEDS
            )
        return replace(
            blank,
            verdict=outcome.verdict or "not-run",
            engine=engine,
            cases=outcome.cases,
            max_abs_diff=outcome.max_abs_diff,
            max_rel_diff=outcome.max_rel_diff,
            first_difference=outcome.difference,
            diagnostics=tuple(self.diagnostics),
        )

    def _not_run(self, blank: Verification, reason: str, help: str) -> Verification:
        found = diagnostic("SG501", reason, severity="warning", help=help)
        return replace(blank, diagnostics=(*self.diagnostics, found))

    def _nothing_ran(self, blank: Verification) -> Verification:
        reason = "no engine could run both models"
        if self.memory_ran_out:
            return self._not_run(blank, f"{reason} in the memory that running a model may take", advice.SMALLER)
        refused = any(not reason for _, reason in self.failed)
        unknown = self.maker.unknown_rank() if refused else None
        if unknown is None:
            return self._not_run(blank, reason, advice.where_engines_fail(self.wanted, *self.failed[0]))
        text = f"{reason}: {unknown.reason}, so that sizes that fit are a guess"
        return self._not_run(blank, text, unknown.help)

    def _ask(self, place: Workplace, engine: str, deadline: float, *, last: bool) -> _Outcome:
        lacking = next((name for name in engine.split("+") if not is_installed(name)), None)
        if lacking is not None:
            return _Outcome(None, "is not installed")
        fault = self._known_fault(engine)
        if fault is not None:
            return _Outcome(None, fault)
        given: dict[tuple[int, int], Mapping[str, Value]] = {}
        sizes: list[Assignment] = []
        for case in range(self.samples):
            if time.monotonic() > deadline:
                return _Outcome(None, f"the inputs of {self.samples} cases could not be made in the time given")
            given[case, 0], chosen = self.maker.draw(case, 0, sizes)
            sizes.append(chosen)
        run = self._run(place, engine, given, deadline, last)
        for attempts in FURTHER_ROUNDS if self.maker.varies else ():
            rejected, obstacle = self._rejected(run), _obstacle(run)
            # Where the second model is invalid, whether the first one runs is still to be told.
            if not rejected or (obstacle is not None and not (obstacle.invalid and obstacle.model == 1)):
                break
            kept = [chosen for case, chosen in enumerate(sizes) if case not in rejected]
            again: dict[tuple[int, int], Mapping[str, Value]] = {}
            for case in rejected:
                again.update(self._further_attempts(case, attempts, kept))
            given.update(again)
            if again:
                _merge(run, self._run(place, engine, again, deadline, last))
        outcome = self._judge(run, given, Comparison(*self._tolerances(engine)))
        if self.rounding and outcome.verdict == "different":
            outcome = self._allow_for_rounding(outcome, run, given, engine, deadline)
        accepted = [attempt for _, attempt in run.outputs[0]]
        if outcome.verdict == "equal" and (self.second_maker or self.maker).has_only_ones(accepted):
            self.diagnostics.append(diagnostic("SG505", _ONLY_ONES, severity="info"))
        return outcome

    def _known_fault(self, engine: str) -> str | None:
        """What OpenVINO is known to do wrong in one of the models, for which the model is not to blame."""
        names = engine.split("+")
        for subject, name in ((self.before, names[0]), (self.after, names[-1])):
            fault = openvino_fault(subject.analysis) if name == "openvino" else None
            if fault is not None:
                return fault
        return None

    def _further_attempts(
        self, case: int, attempts: Iterable[int], kept: Sequence[Assignment]
    ) -> Iterator[tuple[tuple[int, int], Mapping[str, Value]]]:
        for attempt in attempts:
            second = self.second_maker if MANNERS[attempt].is_lenient else None
            try:
                inputs, _ = (second or self.maker).draw(case, attempt, () if second else kept)
            except InputError:  # the sizes are too large; why smaller ones were refused is what the caller has to hear
                continue
            yield (case, attempt), inputs

    def _run(
        self,
        place: Workplace,
        engine: str,
        given: Mapping[tuple[int, int], Mapping[str, Value]],
        deadline: float,
        last: bool,
    ) -> EngineRun:
        left = deadline - time.monotonic()
        attempts = [Attempt(case, attempt, inputs) for (case, attempt), inputs in given.items()]
        run = place.run(engine, attempts, max(left if last else left * _SHARE, 0.0))
        run.failures = [_of_its_inputs(failure) for failure in run.failures]
        return run

    def _rejected(self, run: EngineRun) -> list[int]:
        accepted = {case for case, _ in run.outputs[0]}
        return [case for case in range(self.samples) if case not in accepted]

    def _tolerances(self, engine: str) -> tuple[float, float]:
        if "+" not in engine:
            return self.rtol, self.atol
        return max(self.rtol, _RTOL_BETWEEN_ENGINES), max(self.atol, _ATOL_BETWEEN_ENGINES)

    def _allow_for_rounding(
        self,
        outcome: _Outcome,
        run: EngineRun,
        given: Mapping[tuple[int, int], Mapping[str, Value]],
        engine: str,
        deadline: float,
    ) -> _Outcome:
        """The outcome, or another where rounding moves the first model as far as the second differs from it."""
        if self._judge(run, given, Comparison(self.rtol, math.inf)).verdict == "different":
            return outcome
        names = [value.name for value in self.before.interface.graph.output]
        tolerances = self._tolerances(engine)
        cases = {
            key[0]: Case(given[key], outputs)
            for key, outputs in run.outputs[0].items()
            if key in run.outputs[1]
            and Comparison(*tolerances).compare_outputs(names, outputs, run.outputs[1][key], key[0])
        }
        for movements in measure_movements(self.before, self.after, cases, engine, deadline, tolerances):
            found = self._judge(run, given, Comparison(*tolerances, movements))
            if found.verdict != "different":
                note = rounding_note(movements) if found.verdict == "equal" else None
                self.diagnostics += [note] if note else []
                return found
        return outcome

    def _judge(
        self, run: EngineRun, given: Mapping[tuple[int, int], Mapping[str, Value]], comparison: Comparison
    ) -> _Outcome:
        compared = 0
        for key in sorted(run.outputs[0]):
            difference = self._misdeclared_input(key[0], given[key])
            outputs = run.outputs[0][key], run.outputs[1].get(key)
            if difference is None and outputs[1] is not None:
                mistaken = mistyped(self.before.interface.graph.output, self._named(outputs[0]))
                if mistaken:
                    name, reason = next(iter(mistaken.items()))
                    return _Outcome(None, f"gives an output of the wrong type: {name} is {reason}")
                difference = self._difference(comparison, key[0], outputs[0], outputs[1])
                compared += 1
            if difference is not None:
                diffs = comparison.max_abs_diff, comparison.max_rel_diff
                return _Outcome("different", "", None, False, difference, compared, *diffs)
        return self._without_difference(run, comparison, compared)

    def _without_difference(self, run: EngineRun, comparison: Comparison, compared: int) -> _Outcome:
        refusal = self._refusal(run, comparison, compared)
        if refusal is not None and refusal.is_final:
            return refusal
        obstacle = _obstacle(run)
        if obstacle is not None and obstacle.invalid and run.outputs[0]:
            reason = f"the model after is refused as invalid, the one before runs: {obstacle.reason}"
            return _Outcome(None, reason, Difference("", None, reason), is_final=True)
        if obstacle is not None:
            self.memory_ran_out |= says_out_of_memory(obstacle.reason)
            return _Outcome(None, _describe(obstacle))
        if refusal is not None:
            return refusal
        if not compared:
            first = next((failure.reason for failure in run.failures), "no inputs were tried")
            reason = f"the model before runs on none of the inputs tried: {first}"
            return _Outcome(None, reason, inputs_refused=True)
        if compared < self.samples:
            count = f"{self.samples - compared} of {self.samples} cases were left out"
            left_out = f"{count}: the model before runs on none of the inputs tried for them"
            self.diagnostics.append(diagnostic("SG503", left_out, severity="info", help=advice.INPUTS))
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return _Outcome("equal", "", None, False, None, compared, *diffs)

    def _refusal(self, run: EngineRun, comparison: Comparison, compared: int) -> _Outcome | None:
        """The second model refusing what the first one ran on, None where it does not."""
        refused = [failure for failure in run.failures if failure.model == 1 and not failure.unsupported]
        if not refused:
            return None
        first = next((failure for failure in refused if not is_known_limit(failure.reason)), None)
        # A crash may explain why it ran on none.
        is_final = first is not None and (compared > 0 or (self.after.is_ir and _obstacle(run) is None))
        first = first or refused[0]
        reason = f"the model after fails on inputs on which the one before runs: {first.reason}"
        difference = Difference("", first.case, reason)
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return _Outcome(None, reason, difference, is_final, None, compared, *diffs)

    def _difference(
        self, comparison: Comparison, case: int, before: Sequence[Value], after: Sequence[Value]
    ) -> Difference | None:
        names = [value.name for value in self.before.interface.graph.output]
        difference = comparison.compare_outputs(names, before, after, case)
        if difference is not None:
            return difference
        left, right = self._named(before), self._named(after)
        wrong = {
            **mistyped(self.after.interface.graph.output, right),
            **misfits(self.after.interface.graph.output, right),
        }
        own = misfits(self.before.interface.graph.output, left)
        for name, reason in wrong.items():
            if name not in own:
                return Difference(name, case, f"after, the output is {reason}")
        return None

    def _misdeclared_input(self, case: int, inputs: Mapping[str, Value]) -> Difference | None:
        own = misfits(caller_inputs(self.before.interface).values(), inputs)
        for name, reason in misfits(self.after.interface.graph.input, inputs).items():
            if name not in own:
                return Difference(name, case, f"after, the input is {reason}, which the model before takes")
        return None

    def _named(self, outputs: Sequence[Value]) -> dict[str, Value]:
        return dict(zip((value.name for value in self.before.interface.graph.output), outputs, strict=False))


def _obstacle(run: EngineRun) -> Failure | None:
    """The first failure that says something of the engine and nothing of the models."""
    return next((failure for failure in run.failures if failure.unsupported), None)


def _of_its_inputs(failure: Failure) -> Failure:
    """A crash of the first model while it runs, as a refusal of what it was given: onnxruntime divides by sizes that
    inputs too small for a model make 0, and dies of it.
    """
    is_crash = failure.stage == "run" and failure.model == 0 and failure.reason.startswith("crashed (SIGFPE)")
    return replace(failure, unsupported=False) if is_crash else failure


def _describe(failure: Failure) -> str:
    which = "before" if failure.model == 0 else "after"
    doing = "loading" if failure.stage == "load" else "running"
    return f"{doing} the model {which}: {failure.reason}"


def _merge(run: EngineRun, more: EngineRun) -> None:
    for own, other in zip(run.outputs, more.outputs, strict=True):
        own.update(other)
    run.failures.extend(more.failures)
