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
- Equal results of which nothing is shown, as they are NaN or the same whatever the inputs and the weights, are no
  verdict; other inputs are tried before that is said (see `evidence`). No other engine is asked then: it would compute
  the same.
- A difference of floating-point numbers that rounding makes as well is none in a rewrite that rounds otherwise.
- A difference proves nothing where the models draw random numbers without a seed.

OpenVINO IR is run by OpenVINO alone. An ONNX model is compared with it as another engine runs it where there is one, as
OpenVINO's reading of ONNX is what is in question then; numbers are held to what two engines agree on.

A model whose only fault is a Split-18 without `split` and `num_outputs` is compared as what it must mean, with
`num_outputs` filled in; one with any other invalid split has no meaning to compare with.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution import advice
from splitgraph.execution.admission import engines_for, in_order, lacking_engine, lacking_memory, meaningful, too_deep
from splitgraph.execution.child import Workplace, workplace
from splitgraph.execution.comparison import compare_interfaces
from splitgraph.execution.engine_trial import EngineTrial, Question
from splitgraph.execution.inputs import InputMaker
from splitgraph.execution.judging import Outcome
from splitgraph.execution.memory import says_out_of_memory
from splitgraph.execution.model_inputs import InputError
from splitgraph.execution.proofs import prove_equal_splits
from splitgraph.execution.subjects import Model, Subject, read_subjects
from splitgraph.execution.verification import Difference, Verification
from splitgraph.execution.verify_arguments import Engine, check_arguments

# More seconds than any run takes, and fewer than the operating system's timers overflow at.
_LONGEST_TIMEOUT = 1e6
# Bytes of weights that take their time to be read.
_LARGE = 5e7
# What an engine may use of the time that is left, if another one comes after it.
_SHARE = 2 / 3


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
    folders: Sequence[Path | None] = (None, None),
    progress: Callable[[str], None] = lambda text: None,
) -> Verification:
    """Run both models, ONNX or OpenVINO IR, on the same inputs and compare what they give; neither model is changed.

    folders: of the external data of each model. progress: takes what is being done, as a text.
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
    first, second = (replace(each, folder=folder) for each, folder in zip(subjects, folders, strict=True))
    depth = too_deep(first, second)
    if depth is not None:
        return Verification("not-run", "", 0, None, None, None, (), (depth,))
    maker = InputMaker(first.analysis, seed=seed, bind=bind, given=inputs, left_out=first.left_out)
    blank = Verification("not-run", "", 0, None, None, None, prove_equal_splits(first.analysis, second.analysis))
    difference = compare_interfaces(first.interface, second.interface)
    if difference is not None:
        return replace(blank, verdict="different", first_difference=difference)
    first, second = in_order(first), in_order(second)
    meaning, fault = meaningful(first, second)
    fault = fault or lacking_engine(engine, first, second) or lacking_memory(first, second)
    if fault is not None:
        return replace(blank, diagnostics=(fault,))
    if meaning is not first:
        maker = InputMaker(meaning.analysis, seed=seed, bind=bind, given=inputs, left_out=first.left_out)
    second_maker = None if bind or inputs else _second_maker(second, first, seed)
    question = Question(meaning, second, maker, second_maker, samples if maker.varies else 1, rtol, atol, rounding)
    trial = _Trial(question, "onnxruntime" if engine == "auto" else engine, blank)
    ports = [None if subject.ports is None else subject.ports.as_json() for subject in (meaning, second)]
    try:
        with workplace([meaning.model, second.model], ports, folders) as place:
            return trial.decide(place, engines_for(engine, first, second), deadline, progress)
    except OSError as error:
        # A full disk, say, which is no fault of the models.
        reason = f"nothing can be run from the temporary folder {tempfile.gettempdir()}: {error.strerror or error}"
        help = "Make room there, or name another folder in the environment variable TMPDIR."
        found = diagnostic("SG501", reason, severity="warning", help=help)
        return replace(blank, diagnostics=(*trial.diagnostics, found))


def _size_of(place: Workplace) -> str:
    """How large the models are, where that is why they take their time."""
    size = max(place.weights)
    return f", {size / 1e6:,.0f} MB of weights each" if size > _LARGE else ""


def _second_maker(second: Subject, first: Subject, seed: int) -> InputMaker | None:
    """Draws inputs by what an ONNX model says of its dimensions, for an IR before it, whose dynamic dimensions have no
    names that could agree; None for other pairs.
    """
    if not first.is_ir or second.is_ir or second.ports is None:
        return None
    names = {own: shared for shared, own in second.ports.inputs.items()}
    return InputMaker(second.analysis, seed=seed, left_out=second.left_out, names=names)


@dataclass(slots=True)
class _Trial:
    """One verification, while it goes on. wanted: the engine that matters most."""

    question: Question
    wanted: str
    blank: Verification
    diagnostics: list[Diagnostic] = field(default_factory=list)
    # The engines that did not decide, with the reason: "" where the first model ran on none of the inputs.
    failed: list[tuple[str, str]] = field(default_factory=list)

    def decide(
        self, place: Workplace, engines: Sequence[str], deadline: float, progress: Callable[[str], None]
    ) -> Verification:
        """Ask the engines in turn until one decides."""
        refusal: tuple[str, Outcome] | None = None
        for position, engine in enumerate(engines):
            is_last = position == len(engines) - 1
            progress(f"running both models on {self.question.samples} inputs with {engine}{_size_of(place)}")
            try:
                outcome = EngineTrial(self.question, place, engine, deadline, 1.0 if is_last else _SHARE).decide()
            except InputError as error:
                return self._not_run(str(error), advice.INPUTS)
            if outcome.is_final and engine.split("+")[-1] != "reference":
                outcome = replace(outcome, verdict="different", difference=outcome.refusal)
            self.diagnostics += outcome.notes
            if outcome.verdict is not None:
                return self._decided(engine, outcome)
            help = advice.after_failure(engine, engines[position + 1 :])
            self.diagnostics.append(diagnostic("SG503", f"{engine}: {outcome.reason}", severity="warning", help=help))
            self.failed.append((engine, "" if outcome.inputs_refused else outcome.reason))
            if outcome.refusal is not None and refusal is None:
                refusal = engine, outcome
        if refusal is None:
            return self._nothing_ran()
        name, outcome = refusal
        return self._decided(name, replace(outcome, verdict="different", difference=outcome.refusal))

    def _decided(self, engine: str, outcome: Outcome) -> Verification:
        difference = outcome.difference
        # What an invalid model would give does not matter.
        of_values = difference is not None and difference.case is not None
        if of_values and self.question.before.draws_random_numbers:
            return self._not_run(
                "the model draws random numbers without a seed, so its outputs cannot be compared", advice.SEEDS
            )
        verdict = outcome.verdict or "not-run"
        return replace(
            self.blank,
            verdict=verdict,
            engine="" if verdict == "not-run" else engine,
            cases=outcome.cases,
            max_abs_diff=outcome.max_abs_diff,
            max_rel_diff=outcome.max_rel_diff,
            first_difference=outcome.difference,
            diagnostics=tuple(self.diagnostics),
        )

    def _not_run(self, reason: str, help: str) -> Verification:
        found = diagnostic("SG501", reason, severity="warning", help=help)
        return replace(self.blank, diagnostics=(*self.diagnostics, found))

    def _nothing_ran(self) -> Verification:
        reason = "no engine could run both models"
        if any(says_out_of_memory(told) for _, told in self.failed):
            return self._not_run(f"{reason} in the memory that running a model may take", advice.SMALLER)
        refused = any(not reason for _, reason in self.failed)
        unknown = self.question.maker.unknown_rank() if refused else None
        if unknown is None:
            return self._not_run(reason, advice.where_engines_fail(self.wanted, *self.failed[0]))
        text = f"{reason}: {unknown.reason}, so that sizes that fit are a guess"
        return self._not_run(text, unknown.help)
