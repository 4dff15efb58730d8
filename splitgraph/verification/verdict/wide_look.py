"""Look once more at models that only run as a whole: OpenVINO IR has no regions whose limits and tables could be drawn.

Both models run on inputs at which a difference may show that ordinary numbers hide (see `wide_inputs`). A difference
counts where it shows again on inputs that are a little off, because engines round in ways of their own; on large
numbers, it has to be large beside the numbers of the output. What shows at exact limits alone may be rounding, too, or
on numbers that may be off by next to nothing: then there is no verdict. Nor is there one where one model alone gives
NaN or an infinity on numbers that need not be ordinary: formulas overflow where kernels do not.

Where two engines run the models (one clips NaN, the other passes it on), OpenVINO runs both first: it alone tells
models apart, and not engines.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from splitgraph.model.schemas import kinds
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engines.engine_process import Attempt, EngineRun
from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.values import Array, Value, tensors_of
from splitgraph.verification.verdict.wide_inputs import WideCase, WideInputs
from splitgraph.verification.verification import Difference

# So large beside the largest number of an output is no rounding: of one engine, between two, and between two where one
# of them gives the same for both models.
_SHARE, _SHARE_BETWEEN, _SHARE_AT_MOST = 1e-3, 1e-2, 0.1
_LEAST = 1e-4
# So many cases at least and at most; of those that differ, so many run again.
_FEWEST, _MOST, _MOST_AGAIN = 16, 256, 3
# Operators and layers that order numbers, and parts of the names of those that select boxes.
_ORDERING = kinds.ARG_REDUCES | {"Hardmax", "Sort", "TopK", "Unique"}
_SELECTING = ("NonMaxSuppression", "Nms", "DetectionOutput", "Proposal")
# So many of the inputs on which two engines agree run by one of them alone.
_MOST_USUAL = 3

Run = Callable[[Sequence[Attempt], float], EngineRun]


class Wide(NamedTuple):
    """What a wide look found. difference: the first one. is_clear: it is more than a tie at an exact limit, or a number
    that overflows in one model alone. attempts: what both models ran on, without ties.
    """

    difference: Difference | None = None
    is_clear: bool = True
    attempts: Sequence[Attempt] = ()


class _Apart(NamedTuple):
    """A case on which the outputs differ. place: among the cases. is_finite: numbers differ."""

    place: int
    difference: Difference
    is_finite: bool = True


class WideRunner(NamedTuple):
    """Runs both models. run: for at most so many seconds. comparison: of outputs on numbers of ordinary size. share: on
    others, what is larger is no rounding. is_one: by one engine, from weights of one precision. overflow_tells: it says
    something where one model alone gives NaN or an infinity. is_sure: so does what differs on large numbers.
    """

    run: Run
    comparison: Comparison
    share: float
    is_one: bool
    overflow_tells: bool
    is_sure: bool = True


def runner_of(run: Run, comparison: Comparison, *, is_one: bool, overflow_tells: bool = True) -> WideRunner:
    """Return a runner with the share of what it runs by."""
    return WideRunner(run, comparison, _SHARE if is_one else _SHARE_BETWEEN, is_one, overflow_tells)


@dataclass(frozen=True, slots=True)
class WideLook:
    """Runs both models on further inputs. inputs: draws them. runner: for the verdict. alone: by OpenVINO, where two
    engines run the models otherwise. names: of the outputs.
    """

    inputs: WideInputs
    runner: WideRunner
    alone: WideRunner | None
    names: Sequence[str]

    def find(self, accepted: Sequence[Attempt], count: int, ends: float) -> Wide:
        """Return the first difference. accepted: what both models ran on before. count: how many cases there is time
        for. ends: as `time.monotonic` tells it.
        """
        number = max(attempt.case for attempt in accepted) + 1
        cases = list(itertools.islice(self.inputs.cases(), max(_FEWEST, min(count, _MOST))))
        if self.alone is None:
            return self._look(self.runner, cases, number, ends)
        usual = [WideCase(attempt.inputs, is_ordinary=True) for attempt in accepted[:_MOST_USUAL]]
        alone = self._look(self.alone, [*usual, *cases], number, ends)
        if alone.difference is not None:
            return alone
        runner = self.runner
        if alone.attempts:
            # What differs now, is the engines, and not the models: by a little, this is rounding.
            runner = runner._replace(share=_SHARE_AT_MOST, overflow_tells=False, is_sure=False)
        both = self._look(runner, [case for case in cases if not case.has_ties], number, ends)
        return both._replace(attempts=alone.attempts or both.attempts)

    def _look(self, runner: WideRunner, cases: Sequence[WideCase], number: int, ends: float) -> Wide:
        """Return the first difference that shows again, a clear one before others; else what both models ran on.

        number: of the first case. ends: as `time.monotonic` tells it.
        """
        if not runner.is_one and any(map(_orders_numbers, self.inputs.pair)):
            # Behind a limit numbers are equal, and each engine has an order of its own for these.
            cases = [case for case in cases if case.is_ordinary]
        both, apart = self._apart(runner, cases, number, ends)
        found = self._shown_again(runner, cases, apart[:_MOST_AGAIN], number, ends)
        if found:
            return max(found, key=lambda each: each.is_clear)
        plain = sorted(set(both) - {each.place for each in apart})
        attempts = [Attempt(number + at, 0, cases[at].inputs) for at in plain if not cases[at].has_ties]
        return Wide(attempts=attempts)

    def _shown_again(
        self, runner: WideRunner, cases: Sequence[WideCase], apart: Sequence[_Apart], number: int, ends: float
    ) -> list[Wide]:
        """Return those of the differences that show again on inputs that are a little off. One that had no time to run
        again stays, but is not clear.
        """
        wrong = [cases[each.place] for each in apart]
        rng, names = np.random.default_rng(self.inputs.seed + 1), self.inputs.maker.varying()
        again = [*(case.moved(names, rng) for case in wrong), *(case.nearly(names, rng) for case in wrong)]
        ran, differ = self._apart(runner, again, number, ends) if again else ([], [])
        confirmed = {each.place for each in differ}
        found = []
        for at, (told, case) in enumerate(zip(apart, wrong, strict=True)):
            # The places of the two inputs that stand for this case.
            own = {at, at + len(wrong)}
            if not own & confirmed and own & set(ran):
                continue
            where = "at exact limits" if case.has_ties else "on numbers around limits, rows of tables or other sizes"
            difference = replace(told.difference, reason=f"{told.difference.reason}, {where}")
            is_clear = at in confirmed and told.is_finite and not case.has_ties and not case.is_large
            found.append(Wide(difference, is_clear and (runner.is_sure or case.is_ordinary)))
        return found

    def _apart(
        self, runner: WideRunner, cases: Sequence[WideCase], number: int, ends: float
    ) -> tuple[list[int], list[_Apart]]:
        """Return the cases that both models ran on, and those on which the outputs differ: what tells most first."""
        attempts = [Attempt(number + place, 0, case.inputs) for place, case in enumerate(cases)]
        ran = runner.run(attempts, max(ends - time.monotonic(), 0.0))
        both, found = [], []
        for place, case in enumerate(cases):
            key = (number + place, 0)
            if key in ran.outputs[0] and key in ran.outputs[1]:
                both.append(place)
                pair = ran.outputs[0][key], ran.outputs[1][key]
                if case.is_ordinary:
                    usual = runner.comparison.compare_outputs(self.names, *pair, number + place)
                    found += [] if usual is None else [_Apart(place, usual)]
                else:
                    kinds = (True, False) if runner.overflow_tells and not case.is_large else (True,)
                    found += self._compared(*pair, (place, number + place), runner.share, kinds)
        return both, sorted(found, key=lambda each: _rank(cases[each.place], each))

    def _compared(
        self,
        before: Sequence[Value],
        after: Sequence[Value],
        place: tuple[int, int],
        share: float,
        kinds: Sequence[bool],
    ) -> Iterator[_Apart]:
        """Yield how outputs differ clearly, or else where one of them alone is not finite. place: among the cases, and
        the number of the case. kinds: finite, or not.
        """
        pairs = [
            (name, left, right)
            for name, one, other in zip(self.names, before, after, strict=True)
            for left, right in zip(tensors_of(one), tensors_of(other), strict=False)
        ]
        for is_finite in kinds:
            for name, left, right in pairs:
                reason = _difference(left, right, share) if is_finite else _overflow(left, right)
                if reason:
                    yield _Apart(place[0], Difference(name, place[1], reason), is_finite)
                    return


def _rank(case: WideCase, apart: _Apart) -> tuple[bool, bool, bool]:
    return case.has_ties, not apart.is_finite, case.is_large


def overflows_alone(ran: EngineRun) -> bool:
    """Return True if one model alone gives NaN or an infinity."""
    return any(
        _overflow(left, right)
        for key, outputs in ran.outputs[0].items()
        for one, other in zip(outputs, ran.outputs[1].get(key, ()), strict=False)
        for left, right in zip(tensors_of(one), tensors_of(other), strict=False)
    )


def _orders_numbers(model: ComparedModel) -> bool:
    """Return True if a node gives positions of numbers in an order. A MaxPool of OpenVINO always has these as an
    output, and one of ONNX if somebody reads them.
    """
    nodes = [node for node, _ in scoped_nodes(model.analysis.model)]
    has_places = any(node.op_type == "MaxPool" and len(node.output) > 1 for node in nodes) and not model.is_ir
    names = (node.op_type for node in nodes)
    return has_places or any(name in _ORDERING or any(part in name for part in _SELECTING) for name in names)


def _difference(left: Array, right: Array, share: float) -> str:
    """Return how two tensors differ clearly; "" if they do not."""
    if left.shape != right.shape:
        return f"the first model gives the shape {list(left.shape)}, the second {list(right.shape)}"
    if left.dtype.kind in "OUS" or left.dtype != right.dtype:
        return ""
    if left.dtype.kind in "iub":
        wrong = left != right
    else:
        one, other = left.astype(np.float64), right.astype(np.float64)
        is_finite = np.isfinite(one) & np.isfinite(other)
        most = np.abs(one[is_finite]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            wrong = is_finite & (np.abs(one - other) > share * most + _LEAST)
    return _told(wrong, left, right)


def _overflow(left: Array, right: Array) -> str:
    """Return where one of two tensors alone has a number that is not finite; "" for nowhere."""
    if left.shape != right.shape or left.dtype != right.dtype or left.dtype.kind in "OUSiub":
        return ""
    one, other = left.astype(np.float64), right.astype(np.float64)
    return _told(np.isfinite(one) != np.isfinite(other), left, right)


def _told(wrong: Array, left: Array, right: Array) -> str:
    if not wrong.any():
        return ""
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    where = f"at {[int(index) for index in place]} " if wrong.ndim else ""
    return f"{where}the first model gives {left[place]}, the second {right[place]}"
