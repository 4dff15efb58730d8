"""Models whose upgrade is verified: a detector of convolutions, a vision transformer, a decoder, and a small network.

Weights are random numbers of a usual size: zeros would make every region show nothing.
"""

from __future__ import annotations

import numpy as np
import onnx
from exported_graph import ExportedGraph, declare, make_model
from onnx import TensorProto


class _Network(ExportedGraph):
    """Nodes with weights of their own, as a trained network has them."""

    def __init__(self, opset: int) -> None:
        super().__init__(opset)
        self._rng = np.random.default_rng(0)

    def drawn(self, *shape: int, fan: int = 0, around: float = 0.0) -> str:
        """A weight of normal numbers. fan: how many products are added up; 0 for a bias."""
        deviation = (2 / fan) ** 0.5 if fan else 0.02
        numbers = self._rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation) + np.float32(around)
        return self.weight(f"weight_{len(self.weights)}", numbers)

    def dense(self, value: str, given: int, made: int) -> str:
        product = self.node("MatMul", [value, self.drawn(given, made, fan=2 * given)])
        return self.node("Add", [product, self.drawn(made)])

    def normalized(self, value: str, width: int) -> str:
        return self.normal(value, self.drawn(width, around=1.0), self.drawn(width))

    def part(self, value: str, start: int, end: int, axis: int) -> str:
        return self.slice(value, self.constant([start]), self.constant([end]), axis)

    def reshaped(self, value: str, *sizes: int) -> str:
        return self.node("Reshape", [value, self.constant(sizes)])

    def convolved(self, value: str, given: int, made: int, size: int, stride: int = 1) -> str:
        weights = [self.drawn(made, given, size, size, fan=given * size * size), self.drawn(made)]
        pads = [size // 2] * 4
        return self.node("Conv", [value, *weights], kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads)

    def gelu(self, value: str) -> str:
        """The exact form of Gelu, as exporters before opset 20 wrote it."""
        scaled = self.node("Div", [value, self.constant(2**0.5, np.float32)])
        risen = self.node("Add", [self.node("Erf", [scaled]), self.constant(1.0, np.float32)])
        return self.node("Mul", [self.node("Mul", [value, risen]), self.constant(0.5, np.float32)])

    def attention(self, value: str, shape: tuple[int, int], width: int, heads: int, bias: str = "") -> str:
        """Self-attention over (windows, positions, width). shape: (-1, positions), or zeros for dynamic ones."""
        queries, keys, values = (
            self.node("Transpose", [self.reshaped(each, *shape, heads, width // heads)], perm=[0, 2, 1, 3])
            for each in self._three(self.dense(value, width, 3 * width), width)
        )
        scaled = self.node("Mul", [queries, self.constant((width // heads) ** -0.5, np.float32)])
        scores = self.node("MatMul", [scaled, self.node("Transpose", [keys], perm=[0, 1, 3, 2])])
        scores = self.node("Add", [scores, bias]) if bias else scores
        mixed = self.node("MatMul", [self.node("Softmax", [scores], axis=3), values])
        mixed = self.reshaped(self.node("Transpose", [mixed], perm=[0, 2, 1, 3]), *shape, width)
        return self.dense(mixed, width, width)

    def _three(self, value: str, width: int) -> list[str]:
        parts = [f"{value}_{kind}" for kind in ("q", "k", "v")]
        self.split(value, [width] * 3, 2, parts)
        return parts

    def perceptron(self, value: str, width: int) -> str:
        return self.dense(self.gelu(self.dense(value, width, 4 * width)), 4 * width, width)


def detector() -> onnx.ModelProto:
    """A detector like SSD300 at opset 11: 29 MB of convolutions, six maps of boxes, and the choice among these."""
    graph, value, given, maps = _Network(11), "x", 3, []
    for made, count in ((32, 2), (64, 2), (128, 3), (256, 3), (256, 3)):
        for _ in range(count):
            value, given = graph.node("Relu", [graph.convolved(value, given, made, 3)]), made
        maps += [(value, made)] if count == 3 and made == 256 else []
        value = graph.node("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
    for made in (384, 256, 256, 256):
        narrow = graph.node("Relu", [graph.convolved(value, given, 128, 1)])
        value, given = graph.node("Relu", [graph.convolved(narrow, 128, made, 3, 2)]), made
        maps.append((value, made))
    boxes, scores = ([_boxes(graph, *each, 6 * size, size) for each in maps] for size in (4, 21))
    corners = _corners(graph, graph.node("Concat", boxes, axis=1))
    likely = graph.node("Softmax", [graph.node("Concat", scores, axis=1)], axis=2)
    likely = graph.part(graph.node("Transpose", [likely], perm=[0, 2, 1]), 1, 21, 1)
    limits = [graph.constant([20]), graph.constant([0.5], np.float32), graph.constant([0.1], np.float32)]
    graph.node("NonMaxSuppression", [corners, likely, *limits], "chosen")
    outputs = [*declare({corners: None, likely: None}), *declare({"chosen": None}, TensorProto.INT64)]
    return make_model(graph.nodes, declare({"x": [1, 3, 300, 300]}), outputs, graph.weights, 11)


def _boxes(graph: _Network, value: str, given: int, made: int, size: int) -> str:
    """What one map says of its boxes, as a row of `size` numbers for each."""
    seen = graph.node("Transpose", [graph.convolved(value, given, made, 3)], perm=[0, 2, 3, 1])
    return graph.reshaped(seen, 1, -1, size)


def _corners(graph: _Network, boxes: str) -> str:
    centre = graph.node("Mul", [graph.part(boxes, 0, 2, 2), graph.constant(0.1, np.float32)])
    risen = graph.node("Exp", [graph.node("Mul", [graph.part(boxes, 2, 4, 2), graph.constant(0.2, np.float32)])])
    half = graph.node("Div", [risen, graph.constant(2.0, np.float32)])
    return graph.node("Concat", [graph.node(kind, [centre, half]) for kind in ("Sub", "Add")], axis=2)


def transformer() -> onnx.ModelProto:
    """A vision transformer like Swin-T at opset 11: 113 MB, windows of 7 by 7 that shift in every other block."""
    graph, width, side = _Network(11), 96, 56
    weights = [graph.drawn(width, 3, 4, 4, fan=48), graph.drawn(width)]
    value = graph.node("Conv", ["x", *weights], kernel_shape=[4, 4], strides=[4, 4])
    value = graph.node("Transpose", [graph.reshaped(value, 1, width, side * side)], perm=[0, 2, 1])
    value = graph.normalized(value, width)
    for stage, blocks in enumerate((2, 2, 6, 2)):
        if stage:
            value, width, side = _merged(graph, value, width, side), 2 * width, side // 2
        for block in range(blocks):
            shift = 3 if block % 2 and side > 7 else 0
            seen = _windows(graph, graph.normalized(value, width), width, side, shift)
            value = graph.node("Add", [value, seen])
            value = graph.node("Add", [value, graph.perceptron(graph.normalized(value, width), width)])
    mean = graph.mean(graph.normalized(value, width), 1, keepdims=0)
    result = graph.dense(mean, width, 1000)
    return make_model(graph.nodes, declare({"x": [1, 3, 224, 224]}), declare({result: None}), graph.weights, 11)


def _windows(graph: _Network, value: str, width: int, side: int, shift: int) -> str:
    count, heads = side // 7, width // 32
    value = graph.reshaped(value, 1, side, side, width)
    value = _rolled(graph, value, shift, side) if shift else value
    value = graph.reshaped(value, count, 7, count, 7, width)
    value = graph.reshaped(graph.node("Transpose", [value], perm=[0, 2, 1, 3, 4]), -1, 49, width)
    bias = graph.node("Gather", [graph.drawn(169, heads), graph.constant(np.arange(2401) % 169)], axis=0)
    bias = graph.node("Transpose", [graph.reshaped(bias, 49, 49, heads)], perm=[2, 0, 1])
    value = graph.attention(value, (-1, 49), width, heads, graph.unsqueeze(bias, 0))
    value = graph.reshaped(value, count, count, 7, 7, width)
    value = graph.reshaped(graph.node("Transpose", [value], perm=[0, 2, 1, 3, 4]), 1, side, side, width)
    value = _rolled(graph, value, side - shift, side) if shift else value
    return graph.reshaped(value, 1, side * side, width)


def _rolled(graph: _Network, value: str, shift: int, side: int) -> str:
    for axis in (1, 2):
        parts = [graph.part(value, shift, side, axis), graph.part(value, 0, shift, axis)]
        value = graph.node("Concat", parts, axis=axis)
    return value


def _merged(graph: _Network, value: str, width: int, side: int) -> str:
    """Four neighbours as one position of twice the width."""
    value = graph.reshaped(value, 1, side // 2, 2, side // 2, 2, width)
    value = graph.node("Transpose", [value], perm=[0, 1, 3, 4, 2, 5])
    value = graph.normalized(graph.reshaped(value, 1, side * side // 4, 4 * width), 4 * width)
    return graph.node("MatMul", [value, graph.drawn(4 * width, 2 * width, fan=8 * width)])


def _decoder(layers: int, width: int) -> onnx.ModelProto:
    graph, value, heads = _Network(13), "x", width // 64 or 1
    for _ in range(layers):
        seen = graph.attention(graph.normalized(value, width), (0, 0), width, heads)
        value = graph.node("Add", [value, seen])
        value = graph.node("Add", [value, graph.perceptron(graph.normalized(value, width), width)])
    result = graph.normalized(value, width)
    inputs = declare({"x": ["batch", "seq", width]})
    return make_model(graph.nodes, inputs, declare({result: None}), graph.weights, 13)


def decoder() -> onnx.ModelProto:
    """A decoder at opset 13, with dynamic batch and length: 7 layers of width 768, 198 MB."""
    return _decoder(7, 768)


def small() -> onnx.ModelProto:
    """One layer of the decoder, of width 64: 0.2 MB."""
    return _decoder(1, 64)


MODELS = {"detector": detector, "transformer": transformer, "decoder": decoder, "small": small}
