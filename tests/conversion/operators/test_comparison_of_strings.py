"""Equal on strings below opset 19."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, refusal, run, run_reference
from onnx import helper

WORDS = np.array(["", "a", "b", "A", "a ", "ab", "ä", "日本", "a", ""], dtype=object)


def model_of(one: Any, other: Any, dtype: str = "string") -> onnx.ModelProto:
    rank = max(len(one), len(other))
    node = helper.make_node("Equal", ["a", "b"], ["c"])
    return build(node, 19, {"a": (dtype, one), "b": (dtype, other)}, {"c": ("bool", [None] * rank)})


def words(shape: tuple[int, ...], start: int) -> Array:
    count = int(np.prod(shape))
    return np.array([WORDS[(start + place) % len(WORDS)] for place in range(count)], dtype=object).reshape(shape)


def test_refusal_below_unique() -> None:
    assert "Unique exists from opset 11 on" in refusal(model_of((2,), (2,)), 10)


def test_numbers_are_kept() -> None:
    assert operators(converted(model_of((2,), (2,), "int32"), 18)) == ["Equal"]


@pytest.mark.parametrize(
    ("one", "other"),
    [((10,), (10,)), ((10, 1), (1, 10)), ((), (4,)), ((), ()), ((2, 1, 5), (3, 1)), ((1,), (1,)), ((3, 1), (7,))],
)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("target", [18, 13, 11])
def test_equal_strings(one: tuple[int, ...], other: tuple[int, ...], symbolic: bool, target: int) -> None:
    feeds = {"a": words(one, 0), "b": words(other, 8)}
    declared = ([None] * len(one), [None] * len(other)) if symbolic else (one, other)
    expected = [np.asarray(feeds["a"] == feeds["b"])]
    after = converted(model_of(*declared), target)
    assert_same(expected, run(after, feeds))
    if target == 18:
        assert_same(expected, run_reference(after, feeds))


@pytest.mark.parametrize(("one", "other"), [((0,), (1,)), ((2, 0), (1, 1)), ((0, 3), (3,))])
def test_no_strings_at_all(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    feeds = {"a": words(one, 0), "b": words(other, 0)}
    expected = [np.zeros(np.broadcast_shapes(one, other), bool)]
    for target in (18, 11):
        assert_same(expected, run(converted(model_of([None] * len(one), [None] * len(other)), target), feeds))
