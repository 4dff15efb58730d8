"""Models that OpenVINO's ONNX frontend rejects or reads wrongly, each with inputs (openvinotoolkit/openvino#14718,
#21175, #14053, #26107, and what was measured with 2026.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .model_cases import ModelCase

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Feeds = dict[str, np.ndarray]
Shape = Sequence["int | str | None"]


def value(name: str, shape: Shape | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    *,
    rank: int,
    opset: int = 18,
    initializers: Sequence[TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    declared = [value(name, [None] * rank) for name in outputs]
    graph = helper.make_graph(list(nodes), "frontend", list(inputs), declared, list(initializers))
    domains = {function.domain for function in functions}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def data(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def chunks(size: int | str, count: int, *, axis: int = 0, rank: int = 1, sizes: Sequence[int] = ()) -> Any:
    """Split-18 by num_outputs of a dimension, with an input for each size that it takes at run time."""
    names = [f"part_{index}" for index in range(count)]
    shape: list[int | str] = [2] * rank
    shape[axis] = size
    node = helper.make_node("Split", ["x"], names, name="split", axis=axis, num_outputs=count)
    model = model_of([node], [value("x", shape)], names, rank=rank)
    feeds = []
    for given in sizes or [int(size)]:
        dims = [2] * rank
        dims[axis] = given
        feeds.append({"x": data(*dims)})
    return model, feeds


def lengths_at_run_time() -> tuple[onnx.ModelProto, list[Feeds]]:
    """Lengths from an input that declares no dimension."""
    node = helper.make_node("Split", ["x", "lengths"], ["a", "b"], name="split", axis=1)
    model = model_of([node], [value("x", [2, "N"]), value("lengths", ["K"], INT64)], "ab", rank=2)
    return model, [{"x": data(2, 6), "lengths": np.array(given)} for given in ([2, 4], [5, 1], [6, 0])]


def lengths_shared() -> tuple[onnx.ModelProto, list[Feeds]]:
    """Two splits by the same computed lengths: what the first tells of their number is not told to the frontend."""
    nodes = [
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Squeeze", ["places", "first"], ["lengths"]),
        helper.make_node("Split", ["x", "lengths"], ["a", "b"], name="split", axis=1),
        helper.make_node("Split", ["y", "lengths"], ["c", "d"], name="again", axis=0),
    ]
    held = [numpy_helper.from_array(np.array([0]), "first")]
    inputs = [value("x", [2, "N"]), value("y", ["N", 3]), value("mask", ["M"])]
    model = model_of(nodes, inputs, "abcd", rank=2, initializers=held)
    masks = ([0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 1])
    return model, [{"x": data(2, 6), "y": data(6, 3), "mask": np.array(mask, np.float32)} for mask in masks]


def split_by_input_1() -> tuple[onnx.ModelProto, list[Feeds]]:
    """Split-1, whose lengths are an input of the type of the data."""
    held = numpy_helper.from_array(np.array([1, 5], np.float32), "lengths")
    node = helper.make_node("Split", ["x", "lengths"], ["a", "b"], name="split", axis=1)
    return model_of([node], [value("x", [2, 6])], "ab", rank=2, opset=1, initializers=[held]), [{"x": data(2, 6)}]


def of_function() -> tuple[onnx.ModelProto, list[Feeds]]:
    """A model-local function that is not splitgraph's, with an uneven split in it."""
    body = [
        helper.make_node("Split", ["t"], ["left", "right"], name="inner", axis=1, num_outputs=2),
        helper.make_node("Concat", ["right", "left"], ["swapped"], axis=1),
    ]
    function = helper.make_function("a.domain", "Swap", ["t"], ["swapped"], body, [helper.make_opsetid("", 18)])
    nodes = [
        helper.make_node("Swap", ["x"], ["s"], name="call", domain="a.domain"),
        helper.make_node("Split", ["s"], ["a", "b"], name="split", axis=1, num_outputs=2),
    ]
    return model_of(nodes, [value("x", [2, 5])], "ab", rank=2, functions=[function]), [{"x": data(2, 5)}]


def of_nested_functions() -> tuple[onnx.ModelProto, list[Feeds]]:
    """A function that calls another, which splits by an attribute of the call."""
    axis = onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="axis")
    split = helper.make_node("Split", ["t"], ["left", "right"], name="inner", num_outputs=2)
    split.attribute.append(axis)
    opset = [helper.make_opsetid("", 18)]
    inner = helper.make_function("a.domain", "Halve", ["t"], ["left", "right"], [split], opset, ["axis"])
    call = helper.make_node("Halve", ["u"], ["p", "q"], name="halve", domain="a.domain", axis=-1)
    imports = [*opset, helper.make_opsetid("a.domain", 1)]
    outer = helper.make_function("a.domain", "Outer", ["u"], ["p", "q"], [call], imports)
    nodes = [helper.make_node("Outer", ["x"], ["a", "b"], name="call", domain="a.domain")]
    return model_of(nodes, [value("x", [2, 5])], "ab", rank=2, functions=[inner, outer]), [{"x": data(2, 5)}]


def variadic_function() -> tuple[onnx.ModelProto, list[Feeds]]:
    """What `convert --to variadic-split` writes: functions that OpenVINO reads by our extension only."""
    import splitgraph

    model, feeds = chunks("N", 3, sizes=(6, 7, 8))
    return splitgraph.convert(model, "variadic-split").model, feeds


def frontend_models() -> Iterator[ModelCase]:
    """Each model with inputs; what it gives is what our kernels give."""
    made: dict[str, tuple[onnx.ModelProto, list[Feeds]]] = {
        "1172 into 60": chunks(1172, 60),
        "5 into 4": chunks(5, 4),
        "3 into 5": chunks(3, 5),
        "9 into 4": chunks(9, 4),
        "uneven with a negative axis": chunks(5, 2, axis=-1, rank=3),
        "a dimension that turns out uneven": chunks("N", 4, sizes=(9, 8, 10, 11)),
        "a dimension that turns out too small": chunks("N", 4, axis=1, rank=2, sizes=(5, 3, 1)),
        "lengths of an unknown number": lengths_at_run_time(),
        "lengths of an unknown number, twice": lengths_shared(),
        "lengths as the input of Split-1": split_by_input_1(),
        "a local function": of_function(),
        "nested local functions": of_nested_functions(),
        "our own function": variadic_function(),
    }
    for name, (model, feeds) in made.items():
        yield ModelCase(name, model, [([given[value.name] for value in model.graph.input], []) for given in feeds])
