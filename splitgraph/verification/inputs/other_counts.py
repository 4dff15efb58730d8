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
from splitgraph.verification.values import Array, Value

# So many thresholds of a model are met from both sides, and so many inputs are made from each of the accepted ones.
_MOST_THRESHOLDS, _MOST_INPUTS, _MOST_BASES = 8, 16, 2


def with_other_counts(
    maker: InputMaker, accepted: Sequence[Mapping[str, Value]], thresholds: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield accepted inputs with other elements in all tensors that are drawn. thresholds: numbers of the model, with
    which elements may be compared.
    """
    names = [maker.shared_name(name) for name in maker.varying()]
    met = list(dict.fromkeys(thresholds))[:_MOST_THRESHOLDS]
    for base in accepted[:_MOST_BASES]:
        drawn = {name: value for name in names if isinstance(value := base.get(name), np.ndarray) and value.size}
        ways = ({name: way(value) for name, value in drawn.items()} for way in _ways(met))
        for other in islice(ways, _MOST_INPUTS) if drawn else ():
            yield {**base, **other}


def _ways(thresholds: Sequence[float]) -> Iterator[_Way]:
    """Yield what is made of each tensor: some or all elements are 0, equal, or beyond a threshold."""
    yield _Way([0])
    yield _Way([0, None])
    yield _Way([None, None, 0])
    yield _Way([1])
    for threshold in thresholds:
        beyond = [threshold - max(abs(threshold), 1), threshold + max(abs(threshold), 1)]
        yield _Way(beyond[:1])
        yield _Way(beyond)
        yield _Way(beyond[1:])


class _Way:
    """Puts numbers into a tensor in turn. pattern: the numbers; None leaves an element as it is."""

    def __init__(self, pattern: Sequence[float | None]) -> None:
        self._pattern = pattern

    def __call__(self, value: Array) -> Array:
        """Return a copy with the numbers; text, and numbers that the type does not have, stay."""
        made: Array = value.copy()
        for place, number in enumerate(self._pattern):
            if number is not None and _has(value.dtype, number):
                made.reshape(-1)[place :: len(self._pattern)] = number
        return made


def _has(dtype: np.dtype[Any], number: float) -> bool:
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return float(number).is_integer() and limits.min <= number <= limits.max
    return dtype.kind == "f" and abs(number) <= float(np.finfo(dtype).max)
