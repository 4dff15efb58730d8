"""Recognises weights that count the places of one grid along an axis, or of several grids one after the other.

A detector has the centre of each place of its maps in one list, the maps of all levels joined: 80 x 80, 40 x 40 and
20 x 20 places. The node that reads the list needs it to have what a Concat of the maps has. So each map says how many
rows and columns its part of the list counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from splitgraph.conversion.sizes.needs import Counted, Cut, Grid, Level, Levels, Repeated
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import found_along
from splitgraph.dim import DimLike, product, symbols_of


def grid_along(array: Any, axis: int, dims: Sequence[DimLike], wanted: Wanted) -> Grid | None:
    """Return what weights are along the dimensions of an axis; None if they do not count these, or count items."""
    sizes = tuple(size for size in map(wanted.before, dims) if isinstance(size, int))
    if len(sizes) < len(dims) or prod(sizes) != array.shape[axis]:
        return None
    lengths = (size for size, part in zip(sizes, dims, strict=True) if not symbols_of(part) <= wanted.batch)
    if 1 in lengths:
        # Weights of one place say nothing of several: T - 5 of 6.
        return None
    cut = Cut(axis, sizes, tuple(dims))
    parts = array.reshape(cut.parts(array.shape, sizes))
    found = {axis + at: found_along(parts, axis + at) for at, part in enumerate(dims) if wanted.changes(part)}
    repeated = {at: each for at, each in found.items() if isinstance(each, Repeated)}
    counted = {at: each for at, each in found.items() if isinstance(each, Counted)}
    counting = [dims[at - axis] for at in found if at in counted or (at in repeated and repeated[at].step)]
    if len(repeated) + len(counted) < len(found) or not _are_lengths(counting, wanted):
        return None
    return Grid(cut, repeated, tuple(counted.values()))


def levels_along(array: Any, axis: int, parts: Sequence[Sequence[DimLike]], wanted: Wanted) -> Levels | None:
    """Return what weights are along an axis that goes over several grids; None if they do not count these. parts: the
    dimensions of each grid.
    """
    start, levels = 0, list[Level]()
    for dims in parts:
        size = wanted.before(product(dims))
        if not isinstance(size, int) or start + size > array.shape[axis] or not any(map(wanted.changes, dims)):
            return None
        found = grid_along(array.take(range(start, start + size), axis), axis, dims, wanted)
        if found is None:
            return None
        levels.append(Level(start, product(dims), found))
        start += size
    return Levels(axis, tuple(levels)) if start == array.shape[axis] else None


def _are_lengths(dims: Sequence[DimLike], wanted: Wanted) -> bool:
    return all(symbols_of(dim).isdisjoint(wanted.batch) for dim in dims)
