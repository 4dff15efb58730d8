"""Nodes computed in a wider element type where their operator does not take that of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import assert_same, build, converted, operators, refusal, run, run_reference
from onnx import helper

from splitgraph.conversion.opset import convert_opset

LIMITS = {name: np.iinfo(name) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")}


def numbers(dtype: str) -> Any:
    held = LIMITS[dtype]
    return np.array([0, 1, 2, 100, held.max, held.max - 1, held.min, held.min + 1], dtype)


def model(op: str, opset: int, dtype: str, count: int = 2, **attributes: Any) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(count)]
    node = helper.make_node(op, names, ["y"], name="node", **attributes)
    return build(
        node, opset, dict.fromkeys(names, (dtype, ("n",))), {"y": (dtype, [None] * (1 if op != "ReduceMax" else 0))}
    )


@pytest.mark.parametrize(
    ("op", "opset", "target", "dtype", "count", "reason"),
    [
        ("Add", 13, 12, "bfloat16", 2, "does not take bfloat16"),
        ("Erf", 13, 8, "int64", 1, "input 0 is int64"),
        ("Sqrt", 13, 12, "bfloat16", 1, "does not take bfloat16"),
        # Written with nodes of which each fails to be widened.
        ("Softmax", 13, 12, "bfloat16", 1, "does not take bfloat16"),
        ("Hardmax", 13, 11, "bfloat16", 1, "does not take bfloat16"),
        ("Concat", 13, 3, "string", 2, "does not take string"),
    ],
)
def test_refusals(op: str, opset: int, target: int, dtype: str, count: int, reason: str) -> None:
    attributes = {"axis": 0} if op == "Concat" else {}
    found = refusal(model(op, opset, dtype, count, **attributes), target)
    assert reason in found


def test_what_is_taken_is_not_widened() -> None:
    assert operators(converted(model("Add", 14, "int32"), 7)) == ["Add"]


def test_the_node_itself_stays_between_the_casts() -> None:
    after = converted(model("Add", 14, "int8"), 13)
    assert operators(after) == ["Cast", "Cast", "Add", "Cast"]
    assert [node.name for node in after.graph.node].index("node") == 2


def test_casts_are_not_taken_for_arithmetic_that_rounds() -> None:
    rewrite = convert_opset(model("Add", 14, "int8"), 13)
    assert not rewrite.rounding and rewrite.tolerance == (1e-5, 1e-6)
    written_out = convert_opset(model("HardSwish", 14, "float32", 1), 13)
    assert written_out.rounding and written_out.tolerance == (1e-4, 1e-5)


def test_an_input_that_is_read_twice_is_cast_once() -> None:
    node = helper.make_node("Mul", ["x", "x"], ["y"])
    doubled = build(node, 14, {"x": ("uint8", ("n",))}, {"y": ("uint8", ("n",))})
    after = converted(doubled, 13)
    assert operators(after) == ["Cast", "Mul", "Cast"]
    x = numbers("uint8")
    assert_same([x * x], run_reference(after, {"x": x}))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("dtype", sorted(LIMITS))
def test_low_bits_of_sums_and_products(op: str, dtype: str) -> None:
    x = numbers(dtype)
    y = x[::-1].copy()
    expected = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](x, y)
    for target in (13, 9):
        assert_same([expected], run_reference(converted(model(op, 14, dtype), target), {"x0": x, "x1": y}))


@pytest.mark.parametrize("dtype", sorted(LIMITS))
def test_quotients(dtype: str) -> None:
    x, y = numbers(dtype), np.array([1, 2, 3, 7, 100, 9, 5, 3], dtype)
    expected = np.trunc(x.astype(np.float64) / y).astype(dtype)
    assert_same([expected], run(converted(model("Div", 14, dtype), 13), {"x0": x, "x1": y}))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("target", [13, 11, 9])
def test_relu_of_integers(dtype: str, target: int) -> None:
    x = np.array([-(2**62) if dtype == "int64" else np.iinfo(dtype).min, -1, 0, 5, np.iinfo(dtype).max], dtype)
    assert_same([np.maximum(x, 0)], run(converted(model("Relu", 14, dtype, 1), target), {"x0": x}))


@pytest.mark.parametrize(("op", "dtype", "expected"), [("ReduceMax", "int8", -128), ("ReduceMin", "uint8", 255)])
def test_reductions_of_nothing_give_the_limit_of_the_narrow_type(op: str, dtype: str, expected: int) -> None:
    node = helper.make_node(op, ["x"], ["y"], axes=[0], keepdims=0)
    reduction = build(node, 13, {"x": (dtype, ("n", 2))}, {"y": (dtype, (2,))})
    after = converted(reduction, 11)
    full = np.array([[1, 2], [3, 0]], dtype)
    assert_same([full.max(0) if op == "ReduceMax" else full.min(0)], run(after, {"x": full}))
    assert_same([np.array([expected] * 2, dtype)], run_reference(after, {"x": np.zeros((0, 2), dtype)}))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("given", [[False, False], [False, True], [True, True], []])
def test_reductions_of_truth_values(op: str, given: list[bool]) -> None:
    node = helper.make_node(op, ["x"], ["y"], keepdims=0)
    after = converted(build(node, 20, {"x": ("bool", ("n",))}, {"y": ("bool", ())}), 19)
    expected = any(given) if op == "ReduceMax" else all(given)
    assert_same([np.array(expected)], run_reference(after, {"x": np.array(given, bool)}))


@pytest.mark.parametrize("target", [13, 12])
def test_moved_elements_keep_their_bits(target: int) -> None:
    node = helper.make_node("Where", ["c", "a", "b"], ["y"])
    declared = ("bfloat16", ("n",))
    moved = build(node, 16, {"c": ("bool", ("n",)), "a": declared, "b": declared}, {"y": declared})
    if target == 12:
        assert "bfloat16" in refusal(moved, target)
    else:
        after = converted(moved, target)
        assert operators(after) == ["Cast", "Cast", "Where", "Cast"]


@pytest.mark.parametrize(
    ("op", "shapes"),
    [("MaxUnpool", [(1, 1, 2, 2), (1, 1, 2, 2)]), ("DeformConv", [(1, 1, 3, 3), (1, 1, 2, 2), (1, 8, 2, 2)])],
)
def test_16_bit_floats_of_images(op: str, shapes: list[tuple[int, ...]]) -> None:
    names = [f"x{index}" for index in range(len(shapes))]
    kinds = ["bfloat16", "int64" if op == "MaxUnpool" else "bfloat16", "bfloat16"]
    node = helper.make_node(op, names, ["y"], kernel_shape=[2, 2])
    inputs = {name: (kind, shape) for name, kind, shape in zip(names, kinds, shapes, strict=False)}
    after = converted(build(node, 22, inputs, {"y": ("bfloat16", [None] * 4)}), 21)
    assert [each for each in operators(after) if each != "Cast"] == [op]
    assert operators(after).count("Cast") == (2 if op == "MaxUnpool" else 4)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 28, reason="this onnx has no opset 28")
def test_unique_16_bit_floats() -> None:
    node = helper.make_node("Unique", ["x"], ["y", "first", "place", "count"])
    outputs = {"y": ("bfloat16", [None]), **{name: ("int64", [None]) for name in ("first", "place", "count")}}
    before = build(node, 28, {"x": ("bfloat16", ("n",))}, outputs)
    after = converted(before, 27)
    assert operators(after) == ["Cast", "Unique", "Cast"]
    kind = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    x = np.array([2.5, -1.0, 2.5, 1e38, np.inf, 1e-40, -np.inf, 0.0, -1.0], np.float32).astype(kind)
    assert_same(run_reference(before, {"x": x}), run_reference(after, {"x": x}))
