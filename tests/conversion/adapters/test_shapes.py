"""Reshape, Tile, Range, Constant, and copies of sequences and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.adapters.crossings import Crossing, both_shapes
from conversion.adapters.execute import assert_same, build, converted, operators, random_array, refusal, run
from onnx import TensorProto, helper, numpy_helper

X = random_array((2, 3, 4))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Crossing("time", "Reshape", 5, 4, {"x": X, "s": np.array([6, 4])}), "shape is an attribute"),
        (Crossing("scalar", "Reshape", 5, 4, {"x": X[0, 0, :1]}, {"s": np.zeros(0, np.int64)}), "empty list"),
        (
            Crossing("rank", "Tile", 5, 6, {"x": X}, {"t": np.float32(2), "a": np.float32(1)}, shapes="unknown"),
            "the rank of 'x' is unknown",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("target", [5, 8, 13, 18])
def test_shape_becomes_a_constant(target: int) -> None:
    for shape in ([6, 4], [0, -1], [-1]):
        attributes = {"shape": shape, "consumed_inputs": [0]}
        expected = [X.reshape([X.shape[at] if size == 0 else size for at, size in enumerate(shape)])]
        Crossing("", "Reshape", 1, target, {"x": X}, {}, attributes, expected=expected).check()


def test_shape_becomes_an_attribute() -> None:
    after = converted(Crossing("", "Reshape", 13, 4, {"x": X}, {"s": np.array([0, -1])}).model(), 4)
    (node,) = after.graph.node
    assert {attribute.name: list(attribute.ints) for attribute in node.attribute} == {"shape": [0, -1]}


@pytest.mark.parametrize(
    ("shape", "new"),
    [((2, 3), (3, 2)), ((2, 0, 3), (0, 6)), ((0, 2), (2, 0, 5)), ((2, 3), (-1,)), ((0,), (0, 0)), ((1,), ())],
)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("target", [13, 11])
def test_dimensions_of_zero(shape: tuple[int, ...], new: tuple[int, ...], dtype: str, target: int) -> None:
    x, held = random_array(shape, dtype), np.array(new, np.int64)
    for first, rest in (({"x": x}, {"s": held}), ({"x": x, "s": held}, {})):
        for case in both_shapes(Crossing("", "Reshape", 14, target, first, rest, {"allowzero": 1})):
            case.check()


@pytest.mark.parametrize("target", [6, 9, 13, 18])
@pytest.mark.parametrize("axis", [0, 2])
def test_tile_goes_up(target: int, axis: int) -> None:
    parts = {"t": np.float32(3), "a": np.float32(axis)}
    repeats = [3 if place == axis else 1 for place in range(3)]
    for given in ((), ("t",), ("a",), ("t", "a")):
        first = {"x": X, **{name: parts[name] for name in given}}
        rest = {name: array for name, array in parts.items() if name not in given}
        inputs = ("x", "t", "a")
        Crossing("", "Tile", 1, target, first, rest, {}, inputs, expected=[np.tile(X, repeats)]).check()


@pytest.mark.parametrize(("repeats", "count"), [((1, 1, 1), 0), ((2, 1, 3), 2), ((1, 0, 1), 1)])
def test_tile_goes_down(repeats: tuple[int, ...], count: int) -> None:
    after = converted(Crossing("", "Tile", 6, 5, {"x": X}, {"r": np.array(repeats)}).model(), 5)
    assert operators(after) == (["Tile"] * count or ["Identity"])


RANGES = [(0, 5, 1), (10, 4, -2), (3, 9, 3), (1, 0, 1), (0, 10, 4), (5, -5, -3), (-3, 4, 2), (2, 2, 1), (9, 3, 4)]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("target", [10, 9])
def test_range(dtype: str, target: int) -> None:
    for bounds in RANGES:
        given = {name: np.array(bound, dtype) for name, bound in zip(("a", "b", "c"), bounds, strict=True)}
        Crossing("", "Range", 11, target, given).check()
        expected = [np.arange(*bounds).astype(dtype)]
        Crossing(
            "", "Range", 11, target, {"a": given["a"]}, {"b": given["b"], "c": given["c"]}, expected=expected
        ).check()


def test_range_of_fractions() -> None:
    for bounds in ((0, 1, 0.1), (1, -1, -0.3), (0.5, 7.25, 1.25)):
        given = {name: np.float32(bound) for name, bound in zip(("a", "b", "c"), bounds, strict=True)}
        Crossing("", "Range", 11, 9, given, tolerance=1e-6).check()


def constant(opset: int, dtype: str, elements: np.ndarray | None = None, **attributes: Any) -> onnx.ModelProto:
    if elements is not None:
        attributes["value"] = numpy_helper.from_array(elements)
    node = helper.make_node("Constant", [], ["y"], **attributes)
    return build(node, opset, {}, {"y": (dtype, None if elements is None else elements.shape)})


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float32", "float64"])
@pytest.mark.parametrize("target", [8, 7])
def test_constants_below_9(dtype: str, target: int) -> None:
    elements = np.array([[0, 1, 2], [3, 100, 7]]).astype(dtype)
    before = constant(13, dtype, elements)
    assert_same(run(before, {}), run(converted(before, target), {}))


def test_constants_that_no_float_holds() -> None:
    before = constant(13, "int64", np.array([2**53 + 1, -(2**62)]))
    after = converted(before, 8)
    assert operators(after) == ["Identity"]
    assert_same(run(before, {}), run(after, {}))


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_sparse_constants(by_place: bool, dtype: str) -> None:
    values = numpy_helper.from_array(np.array([5, -2]).astype(dtype), "values")
    places = np.array([1, 5]) if by_place else np.array([[0, 1], [1, 2]])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places, "indices"), [2, 3])
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    model = build(node, 11, {}, {"y": (dtype, (2, 3))})
    expected = np.array([[0, 5, 0], [0, 0, -2]]).astype(dtype)
    for target in (10, 9):
        assert_same([expected], run(converted(model, target), {}))


@pytest.mark.parametrize("target", [13, 11])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_sequences_are_copied(target: int, dtype: str) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Identity", ["s"], ["c"]),
        helper.make_node("SequenceAt", ["c", "i"], ["y"]),
        helper.make_node("SequenceLength", ["c"], ["n"]),
    ]
    inputs = {"x": (dtype, (2, 3)), "i": ("int64", ())}
    model = build(nodes, 14, inputs, {"y": (dtype, (2, 3)), "n": ("int64", ())})
    feeds = {"x": random_array((2, 3), dtype), "i": np.array(-1)}
    after = converted(model, target)
    assert "SequenceErase" in operators(after)
    assert_same(run(model, feeds), run(after, feeds))


def test_what_is_no_optional_is_itself() -> None:
    nodes = [
        helper.make_node("OptionalHasElement", ["x"], ["has"]),
        helper.make_node("OptionalHasElement", [], ["none"]),
        helper.make_node("OptionalGetElement", ["x"], ["y"]),
    ]
    outputs = {"has": ("bool", ()), "none": ("bool", ()), "y": ("float32", (2, 3, 4))}
    model = build(nodes, 18, {"x": ("float32", (2, 3, 4))}, outputs)
    for target in (17, 13, 9):
        assert_same([np.array(True), np.array(False), X], run(converted(model, target), {"x": X}))


def test_optional_inputs_are_refused_below_15() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    inputs = [helper.make_value_info("x", optional)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.BOOL, [])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert "OptionalHasElement exists from opset 15 on" in refusal(model, 14)
    assert operators(converted(model, 15)) == ["OptionalHasElement"]
