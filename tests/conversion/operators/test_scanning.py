"""Scan over opsets 9 and 11, against onnxruntime's own Scan-8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import assert_same, build, converted, operators, random_array, refusal, run, value
from onnx import helper

BATCH, TIME, WIDTH = 3, 4, 2


def running_sum(total: str = "float32") -> onnx.GraphProto:
    """Adds each element to the state, scaled by a value of the graph outside; scans the sums and their rows out."""
    nodes = [
        helper.make_node("Mul", ["element", "outside"], ["scaled"]),
        helper.make_node("Sum", ["state", "scaled"], ["next"]),
        helper.make_node("Softmax", ["next"], ["row"], axis=0),
    ]
    inputs = [value("state", (total, (WIDTH,))), value("element", ("float32", (WIDTH,)))]
    return helper.make_graph(nodes, "body", inputs, [value(n, ("float32", (WIDTH,))) for n in ("next", "row")])


def scan(
    opset: int, lengths: bool = False, outputs: tuple[str, ...] = ("last", "rows"), **attributes: Any
) -> onnx.ModelProto:
    batch = (BATCH,) if opset == 8 else ()
    named = (["lengths"] if lengths else [""]) if opset == 8 else []
    node = helper.make_node(
        "Scan", [*named, "initial", "x"], list(outputs), body=running_sum(), num_scan_inputs=1, **attributes
    )
    inputs = {
        "initial": ("float32", (*batch, WIDTH)),
        "x": ("float32", (*batch, TIME, WIDTH)),
        "outside": ("float32", (1,)),
    }
    if lengths:
        inputs["lengths"] = ("int64", (BATCH,))
    made = {"last": ("float32", (*batch, WIDTH)), "rows": ("float32", (*batch, TIME, WIDTH))}
    return build(node, opset, inputs, {name: made[name] for name in outputs if name})


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    found = {}
    for seed, item in enumerate(model.graph.input):
        shape = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
        found[item.name] = np.array([2, 1, 4]) if item.name == "lengths" else random_array(shape, seed=seed)
    return found


def test_reversed_sequences_with_lengths_are_refused() -> None:
    assert "where a reversed sequence with its own length begins" in refusal(scan(8, lengths=True, directions=[1]), 9)


def test_prepended_outputs_are_refused_at_8() -> None:
    assert "in reverse" in refusal(scan(9, scan_output_directions=[1]), 8)


@pytest.mark.parametrize("outputs", [("last", "rows"), ("", "rows"), ("last",)])
@pytest.mark.parametrize("directions", [None, [0], [1]])
@pytest.mark.parametrize("target", [9, 13, 18])
def test_batch_goes_up(outputs: tuple[str, ...], directions: list[int] | None, target: int) -> None:
    before = scan(8, outputs=("last", "rows"), **({"directions": directions} if directions else {}))
    del before.graph.output[:]
    before.graph.output.extend(
        value(name, ("float32", ("b", "w") if name == "last" else ("b", "t", "w"))) for name in outputs if name
    )
    after = converted(before, target)
    assert operators(after) == ["Scan"]
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(after, feeds), 1e-6)


@pytest.mark.parametrize("target", [9, 18])
def test_lengths_go_up(target: int) -> None:
    before = scan(8, lengths=True)
    feeds = feeds_of(before)
    after = converted(before, target)
    # onnxruntime scans out 0 behind the end.
    assert_same(run(before, feeds), run(after, feeds), 1e-6)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"scan_input_axes": [-1]}, {"scan_input_axes": [1], "scan_output_axes": [-1], "scan_input_directions": [1]}],
)
@pytest.mark.parametrize("target", [10, 8])
def test_one_sequence_goes_down(attributes: dict[str, Any], target: int) -> None:
    before = scan(11, **attributes)
    if "scan_input_axes" in attributes:
        before.graph.input[1].CopyFrom(value("x", ("float32", (WIDTH, TIME))))
    if "scan_output_axes" in attributes:
        before.graph.output[1].CopyFrom(value("rows", ("float32", (WIDTH, TIME))))
    feeds = feeds_of(before)
    after = converted(before, target)
    assert_same(run(before, feeds), run(after, feeds), 1e-6)
    assert_same(run(before, feeds), run(converted(after, 18), feeds), 1e-6)


@pytest.mark.parametrize("axes", [[0, -1], [-2, 1], [-2, -1]])
def test_axes_of_several_inputs_are_counted_from_the_front(axes: list[int]) -> None:
    text = """body (float[2] state, float[2] element, float[2] other) => (float[2] next, float[2] row) {
        both = Mul (element, other)
        next = Add (state, both)
        row = Identity (next)
    }"""
    given = {"s": random_array((2,)), "x": random_array((4, 2), seed=1), "z": random_array((2, 4), seed=2)}
    attributes = {"body": onnx.parser.parse_graph(text), "num_scan_inputs": 2, "scan_input_axes": axes}
    (node,) = Crossing("", "Scan", 11, 10, given, {}, attributes, None, 2).check().graph.node
    assert [list(held.ints) for held in node.attribute if held.name == "scan_input_axes"] == [[0, 1]]


def test_states_that_are_matrices_go_down() -> None:
    text = """body (float[2, 3] state, float[2, 3] element) => (float[2, 3] next, float[2, 3] row) {
        next = Add (state, element)
        row = Identity (next)
    }"""
    state, x = random_array((2, 3)), random_array((4, 2, 3), seed=1)
    expected = [state + x.sum(0), state + x.cumsum(0)]
    attributes = {"body": onnx.parser.parse_graph(text), "num_scan_inputs": 1}
    Crossing("", "Scan", 9, 8, {"s": state, "x": x}, {}, attributes, None, 2, expected, 1e-5).check()
