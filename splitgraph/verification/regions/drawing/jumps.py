"""Find inputs of a model at which a result jumps: whether a limit is compared by `>` or by `>=` shows there alone.

Behind a MatMul, no draw of the inputs meets a limit. But between two inputs on both sides of the limit, a result jumps,
and halving the way between them ends with two inputs that no number is between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from splitgraph.verification.values import Array, Value

# On the way between two inputs, the jumps of so many elements of each result are looked for, in so many steps.
_MOST_ELEMENTS, _MOST_STEPS = 6, 64
_FLOATS = ("float16", "bfloat16", "float32", "float64")

Inputs = Mapping[str, Value]


def at_jumps(
    run: Callable[[Inputs], Sequence[Value]], inputs: Sequence[Inputs], rng: np.random.Generator
) -> Iterator[Inputs]:
    """Yield inputs on both sides of jumps. run: computes the results, none if that is impossible. inputs: ordinary ones
    of the same shapes.
    """
    moved = [_turned(inputs[0]), *inputs] if inputs else []
    for start, end in pairwise(moved):
        # What is no fraction stays.
        ends = start, dict(start) | {name: value for name, value in end.items() if _is_fraction(value)}
        results = [run(each) for each in ends]
        for place in range(min(map(len, results))):
            gaps = _gap(results[0][place], results[1][place])
            elements = rng.permutation(np.flatnonzero(gaps))[:_MOST_ELEMENTS]
            for element in elements.tolist():
                yield from _halved(run, ends, (results[0][place], results[1][place]), place, element)


def _halved(
    run: Callable[[Inputs], Sequence[Value]],
    ends: tuple[Inputs, Inputs],
    values: tuple[Value, Value],
    place: int,
    element: int,
) -> Iterator[Inputs]:
    """Yield the last inputs on the way between two that an element of a result differs at."""
    low, high = 0.0, 1.0
    points, known = list(ends), list(values)
    for _ in range(_MOST_STEPS):
        middle = (low + high) / 2
        point = {name: _between(value, ends[1][name], middle) for name, value in ends[0].items()}
        result = run(point)
        gaps = [_gap(known[0], result[place]), _gap(result[place], known[1])] if result else []
        if not gaps or any(gap.size <= element for gap in gaps):
            return
        side = int(gaps[0][element] >= gaps[1][element])
        if not gaps[1 - side][element]:
            return
        points[side], known[side] = point, result[place]
        low, high = (low, middle) if side else (middle, high)
    yield from points


def _gap(one: Value, other: Value) -> Array:
    """Return by how much the elements of two results differ; nothing for results of other kinds."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray) or one.shape != other.shape:
        return np.empty(0)
    if one.dtype.kind not in "iufb" and one.dtype.name not in _FLOATS:
        return np.empty(0)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(one.astype(np.float64) - other.astype(np.float64)).reshape(-1)
    return np.where(np.isnan(gap), 0.0, gap)


def _turned(inputs: Inputs) -> Inputs:
    return {name: -value if _is_fraction(value) else value for name, value in inputs.items()}


def _between(one: Value, other: Value, share: float) -> Value:
    if one is other or not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return one
    return np.asarray((1 - share) * one.astype(np.float64) + share * other.astype(np.float64)).astype(one.dtype)


def _is_fraction(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name in _FLOATS
