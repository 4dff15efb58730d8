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
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.formats.openvino_ir import OpenVINOModel
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine_process import Attempt, EngineRun, workplace
from splitgraph.verification.models.ir_constants import ChangedConstant, changed_constants, with_other_elements
from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.values import Array, Value, tensors_of
from splitgraph.verification.verdict.ir_and_onnx import constants_of_one
from splitgraph.verification.verdict.wide_inputs import WideCase, WideInputs
from splitgraph.verification.verification import Difference

# So large beside the largest number of an output is no rounding: of one engine, between two, and between two that
# differ on one model.
_SHARE, _SHARE_BETWEEN, _SHARE_AT_MOST = 1e-3, 1e-2, 0.1
_LEAST = 1e-4
# So many cases at least and at most; of those that differ, so many run again.
_FEWEST, _MOST, _MOST_AGAIN = 16, 256, 3
# Operators and layers that order numbers, and parts of the names of those that select boxes.
_ORDERING = frozenset({"ArgMax", "ArgMin", "Hardmax", "Sort", "TopK", "Unique"})
_SELECTING = ("NonMaxSuppression", "Nms", "DetectionOutput", "Proposal")
# So many constants that differ are asked for, and so many of their rows come first.
_MOST_CONSTANTS, _MOST_ROWS = 8, 64

Run = Callable[[Sequence[Attempt], float], EngineRun]


class Wide(NamedTuple):
    """What a wide look found. difference: the first one. is_clear: it is more than a tie at an exact limit, or a number
    that overflows in one model alone. attempts: what both models ran on, without ties.
    """

    difference: Difference | None = None
    is_clear: bool = True
    attempts: Sequence[Attempt] = ()


class _Apart(NamedTuple):
    """A case on which the outputs differ. place: among the cases. is_finite: numbers differ. share: by so much, beside
    the largest number of the output.
    """

    place: int
    difference: Difference
    is_finite: bool = True
    share: float = math.inf


@dataclass(frozen=True, slots=True)
class WideLook:
    """Runs both models on further inputs. inputs: draws them. run: both models, for at most so many seconds. run_alike:
    both by OpenVINO, where two engines run them otherwise. comparison: of outputs on numbers of ordinary size. names:
    of the outputs. overflow_tells: it says something where one model alone gives NaN or an infinity.
    """

    inputs: WideInputs
    run: Run
    run_alike: Run | None
    comparison: Comparison
    names: Sequence[str]
    overflow_tells: bool

    def find(self, number: int, count: int, ends: float) -> Wide:
        """Return the first difference. number: of the first new case. count: how many there is time for. ends: as
        `time.monotonic` tells it.
        """
        drawn = self.inputs.cases()
        if not self.inputs.is_one and any(map(_orders_numbers, self.inputs.pair)):
            # Behind a limit numbers are equal, and each engine has an order of its own for these.
            drawn = (case for case in drawn if case.is_ordinary)
        cases = list(itertools.islice(drawn, max(_FEWEST, min(count, _MOST))))
        both, apart = self._apart(cases, number, ends)
        apart = apart[:_MOST_AGAIN]
        rng, names = np.random.default_rng(self.inputs.seed + 1), self.inputs.maker.varying()
        again = [cases[each.place].moved(names, rng) for each in apart]
        confirmed = {each.place for each in self._apart(again, number, ends)[1]} if again else set()
        alike = self._alike([cases[each.place] for each in apart], number, ends) if confirmed else set()
        for at, told in enumerate(apart):
            # Where OpenVINO gives one result for both models, the engines differ: by a little, this is rounding.
            if at not in confirmed or (at in alike and told.share <= _SHARE_AT_MOST):
                continue
            case = cases[told.place]
            where = "at exact limits" if case.has_ties else "on numbers around limits, rows of tables or other sizes"
            difference = replace(told.difference, reason=f"{told.difference.reason}, {where}")
            return Wide(difference, at not in alike and told.is_finite and not case.has_ties and not case.is_large)
        plain = [place for place in both if not cases[place].has_ties]
        return Wide(attempts=[Attempt(number + place, 0, cases[place].inputs) for place in plain])

    def _apart(self, cases: Sequence[WideCase], number: int, ends: float) -> tuple[list[int], list[_Apart]]:
        """Return the cases that both models ran on, and those on which the outputs differ: what tells most first."""
        attempts = [Attempt(number + place, 0, case.inputs) for place, case in enumerate(cases)]
        ran = self.run(attempts, max(ends - time.monotonic(), 0.0))
        both, found = [], []
        for place, case in enumerate(cases):
            key = (number + place, 0)
            if key in ran.outputs[0] and key in ran.outputs[1]:
                both.append(place)
                pair = ran.outputs[0][key], ran.outputs[1][key]
                if case.is_ordinary:
                    usual = self.comparison.compare_outputs(self.names, *pair, number + place)
                    found += [] if usual is None else [_Apart(place, usual)]
                else:
                    kinds = (True, False) if self.overflow_tells and not case.is_large else (True,)
                    found += self._compared(*pair, place, number + place, kinds)
        return both, sorted(found, key=lambda each: _rank(cases[each.place], each))

    def _alike(self, cases: Sequence[WideCase], number: int, ends: float) -> set[int]:
        """Return the places of cases of large numbers on which OpenVINO gives one result for both models."""
        if self.run_alike is None:
            return set()
        places = [place for place, case in enumerate(cases) if not case.is_ordinary]
        attempts = [Attempt(number + place, 0, cases[place].inputs) for place in places]
        ran = self.run_alike(attempts, max(ends - time.monotonic(), 0.0))
        found = set()
        for place in places:
            key = (number + place, 0)
            if key in ran.outputs[0] and key in ran.outputs[1]:
                pairs = zip(ran.outputs[0][key], ran.outputs[1][key], strict=True)
                arrays = (
                    each for one, other in pairs for each in zip(tensors_of(one), tensors_of(other), strict=False)
                )
                found |= set() if any(_difference(*each, _SHARE) for each in arrays) else {place}
        return found

    def _compared(
        self, before: Sequence[Value], after: Sequence[Value], place: int, case: int, kinds: Sequence[bool]
    ) -> Iterator[_Apart]:
        """Yield how outputs differ clearly, or else where one of them alone is not finite. kinds: finite, or not."""
        share = _SHARE if self.inputs.is_one else _SHARE_BETWEEN
        pairs = [
            (name, left, right)
            for name, one, other in zip(self.names, before, after, strict=True)
            for left, right in zip(tensors_of(one), tensors_of(other), strict=False)
        ]
        for is_finite in kinds:
            for name, left, right in pairs:
                reason = _difference(left, right, share) if is_finite else _overflow(left, right)
                if reason:
                    yield _Apart(place, Difference(name, case, reason), is_finite, _share(left, right))
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


def _share(left: Array, right: Array) -> float:
    """Return how much two tensors differ beside the largest number of the first one; infinity if that is not known."""
    if left.shape != right.shape or left.dtype.kind != "f" or right.dtype.kind != "f":
        return math.inf
    one, other = left.astype(np.float64), right.astype(np.float64)
    is_finite = np.isfinite(one) & np.isfinite(other)
    most = np.abs(one[is_finite]).max(initial=0.0)
    return float(np.abs(one - other)[is_finite].max(initial=0.0) / most) if most and is_finite.all() else math.inf


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


def constants_that_differ(pair: Sequence[ComparedModel]) -> list[ChangedConstant]:
    """Return constants that differ, of the second IR, or of the only one."""
    (before, first), (after, second) = ((compared, compared.model) for compared in pair)
    found: Iterator[ChangedConstant] = iter(())
    if isinstance(first, OpenVINOModel) and isinstance(second, OpenVINOModel):
        found = changed_constants(first, second)
    elif isinstance(second, OpenVINOModel) and isinstance(first, onnx.ModelProto):
        found = constants_of_one(first, before.folder, second)
    elif isinstance(first, OpenVINOModel) and isinstance(second, onnx.ModelProto):
        found = constants_of_one(second, after.folder, first)
    return [*itertools.islice(found, _MOST_CONSTANTS)]


def rows_that_differ(changes: Sequence[ChangedConstant]) -> dict[int, list[int]]:
    """Return the rows in which constants differ, by the number of rows, along each dimension."""
    rows: dict[int, dict[int, None]] = {}
    for change in changes:
        shape = change.arrays[1].shape
        if not shape:
            continue
        for length, places in zip(shape, np.unravel_index(change.places, shape), strict=True):
            rows.setdefault(length, {}).update(dict.fromkeys(map(int, np.unique(places)[:_MOST_ROWS])))
    return {length: list(found) for length, found in rows.items()}


def unread_constants(
    changes: Sequence[ChangedConstant],
    pair: Sequence[ComparedModel],
    settings: EngineSettings,
    attempts: Sequence[Attempt],
    ends: float,
) -> Iterator[ChangedConstant]:
    """Yield constants that no run reads. changes: what differs. attempts: what both models ran on."""
    compared = next(each for each in reversed(pair) if each.is_ir)
    model, ports = compared.model, None if compared.ports is None else compared.ports.as_json()
    assert isinstance(model, OpenVINOModel)
    for change in changes:
        left = ends - time.monotonic()
        if left <= 0:
            return
        with workplace([model, with_other_elements(model, change)], (ports, ports), settings=settings) as own:
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
