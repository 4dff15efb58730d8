"""Draw the elements of a tensor of any type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.inputs.retry_policy import AttemptRule
from splitgraph.execution.values import Array, dtype_by_name
from splitgraph.value_type import DTYPE_NUMBERS

_WORDS = ("alpha", "b", "gamma delta", "naïve", "42", "x-y", "two  spaces", "tab\there", "Ω", "end.")
_NARROW_INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
# In every second case of three, one of _EACH elements is at least _LARGER times as large, of alternating sign, for
# operators that clip or saturate. Tensors of fewer than _FEW elements hold no 0.
_EACH = 4
_LARGER = 8
_FEW = 8
# The limit of that factor for each type, if the model is known to clip only larger numbers.
_LARGEST = {"float16": 2.0**13, "bfloat16": 2.0**20, "float32": 2.0**20, "float64": 2.0**20}
# The share of ones in a mask.
_COUNTING = 0.75
# A few integers are drawn from at least so many, or they would be the same in each case.
_ROOM = 8


def draw_elements(
    dtype: str,
    shape: Sequence[int],
    rng: np.random.Generator,
    *,
    case: int,
    rule: AttemptRule,
    delimiters: Sequence[str] = (),
    is_index: bool = False,
    is_mask: bool = False,
    may_be_zero: bool = True,
    reach: float = 0.0,
) -> Array:
    """Draw random elements of an ONNX type, all different if the type has enough values.

    Floating-point numbers are normally distributed. In every third case they are positive, because logarithms and roots
    of negative numbers are NaN, which shows no difference. A single number changes its sign from case to case. In the
    first attempt at every second case of three, some numbers are several times as large, and one of many is 0. Integers
    are small and positive; in the first attempt, those of the second case have both signs, and those of the third case
    begin with 0. Strings hold words, white space and the delimiters.

    is_mask: zeros and ones select elements. With other numbers a model may use only one element, so that they are drawn
    in some cases only. is_index: integers should be smaller than the number of elements. may_be_zero: integers may be
    0. reach: the model clips numbers beyond this.
    """
    size = int(np.prod(tuple(shape), dtype=np.int64))
    if dtype == "string":
        flat: Array = _strings(size, rng, delimiters)
    elif dtype == "bool":
        flat = rng.permutation(np.arange(size) % 2 == 0)
    elif is_mask and case % 3 != 1:
        flat = _mask(shape, rng).astype(_dtype(dtype))
    elif dtype in _NARROW_INTEGERS:
        low, high = _NARROW_INTEGERS[dtype]
        flat = rng.integers(low, high + 1, size=size).astype(_dtype(dtype))
    elif dtype.startswith(("int", "uint")):
        if rule.zero_or_one:
            flat = rng.integers(0, 2, size=size).astype(dtype)
        else:
            kind = case % 3 if rule.is_first else 0
            least = {1: 1 if is_index else 2, 2: 0 if may_be_zero else 1}.get(kind, 1)
            room = _ROOM if kind == 1 and not is_index else 1
            flat = _integers(size, np.dtype(dtype), rng, least=least, room=room, signed=kind == 1)
    elif dtype.startswith("complex"):
        flat = (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype(dtype)
    elif dtype == "float8e8m0":
        flat = (2.0 ** rng.integers(-4, 5, size=size)).astype(_dtype(dtype))
    else:
        numbers = rng.standard_normal(size)
        if size == 1 and rule.is_first:
            numbers = np.abs(numbers) * (-1) ** case
        elif case % 3 == 1 and rule.is_first and not dtype.startswith("float4"):
            numbers = _with_extremes(numbers, rng, max(_LARGER, min(reach, _LARGEST.get(dtype, 0))))
        flat = (np.abs(numbers) if case % 3 == 2 else numbers).astype(np.float32 if dtype != "float64" else np.float64)
        flat = flat.astype(_dtype(dtype))
    return flat.reshape(tuple(shape))


def _mask(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Draw a mask that is mostly 1, and 1 at the beginning of each row."""
    mask = rng.uniform(size=tuple(shape)) < _COUNTING
    mask[..., :1] = True
    return mask.ravel()


def _with_extremes(
    numbers: npt.NDArray[np.float64], rng: np.random.Generator, larger: float
) -> npt.NDArray[np.float64]:
    """Make some numbers larger than all others, and one of many numbers 0."""
    large = larger * (1 + np.abs(numbers[::_EACH]))
    numbers[::_EACH] = large * (-1) ** (np.arange(large.size) + rng.integers(2))
    if numbers.size >= _FEW:
        numbers[_EACH * int(rng.integers(numbers.size // _EACH)) + 1] = 0
    return numbers


def _integers(
    size: int, dtype: np.dtype[Any], rng: np.random.Generator, *, least: int, room: int, signed: bool
) -> Array:
    """Draw different integers from `least` on, out of at least `room` candidates."""
    most = min(max(size, 8), int(np.iinfo(dtype).max) - least)
    numbers = rng.permutation(np.arange(max(size, room), dtype=np.int64) % most)[:size] + least
    if signed and dtype.kind == "i":
        numbers = numbers * rng.choice([-1, 1], size=size)
    return numbers.astype(dtype)


def _strings(size: int, rng: np.random.Generator, delimiters: Sequence[str]) -> Array:
    texts = np.empty(size, dtype=object)
    for index in range(size):
        words = rng.choice(_WORDS, size=1 + index % 4).tolist()
        joint = " " if not delimiters or index % 3 == 2 else delimiters[index % len(delimiters)]
        texts[index] = joint.join(words)
        if index % 5 == 1:
            texts[index] = f"{joint}{texts[index]}{joint}{joint}"
    return texts


def _dtype(name: str) -> np.dtype[Any]:
    return dtype_by_name(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name])).name)
