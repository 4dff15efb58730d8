"""TopK, OneHot, Gather*, Scatter*: through all their versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import assert_same, build, converted, operators, random_array, run
from onnx import helper, numpy_helper

Dims = tuple[int | str, ...]

X = random_array((4, 5, 6))
TIES = np.random.default_rng(1).integers(0, 4, (3, 6)).astype(np.float32)


def ints(*given: Any) -> np.ndarray:
    return np.array(given, np.int64)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Crossing("k", "TopK", 10, 9, {"x": TIES, "k": ints(2)}, outputs=2, shapes="symbolic"),
            "k is known only at run time, and so is how many elements there are",
        ),
        (
            Crossing("rank", "GatherElements", 11, 10, {"x": X, "i": X.astype(np.int64)}, shapes="unknown"),
            "rank of 'x'",
        ),
        (Crossing("none", "TopK", 10, 9, {"x": TIES}, {"k": ints(0)}, outputs=2), "k is 0, and must be at least 1"),
        (
            Crossing("batch", "GatherND", 12, 11, {"x": X, "i": ints([[0]])}, {}, {"batch_dims": 1}, shapes="unknown"),
            "the rank of 'i' is unknown",
        ),
        (
            Crossing("rank", "ReverseSequence", 10, 9, {"x": X[0], "n": ints(1, 2, 3, 4, 5, 6)}, shapes="unknown"),
            "rank of 'x'",
        ),
        (
            Crossing("zero", "ReverseSequence", 10, 9, {"x": X[None], "n": ints(1, 1, 1, 1)}, shapes="symbolic"),
            "behind the third may be 0",
        ),
        (
            Crossing(
                "axes",
                "ReverseSequence",
                10,
                9,
                {"x": X, "n": ints(1, 1, 1, 1, 1)},
                {},
                {"time_axis": 7, "batch_axis": 1},
                expected=[X],
            ),
            "time_axis is 7",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("target", [10, 11, 18, 24])
@pytest.mark.parametrize("axis", [-1, 0])
def test_k_becomes_a_constant(target: int, axis: int) -> None:
    order = np.argsort(-TIES, axis=axis, kind="stable").take(range(2), axis=axis)
    expected = [np.take_along_axis(TIES, order, axis), order]
    Crossing("", "TopK", 9, target, {"x": TIES}, {}, {"k": 2, "axis": axis}, outputs=2, expected=expected).check()


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("axis", [-1, 0, -2])
@pytest.mark.parametrize("largest", [0, 1])
def test_largest_and_smallest(target: int, axis: int, largest: int) -> None:
    signed = np.array([[0.0, -0.0, 1.0, -np.inf, np.inf, -0.0]] * 3, np.float32)
    for x in (TIES, signed):
        attributes = {"axis": axis, "largest": largest}
        Crossing("", "TopK", 13, target, {"x": x}, {"k": ints(3)}, attributes, outputs=2).check()
        Crossing("", "TopK", 13, target, {"x": x, "k": ints(2)}, {}, attributes, outputs=2).check()


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_one_hot(axis: int, dtype: str) -> None:
    """Below 11 only 0 to depth - 1 are hot, from then on also -depth to -1."""
    indices = np.array([0, 3, -1, -4, -5, 4, 100]).astype(dtype)
    held = {"depth": ints(4), "values": np.array([2, 5], np.float32)}
    row = np.arange(4)
    old = np.where(indices[:, None] == row, 5, 2).astype(np.float32)
    new = np.where((indices[:, None] == row) | (indices[:, None] + 4 == row), 5, 2).astype(np.float32)
    for source, target, result in ((9, 11, old), (9, 18, old), (11, 10, new), (13, 9, new)):
        expected = [result if axis else result.T]
        for case in both_shapes(Crossing("", "OneHot", source, target, {"x": indices}, held, {"axis": axis})):
            replace(case, expected=expected).check()


def test_one_hot_of_constants_stays_one_node() -> None:
    given, held = {"v": np.array([2, 5], np.float32)}, {"x": ints(1, 2), "d": np.array(3)}
    assert operators(Crossing("", "OneHot", 11, 9, given, held, {}, ("x", "d", "v")).check()) == ["OneHot"]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("target", [11, 13, 18])
def test_scatter(axis: int, target: int) -> None:
    parts = {"x": X, "i": np.zeros((2, 3, 1), np.int64) + 2, "u": random_array((2, 3, 1), seed=3)}
    for case in both_shapes(Crossing("", "Scatter", 9, target, parts, {}, {"axis": axis})):
        assert operators(case.check()) == ["ScatterElements"]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("target", [10, 9])
def test_scatter_and_gather_elements(axis: int, dtype: str, target: int) -> None:
    length = X.shape[axis]
    indices = (np.arange(2 * 3 * 2).reshape(2, 3, 2) % (2 * length) - length).astype(dtype)
    unique = np.sort(np.random.default_rng(0).permuted(np.tile(np.arange(length), (6, 1)), axis=1)[:, :2], axis=1)
    spread = np.moveaxis((unique - length * (unique % 2)).reshape(2, 3, 2).astype(dtype), -1, axis)
    for case in both_shapes(Crossing("", "GatherElements", 11, target, {"x": X, "i": indices}, {}, {"axis": axis})):
        if case.shapes == "static" or target == 10:
            case.check()
    given = {"x": X, "i": spread, "u": random_array(spread.shape, seed=5)}
    for case in both_shapes(Crossing("", "ScatterElements", 11, target, given, {}, {"axis": axis})):
        case.check()


def test_below_11_no_dimension_is_gathered_by_a_negative_place() -> None:
    given = {"x": X, "i": ints([[0, -1]]), "u": X[:1, :1, :2]}
    after = Crossing("", "ScatterElements", 11, 10, given, {}, {"axis": -1}, shapes="symbolic").check()
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in after.graph.initializer}
    read = [held[name] for node in after.graph.node if node.op_type == "Gather" for name in node.input if name in held]
    assert read and min(each.min() for each in read) >= 0


@pytest.mark.parametrize("target", [10, 9])
def test_tuples_of_indices(target: int) -> None:
    for indices in (ints([0], [-1]), ints([[1, 2], [3, -5]], [[0, 0], [-4, 4]]), ints([1, 2, 3])):
        Crossing("", "GatherND", 11, target, {"x": X, "i": indices}).check()
        updates = random_array((*indices.shape[:-1], *X.shape[indices.shape[-1] :]), seed=2)
        Crossing("", "ScatterND", 11, target, {"x": X, "i": indices, "u": updates}).check()


UNKNOWN_SIZES = pytest.mark.parametrize(
    ("data", "indices"),
    [
        (("N", "M"), ("K", 2)),
        (("N",), ("K", 1)),
        (("N", "M", 3), ("N", "K", 2)),
        (("N", "M", "N"), ("K", 1)),
        (("N", "M", 2, "M"), ("K", 2)),
        ((0, 2), ("K", 1)),
        ((2, 0), ("K", 1)),
        ((2, 0), ("K", 2)),
    ],
    ids=str,
)


def sized(data: Dims, indices: Dims) -> Iterator[tuple[list[int], np.ndarray]]:
    """Shapes of the data, and indices into it, at several sizes; none where no index is valid."""
    for n, m, k in product((0, 1, 3), (0, 1, 2), (0, 1, 5)):
        sizes = {"N": n, "M": m, "K": k}
        shapes = [[sizes[dim] if isinstance(dim, str) else dim for dim in dims] for dims in (data, indices)]
        counted = shapes[0][: shapes[1][-1]]
        if 0 in counted and 0 not in shapes[1]:
            continue
        random = np.random.default_rng(k)
        places = np.stack([random.integers(-count, max(count, 1), shapes[1][:-1]) for count in counted], -1)
        yield shapes[0], places


@UNKNOWN_SIZES
@pytest.mark.parametrize("dtype", ["float32", "bool", "int64"])
def test_tuples_of_indices_into_dimensions_of_unknown_size(data: Dims, indices: Dims, dtype: str) -> None:
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    rank = len(indices) - 1 + len(data) - int(indices[-1])
    before = build(node, 18, {"x": (dtype, data), "i": ("int64", indices)}, {"y": (dtype, [None] * rank)})
    after = converted(before, 9)
    for shape, places in sized(data, indices):
        feeds = {"x": random_array(shape, dtype), "i": places}
        assert_same(run(before, feeds), run(after, feeds))


@UNKNOWN_SIZES
@pytest.mark.parametrize("dtype", ["float32", "bool", "int64"])
def test_scattering_into_dimensions_of_unknown_size(data: Dims, indices: Dims, dtype: str) -> None:
    """As slices are assigned where the batch is dynamic."""
    depth = int(indices[-1])
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    inputs = {"x": (dtype, data), "i": ("int64", indices), "u": (dtype, (*indices[:-1], *data[depth:]))}
    before = build(node, 11, inputs, {"y": (dtype, data)})
    after = converted(before, 9)
    for shape, places in sized(data, indices):
        met = places.reshape(-1, depth) % np.maximum(shape[:depth], 1)
        if len(np.unique(met, axis=0)) < len(met):
            # Which of two updates of one place comes last is not said.
            continue
        updates = random_array([*places.shape[:-1], *shape[depth:]], dtype, 3)
        feeds = {"x": random_array(shape, dtype), "i": places, "u": updates}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize(
    ("shape", "indices", "batch"),
    [
        ((4, 5, 6), (4, 1), 1),
        ((4, 5, 6), (4, 2), 1),
        ((4, 5, 6), (4, 3, 2), 1),
        ((4, 5, 6), (4, 5, 1), 2),
        ((2, 3, 4, 5), (2, 3, 2, 1), 2),
        ((1, 3), (1, 7, 1), 1),
    ],
)
@pytest.mark.parametrize("target", [11, 9])
def test_tuples_of_indices_in_a_batch(
    shape: tuple[int, ...], indices: tuple[int, ...], batch: int, target: int
) -> None:
    data, places = random_array(shape), np.random.default_rng(0).integers(-3, 3, indices)
    case = Crossing("", "GatherND", 13, target, {"x": data, "i": places}, {}, {"batch_dims": batch})
    case.check()
    replace(case, given={"x": data}, constants={"i": places}).check()
    if target == 11:
        replace(case, shapes="symbolic").check()


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4, 2), (5, 1, 2, 2), (3, 3, 0), (3, 3, 0, 2), (0, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_sequences_are_reversed(time: int, batch: int, shape: tuple[int, ...], dtype: str) -> None:
    if shape[batch] == 0:
        shape = shape[::-1]
    data, count = random_array(shape, dtype), shape[batch]
    lengths = np.minimum(np.arange(count) + 1, shape[time])
    expected = data.copy()
    for index, length in enumerate(lengths):
        place: list[Any] = [slice(None)] * len(shape)
        place[batch], place[time] = index, slice(0, length)
        row = np.take(data[tuple(place)], range(length - 1, -1, -1), axis=0)
        expected[tuple(place)] = row
    attributes = {"time_axis": time, "batch_axis": batch}
    case = Crossing("", "ReverseSequence", 10, 9, {"x": data, "n": lengths}, {}, attributes, expected=[expected])
    cases = both_shapes(case) if len(shape) < 4 else [case]
    for each in cases:
        after = each.check()
        assert "ReverseSequence" not in operators(after)


@pytest.mark.parametrize("axis", [None, 0, 2, -2])
@pytest.mark.parametrize("condition", [[True, False, True], [False, False], [False, True, True, False]])
def test_compress_by_a_constant(condition: list[bool], axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    constants = {"c": np.array(condition)}
    cases = both_shapes(*(Crossing("", "Compress", 11, to, {"x": X}, constants, attributes) for to in (8, 7, 5)))
    for case in cases:
        case.check()
    run_time = Crossing("", "Compress", 11, 8, {"x": X, "c": np.array(condition)}, {}, attributes)
    assert "condition is known only at run time" in run_time.refused()


@pytest.mark.parametrize("target", [8, 7])
def test_places_that_are_known_below_9(target: int) -> None:
    held = np.array([[0, 2, 0], [-1, 0, 3]], np.float32)
    for known in (held, held > 0, held[:, :0]):
        Crossing("", "NonZero", 9, target, {}, {"x": known}).check()
    assert "known only at run time" in Crossing("", "NonZero", 9, target, {"x": held}).refused()
    places = np.random.default_rng(2).integers(-4, 4, (2, 5, 6))
    Crossing("elements", "GatherElements", 11, target, {"x": X, "i": places}).check()
    Crossing("slices", "GatherND", 11, target, {"x": X, "i": places[..., :1]}).check()
