"""Ask the reference evaluator about values on which an engine computes a region differently before and after.

The engine's kernels may be to blame, or rounding: an operator that is written as others rounds at other places, and a
difference of numbers that cancel may be nothing else. So the reference evaluator runs both sides, on the same values,
as they are, and then once more in float64 wherever they compute in a narrower type. A difference that rounding makes
is gone there; one that the models make stays. It is larger than usual where one side cancels numbers; then the other
side must be near to what float64 gives, and the side that loses digits must have some left.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.verification.comparison import Comparison, OutOfTimeError, differing_signs, element_type, is_finite
from splitgraph.verification.engines.engine_process import Attempt, Suspect, workplace
from splitgraph.verification.engines.error_texts import is_late
from splitgraph.verification.models.model_files import scoped_nodes, weights_of
from splitgraph.verification.regions.drawing.draw import PLAIN, least_difference, may_overflow
from splitgraph.verification.regions.finding.cut import cast_types
from splitgraph.verification.regions.judging.deciding import (
    are_equal,
    are_near_jumps,
    decide_alike,
    differ_in_sums_alone,
    have_same_type,
    infinities_meet,
    large_for_infinities,
    moved,
    with_inner_values,
)
from splitgraph.verification.regions.judging.evaluations import Answers, Evaluations
from splitgraph.verification.regions.judging.lost_digits import Loss, lost_digits
from splitgraph.verification.regions.judging.rounded_constants import is_of_constants
from splitgraph.verification.regions.judging.widening import NARROW, STASHING
from splitgraph.verification.values import Array, Value, tensors_of

_ARBITER = "reference"
# The arbiter may use this share of the time that is left: it is slow on large values.
_SHARE = 0.5
# The first suspect of a region runs alone, and then this many times as many run at once.
_GROWTH, _MOST_AT_ONCE = 4, 64
# A region with more bytes of weights is not run in float64.
_LARGEST_WIDENED = 2**28
# A difference is rounding if so little of it is left in float64, or as much as constants in float32 are rounded by.
_VANISHED = 1e-3
_ROUNDED_CONSTANTS = 2.0**-22
# A side that cancels numbers has a digit left if it is off by no more than this, relative to the largest number; the
# other side is nearer.
_LAST_DIGIT, _NEAR = 0.1, 0.01
# Of an element, a difference is much from this share on; and of a difference that is rounding, less is left.
_MUCH, _MOST_GONE = 0.05, 0.5
# So much is left where float64 cancels, relative to the largest number.
_NOISE = 2.0**-45
# Rounding changes a number by no more than this, relative to the largest number of its tensor.
_MOST_ROUNDING: Mapping[str, float] = {"float64": 1e-9, "float32": 1e-2, "float16": 0.1, "bfloat16": 0.3}


class Opinion(NamedTuple):
    """Why an engine computes a region differently before and after.

    cause: "models" compute something else; the "engine" has kernels that do; "rounding" alone differs. "special": the
    models differ at special numbers, where operators were written out. "unheard": a difference at special numbers, of a
    region that the reference evaluator cannot run. "late": the time was over. who: the sides that the engine computes
    differently from the reference evaluator: "before", "after", "both sides", "" if that is not known. loss: the digits
    that one side loses by rounding; with "models", it loses all of them.
    """

    cause: Literal["models", "engine", "rounding", "late", "unheard", "special"]
    who: str = ""
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Arbiter:
    """Judges suspects. engine: that computed them.
    signed: the outputs in which 0.0 and -0.0 are not the same. is_exact: the same nodes read other constants, so that
    no difference is rounding. has_same_kernels: the engine runs both sides with the same kernels. regroups: the sides
    may put sums together in other ways.
    """

    engine: str
    rtol: float
    atol: float
    deadline: float
    signed: Sequence[int] = ()
    is_exact: bool = False
    has_same_kernels: bool = False
    regroups: bool = False

    def judge(self, models: Sequence[onnx.ModelProto], folders: Sequence[Path | None], suspect: Suspect) -> Opinion:
        """Return what differs. models: the region before and after."""
        return next(self.judge_each(models, folders, [suspect]))

    def judge_each(
        self, models: Sequence[onnx.ModelProto], folders: Sequence[Path | None], suspects: Sequence[Suspect]
    ) -> Iterator[Opinion]:
        """Yield what differs for each suspect of a region. The evaluator runs several at once, because it takes longer
        to begin than to run.
        """
        is_excused = False
        for chunk in _chunks(suspects):
            asked = [suspect for suspect in chunk if self._is_asked(suspect)]
            evaluations = Evaluations(models, folders, chunk, asked, partial(self._run, folders))
            for suspect in chunk:
                try:
                    opinion = self._judged(evaluations, suspect)
                except OutOfTimeError:
                    # What is too large for rounding is none; but a kernel that is to blame once may be so again, and
                    # so may numbers that cancel.
                    is_plain = suspect.kind in PLAIN and not self._is_small(models[0], suspect)
                    opinion = Opinion("models" if is_plain and not is_excused else "late")
                is_excused = is_excused or opinion.cause in ("engine", "rounding")
                yield opinion

    def _is_asked(self, suspect: Suspect) -> bool:
        """Return True if the evaluator has something to say. If the second side fails on values that reach it, nobody
        has; and the evaluator does not judge itself.
        """
        return self.engine != _ARBITER and (suspect.kind != "captured" or len(suspect.outputs) == 2)

    def _judged(self, evaluations: Evaluations, suspect: Suspect) -> Opinion:
        """Return what differs. Raises OutOfTimeError."""
        # The same kernels tell apart only what the models tell apart, at whatever numbers.
        is_agreed = self.has_same_kernels or suspect.kind in PLAIN
        without_answer = Opinion("models" if is_agreed else "unheard")
        if suspect.kind == "captured" and len(suspect.outputs) < 2:
            return Opinion("models")
        names = [str(position) for position in range(len(suspect.outputs[0]))]
        outputs: Sequence[list[Value]] = suspect.outputs
        who = ""
        answers = evaluations.plain(suspect)
        if answers is not None:
            sides = answers.sides()
            if sides is None:
                return self._rounding(evaluations, suspect) or without_answer
            # Of a side that fails there is nothing to compare: drawn values may be invalid.
            pairs = zip(("before", "after"), zip(sides, suspect.outputs, strict=False), strict=False)
            deviating = [side for side, (one, other) in pairs if self._differ(names, one, other, suspect)]
            who = "both sides" if len(deviating) == len(sides) else "".join(deviating)
            is_noise = _is_noise(*sides) and not differing_signs(sides[0], sides[1], self.signed)
            if self._differ(names, sides[0], sides[1], suspect) and not is_noise:
                outputs = sides
            elif not (_is_of_nothing(suspect, sides) or self._overflows(evaluations, suspect, sides)):
                # The evaluator may read an attribute otherwise than the engine, whose one kernel runs both sides.
                is_models = self.has_same_kernels and suspect.kind in PLAIN
                return Opinion("models" if is_models else "engine", who)
        rounding = self._rounding(evaluations, replace(suspect, outputs=outputs))
        if rounding is None or rounding.cause == "models":
            is_rounding = self._is_of_a_jump_or_constants(evaluations, suspect)
            return Opinion("rounding") if is_rounding else rounding or Opinion("models", who)
        return rounding

    def _rounding(self, evaluations: Evaluations, suspect: Suspect) -> Opinion | None:
        """Return the opinion that a difference is rounding if it is small, and vanishes in float64; None otherwise."""
        is_small = self._is_small(evaluations.models[0], suspect)
        if not is_small and not self._may_cancel(suspect):
            return None
        if weights_of(evaluations.models) > _LARGEST_WIDENED:
            return None
        answers = evaluations.exact(suspect)
        if answers is None:
            return None
        comparison = self._comparison(suspect)
        narrow, exact = zip(*suspect.outputs, strict=True), zip(*answers, strict=True)
        if not all(_vanishes(pair, wide_pair, comparison) for pair, wide_pair in zip(narrow, exact, strict=True)):
            return None
        loss = lost_digits(suspect.outputs, answers[0])
        if is_small:
            return Opinion("rounding", loss=loss)
        outputs = suspect.outputs
        if loss is None or not _are_off_by(_NEAR, outputs[1 - loss.side], answers[0]):
            return None
        is_left = _are_off_by(_LAST_DIGIT, outputs[loss.side], answers[0])
        return Opinion("rounding" if is_left else "models", loss=loss)

    def _overflows(self, evaluations: Evaluations, suspect: Suspect, sides: Sequence[list[Value]]) -> bool:
        """Return True if the evaluator overflows 16 bits on both sides, and the engine on the second one alone: on the
        first one, it gives what float64 gives.
        """
        if suspect.kind not in PLAIN or not _hides(suspect, sides, is_first_finite=True):
            return False
        # No numbers of a model that works overflow float32.
        if not _has_halves(evaluations.models, suspect) or weights_of(evaluations.models) > _LARGEST_WIDENED:
            return False
        exact = evaluations.exact(suspect)
        return exact is not None and _are_off_by(_NEAR, suspect.outputs[0], exact[0])

    def _is_of_a_jump_or_constants(self, evaluations: Evaluations, suspect: Suspect) -> bool:
        """Return True if a difference is that of a number beside a jump or of sums of infinities (see `deciding`), or
        that of rounded constants (see `rounded_constants`).
        """
        models = evaluations.models
        if self.is_exact or len(suspect.outputs) < 2 or weights_of(models) > _LARGEST_WIDENED:
            return False
        if differing_signs(suspect.outputs[0], suspect.outputs[1], self.signed):
            return False
        wide, inputs = evaluations.wide(suspect)
        comparison = self._comparison(suspect)
        in_float64 = _with_rounded_constants(comparison)
        near = [*moved(suspect.inputs, inputs)] if decide_alike(*models) else []
        if near:
            answers = [each.sides() for each in evaluations.run(wide, [inputs, *near])]
            exact = [sides for sides in answers if sides is not None and are_equal(sides[0], sides[1], in_float64)]
            if len(exact) == len(answers) and are_near_jumps(suspect.outputs, [each[0] for each in exact], comparison):
                return True
        given = evaluations.with_moved_constants(suspect)
        if given is not None and is_of_constants(suspect.outputs, given, comparison):
            return True
        return self._is_of_infinities(evaluations, suspect)

    def _is_of_infinities(self, evaluations: Evaluations, suspect: Suspect) -> bool:
        """Return True if a difference is that of infinities that meet in the sums of one side alone."""
        models = evaluations.models
        if not self.regroups or not differ_in_sums_alone(*models):
            return False
        wide, inputs = evaluations.wide(suspect)
        comparison, given = self._comparison(suspect), (suspect.inputs, large_for_infinities(inputs))
        pairs = list(zip(*suspect.outputs, strict=True))
        if not all(have_same_type(before, after) for before, after in pairs):
            return False
        different = {place: flags for place, pair in enumerate(pairs) if (flags := comparison.wrong(*pair)).any()}
        for place, differs in different.items():
            narrow, exact = (
                evaluations.run([with_inner_values(each, each.graph.output[place].name) for each in sides], [values])
                for sides, values in zip((models, wide), given, strict=True)
            )
            inner, large = narrow[0].sides(), exact[0].sides()
            if inner is None or large is None or not infinities_meet(differs, inner, large):
                return False
            if not are_equal(large[0][:1], large[1][:1], _with_rounded_constants(comparison)):
                return False
        return bool(different)

    def _may_cancel(self, suspect: Suspect) -> bool:
        """Return True if a difference that is too large for rounding may be that of a side that cancels numbers."""
        if self.is_exact or suspect.kind not in PLAIN or len(suspect.outputs) < 2:
            return False
        kinds = [[(each.dtype, each.shape) for value in side for each in tensors_of(value)] for side in suspect.outputs]
        # Nothing wider says what float64 should be.
        if kinds[0] != kinds[1] or any(dtype == np.float64 for dtype, _ in kinds[0]):
            return False
        return not differing_signs(suspect.outputs[0], suspect.outputs[1], self.signed)

    def _is_small(self, model: onnx.ModelProto, suspect: Suspect) -> bool:
        """Return True if rounding can explain the difference. model: the region before."""
        if len(suspect.outputs) < 2 or differing_signs(suspect.outputs[0], suspect.outputs[1], self.signed):
            return False
        least = _coarsest_rounding(model)
        # Numbers of the model overflow float16, and none of a model that works overflows float32.
        allows_overflow = suspect.kind == "ends" and least <= _MOST_ROUNDING["float32"]
        pairs = zip(*suspect.outputs, strict=True)
        return not self.is_exact and all(_may_be_rounding(one, other, least, allows_overflow) for one, other in pairs)

    def _differ(self, names: Sequence[str], before: list[Value], after: list[Value], suspect: Suspect) -> bool:
        if self._comparison(suspect).compare_outputs(names, before, after, 0) is not None:
            return True
        return bool(differing_signs(before, after, self.signed))

    def _comparison(self, suspect: Suspect) -> Comparison:
        is_exact = self.is_exact or self.rtol == 0
        overflows = may_overflow(suspect.kind, self.atol, regroups=self.regroups)
        least = least_difference(suspect.kind, self.atol)
        # Of one draw, the numbers around an element do not tell how large it may be.
        is_alone = suspect.kind == "together"
        return Comparison(
            self.rtol, least, is_local=True, is_exact=is_exact, may_overflow=overflows, is_by_element=is_alone
        )

    def _run(
        self,
        folders: Sequence[Path | None],
        models: Sequence[onnx.ModelProto],
        inputs: Sequence[Mapping[str, Value]],
    ) -> list[Answers]:
        """Run both sides in the reference evaluator, on each of the inputs."""
        left = _SHARE * (self.deadline - time.monotonic())
        if left <= 0 or not inputs:
            return [Answers((None, None), is_late=True) for _ in inputs]
        with workplace(models, folders=folders) as place:
            run = place.run(_ARBITER, [Attempt(number, 0, each) for number, each in enumerate(inputs)], left)
        late = any(is_late(failure.reason) for failure in run.failures)
        outputs = [(run.outputs[0].get((number, 0)), run.outputs[1].get((number, 0))) for number in range(len(inputs))]
        return [Answers(each, is_late=late) for each in outputs]


def _chunks(suspects: Sequence[Suspect]) -> Iterator[Sequence[Suspect]]:
    """Yield the suspects in groups: the first one alone, because it may be enough, and then more at once."""
    start, size = 0, 1
    while start < len(suspects):
        yield suspects[start : start + size]
        start, size = start + size, min(size * _GROWTH, _MOST_AT_ONCE)


def _is_of_nothing(suspect: Suspect, sides: Sequence[list[Value]]) -> bool:
    """Return True if the evaluator gives no number on both sides for what has no elements, such as their mean: the
    specification leaves that open, and a number on one side alone is a difference.
    """
    inputs = (array for value in suspect.inputs.values() for array in tensors_of(value))
    return any(not array.size for array in inputs) and _hides(suspect, sides)


def _hides(suspect: Suspect, sides: Sequence[list[Value]], *, is_first_finite: bool = False) -> bool:
    """Return True if the evaluator gives no number on both sides where the engine gives one on one side alone.
    is_first_finite: on the first one.
    """
    if len(suspect.outputs) < 2:
        return False
    values = zip(*suspect.outputs, *sides, strict=True)
    for arrays in (each for four in values for each in zip(*map(tensors_of, four), strict=True)):
        if len({array.shape for array in arrays}) == 1:
            before, after, *answers = map(is_finite, arrays)
            apart = before & ~after if is_first_finite else before != after
            if (apart & ~answers[0] & ~answers[1]).any():
                return True
    return False


def _has_halves(models: Sequence[onnx.ModelProto], suspect: Suspect) -> bool:
    types = {number for model in models for number in cast_types(model)}
    types |= {element_type(array) for value in suspect.inputs.values() for array in tensors_of(value)}
    return not types.isdisjoint({onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16})


def _coarsest_rounding(model: onnx.ModelProto) -> float:
    """Return how much numbers may be rounded by the narrowest type in which the nodes of a model compute."""
    types = []
    for node, _ in scoped_nodes(model):
        given = {attribute.name: attribute.i for attribute in node.attribute}
        if node.op_type == "Cast":
            types.append(given.get("to", 0))
        elif node.op_type in STASHING:
            types.append(given.get("stash_type", onnx.TensorProto.FLOAT))
    return max((_MOST_ROUNDING[NARROW[each]] for each in types if each in NARROW), default=0.0)


def _may_be_rounding(before: Value, after: Value, least: float, is_overflow_allowed: bool) -> bool:
    """Return True if two values differ by no more than rounding can explain. least: what rounding in between may
    change. is_overflow_allowed: one of the sides may overflow in between.
    """
    arrays = list(tensors_of(before)), list(tensors_of(after))
    if len(arrays[0]) != len(arrays[1]):
        return False
    return all(_are_near(one, other, least, is_overflow_allowed) for one, other in zip(*arrays, strict=True))


def _are_near(before: Array, after: Array, least: float, is_overflow_allowed: bool) -> bool:
    if before.dtype != after.dtype or before.shape != after.shape:
        return False
    most = _MOST_ROUNDING.get(before.dtype.name)
    if most is None:
        return bool(np.array_equal(before, after))
    left, right = before.astype(np.float64), after.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    is_open = is_overflow_allowed and before.dtype.name in ("float32", "float64")
    if not is_open and not np.array_equal(np.isfinite(left), np.isfinite(right)):
        return False
    largest = float(np.abs(left[finite]).max(initial=0.0))
    return bool((np.abs(left[finite] - right[finite]) <= max(most, least) * largest).all())


def _is_noise(before: Sequence[Value], after: Sequence[Value]) -> bool:
    """Return True if numbers differ by what float64 rounds, beside the largest number: the evaluator computes some
    operators in it, whatever their type.
    """
    pairs = zip(before, after, strict=True)
    arrays = [pair for values in pairs for pair in zip(*map(tensors_of, values), strict=True)]
    return all(_is_off_by(_NOISE, *pair) and _are_same_beyond_numbers(*pair) for pair in arrays)


def _are_same_beyond_numbers(one: Array, other: Array) -> bool:
    """Return True if two arrays of one shape have the same infinities and NaN."""
    if one.dtype.kind != "f":
        return True
    beyond = ~np.isfinite(one)
    return bool(np.array_equal(one[beyond], other[beyond], equal_nan=True))


def _are_off_by(most: float, given: Sequence[Value], exact: Sequence[Value]) -> bool:
    """Return True if values are no farther from what float64 gives, relative to the largest number of each."""
    pairs = zip(given, exact, strict=True)
    arrays = [pair for values in pairs for pair in zip(*map(tensors_of, values), strict=True)]
    return all(_is_off_by(most, *pair) for pair in arrays)


def _is_off_by(most: float, given: Array, exact: Array) -> bool:
    if exact.dtype.kind != "f" or given.shape != exact.shape:
        return bool(np.array_equal(given, exact))
    numbers = given.astype(np.float64)
    finite = np.isfinite(exact)
    largest = np.abs(exact[finite]).max(initial=0.0)
    is_near = np.abs(numbers[finite] - exact[finite]) <= most * largest
    return bool(np.array_equal(np.isfinite(numbers), finite) and is_near.all())


def _vanishes(narrow: tuple[Value, ...], wide: tuple[Value, ...], comparison: Comparison) -> bool:
    """Return True if the difference of two values is gone, or nearly, in float64."""
    arrays = zip(*(tensors_of(value) for value in (*narrow, *wide)), strict=True)
    return all(_is_gone((one, other), exact, exact_after, comparison) for one, other, exact, exact_after in arrays)


def _is_gone(narrow_pair: tuple[Array, Array], exact: Array, exact_after: Array, comparison: Comparison) -> bool:
    if exact.shape != exact_after.shape or exact.dtype != exact_after.dtype:
        return False
    if exact.dtype.kind != "f" or not exact.size:
        return bool(np.array_equal(exact, exact_after))
    # Constants of float32 stay rounded to it, so the tolerances do not become those of float64.
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = [array.astype(np.float32) for array in (exact, exact_after)]
    left = _with_rounded_constants(comparison).wrong(narrow[0], narrow[1]) | _is_left(narrow_pair, exact, exact_after)
    if not left.any():
        return True
    with np.errstate(invalid="ignore"):
        gap = np.abs(narrow_pair[0].astype(np.float64) - narrow_pair[1].astype(np.float64))
        rest = np.abs(exact - exact_after)[left]
    return bool((rest <= _VANISHED * gap[np.isfinite(gap)].max(initial=0.0)).all())


def _is_left(narrow_pair: tuple[Array, Array], exact: Array, exact_after: Array) -> npt.NDArray[np.bool_]:
    """Mark the elements of which float64 leaves the difference as it is, and much of the element: that is no rounding,
    however large the numbers around it are.
    """
    before, after = (array.astype(np.float64) for array in narrow_pair)
    with np.errstate(invalid="ignore"):
        gap = np.abs(exact - exact_after)
        is_same = gap > _MOST_GONE * np.abs(before - after)
        size = np.abs(exact)
        # What is less than the rounding of the largest number may be all that its sums leave of 0.
        is_number = size > _ROUNDED_CONSTANTS * size[np.isfinite(size)].max(initial=0.0)
        return np.asarray(is_same & is_number & (gap > _MUCH * size))


def _with_rounded_constants(comparison: Comparison) -> Comparison:
    """Return a comparison that allows what constants of float32 are rounded by."""
    rtol = max(comparison.rtol, _ROUNDED_CONSTANTS)
    return dataclasses.replace(comparison, rtol=rtol, is_exact=False)
