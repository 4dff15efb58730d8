"""Draw the elements of a region's constants, each where it meets the data, with their neighbours: whether an element is
compared by `>` or by `>=` only shows in a number that is equal to it.

A constant meets an input by broadcasting, along one axis of the input (the scales of channels), element by element in
another shape, or each of its elements meets all of the input (the limits of buckets, the keys of a list). One set of
values holds as many elements as the input has room for; those in which the two models differ come first. What is a
constant of the model, and not of the region, is an input of the region that does not change.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.regions.finding.constants import ATTRIBUTE, HeldConstant, held_constants
from splitgraph.verification.values import Array, Value

# So many constants are drawn at most, each with so many elements, which meet an input so many times.
_MOST, _LARGEST, _LARGEST_MEETING = 32, 2**24, 2**20
# The elements of a constant take so many turns at most: fewer if one set of values held them all. So many elements that
# differ fill an input alone.
_MOST_CASES, _FEW_CASES, _MOST_ALONE = 64, 4, 8
# Between other numbers, they are one of three, in so many sets of values.
_SHARE, _CASES_AMONG_OTHERS = 1 / 3, 24
# Multiples of a scale at which a quantization to 8 or 16 bits rounds, and at which it ends.
MULTIPLES = (0.5, 1.5, 2.5, -0.5, -1.0, 127.0, 127.5, 128.0, -128.0, -128.5, -129.0, 255.0, 255.5, 256.0, 32768.0)
# Operators that multiply by a constant, or read it at positions, at these inputs: none of it is compared with data.
_WEIGHED: Mapping[str, Collection[int]] = {
    **dict.fromkeys((*kinds.CONVOLUTIONS, *kinds.PRODUCTS, *kinds.RECURRENT, "Einsum"), range(9)),
    **dict.fromkeys(kinds.READS_AT, (0, 1)),
    **dict.fromkeys(("Dropout", "Resize"), (1, 2)),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "CumSum", "DequantizeLinear"), (1, 2)),
}
_TEXTS = "OUS"


class _Limits(NamedTuple):
    """A constant that may be compared with data. first: the places, in its flat form, of elements that differ."""

    array: Array
    first: Array


def draw_limits(
    models: Sequence[tuple[onnx.ModelProto, Path]],
    base: Mapping[str, Value],
    free: Mapping[str, Array],
    rng: np.random.Generator,
) -> Iterator[dict[str, Value]]:
    """Yield values for the free inputs of a region, one input after the other.

    models: before and after, each with the folder of its external data. base: the values that reached the region.
    """
    limits = [*_of_models(models), *_of_base(base, free)]
    for name, value in free.items() if limits else ():
        seen: set[bytes] = set()
        for limit in limits[:_MOST]:
            numbers = in_type(limit.array, value.dtype)
            if numbers is None or (key := numbers.tobytes() + repr(numbers.shape).encode()) in seen:
                continue
            if value.dtype.kind not in _TEXTS:
                seen.add(key)
            yield from ({name: made} for made in _met(value, _Limits(numbers, limit.first), rng))


# The constants -------------------------------------------------------------------------------------------------------


def _of_models(models: Sequence[tuple[onnx.ModelProto, Path]]) -> Iterator[_Limits]:
    held = [[one for one in held_constants(model) if is_compared(one)] for model, _ in models]
    folders = [folder for _, folder in models]
    is_paired = len(held[0]) == len(held[1])
    for side, constants in enumerate(held):
        for place, constant in enumerate(constants):
            array = constant.elements(folders[side])
            other = held[1 - side][place].elements(folders[1 - side]) if is_paired else array
            has_other_shape = other.shape != array.shape
            first = np.empty(0, np.int64) if has_other_shape else np.flatnonzero(array != other)
            # The second model's own constants are those of the first one but for what differs.
            is_new = side == 0 or not is_paired or has_other_shape or bool(first.size)
            # A single number is drawn exactly with the others (see `draw`), if it is no large integer.
            is_covered = array.size == 1 and array.dtype.kind not in "iu" and constant.readers[0][1] != ATTRIBUTE
            if array.size and is_new and not is_covered:
                yield _Limits(array, first)


def is_compared(constant: HeldConstant) -> bool:
    """Return True if a node may compare a constant with data."""
    return (
        bool(constant.readers)
        and 1 <= constant.size <= _LARGEST
        and not all(
            position in _WEIGHED.get(op_type, ()) or position in kinds.SHAPE_INPUTS.get(op_type, ())
            for op_type, position in constant.readers
        )
    )


def _of_base(base: Mapping[str, Value], free: Mapping[str, Array]) -> Iterator[_Limits]:
    none = np.empty(0, np.int64)
    for name, value in base.items():
        if name not in free and isinstance(value, np.ndarray) and 1 <= value.size <= _LARGEST:
            yield _Limits(value, none)


def in_type(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return the elements in the type of an input; None if they cannot be compared with it."""
    if array.dtype.kind in _TEXTS or dtype.kind in _TEXTS:
        return array.astype(object) if array.dtype.kind in _TEXTS and dtype.kind in _TEXTS else None
    if array.dtype.kind in "bc" or not (_is_fraction(dtype) or dtype.kind in "iu"):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if _is_fraction(dtype):
            numbers = array.astype(dtype)
            return np.where(np.isfinite(numbers.astype(np.float64)), numbers, np.zeros((), dtype))
        if array.dtype.kind in "iu":
            wide: Array = array
        else:
            wide = np.clip(np.rint(np.nan_to_num(array.astype(np.float64))), -(2.0**62), 2.0**62).astype(np.int64)
    info = np.iinfo(dtype)
    low, high = max(int(info.min), int(np.iinfo(wide.dtype).min)), min(int(info.max), int(np.iinfo(wide.dtype).max))
    return np.clip(wide, low, high).astype(dtype)


def _is_fraction(dtype: np.dtype[Any]) -> bool:
    return dtype.name in ("float16", "bfloat16", "float32", "float64")


# Where they meet the data --------------------------------------------------------------------------------------------


def _met(value: Array, limit: _Limits, rng: np.random.Generator) -> Iterator[Array]:
    """Yield an input of this shape whose elements are those of a constant that they meet, and their neighbours."""
    variants = [*_around(limit.array.reshape(-1))]
    is_whole = False
    for places in _meetings(value.shape, limit.array.shape):
        if places.shape[-1] == 1:
            is_whole = True
            yield from (numbers[places[..., 0]] for numbers in (*variants, *_multiples(variants[0])))
        else:
            yield from _in_turn(variants, places, limit.first)
    # Each element alone, wherever it meets the data.
    for place in limit.first[:_MOST_ALONE].tolist():
        yield from (np.full(value.shape, numbers[place]) for numbers in variants)
    order = _in_order(limit.array.size, limit.first)
    for case in range(min(-(-order.size // value.size), _FEW_CASES if is_whole else _MOST_CASES)):
        chosen = order[(np.arange(value.size) + case * value.size) % order.size].reshape(value.shape)
        yield from (numbers[chosen] for numbers in variants)
    if not is_whole:
        yield from (_among_others(value, variants, limit.first, rng) for _ in range(_CASES_AMONG_OTHERS))


def _among_others(value: Array, variants: Sequence[Array], first: Array, rng: np.random.Generator) -> Array:
    """Return elements of a constant, those that differ above all, between ordinary numbers: a threshold of a decision
    tree is only met by numbers that take the way to its node.
    """
    every = np.stack(variants)
    wanted = every[:, first] if first.size else every
    made = rng.choice(every.reshape(-1), value.shape)
    made = np.where(rng.uniform(size=value.shape) < _SHARE, rng.choice(wanted.reshape(-1), value.shape), made)
    if not _is_fraction(value.dtype):
        return np.asarray(made, value.dtype)
    ordinary = rng.standard_normal(value.shape).astype(value.dtype)
    return np.where(rng.uniform(size=value.shape) < _SHARE, ordinary, made)


def _meetings(shape: tuple[int, ...], other: tuple[int, ...]) -> Iterator[Array]:
    """Yield which elements of a constant of the other shape each element of an input meets, along the last axis."""
    size = math.prod(other)
    shapes = [other, shape if math.prod(shape) == size else other]
    if max(other, default=1) == size:
        shapes += [(size, *[1] * (len(shape) - axis - 1)) for axis, length in enumerate(shape) if length == size]
    tried = {each: np.arange(size).reshape(each) for each in dict.fromkeys(shapes)}
    if len(other) == 2:
        tried.setdefault(other[::-1], np.arange(size).reshape(other).T)
    for each, places in tried.items():
        try:
            whole = np.broadcast_shapes(shape, each)
        except ValueError:
            continue
        if math.prod(whole) <= _LARGEST_MEETING:
            padded = (1,) * (len(whole) - len(shape)) + shape
            spread = [axis for axis, length in enumerate(padded) if length != whole[axis]]
            kept = [axis for axis in range(len(whole)) if axis not in spread]
            yield np.broadcast_to(places, whole).transpose([*kept, *spread]).reshape((*shape, -1))


def _in_turn(variants: Sequence[Array], places: Array, first: Array) -> Iterator[Array]:
    """Yield values in which each element of an input meets one of several elements of a constant after the other.
    Elements that meet the same ones share them.
    """
    shape, count = places.shape[:-1], places.shape[-1]
    rows = places.reshape(-1, count)
    rows = rows[:, np.argsort(~np.isin(rows, first).any(axis=0), kind="stable")]
    _, group = np.unique(rows[:, 0], return_inverse=True)
    number = np.zeros(rows.shape[0], np.int64)
    for one in range(group.max(initial=0) + 1):
        number[group == one] = np.arange(np.count_nonzero(group == one))
    shared = int(np.bincount(group).min(initial=rows.shape[0]))
    for case in range(min(-(-count // max(shared, 1)), _MOST_CASES)):
        chosen = rows[np.arange(rows.shape[0]), (number + case * shared) % count].reshape(shape)
        yield from (numbers[chosen] for numbers in variants)


def _in_order(count: int, first: Array) -> Array:
    return np.concatenate([first, np.setdiff1d(np.arange(count), first)]).astype(np.int64)


def _around(numbers: Array) -> Iterator[Array]:
    """Yield the elements, and their neighbours on both sides."""
    yield numbers
    if _is_fraction(numbers.dtype):
        for end in (np.inf, -np.inf):
            yield np.nextafter(numbers, np.asarray(end).astype(numbers.dtype))
    elif numbers.dtype.kind in "iu":
        info = np.iinfo(numbers.dtype)
        yield np.where(numbers < info.max, numbers + 1, numbers).astype(numbers.dtype)
        yield np.where(numbers > info.min, numbers - 1, numbers).astype(numbers.dtype)


def _multiples(scales: Array) -> Iterator[Array]:
    if _is_fraction(scales.dtype) and (scales > 0).all():
        with np.errstate(over="ignore"):
            yield from ((times * scales.astype(np.float64)).astype(scales.dtype) for times in MULTIPLES)
