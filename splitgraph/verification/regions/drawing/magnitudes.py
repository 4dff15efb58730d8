"""Keep small numbers apart from large ones in the values that are drawn for a region.

A difference is measured against the largest numbers around it (see `comparison.surroundings`), so that one large number
hides what small ones beside it show. Values that hold both are followed by others that hold numbers of one magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from splitgraph.verification.regions.drawing.repeating import repeated
from splitgraph.verification.values import Array, Value

# The largest number of a set of values is at most so many times as large as the smallest one.
_RATIO = 1e4
# So many magnitudes at most have sets of their own.
_MOST = 8


def apart(values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield the values again, once for each magnitude among their numbers but the largest, which nothing hides.

    A number of another magnitude is replaced by one of its own input that has this one. An input without such numbers
    stays as it is.
    """
    numbers = {
        name: np.abs(value.astype(np.float64))
        for name, value in values.items()
        if isinstance(value, np.ndarray) and (value.dtype.kind in "fiu" or value.dtype.name == "bfloat16")
    }
    starts = _starts(numbers)
    for start in starts[:-1]:
        made = dict(values)
        for name, sizes in numbers.items():
            value = values[name]
            assert isinstance(value, np.ndarray)
            is_far = np.isfinite(sizes) & (sizes > 0) & ((sizes < start) | (sizes > start * _RATIO))
            near = value[~is_far & (sizes >= start) & np.isfinite(sizes)]
            if near.size:
                made[name] = _replaced(value, is_far, near)
        yield made


def _starts(numbers: Mapping[str, Array]) -> list[float]:
    """Return the smallest number of each magnitude."""
    if not numbers:
        return []
    sizes = np.unique(np.concatenate([array.reshape(-1) for array in numbers.values()]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    starts: list[float] = []
    while sizes.size and len(starts) < _MOST:
        starts.append(float(sizes[0]))
        sizes = sizes[sizes > starts[-1] * _RATIO]
    return starts


def _replaced(value: Array, is_far: Array, near: Array) -> Array:
    """Return an input with numbers of one magnitude in place of those that are far from it."""
    made = np.array(value)
    made[is_far] = repeated(near, int(np.count_nonzero(is_far)))
    return made
