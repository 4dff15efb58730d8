"""What counts as equal between a runtime and what is expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitgraph.verification.in_runtime.agreement import first_disagreement, new_comparison

F = np.float32
RANDOM = np.random.default_rng(0).standard_normal((4, 5)).astype(F)
BIG = (1000 * RANDOM).astype(F)

EQUAL = [
    ("the same", RANDOM, RANDOM),
    ("rounding of each number", RANDOM, RANDOM * F(1 + 1e-4)),
    ("rounding beside large numbers", BIG, BIG + F(0.05)),
    ("integers of fewer bits", np.array([1, -2], np.int64), np.array([1, -2], np.int32)),
    ("integers as floats", np.array([1, -2], np.int64), F([1, -2])),
    ("booleans as floats", np.array([True, False]), F([1, 0])),
    ("booleans as integers", np.array([True, False]), np.array([1, 0], np.uint8)),
    ("float16 as float32", np.float16([0.1, 2]), F([0.1, 2])),
    ("texts", np.array(["a", "b"], object), np.array(["a", "b"])),
    ("not a number", F([np.nan, np.inf]), F([np.nan, np.inf])),
    ("empty", np.zeros((0, 3), F), np.zeros((0, 3), F)),
]
DIFFERENT = [
    ("another number", RANDOM, np.where(RANDOM[1, 1] == RANDOM, F(9), RANDOM), "at [1, 1] it gives"),
    ("a number that the type does not hold", np.array([1, 2], np.int64), F([1, 2.5]), "elements of type float32"),
    ("texts for numbers", F([1]), np.array(["1"]), "elements of type"),
    ("another text", np.array(["a"], object), np.array(["b"]), "it gives 'a', the runtime 'b'"),
    ("another size", RANDOM, RANDOM[:2], "the runtime gives the shape [2, 5] for [4, 5]"),
    ("another shape with other values", RANDOM, RANDOM.T.copy(), "the runtime gives the shape [5, 4] for [4, 5]"),
    ("zero for a number", F([1e-2]), F([0]), "it gives"),
    ("infinity of the other sign", F([np.inf]), F([-np.inf]), "it gives inf, the runtime -inf"),
    ("a sequence", [RANDOM], RANDOM, "it is no tensor"),
]


def compare(expected: Any, found: Any, moved: Any = None) -> Any:
    comparison = new_comparison("it", "the runtime")
    return first_disagreement(["y"], [expected], [found], comparison, None if moved is None else [moved])


@pytest.mark.parametrize(("expected", "found"), [case[1:] for case in EQUAL], ids=[case[0] for case in EQUAL])
def test_equal(expected: Any, found: Any) -> None:
    assert compare(expected, found) is None


@pytest.mark.parametrize(
    ("expected", "found", "told"), [case[1:] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT]
)
def test_different(expected: Any, found: Any, told: str) -> None:
    disagreement = compare(expected, found)
    assert told in disagreement.reason
    assert (disagreement.name, disagreement.only_rank) == ("y", False)


def test_right_values_of_another_shape() -> None:
    disagreement = compare(RANDOM, RANDOM.reshape(1, 4, 5))
    assert disagreement.only_rank
    assert disagreement.reason == "the runtime gives the shape [1, 4, 5] for [4, 5], with the right values"


def test_other_values_come_before_another_shape() -> None:
    comparison = new_comparison("it", "the runtime")
    found = first_disagreement(["a", "b"], [RANDOM, RANDOM], [RANDOM.reshape(-1), -RANDOM], comparison)
    assert found is not None
    assert (found.name, found.only_rank) == ("b", False)


def test_another_number_of_outputs() -> None:
    found = first_disagreement(["a"], [RANDOM], [], new_comparison("it", "the runtime"))
    assert found is not None
    assert found.reason == "the runtime gives 0 outputs for 1"


def test_what_a_model_magnifies_is_rounding() -> None:
    far = RANDOM + F(0.02)
    assert compare(RANDOM, far) is not None
    # Roundings of the inputs move the results as far.
    assert compare(RANDOM, far, RANDOM - F(0.01)) is None
    # They move them a little, and the runtime is much further away.
    assert compare(RANDOM, far, RANDOM - F(0.001)) is not None
    # Whole numbers are not rounded.
    assert compare(np.array([1]), np.array([2]), np.array([3])) is not None
