"""Families of models that grow with a number, for `growth.py`: each grows in one way.

Those of `tests/growing_models.py` make large expressions of dimensions, or many splits; those of `called_functions.py`
are made of functions. The ones below have much of one thing that a file can hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from called_functions import called_often, called_once
from exported_graph import ExportedGraph, declare, make_model
from onnx import helper
from unrolled import unrolled

from models import decoder

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from growing_models import FAMILIES as EXPRESSIONS
from growing_models import REWRITTEN


class Family(NamedTuple):
    """make: the model of n. size: the smaller n, which takes about as long as the start of a process."""

    make: Callable[[int], onnx.ModelProto]
    size: int


def _graph(graph: ExportedGraph, output: str) -> onnx.ModelProto:
    return make_model(graph.nodes, declare({"x": ["N", 4]}), declare({output: None}), graph.weights)


def chain(n: int) -> onnx.ModelProto:
    """n nodes, one after the other."""
    graph, value = ExportedGraph(), "x"
    for place in range(n):
        value = graph.node(("Relu", "Neg", "Abs")[place % 3], [value])
    return _graph(graph, value)


def wide(n: int) -> onnx.ModelProto:
    """n nodes that read one value, and one that reads them all."""
    graph = ExportedGraph()
    return _graph(graph, graph.node("Concat", [graph.node("Relu", ["x"]) for _ in range(n)], axis=0))


def graph_outputs(n: int) -> onnx.ModelProto:
    """n inputs and n outputs."""
    graph = ExportedGraph()
    made = [graph.node("Softmax", [f"x{place}"], axis=-1) for place in range(n)]
    inputs = declare({f"x{place}": ["N", 4] for place in range(n)})
    return make_model(graph.nodes, inputs, declare(dict.fromkeys(made)), graph.weights)


def initializers(n: int) -> onnx.ModelProto:
    """n initializers, each read once."""
    graph, value = ExportedGraph(), "x"
    for place in range(n):
        value = graph.node("Add", [value, graph.weight(f"w{place}", np.full(4, place, np.float32))])
    return _graph(graph, value)


def large_attributes(n: int) -> onnx.ModelProto:
    """n constants of 16,384 numbers, in attributes."""
    graph, value = ExportedGraph(), "x"
    for place in range(n):
        table = graph.constant(np.arange(4096 * 4).reshape(-1, 4) + place, np.float32)
        value = graph.node("Add", [value, graph.node("Gather", [table, graph.constant(0)])])
    return _graph(graph, value)


def value_infos(n: int) -> onnx.ModelProto:
    """n values with declared types."""
    model = chain(n)
    model.graph.value_info.extend(declare({node.output[0]: ["N", 4] for node in model.graph.node[:-1]}))
    return model


def branches(n: int) -> onnx.ModelProto:
    """n Ifs, one after the other, with a node in each branch."""
    nodes, value = list[onnx.NodeProto](), "x"
    for place in range(n):
        graphs: dict[str, Any] = {
            f"{name}_branch": helper.make_graph(
                [helper.make_node(op_type, [value], [f"{name}{place}"])], name, [], declare({f"{name}{place}": None})
            )
            for name, op_type in (("then", "Relu"), ("else", "Neg"))
        }
        nodes.append(helper.make_node("If", ["c"], [f"y{place}"], **graphs))
        value = f"y{place}"
    inputs = [*declare({"x": ["N", 4]}), *declare({"c": []}, onnx.TensorProto.BOOL)]
    return make_model(nodes, inputs, declare({value: None}))


def local_functions(n: int) -> onnx.ModelProto:
    """n functions, each called once."""
    return called_once(n)


def shapes(n: int) -> onnx.ModelProto:
    """n times a Reshape to computed sizes, as exporters write a view."""
    graph, value = ExportedGraph(), "x"
    for _ in range(n):
        value = graph.node("Softmax", [graph.view(graph.unsqueeze(value, 2), value, 4)], axis=-1)
        value = graph.node("Reshape", [value, graph.constant([0, 4])])
    return _graph(graph, value)


def normalizations(n: int) -> onnx.ModelProto:
    """n layer normalizations that are spelt out: operators of which versions take axes in other ways."""
    graph, value = ExportedGraph(), "x"
    for place in range(n):
        names = [graph.weight(f"{kind}{place}", np.ones(4, np.float32)) for kind in ("scale", "bias")]
        value = graph.normal(value, *names)
    return _graph(graph, value)


def named_alike(n: int) -> onnx.ModelProto:
    """n equal constants in nodes without names, each read once."""
    graph, value = ExportedGraph(), "x"
    for _ in range(n):
        value = graph.node("Mul", [value, graph.constant([2], np.float32)])
    for node in graph.nodes:
        node.ClearField("name")
    return _graph(graph, value)


def _of(name: str, size: int) -> Family:
    """Return a family of others. size: one at which dimensions are as large as they get (320 names)."""
    family = (EXPRESSIONS | REWRITTEN)[name]
    return Family(family.make, size)


GROWING: Mapping[str, Family] = {
    "chain": Family(chain, 10000),
    "wide": Family(wide, 4000),
    "inputs and outputs": Family(graph_outputs, 1000),
    "initializers": Family(initializers, 1500),
    "large attributes": Family(large_attributes, 200),
    "declared types": Family(value_infos, 5000),
    "branches": Family(branches, 400),
    "functions, each called once": Family(local_functions, 300),
    "one function, called often": Family(called_often, 1000),
    "views": Family(shapes, 200),
    "normalizations": Family(normalizations, 200),
    "equal constants": Family(named_alike, 1000),
    "a decoder": Family(decoder, 8),
    "no node like another": Family(unrolled, 1000),
    "out of order": _of("out of order", 1000),
    "unknown operators": _of("unknown operators", 500),
    "wide Concat": _of("wide Concat", 500),
    "chained Concats": _of("chained Concats", 1000),
    "sum of quotients": _of("sum of quotients", 320),
    "explicit lengths": _of("explicit lengths", 2000),
    "many outputs": _of("many outputs", 1000),
    "symbolic lengths": _of("symbolic lengths", 400),
    "chunks": _of("chunks", 40),
    "layers with a Split": _of("layers with a Split", 200),
    "sequences": _of("sequences", 100),
    "calls": _of("calls", 150),
}
