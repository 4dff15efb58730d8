"""Ask whether the runs of a region read the elements of constants in which the two models differ.

Two models with other constants that give equal outputs have shown nothing if no run reads what differs: the last rows
of a table, a branch that is never taken, a limit that no length reaches. So these elements are changed once more, in a
copy of each side: a run that reads them gives something else, or fails. That holds for any operator. Whole numbers move
by 1, and fractions half of the way to the element of the other model: a run that stays below a limit does not tell the
limit from its neighbours, and so did not read it. Fractions also move each by a share of its own, because readers may
undo what happens to all of them alike.

A constant that only one model holds stands for what the other model computes: the numbers of a Range, a mask that Trilu
makes, weights behind DequantizeLinear. Where the other model computes it from constants, a run must read the elements
that differ; otherwise it must read all of a table. A run should also reach a number that may be a length. If no run
does, nothing follows: limits of types look the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import reads
from splitgraph.verification.comparison import Comparison
from splitgraph.verification.regions.finding.constants import HeldConstant, held_constants
from splitgraph.verification.regions.finding.folding import computed_tables
from splitgraph.verification.values import Array

# The elements of a constant that differ are asked for in so many groups at most; so many constants of a region are.
_GROUPS, _MOST = 6, 8
# A constant with more elements is not copied.
_MOST_ELEMENTS = 2**26
# So many elements are also moved by different shares of the way to the other model, between these.
_MOST_UNEVEN, _UNEVEN = 2**16, (0.25, 0.75)
# A larger number is no length that a dimension has: "up to the end" is written with several.
_NO_LENGTH = 2**31 - 1
# Of constants at other places in the region, those of so many elements are the same one if half of them are equal.
_LEAST_ALIKE = 8
# A smaller number of an attribute, or of a constant of one model, is a flag, a mode or an axis; or any run reaches it.
_LEAST_LENGTH = 8
# Positions and counts pass a number at so many times the length; of larger numbers, such a run takes long.
_SEVERAL, _MOST_SEVERAL = 4, 2**12
# What one model computes of constants, and the other one holds, may be rounded so many times as much as other results.
_ROUNDINGS = 10
# A factor that makes no shorter length longer than this is none.
_LONGEST_FACTOR = 2**20
_RESIZING = frozenset({"Resize", "Upsample"})
# A prime that no size is.
_NO_SIZE = 1000003
# A constant of one model with more elements is not copied.
_MOST_OF_ONE = 2**20
# Operators that read all elements of a constant whenever they compute anything.
_READING_ALL = kinds.BASIC | kinds.CONVOLUTIONS | kinds.PRODUCTS | kinds.RECURRENT
_READING_ALL |= kinds.names("BatchNormalization Div GroupNormalization InstanceNormalization LayerNormalization PRelu")
_READING_ALL |= kinds.names("ConstantOfShape Expand Pad RMSNormalization Reshape Resize Tile")
# The attribute of RegexFullMatch.
_PATTERN = "pattern"


class ConstantChange(NamedTuple):
    """A constant with other elements in the second model, or one that only one model holds. positions: of the constant
    among those of each side. places: the elements that differ on each side, in its flat form; none of a side without
    it. arrays: the elements of each side. only: the side of a constant that the other one has not. is_needed: the
    models are not equal before a run reads it. is_pattern: of texts, so that a text which matches the one says nothing
    about the other: no run reads it all.
    """

    positions: tuple[int, int]
    places: tuple[Array, Array]
    arrays: tuple[Array, Array]
    only: int | None = None
    is_needed: bool = True
    is_pattern: bool = False

    @property
    def side(self) -> int:
        """Return the side that a message names."""
        return self.only or 0

    def first_place(self) -> list[int]:
        """Return the index of the first element that differs."""
        side = 0 if self.places[0].size else 1
        return [int(index) for index in np.unravel_index(int(self.places[side][0]), self.arrays[side].shape)]

    def lengths(self) -> Iterator[int]:
        """Yield lengths at which a run may read the elements: up to the last one, all of a table, and the numbers. A
        position or a count is below a length, and passes a number only if the length is several times as large.
        """
        if self.only is not None:
            # Where the table of the second model ends, the first one may go on.
            yield from (length + 1 for length in self.arrays[self.side].shape)
        for places, array in zip(self.places, self.arrays, strict=True):
            if places.size and array.ndim:
                yield from (int(axis.max()) + 1 for axis in np.unravel_index(places, array.shape))
            yield from array.shape
        for places, array in zip(self.places, self.arrays, strict=True):
            if array.dtype.kind in "iuf":
                numbers = array.reshape(-1)[places[:_GROUPS]].tolist()
                lengths = [int(number) for number in numbers if abs(number) < _NO_LENGTH]
                # So long is what a factor makes longer by one.
                lengths += [math.ceil(1 / _fraction(number)) for number in numbers if _is_near_whole(number)]
                yield from (length + more for length in lengths for more in (2, 1, 0))
                yield from (_SEVERAL * length for length in lengths if length <= _MOST_SEVERAL)


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
    """Return the constants of a region that have other elements in the second model, by more than rtol of each, and
    those that only one of the models holds.
    """
    held = [held_constants(model, has_all_attributes=True) for model in models]
    changes = []
    left = [dict(enumerate(side)) for side in held]
    for one, other in _pairs(held, folders):
        arrays = held[0][one].elements(folders[0]), held[1][other].elements(folders[1])
        if not _is_comparable(*arrays):
            continue
        del left[0][one], left[1][other]
        unread = held[0][one].unread, held[1][other].unread
        first, second = (np.setdiff1d(*pair) for pair in zip(_different_places(*arrays, rtol), unread, strict=True))
        places = first.astype(np.int64), second.astype(np.int64)
        change = ConstantChange((one, other), places, arrays, is_pattern=held[0][one].name == _PATTERN)
        if (places[0].size or places[1].size) and not _is_detail(held[0][one], change):
            changes.append(change)
    return [*changes, *_of_one_side(models, left, folders, rtol)][:_MOST]


def _pairs(held: Sequence[Sequence[HeldConstant]], folders: Sequence[Path | None]) -> Iterator[tuple[int, int]]:
    """Yield the constants that stand for each other: those of nodes that are alike, or equal and nearly equal ones."""
    roles = [[(one.readers, one.is_setting and one.name) for one in side] for side in held]
    left = list(range(len(held[1])))
    for place, one in enumerate(held[0]):
        if one.size > _MOST_ELEMENTS:
            continue
        if roles[0] == roles[1]:
            found: int | None = place
        else:
            found = next((other for other in left if _are_alike((one, held[1][other]), folders)), None)
        if found is not None:
            left.remove(found)
            yield place, found


def _are_alike(pair: tuple[HeldConstant, HeldConstant], folders: Sequence[Path | None]) -> bool:
    """Return True if two constants are equal, or have so many elements and half of them are equal."""
    one, other = pair
    if _is_stored_alike(one.held, other.held):
        return True
    if one.unread or other.unread:
        # Lists of trees, of which other tables have the elements in another order.
        return False
    if one.size != other.size or one.size < _LEAST_ALIKE:
        return False
    arrays = one.elements(folders[0]), other.elements(folders[1])
    if not _is_comparable(*arrays):
        return False
    return bool(np.count_nonzero(arrays[0].reshape(-1) == arrays[1].reshape(-1)) * 2 >= one.size)


def _is_comparable(array: Array, other: Array) -> bool:
    """Return True for two tables, and for as many numbers in another type or another shape."""
    if array.dtype == other.dtype and array.ndim == other.ndim:
        return True
    return array.size == other.size and all(_is_number(each) for each in (array, other))


def _is_number(array: Array) -> bool:
    return array.dtype.kind in "iufb" or "float" in array.dtype.name


def _of_one_side(
    models: Sequence[onnx.ModelProto],
    left: Sequence[Mapping[int, HeldConstant]],
    folders: Sequence[Path | None],
    rtol: float,
) -> Iterator[ConstantChange]:
    """Yield the constants that only one side holds. left: those without a partner on each side."""
    none = np.empty(0, np.int64)
    # What the other side computes.
    computed = [cache(lambda side=side: computed_tables(models[side], folders[side])) for side in (1, 0)]
    for side, constants in enumerate(left):
        for position, constant in constants.items():
            is_table = _LEAST_ALIKE <= constant.size <= _MOST_OF_ONE and not constant.is_setting
            if constant.size > _LEAST_ALIKE and not is_table:
                continue
            array = constant.elements(folders[side])
            if is_table and all(op_type in _READING_ALL for op_type, _ in constant.readers):
                continue
            places, other = np.arange(array.size) if is_table else _lengths_in(array), array
            is_needed = is_table
            if array.dtype.kind == "f" and not is_table:
                # A run that reads a factor tells it from the whole number beside it.
                other = np.rint(array)
                is_factor = any(op_type in _RESIZING for op_type, _ in constant.readers)
                is_needed = is_factor and any(map(_is_near_whole, array.ravel().tolist()))
            for made in computed[side]().values() if is_table else ():
                differs = _differs_from_computed(array, made, rtol)
                if np.count_nonzero(differs) * 2 < array.size:
                    places, other = np.flatnonzero(differs), made
            places = np.setdiff1d(places, constant.unread).astype(np.int64)
            if places.size:
                of_sides, arrays = ((places, none), (array, other)) if side == 0 else ((none, places), (other, array))
                yield ConstantChange((position, position), of_sides, arrays, side, is_needed)


def _differs_from_computed(array: Array, made: Array, rtol: float) -> npt.NDArray[np.bool_]:
    """Mark the elements of a table that are not what the other side computes, by more than engines round."""
    if (array.dtype, array.shape) != (made.dtype, made.shape):
        return np.ones(array.shape, bool)
    return Comparison(_ROUNDINGS * rtol, 0.0, is_local=True, may_overflow=False).wrong(made, array)


def _lengths_in(array: Array) -> Array:
    """Return the places of the elements that a dimension may be compared with."""
    if not _is_number(array):
        return np.empty(0, np.int64)
    numbers = array.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        is_length = (numbers >= _LEAST_LENGTH) & (numbers < _NO_LENGTH) & (numbers == np.rint(numbers))
    return np.flatnonzero(is_length | np.array([_is_near_whole(number) for number in numbers], bool))


def _is_near_whole(number: float) -> bool:
    """Return True for a factor of lengths that is a little larger than a whole number, or smaller."""
    return abs(number) < _NO_LENGTH and 1 / _LONGEST_FACTOR < _fraction(number) < 1 / _LEAST_LENGTH


def _fraction(number: float) -> float:
    return abs(number - round(number))


def _is_stored_alike(
    one: onnx.TensorProto | onnx.AttributeProto, other: onnx.TensorProto | onnx.AttributeProto
) -> bool:
    """Return True if two constants certainly have the same elements."""
    if isinstance(one, onnx.TensorProto) and isinstance(other, onnx.TensorProto) and one.raw_data:
        return (one.data_type, one.dims, one.raw_data) == (other.data_type, other.dims, other.raw_data)
    return False


def _different_places(array: Array, other: Array, rtol: float) -> tuple[Array, Array]:
    """Return the elements that differ, and those that only one of two tables has."""
    if array.dtype != other.dtype or array.ndim != other.ndim:
        places = np.flatnonzero(_differ(_as_float(array), _as_float(other), rtol))
        return places, places
    overlap = tuple(slice(min(lengths)) for lengths in zip(array.shape, other.shape, strict=True))
    # An index gives a text itself, and no array.
    differ = _differ(np.asarray(array[overlap]), np.asarray(other[overlap]), rtol)
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


def _as_float(array: Array) -> Array:
    return array.reshape(-1).astype(np.float64)


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
    targets = [_in_targets(model) for model in models]
    for (number, change), side in itertools.product(enumerate(changes), (0, 1)):
        array, other = change.arrays[side], change.arrays[1 - side]
        places = change.places[side]
        for group in np.array_split(places, min(_GROUPS, places.size)) if places.size else ():
            group = group[~_is_no_length(array.reshape(-1)[group])]
            if group.size:
                made = [
                    _with_elements(models[side], change.positions[side], spoiled)
                    for spoiled in _spoiled(array, other, group)
                ]
                if change.only in (None, side) and change.positions[side] in targets[side]:
                    made.append(_with_elements(models[side], change.positions[side], _with_no_size(array, group)))
                yield ReadingQuestion(number, side, [] if change.is_pattern else made)


def _in_targets(model: onnx.ModelProto) -> set[int]:
    """Return the constants that only say the targets of Reshapes, alone or put together with others. There, 0 and -1
    can say the same as their neighbours, and no number is a limit.
    """
    targets, others = set[str](), {output.name for output in model.graph.output}
    # Who reads a value comes behind who makes it.
    for node in reversed(model.graph.node):
        joins = node.op_type == "Concat" and node.output[0] in targets - others
        inputs = [*node.input]
        if joins or node.op_type == "Reshape":
            first = 0 if joins else 1
            targets.update(inputs[first:])
            inputs = inputs[:first]
        others.update(inputs, {*reads(node)} - {*node.input})
    held = held_constants(model, has_all_attributes=True)
    return {number for number, constant in enumerate(held) if constant.name in targets - others}


def _with_no_size(array: Array, places: Array) -> Array:
    """Return a target with a number that no size is."""
    flat = np.array(array).reshape(-1)
    flat[places] = _NO_SIZE
    return flat.reshape(array.shape)


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
    if other.size == math.prod(shape):
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
        yield _between(elements, counterparts, np.float64(0.5))
        if 1 < elements.size <= _MOST_UNEVEN:
            # Readers may undo what happens to all elements alike, such as a factor or a shift.
            shares = np.random.default_rng(elements.size).uniform(*_UNEVEN, elements.shape)
            yield _between(elements, counterparts, shares)


def _between(elements: Array, counterparts: Array, shares: npt.NDArray[np.float64] | np.float64) -> Array:
    """Return numbers on the way to the others; other ones where there is none between. shares: of the way."""
    one, other = elements.astype(np.float64), counterparts.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        made = (one * (1 - shares) + other * shares).astype(elements.dtype)
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
