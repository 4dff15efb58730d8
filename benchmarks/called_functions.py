"""A chain of equal blocks of 8 nodes, as local functions and inlined: what calls cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import helper

WIDTH = 8
_DOMAIN = "blocks"
_OPSET = 13
# In the model with nested functions, each function that is no block calls so many.
_FEW = 10


def _block(graph: ExportedGraph, value: str) -> str:
    """A gate and a linear layer, in 8 nodes. Split and ReduceMean change at opset 18."""
    index = len(graph.nodes)
    gate, passed = f"gate_{index}", f"passed_{index}"
    graph.node("Split", [value], gate, passed, axis=2)
    gated = graph.node("Mul", [graph.node("Sigmoid", [gate]), passed])
    joined = graph.node("Concat", [gated, passed], axis=2)
    linear = graph.node("Add", [graph.node("MatMul", [joined, "weight"]), "bias"])
    return graph.node("Sub", [linear, graph.mean(linear, 2)])


def inlined(blocks: int) -> onnx.ModelProto:
    """Every block in the main graph."""
    graph, value = ExportedGraph(_OPSET), "x"
    for _ in range(blocks):
        value = _block(graph, value)
    return _model(graph, value, [])


def called_once(blocks: int) -> onnx.ModelProto:
    """A function for each block, called once."""
    graph, functions = ExportedGraph(_OPSET), [_block_function(f"Block{index}") for index in range(blocks)]
    return _model(graph, _calls(graph, [function.name for function in functions]), functions)


def called_often(blocks: int) -> onnx.ModelProto:
    """One function, called for each block."""
    graph = ExportedGraph(_OPSET)
    return _model(graph, _calls(graph, ["Block"] * blocks), [_block_function("Block")])


def nested(blocks: int) -> onnx.ModelProto:
    """A function for each block, called once, in three levels: stages call layers, and layers call blocks."""
    functions = [_block_function(f"Block{index}") for index in range(blocks)]
    names = [function.name for function in functions]
    for level in ("Layer", "Stage"):
        groups = [names[start : start + _FEW] for start in range(0, len(names), _FEW)]
        names = [f"{level}{index}" for index in range(len(groups))]
        for name, group in zip(names, groups, strict=True):
            body = ExportedGraph(_OPSET)
            functions.append(_function(name, body, _calls(body, group)))
    graph = ExportedGraph(_OPSET)
    return _model(graph, _calls(graph, names), functions)


def _calls(graph: ExportedGraph, names: Sequence[str]) -> str:
    value = "x"
    for name in names:
        value = graph.node(name, [value, "weight", "bias"], domain=_DOMAIN)
    return value


def _block_function(name: str) -> onnx.FunctionProto:
    body = ExportedGraph(_OPSET)
    return _function(name, body, _block(body, "x"))


def _function(name: str, body: ExportedGraph, output: str) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_DOMAIN, 1)]
    return helper.make_function(_DOMAIN, name, ["x", "weight", "bias"], [output], body.nodes, imports)


def _model(graph: ExportedGraph, output: str, functions: Sequence[onnx.FunctionProto]) -> onnx.ModelProto:
    graph.weight("weight", np.eye(WIDTH, dtype=np.float32))
    graph.weight("bias", np.zeros(WIDTH, dtype=np.float32))
    shape = ["B", "T", WIDTH]
    given, made = declare({"x": shape}), declare({output: shape})
    return make_model(graph.nodes, given, made, graph.weights, _OPSET, functions)


# A model of so many blocks, by name. The first has no functions.
MODELS = {
    "inlined": inlined,
    "functions called once": called_once,
    "one function": called_often,
    "three levels": nested,
}
