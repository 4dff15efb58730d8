"""Weights that count along several axes, as the rows and columns of a grid: of another size, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

Array = Any
# Sizes that the tool did not choose, of the height and the width.
SIZES = [(3, 5), (1, 2), (6, 7), (9, 4), (13, 13)]


def grid(height: int, width: int, dtype: Any = np.float32) -> Array:
    """The row and the column of each place, [height, width, 2]."""
    return np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1).astype(dtype)


def flat(height: int, width: int) -> Array:
    return grid(height, width).reshape(-1, 2)


def rows(height: int, width: int) -> Array:
    """The row alone of each place, in a list of all."""
    return np.stack([np.repeat(np.arange(height), width), np.full(height * width, 7)], -1).astype(np.float32)


def model(shape: list[int], weights: Array, nodes: str, dtype: str = "float") -> ModelProto:
    """A model of x and weights g. nodes: they may use `places`, x with all places of the grid along axis 1."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> m ({dtype}[{", ".join(map(str, shape))}] x) => ({dtype}[a] y)
        <int64[3] places = {{0, -1, {shape[-1]}}}> {{ {nodes} }}"""
    made = parser.parse_model(text)
    made.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", made.graph.input[0].type.tensor_type.elem_type, None)
    )
    made.graph.initializer.append(numpy_helper.from_array(weights, "g"))
    return made


ADDED, FLAT = "y = Add (x, g)", "r = Reshape (x, places) y = Add (r, g)"
FIRST = "t = Transpose <perm = [0, 3, 1, 2]> (x) y = Add (t, g)"
BY_COLUMNS = "t = Transpose <perm = [0, 2, 1, 3]> (x) r = Reshape (t, places) y = Add (r, g)"
# The model at 3 x 5, and what it computes at any size.
FOLLOWING: dict[str, tuple[ModelProto, Callable[[Array], Array]]] = {
    "a grid": (model([1, 3, 5, 2], grid(3, 5)[None], ADDED), lambda x: x + grid(*x.shape[1:3])),
    "of integers": (
        model([1, 3, 5, 2], grid(3, 5, np.int64), ADDED, "int64"),
        lambda x: x + grid(*x.shape[1:3], np.int64),
    ),
    "the entries before the grid": (
        model([1, 3, 5, 2], np.moveaxis(grid(3, 5), -1, 0)[None].copy(), FIRST),
        lambda x: np.moveaxis(x, -1, 1) + np.moveaxis(grid(*x.shape[1:3]), -1, 0),
    ),
    "the column first": (
        model([1, 3, 5, 2], grid(3, 5)[..., ::-1].copy(), ADDED),
        lambda x: x + grid(*x.shape[1:3])[..., ::-1],
    ),
    "centres": (
        model([1, 3, 5, 2], grid(3, 5) + np.float32(0.5), ADDED),
        lambda x: x + grid(*x.shape[1:3]) + np.float32(0.5),
    ),
    "half a place before": (
        model([1, 3, 5, 2], grid(3, 5) - np.float32(0.5), ADDED),
        lambda x: x + grid(*x.shape[1:3]) - np.float32(0.5),
    ),
    "a list of places": (
        model([1, 3, 5, 2], flat(3, 5), FLAT),
        lambda x: x.reshape(1, -1, 2) + flat(*x.shape[1:3]),
    ),
    "the column of a list first": (
        model([1, 3, 5, 2], flat(3, 5)[:, ::-1].copy(), FLAT),
        lambda x: x.reshape(1, -1, 2) + flat(*x.shape[1:3])[:, ::-1],
    ),
    "the rows of a list": (
        model([1, 3, 5, 2], rows(3, 5), FLAT),
        lambda x: x.reshape(1, -1, 2) + rows(*x.shape[1:3]),
    ),
    "places by columns": (
        model([1, 3, 5, 2], flat(5, 3), BY_COLUMNS),
        lambda x: np.swapaxes(x, 1, 2).reshape(1, -1, 2) + flat(x.shape[2], x.shape[1]),
    ),
    "a list that is multiplied": (
        model([1, 3, 5, 2], flat(3, 5)[None], "h = Mul (g, two) r = Reshape (x, places) y = Add (r, h)"),
        lambda x: x.reshape(1, -1, 2) + 2 * flat(*x.shape[1:3]),
    ),
}  # fmt: skip
FOLLOWING["a list that is multiplied"][0].graph.initializer.append(
    numpy_helper.from_array(np.array(2, np.float32), "two")
)
SQUARE = model([1, 4, 4, 2], flat(4, 4), FLAT)


def asked(made: ModelProto, *shape: Any) -> ModelProto:
    return splitgraph.reshape(made, {"x": shape}, verify=False).model


def refused(made: ModelProto, *shape: Any) -> str:
    with pytest.raises(splitgraph.SplitgraphError) as caught:
        asked(made, *shape)
    return str(caught.value)


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("wanted", [("H", "W"), ("H", 5), (3, "W"), (6, 7)])
def test_a_grid_follows(name: str, wanted: tuple[Any, Any]) -> None:
    made, function = FOLLOWING[name]
    after = ReferenceEvaluator(asked(made, 1, *wanted, 2))
    for sizes in SIZES:
        height, width = (
            size if isinstance(asking, str) else asking for size, asking in zip(sizes, wanted, strict=True)
        )
        x = np.random.default_rng(height).integers(-9, 9, (1, height, width, 2))
        x = x.astype(helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type))
        np.testing.assert_array_equal(after.run(None, {"x": x})[0], function(x))


@pytest.mark.parametrize("sizes", SIZES)
def test_a_square_list_of_places_is_read_in_the_order_of_the_data(sizes: tuple[int, int]) -> None:
    x = np.random.default_rng(0).random((1, *sizes, 2), np.float32)
    found = ReferenceEvaluator(asked(SQUARE, 1, "H", "W", 2)).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found, x.reshape(1, -1, 2) + flat(*sizes))


def test_a_batch_goes_beside_a_grid() -> None:
    x = np.random.default_rng(0).random((4, 6, 7, 2), np.float32)
    found = ReferenceEvaluator(asked(FOLLOWING["a list of places"][0], "N", "H", "W", 2)).run(None, {"x": x})[0]
    np.testing.assert_array_equal(found, x.reshape(4, -1, 2) + flat(6, 7))


def _other(array: Array, place: Any, value: Any) -> Array:
    changed = array.copy()
    changed[place] = value
    return changed


NOT_THE_SAME = "are not the same all along it"
REFUSED: dict[str, tuple[Array, str]] = {
    "from 1": (grid(3, 5) + 1, ADDED),
    "in steps of 8": (grid(3, 5) * 8, ADDED),
    "from a quarter": (grid(3, 5) + np.float32(0.25), ADDED),
    "one place differs": (_other(grid(3, 5), (2, 4, 1), 9), ADDED),
    "row and column in one entry": (grid(3, 5) + np.moveaxis(grid(3, 5)[..., ::-1], -1, -1), ADDED),
    "a list from 1": (flat(3, 5) + 1, FLAT),
    "a list of which one place differs": (_other(flat(3, 5), (14, 0), 9), FLAT),
    "a list by columns, where the data is by rows": (flat(5, 3), FLAT),
    "a list of other rows": (flat(5, 3)[:, ::-1].copy(), FLAT),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_counts_in_another_way_is_refused(name: str) -> None:
    weights, nodes = REFUSED[name]
    assert NOT_THE_SAME in refused(model([1, 3, 5, 2], weights, nodes), 1, "H", "W", 2)


def test_two_floats_are_no_rule() -> None:
    assert NOT_THE_SAME in refused(model([1, 2, 5, 2], grid(2, 5), ADDED), 1, "H", 5, 2)


def test_numbers_that_count_along_each_other_are_no_grid() -> None:
    weights = np.array([[0, 0], [0, 1]], np.int64)
    assert "each of them counts along the other" in refused(model([2, 2], weights, ADDED, "int64"), "H", "W")


@pytest.mark.parametrize("wanted", [("H", "W"), ("H", 5)])
def test_a_list_of_one_row_may_count_columns_or_places(wanted: tuple[Any, Any]) -> None:
    said = refused(model([1, 1, 5, 2], flat(1, 5), FLAT), 1, *wanted, 2)
    assert "was 1, so what they count is not known" in said


def test_a_batch_is_not_counted() -> None:
    made = model([3, 5, 2], grid(3, 5), ADDED)
    with pytest.raises(splitgraph.SplitgraphError, match="computes with the number of N"):
        splitgraph.reshape(made, batch="N")


# Several grids, one after the other -----------------------------------------------------------------------------------

HALVES = "h = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x)"
LISTS = "big = Reshape (x, places) small = Reshape (h, places) j = Concat <axis = 2> (big, small)"
Sizes = tuple[int, int]


def levels(*maps: Sizes, start: float = 0.5) -> Array:
    """The column and the row of each place of the maps, [1, 2, places]."""
    return np.concatenate([flat(*sizes)[:, ::-1] + np.float32(start) for sizes in maps]).T[None].copy()


def strides(*maps: Sizes) -> Array:
    """The stride of each place of the maps, [1, places]."""
    return np.concatenate([np.full(height * width, 8.0 * 2**at) for at, (height, width) in enumerate(maps)])[
        None
    ].astype(np.float32)


def detector(nodes: str, **weights: Array) -> ModelProto:
    """A model of a map x[1, 2, 6, 8], and of one that is half as large, joined as `j`."""
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> m (float[1, 2, 6, 8] x) => (float[a, b, c] y)
        <int64[3] places = {{1, 2, -1}}> {{ {HALVES} {LISTS} {nodes} }}"""
    )
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def joined(x: Array) -> Array:
    halves = x.reshape(1, 2, x.shape[2] // 2, 2, x.shape[3] // 2, 2).mean((3, 5), dtype=np.float32)
    return np.concatenate([x.reshape(1, 2, -1), halves.reshape(1, 2, -1)], 2)


def of_levels(x: Array) -> tuple[Sizes, Sizes]:
    height, width = x.shape[2:]
    return (height, width), (height // 2, width // 2)


MAPS = ((6, 8), (3, 4))
OF_LEVELS: dict[str, tuple[ModelProto, Callable[[Array], Array]]] = {
    "centres": (detector("y = Add (j, g)", g=levels(*MAPS)), lambda x: joined(x) + levels(*of_levels(x))),
    "corners": (
        detector("y = Add (j, g)", g=levels(*MAPS, start=0)),
        lambda x: joined(x) + levels(*of_levels(x), start=0),
    ),
    "strides": (detector("y = Mul (j, s)", s=strides(*MAPS)), lambda x: joined(x) * strides(*of_levels(x))),
    "behind nodes that hand them on": (
        detector("r = Relu (j) t = Transpose <perm = [0, 2, 1]> (r) u = Transpose <perm = [0, 2, 1]> (t) "
                 "n = Identity (u) a = Add (g, n) y = Mul (a, s)", g=levels(*MAPS), s=strides(*MAPS)),
        lambda x: (np.maximum(joined(x), 0) + levels(*of_levels(x))) * strides(*of_levels(x)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LEVELS)
@pytest.mark.parametrize("wanted", [("H", "W"), ("H", 8), (6, "W"), (4, 10)])
def test_grids_one_after_the_other_follow(name: str, wanted: tuple[Any, Any]) -> None:
    made, function = OF_LEVELS[name]
    after = ReferenceEvaluator(asked(made, 1, 2, *wanted))
    for sizes in [(6, 8), (2, 4), (8, 6), (10, 10)]:
        shape = [size if isinstance(asking, str) else asking for size, asking in zip(sizes, wanted, strict=True)]
        x = np.random.default_rng(0).integers(-9, 9, (1, 2, *shape)).astype(np.float32)
        np.testing.assert_array_equal(after.run(None, {"x": x})[0], function(x))


REFUSED_LEVELS: dict[str, ModelProto] = {
    "the second grid from 1": detector("y = Add (j, g)", g=np.concatenate([levels(MAPS[0]), levels(MAPS[1]) + 1], 2)),
    "the smaller grid first": detector("y = Add (j, g)", g=levels(*MAPS[::-1])),
    "one place differs": detector("y = Add (j, g)", g=_other(levels(*MAPS), (0, 1, 50), 9)),
    "no rule": detector("y = Add (j, g)", g=np.random.default_rng(0).random((1, 2, 60), np.float32)),
    "not joined along this axis": detector(
        "p = Pad (j, pads) y = Add (p, g)", pads=np.array([0, 0, 0, 0, 0, 12]), g=levels(*MAPS, (3, 4))
    ),
}


@pytest.mark.parametrize("name", REFUSED_LEVELS)
def test_what_does_not_count_each_grid_is_refused(name: str) -> None:
    assert NOT_THE_SAME in refused(REFUSED_LEVELS[name], 1, 2, "H", "W")
