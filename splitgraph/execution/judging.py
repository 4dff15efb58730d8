"""What follows from a run of both models by one engine: which values differ, what was refused, what did not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution import advice
from splitgraph.execution.child import EngineRun, Failure
from splitgraph.execution.comparison import Comparison, caller_inputs, misfits, mistyped
from splitgraph.execution.engines import is_known_limit
from splitgraph.execution.subjects import Subject
from splitgraph.execution.values import Value
from splitgraph.execution.verification import Difference, Verdict

# The inputs of every attempt at every case.
Given = Mapping[tuple[int, int], Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one engine found: a verdict, or None with the reason why it did not run.

    refusal: the second model refused inputs on which the first one ran, or is itself refused as invalid. is_final: no
    other engine can overrule that. inputs_refused: the first model ran on none of the inputs. notes: what limits the
    verdict, or why there is none that another engine could give.
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
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges runs of two models. samples: how many cases there should be."""

    before: Subject
    after: Subject
    samples: int

    def judge(self, run: EngineRun, given: Given, comparison: Comparison) -> Outcome:
        """What the run shows; comparison: of numbers."""
        compared = 0
        for key in sorted(run.outputs[0]):
            difference = self._misdeclared_input(key[0], given[key])
            outputs = run.outputs[0][key], run.outputs[1].get(key)
            if difference is None and outputs[1] is not None:
                mistaken = mistyped(self.before.interface.graph.output, self._named(outputs[0]))
                if mistaken:
                    name, reason = next(iter(mistaken.items()))
                    return Outcome(None, f"gives an output of the wrong type: {name} is {reason}")
                difference = self._difference(comparison, key[0], outputs[0], outputs[1])
                compared += 1
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
            reason = f"the model after is refused as invalid, the one before runs: {obstacle.reason}"
            return Outcome(None, reason, Difference("", None, reason), is_final=True)
        if obstacle is not None:
            return Outcome(None, _describe(obstacle))
        if refusal is not None:
            return refusal
        if not compared:
            first = next((failure.reason for failure in run.failures), "no inputs were tried")
            reason = f"the model before runs on none of the inputs tried: {first}"
            return Outcome(None, reason, inputs_refused=True)
        left_out = self.samples - len({case for case, _ in run.outputs[0] if case < self.samples})
        count = f"{left_out} of {self.samples} cases were left out"
        text = f"{count}: the model before runs on none of the inputs tried for them"
        note = diagnostic("SG503", text, severity="info", help=advice.INPUTS)
        diffs = comparison.max_abs_diff, comparison.max_rel_diff
        return Outcome("equal", "", None, False, None, compared, *diffs, notes=(note,) if left_out else ())

    def _refusal(self, run: EngineRun, comparison: Comparison, compared: int) -> Outcome | None:
        """The second model refusing what the first one ran on, None where it does not."""
        refused = [failure for failure in run.failures if failure.model == 1 and not failure.unsupported]
        if not refused:
            return None
        first = next((failure for failure in refused if not is_known_limit(failure.reason)), None)
        # A crash may explain why it ran on none.
        is_final = first is not None and (compared > 0 or (self.after.is_ir and obstacle_of(run) is None))
        first = first or refused[0]
        reason = f"the model after fails on inputs on which the one before runs: {first.reason}"
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


def obstacle_of(run: EngineRun) -> Failure | None:
    """The first failure that says something of the engine and nothing of the models."""
    return next((failure for failure in run.failures if failure.unsupported), None)


def _describe(failure: Failure) -> str:
    which = "before" if failure.model == 0 else "after"
    doing = "loading" if failure.stage == "load" else "running"
    return f"{doing} the model {which}: {failure.reason}"
