"""BitwiseAnd, BitwiseOr and BitwiseXor below opset 18."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, refusal, run, run_reference
from onnx import helper

from splitgraph.conversion.opset import convert_opset

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BITWISE: dict[str, Any] = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}


def model_of(op_type: str, dtype: str, ranks: tuple[int, int] = (2, 1), *, declared: bool = True) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["a", "b"], ["c"])
    one, other = ([None] * rank if declared else None for rank in ranks)
    return build(node, 18, {"a": (dtype, one), "b": (dtype, other)}, {"c": (dtype, [None] * max(ranks))})


def numbers(dtype: str) -> Array:
    """The limits, numbers near them, single bits and random ones."""
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2, limits.max // 3, 0, 1]
    few = ends + [1 << place for place in range(limits.bits - 1)] + ([-1, -2, -16, -17] if limits.min else [])
    drawn = np.random.default_rng(0).integers(limits.min, limits.max, 60, dtype, endpoint=True)
    return np.concatenate([np.array(few, dtype), drawn])


@pytest.mark.usefixtures("functions_stay")
@pytest.mark.parametrize("op_type", BITWISE)
def test_unknown_type_is_refused(op_type: str) -> None:
    node = helper.make_node(op_type, ["x", "x"], ["y"])
    # Called with two types, so that inside the function there is none.
    calls = [helper.make_node("Bits", [name], [f"{name}_out"], domain="local") for name in "ab"]
    model = build(calls, 18, {"a": ("int32", (2,)), "b": ("int64", (2,))}, {})
    imports = [helper.make_opsetid("", 18)]
    model.functions.append(helper.make_function("local", "Bits", ["x"], ["y"], [node], imports))
    model.opset_import.append(helper.make_opsetid("local", 1))
    assert "the element type of 'x' is unknown" in refusal(model, 17)


@pytest.mark.parametrize("op_type", BITWISE)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("target", [17, 9])
def test_every_pair_of_bits(op_type: str, dtype: str, target: int) -> None:
    data = numbers(dtype)
    feeds = {"a": data[:, None], "b": data}
    expected = [BITWISE[op_type](data[:, None], data)]
    after = converted(model_of(op_type, dtype), target)
    assert op_type not in operators(after)
    assert_same(expected, run(after, feeds))
    if target == 17:
        assert_same(expected, run_reference(after, feeds))


@pytest.mark.parametrize("op_type", BITWISE)
@pytest.mark.parametrize(
    ("one", "other"),
    [((), ()), ((3,), ()), ((0, 2), (2,)), ((2, 1, 3), (4, 1)), ((1,), (0,))],
)
@pytest.mark.parametrize("declared", [True, False])
def test_shapes(op_type: str, one: tuple[int, ...], other: tuple[int, ...], declared: bool) -> None:
    data = numbers("int32")
    feeds = {"a": np.resize(data, one), "b": np.resize(data[::-1], other)}
    model = model_of(op_type, "int32", (len(one), len(other)), declared=declared)
    expected = [np.asarray(BITWISE[op_type](feeds["a"], feeds["b"]))]
    for target in (15, 9) if declared else (15,):
        # The checker wants a rank for everything.
        after = converted(model, target) if declared else convert_opset(model, target).model
        assert_same(expected, run(after, feeds))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("mask", [1, [0, 1, 3, 15, 127], [[7], [63]], -1, 5, [1, 2], 255])
@pytest.mark.parametrize("first", [False, True])
def test_masks_that_are_known(dtype: str, mask: Any, first: bool) -> None:
    limits, data = np.iinfo(dtype), numbers(dtype)[:5]
    held = np.array(mask)
    if held.min() < limits.min or held.max() > limits.max:
        held = np.array([limits.max, limits.max])[:, None]
    node = helper.make_node("BitwiseAnd", ["m", "x"] if first else ["x", "m"], ["y"])
    outputs = {"y": (dtype, [None] * max(held.ndim, 1))}
    before = build(node, 18, {"x": (dtype, (5,) if held.shape != (2,) else (1,))}, outputs, {"m": held.astype(dtype)})
    feeds = {"x": data if held.shape != (2,) else data[:1]}
    after = converted(before, 17)
    assert_same([feeds["x"] & held.astype(dtype)], run(after, feeds))
    low = all(
        number >= 0 and number + 1 <= limits.max and number & (number + 1) == 0 for number in held.reshape(-1).tolist()
    )
    assert (operators(after) == ["Mod"]) == low
