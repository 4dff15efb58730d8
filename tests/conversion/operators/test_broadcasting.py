"""Limited broadcasting over opsets 7 and 8; what it means is computed with NumPy from the old documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper

Shape = Sequence[int | str]
NUMPY: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}
LOGICAL = ("And", "Or", "Xor")
COMPARING = ("Equal", "Greater", "Less")


def types_of(op: str) -> tuple[str, str]:
    given = "bool" if op in LOGICAL else "int32" if op == "Equal" else "float32"
    return given, "bool" if op in LOGICAL + COMPARING else given


def binary(op: str, opset: int, a: Shape, b: Shape, out: Shape, **attributes: Any) -> onnx.ModelProto:
    given, made = types_of(op)
    node = helper.make_node(op, ["a", "b"], ["c"], **attributes)
    return build(node, opset, {"a": (given, a), "b": (given, b)}, {"c": (made, out)})


def operands(op: str, a: Sequence[int], b: Sequence[int]) -> dict[str, Any]:
    given, _ = types_of(op)
    found = {"a": random_array(a, given, 1), "b": random_array(b, given, 2)}
    return {name: np.asarray(np.abs(held) + 1) for name, held in found.items()} if op == "Pow" else found


def limited(a: Any, b: Any, axis: int | None) -> Any:
    """B as the document of Add-6 broadcasts it: one element, or a run of A's dimensions from `axis` on."""
    if b.size == 1:
        return np.broadcast_to(b.reshape(()), a.shape)
    start = a.ndim - b.ndim if axis is None else axis
    assert a.shape[start : start + b.ndim] == b.shape
    return np.broadcast_to(b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim)), a.shape)


A = (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"broadcast": 1, "axis": 3}, "does not say where 2 dimensions belong among 4"),
        ({"broadcast": 1, "axis": -3}, "axis -3"),
    ],
)
def test_axis_that_cannot_be(attributes: dict[str, int], words: str) -> None:
    assert words in refusal(binary("Add", 6, A, (3, 4), A, **attributes), 7)


@pytest.mark.parametrize("op", list(NUMPY))
@pytest.mark.parametrize(
    ("b", "axis"),
    [((), None), ((1, 1), None), ((5,), None), ((4, 5), None), ((3, 4), 1), ((2,), 0), ((1,), 2), ((4, 5), -2)],
)
def test_limited_broadcast_goes_up(op: str, b: tuple[int, ...], axis: int | None) -> None:
    attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    before = binary(op, 6, A, b, A, **attributes)
    feeds = operands(op, A, b)
    expected = NUMPY[op](feeds["a"], limited(feeds["a"], feeds["b"], None if axis == -2 else axis))
    assert_same([expected], run(converted(before, 18), feeds), 1e-6)
    back = converted(converted(before, 18), 6)
    assert operators(back)[-1] == op
    assert_same([expected], run(converted(back, 9), feeds), 1e-6)


@pytest.mark.parametrize("op", list(NUMPY))
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4, 5), (2, 3, 4, 5)),
        (A, (3, 1, 1)),
        (A, (1, 3, 4, 1)),
        (A, (2, 1, 4, 1)),
        ((2, 1), (1, 3)),
        ((1,), (0, 3)),
        ((3, 0, 2), (3, 1, 1)),
        ((), (2, 3)),
        ((1, 1, 1), (4,)),
    ],
)
def test_numpy_broadcast_goes_down(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    feeds = operands(op, a, b)
    expected = NUMPY[op](feeds["a"], feeds["b"])
    symbols = [tuple(f"{name}{i}" for i in range(len(shape))) for name, shape in (("a", a), ("b", b))]
    out = tuple(f"c{i}" for i in range(expected.ndim))
    for before in (binary(op, 7, a, b, expected.shape), binary(op, 7, *symbols, out)):
        after = converted(before, 6)
        assert_limited(after)
        assert_same([expected], run(converted(after, 9), feeds), 1e-6)


def assert_limited(model: onnx.ModelProto) -> None:
    """At opset 6 nothing may broadcast unless it says so: with static shapes, onnx's inference knows all of them."""
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {
        value.name: [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]
        for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output)
    }
    for node in model.graph.node:
        if node.op_type in NUMPY and not any(a.name == "broadcast" for a in node.attribute):
            one, other = (shapes.get(name) for name in node.input)
            assert one is None or other is None or None in one + other or one == other


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("shapes", [[(3,), (2, 1), (2, 3)], [(1,), (4,)], [(2, 3), (3,), (1, 1, 1)], [(0, 1), (1, 3)]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_shape_below_8(op: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    feeds = {f"x{i}": random_array(shape, dtype, i) for i, shape in enumerate(shapes)}
    feeds["x0"].reshape(-1)[:1] = np.nan
    whole = np.broadcast_shapes(*shapes)
    for static in (True, False):
        declared = {
            name: (dtype, held.shape if static else tuple(f"{name}_{i}" for i in range(held.ndim)))
            for name, held in feeds.items()
        }
        out = whole if static else tuple(f"o{i}" for i in range(len(whole)))
        before = build(helper.make_node(op, list(feeds), ["y"]), 8, declared, {"y": (dtype, out)})
        after = converted(before, 7)
        spread = [np.broadcast_to(held, whole) for held in feeds.values()]
        reduced = getattr(np, op.lower())(spread, axis=0)
        assert_same([reduced], run(converted(after, 13), feeds) if op != "Mean" else run(after, feeds), 1e-6)


@pytest.mark.parametrize("c", [(), (1,), (4,), (1, 4), (3, 1), (1, 1), (3, 4)])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 1)])
def test_gemm_broadcasts_a_row_below_7(c: tuple[int, ...], trans_a: int, trans_b: int) -> None:
    shapes = {"a": (2, 3) if trans_a else (3, 2), "b": (4, 2) if trans_b else (2, 4), "c": c}
    feeds = {name: random_array(shape, "float32", i) for i, (name, shape) in enumerate(shapes.items())}
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
    for static in (True, False):
        declared = {
            name: ("float32", shape if static else tuple(f"{name}{i}" for i in range(len(shape))))
            for name, shape in shapes.items()
        }
        before = build(node, 7, declared, {"y": ("float32", (3, 4) if static else ("m", "n"))})
        after = converted(before, 6)
        assert_same(run(before, feeds), run(converted(after, 11), feeds), 1e-6)
        gemm = next(n for n in after.graph.node if n.op_type == "Gemm")
        broadcasts = any(a.name == "broadcast" and a.i for a in gemm.attribute)
        assert not static or broadcasts == (c not in ((3, 4), (3, 1)))


@pytest.mark.parametrize(
    ("shape", "trans_a", "trans_b"), [((3, 1), 0, 1), ((1, 2), 1, 0), ((2, 2), 0, 1), ((2, 2), 1, 0)]
)
def test_gemm_of_three_inputs_of_one_shape_below_7(shape: tuple[int, int], trans_a: int, trans_b: int) -> None:
    """That they are of one shape does not make it the result's."""
    rows, columns = shape[1] if trans_a else shape[0], shape[0] if trans_b else shape[1]
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=trans_a, transB=trans_b)
    before = build(node, 7, dict.fromkeys("abc", ("float32", shape)), {"y": ("float32", (rows, columns))})
    after = converted(before, 6)
    feeds = {name: random_array(shape, "float32", seed) for seed, name in enumerate("abc")}
    assert_same(run(before, feeds), run(converted(after, 11), feeds), 1e-6)
    assert (operators(after) == ["Gemm"]) == (shape == (rows, columns))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_gemm_without_c_below_11(dtype: str) -> None:
    node = helper.make_node("Gemm", ["a", "b"], ["y"], beta=3.0)
    before = build(node, 11, {"a": (dtype, (2, 3)), "b": (dtype, (3, 4))}, {"y": (dtype, (2, 4))})
    feeds = {"a": random_array((2, 3), dtype), "b": random_array((3, 4), dtype)}
    if dtype != "int32":
        feeds["a"][0], feeds["b"][:] = -0.0, np.abs(feeds["b"])
        assert np.signbit(run(before, feeds)[0][0]).all() == np.signbit(run(converted(before, 9), feeds)[0][0]).all()
    after = converted(before, 9)
    assert len(after.graph.node[0].input) == 3
    assert_same(run_reference(before, feeds), run_reference(after, feeds))


@pytest.mark.parametrize(
    ("shape", "slope"), [((2, 3, 4), (3,)), ((2, 3, 4, 5), (1,)), ((2, 3), (3,)), ((2, 3, 4), (1,)), ((4,), (1,))]
)
def test_prelu_of_channels_goes_up(shape: tuple[int, ...], slope: tuple[int, ...]) -> None:
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    before = build(node, 6, {"x": ("float32", shape), "slope": ("float32", slope)}, {"y": ("float32", shape)})
    feeds = {"x": random_array(shape), "slope": random_array(slope, seed=1)}
    columns = feeds["slope"].reshape(slope + (1,) * (len(shape) - 2)) if len(shape) > 1 else feeds["slope"]
    expected = np.where(feeds["x"] < 0, columns * feeds["x"], feeds["x"])
    assert_same([expected], run(converted(before, 9), feeds))
    back = converted(converted(before, 9), 6)
    assert_same([expected], run(converted(back, 16), feeds))


@pytest.mark.parametrize("slope", [(3, 1), (1, 3, 1), (1, 1, 1), (4,), (2, 3, 4), (2, 1, 4), ()])
def test_prelu_of_any_slope_goes_down(slope: tuple[int, ...]) -> None:
    shape = (2, 3, 4)
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    before = build(node, 9, {"x": ("float32", shape), "slope": ("float32", slope)}, {"y": ("float32", shape)})
    feeds = {"x": random_array(shape), "slope": random_array(slope, seed=1)}
    after = converted(before, 6)
    prelu = next(n for n in after.graph.node if n.op_type == "PRelu")
    inferred = onnx.shape_inference.infer_shapes(after)
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in (*inferred.graph.input, *inferred.graph.value_info)}
    assert ranks[prelu.input[1]] <= 1
    assert_same(run(before, feeds), run(converted(after, 9), feeds))


def test_prelu_of_an_unclear_slope_is_refused() -> None:
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    before = build(node, 6, {"x": ("float32", (2, 3, 4)), "slope": ("float32", (3, 4))}, {"y": ("float32", (2, 3, 4))})
    assert "neither one element nor one for each channel" in refusal(before, 7)
