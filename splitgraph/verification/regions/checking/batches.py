"""Put what is checked in batches whose values fit in memory together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from splitgraph.dim import evaluate
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.verification.inputs.model_inputs import numpy_dtype
from splitgraph.verification.inputs.solver import SymbolSizes

# The values that regions need are in memory together up to so many bytes; one of unknown size counts as so many.
_MOST_VALUES, _UNKNOWN_SIZE = 2**28, 2**20


def in_batches(
    needed: Iterable[tuple[int, Sequence[str]]], types: Mapping[str, ValueType], sizes: Sequence[SymbolSizes]
) -> list[list[int]]:
    """Return numbers in batches. needed: each number with the names of its values. types: of the values. sizes: those
    of the symbols at which the values are computed.
    """
    batches: list[list[int]] = [[]]
    held: dict[str, int] = {}
    for number, names in needed:
        new = {name: _bytes_of(types.get(name, UNKNOWN), sizes) for name in names}
        if batches[-1] and sum((held | new).values()) > _MOST_VALUES:
            batches.append([])
            held = {}
        batches[-1].append(number)
        held |= new
    return batches


def _bytes_of(value: ValueType, sizes: Sequence[SymbolSizes]) -> int:
    if value.shape is None or None in value.shape or value.dtype not in DTYPE_NUMBERS or value.dtype == "string":
        return _UNKNOWN_SIZE
    largest = 0
    for chosen in sizes:
        try:
            count = math.prod(evaluate(dim, chosen) for dim in value.shape if dim is not None)
        except (KeyError, ArithmeticError):
            return _UNKNOWN_SIZE
        largest = max(largest, count * numpy_dtype(value.dtype).itemsize)
    return largest
