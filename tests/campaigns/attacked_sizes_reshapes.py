"""Cases that merge dimensions and take them apart: heads, frames, windows, time-distributed layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from attacked_sizes_cases import family, forms, olds
from attacked_sizes_tape import Tape, Value

_ALL = forms("numbers", "first", "zeros")
_C = 6


def _between(first: str, second: str) -> Any:
    def between(t: Tape, N: int, T: int) -> Value:
        x = t.input("x", "N", "T", _C)
        merged = t.reshape(x, N * T, _C, style=first)
        return t.reshape(t.linear(merged, _C), N, T, _C, style=second)

    return between


# The 504 requests of the design of sizes: seven pairs of sizes, twelve forms, six requests.
for _first in ("numbers", "first", "last"):
    for _second in ("numbers", "first", "second", "last"):
        _sizes = olds("NT", (2, 5), (1, 5), (6, 5), (4, 4), (1, 1), (6, 1), (3, 8))
        family(_sizes, label=f"between/{_first}-{_second}")(_between(_first, _second))
family(olds("NT", (2, 5), (1, 4)), forms(named="N"), label="between/named/first")(_between("first", "first"))
family(olds("NT", (3, 5)), forms(named="T"), label="between/named/second")(_between("first", "second"))


def _attended(t: Tape, q: Value, k: Value, v: Value, back: tuple[int, ...]) -> Value:
    return t.softmax((q @ t.transpose(k, *back)) / 2.0) @ v


@family(olds("NT", (1, 5), (2, 7), (3, 3)), _ALL)
@family(olds("NT", (1, 1)), _ALL, ask="T", label="heads/one")
@family(olds("NT", (2, 7)), forms("zeros", "first", named="N", opsets=(13, 21)), label="heads/named")
@family(olds("NT", (1, 7)), forms("zeros", "numbers", nodes=True), label="heads/nodes")
def heads(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 8)
    parts = [t.transpose(t.reshape(t.linear(x, 8), N, T, 2, 4), 0, 2, 1, 3) for _ in range(3)]
    mixed = t.transpose(_attended(t, *parts, (0, 1, 3, 2)), 0, 2, 1, 3)
    return t.linear(t.reshape(mixed, N, T, 8), 8) + x


@family(olds("NT", (1, 5), (2, 7), (3, 4)), forms("numbers", "first", "second"))
def heads_beside_the_batch(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "T", "N", 8)
    parts = [t.transpose(t.reshape(t.linear(x, 8), T, N * 2, 4), 1, 0, 2) for _ in range(3)]
    mixed = t.transpose(_attended(t, *parts, (0, 2, 1)), 1, 0, 2)
    return t.reshape(mixed, T, N, 8)


@family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first", "zeros"))
def heads_of_one_projection(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 8)
    parts = t.transpose(t.reshape(t.linear(x, 24), N, T, 3, 2, 4), 2, 0, 3, 1, 4)
    q, k, v = (t.gather(parts, at, 0) for at in range(3))
    mixed = t.transpose(_attended(t, q, k, v, (0, 1, 3, 2)), 0, 2, 1, 3)
    return t.reshape(mixed, N, T, 8)


@family(olds("NTS", (1, 5, 7), (2, 3, 4)), forms("numbers", "zeros"))
def cross_attention(t: Tape, N: int, T: int, S: int) -> Value:
    x, z = t.input("x", "N", "T", 8), t.input("z", "N", "S", 8)
    q = t.transpose(t.reshape(t.linear(x, 8), N, T, 2, 4), 0, 2, 1, 3)
    k, v = (t.transpose(t.reshape(t.linear(z, 8), N, S, 2, 4), 0, 2, 1, 3) for _ in range(2))
    return t.reshape(t.transpose(_attended(t, q, k, v, (0, 1, 3, 2)), 0, 2, 1, 3), N, T, 8)


@family(olds("NTP", (1, 3, 4), (2, 1, 5)), forms("numbers", "zeros"))
def attention_with_a_cache(t: Tape, N: int, T: int, P: int) -> list[Value]:
    x, past = t.input("x", "N", "T", 8), t.input("past", "N", 2, "P", 4)
    q, k = (t.transpose(t.reshape(t.linear(x, 8), N, T, 2, 4), 0, 2, 1, 3) for _ in range(2))
    keys = t.op("Concat", past, k, axis=2)
    mixed = t.transpose(_attended(t, q, keys, keys, (0, 1, 3, 2)), 0, 2, 1, 3)
    return [t.reshape(mixed, N, T, 8), keys]


def _frames(t: Tape, N: int, T: int, ending: str) -> Value:
    x = t.input("x", "N", "T", 3, 4, 4)
    maps = t.relu(t.op("Conv", t.reshape(x, N * T, 3, 4, 4), t.weight(5, 3, 3, 3), pads=[1, 1, 1, 1]))
    if ending == "maps":
        return t.reshape(maps, N, T, 5, 4, 4)
    pooled = t.reshape(t.op("GlobalAveragePool", maps), N, T, 5)
    if ending == "softmax":
        return t.softmax(pooled, 2)
    if ending == "mean":
        return t.reduce("ReduceMean", pooled, 1, keepdims=0)
    return t.gather(pooled, -1, 1)


for _ending in ("maps", "softmax", "mean", "last"):
    family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first"), label=f"frames/{_ending}")(
        partial(_frames, ending=_ending)
    )
    family(olds("NT", (2, 6)), forms("first", named="N"), label=f"frames/named/{_ending}")(
        partial(_frames, ending=_ending)
    )


def _time_distributed(t: Tape, N: int, T: int, ending: str) -> Value:
    x = t.input("x", "N", "T", _C)
    merged = t.reshape(x, N * T, _C)
    d = t.reshape(t.op("Gemm", merged, t.weight(_C, _C), t.weight(_C)), N, T, _C)
    if ending == "heads":
        return t.reshape(d, N, T, 2, 3)
    if ending == "flat":
        return t.op("Flatten", d, axis=2)
    if ending == "mean":
        return t.reduce("ReduceMean", d, 1, keepdims=0)
    if ending == "residual":
        return d + x
    if ending == "turned":
        return t.reshape(t.transpose(d, 0, 2, 1), N * _C, T)
    if ending == "grams":
        return d @ t.transpose(d, 0, 2, 1)
    return t.softmax(d, 1)


for _ending in ("heads", "flat", "mean", "residual", "turned", "grams", "softmax"):
    family(olds("NT", (1, 5), (2, 4), (3, 6)), forms("numbers", "first"), label=f"time/{_ending}")(
        partial(_time_distributed, ending=_ending)
    )
    family(olds("NT", (2, 5)), forms("first", named="N"), label=f"time/named/{_ending}")(
        partial(_time_distributed, ending=_ending)
    )


@family(olds("NT", (1, 5), (3, 4)), forms("numbers", "first", "second"))
def steps_before_items(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", _C)
    turned = t.reshape(t.transpose(x, 1, 0, 2), T * N, _C, style="numbers")
    return t.transpose(t.reshape(t.linear(turned, _C), T, N, _C), 1, 0, 2)


@family(olds("NHW", (1, 4, 6), (2, 5, 3)), forms("numbers", "first"))
def axial_attention(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", "H", "W", _C)
    rows = t.reshape(x, N * H, W, _C)
    rows = t.reshape(_attended(t, rows, rows, rows, (0, 2, 1)), N, H, W, _C)
    columns = t.reshape(t.transpose(rows, 0, 2, 1, 3), N * W, H, _C)
    found = t.reshape(_attended(t, columns, columns, columns, (0, 2, 1)), N, W, H, _C)
    return t.transpose(found, 0, 2, 1, 3)


@family(olds("NHW", (1, 4, 6), (2, 3, 5)), forms("numbers", "last", "first"))
def attention_of_pixels(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 4, "H", "W")
    flat = t.transpose(t.reshape(x, N, 4, H * W), 0, 2, 1)
    mixed = t.transpose(_attended(t, flat, flat, flat, (0, 2, 1)), 0, 2, 1)
    return t.reshape(mixed, N, 4, H, W, style="numbers") + x


@family(olds("NHW", (1, 5, 6), (2, 3, 7)), forms("numbers", "first", "zeros"))
def shuffle(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 8, "H", "W")
    parts = t.transpose(t.reshape(x, N, 2, 4, H, W), 0, 2, 1, 3, 4)
    return t.reshape(parts, N, 8, H, W)


@family(olds("NHW", (1, 8, 8), (2, 6, 10)), forms("numbers", "last"), fits=lambda s: s["H"] > 3 and s["W"] > 3)
def patches_of_a_convolution(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 3, "H", "W")
    maps = t.op("Conv", x, t.weight(4, 3, 2, 2), strides=[2, 2])
    tokens = t.transpose(t.reshape(maps, N, 4, (H // 2) * (W // 2)), 0, 2, 1)
    return t.softmax(t.linear(tokens, 4), 1)


@family(olds("NHW", (1, 6, 6), (2, 4, 6)), forms("numbers", "first"), stuck="HW")
def flat_features(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 2, "H", "W")
    return t.linear(t.reshape(t.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), N, 2 * (H // 2) * (W // 2)), 5)


@family(olds("NHW", (1, 6, 6), (2, 4, 5)), forms("numbers", "first"))
def grouped_norm(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 4, "H", "W")
    flat = t.reshape(x, N, 2, 2 * H * W, style="numbers" if t.style == "numbers" else "last")
    found = t.op("InstanceNormalization", flat, t.constant([1, 1], "f4"), t.constant([0, 0], "f4"))
    return t.reshape(found, N, 4, H, W)


@family(olds("NHW", (1, 5, 4), (2, 3, 3)), forms("numbers", "first"))
def box_head(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 4, "H", "W")
    maps = t.op("Conv", x, t.weight(6, 4, 1, 1))
    parts = t.transpose(t.reshape(maps, N, 2, 3, H, W), 0, 3, 4, 1, 2)
    return t.softmax(t.reshape(parts, N, H * W * 2, 3), 2)


@family(olds("NHW", (1, 8, 8), (2, 4, 6)), forms("numbers", "last"), fits=lambda s: s["H"] > 1 and s["W"] > 1)
def two_levels(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 3, "H", "W")
    low = t.op("Conv", x, t.weight(5, 3, 3, 3), pads=[1, 1, 1, 1])
    high = t.op("Conv", low, t.weight(5, 5, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    flat = [t.reshape(low, N, 5, H * W), t.reshape(high, N, 5, ((H + 1) // 2) * ((W + 1) // 2))]
    return t.transpose(t.op("Concat", *flat, axis=2), 0, 2, 1)


@family(olds("NT", (1, 10), (2, 7)), forms("numbers", "last"))
def distribution_of_distances(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", 8, "T")
    parts = t.softmax(t.transpose(t.reshape(x, N, 2, 4, T), 0, 1, 3, 2), 3)
    weights = t.constant([[0], [1], [2], [3]], "f4")
    return t.reshape(parts @ weights, N, 2, T)


@family(olds("NT", (1, 5), (2, 6)), forms("numbers", "second"))
def outer_products(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T")
    pairs = t.unsqueeze(x, 2) * t.unsqueeze(t.op("Tanh", x), 1)
    return t.reshape(pairs, N, T * T)


@family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first", "second"))
def interleaved(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 3)
    pairs = t.op("Concat", t.unsqueeze(x, 2), t.unsqueeze(t.op("Tanh", x), 2), axis=2)
    return t.reshape(pairs, N, 2 * T, 3)


@family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first", "last"))
@family(olds("NT", (1, 1)), forms("numbers", "first", "last"), ask="T", label="merged_features/one")
def merged_features(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 4)
    return t.reshape(t.relu(t.reshape(x, N, T * 4)), N, T, 4) + x


@family(olds("NT", (1, 5), (2, 6)), forms("numbers", "first"))
def a_channel_for_a_convolution(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 6)
    maps = t.op("Conv", t.reshape(x, N, 1, T, 6, style="numbers"), t.weight(2, 1, 3, 3), pads=[1, 1, 1, 1])
    return t.reshape(t.transpose(maps, 0, 2, 1, 3), N, T, 12)


@family(olds("NT", (1, 5), (2, 6)), forms("numbers"))
def a_computed_target(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 6)
    return t.computed_reshape(t.linear(x, 6), t.size_of(x, 0), t.constant([T]), t.constant([2, 3]))


@family(olds("NT", (2, 5)), forms("numbers"))
def a_computed_target_of_the_length(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 6)
    return t.computed_reshape(t.linear(x, 6), t.constant([N]), t.size_of(x, 1), t.constant([-1]))


@family(olds("NT", (1, 6), (2, 4)), forms("numbers", "first", "last"))
def joined_by_products(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", 4, "T")
    flat = t.reshape(x, N * 4, T)
    return t.reshape(t.op("CumSum", flat, t.constant(1)), N, 4, T)


@family(olds("NST", (1, 3, 4), (2, 5, 2)), forms("numbers", "first"))
def three_merged(t: Tape, N: int, S: int, T: int) -> Value:
    x = t.input("x", "N", "S", "T", 3)
    return t.softmax(t.reshape(t.linear(t.reshape(x, N * S * T, 3), 3), N, S, T, 3), 2)


@family(olds("NST", (1, 3, 4), (2, 5, 2)), forms("numbers", "first"))
def merged_in_two_steps(t: Tape, N: int, S: int, T: int) -> Value:
    x = t.input("x", "N", "S", "T", 3)
    found = t.linear(t.reshape(t.reshape(x, N * S, T, 3), N * S * T, 3), 3)
    return t.reshape(t.reshape(found, N * S, T, 3), N, S, T, 3)


# A size that is cut: the number of parts or their length may follow, which is a question.


def _windows(t: Tape, N: int, H: int, W: int, high: int | None = 4, wide: int | None = 4, count: int = 3) -> Value:
    x = t.input("x", "N", "H", "W", 3)
    h, w = high or H // count, wide or W // count
    parts = t.transpose(t.reshape(x, N, H // h, h, W // w, w, 3), 0, 1, 3, 2, 4, 5)
    flat = t.softmax(t.reshape(parts, N * (H // h) * (W // w), h * w, 3), 1)
    back = t.transpose(t.reshape(flat, N, H // h, W // w, h, w, 3), 0, 1, 3, 2, 4, 5)
    return t.reshape(back, N, H, W, 3)


def _cut(t: Tape, N: int, T: int, ending: str, long: int = 0, count: int = 0) -> Value:
    x = t.input("x", "N", "T", 2)
    size = long or T // count
    parts = t.reshape(x, N, T // size, size, 2)
    if ending == "joined":
        return t.reshape(parts, N, T // size, size * 2, style="numbers")
    if ending == "means":
        return t.reduce("ReduceMean", parts, 2, keepdims=0)
    return t.reshape(t.softmax(parts, 2), N, T, 2)


def _by_twelve(sizes: Any) -> bool:
    return all(size % 12 == 0 for name, size in sizes.items() if name != "N")


family(
    olds("NHW", (1, 12, 12), (2, 12, 12)),
    forms("numbers", "first"),
    [partial(_windows, high=high, wide=wide) for high, wide in ((None, 4), (4, None), (None, None))],
    ask="HW",
    fits=_by_twelve,
    label="windows",
)(_windows)
family(
    olds("NHW", (1, 4, 4)),
    forms("numbers", "first"),
    [partial(_windows, high=high, wide=wide, count=1) for high, wide in ((None, 4), (4, None), (None, None))],
    ask="HW",
    fits=lambda s: all(s[name] % 12 == 0 or s[name] == 4 for name in "HW"),
    label="windows/one",
)(_windows)
for _ending in ("joined", "means", "back"):
    # Three parts of 4, two of 6, and one of 12, which are as long as all of it.
    for _long, _count in ((4, 3), (6, 2), (12, 1)):
        family(
            olds("NT", (1, 12), (2, 12)),
            forms("numbers", "second", "third") if _long == 4 else forms("numbers"),
            [partial(_cut, count=_count, ending=_ending)],
            ask="T",
            fits=_by_twelve,
            label=f"cut/{_ending}/{_long}",
        )(partial(_cut, long=_long, ending=_ending))


@family(
    olds("NHW", (1, 12, 12)),
    forms("numbers"),
    [lambda t, N, H, W: _to_depth(t, N, H, W, 6), lambda t, N, H, W: _to_depth(t, N, H, W, 6, 6)],
    ask="HW",
    fits=_by_twelve,
)
def to_depth(t: Tape, N: int, H: int, W: int) -> Value:
    return _to_depth(t, N, H, W)


def _to_depth(t: Tape, N: int, H: int, W: int, high: int = 0, wide: int = 0) -> Value:
    x = t.input("x", "N", 2, "H", "W")
    h, w = H // high if high else 2, W // wide if wide else 2
    parts = t.transpose(t.reshape(x, N, 2, H // h, h, W // w, w), 0, 3, 5, 1, 2, 4)
    return t.reduce("ReduceMax", parts, 1, 2, keepdims=0)
