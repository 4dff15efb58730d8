"""A node that repeats becomes what the first one became: without that memory, conversion gives the same bytes, but for
constants, which nodes that are alike have in common.
"""

from __future__ import annotations

import re

import onnx
import onnx.parser
import pytest
from known_opsets import known
from onnx import helper, numpy_helper

import splitgraph
from splitgraph.conversion.ladder import conversion_cache as repeats
from splitgraph.conversion.ladder.conversion_cache import Repeats

from .opset_cases import node_cases, opset_of

COPIES = 3
TARGETS = known((9, 11, 13, 17, 18, 26))


def repeated(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes there several times over, all of the same inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    inputs = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer} | {""}
    for copy in range(1, COPIES):
        for node in model.graph.node:
            added = made.graph.node.add()
            added.CopyFrom(node)
            added.name = f"{node.name}_copy_{copy}" if node.name else ""
            added.input[:] = [name if name in inputs else f"{name}_copy_{copy}" for name in node.input]
            added.output[:] = [name and f"{name}_copy_{copy}" for name in node.output]
        for value in model.graph.output:
            added_value = made.graph.output.add()
            added_value.CopyFrom(value)
            added_value.name = f"{value.name}_copy_{copy}"
    return made


def converted(model: onnx.ModelProto, target: int) -> bytes | list[str]:
    """What conversion gives: the bytes of the model, or its reasons."""
    change = splitgraph.upgrade if target > (opset_of(model) or 0) else splitgraph.downgrade
    try:
        rewrite = change(model, target)
    except splitgraph.ConversionError as refusal:
        return [found.message for found in refusal.diagnostics]
    by_content(rewrite.model.graph, {})
    changes = repr(rewrite.changes).encode()
    return changes + rewrite.model.SerializeToString(deterministic=True)


def by_content(graph: onnx.GraphProto, outer: dict[str, str], depth: int = 0) -> None:
    """Name each constant of a graph by what it holds, so that equal ones are one, as they are to every reader, and each
    value by its place: where a constant has no name of its own, another value or node may have it.
    """
    inputs, names, held = {value.name for value in graph.input}, dict(outer), dict[str, onnx.TensorProto]()
    for tensor in graph.initializer:
        before = tensor.name
        if before not in inputs:
            tensor.name = ""
            tensor.name = names[before] = f"constant {tensor.SerializeToString(deterministic=True).hex()}"
        held[tensor.name] = tensor
    kept = [onnx.TensorProto.FromString(held[name].SerializeToString()) for name in sorted(held)]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    given = set() if depth else {value.name for value in graph.output}
    for index, node in enumerate(graph.node):
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                by_content(body, names, depth + 1)
        for place, name in enumerate(node.output):
            names[name] = name if not name or name in given else f"value {depth} {index} {place}"
        node.output[:] = [names[name] for name in node.output]
        node.name = re.sub(r"_\d+", "", node.name)
    for value in (*graph.value_info, *graph.output):
        value.name = names.get(value.name, value.name)


def check(cases: list[onnx.ModelProto], monkeypatch: pytest.MonkeyPatch) -> int:
    """Convert all with and without memory; how many were converted."""
    models = [(repeated(model), target) for model in cases for target in TARGETS if target != opset_of(model)]
    used = list[int]()
    for name in ("_followed", "_edited"):
        follow = getattr(repeats, name)
        monkeypatch.setattr(repeats, name, lambda *given, follow=follow: (used.append(1), follow(*given))[1])
    with_memory = [converted(model, target) for model, target in models]
    assert len(used) > len(models) / 4
    monkeypatch.setattr(Repeats, "key_of", lambda self, node, visit: None)
    without = [converted(model, target) for model, target in models]
    for (model, target), found, expected in zip(models, with_memory, without, strict=True):
        assert found == expected, f"{model.graph.node[0].op_type} to {target}"
    return sum(isinstance(found, bytes) for found in with_memory)


def cases(step: int) -> list[onnx.ModelProto]:
    """Every so many of onnx's node tests."""
    return [case.model for case in node_cases()[::step]]


def test_a_sample_of_node_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(cases(61), monkeypatch) > 50


@pytest.mark.slow
def test_node_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(cases(25), monkeypatch) > 150


def reductions(axes: list[list[int]]) -> onnx.ModelProto:
    """A ReduceMean-18 for each list of axes, which are initializers, in a chain."""
    nodes, tensors, value = [], [], "x"
    for index, held in enumerate(axes):
        tensors.append(helper.make_tensor(f"axes{index}", onnx.TensorProto.INT64, [len(held)], held))
        nodes.append(helper.make_node("ReduceMean", [value, f"axes{index}"], [f"y{index}"]))
        value = f"y{index}"
    shape = ["A", "B", "C"]
    graph = helper.make_graph(
        nodes,
        "reductions",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_constants_that_were_looked_at_are_compared() -> None:
    made = splitgraph.downgrade(reductions([[2], [2], [1], [2]]), 13).model
    assert [list(node.attribute[0].ints) for node in made.graph.node] == [[2], [2], [1], [2]]
    assert not made.graph.initializer


def test_bounds_that_were_looked_at_are_compared() -> None:
    """Numbers that are no integers, which are read in another way."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[3] x) => (float[3] y0, float[3] y1, float[3] y2) <float a = {1.0}, float b = {2.0}, float c = {1.0}> {
        y0 = Clip(x, a)  y1 = Clip(x, b)  y2 = Clip(x, c)
    }"""
    made = splitgraph.downgrade(onnx.parser.parse_model(text), 9).model
    assert [held.f for node in made.graph.node for held in node.attribute if held.name == "min"] == [1, 2, 1]


def test_nodes_that_are_alike_have_their_constants_in_common() -> None:
    below = splitgraph.downgrade(reductions([[2], [2], [2], [2], [1], [1]]), 13).model
    made = splitgraph.upgrade(below, 18).model
    names = [node.input[1] for node in made.graph.node]
    # What reads the model's input is not like what reads a mean, which has a dimension of 1.
    assert [names.index(name) for name in names] == [0, 1, 1, 1, 4, 5]
    held = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in made.graph.initializer}
    assert [held[name] for name in names] == [[2], [2], [2], [2], [1], [1]]
    assert sorted(held) == sorted(set(names))
    again = splitgraph.downgrade(made, 13).model
    assert not again.graph.initializer
    assert [list(node.attribute[0].ints) for node in again.graph.node] == [[2], [2], [2], [2], [1], [1]]


def test_a_node_whose_output_is_read_is_not_like_one_whose_output_is_not() -> None:
    text = """<ir_version: 8, opset_import: ["" : 8]>
    g (float[1, 1, 8, 8] x) => (float[1, 1, 8, 8] z, int64[1, 1, 8, 8] m) {
        y, m = MaxPool <kernel_shape: ints = [1, 1]> (x)
        z, n = MaxPool <kernel_shape: ints = [1, 1]> (y)
    }"""
    with pytest.raises(splitgraph.ConversionError, match="Indices does not exist below it"):
        splitgraph.downgrade(onnx.parser.parse_model(text), 7)


def test_constants_within_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [helper.make_node("BitwiseOr", ["a", "b"], [name]) for name in ("c", "d")]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "twice", ["a", "b"], ["c", "d"], nodes, imports[:1])
    call = helper.make_node("twice", ["x", "y"], ["z", "w"], domain="own")
    inputs, outputs = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT32, [3]) for name in names] for names in ("xy", "zw")
    )
    graph = helper.make_graph([call], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)
    with_memory = converted(model, 13)
    monkeypatch.setattr(Repeats, "key_of", lambda self, node, visit: None)
    assert isinstance(with_memory, bytes)
    assert with_memory == converted(model, 13)
