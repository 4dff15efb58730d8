"""RNN, GRU and LSTM over their boundaries."""

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

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TIME, BATCH, INPUT, HIDDEN = 5, 2, 3, 4


def recurrent(op: str, opset: int, outputs: Sequence[str], states: bool = False, **attributes: Any) -> onnx.ModelProto:
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    layout = attributes.get("layout", 0)
    gates = GATES[op] * HIDDEN
    state = (BATCH, directions, HIDDEN) if layout else (directions, BATCH, HIDDEN)
    shapes = {
        "x": (BATCH, TIME, INPUT) if layout else (TIME, BATCH, INPUT),
        "w": (directions, gates, INPUT),
        "r": (directions, gates, HIDDEN),
    }
    names = ["x", "w", "r"]
    if states:
        held = ["h", "c"][: 2 if op == "LSTM" else 1]
        names += ["", "", *held]
        shapes |= dict.fromkeys(held, state)
    sequence = (BATCH, TIME, directions, HIDDEN) if layout else (TIME, directions, BATCH, HIDDEN)
    made = {name: ("float32", sequence if index == 0 else state) for index, name in enumerate(outputs) if name}
    node = helper.make_node(op, names, list(outputs), hidden_size=HIDDEN, **attributes)
    return build(node, opset, {name: ("float32", shape) for name, shape in shapes.items()}, made)


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    return {
        value.name: random_array([dim.dim_value for dim in value.type.tensor_type.shape.dim], seed=seed)
        for seed, value in enumerate(model.graph.input)
    }


def test_linear_before_reset_is_refused_below_3() -> None:
    assert "linear_before_reset" in refusal(recurrent("GRU", 7, ["y"], linear_before_reset=1), 2)


@pytest.mark.parametrize("op", list(GATES))
@pytest.mark.parametrize("output_sequence", [None, 0, 1])
def test_named_sequence_is_given(op: str, output_sequence: int | None) -> None:
    attributes = {} if output_sequence is None else {"output_sequence": output_sequence}
    before = recurrent(op, 3, ["y", "y_h"], **attributes)
    after = converted(before, 7)
    feeds = feeds_of(before)
    assert_same(run(recurrent(op, 7, ["y", "y_h"]), feeds), run(after, feeds))
    back = converted(after, 1)
    assert operators(back) == [op]
    assert_same(run(after, feeds), run(converted(back, 14), feeds))


@pytest.mark.parametrize("op", list(GATES))
@pytest.mark.parametrize("target", [13, 6, 2])
@pytest.mark.parametrize("outputs", [["y", "y_h"], ["", "y_h"], ["y"]])
@pytest.mark.parametrize("states", [False, True])
def test_batch_first(op: str, target: int, outputs: list[str], states: bool) -> None:
    before = recurrent(op, 14, outputs, states, layout=1)
    after = converted(before, target)
    assert set(operators(after)) == {op, "Transpose"}
    feeds = feeds_of(before)
    # onnxruntime takes no layout=1; the reference evaluator runs it, but not a sequence of both directions.
    expected = run_reference(before, feeds) if op != "LSTM" or states else None
    found = run(converted(after, 14), feeds)
    moved = {name: np.swapaxes(held, 0, 1) if name in "xhc" else held for name, held in feeds.items()}
    time_first = run(recurrent(op, 14, outputs, states), moved)
    named = [index for index, name in enumerate(outputs) if name]
    turned = [np.transpose(held, (1, 0, 2) if i else (2, 0, 1, 3)) for i, held in zip(named, time_first, strict=True)]
    assert_same(turned, found, 1e-6)
    if expected is not None:
        assert [held.shape for held in expected] == [held.shape for held in found]


def test_last_state_is_named_below_3() -> None:
    before = recurrent("GRU", 7, ["y"])
    assert len(converted(before, 1).graph.node[0].output) == 2
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(converted(converted(before, 1), 14), feeds))
