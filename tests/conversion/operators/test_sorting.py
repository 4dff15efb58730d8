"""TopK of 64-bit integers and Unique below opset 11."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import Array, operators

LIMITS = np.iinfo(np.int64)
LONG = np.array(
    [
        [0, 1, -1, 2**53, 2**53 + 1, LIMITS.max, LIMITS.min],
        [LIMITS.min + 1, LIMITS.max - 1, -(2**32), 2**32, -(2**32) - 1, 2**32 - 1, 5],
        [3, 3, -7, 3, -7, -7, 3],
    ]
)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Crossing("", "Unique", 11, 10, {"x": LONG.astype(bool)}), "nothing sorts bool"),
        (
            Crossing("", "Unique", 11, 10, {"x": LONG.astype(str).astype(object)}, expected=[LONG]),
            "nothing sorts string",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


def topmost(data: Array, count: int, axis: int, *, largest: bool) -> list[Array]:
    """Exactly, in Python's integers: equal elements in the order of their indices."""
    moved = np.moveaxis(data, axis, -1)
    order = np.empty((*moved.shape[:-1], count), np.int64)
    for place in np.ndindex(moved.shape[:-1]):
        row = [int(number) for number in moved[place]]
        order[place] = sorted(range(len(row)), key=lambda index: (-row[index] if largest else row[index], index))[
            :count
        ]
    order = np.moveaxis(order, -1, axis)
    return [np.take_along_axis(data, order, axis), order]


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [-1, 0, -2])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("target", [10, 9])
def test_topmost_of_long_integers(target: int, dtype: str, axis: int, largest: int) -> None:
    data = LONG.astype(dtype)
    expected = topmost(data, 3, axis, largest=bool(largest))
    attributes = {"axis": axis, "largest": largest}
    given = {"x": data}
    held: dict[str, Any] = {"k": np.array([3])}
    case = Crossing("", "TopK", 11, target, given, held, attributes, None, 2, expected)
    case.check()
    if target == 10:
        replace(case, given={**given, **held}, constants={}, shapes="symbolic").check()


def test_the_last_axis_is_sorted_by_default() -> None:
    Crossing(
        "", "TopK", 11, 10, {"x": LONG}, {"k": np.array([3])}, {}, None, 2, topmost(LONG, 3, -1, largest=True)
    ).check()


REPEATED = np.array([[2, 1, 1, 3], [4, 3, -5, 2]])


def unique_of(data: Array, is_sorted: int) -> list[Array]:
    kept, first, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    if not is_sorted:
        order = np.argsort(first)
        kept, first, counts = kept[order], first[order], counts[order]
        inverse = np.argsort(order)[inverse.reshape(-1)]
    return [kept, first, inverse.reshape(-1), counts]


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "int8", "float16"])
@pytest.mark.parametrize("target", [10, 9])
def test_unique(dtype: str, is_sorted: int, target: int) -> None:
    special = np.array([1, np.nan, 0.0, -0.0, np.nan, 1, -np.inf, np.inf, 0.5, np.inf])
    given = [np.resize(REPEATED, shape) for shape in ((2, 4), (1,), (7,), (4, 1, 2))]
    for numbers in [*given, special] if dtype.startswith("float") else given:
        data = numbers.astype(dtype)
        expected = unique_of(data, is_sorted)
        attributes = {"sorted": is_sorted}
        case = Crossing("", "Unique", 11, target, {"x": data}, {}, attributes, None, 4, expected)
        assert "Unique" not in operators(case.check())
        if target == 10:
            replace(case, shapes="symbolic").check()


def test_unique_along_the_only_axis() -> None:
    data = np.array([3, 3, 1], np.float32)
    Crossing("", "Unique", 11, 10, {"x": data}, {}, {"axis": 0}, None, 4, shapes="symbolic").check()


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((6, 2), 0), ((2, 6), 1), ((3, 2, 4), -2), ((1, 3), 0), ((4, 1), 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("target", [10, 9])
def test_unique_parts(dtype: str, shape: tuple[int, ...], axis: int, is_sorted: int, target: int) -> None:
    data = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    kept, first, inverse, counts = np.unique(data, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first)
        kept, first, counts = np.take(kept, order, axis), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    attributes, expected = {"sorted": is_sorted, "axis": axis}, [kept, first, inverse, counts]
    case = Crossing("", "Unique", 11, target, {"x": data}, {}, attributes, None, 4, expected)
    case.check()
    if target == 10:
        replace(case, shapes="symbolic").check()
