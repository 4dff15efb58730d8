"""What a effect accounts for, by itself."""

from __future__ import annotations

from typing import Literal

import ml_dtypes
import numpy as np
import onnx
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper
from verifying import verify_models

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.rounding.allowance import (
    EACH,
    QUIET_BY_CHANCE,
    TOGETHER,
    RoundingAllowance,
    rounding_tolerances,
)

from ..small_models import constant, graph_of, model_of, node, value

SIZE = 100
ALLOWED = np.full(SIZE, 1e-6)
DISTANCES = hnp.arrays(np.float64, SIZE, elements=st.floats(0, 10))


def allowance_of(effect: np.ndarray) -> RoundingAllowance:
    allowance = RoundingAllowance()
    plain = np.zeros(effect.shape, np.float64)
    allowance.add(0, [plain], [effect])
    return allowance


@given(gap=DISTANCES, effect=DISTANCES)
@settings(max_examples=examples(200), derandomize=True, deadline=None)
def test_nothing_is_excused_beyond_its_own_effect(gap: np.ndarray, effect: np.ndarray) -> None:
    excused = allowance_of(effect).excuse(0, 0, gap, ALLOWED)
    assert np.all(gap[excused] <= ALLOWED[excused] + EACH * effect[excused])
    if excused.any():
        touched = excused & ((gap > 0) | (effect > 0))
        assert np.mean((gap / (ALLOWED + TOGETHER * effect))[touched] ** 2) <= 1


@given(gap=DISTANCES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_what_did_not_move_is_not_excused(gap: np.ndarray) -> None:
    assert not allowance_of(np.zeros(SIZE)).excuse(0, 0, gap, ALLOWED).any()
    assert not RoundingAllowance().excuse(0, 0, gap, ALLOWED).any()
    assert not allowance_of(np.ones(SIZE)).excuse(1, 0, gap, ALLOWED).any()


EXCUSED = {
    # What each element moves, what each differs by, and whether that is accounted for.
    "as much": (1.0, 1.0, True),
    "twice as much, all of them": (1.0, TOGETHER * 1.01, False),
    "not finite": (1.0, np.nan, False),
    "infinite": (1.0, np.inf, False),
    "NaN as effect": (np.nan, 1.0, False),
    "infinite effect": (np.inf, 1.0, False),
}


@pytest.mark.parametrize("name", EXCUSED)
def test_all_elements_together(name: str) -> None:
    effect, gap, expected = EXCUSED[name]
    excused = allowance_of(np.full(SIZE, effect)).excuse(0, 0, np.full(SIZE, gap), ALLOWED)
    assert excused.tolist() == [expected] * SIZE


@pytest.mark.parametrize(("times", "expected"), [(EACH * 0.99, True), (EACH * 1.01, False)])
def test_one_element(times: float, expected: bool) -> None:
    gap = np.full(SIZE, 0.1)
    gap[3] = times
    assert allowance_of(np.ones(SIZE)).excuse(0, 0, gap, ALLOWED)[3] == expected


@pytest.mark.parametrize(
    ("quiet", "gap", "expected"), [(1, 0.9, True), (1, 1.1, False), (2, 0.9, False)], ids=["one", "far off", "two"]
)
def test_few_of_many_may_be_quiet_by_chance(quiet: int, gap: float, expected: bool) -> None:
    effect = np.ones(QUIET_BY_CHANCE)
    effect[:quiet] = 0
    gaps = np.where(effect == 0, gap, 0.1)
    excused = allowance_of(effect).excuse(0, 0, gaps, np.full(QUIET_BY_CHANCE, 1e-6))
    assert bool(excused.all()) == expected
    # In a small output none may.
    assert not allowance_of(effect[:SIZE]).excuse(0, 0, gaps[:SIZE], ALLOWED)[:quiet].any()


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
    allowance = RoundingAllowance()
    allowance.add(0, [OTHERS[name][0]], [OTHERS[name][1]])
    assert allowance.effects == {}


def test_the_largest_effect_counts() -> None:
    allowance = RoundingAllowance()
    for moved in ([1.0, 0.5], [0.25, -2.0], [np.nan, 0.0]):
        allowance.add(0, [np.zeros(2)], [np.array(moved)])
    assert allowance.effects[0, 0].tolist() == [1.0, 2.0]


def test_a_comparison_allows_more_only_where_there_is_an_effect() -> None:
    allowance = RoundingAllowance()
    plain, moved = np.zeros(4, np.float32), np.full(4, 1e-3, np.float32)
    allowance.add(0, [plain, plain], [moved, plain])
    comparison = Comparison(1e-5, 1e-6, allowance.excuse)
    assert comparison.compare_outputs(["a", "b"], [plain, plain], [moved, plain], 0) is None
    assert allowance.largest_ratio == pytest.approx(1.0, rel=0.01)
    found = comparison.compare_outputs(["a", "b"], [plain, plain], [plain, moved], 0)
    assert found is not None
    assert found.name == "b"
    assert comparison.compare_outputs(["a"], [plain], [moved], 1) is not None
    # Not of what is held in a sequence, whose elements have no effect.
    assert comparison.compare_outputs(["a"], [[plain]], [[moved]], 0) is not None


FLOAT, HALF, BRAIN = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
GIVEN = (1e-4, 1e-5)


def around(dtype: int, *inner: onnx.NodeProto) -> onnx.ModelProto:
    """x cast to a type, nodes from "c" to "d", and cast back."""
    nodes = [node("Cast", ["x"], ["c"], to=dtype), *inner, node("Cast", ["d"], ["y"], to=FLOAT)]
    return model_of(nodes, [value("x"), value("k", (), TensorProto.BOOL)], ["y"])


def kept_in_halves() -> onnx.ModelProto:
    weights = constant("w", np.ones((4, 4)), np.float16)
    nodes = [node("Cast", ["w"], ["f"], to=FLOAT), node("MatMul", ["x", "f"], ["y"])]
    return model_of(nodes, [value("x")], ["y"], [weights])


def in_a_branch() -> onnx.ModelProto:
    bodies = [graph_of([node("Neg", ["c"], [name])], [], [value(name, None, HALF)], name=name) for name in "pq"]
    return around(HALF, node("If", ["k"], ["d"], then_branch=bodies[0], else_branch=bodies[1]))


def in_a_function() -> onnx.ModelProto:
    body = [node("Cast", ["a"], ["b"], to=HALF), node("Neg", ["b"], ["c"]), node("Cast", ["c"], ["d"], to=FLOAT)]
    made = helper.make_function("local", "Rounded", ["a"], ["d"], body, [helper.make_opsetid("", 18)])
    call = helper.make_node("Rounded", ["x"], ["y"], domain="local")
    return model_of([call], [value("x")], ["y"], functions=[made], domains={"local": 1})


TOLERANCES = {
    "floats": (model_of([node("Neg", ["x"], ["y"])], [value("x")], ["y"]), GIVEN),
    "weights kept in halves": (kept_in_halves(), GIVEN),
    "halves that are only moved": (around(HALF, node("Transpose", ["c"], ["d"])), GIVEN),
    "doubles": (around(TensorProto.DOUBLE, node("Neg", ["c"], ["d"])), GIVEN),
    "halves inside": (around(HALF, node("Neg", ["c"], ["d"])), (2**-7, 2**-8)),
    "the coarser of two": (
        around(HALF, node("Neg", ["c"], ["n"]), node("Cast", ["n"], ["b"], to=BRAIN), node("Neg", ["b"], ["d"])),
        (2**-4, 2**-5),
    ),
    "in a branch": (in_a_branch(), (2**-7, 2**-8)),
    "in a function": (in_a_function(), (2**-7, 2**-8)),
}


@pytest.mark.parametrize("name", TOLERANCES)
def test_tolerances_are_those_of_the_coarsest_type_that_computes(name: str) -> None:
    model, expected = TOLERANCES[name]
    assert rounding_tolerances(model, *GIVEN) == expected
    assert rounding_tolerances(model, 0.5, 0.5) == (0.5, 0.5)


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_one_engine_has_to_meet_the_tolerance_that_is_given(engine: Literal["onnxruntime", "reference"]) -> None:
    one, nearly = (
        model_of([node("Mul", ["x", "k"], ["y"])], [value("x")], ["y"], [constant("k", np.array(factor), np.float32)])
        for factor in (1.0, 1.0 + 5e-5)
    )
    assert verify_models(one, nearly, rtol=1e-6, atol=1e-7, engine=engine).verdict == "different"
    assert verify_models(one, nearly, rtol=1e-4, atol=1e-7, engine=engine).verdict == "equal"
