"""Operators in NumPy, for the programs of `attacked_sizes_tape.py`. None of it reads what splitgraph knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def _softmax(data: Any, axis: int = -1) -> Any:
    raised = np.exp(data - data.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


def _sigmoid(data: Any) -> Any:
    return 1 / (1 + np.exp(-data))


def _windows(data: Any, size: Sequence[int], strides: Sequence[int], pads: Sequence[int], fill: float) -> Any:
    """Return the windows of a padded image: batch, channels, places, and the elements of each window."""
    rank = len(size)
    sides = [(0, 0), (0, 0), *((pads[at], pads[at + rank]) for at in range(rank))]
    padded = np.pad(data, sides, constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(padded, tuple(size), tuple(range(2, 2 + rank)))
    return found[(slice(None), slice(None), *(slice(None, None, step) for step in strides))]


def _conv(data: Any, weights: Any, bias: Any = None, *, strides: Any = None, pads: Any = None, group: int = 1) -> Any:
    rank = weights.ndim - 2
    parts = np.split(data, group, 1)
    filters = np.split(weights, group, 0)
    letters = "xyz"[:rank]
    rule = f"nc{letters.upper()}{letters},oc{letters}->no{letters.upper()}"
    found = [
        np.einsum(rule, _windows(part, weights.shape[2:], strides or [1] * rank, pads or [0] * 2 * rank, 0.0), each)
        for part, each in zip(parts, filters, strict=True)
    ]
    joined = np.concatenate(found, 1)
    return joined if bias is None else joined + bias.reshape(1, -1, *[1] * rank)


def _conv_transpose(data: Any, weights: Any, *, strides: Any) -> Any:
    """Upsampling by a window as large as the step, so that windows do not overlap."""
    found = np.einsum("nchw,cokl->nohkwl", data, weights)
    batch, out, height, up, width, right = found.shape
    assert [up, right] == list(strides)
    return found.reshape(batch, out, height * up, width * right)


def _pool(reduce: Callable[..., Any], fill: float) -> Callable[..., Any]:
    def run(data: Any, *, kernel_shape: Any, strides: Any = None, pads: Any = None) -> Any:
        rank = len(kernel_shape)
        found = _windows(data, kernel_shape, strides or [1] * rank, pads or [0] * 2 * rank, fill)
        return reduce(found, tuple(range(-rank, 0)))

    return run


def _resize(data: Any, roi: Any = None, scales: Any = None, sizes: Any = None, **_: Any) -> Any:
    """Nearest elements, asymmetric and rounded down."""
    wanted = (
        [int(size) for size in sizes]
        if sizes is not None
        else [math.floor(size * scale) for size, scale in zip(data.shape, scales, strict=True)]
    )
    for axis, size in enumerate(wanted):
        ratio = size / data.shape[axis] if sizes is not None else float(scales[axis])
        picked = np.minimum(np.floor(np.arange(size) / ratio + 1e-9).astype(np.int64), data.shape[axis] - 1)
        data = np.take(data, picked, axis)
    return data


def _directions(data: Any, lengths: Any, direction: str) -> list[tuple[Any, Callable[[Any], Any]]]:
    """Return the data as each direction reads it, and how its results are turned back."""
    assert lengths is None or (lengths == data.shape[0]).all()
    forward, back = (data, lambda found: found), (data[::-1], lambda found: found[::-1])
    return {"forward": [forward], "reverse": [back], "bidirectional": [forward, back]}[direction]


def _recurrent(cell: Callable[..., Any], states: int) -> Callable[..., Any]:
    def run(data: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *first: Any, **attributes: Any) -> list[Any]:
        size = attributes["hidden_size"]
        outputs, lasts = [], []
        for at, (turned, back) in enumerate(_directions(data, lengths, attributes.get("direction", "forward"))):
            held = [
                first[each][at]
                if len(first) > each and first[each] is not None
                else np.zeros((data.shape[1], size), np.float32)
                for each in range(states)
            ]
            given = []
            for item in turned:
                held = cell(item, held, w[at], r[at], None if b is None else b[at], size)
                given.append(held[0])
            outputs.append(back(np.stack(given)))
            lasts.append(held)
        return [np.stack(outputs, 1), *(np.stack([held[each] for held in lasts]) for each in range(states))]

    return run


def _sums(item: Any, hidden: Any, w: Any, r: Any, b: Any, size: int) -> tuple[list[Any], list[Any]]:
    half = w.shape[0]
    inner = item @ w.T + (0 if b is None else b[:half])
    outer = hidden @ r.T + (0 if b is None else b[half:])
    return np.split(inner, half // size, 1), np.split(outer, half // size, 1)


def _lstm_cell(item: Any, held: Any, w: Any, r: Any, b: Any, size: int) -> Any:
    inner, outer = _sums(item, held[0], w, r, b, size)
    i, o, f, c = (one + other for one, other in zip(inner, outer, strict=True))
    cell = _sigmoid(f) * held[1] + _sigmoid(i) * np.tanh(c)
    return [_sigmoid(o) * np.tanh(cell), cell]


def _gru_cell(item: Any, held: Any, w: Any, r: Any, b: Any, size: int) -> Any:
    inner, outer = _sums(item, held[0], w, r, b, size)
    update, reset = _sigmoid(inner[0] + outer[0]), _sigmoid(inner[1] + outer[1])
    found = np.tanh(
        item @ w[2 * size :].T
        + (reset * held[0]) @ r[2 * size :].T
        + (0 if b is None else b[2 * size : 3 * size] + b[5 * size :])
    )
    return [(1 - update) * found + update * held[0]]


def _rnn_cell(item: Any, held: Any, w: Any, r: Any, b: Any, size: int) -> Any:
    inner, outer = _sums(item, held[0], w, r, b, size)
    return [np.tanh(inner[0] + outer[0])]


def _topk(data: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> list[Any]:
    order = np.argsort(-data if largest else data, axis, kind="stable")
    picked = np.take(order, np.arange(int(np.ravel(k)[0])), axis)
    return [np.take_along_axis(data, picked, axis), picked]


def _one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    size = int(np.ravel(depth)[0])
    found = np.where(indices[..., None] == np.arange(size), values[1], values[0])
    return np.moveaxis(found, -1, axis)


def _cumsum(data: Any, axis: Any, *, reverse: int = 0) -> Any:
    at = int(axis)
    return np.flip(np.cumsum(np.flip(data, at), at), at) if reverse else np.cumsum(data, at, dtype=data.dtype)


def _reverse_sequence(data: Any, lengths: Any, *, batch_axis: int, time_axis: int) -> Any:
    found = data.copy()
    for item, length in enumerate(lengths):
        at: list[Any] = [slice(None)] * data.ndim
        at[batch_axis], at[time_axis] = item, slice(0, length)
        back = list(at)
        back[time_axis] = np.arange(length)[::-1]
        found[tuple(at)] = data[tuple(back)]
    return found


def _scatter_elements(data: Any, indices: Any, updates: Any, *, axis: int = 0) -> Any:
    found = data.copy()
    np.put_along_axis(found, indices, updates, axis)
    return found


def _scatter_nd(data: Any, indices: Any, updates: Any) -> Any:
    found = data.copy()
    found[tuple(np.moveaxis(indices, -1, 0))] = updates
    return found


def _depth_to_space(data: Any, *, blocksize: int) -> Any:
    batch, deep, height, width = data.shape
    parts = data.reshape(batch, blocksize, blocksize, deep // blocksize**2, height, width)
    return parts.transpose(0, 3, 4, 1, 5, 2).reshape(batch, deep // blocksize**2, height * blocksize, width * blocksize)


def _space_to_depth(data: Any, *, blocksize: int) -> Any:
    batch, deep, height, width = data.shape
    parts = data.reshape(batch, deep, height // blocksize, blocksize, width // blocksize, blocksize)
    return parts.transpose(0, 3, 5, 1, 2, 4).reshape(
        batch, deep * blocksize**2, height // blocksize, width // blocksize
    )


def _layer_norm(data: Any, scale: Any, bias: Any, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    axes = tuple(range(axis % data.ndim, data.ndim))
    middle = data - data.mean(axes, keepdims=True)
    return middle / np.sqrt((middle**2).mean(axes, keepdims=True) + epsilon) * scale + bias


def _instance_norm(data: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    axes, shape = tuple(range(2, data.ndim)), (1, -1, *[1] * (data.ndim - 2))
    middle = data - data.mean(axes, keepdims=True)
    found = middle / np.sqrt((middle**2).mean(axes, keepdims=True) + epsilon)
    return found * scale.reshape(shape) + bias.reshape(shape)


def _batch_norm(data: Any, scale: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5) -> Any:
    scale, bias, mean, variance = (
        each.reshape(1, -1, *[1] * (data.ndim - 2)) for each in (scale, bias, mean, variance)
    )
    return (data - mean) / np.sqrt(variance + epsilon) * scale + bias


def _reduced(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, axes, keepdims: reduce(data, axis=tuple(axes), keepdims=bool(keepdims))


def _trilu(data: Any, k: Any = None, *, upper: int = 1) -> Any:
    return (np.triu if upper else np.tril)(data, 0 if k is None else int(k))


def _gemm(a: Any, b: Any, c: Any = None, *, transB: int = 0, transA: int = 0) -> Any:
    found = (a.T if transA else a) @ (b.T if transB else b)
    return found if c is None else found + c


KERNELS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": lambda a, b: a // b if a.dtype.kind == "i" else a / b,
    "Mod": np.mod,
    "Neg": np.negative,
    "Exp": np.exp,
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Relu": lambda data: np.maximum(data, 0),
    "Sqrt": np.sqrt,
    "Abs": np.abs,
    "Identity": lambda data: data,
    "Max": np.maximum,
    "Min": np.minimum,
    "And": np.logical_and,
    "Not": np.logical_not,
    "Greater": np.greater,
    "Less": np.less,
    "Equal": np.equal,
    "Where": np.where,
    "MatMul": np.matmul,
    "Gemm": _gemm,
    "Einsum": lambda *each, equation: np.einsum(equation, *each),
    "Softmax": _softmax,
    "LogSoftmax": lambda data, axis=-1: np.log(_softmax(data, axis)),
    "Transpose": lambda data, perm: np.transpose(data, perm),
    "Concat": lambda *each, axis: np.concatenate(each, axis),
    "Shape": lambda data: np.array(data.shape, np.int64),
    "Flatten": lambda data, axis=1: data.reshape(int(np.prod(data.shape[:axis])), int(np.prod(data.shape[axis:]))),
    "Gather": lambda data, indices, axis=0: np.take(data, indices, axis),
    "GatherElements": lambda data, indices, axis=0: np.take_along_axis(data, indices, axis),
    "GatherND": lambda data, indices: data[tuple(np.moveaxis(indices, -1, 0))],
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Tile": lambda data, repeats: np.tile(data, repeats),
    "CumSum": _cumsum,
    "TopK": _topk,
    "OneHot": _one_hot,
    "ArgMax": lambda data, axis=0, keepdims=1: (
        np.expand_dims(data.argmax(axis), axis) if keepdims else data.argmax(axis)
    ),
    "ReverseSequence": _reverse_sequence,
    "Trilu": _trilu,
    "EyeLike": lambda data, k=0: np.eye(*data.shape, k=k, dtype=data.dtype),
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _pool(np.max, -math.inf),
    "AveragePool": _pool(np.mean, 0.0),
    "GlobalAveragePool": lambda data: data.mean(tuple(range(2, data.ndim)), keepdims=True),
    "GlobalMaxPool": lambda data: data.max(tuple(range(2, data.ndim)), keepdims=True),
    "Resize": _resize,
    "Upsample": lambda data, scales, mode: _resize(data, None, scales),
    "LSTM": _recurrent(_lstm_cell, 2),
    "GRU": _recurrent(_gru_cell, 1),
    "RNN": _recurrent(_rnn_cell, 1),
    "LayerNormalization": _layer_norm,
    "InstanceNormalization": _instance_norm,
    "BatchNormalization": _batch_norm,
    "ReduceMean": _reduced(np.mean),
    "ReduceSum": _reduced(np.sum),
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceL2": _reduced(lambda data, axis, keepdims: np.sqrt((data**2).sum(axis, keepdims=keepdims))),
}
