"""Models made for measuring: a decoder like GPT-2 and a convolutional network like ShuffleNet, both with dynamic sizes;
chains of splits, nested halvings, nested Ifs.
"""

from __future__ import annotations

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import TensorProto, helper, numpy_helper


def _model(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: str, initializers: list[onnx.TensorProto]
) -> onnx.ModelProto:
    return make_model(nodes, inputs, declare({output: None}), initializers)


class _Decoder(ExportedGraph):
    """What is a decoder's own."""

    def gelu(self, value: str) -> str:
        """The tangent form of Gelu, spelt out."""
        cubed = self.node("Mul", [value, self.node("Mul", [value, value])])
        sloped = self.node("Mul", [self.constant(0.044715, np.float32), cubed])
        bent = self.node("Mul", [self.constant(0.7978846, np.float32), self.node("Add", [value, sloped])])
        risen = self.node("Add", [self.constant(1.0, np.float32), self.node("Tanh", [bent])])
        return self.node("Mul", [self.constant(0.5, np.float32), self.node("Mul", [value, risen])])

    def attention(self, value: str, layer: int, width: int, heads: int) -> str:
        fused = self.node("Add", ["wide_bias", self.node("MatMul", [value, "wide"])])
        parts = [f"q_{layer}", f"k_{layer}", f"v_{layer}"]
        self.split(fused, [width] * 3, 2, parts)
        q, k, v = (
            self.node("Transpose", [self.view(part, part, heads, width // heads)], perm=[0, 2, 1, 3]) for part in parts
        )
        keys = self.node("Concat", [f"past_key_{layer}", k], f"present_key_{layer}", axis=2)
        values = self.node("Concat", [f"past_value_{layer}", v], f"present_value_{layer}", axis=2)
        turned = self.node("Transpose", [keys], perm=[0, 1, 3, 2])
        scores = self.node("Div", [self.node("MatMul", [q, turned]), self.constant(4.0, np.float32)])
        first, last = self.one(self.scalar_size(f"past_key_{layer}", 2)), self.scalar_size(keys, 2)
        causal = self.constant(np.tri(POSITIONS, dtype=bool)[None, None], np.bool_)
        rows = self.slice(causal, first, self.one(last), 2)
        columns = self.slice(rows, self.constant([0]), self.one(last), 3)
        shown = self.node("Where", [columns, scores, self.constant(-1e4, np.float32)])
        weights = self.node("Softmax", [self.node("Add", [shown, "mask"])], axis=-1)
        mixed = self.node("Transpose", [self.node("MatMul", [weights, values])], perm=[0, 2, 1, 3])
        return self.node("MatMul", [self.view(mixed, value, width), "narrow"])


# Of the causal mask.
POSITIONS = 32


def decoder(layers: int, width: int = 64, heads: int = 4) -> onnx.ModelProto:
    """GPT-2 as it is exported, with past keys and values: dynamic batch, sequence and past, 140 nodes a layer."""
    graph = _Decoder()
    x = "x"
    inputs = {"x": ["batch", "seq", width], "mask": ["batch", 1, 1, "past + seq"]}
    for i in range(layers):
        for kind in ("key", "value"):
            inputs[f"past_{kind}_{i}"] = ["batch", heads, "past", width // heads]
        mixed = graph.attention(graph.normal(x), i, width, heads)
        x = graph.node("Add", [x, graph.node("Add", ["bias", mixed])])
        risen = graph.gelu(graph.node("Add", ["tall_bias", graph.node("MatMul", [graph.normal(x), "tall"])]))
        x = graph.node("Add", [x, graph.node("MatMul", [risen, "flat"])])
    weights = {
        "scale": (width,),
        "bias": (width,),
        "wide": (width, 3 * width),
        "wide_bias": (3 * width,),
        "narrow": (width, width),
        "tall": (width, 4 * width),
        "tall_bias": (4 * width,),
        "flat": (4 * width, width),
    }
    initializers = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in weights.items()]
    return _model(graph.nodes, declare(inputs), x, initializers)


class _Convolutions(ExportedGraph):
    """Convolutions as exported, with the normalization behind each in its weights."""

    def convolved(self, value: str, given: int, made: int, size: int, *, stride: int = 1, group: int = 1) -> str:
        names = [f"{kind}_{len(self.weights)}" for kind in ("weight", "bias")]
        for name, shape in zip(names, ((made, given // group, size, size), (made,)), strict=True):
            self.weight(name, np.zeros(shape, np.float32))
        sizes = {"kernel_shape": [size] * 2, "strides": [stride] * 2, "pads": [size // 2] * 4, "dilations": [1, 1]}
        return self.node("Conv", [value, *names], group=group, **sizes)

    def branch(self, value: str, given: int, made: int, stride: int) -> str:
        """Narrow, deep, narrow again."""
        value = self.node("Relu", [self.convolved(value, given, made, 1)])
        value = self.convolved(value, made, made, 3, stride=stride, group=made)
        return self.node("Relu", [self.convolved(value, made, made, 1)])

    def shuffled(self, one: str, other: str, channels: int) -> str:
        """The channels of both by turns."""
        value = self.node("Concat", [one, other], axis=1)
        batch, *rest = (self.size(value, axis) for axis in (0, 2, 3))
        apart = [batch, self.constant([2]), self.constant([channels // 2]), *rest]
        value = self.node("Reshape", [value, self.node("Concat", apart, axis=0)])
        value = self.node("Transpose", [value], perm=[0, 2, 1, 3, 4])
        together = [batch, self.constant([channels]), *rest]
        return self.node("Reshape", [value, self.node("Concat", together, axis=0)])


def convolutional() -> onnx.ModelProto:
    """ShuffleNet V2 as it is exported: dynamic batch, height and width, 9 MB of weights, and a split in 13 of its 16
    units, which have other shapes in each of three stages.
    """
    graph = _Convolutions()
    value = graph.node("Relu", [graph.convolved("x", 3, 24, 3, stride=2)])
    value = graph.node("MaxPool", [value], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    given = 24
    for made, units in ((116, 4), (232, 8), (464, 4)):
        shortcut = graph.convolved(value, given, given, 3, stride=2, group=given)
        shortcut = graph.node("Relu", [graph.convolved(shortcut, given, made // 2, 1)])
        value = graph.shuffled(shortcut, graph.branch(value, given, made // 2, 2), made)
        for _ in range(units - 1):
            parts = [f"kept_{len(graph.nodes)}", f"worked_{len(graph.nodes)}"]
            graph.node("Split", [value, graph.constant([made // 2] * 2)], *parts, axis=1)
            value = graph.shuffled(parts[0], graph.branch(parts[1], made // 2, made // 2, 1), made)
        given = made
    value = graph.node("Relu", [graph.convolved(value, given, 1024, 1)])
    value = graph.mean(value, 2, 3, keepdims=0)
    graph.weight("classes", np.zeros((1000, 1024), np.float32))
    result = graph.node("Gemm", [value, "classes"], transB=1)
    x = declare({"x": ["batch", 3, "height", "width"]})
    return _model(graph.nodes, x, result, graph.weights)


def splits(nodes: int) -> onnx.ModelProto:
    """A chain of Split, Concat and Relu on a symbolic dimension: a third of the nodes are splits."""
    made, value = [], "x"
    for i in range(nodes // 3):
        made.append(helper.make_node("Split", [value], [f"a{i}", f"b{i}"], name=f"Split_{i}", axis=1, num_outputs=2))
        made.append(helper.make_node("Concat", [f"b{i}", f"a{i}"], [f"c{i}"], name=f"Concat_{i}", axis=1))
        made.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"Relu_{i}"))
        value = f"r{i}"
    return _model(made, declare({"x": ["batch", "seq", 8]}), value, [])


def halvings(depth: int) -> onnx.ModelProto:
    """Each part of a split is split again, `depth` times: nested symbolic expressions."""
    made, value = [], "x"
    for i in range(depth):
        made.append(helper.make_node("Split", [value], [f"a{i}", f"b{i}"], name=f"Split_{i}", axis=0, num_outputs=2))
        value = f"a{i}"
    return _model(made, declare({"x": ["N", 8]}), value, [])


def nested(depth: int) -> onnx.ModelProto:
    """An If within an If, and so on, with a split in the innermost branches."""
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["a", "out"], name="Split", axis=1, num_outputs=2)],
        "innermost",
        [],
        declare({"out": None}),
    )
    for level in range(depth):
        other = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["other"])],
            "other",
            [],
            declare({"other": None}),
        )
        chosen = helper.make_node("If", ["c"], [f"out_{level}"], name="If", then_branch=graph, else_branch=other)
        graph = helper.make_graph([chosen], f"level {level}", [], declare({f"out_{level}": None}))
    inputs = [*declare({"x": ["N", "M"]}), *declare({"c": []}, TensorProto.BOOL)]
    return _model(list(graph.node), inputs, f"out_{depth - 1}", [])
