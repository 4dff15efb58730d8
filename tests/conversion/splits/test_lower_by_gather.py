"""Splits whose lengths are known only at run time, at opset 9: Gather, as Slice takes no inputs there."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, random_array, refusal, run
from onnx import helper

from splitgraph.conversion.opset import convert_opset


def chunked(parts: int, axis: int, rank: int | None, opset: int = 18) -> onnx.ModelProto:
    names = [f"y{index}" for index in range(parts)]
    node = helper.make_node("Split", ["x"], names, "cut", axis=axis, num_outputs=parts)
    dims = None if rank is None else [f"d{index}" for index in range(rank)]
    of_part = None if rank is None else [None] * rank
    return build(node, opset, {"x": ("float32", dims)}, dict.fromkeys(names, ("float32", of_part)))


def cut(lengths: int, axis: int) -> onnx.ModelProto:
    names = [f"y{index}" for index in range(lengths)]
    node = helper.make_node("Split", ["x", "n"], names, "cut", axis=axis)
    inputs: dict[str, Any] = {"x": ("float32", ("a", "b")), "n": ("int64", (lengths,))}
    return build(node, 13, inputs, {name: ("float32", [None, None]) for name in names})


def parts_of(data: Array, lengths: list[int], axis: int) -> list[Array]:
    return np.split(data, np.cumsum(lengths)[:-1], axis)


def test_nothing_counts_below_9() -> None:
    assert "ConstantOfShape to count, from opset 9 on" in refusal(chunked(3, 0, 2), 8)
    assert "ConstantOfShape to count, from opset 9 on" in refusal(cut(2, 0), 8)


def test_end_of_a_tensor_of_unknown_rank_is_refused() -> None:
    assert "takes no negative index below opset 11" in refusal(chunked(3, -1, None), 9)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("size", "lengths"), [(7, [3, 3, 1]), (6, [2, 2, 2]), (4, [2, 2, 0]), (1, [1, 0, 0])])
def test_chunks(axis: int, size: int, lengths: list[int]) -> None:
    data = random_array((size, size))
    after = converted(chunked(3, axis, 2), 9)
    assert operators(after).count("Gather") == 4
    assert_same(parts_of(data, lengths, axis), run(after, {"x": data}))


def test_chunks_of_a_tensor_of_unknown_rank() -> None:
    data = random_array((5, 2, 3))
    # The checker wants a rank for everything.
    after = convert_opset(chunked(2, 0, None), 9).model
    for output in after.graph.output:
        output.type.tensor_type.ClearField("shape")
    assert_same(parts_of(data, [3, 2], 0), run(after, {"x": data}))


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("lengths", [[2, 3], [0, 5], [5, 0]])
def test_lengths_of_run_time(axis: int, lengths: list[int]) -> None:
    data = random_array((5, 5))
    after = converted(cut(2, axis), 9)
    assert "Split" not in operators(after) and "Slice" not in operators(after)
    assert_same(parts_of(data, lengths, axis), run(after, {"x": data, "n": np.array(lengths)}))


def test_only_parts_that_are_named_are_gathered() -> None:
    model = cut(3, 0)
    model.graph.node[0].output[1] = ""
    del model.graph.output[1]
    data = random_array((6, 2))
    after = converted(model, 9)
    feeds = {"x": data, "n": np.array([1, 2, 3])}
    assert_same([data[:1], data[3:]], run(after, feeds))
    assert [node.name for node in after.graph.node if node.op_type == "Gather"][-2] == "cut"
    change = convert_opset(model, 9).changes[0]
    assert (change.before, change.after) == ("Split-13", "Gather")
