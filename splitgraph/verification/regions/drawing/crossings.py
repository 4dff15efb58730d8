"""Find where functions of one number cross 0: numbers at which something inside of a region is decided otherwise.

A function is known at some numbers. Between two of these at which its sign is another one, halving finds where it
changes. Where it only comes near to 0, the search goes on to its lowest point: a window such as |x / 10 - 5| < 0.1 lies
between two numbers that are both outside of it. Each element of a tensor has a number and functions of its own; all
are looked for at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from splitgraph.verification.values import Array

# Halving ends after so many steps, or where no number is between; and the way to a lowest point, after so many.
_MOST_STEPS, _MOST_DOWN = 70, 44
# So many crossings of each function are looked for, those near to 0 first, and so many low points.
_MOST_CROSSINGS, _MOST_LOW = 8, 3
# So much of what is left stays on the way to a lowest point.
_GOLDEN = (5**0.5 - 1) / 2
# Beside a crossing, numbers are off by so much: what is nearer may be rounding.
_BESIDE = 1e-2
# Two crossings that are this near to each other are one, but for rounding; so small beside what it was is 0.
_ALIKE, _NEARLY = 64, 1e-4

Flags = npt.NDArray[np.bool_]


class Watched(NamedTuple):
    """A function. is_compared: it is the difference of two values that are compared. is_smooth: where it is 0, what is
    computed from it does not jump.
    """

    is_compared: bool
    is_smooth: bool


class NumberLine(Protocol):
    """Functions of one number. count: of elements, each with a number of its own. epsilon: how numbers are rounded,
    relative to their size; 0 for whole numbers.
    """

    count: int
    epsilon: float

    def gaps(self, numbers: Array) -> Array:
        """Return the functions, [rows, functions, elements], for numbers, [rows, elements]."""

    def rounded(self, numbers: Array) -> Array:
        """Return the nearest numbers of the type, or those below."""


class _Rows(NamedTuple):
    """Ends between which functions cross 0, [rows, elements], NaN for none. which: the function of each row. is_strict:
    it is looked for where the function begins to be larger than 0, and not where it is 0 first.
    """

    low: Array
    high: Array
    which: npt.NDArray[np.intp]
    is_strict: Flags


class FoundNumbers(NamedTuple):
    """Numbers for the elements, NaN where nothing is found. may_cancel: a value that nothing is compared with is 0."""

    numbers: Array
    may_cancel: bool = False


def find_numbers(
    line: NumberLine, watched: Sequence[Watched], known: Array, most: int, end: float
) -> Iterator[FoundNumbers]:
    """Yield numbers between crossings, and at and beside them. known: the numbers at which the functions are known
    first, in their order. most: rows that are looked for. end: until when.
    """
    if not watched or known.size < 2:
        return
    values = line.gaps(np.repeat(known[:, None], line.count, axis=1))
    parts = [*_changes(values, known)]
    lowest, flipped = _lowest(line, watched, values, known, end)
    rows = _joined([*parts, *flipped], most)
    if rows is None:
        yield from map(FoundNumbers, lowest)
        return
    found = _halved(line, rows, end)
    # A value that is 0 by rounding alone is so at several numbers, and nothing is decided between these.
    deciding = np.array([watched[which].is_compared or not line.epsilon for which in found.which])
    yield from map(FoundNumbers, _middles(line, found.high[deciding]))
    yield from _exact(line, watched, found, values)
    yield from map(FoundNumbers, lowest)
    for row, which in zip(found.high, rows.which, strict=True):
        if not line.epsilon:
            yield from (FoundNumbers(row + step) for step in (0, -1, 1))
        elif watched[which].is_compared:
            size = _BESIDE * np.maximum(np.abs(row), _BESIDE)
            yield from (FoundNumbers(line.rounded(row + sign * size)) for sign in (1, -1))


def _changes(values: Array, known: Array) -> Iterator[_Rows]:
    """Yield where the sign of a function changes between two known numbers."""
    order = np.argsort(np.abs(known[:-1]) + np.abs(known[1:]), kind="stable")
    with np.errstate(invalid="ignore"):
        for which in range(values.shape[1]):
            own = values[:, which]
            is_known = ~(np.isnan(own[:-1]) | np.isnan(own[1:]))
            for is_strict in (False, True):
                holds = own > 0 if is_strict else own >= 0
                changed = ((holds[:-1] != holds[1:]) & is_known)[order]
                yield from _turns(changed, order, known, which, is_strict=is_strict)


def _turns(
    changed: Flags, order: npt.NDArray[np.intp], known: Array, which: int, *, is_strict: bool
) -> Iterator[_Rows]:
    rank = np.cumsum(changed, axis=0)
    for turn in range(1, min(int(rank[-1].max(initial=0)), _MOST_CROSSINGS) + 1):
        hit = changed & (rank == turn)
        place, has = order[hit.argmax(axis=0)], hit.any(axis=0)
        low, high = (np.where(has, known[place + more], np.nan)[None] for more in (0, 1))
        yield _Rows(low, high, np.array([which]), np.array([is_strict]))


def _joined(parts: Sequence[_Rows], most: int) -> _Rows | None:
    """Return all rows as one, the first crossings of each function first; None without any."""
    if not parts:
        return None
    turns = np.zeros(len(parts), np.int64)
    seen: dict[tuple[int, bool], int] = {}
    for place, part in enumerate(parts):
        key = int(part.which[0]), bool(part.is_strict[0])
        turns[place] = seen[key] = seen.get(key, -1) + 1
    chosen = [parts[place] for place in np.argsort(turns, kind="stable")[:most]]
    return _Rows(*(np.concatenate(each) for each in zip(*chosen, strict=True)))


def _gaps_of(line: NumberLine, numbers: Array, which: npt.NDArray[np.intp]) -> Array:
    """Return the function of each row at its numbers."""
    values = line.gaps(np.where(np.isnan(numbers), 0.0, numbers))
    own: Array = values[np.arange(len(which)), which]
    return own


def _halved(line: NumberLine, rows: _Rows, end: float) -> _Rows:
    """Return the last two numbers between which each function crosses 0."""
    low, high = rows.low, rows.high
    strict = rows.is_strict[:, None]
    with np.errstate(invalid="ignore"):
        first = _gaps_of(line, low, rows.which)
        holds = np.where(strict, first > 0, first >= 0)
        for _ in range(_MOST_STEPS):
            middle = line.rounded(low / 2 + high / 2)
            moves = np.isfinite(middle) & (middle != low) & (middle != high)
            if not moves.any() or time.monotonic() > end:
                break
            own = _gaps_of(line, middle, rows.which)
            stays = np.where(strict, own > 0, own >= 0) == holds
            low, high = np.where(moves & stays, middle, low), np.where(moves & ~stays, middle, high)
    return rows._replace(low=low, high=high)


def _middles(line: NumberLine, edges: Array) -> Iterator[Array]:
    """Yield the numbers in the middle between two crossings. A window is decided in it, whatever is beside it."""
    ordered = np.sort(edges, axis=0)
    low, high = ordered[:-1], ordered[1:]
    with np.errstate(invalid="ignore"):
        is_apart = high - low > _ALIKE * line.epsilon * np.maximum(np.abs(low), np.abs(high))
    middle = np.where(is_apart, line.rounded(low / 2 + high / 2), np.nan)
    # Rows in which no element has an interval tell nothing; the others are moved together.
    packed = np.take_along_axis(middle, np.argsort(np.isnan(middle), axis=0, kind="stable"), axis=0)
    yield from (row for row in packed if np.isfinite(row).any())


def _exact(line: NumberLine, watched: Sequence[Watched], found: _Rows, values: Array) -> Iterator[FoundNumbers]:
    """Yield the crossings themselves where a function is 0 there, or nearly, and nothing jumps."""
    at = _gaps_of(line, found.high, found.which)
    with np.errstate(invalid="ignore"):
        for place, which in enumerate(found.which):
            size = np.where(np.isfinite(values[:, which]), np.abs(values[:, which]), 0.0).max(axis=0)
            least = _NEARLY * size if watched[which].is_smooth else 0.0
            row = np.where(np.abs(at[place]) <= least, found.high[place], np.nan)
            if np.isfinite(row).any():
                yield FoundNumbers(row, not watched[which].is_compared)


# Low points -----------------------------------------------------------------------------------------------------------


def _lowest(
    line: NumberLine, watched: Sequence[Watched], values: Array, known: Array, end: float
) -> tuple[list[Array], list[_Rows]]:
    """Return the low points that do not reach 0, NaN for those that do; and for each that does, the rows before and
    behind it, which cross 0.
    """
    starts = [*_valleys(watched, values, known)]
    if not starts:
        return [], []
    valleys = _Rows(*(np.concatenate(each) for each in zip(*starts, strict=True)))
    best, reaches = _descended(line, valleys, end)
    crossing = [
        rows
        for place in map(int, np.flatnonzero(reaches.any(axis=1)))
        for rows in _both_sides(valleys, place, np.where(reaches[place], best[place], np.nan))
    ]
    return list(np.where(reaches, np.nan, best)), crossing


def _descended(line: NumberLine, valleys: _Rows, end: float) -> tuple[Array, Flags]:
    """Return the lowest point of each valley, by golden-section search, and whether its function reaches 0 there."""
    low, high, which = valleys.low, valleys.high, valleys.which
    sign = np.where(_gaps_of(line, low, which) > 0, 1.0, -1.0)
    best = low
    least = np.full(low.shape, np.inf)
    with np.errstate(invalid="ignore"):
        for _ in range(_MOST_DOWN):
            if time.monotonic() > end:
                break
            points = [line.rounded(high - _GOLDEN * (high - low)), line.rounded(low + _GOLDEN * (high - low))]
            sizes = [sign * _gaps_of(line, point, which) for point in points]
            for point, size in zip(points, sizes, strict=True):
                best, least = np.where(size < least, point, best), np.where(size < least, size, least)
            is_left = sizes[0] < sizes[1]
            low, high = np.where(is_left, low, points[0]), np.where(is_left, points[1], high)
    return best, least <= 0


def _both_sides(valleys: _Rows, place: int, middle: Array) -> Iterator[_Rows]:
    """Yield the two parts of a valley, each for both kinds of crossings. middle: its lowest points, NaN for none."""
    for ends in ((valleys.low[place], middle), (middle, valleys.high[place])):
        has_both = np.isfinite(ends[0]) & np.isfinite(ends[1])
        low, high = (np.where(has_both, each, np.nan)[None] for each in ends)
        for is_strict in (False, True):
            yield _Rows(low, high, valleys.which[place : place + 1], np.array([is_strict]))


def _valleys(watched: Sequence[Watched], values: Array, known: Array) -> Iterator[_Rows]:
    """Yield the known numbers around those at which something that is compared is nearer to 0 than at both."""
    with np.errstate(invalid="ignore"):
        for which, each in enumerate(watched):
            if not each.is_compared:
                continue
            own = values[:, which]
            signs, sizes = np.sign(own), np.abs(own)
            is_same = (signs[:-2] == signs[1:-1]) & (signs[1:-1] == signs[2:]) & (signs[1:-1] != 0)
            is_low = (sizes[1:-1] <= sizes[:-2]) & (sizes[1:-1] <= sizes[2:])
            is_low &= is_same & ((sizes[1:-1] < sizes[:-2]) | (sizes[1:-1] < sizes[2:]))
            height = np.where(is_low, sizes[1:-1], np.inf)
            for place in np.argsort(height, axis=0)[:_MOST_LOW]:
                has = np.take_along_axis(is_low, place[None], axis=0)[0]
                if has.any():
                    low, high = (np.where(has, known[place + more], np.nan)[None] for more in (0, 2))
                    yield _Rows(low, high, np.array([which]), np.array([False]))
