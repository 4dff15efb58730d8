"""Few numbers for several inputs, in all combinations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from splitgraph.verification.regions.drawing.mixed import draw_mixed


def test_two_inputs_meet_in_all_combinations() -> None:
    free = {name: np.zeros(100, np.uint8) for name in "ab"}
    (drawn, *_) = draw_mixed(free, ())
    assert {*zip(*(drawn[name].tolist() for name in free), strict=True)} == {
        *itertools.product((0, 1, 2, 3, 255), repeat=2)
    }


@pytest.mark.parametrize("count", [9, 21, 60])
def test_of_many_inputs_each_takes_several_numbers(count: int) -> None:
    """Their combinations are too many for a number of 64 bits."""
    free = {f"x{number}": np.zeros(500, np.float32) for number in range(count)}
    seen = {name: set[float]() for name in free}
    for drawn in draw_mixed(free, ()):
        for name in free:
            seen[name].update(drawn[name].tolist())
    assert min(map(len, seen.values())) > 1
