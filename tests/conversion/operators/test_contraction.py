"""Einsum below opset 12, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import assert_same, build, converted, operators, random_array, refusal, run
from onnx import helper

SIZES = {"i": 2, "j": 3, "k": 4, "b": 2, "h": 3, "q": 5, "d": 4, "A": 2, "a": 3}


def model(equation: str, shapes: Any, rank: int, dtype: str = "float32") -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(shapes))]
    inputs = {name: (dtype, shape) for name, shape in zip(names, shapes, strict=True)}
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    return build(node, 12, inputs, {"y": (dtype, [None] * rank)})


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk->ik", [None, (3, 4)], "label 'j' are not known to be equal"),
        ("ij,jk->ik", [(2, "j"), ("l", 4)], "label 'j' are not known to be equal"),
        ("ij,jk->ik", [(2, 1), (3, 4)], "label 'j' are not known to be equal"),
        ("...j->j", [(2, 3)], "sums over its ellipsis"),
    ],
)
def test_refusals(equation: str, shapes: Any, reason: str) -> None:
    assert reason in refusal(model(equation, shapes, 2), 11)


@pytest.mark.parametrize(
    "equation",
    [
        "ij->ji",
        "ij->i",
        "ij->",
        "ij",
        "ji",
        "Aa",
        "aA",
        "ii",
        "ii->i",
        "iji->j",
        "jii->ij",
        "iii->i",
        "i,i",
        "i,j->ij",
        "i,j->ji",
        "ij,jk",
        "ij,jk->ki",
        "ij,kj->ik",
        "bij,bjk->bik",
        "bhqd,bhkd->bhqk",
        "bhqk,bhkd->bqhd",
        "bqhd,bkhd->bhqk",
        "ij,ij->",
        "ijk,ijk->i",
        "ijk,jk->i",
        "ij,j->ij",
        "ij , j -> i",
        "i,ij,j->",
        "ij,jk,kh->ih",
        "ijk,hjb->ik",
        ",ij->ij",
        ",->",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_equations(equation: str, dtype: str) -> None:
    left = equation.replace(" ", "").partition("->")[0]
    shapes = [tuple(SIZES[label] for label in term) for term in left.split(",")]
    values = [random_array(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    expected = np.asarray(np.einsum(equation, *values)).astype(dtype)
    feeds = {f"x{index}": held for index, held in enumerate(values)}
    for target in (11, 9):
        assert_same([expected], run(converted(model(equation, shapes, expected.ndim, dtype), target), feeds), 1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij->...ji", [(2, 5, 3, 4)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(1, 3, 4), (2, 4, 5)]),
        ("...i,...i->...", [(2, 3, 4), (1, 3, 4)]),
        ("...i", [(2, 3)]),
        ("i...->...i", [(2, 3, 4)]),
    ],
)
def test_ellipsis(equation: str, shapes: Any) -> None:
    values = [random_array(shape, seed=seed) for seed, shape in enumerate(shapes)]
    expected = np.einsum(equation, *values)
    feeds = {f"x{index}": held for index, held in enumerate(values)}
    assert_same([expected], run(converted(model(equation, shapes, expected.ndim), 11), feeds), 1e-5)


def test_matrices_of_any_batch_are_multiplied_as_such() -> None:
    after = converted(model("bhqd,bhkd->bhqk", [("b", "h", "q", "d"), ("b", "h", "k", "d")], 4), 11)
    assert operators(after) == ["Transpose", "MatMul"]


def test_nan_off_the_diagonal_does_not_count() -> None:
    x = np.array([[1, np.nan], [np.inf, -0.0]], np.float32)
    assert_same([np.array([1, -0.0], np.float32) + 0], [
        found + 0 for found in run(converted(model("ii->i", [(2, 2)], 1), 11), {"x0": x})
    ])  # fmt: skip
