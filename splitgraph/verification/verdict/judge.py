"""Judge the runs of both models by one engine: which values differ, what was refused, what did not run.

Other witnesses follow: the outputs that the caller expects, as in onnx's test data; faults of OpenVINO that are known;
and whether onnxruntime loads the rewritten model as users do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.analysis import Analysis, SplitReport
from splitgraph.verification import help_texts
from splitgraph.verification.comparison import Comparison, is_finite
from splitgraph.verification.engines.engine_process import EngineFailure, EngineRun
from splitgraph.verification.engines.error_texts import is_known_limit
from splitgraph.verification.engines.onnxruntime_engine import LEVELS
from splitgraph.verification.inputs.given_inputs import GivenCase
from splitgraph.verification.models.model_files import is_default_domain, scoped_nodes
from splitgraph.verification.models.model_pair import ComparedModel, caller_inputs, wrong_shapes, wrong_types
from splitgraph.verification.values import Value, blocks, tensors_of
from splitgraph.verification.verification import Difference, Region, Verdict

# The inputs of each attempt, by case and attempt.
GivenOutputs = Mapping[tuple[int, int], Mapping[str, Value]]
# Test data comes from other engines, which round differently: relative to each number, and to the largest number of an
# output, of which small numbers may be differences.
_RTOL_OF_TEST_DATA = 1e-3
_ATOL_OF_TEST_DATA = 1e-4
# 4-bit types that OpenVINO splits wrongly along every axis except the first.
_PACKED = ("float4e2m1", "nf4")


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """Holds the verdict of one engine, or None with the reason why it did not decide.

    refusal: the second model failed on inputs that the first one ran on, or is invalid. is_final: no other engine can
    overrule the refusal. inputs_refused: the first model ran on none of the inputs. providers: what the models ran on.
    notes: what limits the verdict, or why no other engine is asked. regions: what became of each.
    """

    verdict: Verdict | None
    reason: str = ""
    refusal: Difference | None = None
    is_final: bool = False
    difference: Difference | None = None
    cases: int = 0
    max_abs_diff: float | None = None
    max_rel_diff: float | None = None
    inputs_refused: bool = False
    providers: tuple[str, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the runs of two models. samples: the number of cases that were planned."""

    before: ComparedModel
    after: ComparedModel
    samples: int

    def judge(self, run: EngineRun, given: GivenOutputs, comparison: Comparison) -> EngineVerdict:
        """Return the outcome of the runs."""
        compared = 0
        for key in sorted(run.outputs[0]):
            difference = self._wrongly_declared_input(key[0], given[key])
            before, after = run.outputs[0][key], run.outputs[1].get(key)
            if difference is None and after is not None:
                mistyped = wrong_types(self.before.interface.graph.output, self._named(before))
                if mistyped:
                    name, reason = next(iter(mistyped.items()))
                    return EngineVerdict(None, f"gives an output of the wrong type: {name} is {reason}")
                difference = self._difference(comparison, key[0], before, after)
                # Further cases, of sizes 1 and 0, are not counted.
                compared += key[0] < self.samples
            if difference is not None and comparison.only_finite and not _are_finite(given[key]):
                continue  # engines treat NaN and infinite inputs differently
            if difference is not None:
                diffs = comparison.max_abs_diff, comparison.max_rel_diff
                return EngineVerdict("different", "", None, False, difference, compared, *diffs)
        return self._without_difference(run, comparison, compared)

    def _without_difference(self, run: EngineRun, comparison: Comparison, compared: int) -> EngineVerdict:
        refusal = self._refusal(run, comparison, compared)
        if refusal is not None and refusal.is_final:
            return refusal
        obstacle = obstacle_of(run)
        if obstacle is not None and obstacle.invalid and run.outputs[0]:
            reason = f"the second model is invalid, but the first one runs: {obstacle.reason}"
            return EngineVerdict(None, reason, Difference("", None, reason), is_final=True)
        if obstacle is not None:
            return EngineVerdict(None, _describe(obstacle))
        if refusal is not None:
            return refusal
        if not compared:
            first = next((failure.reason for failure in run.failures), "no inputs were tried")
            reason = f"the first model ran on none of the inputs that were tried: {first}"
            return EngineVerdict(None, reason, inputs_refused=True)
        skipped = self.samples - len({case for case, _ in run.outputs[0] if case < self.samples})
        count = f"{skipped} of {self.samples} cases were skipped"
        text = f"{count}: the first model ran on none of the inputs that were tried for them"
        note = diagnostic("SG503", text, severity="info", help=help_texts.INPUTS)
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return EngineVerdict("equal", "", None, False, None, compared, *diffs, notes=(note,) if skipped else ())

    def _refusal(self, run: EngineRun, comparison: Comparison, compared: int) -> EngineVerdict | None:
        """Return the outcome if the second model failed on inputs that the first one ran on; None otherwise."""
        refused = [failure for failure in run.failures if failure.model == 1 and not failure.unsupported]
        if not refused:
            return None
        first = next((failure for failure in refused if not is_known_limit(failure.reason)), None)
        # If the second model ran on no inputs, a crash may be the reason.
        is_final = first is not None and (compared > 0 or (self.after.is_ir and obstacle_of(run) is None))
        first = first or refused[0]
        reason = f"the second model fails on inputs that the first one runs on: {first.reason}"
        difference = Difference("", first.case, reason)
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return EngineVerdict(None, reason, difference, is_final, None, compared, *diffs)

    def _difference(
        self, comparison: Comparison, case: int, before: Sequence[Value], after: Sequence[Value]
    ) -> Difference | None:
        names = [value.name for value in self.before.interface.graph.output]
        difference = comparison.compare_outputs(names, before, after, case)
        if difference is not None:
            return difference
        left, right = self._named(before), self._named(after)
        declared = self.after.interface.graph.output
        wrong = {**wrong_types(declared, right), **wrong_shapes(declared, right)}
        own = wrong_shapes(self.before.interface.graph.output, left)
        for name, reason in wrong.items():
            if name not in own:
                return Difference(name, case, f"in the second model, the output is {reason}")
        return None

    def _wrongly_declared_input(self, case: int, inputs: Mapping[str, Value]) -> Difference | None:
        own = wrong_shapes(caller_inputs(self.before.interface).values(), inputs)
        for name, reason in wrong_shapes(self.after.interface.graph.input, inputs).items():
            if name not in own:
                return Difference(
                    name, case, f"in the second model, the input is {reason}, which the first model accepts"
                )
        return None

    def _named(self, outputs: Sequence[Value]) -> dict[str, Value]:
        return dict(zip((value.name for value in self.before.interface.graph.output), outputs, strict=False))


def _are_finite(inputs: Mapping[str, Value]) -> bool:
    arrays = (array for value in inputs.values() for array in tensors_of(value))
    return all(bool(is_finite(array[block]).all()) for array in arrays for block in blocks(array))


def obstacle_of(run: EngineRun) -> EngineFailure | None:
    """Return the first failure that is a limit of the engine and says nothing about the models."""
    return next((failure for failure in run.failures if failure.unsupported), None)


def _describe(failure: EngineFailure) -> str:
    if failure.stage == "library":
        return failure.reason
    which = "first" if failure.model == 0 else "second"
    doing = "loading" if failure.stage == "load" else "running"
    return f"{doing} the {which} model: {failure.reason}"


def find_unexpected(
    before: ComparedModel,
    outputs: Mapping[tuple[int, int], Sequence[Value]],
    cases: Mapping[tuple[int, int], GivenCase],
    plain: Comparison,
) -> Diagnostic | None:
    """Return a warning about the first output that is not as expected; None without one, and for random numbers.

    outputs: of the first model. cases: what the caller gave, for the same keys. plain: has the tolerances of the two
    models, which hold here if they are larger.
    """
    if before.draws_random_numbers:
        return None
    names = [value.name for value in before.interface.graph.output]
    for key, case in sorted(cases.items(), key=lambda item: item[0]):
        for position, wanted in case.outputs.items():
            comparison = _comparison_with_expected(wanted, plain)
            difference = comparison.compare_outputs([names[position]], [wanted], [outputs[key][position]], key[0])
            if difference is not None:
                text = (
                    f"the first model does not give the outputs of {case.name}: {difference.name}: {difference.reason}"
                )
                return diagnostic("SG509", text, severity="warning")
    return None


def _comparison_with_expected(wanted: Value, plain: Comparison) -> Comparison:
    arrays = [array for array in tensors_of(wanted) if array.dtype.kind == "f" or "float" in array.dtype.name]
    sizes = [np.abs(array[is_finite(array)].astype(np.float64)) for array in arrays]
    largest = max([1.0, *(float(size.max()) for size in sizes if size.size)])
    sides = ("the test data has", "the model")
    tolerances = max(plain.rtol, _RTOL_OF_TEST_DATA), max(plain.atol, _ATOL_OF_TEST_DATA * largest)
    return Comparison(*tolerances, sides=sides, deadline=plain.deadline)


def openvino_fault(analysis: Analysis) -> str | None:
    """Return the first known fault of OpenVINO that affects a model; None without one."""
    for split in analysis.splits:
        fault = _fault_at(split)
        if fault is not None:
            return f"{split.location}: {fault}"
    for node, imports in scoped_nodes(analysis.model):
        if not (node.op_type == "Split" and is_default_domain(node.domain) and imports.get("", 0) < 2):
            continue
        if len(node.input) > 1 and node.input[1]:
            return f"{node.name or node.op_type}: OpenVINO ignores the lengths input of Split-1"
    return None


def _fault_at(split: SplitReport) -> str | None:
    if split.op not in ("Split", "VariadicSplit"):
        return None
    if split.input.dtype == "string":
        return "OpenVINO gives wrong values or crashes when it splits strings"
    if split.input.dtype in _PACKED and split.axis != 0:
        return f"OpenVINO gives wrong values when it splits {split.input.dtype} along any axis except the first"
    return None


def deployment_note(run: EngineRun) -> Diagnostic | None:
    """Return a warning if the second model does not load with the default optimisations of onnxruntime, or gives other
    outputs with them, which the first model does not.
    """
    failures, own = run.undeployed, run.undeployed.get(1)
    if not own and 1 in run.deviating and 0 not in run.deviating:
        text = f"with its default optimisations, onnxruntime runs the result otherwise: it {run.deviating[1]}"
        help = f"Set SessionOptions.graph_optimization_level to {LEVELS[-1]}, or try another version of onnxruntime."
        return diagnostic("SG508", text, severity="warning", help=help)
    if not own:
        return None
    works = next(level for level in LEVELS if level not in own)
    text = f"onnxruntime loads the result with {works}, but not with its default, {LEVELS[0]}: {own[LEVELS[0]]}"
    if LEVELS[0] in failures.get(0, {}):
        text += ". The first model fails in the same way, so the rewrite is not the cause"
    help = f"Set SessionOptions.graph_optimization_level to {works}, or try another version of onnxruntime."
    return diagnostic("SG508", text, severity="warning", help=help)
