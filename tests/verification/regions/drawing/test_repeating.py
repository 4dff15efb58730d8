"""Whether large values are filled as NumPy fills them, and how many elements are drawn for them."""

from __future__ import annotations

import numpy as np
import pytest

from splitgraph.verification.regions.drawing.repeating import MOST_DRAWN, chosen, drawn_elements, repeated
from splitgraph.verification.values import Array

SHAPES = [(0,), (), (1,), (3,), (2, 3), (7, 11), (2, 0, 3), (1000, 3)]
LISTS = {
    "no numbers": np.empty(0, np.float32),
    "one number": np.array([2.5]),
    "several numbers": np.arange(5, dtype=np.int16),
    "rows": np.arange(6, dtype=np.float16).reshape(2, 3),
    "texts": np.array(["a", "b", "c"], dtype=object),
    "bits of numbers": np.array([np.nan, -0.0, np.inf], np.float32),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in LISTS if name != "no numbers"])
def test_numbers_are_repeated_as_numpy_repeats_them(name: str, shape: tuple[int, ...]) -> None:
    made, expected = repeated(LISTS[name], shape), np.resize(LISTS[name], shape)
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    assert made.tolist() == expected.tolist() or made.tobytes() == expected.tobytes()


def test_no_numbers_are_zeros() -> None:
    assert repeated(LISTS["no numbers"], (2, 2)).tolist() == [[0, 0], [0, 0]]
    assert repeated(np.arange(3), 4).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(("shape", "count"), [((), 1), ((0, 4), 0), ((5, 7), 35), ((300, 300), MOST_DRAWN)])
def test_few_elements_are_drawn(shape: tuple[int, ...], count: int) -> None:
    asked: list[int] = []

    def draw(size: int) -> Array:
        asked.append(size)
        return np.arange(size)

    made = drawn_elements(draw, shape)
    assert asked == [count]
    assert made.shape == shape
    assert np.unique(made).size == count


def test_chosen_numbers_come_in_any_order() -> None:
    made = chosen(np.array([1.0, 4.0]), (200, 500), np.random.default_rng(0))
    assert set(np.unique(made)) == {1.0, 4.0}
    # No row is like the one before it.
    assert not (made[1:] == made[:-1]).all(axis=1).any()
