"""Judge the runs of both models by one engine: which values differ, what was refused, what did not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution import help_texts
from splitgraph.execution.comparison import Comparison, is_finite
from splitgraph.execution.engines.engine_process import EngineRun, Failure
from splitgraph.execution.engines.error_texts import is_known_limit
from splitgraph.execution.models.interfaces import caller_inputs, wrong_shapes, wrong_types
from splitgraph.execution.models.model_pair import ComparedModel
from splitgraph.execution.values import Value, blocks, tensors_of
from splitgraph.execution.verification import Difference, Verdict

# The inputs of each attempt, by case and attempt.
Given = Mapping[tuple[int, int], Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds the verdict of one engine, or None with the reason why it did not decide.

    refusal: the second model failed on inputs that the first one ran on, or is invalid. is_final: no other engine can
    overrule the refusal. inputs_refused: the first model ran on none of the inputs. providers: what the models ran on.
    notes: what limits the verdict, or why no other engine is asked.
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


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the runs of two models. samples: the number of cases that were planned."""

    before: ComparedModel
    after: ComparedModel
    samples: int

    def judge(self, run: EngineRun, given: Given, comparison: Comparison) -> Outcome:
        """Return the outcome of the runs."""
        compared = 0
        for key in sorted(run.outputs[0]):
            difference = self._wrongly_declared_input(key[0], given[key])
            before, after = run.outputs[0][key], run.outputs[1].get(key)
            if difference is None and after is not None:
                mistyped = wrong_types(self.before.interface.graph.output, self._named(before))
                if mistyped:
                    name, reason = next(iter(mistyped.items()))
                    return Outcome(None, f"gives an output of the wrong type: {name} is {reason}")
                difference = self._difference(comparison, key[0], before, after)
                compared += 1
            if difference is not None and comparison.only_finite and not _are_finite(given[key]):
                continue  # engines treat NaN and infinite inputs differently
            if difference is not None:
                diffs = comparison.max_abs_diff, comparison.max_rel_diff
                return Outcome("different", "", None, False, difference, compared, *diffs)
        return self._without_difference(run, comparison, compared)

    def _without_difference(self, run: EngineRun, comparison: Comparison, compared: int) -> Outcome:
        refusal = self._refusal(run, comparison, compared)
        if refusal is not None and refusal.is_final:
            return refusal
        obstacle = obstacle_of(run)
        if obstacle is not None and obstacle.invalid and run.outputs[0]:
            reason = f"the second model is invalid, but the first one runs: {obstacle.reason}"
            return Outcome(None, reason, Difference("", None, reason), is_final=True)
        if obstacle is not None:
            return Outcome(None, _describe(obstacle))
        if refusal is not None:
            return refusal
        if not compared:
            first = next((failure.reason for failure in run.failures), "no inputs were tried")
            reason = f"the first model ran on none of the inputs that were tried: {first}"
            return Outcome(None, reason, inputs_refused=True)
        skipped = self.samples - len({case for case, _ in run.outputs[0] if case < self.samples})
        count = f"{skipped} of {self.samples} cases were skipped"
        text = f"{count}: the first model ran on none of the inputs that were tried for them"
        note = diagnostic("SG503", text, severity="info", help=help_texts.INPUTS)
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return Outcome("equal", "", None, False, None, compared, *diffs, notes=(note,) if skipped else ())

    def _refusal(self, run: EngineRun, comparison: Comparison, compared: int) -> Outcome | None:
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
        return Outcome(None, reason, difference, is_final, None, compared, *diffs)

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


def obstacle_of(run: EngineRun) -> Failure | None:
    """Return the first failure that is a limit of the engine and says nothing about the models."""
    return next((failure for failure in run.failures if failure.unsupported), None)


def _describe(failure: Failure) -> str:
    if failure.stage == "library":
        return failure.reason
    which = "first" if failure.model == 0 else "second"
    doing = "loading" if failure.stage == "load" else "running"
    return f"{doing} the {which} model: {failure.reason}"
