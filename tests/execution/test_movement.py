"""What a movement accounts for, by itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from splitgraph.execution.comparison import Comparison
from splitgraph.execution.movement import EACH, QUIET_BY_CHANCE, TOGETHER, Movements

SIZE = 100
ALLOWED = np.full(SIZE, 1e-6)
DISTANCES = hnp.arrays(np.float64, SIZE, elements=st.floats(0, 10))


def moved_by(movement: np.ndarray) -> Movements:
    movements = Movements()
    still = np.zeros(movement.shape, np.float64)
    movements.add(0, [still], [movement])
    return movements


@given(gap=DISTANCES, movement=DISTANCES)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_nothing_is_excused_beyond_its_own_movement(gap: np.ndarray, movement: np.ndarray) -> None:
    excused = moved_by(movement).excuse(0, 0, gap, ALLOWED)
    assert np.all(gap[excused] <= ALLOWED[excused] + EACH * movement[excused])
    if excused.any():
        touched = excused & ((gap > 0) | (movement > 0))
        assert np.mean((gap / (ALLOWED + TOGETHER * movement))[touched] ** 2) <= 1


@given(gap=DISTANCES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_what_did_not_move_is_not_excused(gap: np.ndarray) -> None:
    assert not moved_by(np.zeros(SIZE)).excuse(0, 0, gap, ALLOWED).any()
    assert not Movements().excuse(0, 0, gap, ALLOWED).any()
    assert not moved_by(np.ones(SIZE)).excuse(1, 0, gap, ALLOWED).any()


EXCUSED = {
    # What each element moves, what each differs by, and whether that is accounted for.
    "as much": (1.0, 1.0, True),
    "twice as much, all of them": (1.0, TOGETHER * 1.01, False),
    "not finite": (1.0, np.nan, False),
    "infinite": (1.0, np.inf, False),
    "no number as movement": (np.nan, 1.0, False),
    "infinite movement": (np.inf, 1.0, False),
}


@pytest.mark.parametrize("name", EXCUSED)
def test_all_elements_together(name: str) -> None:
    movement, gap, expected = EXCUSED[name]
    excused = moved_by(np.full(SIZE, movement)).excuse(0, 0, np.full(SIZE, gap), ALLOWED)
    assert excused.tolist() == [expected] * SIZE


@pytest.mark.parametrize(("times", "expected"), [(EACH * 0.99, True), (EACH * 1.01, False)])
def test_one_element(times: float, expected: bool) -> None:
    gap = np.full(SIZE, 0.1)
    gap[3] = times
    assert moved_by(np.ones(SIZE)).excuse(0, 0, gap, ALLOWED)[3] == expected


@pytest.mark.parametrize(
    ("quiet", "gap", "expected"), [(1, 0.9, True), (1, 1.1, False), (2, 0.9, False)], ids=["one", "far off", "two"]
)
def test_few_of_many_may_be_quiet_by_chance(quiet: int, gap: float, expected: bool) -> None:
    movement = np.ones(QUIET_BY_CHANCE)
    movement[:quiet] = 0
    gaps = np.where(movement == 0, gap, 0.1)
    excused = moved_by(movement).excuse(0, 0, gaps, np.full(QUIET_BY_CHANCE, 1e-6))
    assert bool(excused.all()) == expected
    # In a small output none may.
    assert not moved_by(movement[:SIZE]).excuse(0, 0, gaps[:SIZE], ALLOWED)[:quiet].any()


OTHERS = {
    "integers": (np.array([1, 2]), np.array([1, 3])),
    "booleans": (np.array([True, False]), np.array([True, True])),
    "texts": (np.array(["a"], object), np.array(["b"], object)),
    "complex numbers": (np.array([1 + 1j]), np.array([1 + 2j])),
    "bytes": (np.ones(2, ml_dtypes.float8_e4m3fn), np.zeros(2, ml_dtypes.float8_e4m3fn)),
    "another shape": (np.zeros(2), np.ones(3)),
    "another type": (np.zeros(2), np.ones(2, np.float32)),
    "a sequence": ([np.zeros(2)], [np.ones(2)]),
    "nothing": (None, None),
}


@pytest.mark.parametrize("name", OTHERS)
def test_only_tensors_of_floating_point_numbers_move(name: str) -> None:
    movements = Movements()
    movements.add(0, [OTHERS[name][0]], [OTHERS[name][1]])
    assert movements.largest == {}


def test_the_largest_movement_counts() -> None:
    movements = Movements()
    for moved in ([1.0, 0.5], [0.25, -2.0], [np.nan, 0.0]):
        movements.add(0, [np.zeros(2)], [np.array(moved)])
    assert movements.largest[0, 0].tolist() == [1.0, 2.0]


def test_a_comparison_allows_more_where_there_is_a_movement_only() -> None:
    movements = Movements()
    still, moved = np.zeros(4, np.float32), np.full(4, 1e-3, np.float32)
    movements.add(0, [still, still], [moved, still])
    comparison = Comparison(1e-5, 1e-6, movements)
    assert comparison.compare_outputs(["a", "b"], [still, still], [moved, still], 0) is None
    assert movements.excused == pytest.approx(1.0, rel=0.01)
    found = comparison.compare_outputs(["a", "b"], [still, still], [still, moved], 0)
    assert found is not None
    assert found.name == "b"
    assert comparison.compare_outputs(["a"], [still], [moved], 1) is not None
    # Not of what is held in a sequence, whose elements have no movement.
    assert comparison.compare_outputs(["a"], [[still]], [[moved]], 0) is not None
