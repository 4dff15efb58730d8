"""Draw numbers between the constants of a region, and beyond them. Two limits may bound what happens, such as
Relu(x - 50) * Relu(60 - x): at the limits and beside them nothing shows, and between them everything does.

Each interval between two constants has one number. One set of values fills each input with one number, so that a
minimum or a mean lies in the interval, too; another one has numbers of all intervals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from splitgraph.verification.regions.drawing.repeating import chosen
from splitgraph.verification.values import Array

# So many sets of values fill each input with one number, and so many have numbers of all intervals.
_MOST_FILLED, _MOST_MIXED = 32, 8
# Larger inputs get so many sets of each.
_LARGE, _FEW = 2**14, 4
# Larger constants are no limits of ordinary numbers, but ends of types and masks.
_LARGEST = 1e6


def draw_between(
    free: Mapping[str, Array], constants: Iterable[float], rng: np.random.Generator
) -> Iterator[dict[str, Array]]:
    """Yield values for the free inputs of a region. constants: the numbers of the region."""
    limits = [number for number in constants if abs(number) <= _LARGEST]
    yield from draw_between_own(free, dict.fromkeys(free, limits), rng)


def draw_between_own(
    free: Mapping[str, Array], own: Mapping[str, Sequence[float]], rng: np.random.Generator, most: int = _MOST_FILLED
) -> Iterator[dict[str, Array]]:
    """Yield values for the free inputs that have limits of their own. most: so many fill each input."""
    limits = {name: sorted({*own.get(name, ()), 0.0}) for name in free}
    numbers = {name: _numbers(free[name].dtype, found) for name, found in limits.items() if len(found) > 1}
    numbers = {name: found for name, found in numbers.items() if found.size}
    if not numbers:
        return
    is_large = sum(free[name].size for name in numbers) > _LARGE
    for few in _choices(list(numbers.values()), _FEW if is_large else most, rng):
        yield {name: np.full(free[name].shape, number) for name, number in zip(numbers, few, strict=True)}
    is_single = all(free[name].size == 1 for name in numbers)
    for _ in range(0 if is_single else _FEW if is_large else _MOST_MIXED):
        yield {name: chosen(found, free[name].shape, rng) for name, found in numbers.items()}


def _choices(lists: list[Array], most: int, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Yield one number of each list, in all combinations or in so many."""
    if math.prod(found.size for found in lists) <= most:
        yield from itertools.product(*lists)
        return
    # Each number has its turn.
    orders = [np.resize(rng.permutation(found), most) for found in lists]
    yield from zip(*orders, strict=True)


def _numbers(dtype: np.dtype[Any], limits: list[float]) -> Array:
    """Return a number of a type in each interval; none for other types."""
    ends = [limits[0] - max(1.0, abs(limits[0]) / 2), limits[-1] + max(1.0, abs(limits[-1]) / 2)]
    middles = [ends[0], *((low + high) / 2 for low, high in itertools.pairwise(limits)), ends[1]]
    if dtype.name in ("float16", "bfloat16", "float32", "float64"):
        with np.errstate(over="ignore"):
            found = np.array(middles).astype(dtype)
        return found[np.isfinite(found.astype(np.float64))]
    if dtype.kind not in "iu" or dtype.itemsize < 2:
        return np.empty(0, dtype)
    info = np.iinfo(dtype)
    whole = {math.floor(middle) for middle in middles}
    return np.array(sorted(number for number in whole if info.min <= number <= info.max), dtype)
