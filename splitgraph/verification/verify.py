"""Verify that two models compute the same: what differs between them runs alone, and both run as a whole.

What `verify_models` does, step by step:

1. It matches the inputs and outputs of the two models (`models`). A difference in the interface (names, order, declared
   types, ranks) is a difference without running anything.
2. It checks that the models can be compared: both must have a meaning, outputs, weights and an engine (`models`). A
   first model whose only fault is a Split-18 without `split` and `num_outputs` is repaired; any other invalid split has
   no meaning to compare with.
3. It finds the regions in which two ONNX models differ (`regions.finding.find`).
4. It chooses inputs: sizes that the model accepts, and elements (`inputs`).
5. One engine after the other runs both models on these inputs, in a process of its own, until one engine can decide
   (`engines`, `reference`). Meanwhile it runs each region alone (`regions.checking.local_check`). If a region is equal
   although its constants differ, a run must have read what differs (`regions.checking.reading`).
6. It compares the outputs, asks the arbiter about regions that differ (`regions.judging.arbiter`), and puts both
   together (`verdict.engine_trial`).

The rules for a verdict:

- An engine decides only on cases that the first model ran on. "different": a region or a value differs; or the second
  model declares a fixed shape or a type that the values contradict, and the first one does not. "equal": all cases were
  compared and are equal, and so is every region. If a region could not be run, there is no verdict.
- An engine has not decided if it crashes, runs out of time, cannot load one of the models, lacks something, runs the
  first model on none of the inputs, or gives an output of the first model another type than declared. The next engine
  is tried.
- If the second model fails on inputs that the first one runs on, the models are different. No other engine can overrule
  that if the same engine runs the second model on other inputs. Otherwise the failure, or a failure for a reason that
  is known to be wrong (see `error_texts.is_known_limit`), may be a limit of the engine; it decides only if no other
  engine does. OpenVINO is the only engine for IR, so that nothing can overrule its failures there. Other engines always
  overrule the reference evaluator: it checks little and fails on some correct models.
- If onnxruntime runs the first model but refuses to load the second one because it breaks the rules of ONNX (see
  `error_texts.is_invalid`), the models are different. Other engines do not check those rules.
- If outputs differ, and the reference evaluator finds the regions equal that an engine computes differently, that
  engine has not decided: its kernels have faults of their own.
- If outputs differ and no region does, regions that round differently may explain it (see `docs/verification.md`).
- NaN and infinity are equal if both models give one of them, but for a region on numbers of ordinary size, of which
  no sum overflows. Between two engines, only finite numbers count, and inputs that are not finite prove no difference.
- Both models also run with dimensions of size 1 and 0. A failure there says nothing.
- Differences do not count if the models draw random numbers without a seed, or with operators that give one seed
  another meaning.

Only OpenVINO runs OpenVINO IR. If the other model is ONNX, another engine runs that one if possible, because OpenVINO
may read the ONNX model wrongly. The tolerances are then those between two engines.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
import onnx

from splitgraph.findings.diagnostics import Diagnostic, diagnostic, meant_file
from splitgraph.options import ATOL, RTOL, Engine, GivenInputs, Running
from splitgraph.verification import help_texts
from splitgraph.verification.budget import Budget
from splitgraph.verification.comparison import tolerances_in
from splitgraph.verification.engine_settings import EngineSettings, refuse_unknown
from splitgraph.verification.engines.engine_process import Workplace, workplace
from splitgraph.verification.engines.error_texts import says_out_of_memory
from splitgraph.verification.inputs.given_inputs import IN_ONE_MODEL, GivenCase, as_cases
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.inputs.model_inputs import InputError
from splitgraph.verification.inputs.test_data import read_test_data
from splitgraph.verification.models.comparability import (
    engines_for,
    find_incomparable,
    find_missing_engine,
    find_missing_memory,
    find_too_deep,
    refuse_unfit_providers,
    repair_first,
    with_order,
    with_sorted_nodes,
)
from splitgraph.verification.models.model_pair import (
    ComparedModel,
    compare_interfaces,
    read_model_pair,
    sizes_of_the_first,
)
from splitgraph.verification.regions.finding.find import ModelRegions
from splitgraph.verification.verdict.case_runs import CaseRuns, Question
from splitgraph.verification.verdict.engine_trial import EngineTrial
from splitgraph.verification.verdict.judge import EngineVerdict
from splitgraph.verification.verdict.proofs import prove_equal_splits
from splitgraph.verification.verification import Difference, Verification

if TYPE_CHECKING:
    from splitgraph.formats import Model
    from splitgraph.inference.analysis import Analysis


# Reading so many bytes of weights takes noticeable time.
_LARGE = 5e7
# An engine may use this share of the remaining time if another engine comes after it.
_SHARE = 2 / 3

_RUNNING = Running(rtol=RTOL, atol=ATOL)
_NOT_RUN = Verification("not-run", "", 0, None, None, None, ())


def verify_models(
    before: Model,
    after: Model,
    running: Running = _RUNNING,
    *,
    kept_defaults: Mapping[str, str] | None = None,
    folders: Sequence[Path | None] = (None, None),
    analysis: Analysis | None = None,
    by_regions: bool = True,
    progress: Callable[[str], None] = lambda text: None,
) -> Verification:
    """Run both models, ONNX or OpenVINO IR, on the same inputs and compare their outputs. Neither model is changed.

    running: how; each of its samples is a case, with other sizes of the symbolic dimensions and other elements. Inputs
    that are not given are drawn. Both tolerances are numbers here (see `comparison` for narrow types). kept_defaults:
    inputs that are never given, because the second model relies on their defaults, each with the reason for messages.
    folders: of the external data of each model. analysis: of the second model, if that is ONNX and was inferred as it
    is. by_regions: what differs is run alone, too; models without common nodes run as a whole only. progress: receives
    a text for each step.
    Raises ValueError for arguments that do not fit, and for a provider that is not available.
    """
    check_running(running)
    settings = read_settings(running)
    engine, bind, seed = running.engine, running.try_sizes, running.seed
    # Reading the models counts, too.
    budget = Budget.begun(running.timeout, running.longest)

    # Read both models, and everything that the caller gave for them.
    pair = read_model_pair(before, after, folders, analysis)
    if isinstance(pair, Difference):
        return replace(_NOT_RUN, verdict="different", first_difference=pair)
    first, second = pair
    fault = find_too_deep(first, second)
    if fault is not None:
        return replace(_NOT_RUN, diagnostics=(fault,))
    engines = engines_for(engine, settings, first, second)
    refuse_unfit_providers(engines, settings)
    given = _read_given(running.inputs, first)
    left_out = {**dict.fromkeys(first.left_out, IN_ONE_MODEL), **(kept_defaults or {})}
    maker = InputMaker(first.analysis, seed=seed, bind=bind, given=given, left_out=left_out)

    # Compare and check what can be known without running the models.
    proofs = prove_equal_splits(first.analysis, second.analysis)
    not_run = replace(_NOT_RUN, proofs=proofs, compared=sizes_of_the_first(first.interface, second.interface))
    difference = compare_interfaces(first.interface, second.interface)
    if difference is not None:
        return replace(not_run, verdict="different", first_difference=difference)
    first, second = with_sorted_nodes(first), with_sorted_nodes(second)
    first = with_order(first, second)
    repaired, fault = _runnable_first(first, second, engine)
    if fault is not None:
        return replace(not_run, diagnostics=(fault,))

    # Run both models on the same inputs.
    if repaired is not first:
        maker = InputMaker(repaired.analysis, seed=seed, bind=bind, given=given, left_out=left_out)
    # Sizes or arrays that the caller gave are not replaced by others.
    second_maker = None if bind or maker.given else _second_maker(second, first, seed)
    assert running.rtol is not None and running.atol is not None
    count = maker.count(running.samples)
    found = None if repaired.is_ir or second.is_ir or not by_regions else ModelRegions(repaired, second)
    coarse = tolerances_in(repaired.computed_types() | second.computed_types())
    tolerances = running.rtol, running.atol
    question = Question(repaired, second, maker, second_maker, count, *tolerances, found, seed, coarse)
    queue = _EngineQueue(question, "onnxruntime" if engine == "auto" else engine, not_run)
    return queue.run(engines, settings, folders, budget, progress)


def _runnable_first(
    first: ComparedModel, second: ComparedModel, engine: Engine
) -> tuple[ComparedModel, Diagnostic | None]:
    """Return the first model, repaired where its splits need it, and the reason why the two models cannot be run."""
    fault = find_incomparable(first, second)
    if fault is not None:
        return first, fault
    repaired, fault = repair_first(first, second)
    return repaired, fault or find_missing_engine(engine, first, second) or find_missing_memory(first, second)


def _read_given(inputs: GivenInputs | None, first: ComparedModel) -> Sequence[GivenCase]:
    """Return the cases that the caller gave: one without any array if there are none."""
    if not isinstance(inputs, (str, os.PathLike)):
        return as_cases(inputs)
    # The numbers in the names of files count all inputs of an ONNX model, also those with a default.
    model = first.interface if first.is_ir else first.model
    assert isinstance(model, onnx.ModelProto)
    return read_test_data(inputs, model.graph.input, first.interface.graph.output)


def _second_maker(second: ComparedModel, first: ComparedModel, seed: int) -> InputMaker | None:
    """Return a maker that draws inputs from the dimensions of the second model, if that is ONNX and the first one is an
    IR: the dynamic dimensions of an IR have no names that could agree. Return None for other pairs.
    """
    if not first.is_ir or second.is_ir or second.ports is None:
        return None
    names = {own: shared for shared, own in second.ports.inputs.items()}
    return InputMaker(second.analysis, seed=seed, left_out=dict.fromkeys(second.left_out, IN_ONE_MODEL), names=names)


@dataclass(slots=True)
class _EngineQueue:
    """Asks one engine after the other until one decides.

    wanted: the engine that the caller asked for, or the most important one. failed: the engines that did not decide,
    with the reason: "" if the first model ran on none of the inputs.
    """

    question: Question
    wanted: str
    not_run: Verification
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def run(
        self,
        engines: Sequence[str],
        settings: EngineSettings,
        folders: Sequence[Path | None],
        budget: Budget,
        progress: Callable[[str], None],
    ) -> Verification:
        """Write the models to a temporary folder and ask the engines there."""
        pair = self.question.before, self.question.after
        ports = [None if compared.ports is None else compared.ports.as_json() for compared in pair]
        rounded = [self.question.has_half_weights and not compared.has_half_weights for compared in pair]
        try:
            with workplace([compared.model for compared in pair], ports, folders, settings, rounded) as place:
                return self._ask(place, engines, budget, progress)
        except OSError as error:
            # Such as a full disk, which is no fault of the models.
            text = f"no engine can run in the temporary folder {tempfile.gettempdir()}: {error.strerror or error}"
            return self._undecided(text, "Make room there, or name another folder in the environment variable TMPDIR.")

    def _ask(
        self, place: Workplace, engines: Sequence[str], budget: Budget, progress: Callable[[str], None]
    ) -> Verification:
        refusal: tuple[str, EngineVerdict] | None = None
        for position, engine in enumerate(engines):
            is_last = position == len(engines) - 1
            progress(f"running both models on {self.question.samples} inputs with {engine}{_size_of(place)}")
            try:
                outcome = EngineTrial(
                    CaseRuns(self.question, place, engine, budget, 1.0 if is_last else _SHARE)
                ).decide()
            except InputError as error:
                return self._undecided(str(error), help_texts.INPUTS)
            if outcome.is_final and engine.split("+")[-1] != "reference":
                outcome = replace(outcome, verdict="different", difference=outcome.refusal)
            self.diagnostics += outcome.notes
            if outcome.verdict is not None:
                return self._decided(engine, outcome)
            help = help_texts.after_failure(engine, engines[position + 1 :])
            self.diagnostics.append(diagnostic("SG503", f"{engine}: {outcome.reason}", severity="warning", help=help))
            self.failed.append((engine, "" if outcome.inputs_refused else outcome.reason))
            if outcome.refusal is not None and refusal is None:
                refusal = engine, outcome
        if refusal is None:
            return self._nothing_ran()
        name, outcome = refusal
        return self._decided(name, replace(outcome, verdict="different", difference=outcome.refusal))

    def _decided(self, engine: str, outcome: EngineVerdict) -> Verification:
        difference = outcome.difference
        # A difference without a case is an invalid second model, whose values do not matter.
        is_of_values = difference is not None and difference.case is not None
        if is_of_values and self.question.before.draws_random_numbers:
            text = "the model draws random numbers without a seed, so its outputs cannot be compared"
            return self._undecided(text, help_texts.SEEDS)
        if is_of_values and self.question.before.draws_otherwise(self.question.after):
            text = "the models draw random numbers with different operators, so their outputs cannot be compared"
            return self._undecided(text, help_texts.DISTRIBUTIONS)
        verdict = outcome.verdict or "not-run"
        return replace(
            self.not_run,
            verdict=verdict,
            engine="" if verdict == "not-run" else engine,
            cases=outcome.cases,
            max_abs_diff=outcome.max_abs_diff,
            max_rel_diff=outcome.max_rel_diff,
            first_difference=outcome.difference,
            diagnostics=tuple(self.diagnostics),
            providers=() if verdict == "not-run" else outcome.providers,
            regions=outcome.regions,
        )

    def _undecided(self, reason: str, help: str) -> Verification:
        warning = diagnostic("SG501", reason, severity="warning", help=help)
        return replace(self.not_run, diagnostics=(*self.diagnostics, warning))

    def _nothing_ran(self) -> Verification:
        text = "no engine could run both models"
        if any(says_out_of_memory(reason) for _, reason in self.failed):
            return self._undecided(f"{text} within the memory limit", help_texts.SMALLER)
        refused = any(not reason for _, reason in self.failed)
        unknown = self.question.maker.unknown_rank() if refused else None
        if unknown is None:
            return self._undecided(text, help_texts.where_engines_fail(self.wanted, *self.failed[0]))
        return self._undecided(f"{text}: {unknown.reason}, so the sizes of the inputs are a guess", unknown.help)


def _size_of(place: Workplace) -> str:
    """Return how large the models are, if that makes a run slow."""
    size = max(place.weights)
    return f", {size / 1e6:,.0f} MB of weights each" if size > _LARGE else ""


# Arguments ------------------------------------------------------------------------------------------------------------


def check_running(running: Running) -> None:
    """Raise ValueError for the first field that is not allowed."""
    engine, timeout = running.engine, running.timeout
    if engine not in get_args(Engine):
        raise ValueError(f"there is no engine {engine!r}; there are: {', '.join(get_args(Engine))}")
    for name, number, least in (("samples", running.samples, 1), ("seed", running.seed, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ValueError(f"{name} is {number!r}; it must be an integer")
        if number < least:
            raise ValueError(f"{name} is {number}; it must be at least {least}")
    for name, tolerance in (("rtol", running.rtol), ("atol", running.atol)):
        if tolerance is None or not _is_number(tolerance) or not tolerance >= 0:
            raise ValueError(f"{name} is {tolerance!r}; it must be a number of at least 0")
    if timeout is None:
        return
    if not _is_number(timeout):
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds, or None")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0 seconds")


def read_settings(running: Running) -> EngineSettings:
    """Return the settings of engines that the caller gave; one text or path counts as a list of one.

    Raises ValueError for a library that is no file, a provider that no engine has, and for the reference evaluator,
    which has neither.
    """
    custom_ops, providers = running.custom_ops, running.providers
    libraries = [custom_ops] if isinstance(custom_ops, (str, os.PathLike)) else list(custom_ops)
    names = [providers] if isinstance(providers, str) else list(providers)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"a provider is {name!r}; it must be a name, such as 'cuda'")
    paths = [_library(path) for path in libraries]
    refuse_unknown(names)
    if running.engine == "reference" and (paths or names):
        lacking = "loads no libraries of operators" if paths else "has no providers"
        raise ValueError(f"the reference evaluator {lacking}; use the engine onnxruntime or openvino")
    return EngineSettings(tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(names)))


def _library(path: object) -> str:
    """Return the absolute path of a library: engines run in another folder."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a library of operators is {path!r}; it must be the path of a file")
    text = os.fsdecode(path)
    if not os.path.isfile(text):
        problem = "is a folder" if os.path.isdir(text) else f"does not exist{meant_file(text)}"
        raise ValueError(f"the library of operators {text!r} {problem}; give the file of a library, such as libfoo.so")
    return os.path.abspath(text)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
