"""Graphs as the TorchScript exporter writes them, at the opset that is asked for, and models made of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
# The IR version that came with an opset: runtimes of that time read no newer one.
_IR_VERSIONS = {11: 6, 13: 7, 18: 8}


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = OPSET,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "benchmark", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in sorted({function.domain for function in functions})]
    return helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSIONS[opset], functions=functions)


def declare(
    shapes: Mapping[str, Sequence[int | str | None] | None], dtype: int = TensorProto.FLOAT
) -> list[onnx.ValueInfoProto]:
    """Declarations of one element type, by name. None: a shape or a dimension that is left open."""
    return [helper.make_tensor_value_info(name, dtype, shape) for name, shape in shapes.items()]


class ExportedGraph:
    """Nodes as the exporter writes them: each constant a node of its own, each size asked for anew."""

    def __init__(self, opset: int = OPSET) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op_type: str, inputs: list[str], *outputs: str, **attributes: object) -> str:
        made = outputs or (f"{op_type}_{len(self.nodes)}_output_0",)
        self.nodes.append(helper.make_node(op_type, inputs, made, name=f"{op_type}_{len(self.nodes)}", **attributes))
        return made[0]

    def constant(self, values: object, dtype: type = np.int64) -> str:
        return self.node("Constant", [], value=numpy_helper.from_array(np.asarray(values, dtype=dtype)))

    def weight(self, name: str, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def size(self, value: str, axis: int) -> str:
        """One dimension as a tensor of one element."""
        return self.one(self.scalar_size(value, axis))

    def scalar_size(self, value: str, axis: int) -> str:
        return self.node("Gather", [self.node("Shape", [value]), self.constant(axis)], axis=0)

    def one(self, scalar: str) -> str:
        return self.unsqueeze(scalar, 0)

    def unsqueeze(self, value: str, axis: int) -> str:
        return self._with_axes("Unsqueeze", value, axis, since=13)

    def squeeze(self, value: str, axis: int) -> str:
        return self._with_axes("Squeeze", value, axis, since=13)

    def mean(self, value: str, *axes: int, **attributes: int) -> str:
        return self._with_axes("ReduceMean", value, *axes, since=18, **attributes)

    def _with_axes(self, op_type: str, value: str, *axes: int, since: int, **attributes: int) -> str:
        """An operator whose axes are an input since some opset, and an attribute before."""
        if self.opset < since:
            return self.node(op_type, [value], axes=list(axes), **attributes)
        return self.node(op_type, [value, self.constant(list(axes))], **attributes)

    def split(self, value: str, lengths: list[int], axis: int, names: list[str]) -> None:
        if self.opset < 13:
            self.node("Split", [value], *names, axis=axis, split=lengths)
        else:
            self.node("Split", [value, self.constant(lengths)], *names, axis=axis)

    def slice(self, value: str, start: str, end: str, axis: int) -> str:
        """From one tensor of one element to another."""
        return self.node("Slice", [value, start, end, self.constant([axis]), self.constant([1])])

    def view(self, value: str, like: str, *sizes: int) -> str:
        """Reshaped to the first two dimensions of another value and static sizes."""
        parts = [self.size(like, 0), self.size(like, 1), *(self.constant([size]) for size in sizes)]
        return self.node("Reshape", [value, self.node("Concat", parts, axis=0)])

    def normal(self, value: str, scale: str = "scale", bias: str = "bias") -> str:
        """Layer normalization, spelt out."""
        centred = self.node("Sub", [value, self.mean(value, -1)])
        squared = self.node("Pow", [centred, self.constant(2.0, np.float32)])
        variance = self.mean(squared, -1)
        deviation = self.node("Sqrt", [self.node("Add", [variance, self.constant(1e-5, np.float32)])])
        scaled = self.node("Mul", [self.node("Div", [centred, deviation]), scale])
        return self.node("Add", [scaled, bias])
