"""Models as exporters write them: a decoder with a cache, a detector, recurrent ones, sequences, control flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass
class Builder:
    """A graph under construction; values are named after their operator."""

    prefix: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def const(self, values: Any, dtype: Any = np.int64) -> str:
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        size = int(np.prod(shape))
        return self.const((np.arange(size) % 7 - 3).reshape(shape) / 8, np.float32)

    def many(self, op_type: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        index = len(self.nodes)
        outputs = [f"{self.prefix}{op_type}_{index}" + (f"_{i}" if count > 1 else "") for i in range(count)]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=f"{op_type}_{index}", **attributes))
        return outputs

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return self.many(op_type, inputs, 1, **attributes)[0]

    def graph(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[str | onnx.ValueInfoProto],
        name: str = "main_graph",
    ) -> onnx.GraphProto:
        declared = [onnx.ValueInfoProto(name=output) if isinstance(output, str) else output for output in outputs]
        return helper.make_graph(self.nodes, name, inputs, declared, self.constants)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[str | onnx.ValueInfoProto], opset: int
    ) -> onnx.ModelProto:
        graph = self.graph(inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name: str, dims: Sequence[int | str | None] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def _dim_of(b: Builder, name: str, axis: int) -> str:
    """One dimension of a value as a vector, the way that exporters take it from Shape."""
    one = b.op("Gather", b.op("Shape", name), b.const(axis), axis=0)
    return b.op("Unsqueeze", one, b.const([0]))


def _mean(b: Builder, name: str, opset: int) -> str:
    if opset < 18:
        return b.op("ReduceMean", name, axes=[-1])
    return b.op("ReduceMean", name, b.const([-1]))


def _layer_norm(b: Builder, x: str, width: int, opset: int) -> str:
    centred = b.op("Sub", x, _mean(b, x, opset))
    variance = _mean(b, b.op("Pow", centred, b.const(2.0, np.float32)), opset)
    deviation = b.op("Sqrt", b.op("Add", variance, b.const(1e-5, np.float32)))
    scaled = b.op("Mul", b.op("Div", centred, deviation), b.weight(width))
    return b.op("Add", scaled, b.weight(width))


def _attention(b: Builder, x: str, past: Sequence[str], heads: int, width: int, opset: int) -> tuple[str, list[str]]:
    size = width // heads
    fused = b.op("Add", b.op("MatMul", x, b.weight(width, 3 * width)), b.weight(3 * width))
    if opset < 18:
        parts = b.many("Split", [fused, b.const([width] * 3)], 3, axis=2)
    else:
        parts = b.many("Split", [fused], 3, axis=2, num_outputs=3)
    batch, length = _dim_of(b, x, 0), _dim_of(b, x, 1)
    by_head = b.op("Concat", batch, length, b.const([heads]), b.const([size]), axis=0)
    q, k, v = (b.op("Transpose", b.op("Reshape", part, by_head), perm=[0, 2, 1, 3]) for part in parts)
    k, v = b.op("Concat", past[0], k, axis=2), b.op("Concat", past[1], v, axis=2)
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Div", scores, b.const(size**0.5, np.float32))
    total = _dim_of(b, k, 2)
    columns = b.op("Range", b.const(0), b.op("Squeeze", total, b.const([0])), b.const(1))
    first = b.op("Squeeze", b.op("Sub", total, length), b.const([0]))
    rows = b.op("Range", first, b.op("Squeeze", total, b.const([0])), b.const(1))
    seen = b.op("Not", b.op("Less", b.op("Unsqueeze", rows, b.const([1])), b.op("Unsqueeze", columns, b.const([0]))))
    scores = b.op("Where", seen, scores, b.const(-1e4, np.float32))
    mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    flat = b.op("Reshape", mixed, b.op("Concat", batch, length, b.const([width]), axis=0))
    return b.op("MatMul", flat, b.weight(width, width)), [k, v]


def _gelu(b: Builder, x: str) -> str:
    cubed = b.op("Mul", b.op("Pow", x, b.const(3.0, np.float32)), b.const(0.044715, np.float32))
    inner = b.op("Tanh", b.op("Mul", b.op("Add", x, cubed), b.const(0.7978846, np.float32)))
    outer = b.op("Add", inner, b.const(1.0, np.float32))
    return b.op("Mul", b.op("Mul", x, b.const(0.5, np.float32)), outer)


def decoder(opset: int, layers: int = 2, width: int = 16, heads: int = 4) -> onnx.ModelProto:
    """A GPT-2-like decoder with a cache of keys and values, opset 13 or later."""
    b = Builder()
    inputs = [value("input_ids", ["batch", "seq"], INT64)]
    length, before = _dim_of(b, "input_ids", 1), _dim_of(b, "past_key_0", 2)
    end = b.op("Squeeze", b.op("Add", before, length), b.const([0]))
    positions = b.op("Range", b.op("Squeeze", before, b.const([0])), end, b.const(1))
    ids = b.op("Reshape", "input_ids", b.op("Concat", b.const([-1]), length, axis=0))
    places = b.op("Gather", b.weight(64, width), b.op("Unsqueeze", positions, b.const([0])))
    x = b.op("Add", b.op("Gather", b.weight(48, width), ids), places)
    kept: list[str] = []
    for i in range(layers):
        past = [f"past_key_{i}", f"past_value_{i}"]
        inputs += [value(name, ["batch", heads, "past", width // heads]) for name in past]
        mixed, cache = _attention(b, _layer_norm(b, x, width, opset), past, heads, width, opset)
        x, kept = b.op("Add", x, mixed), kept + cache
        wide = b.op("MatMul", _layer_norm(b, x, width, opset), b.weight(width, 4 * width))
        x = b.op("Add", x, b.op("MatMul", _gelu(b, wide), b.weight(4 * width, width)))
    last = b.op("Slice", x, b.const([-1]), b.const([2**31]), b.const([1]))
    logits = b.op("Gemm", b.op("Squeeze", last, b.const([1])), b.weight(48, width), transB=1)
    return b.model(inputs, [logits, *kept], opset)


def detector(opset: int) -> onnx.ModelProto:
    """Convolutions, pooling, channel splits, upsampling beside a skip connection, a global head."""
    b = Builder()
    x = b.op("Relu", b.op("Conv", "image", b.weight(8, 3, 3, 3), pads=[1] * 4, strides=[2, 2]))
    x = b.op("BatchNormalization", x, b.weight(8), b.weight(8), b.weight(8), b.const([1.0] * 8, np.float32))
    low, high = b.many("Split", [x, b.const([4, 4])], 2, axis=1)
    joined = b.op("Concat", low, high, b.op("Conv", high, b.weight(4, 4, 3, 3), auto_pad="SAME_UPPER"), axis=1)
    pooled = b.op("MaxPool", joined, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    narrow = b.op("AveragePool", pooled, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    sizes = b.op("Slice", b.op("Shape", pooled), b.const([2]), b.const([4]), b.const([0]))
    target = b.op("Concat", b.op("Slice", b.op("Shape", narrow), b.const([0]), b.const([2])), sizes, axis=0)
    back = b.op("Resize", narrow, "", "", target, mode="nearest")
    merged = b.op("Add", back, pooled)
    doubled = b.op("Resize", merged, "", b.const([1, 1, 2, 2], np.float32), mode="nearest")
    wide = b.op("ConvTranspose", merged, b.weight(12, 4, 2, 2), strides=[2, 2])
    deep = b.op("SpaceToDepth", doubled, blocksize=2)
    spread = b.op("Concat", b.op("DepthToSpace", deep, blocksize=2), wide, axis=1)
    padded = b.op("Pad", spread, b.const([0, 0, 1, 2, 0, 0, 0, 3]))
    batch = _dim_of(b, "image", 0)
    boxes = b.op("Transpose", b.op("Reshape", padded, b.op("Concat", batch, b.const([4, -1]), axis=0)), perm=[0, 2, 1])
    _, order = b.many("TopK", [b.op("Flatten", boxes, axis=1), b.const([5])], 2, axis=1)
    head = b.op("Flatten", b.op("GlobalAveragePool", merged))
    classes = b.op("Gemm", head, b.weight(10, 12), b.weight(10), transB=1)
    best = b.op("ArgMax", classes, axis=1, keepdims=0)
    return b.model([value("image", ["batch", 3, "height", "width"])], [boxes, order, best], opset)


def recurrent(opset: int) -> onnx.ModelProto:
    """LSTM and GRU layers both ways, and a cell of Split and gates after them."""
    b = Builder()
    x = b.op("Transpose", "frames", perm=[1, 0, 2])
    wide, hidden, cell = b.many(
        "LSTM", [x, b.weight(2, 24, 8), b.weight(2, 24, 6)], 3, hidden_size=6, direction="bidirectional"
    )
    wide = b.op("Reshape", b.op("Transpose", wide, perm=[0, 2, 1, 3]), b.const([0, 0, -1]))
    again, last = b.many("GRU", [wide, b.weight(1, 12, 12), b.weight(1, 12, 4)], 2, hidden_size=4)
    again = b.op("Squeeze", again, b.const([1]))
    gates = b.op("MatMul", again, b.weight(4, 16))
    i, o, f, c = b.many("Split", [gates] if opset < 18 else [gates, b.const([4] * 4)], 4, axis=-1)
    state = b.op("Add", b.op("Mul", b.op("Sigmoid", f), again), b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", c)))
    out = b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", state))
    final = b.op("Gather", out, b.const(-1), axis=0)
    both = b.op("Concat", b.op("Squeeze", last, b.const([0])), final, axis=-1)
    states = b.op("ReduceSum", b.op("Add", hidden, cell), b.const([0]), keepdims=0)
    return b.model([value("frames", ["batch", "time", 8])], [both, states, out], opset)


def sequences(opset: int) -> onnx.ModelProto:
    """Splits into sequences, their elements, lengths and what is made of them again."""
    b = Builder()
    thirds = b.op("SplitToSequence", "x", b.const([2, 2, 2]), axis=1)
    first = b.op("SequenceAt", thirds, b.const(0))
    grown = b.op("SequenceInsert", thirds, b.op("Relu", first))
    shrunk = b.op("SequenceErase", grown, b.const(1))
    joined = b.op("ConcatFromSequence", shrunk, axis=1)
    stacked = b.op("ConcatFromSequence", grown, axis=0, new_axis=1)
    count = b.op("SequenceLength", grown)
    made = b.op("SequenceConstruct", first, b.op("SequenceAt", thirds, b.const(-1)))
    rows = b.op("SplitToSequence", "x", axis=0, keepdims=0)
    height = b.op("SequenceLength", rows)
    again = b.op("ConcatFromSequence", rows, axis=0, new_axis=1)
    chunks = b.op("SplitToSequence", "x", b.const(4), axis=0)
    whole = b.op("ConcatFromSequence", chunks, axis=0)
    return b.model([value("x", ["rows", 6])], [joined, stacked, count, made, height, again, whole], opset)


def control_flow(opset: int) -> onnx.ModelProto:
    """If, Loop and Scan around splits; a carried value that keeps its shape, and one that grows."""
    b = Builder()
    then, other = Builder("then_"), Builder("else_")
    left, right = then.many("Split", ["x"] if opset < 18 else ["x", then.const([3, 3])], 2, axis=1)
    taken = then.op("Add", left, right)
    wide = other.op("Slice", "x", other.const([0]), other.const([3]), other.const([1]))
    chosen = b.op(
        "If",
        b.op("Greater", b.op("ReduceSum", "x", keepdims=0), b.const(0.0, np.float32)),
        then_branch=then.graph([], [value(taken, None)], "then_graph"),
        else_branch=other.graph([], [value(wide, None)], "else_graph"),
    )
    steps = Builder("step_")
    going = steps.op("Identity", "step_going")
    state = steps.op("Tanh", steps.op("MatMul", "step_state", steps.weight(3, 3)))
    more = steps.op("Concat", "step_grown", "step_state", axis=0)
    row = steps.op("ReduceSum", state, steps.const([1]), keepdims=0)
    body = steps.graph(
        [
            value("step_index", [], INT64),
            value("step_going", [], BOOL),
            value("step_state", None),
            value("step_grown", None),
        ],
        [value(going, [], BOOL), value(state, None), value(more, None), value(row, None)],
        "step_graph",
    )
    trips = b.op("Gather", b.op("Shape", "y"), b.const(0))
    final, grown, rows = b.many("Loop", [trips, "", chosen, chosen], 3, body=body)
    cells = Builder("cell_")
    halves = (
        cells.many("Split", ["cell_row"], 2, axis=-1)
        if opset < 18
        else cells.many("Split", ["cell_row"], 2, axis=-1, num_outputs=2)
    )
    sums = cells.op("Add", "cell_sum", cells.op("Mul", *halves))
    cell = cells.graph(
        [value("cell_sum", None), value("cell_row", None)],
        [value(sums, None), value(cells.op("Identity", sums), None)],
        "cell_graph",
    )
    scanned = b.many("Scan", [b.const([0.0] * 4, np.float32), "y"], 2, body=cell, num_scan_inputs=1)
    return b.model([value("x", ["N", 6]), value("y", ["M", 8])], [final, grown, rows, *scanned], opset)
