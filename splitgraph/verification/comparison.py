"""Compare the outputs of two models.

Floating-point numbers may differ by `atol + rtol * |first|`. A region that runs alone, with nothing behind it that
could amplify a difference, is held to its surroundings in place of `atol` (see `surroundings`). NaN equals NaN; and an
infinity, where numbers may overflow: where one sum does, another order of its terms gives NaN. An infinity equals
itself, and not that of the other sign. Between two engines, elements that are not finite on both sides are not
compared: engines treat them differently. All other types must be equal. The default tolerances suit float32 and
float64. Narrower types cannot express such small differences, so their tolerances are at least:

    float16, bfloat16             rtol 2 eps, atol eps
    float8 (e4m3 and e5m2 kinds)  rtol eps, atol the smallest positive number
    float4, float8e8m0            equal

Here eps is the distance from 1 to the next larger number of the type. The real and imaginary parts of a complex number
are compared separately. Large tensors are compared in pieces, within the time that is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.model.value_type import DTYPE_NAMES
from splitgraph.options import ATOL_WRITTEN_OUT, RTOL_WRITTEN_OUT
from splitgraph.verification.values import Array, Value, ValueBlock, blocks, have_same_bits, is_text, tensors_of
from splitgraph.verification.verification import Difference

# For each narrow type: eps, and the tolerance for numbers near 0 (eps for 16 bits, the smallest positive number for 8).
_NARROW_FLOATS: Mapping[str, tuple[float, float]] = {
    "float16": (2.0**-10, 2.0**-10),
    "bfloat16": (2.0**-7, 2.0**-7),
    "float8_e4m3fn": (2.0**-3, 2.0**-9),
    "float8_e4m3fnuz": (2.0**-3, 2.0**-10),
    "float8_e5m2": (2.0**-2, 2.0**-16),
    "float8_e5m2fnuz": (2.0**-2, 2.0**-17),
}
_ADDED_UP = 4
HALF_TYPES = ("float16", "bfloat16")
_EXACT_FLOATS = ("float4_e2m1fn", "float8_e8m0fnu")
# The tolerances of float32 are so many times too large for one operator in float64.
_FINER = 1e-6
# The smallest numbers of a type are rounded to whole steps, however small they are. A few roundings are so many steps.
_MOST_STEPS = 8
# Along an axis, so many elements that stand at one position tell how large their neighbours are.
_ENOUGH = 8


def _smallest_of(dtype: np.dtype[Any]) -> float:
    """Return the smallest number greater than 0 of a type; 0.0 of those that NumPy does not have."""
    return float(np.finfo(dtype).smallest_subnormal) if dtype.kind == "f" else 0.0


class OutOfTimeError(Exception):
    """Raised if the time is over before everything is compared."""


@dataclass(slots=True)
class Comparison:
    """Compares values with given tolerances and keeps the largest differences of floating-point numbers.

    is_local: the values are those of a region that runs alone. is_exact: nothing is allowed. max_abs_diff,
    max_rel_diff: None before the first comparison; the second one is relative to the value of the first model and
    ignores values of 0.
    sides: how reasons call the two. may_overflow: the numbers may be so large that sums of them are infinite.
    only_finite: elements that are not finite on both sides are not compared. is_by_element: each element is held to its
    own size, and not to its surroundings. deadline: as `time.monotonic` tells it; a
    comparison that takes longer raises OutOfTimeError.
    """

    rtol: float
    atol: float
    is_local: bool = False
    is_exact: bool = False
    max_abs_diff: float | None = None
    max_rel_diff: float | None = None
    sides: tuple[str, str] = ("the first model gives", "the second")
    may_overflow: bool = True
    only_finite: bool = False
    is_by_element: bool = False
    deadline: float = math.inf

    def compare_outputs(
        self, names: Sequence[str], before: Sequence[Value], after: Sequence[Value], case: int
    ) -> Difference | None:
        """Return the first difference between the outputs of two models on one case; None without one.

        Both lists have the order of the names.
        """
        self.max_abs_diff = self.max_abs_diff or 0.0
        self.max_rel_diff = self.max_rel_diff or 0.0
        if len(before) != len(after):
            return Difference("", case, self._told(f"{len(before)} outputs", len(after)))
        for name, left, right in zip(names, before, after, strict=True):
            reason = self._compare(left, right)
            if reason:
                return Difference(name, case, reason)
        return None

    def _compare(self, before: Value, after: Value) -> str:
        """Return why two values differ, "" if they agree."""
        kinds = _kind_of(before), _kind_of(after)
        if kinds[0] != kinds[1]:
            return self._told(*kinds)
        if before is None:
            return ""
        if isinstance(before, dict):
            return self._compare_maps(before, after)
        if isinstance(before, list):
            return self._compare_sequences(before, after)
        return self._compare_arrays(before, after)

    def _compare_maps(self, before: Mapping[Any, Value], after: Mapping[Any, Value]) -> str:
        if before.keys() != after.keys():
            return self._told(f"the keys {sorted(before)}", sorted(after))
        reasons = ((key, self._compare(value, after[key])) for key, value in before.items())
        return next((f"at key {key!r}: {reason}" for key, reason in reasons if reason), "")

    def _compare_sequences(self, before: Sequence[Value], after: Sequence[Value]) -> str:
        if len(before) != len(after):
            return self._told(f"a sequence of {len(before)}", f"of {len(after)}")
        reasons = (self._compare(left, right) for left, right in zip(before, after, strict=True))
        return next((f"element {index}: {reason}" for index, reason in enumerate(reasons) if reason), "")

    def _compare_arrays(self, before: Array, after: Array) -> str:
        if before.dtype != after.dtype:
            return self._told(f"elements of type {type_name(before)}", type_name(after))
        if before.shape != after.shape:
            return self._told(f"the shape {list(before.shape)}", list(after.shape))
        if before is after or before.size == 0:
            return ""
        parts = ((block, self.wrong(before[block], after[block])) for block in blocks(before, after))
        return self.first_wrong(before, after, parts)

    def _told(self, before: object, after: object) -> str:
        return f"{self.sides[0]} {before}, {self.sides[1]} {after}"

    def first_wrong(
        self, before: Array, after: Array, parts: Iterable[tuple[ValueBlock, npt.NDArray[np.bool_]]]
    ) -> str:
        """Describe the first elements that differ. parts: which elements differ, in blocks, in the order of the
        elements.
        """
        first, count = None, 0
        for block, wrong in parts:
            number = int(np.count_nonzero(wrong))
            if number and first is None:
                starts = [part.start for part in block[:-1]] + [0] * before.ndim
                within = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                first = tuple(int(place) + start for place, start in zip(within, starts, strict=False))
            count += number
        if first is None:
            return ""
        where = f"at {list(first)} " if first else ""
        more = f" ({count} of {before.size} elements differ)" if before.size > 1 else ""
        return f"{where}{self._told(_shown(before[first]), _shown(after[first]))}{more}"

    def wrong(self, before: Array, after: Array) -> npt.NDArray[np.bool_]:
        """Mark the elements that differ by more than allowed, in two arrays of the same type and shape."""
        if time.monotonic() > self.deadline:
            raise OutOfTimeError
        if before.dtype.kind == "c":
            real = self.wrong(before.real, after.real)
            return np.asarray(real | self.wrong(before.imag, after.imag))
        if not _is_float(before.dtype):
            return np.asarray(before != after, dtype=np.bool_)
        if have_same_bits(before, after):  # most rewrites change no element, and this is fast
            self._note(np.zeros(1), np.zeros(1))
            return np.zeros(before.shape, dtype=np.bool_)
        rtol, atol = self._tolerances(before.dtype)
        left, right = before.astype(np.float64), after.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            ends = np.isfinite(left), np.isfinite(right)
            finite = ends[0] & ends[1]
            unknown = np.isnan(left), np.isnan(right)
            same = (left == right) | (unknown[0] & unknown[1])
            if self.may_overflow:
                same |= ~(ends[0] | ends[1]) & (unknown[0] | unknown[1])
            if self.only_finite:
                same |= ~finite
            # A number and a NaN, or a number and an infinity, have an infinite difference.
            gap = np.where(same, 0.0, np.where(finite, np.abs(right - left), np.inf))
            self._note(gap, np.where(finite, np.abs(left), 1.0))
            size = np.where(finite, np.abs(left), 0.0)
            least: Array = np.asarray(atol)
            if self.is_local:
                rtol, least = self._local_tolerances(before.dtype, rtol, size)
            near = finite & (gap <= least + rtol * size)
        return np.asarray(~(same | near))

    def _note(self, gap: Array, size: Array) -> None:
        self.max_abs_diff = max(self.max_abs_diff or 0.0, float(gap.max(initial=0.0)))
        nonzero = size > 0
        if nonzero.any():
            self.max_rel_diff = max(self.max_rel_diff or 0.0, float((gap[nonzero] / size[nonzero]).max()))

    def _local_tolerances(self, dtype: np.dtype[Any], rtol: float, size: Array) -> tuple[float, Array]:
        """Return the tolerances of a region for numbers of this size. A caller who allows more for the outputs of the
        model allows it here, too.
        """
        if self.is_exact:
            return 0.0, np.zeros(())
        if dtype.name == "float64" and self.rtol <= RTOL_WRITTEN_OUT:
            rtol *= _FINER
        # Who allows so much, as for operators that were written out, means it.
        least = max(self.atol if self.atol >= ATOL_WRITTEN_OUT else 0.0, _MOST_STEPS * _smallest_of(dtype))
        return rtol, np.maximum(rtol * (size if self.is_by_element else surroundings(size)), least)

    def _tolerances(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        if self.is_exact or dtype.name in _EXACT_FLOATS:
            return 0.0, 0.0
        if dtype.name not in _NARROW_FLOATS:
            return self.rtol, self.atol
        rtol, atol = narrow_tolerances(dtype.name)
        return max(self.rtol, rtol), max(self.atol, atol)


def surroundings(size: Array) -> Array:
    """Return how large the numbers around each element are, given the absolute values of a tensor.

    A sum is rounded relative to its largest terms, so an element that cancels may be off by more than its own size
    says. Around an element are, along each axis, the elements at its own position, and the smallest of these groups
    counts: an output channel of small weights is held to its own size, and not to that of a larger one beside it.
    """
    around: Array = np.full((1,) * size.ndim, size.max(initial=0.0))
    for axis, length in enumerate(size.shape):
        if length and size.size >= _ENOUGH * length:
            others = tuple(other for other in range(size.ndim) if other != axis)
            around = np.minimum(around, size.max(axis=others, keepdims=True, initial=0.0))
    return around


def differing_signs(before: Sequence[Value], after: Sequence[Value], positions: Collection[int]) -> str:
    """Return how two lists of values, equal otherwise, differ in the signs of zeros at some positions; "" if they
    agree.
    """
    for position in positions:
        for one, other in zip(tensors_of(before[position]), tensors_of(after[position]), strict=True):
            if one.dtype.kind == "f":
                wrong = (one == 0) & (other == 0) & (np.signbit(one) != np.signbit(other))
                if wrong.any():
                    count = f"{np.count_nonzero(wrong)} of {one.size} elements"
                    return f"one side gives 0.0 where the other one gives -0.0 ({count})"
    return ""


def has_finite(array: Array) -> bool:
    """Return True if some element of an array is neither NaN nor infinite."""
    return any(bool(is_finite(array[block]).any()) for block in blocks(array))


def is_finite(array: Array) -> npt.NDArray[np.bool_]:
    """Mark the elements of an array of any type that are neither NaN nor infinite."""
    if array.dtype.kind in "fc":
        return np.asarray(np.isfinite(array))
    if _is_float(array.dtype):
        return np.asarray(np.isfinite(array.astype(np.float32)))
    return np.ones(array.shape, dtype=np.bool_)


def tolerances_in(types: Collection[str]) -> tuple[float, float]:
    """Return what the outputs of a model may differ by (rtol, atol) if it computes in these types. Engines may round a
    value of 16 bits, or go on with more bits, depending on what is around it; a few such differences add up.
    """
    coarse = [narrow_tolerances(name) for name in HALF_TYPES if name in types]
    rtol, atol = (max((tolerance[part] for tolerance in coarse), default=0.0) for part in (0, 1))
    return _ADDED_UP * rtol, _ADDED_UP * atol


def narrow_tolerances(name: str) -> tuple[float, float]:
    """Return the smallest tolerances (rtol, atol) of a narrow floating-point type, named as in NumPy or ml_dtypes."""
    eps, least = _NARROW_FLOATS[name]
    return 2 * eps if name in HALF_TYPES else eps, least


def _kind_of(value: Value) -> str:
    if value is None:
        return "an empty optional"
    if isinstance(value, dict):
        return "a map"
    return "a sequence" if isinstance(value, list) else "a tensor"


def type_name(array: Array) -> str:
    """Return the ONNX name of the element type of an array."""
    return DTYPE_NAMES.get(element_type(array), str(array.dtype))


def element_type(array: Array) -> int:
    """Return the number that ONNX has for the element type of an array."""
    return onnx.TensorProto.STRING if is_text(array) else int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or "float" in dtype.name


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (str, bytes)) else str(value)
