"""Find the first node that a runtime refuses or computes wrong, by halving over the nodes in topological order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import onnx

from splitgraph.runtimes.runners.result import FirstNode, failing
from splitgraph.runtimes.runners.runner import JobAnswer
from splitgraph.verification.in_runtime.agreement import Disagreement, first_disagreement, new_comparison
from splitgraph.verification.in_runtime.cases import Case
from splitgraph.verification.in_runtime.hosts import Host, HostRun
from splitgraph.verification.in_runtime.prefixes import CutModel
from splitgraph.verification.values import Value


@dataclass(frozen=True, slots=True)
class _Trial:
    """What became of a part of the model: the answer of the runtime, and what differs if it ran. is_right: nothing."""

    answer: JobAnswer
    said: str = ""
    is_right: bool = False


# A part that has no outputs, or that the reference does not run, is no fault of the runtime.
_NOTHING = _Trial("ran", is_right=True)


@dataclass(slots=True)
class Search:
    """Looks for the first node. cut: the model. case: inputs for which the runtime fails. reference: gives the expected
    values. host: the runtime. seconds: for each run. deadline: as `time.monotonic` tells it.
    """

    cut: CutModel
    case: Case
    reference: Host
    host: Host
    seconds: float
    deadline: float

    def find(self) -> FirstNode | None:
        """Return the first node; None if no part of the model fails, or the time is over."""
        whole = self._trial(self.cut.prefix(len(self.cut.nodes)))
        if whole.is_right:
            return None
        found = self._first(whole, lambda trial: trial.is_right)
        if found is None or found.alone is not True or found.cause or whole.answer == "ran" or found.answer != "wrong":
            return found
        # With other outputs, the part up to there gives other values. That does not say why the model is refused.
        refused = self._first(whole, lambda trial: trial.answer == "ran")
        return refused if refused is not None and refused.alone is False else found

    def _first(self, whole: _Trial, is_past: Callable[[_Trial], bool]) -> FirstNode | None:
        """Return the first node after which the part of the model up to it is not past a test; None if the time is
        over. whole: what became of the model.
        """
        low, high, right, failed = 0, len(self.cut.nodes), set[int](), whole
        while high - low > 1:
            if time.monotonic() > self.deadline:
                return None
            middle = (low + high) // 2
            trial = self._trial(self.cut.prefix(middle))
            if is_past(trial):
                low = middle
                right |= self.cut.needed_by(middle)
            else:
                high, failed = middle, trial
        index, failed = self._unseen(high - 1, right, failed, is_past)
        return self._named(self.cut.with_sequences(index, right), failed)

    def _unseen(
        self, last: int, right: Collection[int], failed: _Trial, is_past: Callable[[_Trial], bool]
    ) -> tuple[int, _Trial]:
        """Return the node at which a part fails, and what becomes of it: the last one, or one that makes what the last
        one reads. No part has shown some of these: parts give floating-point values alone where they have some.
        """
        for index in self.cut.needed_for(last):
            if index not in right and time.monotonic() <= self.deadline:
                trial = self._trial(self.cut.up_to(index))
                if not is_past(trial):
                    return index, trial
        return last, failed

    def _named(self, group: Sequence[int], failed: _Trial) -> FirstNode:
        """Return the first node. group: the node that was seen to fail, after those that make its sequences."""
        first, last = group[0], group[-1]
        location, operator = self.cut.place(first)
        own = self._trial(self.cut.up_to(last))
        trial = self._alone(group)
        alone = None if trial is None else trial.is_right
        # Beside other nodes and outputs, the words may be about those.
        told = next((each for each in (trial, own) if each is not None and not each.is_right), failed)
        cause = self._cause(group) if alone else ""
        until = "" if first == last else self.cut.place(last)[0]
        number = len(self.cut.nodes)
        return FirstNode(location, operator, first + 1, number, failing(told.answer), told.said, alone, cause, until)

    def _cause(self, group: Sequence[int]) -> str:
        """Return the location of the node that makes sizes for nodes that run alone: the runtime runs them, too, if its
        results are constants, and not with those of earlier nodes alone. Return "" if there is none.
        """
        chain = self.cut.sizes_behind(group)
        asked = self.cut.made_by(chain)
        if asked is None:
            return ""
        known = self._values(asked)
        if known is None:
            return ""
        values = dict(zip([value.name for value in asked.graph.output], known, strict=True))

        def is_right(count: int) -> bool:
            names = [name for index in chain[:count] for name in self.cut.nodes[index].output if name]
            model = self.cut.with_constants(group[-1], {name: values[name] for name in names})
            return model is not None and self._trial(model, reference=self.cut.up_to(group[-1])).is_right

        low, high = 0, len(chain)
        if not is_right(high):
            return ""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_right(middle) else (middle, high)
        return self.cut.place(chain[high - 1])[0]

    def _trial(
        self, model: onnx.ModelProto | None, case: Case | None = None, *, reference: onnx.ModelProto | None = None
    ) -> _Trial:
        """Run a part of the model in both. case: other inputs, with what is expected. reference: the part that gives
        what is expected; None for the same.
        """
        if model is None:
            return _NOTHING
        if case is None:
            values = self._values(model if reference is None else reference)
            if values is None:
                return _NOTHING
            case = Case(self.cut.given(model, self.case.inputs), values)
        (run,) = self.host.run(model, [case.inputs], self.seconds)
        return _judged(model, case.expected, run, self.reference.label, self.host.label)

    def _values(self, model: onnx.ModelProto) -> Sequence[Value] | None:
        """Return what a part of the model gives; None if the reference does not run it."""
        (run,) = self.reference.run(model, [self.cut.given(model, self.case.inputs)], self.seconds)
        return run.values

    def _alone(self, group: Sequence[int]) -> _Trial | None:
        """Run nodes alone; return None if that cannot be tried."""
        cut, values = self.cut, {name: self.case.inputs[name] for name in self.cut.inputs_of(group)}
        names = cut.read_by(group)
        if names:
            asked = cut.values_for(group)
            if asked is None:
                return None
            known = self._values(asked)
            if known is None:
                return None
            values |= zip(names, known, strict=True)
        made = cut.alone(group, values)
        if made is None:
            return None
        model, inputs = made
        (expected,) = self.reference.run(model, [inputs], self.seconds)
        if expected.values is None:
            return None
        trial = self._trial(model, Case(inputs, expected.values))
        return None if trial.answer == "not given" else trial


def _judged(model: onnx.ModelProto, wanted: Sequence[Value], run: HostRun, reference: str, host: str) -> _Trial:
    if run.values is None:
        # What the bindings cannot give says nothing about the runtime.
        return _Trial(run.answer, run.said, is_right=run.answer == "not given")
    names = [value.name for value in model.graph.output]
    found: Disagreement | None = first_disagreement(names, wanted, run.values, new_comparison(reference, host))
    if found is None or found.only_rank:
        return _Trial("ran", is_right=True)
    return _Trial("ran", found.reason)
