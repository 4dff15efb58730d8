"""Operators of com.microsoft that arrange, count and choose elements in operators of ai.onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal

_RNG = np.random.default_rng(6)
_NEW_AND_OLD = (24, 13)
_EXACT = {"rtol": 0, "atol": 0}


def _floats(*shape: int, dtype: str = "float32") -> Array:
    return (_RNG.standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize(
    ("operator", "inputs", "reason"),
    [
        ("Inverse", [_floats(3, 3)], "inverts a matrix"),
        ("GatherPacked", [_floats(3, 3)], "blocks of GGUF"),
        ("DynamicTimeWarping", [_floats(3, 3)], "cell by cell"),
        ("CDist", [_floats(3, 3), _floats(3, 3)], ""),
    ],
)
def test_what_has_no_form_is_refused(operator: str, inputs: list[Array], reason: str) -> None:
    message = refusal(Case(operator, inputs))
    assert reason in message
    assert bool(message) == bool(reason)


# ExpandDims, Range ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-4, -2, -1, 0, 1, 3])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_expand_dims(axis: int, shape: tuple[int, ...]) -> None:
    number = np.full(shape, axis, np.int32)
    check(Case("ExpandDims", [_floats(2, 3, 4), number], constants=frozenset({1}), **_EXACT))
    check(
        Case("ExpandDims", [_floats(2, 3, 4, dtype="int64"), number], free=True, **_EXACT), _NEW_AND_OLD, computed=True
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32", "int64"])
@pytest.mark.parametrize(("start", "limit", "delta"), [(1, 10, 3), (10, 0, -3), (0, 5, None), (3, 3, 1), (5, 0, None)])
def test_range(dtype: str, start: int, limit: int, delta: int | None) -> None:
    numbers = [start, limit] if delta is None else [start, limit, delta]
    inputs = [np.array(number, dtype) for number in numbers]
    known = frozenset(range(len(inputs)))
    check(Case("Range", inputs, constants=known, **_EXACT), _NEW_AND_OLD)
    check(Case("Range", inputs, **_EXACT), (17,), computed=True)


def test_range_of_lists() -> None:
    check(Case("Range", [np.array([1], np.int64), np.array([7], np.int64)], **_EXACT), computed=True)


# GatherND, Unique, Trilu, Pad ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("indices", [[[0, 1], [1, 2]], [[0], [-1]], [[[0, -1, 2]]], [[-1, -2, -3]]])
def test_gather_nd(indices: Any, dtype: str) -> None:
    data = _floats(2, 3, 4)
    check(Case("GatherND", [data, np.array(indices, dtype)], **_EXACT), _NEW_AND_OLD)
    check(Case("GatherND", [data, np.array(indices, dtype)], constants=frozenset({1}), **_EXACT), (17,))


@pytest.mark.parametrize("numbers", [[2, 1, 1, 3, 4, 3], [], [5], [0.0, -0.0, 1], [1, 1, 1]])
def test_unique(numbers: list[float]) -> None:
    check(Case("Unique", [np.array(numbers, np.float32)], outputs=3, **_EXACT), (24, 17, 13, 11), computed=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("upper", [None, 0, 1])
@pytest.mark.parametrize("k", [None, -1, 0, 2])
def test_trilu(dtype: str, upper: int | None, k: int | None) -> None:
    attributes = {} if upper is None else {"upper": upper}
    inputs = [_floats(2, 3, 4, dtype=dtype), *([] if k is None else [np.array(k, np.int64)])]
    check(Case("Trilu", inputs, attributes, free=k == 2, **_EXACT), _NEW_AND_OLD)


@pytest.mark.parametrize("mode", [None, "constant", "reflect", "edge"])
@pytest.mark.parametrize("pads", [[1, 0, 1, 2], [[1, 2, 0, 1]], [-1, 0, 1, 0], [0, 0, 0, 0]])
@pytest.mark.parametrize("constants", [frozenset(), frozenset({1, 2})])
def test_pad(mode: str | None, pads: Any, constants: frozenset[int]) -> None:
    attributes = {} if mode is None else {"mode": mode}
    for value in (None, np.array([2.5], np.float32), np.array(2.5, np.float32)):
        inputs = [_floats(3, 4), np.array(pads, np.int64), *([] if value is None else [value])]
        case = Case("Pad", inputs, attributes, constants=constants, **_EXACT)
        check(case, _NEW_AND_OLD if value is None else (17,), computed=not constants)


def test_pads_of_unknown_sizes() -> None:
    for pads in ([1, 0, 1, 2], [[1, 2, 0, 1]]):
        case = Case("Pad", [_floats(3, 4), np.array(pads, np.int64)], free=True, **_EXACT)
        check(case, _NEW_AND_OLD, computed=True)


# UnfoldTensor, SampleOp, CDist ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"size": 2},
        {"size": 3, "dim": 1},
        {"size": 3, "dim": 1, "step": 2},
        {"size": 7, "dim": -2},
        {"size": 1, "dim": 0},
    ],
)
def test_unfold(attributes: dict[str, int], dtype: str, free: bool) -> None:
    check(Case("UnfoldTensor", [_floats(2, 7, 3, dtype=dtype)], attributes, free=free, **_EXACT), _NEW_AND_OLD)


def test_unfold_a_list() -> None:
    check(Case("UnfoldTensor", [_floats(9)], {"size": 4, "step": 3}, **_EXACT))


def test_sample() -> None:
    check(Case("SampleOp", [_floats(2, 3)], **_EXACT))


@pytest.mark.parametrize("metric", [None, "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("free", [False, True])
def test_distances(metric: str | None, dtype: str, free: bool) -> None:
    attributes = {} if metric is None else {"metric": metric}
    check(Case("CDist", [_floats(5, 3, dtype=dtype), _floats(4, 3, dtype=dtype)], attributes, free=free), _NEW_AND_OLD)


def test_small_distances_are_exact() -> None:
    near = _floats(3, 4) * np.float32(1e-3) + 100

    def truth(left: Array, right: Array, **_: object) -> list[Array]:
        return [((left[:, None].astype(np.float64) - right[None]) ** 2).sum(-1).astype(np.float32)]

    check(Case("CDist", [near, near], truth=truth, rtol=1e-5, atol=0))
