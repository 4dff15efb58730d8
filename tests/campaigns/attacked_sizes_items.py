"""Cases that take, count, order and mask the items of an axis: slices, rolls, flips, tables, triangles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from attacked_sizes_cases import family, forms, olds
from attacked_sizes_tape import Tape, Value

_C = 3
_NT = olds("NT", (1, 7), (2, 5))


def _given(t: Tape) -> Value:
    return t.input("x", "N", "T", _C)


# Slices and shifts.


def _slices(t: Tape, N: int, T: int, what: str) -> Value:
    x = _given(t)
    if what == "all":
        return t.relu(t.slice(x, 1, 0, T))
    if what == "last by slice":
        return t.slice(x, 1, T - 1, T)
    if what == "last by minus one":
        return t.slice(x, 1, -1, None)
    if what == "but the last":
        return t.slice(x, 1, 0, T - 1)
    if what == "but the first":
        return t.slice(x, 1, 1, T)
    if what == "differences":
        return t.slice(x, 1, 1, T) - t.slice(x, 1, 0, T - 1)
    if what == "differences by minus one":
        return t.slice(x, 1, 1, None) - t.slice(x, 1, 0, -1)
    if what == "shift":
        return t.op("Concat", t.slice(x, 1, 1, T), t.slice(x, 1, 0, 1), axis=1)
    if what == "shift back":
        return t.op("Concat", t.slice(x, 1, T - 1, T), t.slice(x, 1, 0, T - 1), axis=1)
    if what == "shift and add":
        return t.op("Concat", t.slice(x, 1, T - 1, T), t.slice(x, 1, 0, T - 1), axis=1) + x
    if what == "flip":
        return t.slice(x, 1, T - 1, None, -1)
    if what == "flip by minus one":
        return t.slice(x, 1, -1, None, -1)
    if what == "every second":
        return t.slice(x, 1, 0, T, 2)
    if what == "padded and cut":
        return x + t.slice(t.pad(x, 1, 2, 0), 1, 0, T)
    if what == "padded behind and cut":
        return x + t.slice(t.pad(x, 1, 0, 2), 1, 2, T + 2)
    assert what == "causal convolution"
    turned = t.pad(t.transpose(x, 0, 2, 1), 2, 2, 2)
    maps = t.op("Conv", turned, t.weight(_C, _C, 3))
    return x + t.transpose(t.slice(maps, 2, 0, T), 0, 2, 1)


_SLICES = (
    "all|last by slice|last by minus one|but the last|but the first|differences|differences by minus one|shift|"
    "shift back|shift and add|flip|flip by minus one|every second|padded and cut|padded behind and cut|"
    "causal convolution"
)
_ALSO_FITS = ("but the last", "shift back", "shift and add", "flip")


def _old_slices(t: Tape, N: int, T: int, what: str, old: int) -> Value:
    """What slices give if a number stays; a sum needs as many items as there are."""
    x = _given(t)
    if what == "but the last":
        return t.slice(x, 1, 0, old - 1)
    if what == "flip":
        return t.slice(x, 1, old - 1, None, -1)
    found = t.op("Concat", t.slice(x, 1, old - 1, T), t.slice(x, 1, 0, old - 1), axis=1)
    return found + x if what == "shift and add" else found


for _what in _SLICES.split("|"):
    for _old in (*_NT, {"N": 2, "T": 6}):
        _named = "N" if _old["T"] == 6 else ""
        _asks = _what in _ALSO_FITS
        family(
            [_old],
            forms(named=_named, opsets=(17,) if _named or "flip" in _what or "second" in _what else (9, 17)),
            [partial(_old_slices, what=_what, old=_old["T"])] if _asks else [],
            ask="T" if _asks or _what == "last by slice" else "",
            label=f"slice/{_what}",
            fits=lambda s: s["T"] > 2,
        )(partial(_slices, what=_what))


def _padded(t: Tape, N: int, T: int, end: Any) -> Value:
    return t.slice(t.pad(_given(t), 1, 1, 2), 1, 0, end(T))


def _half(t: Tape, N: int, T: int, end: Any) -> Value:
    return t.slice(_given(t), 1, 0, end(T))


def _rolled(t: Tape, N: int, T: int, at: Any) -> Value:
    x = _given(t)
    return t.op("Concat", t.slice(x, 1, at(T), T), t.slice(x, 1, 0, at(T)), axis=1)


def _long(least: int) -> Any:
    return lambda sizes: sizes["T"] >= least


# Two readings: the end may follow, or stay.
family(
    olds("NT", (1, 7)),
    forms(opsets=(9, 17)),
    [partial(_padded, end=lambda T: 7)],
    ask="T",
    label="cut behind a pad",
    fits=_long(7),
)(partial(_padded, end=lambda T: T))
for _k, _ends in (
    (4, (lambda T: 4, lambda T: T // 2, lambda T: T - 4)),
    (3, (lambda T: 3, lambda T: T // 2 - 1, lambda T: T - 5)),
):
    family(
        olds("NT", (1, 8), (2, 8)),
        forms(),
        [partial(_half, end=end) for end in _ends[1:]],
        ask="T",
        label=f"first part/{_k}",
        fits=lambda s: s["T"] >= 8 and s["T"] % 2 == 0,
    )(partial(_half, end=_ends[0]))
for _k in (2, 4, 5):
    family(
        olds("NT", (1, 7), (2, 7)),
        forms(),
        [partial(_rolled, at=lambda T, k=_k: T - 7 + k)],
        ask="T",
        label=f"roll/{_k}",
        fits=_long(7),
    )(partial(_rolled, at=lambda T, k=_k: k))


# Items by number.


def _items(t: Tape, N: int, T: int, what: str) -> Value:
    x = _given(t)
    if what == "first":
        return t.gather(x, 0, 1)
    if what == "last":
        return t.gather(x, T - 1, 1)
    if what == "last, listed":
        return t.gather(x, [T - 1], 1)
    if what == "last, from the end":
        return t.gather(x, -1, 1)
    if what == "both ends":
        return t.gather(x, [0, T - 1], 1)
    if what == "all":
        return t.gather(x, np.arange(T), 1)
    if what == "all and added":
        return t.gather(x, np.arange(T), 1) + x
    if what == "flip":
        return t.gather(x, np.arange(T)[::-1], 1)
    if what == "flip and added":
        return t.gather(x, np.arange(T)[::-1], 1) + x
    if what == "flip by numbers from the end":
        return t.gather(x, -1 - np.arange(T), 1)
    if what == "elements":
        return t.op("GatherElements", x, t.constant(np.broadcast_to(np.arange(T)[::-1, None], (N, T, _C))), axis=1)
    if what == "reversed lengths":
        return t.op("ReverseSequence", x, t.constant([T] * N), batch_axis=0, time_axis=1)
    if what == "scatter into the last":
        indices = t.constant(np.full((N, 1, _C), T - 1))
        return t.op("ScatterElements", x, indices, t.relu(t.slice(x, 1, 0, 1)), axis=1)
    if what == "pairs of indices":
        rows, columns = np.meshgrid(np.arange(N), np.arange(T), indexing="ij")
        return t.op("GatherND", x, t.constant(np.stack([rows, columns], -1)))
    if what == "argmax":
        return t.op("ArgMax", x, axis=1)
    assert what == "lookup"
    return t.gather(x, t.input("i", 2, below=1), 1)


_ITEMS = (
    "first|last|last, listed|last, from the end|both ends|all|all and added|flip|flip and added|"
    "flip by numbers from the end|elements|reversed lengths|scatter into the last|pairs of indices|argmax|lookup"
)
for _what in _ITEMS.split("|"):
    family(
        _NT,
        forms(nodes=_what == "last"),
        ask="T" if _what in ("last", "last, listed", "both ends", "scatter into the last", "reversed lengths") else "",
        refuse="T" if _what == "flip by numbers from the end" else "",
        label=f"items/{_what}",
        fits=_long(2),
    )(partial(_items, what=_what))
    if _what not in ("elements", "reversed lengths", "scatter into the last", "pairs of indices"):
        family(
            olds("NT", (2, 6)),
            forms(named="N"),
            ask="T" if _what in ("last", "last, listed", "both ends") else "",
            refuse="T" if _what == "flip by numbers from the end" else "",
            label=f"items/named/{_what}",
            fits=_long(2),
        )(partial(_items, what=_what))


def _middle(t: Tape, N: int, T: int, at: Any) -> Value:
    return t.gather(_given(t), at(T), 1)


for _ends in ((lambda T: 3, lambda T: T // 2, lambda T: T - 4, lambda T: (T - 1) // 2),):
    family(
        olds("NT", (1, 7), (2, 7)),
        forms(),
        [partial(_middle, at=at) for at in _ends[1:]],
        ask="T",
        label="items/middle",
        fits=_long(7),
    )(partial(_middle, at=_ends[0]))


# Tables, counts and masks.


def _tables(t: Tape, N: int, T: int, what: str) -> Value:
    x = _given(t)
    if what == "a longer table":
        return x + t.slice(t.weight(64, _C), 0, 0, T)
    if what == "a longer table with an item axis":
        return x + t.slice(t.weight(1, 64, _C), 1, 0, T)
    if what == "looked up":
        return x + t.gather(t.weight(64, _C), np.arange(T), 0)
    if what == "looked up in rows":
        return x + t.gather(t.weight(64, _C), np.arange(T)[None], 0)
    if what == "looked up and expanded":
        return x + t.gather(t.weight(64, _C), np.tile(np.arange(T), (N, 1)), 0)
    if what == "counted back":
        return x + t.gather(t.weight(64, _C), np.arange(T)[::-1], 0)
    if what == "steps":
        return x + t.constant(np.arange(T)[None, :, None], "f4")
    if what == "steps to zero":
        return x * t.constant(np.arange(T)[::-1][None, :, None].copy(), "f4")
    if what == "a range":
        return x + t.unsqueeze(t.cast(t.count_to(T), "f4"), 0, 2)
    if what == "ones":
        return x * t.constant(np.full((1, T, 1), 2.0), "f4")
    if what == "zeros for each item":
        return t.op("Concat", x, t.constant(np.zeros((N, T, 1)), "f4"), axis=2)
    if what == "filled":
        return t.op("Concat", x, t.filled(N, T, 2, element=1.5), axis=2)
    if what == "a token in front":
        return t.softmax(t.op("Concat", t.expand(t.weight(1, 1, _C), N, 1, _C), x, axis=1), 1)
    if what == "a token of weights":
        return t.op("Concat", t.constant(np.full((N, 1, _C), 0.5), "f4"), x, axis=1)
    if what == "a mean over all, expanded":
        return t.expand(t.reduce("ReduceMean", x, 1), N, T, _C) + x
    if what == "a mean over all, tiled":
        return t.op("Tile", t.reduce("ReduceMean", x, 1), t.constant([1, T, 1])) + x
    if what == "a mean over all, joined":
        return t.op("Concat", x, t.expand(t.reduce("ReduceMax", x, 1), N, T, _C), axis=2)
    if what == "one hot":
        return (
            t.op("OneHot", t.input("i", "N", "T", below=4), t.constant(4), t.constant([0, 1], "f4")) @ t.weight(4, _C)
            + x
        )
    if what == "one hot of steps":
        hot = t.op("OneHot", t.constant(np.arange(T)), t.constant(T), t.constant([0, 1], "f4"))
        return hot @ x
    if what == "sums of all before":
        return t.constant(np.tri(T), "f4") @ x
    if what == "sorted":
        turned = t.transpose(x, 0, 2, 1)
        return t.op("TopK", turned, t.constant([T]), many=True)[0] + turned
    if what == "greatest three":
        return t.op("TopK", x, t.constant([3]), axis=1, many=True)[0]
    assert what == "a counter that is compared"
    return t.op("Where", t.op("Less", t.constant(np.arange(T)[None, :, None], "f4"), 2.5), x, 0.0)


_TABLES = (
    "a longer table|a longer table with an item axis|looked up|looked up in rows|looked up and expanded|counted back|"
    "steps|steps to zero|a range|ones|zeros for each item|filled|a token in front|a token of weights|"
    "a mean over all, expanded|a mean over all, tiled|a mean over all, joined|one hot|one hot of steps|"
    "sums of all before|sorted|greatest three|a counter that is compared"
)
for _what in _TABLES.split("|"):
    family(_NT, forms(nodes=_what == "looked up"), label=f"table/{_what}", fits=_long(3))(partial(_tables, what=_what))
    if _what not in (
        "looked up and expanded",
        "zeros for each item",
        "filled",
        "a token in front",
        "a token of weights",
        "a mean over all, expanded",
        "a mean over all, joined",
    ):
        family(olds("NT", (2, 4)), forms(named="N"), label=f"table/named/{_what}", fits=_long(3))(
            partial(_tables, what=_what)
        )


@family(_NT, forms(), stuck="T")
def a_table_that_was_cut(t: Tape, N: int, T: int) -> Value:
    return _given(t) + t.weight(1, T, _C)


@family(olds("NT", (1, 6), (2, 8)), forms(), stuck="T")
def a_table_of_waves(t: Tape, N: int, T: int) -> Value:
    return _given(t) + t.constant(np.sin(np.arange(T)[:, None] * [1.0, 0.1, 0.01]), "f4")


def _masks(t: Tape, N: int, T: int, what: str) -> Value:
    x = t.input("x", "N", "T", 4)
    scores = x @ t.transpose(x, 0, 2, 1)
    lower = np.tri(T, dtype=bool)
    if what == "where":
        scores = t.op("Where", t.constant(lower, bool), scores, -1e9)
    elif what == "where, turned":
        scores = t.op("Where", t.constant(~lower, bool), t.constant(-1e9, "f4"), scores)
    elif what == "added":
        scores = scores + t.constant(np.where(lower, 0, -1e9), "f4")
    elif what == "added with axes":
        scores = t.squeeze(t.unsqueeze(scores, 1) + t.constant(np.where(lower, 0, -1e9)[None, None], "f4"), 1)
    elif what == "multiplied":
        scores = scores * t.constant(lower, "f4")
    elif what == "upper":
        scores = scores * t.constant(np.triu(np.ones((T, T))), "f4")
    elif what == "strictly lower":
        scores = scores * t.constant(np.tri(T, k=-1), "f4")
    elif what == "band":
        scores = scores * t.constant(np.tri(T, k=1), "f4")
    elif what == "trilu":
        scores = t.op("Trilu", scores, upper=0)
    elif what == "diagonal":
        scores = scores * t.constant(np.eye(T), "f4")
    elif what == "cut from a longer one":
        longer = t.constant(np.tri(64, dtype=bool), bool)
        scores = t.op("Where", t.slice(t.slice(longer, 0, 0, T), 1, 0, T), scores, -1e9)
    elif what == "rows and columns":
        steps = t.constant(np.arange(T))
        seen = t.op("Not", t.op("Greater", t.unsqueeze(steps, 0), t.unsqueeze(steps, 1)))
        scores = t.op("Where", seen, scores, -1e9)
    elif what == "of lengths":
        lengths = t.input("lengths", "N", 1, below=4)
        seen = t.op("Not", t.op("Less", lengths, t.constant(np.arange(T)[None])))
        scores = t.op("Where", t.unsqueeze(seen, 1), scores, -1e9)
    elif what == "given":
        scores = scores + t.unsqueeze(t.input("mask", "N", "T"), 1)
    elif what == "given, expanded":
        mask = t.expand(t.unsqueeze(t.input("mask", "N", "T"), 1), N, T, T)
        scores = scores + mask
    return t.softmax(scores) @ x


_MASKS = (
    "where|where, turned|added|added with axes|multiplied|upper|strictly lower|band|trilu|diagonal|"
    "cut from a longer one|rows and columns|of lengths|given|given, expanded"
)
for _what in _MASKS.split("|"):
    family(
        olds("NT", (1, 6), (2, 5)), forms(), label=f"mask/{_what}", refuse="T" if _what in ("diagonal", "band") else ""
    )(partial(_masks, what=_what))
    if _what != "given, expanded":
        family(
            olds("NT", (2, 5)),
            forms(named="N"),
            label=f"mask/named/{_what}",
            refuse="T" if _what in ("diagonal", "band") else "",
        )(partial(_masks, what=_what))


def _relative(t: Tape, N: int, T: int, what: str) -> Value:
    x = t.input("x", "N", "T", 4)
    scores = x @ t.transpose(x, 0, 2, 1)
    i, j = np.arange(T)[:, None], np.arange(T)[None]
    if what == "distances":
        return t.softmax(scores + t.constant(j - i, "f4"))
    if what == "to the last":
        return t.softmax(scores + t.constant(j - (T - 1), "f4"))
    if what == "to the first":
        return t.softmax(scores + t.constant(-j, "f4"))
    assert what == "from one to T"
    return t.softmax(scores * t.constant(j + 1, "f4"))


for _what in ("distances", "to the last", "to the first", "from one to T"):
    family(
        olds("NT", (1, 6), (2, 5)),
        forms(),
        label=f"relative/{_what}",
        refuse="" if _what == "to the last" else "T",
        fits=_long(2),
    )(partial(_relative, what=_what))


# Numbers that are no size, and numbers that may be one.


def _expanded(t: Tape, N: int, T: int, count: Any) -> Value:
    return t.expand(t.reduce("ReduceMean", _given(t), 1), N, count(T), _C)


def _repeated(t: Tape, N: int, T: int, count: Any) -> Value:
    return t.op("Tile", t.reduce("ReduceMean", _given(t), 1), t.constant([1, count(T), 1]))


def _longest(t: Tape, N: int, T: int, count: Any) -> Value:
    return t.op("TopK", _given(t), t.constant([count(T)]), axis=1, many=True)[0]


def _hot(t: Tape, N: int, T: int, count: Any) -> Value:
    i = t.op("ArgMax", _given(t), axis=1, keepdims=0)
    return t.op("OneHot", i, t.constant(count(T)), t.constant([0, 1], "f4"))


def _turned(t: Tape, N: int, T: int, count: Any) -> Value:
    return t.op("ReverseSequence", _given(t), t.constant([count(T)] * N), batch_axis=0, time_axis=1)


def _counted(t: Tape, N: int, T: int, count: Any) -> list[Value]:
    return [t.relu(_given(t)), t.count_to(count(T))]


def _made(t: Tape, N: int, T: int, count: Any) -> list[Value]:
    return [t.relu(_given(t)), t.filled(count(T), 2, element=1.0)]


def _turns(t: Tape, N: int, T: int, count: Any) -> Value:
    return t.loop(count(T), lambda inner, state, number: inner.op("Tanh", state + 0.5), _given(t))


for _label, _program in {
    "expand": _expanded,
    "tile": _repeated,
    "topk": _longest,
    "onehot": _hot,
    "reversesequence": _turned,
    "range": _counted,
    "constantofshape": _made,
    "loop": _turns,
}.items():
    for _old in _NT:
        family(
            [_old],
            forms(),
            [partial(_program, count=lambda T: T)],
            ask="T",
            label=f"either/{_label}",
            fits=_long(_old["T"]),
        )(partial(_program, count=lambda T, old=_old["T"]: old))
