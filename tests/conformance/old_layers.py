"""Old versions of pooling, normalization, recurrence and Scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from .model_cases import ModelCase
from .old_operators import Array, case, floats, positives


def windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int]
) -> Iterator[tuple[Any, Array]]:
    """Each place of a pooling of (N, C, H, W), with the elements of X that its window covers."""
    sizes = [(x.shape[2 + i] + pads[i] + pads[2 + i] - kernel[i]) // strides[i] + 1 for i in range(2)]
    for place in product(*map(range, sizes)):
        starts = [place[i] * strides[i] - pads[i] for i in range(2)]
        spans = [slice(max(0, start), start + size) for start, size in zip(starts, kernel, strict=True)]
        yield place, x[:, :, spans[0], spans[1]].reshape(*x.shape[:2], -1)


def pooled(
    x: Array, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], of: Callable[..., Array]
) -> Array:
    """Every window's elements made one by `of`."""
    found = dict(windows(x, kernel, strides, pads))
    height, width = (1 + max(place[i] for place in found) for i in range(2))
    result = np.empty((*x.shape[:2], height, width), np.float32)
    for (row, column), elements in found.items():
        result[:, :, row, column] = of(elements, axis=-1)
    return result


def norm(p: int) -> Callable[..., Array]:
    """The Lp norm along an axis."""
    return lambda a, axis: np.sum(np.abs(a) ** p, axis=axis) ** (1 / p)


def pooling() -> Iterator[ModelCase]:
    """Averages leave the padding out; p of LpPool was a float."""
    x = floats(1, 2, 5, 6)
    form = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    sizes = (form["kernel_shape"], form["strides"], form["pads"])
    yield case("pads", 1, "MaxPool", [x], pooled(x, *sizes, np.max), **form)
    yield case("pads", 1, "AveragePool", [x], pooled(x, *sizes, np.mean), **form)
    counted = pooled(x, *sizes, lambda a, axis: np.sum(a, axis=axis) / np.float32(6))
    yield case("with padding", 7, "AveragePool", [x], counted, count_include_pad=1, **form)
    yield case("default p", 1, "LpPool", [x], pooled(x, *sizes, norm(2)), **form)
    yield case("p 3", 1, "LpPool", [x], pooled(x, *sizes, norm(3)), p=3.0, **form)
    yield case("p 1", 2, "LpPool", [x], pooled(x, *sizes, norm(1)), p=1, **form)
    yield case(
        "default p", 1, "GlobalLpPool", [x], norm(2)(x.reshape(1, 2, -1), -1).reshape(1, 2, 1, 1).astype(np.float32)
    )
    third = norm(3)(x.reshape(1, 2, -1), -1).reshape(1, 2, 1, 1).astype(np.float32)
    yield case("p 3", 1, "GlobalLpPool", [x], third, p=3.0)
    yield case("p 3", 2, "GlobalLpPool", [x], third, p=3)
    for order in (0, 1):
        positions = np.arange(x.size).reshape(x.shape)
        if order:  # column-major within each image
            positions = np.arange(x.size).reshape(1, 2, 6, 5).transpose(0, 1, 3, 2)
        values = pooled(x, [2, 2], [2, 2], [0, 0, 0, 0], np.max)
        corners = [(row, column) for row in (0, 1) for column in (0, 1)]
        stacked = np.stack([x[:, :, r:4:2, c::2] for r, c in corners])
        places = np.stack([positions[:, :, r:4:2, c::2] for r, c in corners])
        indices = np.take_along_axis(places, stacked.argmax(0)[None], 0)[0]
        shape = {"kernel_shape": [2, 2], "strides": [2, 2]}
        yield case(f"indices {order}", 8, "MaxPool", [x], values, indices, storage_order=order, **shape)
    places = np.array([[[[1, 3], [10, 15]]]])
    small = positives(1, 1, 2, 2)
    unpooled = np.zeros(16, np.float32)
    unpooled[places.ravel()] = small.ravel()
    shape = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield case("plain", 9, "MaxUnpool", [small, places], unpooled.reshape(1, 1, 4, 4), **shape)


def transposed_convolution() -> Iterator[ModelCase]:
    """Below 11, of an odd padding the larger part is at the end, or at the beginning with SAME_UPPER."""
    x, w = floats(1, 1, 3, 3), floats(1, 1, 3, 3)
    full = np.zeros((1, 1, 7, 7), np.float32)
    for row, column in product(range(3), range(3)):
        full[0, 0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += x[0, 0, row, column] * w[0, 0]
    form = {"strides": [2, 2], "kernel_shape": [3, 3]}
    yield case("odd", 1, "ConvTranspose", [x, w], full[:, :, :6, :6], output_shape=[6, 6], **form)
    upper = full[:, :, 1:, 1:]
    yield case("odd upper", 1, "ConvTranspose", [x, w], upper, output_shape=[6, 6], auto_pad="SAME_UPPER", **form)
    yield case("even", 1, "ConvTranspose", [x, w], full[:, :, 1:6, 1:6], output_shape=[5, 5], **form)
    yield case("explicit", 1, "ConvTranspose", [x, w], full[:, :, :6, 1:], pads=[0, 1, 1, 0], **form)


def normalization() -> Iterator[ModelCase]:
    """BatchNormalization in its ways to say that it is not training."""
    x = floats(2, 3, 4, 2)
    scale, bias, mean, variance = (positives(3) * k for k in (1, 2, 3, 4))

    def normalized(scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float = 1e-5) -> Array:
        return ((x - mean) / np.sqrt(variance + np.float32(epsilon)) * scale + bias).astype(np.float32)

    columns = [array[:, None, None] for array in (scale, bias, mean, variance)]
    arrays = [x, scale, bias, mean, variance]
    test = {1: {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}, 6: {"is_test": 1}, 7: {}, 9: {}}
    for opset, given in test.items():
        held = [1, 2, 3, 4] if opset != 9 else []
        yield case("test", opset, "BatchNormalization", arrays, normalized(*columns), held=held, **given)
        wide = normalized(*columns, epsilon=0.1)
        yield case("epsilon", opset, "BatchNormalization", arrays, wide, epsilon=0.1, **given)
    each = [positives(3, 4, 2) * k for k in (1, 2, 3, 4)]
    yield case("not spatial", 7, "BatchNormalization", [x, *each], normalized(*each), held=[1, 2, 3, 4], spatial=0)
    centre, spread = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    instance = normalized(columns[0], columns[1], centre, spread)
    yield case("consumed", 1, "InstanceNormalization", [x, scale, bias], instance, rtol=1e-4, consumed_inputs=[0, 0, 0])
    for opset in (1, 6):
        yield case("test", opset, "Dropout", [x], x, is_test=1, ratio=0.25)
    for opset in (7, 10):
        yield case("ratio", opset, "Dropout", [x], x, ratio=0.25)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]


def unrolled(x: Array, step: Step, start: tuple[Array, ...], backward: bool) -> tuple[Array, ...]:
    """All hidden states in the order of time, and the last states."""
    states, hidden = start, [np.empty(0)] * len(x)
    for turn in range(len(x))[:: -1 if backward else 1]:
        states = step(x[turn], states)
        hidden[turn] = states[0]
    return np.stack(hidden), *states


def gru_step(w: Array, r: Array, b: Array, after: bool = False) -> Step:
    """One step of a GRU; after: R times the hidden state before it is reset."""
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    bz, br, bh, cz, cr, ch = np.split(b, 6)

    def step(x: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        (h,) = states
        z = sigmoid(x @ wz.T + h @ rz.T + bz + cz)
        reset = sigmoid(x @ wr.T + h @ rr.T + br + cr)
        inner = reset * (h @ rh.T + ch) if after else (reset * h) @ rh.T + ch
        return ((1 - z) * np.tanh(x @ wh.T + inner + bh) + z * h,)

    return step


def lstm_step(w: Array, r: Array, b: Array, p: Array) -> Step:
    """One step of an LSTM with peepholes."""
    half = b.size // 2
    pi, po, pf = np.split(p, 3)

    def step(x: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        h, c = states
        i, o, f, g = np.split(x @ w.T + h @ r.T + b[:half] + b[half:], 4, axis=-1)
        c_next = sigmoid(f + pf * c) * c + sigmoid(i + pi * c) * np.tanh(g)
        return sigmoid(o + po * c_next) * np.tanh(c_next), c_next

    return step


def rnn_step(w: Array, r: Array, b: Array) -> Step:
    """One step of a simple RNN."""
    half = b.size // 2
    return lambda x, states: (np.tanh(x @ w.T + states[0] @ r.T + b[:half] + b[half:]),)


def recurrence() -> Iterator[ModelCase]:
    """Below 7, Y is there only with output_sequence; GRU-1 misspells its default direction."""
    turns, batch, size, hidden = 4, 2, 3, 5
    x = floats(turns, batch, size)
    zero = np.zeros((batch, hidden), np.float32)
    for op, gates, step in (("RNN", 1, rnn_step), ("GRU", 3, gru_step)):
        w, r = floats(2, gates * hidden, size) * 0.5, floats(2, gates * hidden, hidden) * 0.5
        b = floats(2, 2 * gates * hidden) * 0.5
        arrays = [np.float32(array[:1]) for array in (w, r, b)]
        forward = unrolled(x, step(w[0], r[0], b[0]), (zero,), False)
        reverse = unrolled(x, step(w[1], r[1], b[1]), (zero,), True)
        y, last = (np.float32(array) for array in (forward[0][:, None], forward[1][None]))
        for opset, label in ((1, "default"), (3, "default")):
            given = {"hidden_size": hidden, "output_sequence": 1}
            yield case(label, opset, op, [x, *arrays], y, last, held=[1, 2, 3], rtol=1e-4, **given)
            yield case("no Y", opset, op, [x, *arrays], None, last, rtol=1e-4, hidden_size=hidden)
        backward = [np.float32(array[1:]) for array in (w, r, b)]
        y, last = (np.float32(array) for array in (reverse[0][:, None], reverse[1][None]))
        given = {"hidden_size": hidden, "direction": "reverse", "output_sequence": 1}
        yield case("reverse", 1, op, [x, *backward], y, last, rtol=1e-4, **given)
        y = np.float32(np.stack([forward[0], reverse[0]], 1))
        last = np.float32(np.stack([forward[1], reverse[1]]))
        given["direction"] = "bidirectional"
        yield case("both", 1, op, [x, np.float32(w), np.float32(r), np.float32(b)], y, last, rtol=1e-4, **given)
    w, r, b = (floats(1, 3 * hidden, size), floats(1, 3 * hidden, hidden), floats(1, 6 * hidden))
    y, last = unrolled(x, gru_step(w[0], r[0], b[0], after=True), (zero,), False)
    given = {"hidden_size": hidden, "output_sequence": 1, "linear_before_reset": 1}
    yield case("linear before reset", 3, "GRU", [x, w, r, b], y[:, None], last[None], rtol=1e-4, **given)
    w, r, b = floats(1, 4 * hidden, size), floats(1, 4 * hidden, hidden), floats(1, 8 * hidden)
    p, h, c = floats(1, 3 * hidden), floats(1, batch, hidden), floats(1, batch, hidden, seed=1)
    found = unrolled(x, lstm_step(w[0], r[0], b[0], p[0]), (h[0], c[0]), False)
    y, last, cell = (np.float32(array) for array in (found[0][:, None], found[1][None], found[2][None]))
    given = {"hidden_size": hidden, "output_sequence": 1}
    inputs = [x, w, r, b, None, h, c, p]
    yield case("peepholes", 1, "LSTM", inputs, y, last, cell, held=[1, 2, 3], rtol=1e-4, **given)
    yield case("no Y", 1, "LSTM", inputs, None, last, cell, rtol=1e-4, hidden_size=hidden)


def scanning() -> Iterator[ModelCase]:
    """Scan-8 has a batch axis, which Scan-9 lost."""
    x, start = floats(2, 3, 4), floats(2, 4)
    vector = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("state", "item", "next", "seen")]
    nodes = [helper.make_node("Add", ["state", "item"], ["next"]), helper.make_node("Identity", ["next"], ["seen"])]
    body = helper.make_graph(nodes, "body", vector[:2], vector[2:])
    for label, order, given in (("forward", x, {}), ("reverse", x[:, ::-1], {"directions": [1]})):
        sums = start[:, None] + np.cumsum(order, axis=1, dtype=np.float32)
        inputs = [None, start, x]
        yield case(label, 8, "Scan", inputs, sums[:, -1], sums, body=body, num_scan_inputs=1, **given)


def layer_cases() -> list[ModelCase]:
    """All of the cases here."""
    families = (pooling, transposed_convolution, normalization, recurrence, scanning)
    return [found for family in families for found in family()]
