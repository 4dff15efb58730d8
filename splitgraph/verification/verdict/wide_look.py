"""Look once more at models that only run as a whole: OpenVINO IR has no regions whose limits and tables could be drawn.

Both models run on inputs at which a difference may show that ordinary numbers hide (see `wide_inputs`). A
difference counts where it shows again on inputs that are a little off, because engines round in ways of their own; on
large numbers, it has to be large beside the numbers of the output. What shows at exact limits alone may be rounding,
too: then there is no verdict. Nor is there one where one model alone gives NaN or an infinity on numbers that need not
be ordinary: formulas overflow where kernels do not. Where ordinary numbers show the same of two engines already (one
clips NaN, the other passes it on), it says nothing.

Of two IRs, constants that have one name and other elements must have been read: a run of the second model with
other elements there gives something else (see `regions.reading` for ONNX models).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engines.engine_process import Attempt, EngineRun, Workplace, workplace
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.ir_constants import ChangedConstant, changed_constants, with_other_elements
from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.values import Array, Value, tensors_of
from splitgraph.verification.verdict.wide_inputs import WideCase, off_again, wide_cases
from splitgraph.verification.verification import Difference

# So large beside the largest number of an output is no rounding: of one engine, and between two.
_SHARE, _SHARE_BETWEEN = 1e-3, 1e-2
_LEAST = 1e-4
# So many cases at least and at most; of those that differ, so many run again.
_FEWEST, _MOST, _MOST_AGAIN = 16, 64, 3
# Operators and layers that order numbers, and parts of the names of those that select boxes.
_ORDERING = frozenset({"ArgMax", "ArgMin", "Hardmax", "Sort", "TopK", "Unique"})
_SELECTING = ("NonMaxSuppression", "Nms", "DetectionOutput", "Proposal")
# So many constants that differ are asked for.
_MOST_CONSTANTS = 8

Run = Callable[[Sequence[Attempt], float], EngineRun]


class Wide(NamedTuple):
    """What a wide look found. difference: the first one. is_clear: it is more than a tie at an exact limit, or a number
    that overflows in one model alone.
    """

    difference: Difference | None = None
    is_clear: bool = True


class _Apart(NamedTuple):
    """A case on which the outputs differ. place: among the cases. is_finite: numbers differ."""

    place: int
    difference: Difference
    is_finite: bool = True


@dataclass(frozen=True, slots=True)
class WideLook:
    """Runs both models on further inputs. run: both models, for at most so many seconds. comparison: of outputs on
    numbers of ordinary size. is_one: by one engine, from weights of one precision. names: of the outputs.
    overflow_tells: it says something where one model alone gives NaN or an infinity.
    """

    pair: tuple[ComparedModel, ComparedModel]
    maker: InputMaker
    run: Run
    comparison: Comparison
    names: Sequence[str]
    is_one: bool
    seed: int
    overflow_tells: bool

    def find(self, base: Mapping[str, Value], number: int, count: int, ends: float) -> Wide:
        """Return the first difference. base: inputs that the first model accepts. number: of the first new case. count:
        how many there is time for. ends: as `time.monotonic` tells it.
        """
        drawn = wide_cases(self.pair, self.maker, base, self.seed, has_ties=self.is_one)
        if not self.is_one and any(map(_orders_numbers, self.pair)):
            # Behind a limit numbers are equal, and each engine has an order of its own for these.
            drawn = (case for case in drawn if case.is_ordinary)
        cases = list(itertools.islice(drawn, max(_FEWEST, min(count, _MOST))))
        apart = self._apart(cases, number, ends)[:_MOST_AGAIN]
        names = self.maker.varying()
        again = [off_again(cases[each.place], names, self.seed + 1) for each in apart]
        confirmed = {each.place for each in self._apart(again, number, ends)} if again else set()
        for told in (each for at, each in enumerate(apart) if at in confirmed):
            has_ties = cases[told.place].has_ties
            where = "at exact limits" if has_ties else "on numbers around limits, rows of tables or other sizes"
            difference = replace(told.difference, reason=f"{told.difference.reason}, {where}")
            return Wide(difference, told.is_finite and not has_ties)
        return Wide()

    def _apart(self, cases: Sequence[WideCase], number: int, ends: float) -> list[_Apart]:
        """Return the cases on which the outputs differ: those that tell most first."""
        attempts = [Attempt(number + place, 0, case.inputs) for place, case in enumerate(cases)]
        ran = self.run(attempts, max(ends - time.monotonic(), 0.0))
        found = []
        for place, case in enumerate(cases):
            key = (number + place, 0)
            if key in ran.outputs[0] and key in ran.outputs[1]:
                pair = ran.outputs[0][key], ran.outputs[1][key]
                if case.is_ordinary:
                    usual = self.comparison.compare_outputs(self.names, *pair, number + place)
                    found += [] if usual is None else [_Apart(place, usual)]
                else:
                    found += self._compared(*pair, place, number + place)
        return sorted(found, key=lambda each: (cases[each.place].has_ties, not each.is_finite))

    def _compared(self, before: Sequence[Value], after: Sequence[Value], place: int, case: int) -> Iterator[_Apart]:
        """Yield how outputs differ clearly, or else where one of them alone is not finite."""
        share = _SHARE if self.is_one else _SHARE_BETWEEN
        pairs = [
            (name, left, right)
            for name, one, other in zip(self.names, before, after, strict=True)
            for left, right in zip(tensors_of(one), tensors_of(other), strict=False)
        ]
        for is_finite in (True, False) if self.overflow_tells else (True,):
            for name, left, right in pairs:
                reason = _difference(left, right, share) if is_finite else _overflow(left, right)
                if reason:
                    yield _Apart(place, Difference(name, case, reason), is_finite)
                    return


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


def unread_constants(
    pair: tuple[ComparedModel, ComparedModel], place: Workplace, attempts: Sequence[Attempt], ends: float
) -> Iterator[ChangedConstant]:
    """Yield the constants of two IRs that differ, and that no run reads. attempts: what both models ran on."""
    first, second = pair[0].model, pair[1].model
    if not isinstance(first, OpenVINOModel) or not isinstance(second, OpenVINOModel):
        return
    ports = None if pair[1].ports is None else pair[1].ports.as_json()
    for change in itertools.islice(changed_constants(first, second), _MOST_CONSTANTS):
        left = ends - time.monotonic()
        if left <= 0:
            return
        models = [second, with_other_elements(second, change)]
        with workplace(models, (ports, ports), settings=place.settings) as own:
            ran = own.run("openvino", attempts, left)
        if ran.outputs[0] and ran.outputs[1].keys() == ran.outputs[0].keys() and not _differs(ran):
            yield change


def _differs(ran: EngineRun) -> bool:
    for key, outputs in ran.outputs[0].items():
        for one, other in zip(outputs, ran.outputs[1][key], strict=True):
            for left, right in zip(tensors_of(one), tensors_of(other), strict=False):
                if left.shape != right.shape or left.tobytes() != right.tobytes():
                    return True
    return False
