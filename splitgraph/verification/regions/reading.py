"""Ask whether the runs of a region read the elements of constants in which the two models differ.

Two models with other constants that give equal outputs have shown nothing if no run reads what differs: the last rows
of a table, a branch that is never taken, a limit that no length reaches. So these elements are changed once more, in a
copy of each side: a run that reads them gives something else, or fails. That holds for any operator. Whole numbers move
by 1, and fractions half of the way to the element of the other model: a run that stays below a limit does not tell the
limit from its neighbours, and so did not read it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

from splitgraph.verification.regions.constants import HeldConstant, held_constants
from splitgraph.verification.values import Array

# The elements of a constant that differ are asked for in so many groups at most; so many constants of a region are.
_GROUPS, _MOST = 6, 8
# A constant with more elements is not copied.
_MOST_ELEMENTS = 2**26
# A larger number is no length that a dimension has: "up to the end" is written with several.
_NO_LENGTH = 2**31 - 1
# Of constants at other places in the region, those of so many elements are the same one if half of them are equal.
_LEAST_ALIKE = 8
# An attribute with a smaller number is a flag, a mode or an axis.
_LEAST_LENGTH = 8


class ConstantChange(NamedTuple):
    """A constant with other elements in the second model. positions: of the constant among those of each side. places:
    the elements that differ on each side, in its flat form. arrays: the elements of each side.
    """

    positions: tuple[int, int]
    places: tuple[Array, Array]
    arrays: tuple[Array, Array]

    def first_place(self) -> list[int]:
        """Return the index of the first element that differs."""
        side = 0 if self.places[0].size else 1
        return [int(index) for index in np.unravel_index(int(self.places[side][0]), self.arrays[side].shape)]

    def lengths(self) -> Iterator[int]:
        """Yield lengths at which a run may read the elements: up to the last one, all of a table, and the numbers."""
        for places, array in zip(self.places, self.arrays, strict=True):
            if places.size and array.ndim:
                yield from (int(axis.max()) + 1 for axis in np.unravel_index(places, array.shape))
            yield from array.shape
        for places, array in zip(self.places, self.arrays, strict=True):
            if array.dtype.kind in "iuf":
                numbers = array.reshape(-1)[places[:_GROUPS]].tolist()
                yield from (int(number) + more for number in numbers if abs(number) < _NO_LENGTH for more in (2, 1, 0))


class ReadingQuestion(NamedTuple):
    """Elements that a run should read. change: the number of their ConstantChange. models: copies of one side in which
    they are others.
    """

    change: int
    side: int
    models: Sequence[onnx.ModelProto]


# What differs ---------------------------------------------------------------------------------------------------------


def find_changes(
    models: Sequence[onnx.ModelProto], folders: Sequence[Path | None], rtol: float
) -> list[ConstantChange]:
    """Return the constants of a region that have other elements in the second model, by more than rtol of each."""
    held = [held_constants(model, has_all_attributes=True) for model in models]
    changes = []
    for one, other in _pairs(held, folders):
        arrays = held[0][one].elements(folders[0]), held[1][other].elements(folders[1])
        places = _different_places(*arrays, rtol)
        change = ConstantChange((one, other), places, arrays)
        if (places[0].size or places[1].size) and not _is_detail(held[0][one], change):
            changes.append(change)
    return changes[:_MOST]


def _pairs(held: Sequence[Sequence[HeldConstant]], folders: Sequence[Path | None]) -> Iterator[tuple[int, int]]:
    """Yield the constants that stand for each other, and may differ: those of nodes that are alike, or nearly equal
    ones.
    """
    roles = [[(one.readers, one.is_setting and one.name) for one in side] for side in held]
    left = list(range(len(held[1])))
    for place, one in enumerate(held[0]):
        if one.size > _MOST_ELEMENTS:
            continue
        if roles[0] == roles[1]:
            found: int | None = place
        else:
            found = next((other for other in left if _are_alike((one, held[1][other]), folders)), None)
        if found is not None and not _is_stored_alike(one.held, held[1][found].held):
            yield place, found
        if found is not None:
            left.remove(found)


def _are_alike(pair: tuple[HeldConstant, HeldConstant], folders: Sequence[Path | None]) -> bool:
    """Return True if at least half of the elements of two constants are equal."""
    sizes, tensors = [one.size for one in pair], [one.held for one in pair if isinstance(one.held, onnx.TensorProto)]
    if min(sizes) < _LEAST_ALIKE or len(tensors) < 2 or tensors[0].dims != tensors[1].dims:
        return False
    one, other = (constant.elements(folder) for constant, folder in zip(pair, folders, strict=True))
    return one.dtype == other.dtype and bool(np.count_nonzero(one == other) * 2 >= one.size)


def _is_stored_alike(
    one: onnx.TensorProto | onnx.AttributeProto, other: onnx.TensorProto | onnx.AttributeProto
) -> bool:
    """Return True if two constants certainly have the same elements."""
    if isinstance(one, onnx.TensorProto) and isinstance(other, onnx.TensorProto) and one.raw_data:
        return (one.data_type, one.dims, one.raw_data) == (other.data_type, other.dims, other.raw_data)
    return False


def _different_places(array: Array, other: Array, rtol: float) -> tuple[Array, Array]:
    """Return the elements that differ, and those that only one of two tables has."""
    none = np.empty(0, np.int64)
    if array.dtype != other.dtype or array.ndim != other.ndim:
        return none, none
    overlap = tuple(slice(min(lengths)) for lengths in zip(array.shape, other.shape, strict=True))
    differ = _differ(array[overlap], other[overlap], rtol)
    flags = [np.ones(each.shape, bool) for each in (array, other)]
    for each in flags:
        each[overlap] = differ
    return np.flatnonzero(flags[0]), np.flatnonzero(flags[1])


def _differ(array: Array, other: Array, rtol: float) -> Array:
    if array.dtype.kind == "f" or "float" in array.dtype.name:
        left, right = array.astype(np.float64), other.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = (left == right) | (np.abs(left - right) <= rtol * np.abs(left))
        return np.asarray(~(near | (np.isnan(left) & np.isnan(right))))
    differ = np.asarray(array != other)
    if array.dtype.kind in "iu" and array.dtype.itemsize >= 4:
        far = [np.abs(each.astype(np.float64)) >= _NO_LENGTH for each in (array, other)]
        differ &= ~(far[0] & far[1] & ((array > 0) == (other > 0)))
    return differ


def _is_detail(constant: HeldConstant, change: ConstantChange) -> bool:
    """Return True for an attribute that is no length or limit."""
    return constant.is_setting and all(
        float(np.abs(array.astype(np.float64)).max(initial=0.0)) < _LEAST_LENGTH for array in change.arrays
    )


# Copies with other elements -------------------------------------------------------------------------------------------


def questions(
    models: Sequence[onnx.ModelProto], folders: Sequence[Path | None], changes: Sequence[ConstantChange]
) -> Iterator[ReadingQuestion]:
    """Yield what runs of a region should read."""
    for (number, change), side in itertools.product(enumerate(changes), (0, 1)):
        array, other = change.arrays[side], change.arrays[1 - side]
        places = change.places[side]
        for group in np.array_split(places, min(_GROUPS, places.size)) if places.size else ():
            group = group[~_is_no_length(array.reshape(-1)[group])]
            if group.size:
                made = (
                    _with_elements(models[side], change.positions[side], spoiled)
                    for spoiled in _spoiled(array, other, group)
                )
                yield ReadingQuestion(number, side, list(made))


def _is_no_length(elements: Array) -> Array:
    if elements.dtype.kind not in "iu" or elements.dtype.itemsize < 4:
        return np.zeros(elements.shape, bool)
    return np.asarray(np.abs(elements.astype(np.float64)) >= _NO_LENGTH)


def _spoiled(array: Array, other: Array, places: Array) -> Iterator[Array]:
    """Yield an array with other elements at some places."""
    flat = np.array(array).reshape(-1)
    for elements in _others(flat[places], _counterparts(other, array.shape, places)):
        changed = flat.copy()
        changed[places] = elements
        yield changed.reshape(array.shape)


def _counterparts(other: Array, shape: tuple[int, ...], places: Array) -> Array:
    """Return the elements of the other model at some places; its first ones where it has none."""
    if other.shape == shape:
        return other.reshape(-1)[places]
    return np.resize(other.reshape(-1), places.size) if other.size else np.zeros(places.size, other.dtype)


def _others(elements: Array, counterparts: Array) -> Iterator[Array]:
    dtype = elements.dtype
    if dtype.kind in "OUS":
        yield np.array([f"{text}#" for text in elements.tolist()], dtype=object)
    elif dtype.kind == "b":
        yield ~elements
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        yield np.where(elements < info.max, elements + 1, elements - 1).astype(dtype)
        yield np.where(elements > info.min, elements - 1, elements + 1).astype(dtype)
    elif dtype.kind == "c":
        yield (elements + 1).astype(dtype)
    else:
        yield _between(elements, counterparts)


def _between(elements: Array, counterparts: Array) -> Array:
    """Return numbers half of the way to the others; other ones where there is none between."""
    one, other = elements.astype(np.float64), counterparts.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        made = (one / 2 + other / 2).astype(elements.dtype)
        is_other = (made != elements) & np.isfinite(made.astype(np.float64))
        away = np.where(np.isfinite(one) & (one != 0), one / 2, 1.0).astype(elements.dtype)
    return np.where(is_other, made, away).astype(elements.dtype)


def _with_elements(model: onnx.ModelProto, position: int, array: Array) -> onnx.ModelProto:
    """Return a model with other elements in one of its constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    held: Any = held_constants(copy, has_all_attributes=True)[position].held
    if isinstance(held, onnx.TensorProto):
        # Texts are bytes in a tensor.
        made = onnx.numpy_helper.from_array(array, held.name)
        made.data_type = held.data_type
        held.CopyFrom(made)
    else:
        numbers = array.tolist()
        told = [number.encode() for number in numbers] if array.dtype == object and array.ndim else numbers
        held.CopyFrom(_attribute(held, told))
    return copy


def _attribute(held: onnx.AttributeProto, value: Any) -> onnx.AttributeProto:
    made = onnx.helper.make_attribute(held.name, value, attr_type=held.type)
    made.doc_string = held.doc_string
    return made
