"""Draw inputs for which the elements decide other sizes: how many numbers are not 0, pass a threshold, or are unique.

Numbers that are drawn are hardly ever 0 or equal, and few of them pass a threshold that is far from 0, so that a count
is the same in every case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.values import Array, Value, tensors_of

# So many thresholds of a model are met from both sides, and so many inputs are made: with patterns, and with one
# element alone that counts.
_MOST_THRESHOLDS, _MOST_INPUTS, _MOST_ALONE = 8, 16, 4
# The numbers that elements get in turn; None leaves an element as it is.
Pattern = tuple["float | None", ...]


def with_other_counts(
    maker: InputMaker, accepted: Sequence[Mapping[str, Value]], thresholds: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield the largest accepted inputs with other elements in all tensors that are drawn. thresholds: numbers of the
    model, with which elements may be compared.
    """
    names = [maker.shared_name(name) for name in maker.varying()]
    base = max(accepted, key=_size_of, default={})
    drawn = {name: value for name in names if isinstance(value := base.get(name), np.ndarray) and value.size}
    met = list(dict.fromkeys(thresholds))[:_MOST_THRESHOLDS]
    for pattern in islice(patterns(met), _MOST_INPUTS) if drawn else ():
        yield {**base, **{name: filled(value, pattern) for name, value in drawn.items()}}
    # A dimension of 1 is what Squeeze and a broadcast treat in another way.
    for first, others in islice(alone(met), _MOST_ALONE) if drawn else ():
        yield {**base, **{name: with_one(value, first, others) for name, value in drawn.items()}}


def _size_of(inputs: Mapping[str, Value]) -> int:
    return sum(array.size for value in inputs.values() for array in tensors_of(value))


def patterns(thresholds: Sequence[float]) -> Iterator[Pattern]:
    """Yield what is put into each tensor: some or all elements are 0, equal, or beyond a threshold."""
    yield (0,)
    yield 0, None
    yield None, None, 0
    yield (1,)
    for threshold in thresholds:
        below, above = threshold - max(abs(threshold), 1), threshold + max(abs(threshold), 1)
        yield (below,)
        yield below, above
        yield (above,)


def alone(thresholds: Sequence[float]) -> Iterator[tuple[float | None, float]]:
    """Yield the first element of each tensor, and all others: only the first is not 0, or passes a threshold."""
    yield None, 0
    for threshold in thresholds:
        yield threshold + max(abs(threshold), 1), threshold - max(abs(threshold), 1)


def with_one(value: Array, first: float | None, others: float) -> Array:
    """Return a copy with one number in all elements but the first. first: its number; None leaves it as it is."""
    made = filled(value, (others,))
    made.reshape(-1)[:1] = filled(value.reshape(-1)[:1], (first,))
    return made


def filled(value: Array, pattern: Pattern) -> Array:
    """Return a copy with the numbers of a pattern in turn; text, and numbers that the type does not have, stay."""
    made: Array = value.copy()
    for place, number in enumerate(pattern):
        if number is not None and _has(value.dtype, number):
            made.reshape(-1)[place :: len(pattern)] = number
    return made


def _has(dtype: np.dtype[Any], number: float) -> bool:
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return float(number).is_integer() and limits.min <= number <= limits.max
    return dtype.kind == "f" and abs(number) <= float(np.finfo(dtype).max)
