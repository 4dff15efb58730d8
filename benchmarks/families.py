"""Small files that make large expressions, at any size: what each costs may grow no faster than n log n."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import helper


class Family(NamedTuple):
    """How a model of size n is made, the smaller of the two sizes that are measured (the other is four times as large),
    and what is done with the model.
    """

    make: Callable[[int], onnx.ModelProto]
    size: int
    verb: str = "splitgraph.infer(source)"


def _computed(graph: ExportedGraph, length: str, inputs: Iterable[str]) -> onnx.ModelProto:
    """A model that gives a tensor of a computed length."""
    made = graph.node("ConstantOfShape", [length])
    shapes = {name: [name] for name in inputs}
    return make_model(graph.nodes, declare(shapes), declare({made: [None]}), graph.weights)


def squares(count: int) -> onnx.ModelProto:
    """N squared, and squared again."""
    graph = ExportedGraph()
    length = graph.node("Shape", ["N"])
    for _ in range(count):
        length = graph.node("Mul", [length, length])
    return _computed(graph, length, ["N"])


def product_of_sums(count: int) -> onnx.ModelProto:
    """(d0 + N)*(d1 + N)*..."""
    graph, names = ExportedGraph(), [f"d{index}" for index in range(count)]
    whole = graph.node("Shape", ["N"])
    sums = [graph.node("Add", [graph.node("Shape", [name]), whole]) for name in names]
    length = reduce(lambda one, other: graph.node("Mul", [one, other]), sums)
    return _computed(graph, length, ["N", *names])


def joined(count: int) -> onnx.ModelProto:
    """A Concat of values each of which has a symbol of its own."""
    shapes = {f"d{index}": [f"d{index}"] for index in range(count)}
    node = helper.make_node("Concat", list(shapes), ["made"], axis=0)
    return make_model([node], declare(shapes), declare({"made": [None]}))


def quotients(count: int) -> onnx.ModelProto:
    """s//2 + s//3 + ..."""
    graph = ExportedGraph()
    whole = graph.node("Shape", ["s"])
    parts = [graph.node("Div", [whole, graph.constant([divisor])]) for divisor in range(2, count + 1)]
    length = reduce(lambda one, other: graph.node("Add", [one, other]), parts)
    return _computed(graph, length, ["s"])


def explicit_lengths(count: int) -> onnx.ModelProto:
    """A Split with each length written out."""
    graph, names = ExportedGraph(), [f"part_{index}" for index in range(count)]
    graph.node("Split", ["x", graph.weight("lengths", np.arange(count) % 7 + 1)], *names, axis=0)
    return make_model(graph.nodes, declare({"x": ["N"]}), declare({names[-1]: [None]}), graph.weights)


def called_twice(depth: int) -> onnx.ModelProto:
    """Functions that call the next one twice."""
    functions = []
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    for level in range(depth):
        called = {"op_type": f"f{level + 1}", "domain": "local"} if level + 1 < depth else {"op_type": "Relu"}
        nodes = [helper.make_node(inputs=["x"], outputs=["y"], **called)]
        nodes.append(helper.make_node(inputs=["y"], outputs=["z"], **called))
        functions.append(helper.make_function("local", f"f{level}", ["x"], ["z"], nodes, imports))
    node = helper.make_node("f0", ["x"], ["made"], domain="local")
    return make_model([node], declare({"x": ["N"]}), declare({"made": [None]}), functions=functions)


def equal_parts(count: int) -> onnx.ModelProto:
    """A Split into as many parts as it has outputs."""
    names = [f"part_{index}" for index in range(count)]
    node = helper.make_node("Split", ["x"], names, num_outputs=count)
    return make_model([node], declare({"x": ["N"]}), declare({names[-1]: [None]}))


def chained_chunks(count: int) -> onnx.ModelProto:
    """A Split of the first half of a Split."""
    nodes, source = [], "x"
    for index in range(count):
        nodes.append(helper.make_node("Split", [source], [f"first_{index}", f"second_{index}"], num_outputs=2))
        source = f"first_{index}"
    return make_model(nodes, declare({"x": ["N"]}), declare({source: [None]}))


def chained_lengths(count: int) -> onnx.ModelProto:
    """A Split of the first part of a Split, each with lengths that are known when the model runs."""
    nodes, inputs, source = [], declare({"x": ["N"]}), "x"
    for index in range(count):
        inputs.append(helper.make_tensor_value_info(f"lengths_{index}", onnx.TensorProto.INT64, [2]))
        parts = [f"first_{index}", f"second_{index}"]
        nodes.append(helper.make_node("Split", [source, f"lengths_{index}"], parts, axis=0))
        source = parts[0]
    return make_model(nodes, inputs, declare({source: [None]}))


def layers(count: int) -> onnx.ModelProto:
    """A Split, a Softmax of one part, and a Concat, again and again."""
    nodes, source = [], "x"
    for index in range(count):
        one, other = f"one_{index}", f"other_{index}"
        nodes.append(helper.make_node("Split", [source], [one, other], num_outputs=2, axis=1))
        nodes.append(helper.make_node("Softmax", [one], [f"soft_{index}"], axis=0))
        source = f"joined_{index}"
        nodes.append(helper.make_node("Concat", [f"soft_{index}", other], [source], axis=1))
    return make_model(nodes, declare({"x": [2, 8]}), declare({source: [2, 8]}))


# What rewrites or judges the splits of layers, by the name that is shown.
_VERBS = {
    "upgraded to 24": "splitgraph.upgrade(source, 24)",
    "downgraded to 12": "splitgraph.downgrade(source, 12)",
    "as Split with lengths": "splitgraph.convert(source, to='split', explicit_lengths=True)",
    "as slices": "splitgraph.convert(source, to='slice')",
    "as VariadicSplit": "splitgraph.convert(source, to='variadic-split')",
    "for opencv": "splitgraph.convert(source, target='opencv')",
    "checked": "splitgraph.check(source, target=['ncnn', 'coreml'])",
}

FAMILIES = {
    "squares": Family(squares, 8),
    "product of sums": Family(product_of_sums, 4),
    "Concat of symbols": Family(joined, 1000),
    "sum of quotients": Family(quotients, 100),
    "explicit lengths": Family(explicit_lengths, 25_000),
    "functions called twice": Family(called_twice, 4),
    "chained Splits": Family(chained_chunks, 400),
    "chained Splits with lengths": Family(chained_lengths, 100),
    "functions called twice, written out": Family(called_twice, 12, _VERBS["as Split with lengths"]),
    **{f"layers with a Split, {name}": Family(layers, 500, verb) for name, verb in _VERBS.items()},
    "outputs of a Split, downgraded to 11": Family(equal_parts, 2500, "splitgraph.downgrade(source, 11)"),
}
