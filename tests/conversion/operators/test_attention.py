"""Attention over opset 25, which takes some inputs and outputs together only, and its function body."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import assert_same, build, converted, random_array, refusal, run_reference
from onnx import helper

SHAPE = (1, 2, 3, 4)
PAST = {"pk": ("float32", SHAPE), "pv": ("float32", SHAPE)}


def attention(
    opset: int, inputs: list[str], outputs: list[str], value_dtype: str = "float32", **attributes: Any
) -> onnx.ModelProto:
    shapes: dict[str, Any] = {"q": ("float32", SHAPE), "k": ("float32", SHAPE), "v": (value_dtype, SHAPE), **PAST}
    shapes["f"] = ("float32", None)
    given = {name: shapes.get(name, ("int64", (1,))) for name in inputs if name}
    # The rank of the output would say that of the inputs.
    lengths = {"y": None if "f" in inputs else SHAPE, "key": (1, 2, None, 4), "value": (1, 2, None, 4)}
    results = {name: ("float32", lengths[name]) for name in outputs if name}
    return build(helper.make_node("Attention", inputs, outputs, **attributes), opset, given, results)


@pytest.mark.parametrize(
    ("model", "target", "reason"),
    [
        (attention(28, ["q", "k", "v"], ["y"], "float64"), 22, "values that have another type"),
        (attention(23, ["q", "k", "v"], ["y"], "float16"), 22, "values that have another type"),
        (attention(23, ["q", "k", "v", "n"], ["y"], is_causal=1), 22, "a mask of int64"),
        (attention(24, ["f", "f", "f"], ["y"], q_num_heads=2, kv_num_heads=2), 22, "the rank of 'f' is unknown"),
        (attention(24, ["f", "f", "f"], ["y"], q_num_heads=2, kv_num_heads=2), 25, "the rank is unknown"),
    ],
)
def test_refusals(model: onnx.ModelProto, target: int, reason: str) -> None:
    assert reason in refusal(model, target)


@pytest.mark.parametrize("target", [22, 25])
@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes"),
    [
        (["q", "k", "v"], ["y"], {"is_causal": 1}),
        (["q", "k", "v"], ["y"], {"q_num_heads": 2, "kv_num_heads": 2}),
        (["q", "k", "v", "", "pk", "pv"], ["y", "", "value"], {}),
        (["q", "k", "v", "", "pk", "pv"], ["y", "key"], {}),
        # What is not taken together from 25 on is written as the function body of 24.
        (["q", "k", "v", "", "", "", "n"], ["y", "key", "value"], {"is_causal": 1}),
        (["q", "k", "v", "", "pk", "pv"], ["y", "key", "value"], {"kv_num_heads": 2, "is_causal": 1}),
    ],
)
def test_conversions(target: int, inputs: list[str], outputs: list[str], attributes: dict[str, int]) -> None:
    before = attention(24, inputs, outputs, **attributes)
    after = converted(before, target)
    feeds = {name: random_array(SHAPE, seed=index) for index, name in enumerate(filter(None, inputs))}
    feeds |= {"n": np.array([3])} if "n" in inputs else {}
    assert_same(run_reference(before, feeds), run_reference(after, feeds), 1e-6)
