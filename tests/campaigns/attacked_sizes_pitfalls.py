"""Cases that are easily read wrongly: equal sizes, sizes of 1, names with a size baked in, and what is no batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from attacked_sizes_cases import family, forms, olds
from attacked_sizes_tape import F, Tape, Value

# Sizes that equal each other, the features, or 1.


def _heads(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 8)
    parts = [t.transpose(t.reshape(t.linear(x, 8), N, T, 2, 4), 0, 2, 1, 3) for _ in range(3)]
    scores = t.softmax(parts[0] @ t.transpose(parts[1], 0, 1, 3, 2))
    return t.reshape(t.transpose(scores @ parts[2], 0, 2, 1, 3), N, T, 8)


def _merged(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 6)
    return t.reshape(t.relu(t.reshape(t.linear(x, 6), N * T, 6)), N, T, 6)


def _flat(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 4)
    found = t.reduce("ReduceMean", t.reshape(t.linear(t.reshape(x, N * T, 4), 3), N, T, 3), 1, keepdims=0)
    return t.linear(found, 2)


def _without_step(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 5)
    found = t.reshape(t.linear(t.reshape(x, N * T, 5), 5), N, T, 5)
    return t.reduce("ReduceMean", found, 1)


def _middle_item(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "T", "N", 6)
    return t.computed_reshape(t.linear(x, 6), t.size_of(x, 0), t.size_of(x, 1), t.constant([2]), t.constant([-1]))


def _steps_first(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "T", "N", 6)
    return t.reshape(t.linear(t.reshape(x, T * N, 6), 6), T, N, 2, 3)


for _label, _program, _sizes in (
    ("heads", _heads, ((2, 8), (1, 4), (2, 2), (4, 2), (8, 8))),
    ("merged", _merged, ((2, 6), (6, 6), (1, 6), (12, 1), (2, 1))),
    ("flat", _flat, ((4, 4), (3, 4), (1, 3), (1, 1), (2, 1))),
    ("mean of one", _without_step, ((1, 1), (6, 1), (1, 5), (5, 5))),
    ("items in the middle", _middle_item, ((1, 5), (2, 6), (3, 3))),
    ("steps first", _steps_first, ((1, 5), (2, 6), (3, 3), (1, 1))),
):
    for _size in _sizes:
        # A length of 1 may stand at several places.
        _asks = "T" if _size[1] == 1 and _label == "merged" else "NT" if _size == (1, 1) and "first" in _label else ""
        family(olds("NT", _size), forms("numbers", "first"), ask=_asks, label=f"alike/{_label}")(_program)


# Squeeze without axes, a merged size that is taken apart.


def _squeezed(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 4)
    return t.squeeze(t.linear(x, 1))


family(
    olds("NT", (2, 5), (3, 4)), forms(opsets=(11, 17)), label="squeeze without axes", fits=lambda s: min(s.values()) > 1
)(_squeezed)


def _image_of_tokens(t: Tape, N: int, H: int, W: int) -> Value:
    x = t.input("x", "N", 3, "H", "W")
    tokens = t.softmax(t.transpose(t.reshape(x, N, 3, H * W), 0, 2, 1))
    return t.op("Conv", t.reshape(t.transpose(tokens, 0, 2, 1), N, 3, H, W), t.weight(2, 3, 1, 1))


def _square(t: Tape, N: int, H: int) -> Value:
    x = t.input("x", "N", 3, "H", "H")
    return t.reshape(t.relu(t.reshape(x, N, 3, H * H)), N, 3, H, H)


family(olds("NHW", (1, 4, 6), (2, 3, 5)), forms("numbers", "first", "last"), label="tokens to an image")(
    _image_of_tokens
)
family(olds("NH", (1, 4), (2, 3)), forms("numbers", "first"), label="tokens to a square")(_square)


# Names that have a size baked in, and names beside numbers.


def _baked(t: Tape, N: int, T: int, what: str) -> Value:
    x = t.input("x", "N", "T", 4)
    if what == "merged":
        return x + t.reshape(t.linear(t.reshape(x, N * T, 4, style="first"), 4), N, T, 4, style="first")
    if what == "heads":
        mask = t.unsqueeze(t.input("mask", "N", "T"), 1, 3)
        return t.transpose(t.reshape(x, N, T, 2, 2, style="first"), 0, 2, 1, 3) * mask
    if what == "mask":
        scores = x @ t.transpose(x, 0, 2, 1)
        return t.softmax(scores + t.constant(np.where(np.tri(T), 0, -1e9), F)) @ x
    if what == "steps":
        return x + t.constant(np.arange(T)[:, None], F)
    assert what == "positions"
    return x + t.gather(t.weight(64, 4), np.arange(T), 0)


for _what in ("merged", "heads", "mask", "steps", "positions"):
    family(olds("NT", (2, 7)), forms(named="NT"), baked="T", label=f"baked/{_what}")(partial(_baked, what=_what))
    family(olds("NT", (1, 7)), forms(named="T"), baked="T", label=f"baked/length/{_what}")(partial(_baked, what=_what))


# Weights of the old size, other than tables of positions, and steps that are written out.


def _stuck(t: Tape, N: int, T: int, what: str) -> Any:
    x = t.input("x", "N", "T")
    if what == "mean":
        return x - t.weight(T)
    if what == "linear":
        return t.linear(x, 3)
    if what == "scale and mean":
        return (x - t.weight(1, T)) * t.op("Exp", t.weight(T))
    assert what == "mixed steps"
    return t.op("Einsum", x, t.weight(T, T), equation="nt,ts->ns")


for _what in ("mean", "linear", "scale and mean", "mixed steps"):
    family(olds("NT", (2, 8), (1, 5)), stuck="T", label=f"weights/{_what}")(partial(_stuck, what=_what))


@family(olds("NT", (1, 3), (2, 4)), refuse="T", ask="T")
def steps_written_out(t: Tape, N: int, T: int) -> Value:
    x = t.input("x", "N", "T", 4)
    w, state = t.weight(4, 4), t.filled(N, 4)
    given = []
    for at in range(T):
        state = t.op("Tanh", t.gather(x, at, 1) + state @ w)
        given.append(t.unsqueeze(state, 1))
    return t.op("Concat", *given, axis=1)


# What is no batch: it looks like one at the old size, or says its number.


def _no_batch(t: Tape, N: int, T: int, what: str) -> Any:
    x = t.input("x", "N", "T", 3)
    if what == "first four":
        return t.slice(x, 0, 0, 4)
    if what == "weights of each item":
        return x * t.constant(np.arange(N)[:, None, None], F)
    if what == "numbers of items":
        return x + t.unsqueeze(t.cast(t.count_to(N), F), 1, 2)
    if what == "half of the number":
        return x + t.cast(t.size_of(x, 0), F) * 0.5
    if what == "greatest item":
        return t.op("ArgMax", x, axis=0)
    if what == "between items":
        flat = t.reduce("ReduceMean", x, 1, keepdims=0)
        return t.softmax(flat @ t.transpose(flat, 1, 0)) @ flat
    if what == "merged mean":
        return t.reshape(x, N * T, 3, style="first") - t.reduce("ReduceMean", t.reshape(x, N * T, 3, style="first"), 0)
    assert what == "sorted items"
    return t.op("TopK", x, t.size_of(x, 0), axis=0, many=True)[0]


_NO_BATCHES = (
    "first four|weights of each item|numbers of items|half of the number|greatest item|between items|merged mean|"
    "sorted items"
)
for _what in _NO_BATCHES.split("|"):
    # A constant of one item is the same for all items.
    _sizes = ((3, 5),) if _what in ("weights of each item", "numbers of items") else ((1, 4), (3, 5))
    family(olds("NT", *_sizes), mixes=True, label=f"no batch/{_what}", ask="N", refuse="N")(
        partial(_no_batch, what=_what)
    )


# Items that are taken apart and put together again, as the numbers of the items say: this is a batch.


def _all_items(t: Tape, N: int, T: int, what: str) -> Value:
    x = t.input("x", "N", "T", 3)
    if what == "picked in order":
        return t.gather(x, np.arange(N), 0)
    if what == "picked by a range":
        count = t.record(
            "Range", [t.constant(0), t.squeeze(t.size_of(x, 0), 0), t.constant(1)], [np.arange(N)], many=False
        )
        return t.gather(x, count, 0)
    if what == "last of each":
        rows = t.constant(np.stack([np.arange(N), np.full(N, 1)], 1))
        return t.op("GatherND", x, rows)
    if what == "sliced whole":
        return t.slice(x, 0, 0, N)
    if what == "expanded to the number":
        one = t.reduce("ReduceMean", x, 1)
        return t.op("Concat", t.expand(t.weight(1, 1, 3), N, 1, 3), one, axis=1)
    assert what == "two inputs"
    return x + t.unsqueeze(t.input("z", "N", 3), 1)


_ITEMS = "picked in order|picked by a range|last of each|sliced whole|expanded to the number|two inputs"
for _what in _ITEMS.split("|"):
    family(olds("NT", (1, 4), (3, 5)), label=f"batch/{_what}", fits=lambda s: s["T"] > 1)(
        partial(_all_items, what=_what)
    )
