"""Cases of layers, bodies and functions, and of batches whose items do not stand apart."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from attacked_sizes_cases import family, forms, olds
from attacked_sizes_tape import F, Tape, Value

# Recurrent layers.


def _recurrent(
    t: Tape,
    N: int,
    T: int,
    kind: str,
    states: str,
    direction: str = "forward",
    ending: str = "all",
) -> Value:
    gates, count = {"LSTM": (4, 2), "GRU": (3, 1), "RNN": (1, 1)}[kind]
    d = 2 if direction == "bidirectional" else 1
    x = t.transpose(t.input("x", "N", "T", 3), 1, 0, 2)
    w, r, b = t.weight(d, gates * 4, 3), t.weight(d, gates * 4, 4), t.weight(d, 2 * gates * 4)
    lengths = t.constant([T] * N, np.int32) if "lengths" in states else None
    first: list[Any] = []
    if "zeros" in states:
        first = [t.constant(np.zeros((d, N, 4)), F) for _ in range(count)]
    elif "filled" in states:
        first = [t.filled(d, N, 4) for _ in range(count)]
    elif "expanded" in states:
        first = [t.expand(t.weight(d, 1, 4), d, N, 4) for _ in range(count)]
    elif "given" in states:
        first = [t.input(f"h{at}", d, "N", 4) for at in range(count)]
    found = t.op(kind, x, w, r, b, lengths, *first, many=True, hidden_size=4, direction=direction)
    if ending == "state":
        return t.squeeze(found[1], 0)
    if ending == "both ways":
        return t.reshape(t.transpose(found[0], 0, 2, 1, 3), T, N, 8)
    steps = t.squeeze(found[0], 1)
    if ending == "last":
        return t.gather(steps, -1, 0)
    if ending == "last by number":
        return t.gather(steps, T - 1, 0)
    return t.linear(t.transpose(steps, 1, 0, 2), 3)


for _kind in ("LSTM", "GRU", "RNN"):
    for _states in ("none", "zeros", "filled", "expanded", "given"):
        family(olds("NT", (1, 5), (2, 6)), forms(), label=f"recurrent/{_kind}/{_states}")(
            partial(_recurrent, kind=_kind, states=_states)
        )
    for _ending in ("state", "last", "last by number"):
        family(
            olds("NT", (1, 5)),
            forms(opsets=(11, 17)),
            ask="T" if "number" in _ending else "",
            label=f"recurrent/{_kind}/{_ending}",
        )(partial(_recurrent, kind=_kind, states="zeros", ending=_ending))
    family(olds("NT", (1, 5), (2, 6)), forms("numbers", "zeros", "first"), label=f"recurrent/{_kind}/both ways")(
        partial(_recurrent, kind=_kind, states="zeros", direction="bidirectional", ending="both ways")
    )
    family(olds("NT", (1, 5)), forms(), ask="T", label=f"recurrent/{_kind}/lengths")(
        partial(_recurrent, kind=_kind, states="lengths", ending="all")
    )


# Images.


def _image(t: Tape, N: int, H: int, W: int, what: str) -> Any:
    x = t.input("x", "N", 3, "H", "W")
    if what == "same convolution":
        return t.op("Conv", x, t.weight(4, 3, 3, 3), t.weight(4), pads=[1, 1, 1, 1])
    if what == "groups":
        return t.op("Conv", x, t.weight(6, 1, 3, 3), pads=[1, 1, 1, 1], group=3)
    if what == "steps":
        return t.op("Conv", x, t.weight(4, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    if what == "pools":
        found = t.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        return t.op("AveragePool", found, kernel_shape=[2, 2], strides=[1, 1])
    if what == "classifier":
        found = t.relu(t.op("Conv", x, t.weight(4, 3, 3, 3), pads=[1, 1, 1, 1]))
        return t.linear(t.op("Flatten", t.op("GlobalAveragePool", found)), 5)
    if what == "classifier by reshape":
        found = t.relu(t.op("Conv", x, t.weight(4, 3, 3, 3), pads=[1, 1, 1, 1]))
        return t.linear(t.reshape(t.op("GlobalAveragePool", found), N, 4), 5)
    if what == "classifier by mean":
        return t.linear(t.reduce("ReduceMean", t.op("Conv", x, t.weight(4, 3, 1, 1)), 2, 3, keepdims=0), 5)
    if what == "twice as large by scales":
        return t.op(
            "Resize",
            x,
            None,
            t.constant([1, 1, 2, 2], F),
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )
    if what == "u-net":
        low = t.op("Conv", x, t.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
        deep = t.relu(t.op("Conv", t.op("MaxPool", low, kernel_shape=[2, 2], strides=[2, 2]), t.weight(4, 4, 1, 1)))
        up = t.op("ConvTranspose", deep, t.weight(4, 4, 2, 2), strides=[2, 2])
        return t.op("Conv", t.op("Concat", up, low, axis=1), t.weight(2, 8, 1, 1))
    if what == "u-net by sizes":
        low = t.op("Conv", x, t.weight(4, 3, 3, 3), pads=[1, 1, 1, 1])
        deep = t.relu(t.op("Conv", t.op("MaxPool", low, kernel_shape=[2, 2], strides=[2, 2]), t.weight(4, 4, 1, 1)))
        up = t.op(
            "Resize",
            deep,
            None,
            None,
            t.constant([N, 4, H, W]),
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )
        return t.op("Concat", up, low, axis=1)
    if what == "weights of channels":
        gates = t.op("Sigmoid", t.op("Conv", t.op("GlobalAveragePool", x), t.weight(3, 3, 1, 1)))
        return x * gates
    if what == "weights of channels by reshape":
        gates = t.linear(t.reshape(t.op("GlobalAveragePool", x), N, 3), 3)
        return x * t.reshape(t.op("Sigmoid", gates), N, 3, 1, 1)
    if what == "norms":
        found = t.op(
            "BatchNormalization", x, *(t.constant(each, F) for each in ([1, 2, 3], [0, 1, 0], [0, 0, 1], [1, 2, 1]))
        )
        return t.op("InstanceNormalization", found, t.constant([1, 2, 1], F), t.constant([0, 1, 0], F))
    if what == "space to depth":
        return t.op("SpaceToDepth", x, blocksize=2)
    if what == "depth to space":
        return t.op("DepthToSpace", t.op("Conv", x, t.weight(8, 3, 1, 1)), blocksize=2)
    if what == "grid":
        rows, columns = np.meshgrid(np.arange(H), np.arange(W), indexing="ij")
        return t.slice(x, 1, 0, 2) + t.constant(np.stack([columns, rows])[None], F)
    if what == "grid of rows":
        return x + t.constant(np.arange(H)[:, None], F) + t.constant(np.arange(W), F)
    if what == "grid by ranges":
        rows, columns = (t.cast(t.count_to(size), F) for size in (H, W))
        return x + (t.unsqueeze(rows, 1) + t.unsqueeze(columns, 0))
    if what == "flipped":
        return t.slice(x, 3, -1, None, -1)
    if what == "halves":
        return t.op("Concat", *reversed(t.split(x, 3, W // 2, W // 2)), axis=3)
    if what == "quarters joined":
        return t.op(
            "Concat", *(t.slice(t.slice(x, 2, a, None, 2), 3, b, None, 2) for a in (0, 1) for b in (0, 1)), axis=1
        )
    if what == "positions of a maximum":
        flat = t.reshape(x, N, 3, H * W)
        return t.op("ArgMax", flat, axis=2, keepdims=0)
    if what == "best pixels":
        flat = t.reshape(x, N, 3, H * W)
        return t.op("TopK", flat, t.constant([3]), many=True)
    if what == "columns":
        return t.transpose(t.squeeze(t.reduce("ReduceMax", x, 2), 2), 0, 2, 1)
    assert what == "decoded boxes"
    maps = t.op("Conv", x, t.weight(10, 3, 1, 1))
    parts = t.transpose(t.reshape(maps, N, 2, 5, H, W), 0, 1, 3, 4, 2)
    rows, columns = np.meshgrid(np.arange(H), np.arange(W), indexing="ij")
    grid = t.constant(np.stack([columns, rows], -1)[None, None], F)
    middle = (t.op("Sigmoid", t.slice(parts, 4, 0, 2)) + grid) * 8.0
    return t.reshape(t.op("Concat", middle, t.slice(parts, 4, 2, 5), axis=4), N, 2 * H * W, 5)


_EVEN = ("u-net", "u-net by sizes", "space to depth", "halves", "quarters joined")
_IMAGES = (
    "same convolution|groups|steps|pools|classifier|classifier by reshape|classifier by mean|twice as large by scales|"
    "u-net|u-net by sizes|weights of channels|weights of channels by reshape|norms|space to depth|depth to space|grid|"
    "grid of rows|grid by ranges|flipped|halves|quarters joined|positions of a maximum|best pixels|columns|"
    "decoded boxes"
)
for _what in _IMAGES.split("|"):
    family(
        olds("NHW", (1, 8, 6), (2, 4, 4)),
        forms("numbers") if _what != "decoded boxes" else forms("numbers", "first"),
        # At 4, the second one takes the whole of what the first one leaves.
        ask="HW" if _what == "pools" else "",
        label=f"image/{_what}",
        fits=(lambda s: s["H"] % 2 == 0 and s["W"] % 2 == 0 and min(s.values()) > 0)
        if _what in _EVEN
        else (lambda s: s["H"] > 3 and s["W"] > 3),
    )(partial(_image, what=_what))


def _resized(t: Tape, N: int, H: int, W: int, sizes: Any) -> Value:
    x = t.input("x", "N", 3, "H", "W")
    wanted = t.constant([N, 3, *sizes(H, W)])
    return t.op(
        "Resize",
        x,
        None,
        None,
        wanted,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )


for _scale, _fixed in ((2, (8, 12)), (1, (4, 6))):
    family(
        olds("NHW", (1, 4, 6), (2, 4, 6)),
        forms(),
        [
            partial(_resized, sizes=lambda H, W, k=_scale: (k * H, k * W)),
            partial(_resized, sizes=lambda H, W, k=_scale, f=_fixed: (k * H, f[1])),
            partial(_resized, sizes=lambda H, W, k=_scale, f=_fixed: (f[0], k * W)),
        ],
        ask="HW",
        label=f"resize to numbers/{_scale}",
    )(partial(_resized, sizes=lambda H, W, f=_fixed: f))


def _upsampled(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 3, "H", "W")
    if t.opset == 9:
        return t.op("Upsample", x, t.constant([1, 1, 2, 2], F), mode="nearest")
    return t.record(
        "Upsample",
        [x],
        [np.repeat(np.repeat(x.array, 2, 2), 2, 3)],
        many=False,
        scales=[1.0, 1.0, 2.0, 2.0],
        mode="nearest",
    )


family(olds("NHW", (1, 4, 6), (2, 3, 5)), forms(opsets=(7, 9)), label="upsample")(_upsampled)


# Sequences through layers of one dimension.


def _signal(t: Tape, N: int, T: int, what: str) -> Any:
    x = t.input("x", "N", "T", 4)
    turned = t.transpose(x, 0, 2, 1)
    if what == "convolution":
        return t.transpose(t.op("Conv", turned, t.weight(5, 4, 3), pads=[1, 1]), 0, 2, 1)
    if what == "causal":
        return x + t.transpose(t.op("Conv", turned, t.weight(4, 4, 3), pads=[2, 0]), 0, 2, 1)
    if what == "steps":
        return t.op("Conv", turned, t.weight(5, 4, 3), pads=[1, 1], strides=[2])
    if what == "norm":
        return t.op("LayerNormalization", x, t.weight(4), t.weight(4), axis=-1)
    if what == "norm by parts":
        middle = x - t.reduce("ReduceMean", x, -1)
        return middle / t.op("Sqrt", t.reduce("ReduceMean", middle * middle, -1) + 1e-5)
    if what == "einsum":
        return t.op("Einsum", x, x, equation="ntc,nsc->nts")
    if what == "pooled":
        return t.softmax(t.linear(t.reduce("ReduceMean", x, 1, keepdims=0), 3))
    if what == "weighted":
        return t.reduce("ReduceSum", t.softmax(t.linear(x, 1), 1) * x, 1, keepdims=0)
    if what == "squeezed":
        return t.squeeze(t.linear(x, 1), 2)
    if what == "gate":
        a, b = t.split(x, 2, 2, 2)
        return a * t.op("Sigmoid", b)
    if what == "sums":
        return t.op("CumSum", x, t.constant(1))
    if what == "sums from behind":
        return t.op("CumSum", x, t.constant(1), reverse=1)
    if what == "halves":
        a, b = t.split(x, 1, T // 2, T // 2)
        return a * b
    if what == "squares":
        return turned @ x
    if what == "normalized columns":
        return x / (t.reduce("ReduceL2", x, 1) + 1e-3)
    if what == "stacked":
        return t.op("Concat", x, t.relu(x), x, axis=1)
    assert what == "scan and branch"
    return t.branch(t.op("Less", t.constant(1, F), t.constant(2, F)), lambda _: _relu(_, x), lambda _: _.op("Neg", x))


def _relu(t: Tape, x: Value) -> Value:
    return t.op("Relu", x)


_SIGNALS = (
    "convolution|causal|steps|norm|norm by parts|einsum|pooled|weighted|squeezed|gate|sums|sums from behind|halves|"
    "squares|normalized columns|stacked|scan and branch"
)
for _what in _SIGNALS.split("|"):
    for _old, _named in (((1, 6), ""), ((2, 8), ""), ((2, 6), "N")):
        _opsets = (11, 17) if _what not in ("norm", "causal", "einsum") and not _named and _old[0] == 1 else (17,)
        family(
            olds("NT", _old),
            forms(named=_named, opsets=_opsets),
            label=f"signal/{_what}",
            fits=(lambda s: s["T"] % 2 == 0) if _what == "halves" else (lambda s: s["T"] > 2),
        )(partial(_signal, what=_what))


# Bodies and functions.


def _bodies(t: Tape, N: int, T: int, what: str) -> Any:
    x = t.input("x", "N", "T", 4)
    w = t.weight(4, 4)

    def dense(inner: Tape, value: Value) -> Value:
        return inner.reshape(inner.reshape(value, N * T, 4) @ w, N, T, 4)

    def step(inner: Tape, state: Value, item: Value) -> tuple[Value, Value]:
        found = inner.op("Tanh", (state @ w) + item)
        return found, inner.reshape(found, N, 2, 2)

    if what == "scan":
        return t.scan(step, t.filled(N, 4), t.transpose(x, 1, 0, 2))
    if what == "scan of a constant state":
        return t.scan(step, t.constant(np.zeros((N, 4)), F), t.transpose(x, 1, 0, 2))
    if what == "loop":
        return t.loop(3, lambda inner, state, number: inner.op("Tanh", dense(inner, state)), x)
    if what == "branch":
        condition = t.squeeze(t.input("flag", 1, kind=bool), 0)
        return t.branch(condition, lambda inner: inner.op("Neg", x), lambda inner: dense(inner, x))
    if what == "function":
        return t.call("Dense", lambda inner, value: inner.reshape(inner.reshape(value, N * T, 4), N, T, 2, 2), x)
    assert what == "function called twice"

    def head(inner: Tape, value: Value) -> Value:
        return inner.reshape(inner.op("Tanh", inner.reshape(value, N * T, 4)), N, T, 4)

    return t.call("Head", head, x) + t.call("Other", head, t.relu(x))


_BODIES = "scan|scan of a constant state|loop|branch|function|function called twice"
for _what in _BODIES.split("|"):
    family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first"), label=f"body/{_what}")(partial(_bodies, what=_what))


# What computes over its items is no batch, and still a function of its size.


def _mixed(t: Tape, N: int, T: int, what: str) -> Any:
    x = t.input("x", "N", "T", 3)
    flat = t.reshape(x, N, T * 3, style="last")
    if what == "softmax":
        return t.softmax(x, 0)
    if what == "mean":
        return x - t.reduce("ReduceMean", x, 0)
    if what == "first":
        return x - t.slice(x, 0, 0, 1)
    if what == "neighbour":
        return t.op("Concat", t.slice(x, 0, 1, None), t.slice(x, 0, 0, 1), axis=0)
    if what == "products":
        return flat @ t.transpose(flat, 1, 0)
    if what == "sums":
        return t.op("CumSum", x, t.constant(0))
    if what == "flip":
        return t.slice(x, 0, -1, None, -1)
    if what == "number of items":
        return x * t.cast(t.size_of(x, 0), F)
    if what == "one of the number":
        return x / t.cast(t.size_of(x, 0), F)
    if what == "many items":
        many = t.op("Greater", t.cast(t.size_of(x, 0), F), 4.0)
        return t.op("Where", many, x, x * 2.0)
    if what == "number of the item":
        count = t.record(
            "Range", [t.constant(0), t.squeeze(t.size_of(x, 0), 0), t.constant(1)], [np.arange(N)], many=False
        )
        return x + t.unsqueeze(t.cast(count, F), 1, 2)
    if what == "rows by number":
        count = t.record(
            "Range", [t.constant(0), t.squeeze(t.size_of(x, 0), 0), t.constant(1)], [np.arange(N)], many=False
        )
        turned = t.op("Mod", count + t.constant(1), t.squeeze(t.size_of(x, 0), 0))
        return t.gather(x, turned, 0)
    assert what == "branch"
    many = t.squeeze(t.op("Greater", t.cast(t.size_of(x, 0), F), 4.0), 0)
    return t.branch(many, lambda inner: inner.op("Neg", x), lambda inner: inner.op("Relu", x))


_MIXED = (
    "softmax|mean|first|neighbour|products|sums|flip|number of items|one of the number|many items|number of the item|"
    "rows by number|branch"
)
for _what in _MIXED.split("|"):
    # With one item, the first item is all items.
    _sizes = ((2, 5),) if _what in ("first", "neighbour") else ((1, 4), (2, 5))
    family(olds("NT", *_sizes), forms(), mixes=True, label=f"mixed/{_what}", refuse="N")(partial(_mixed, what=_what))
