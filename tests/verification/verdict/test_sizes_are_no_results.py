"""Two models may say a size in other numbers: what the nodes make of them is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitgraph

from ..regions.model_pairs import Pair, find_difference, show_difference

I64 = np.int64
K: dict[str, Any] = {
    "zero": I64([0]),
    "one": I64([1]),
    "two": I64([2]),
    "three": I64([3]),
    "four": I64([4]),
    "minus": I64([-1]),
    "eight": I64([8]),
    "far": I64([99]),
    "s0": I64(0),
}
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
THREE, FLAT = "float[2, 3, 4] x => float[?, ?, ?] y", "float[N, 3, 4] x => float[?, ?] y"
SHAPE = "s = Shape(x) a = Gather(s, zero) b = Gather(s, one) c = Gather(s, two) "


def put_together(*entries: str, reader: str = "y = Reshape(x, t)") -> str:
    """Return nodes that read a list of sizes, put together from some values."""
    return f"{SHAPE} t = Concat <axis = 0> ({', '.join(entries)}) {reader}"


EXPAND = "r = ReduceSum(x, two) y = Expand(r, t)"
EQUAL = {
    "0 for the batch": Pair(FLAT, put_together("a", "minus"), put_together("zero", "minus"), {}, K),
    "a number for the rest": Pair(THREE, put_together("a", "four", "three"), put_together("a", "c", "minus"), {}, K),
    "another axis": Pair(THREE, put_together("a", "minus", "c"), put_together("minus", "b", "c"), {}, K),
    "a target of Expand": Pair(
        THREE, put_together("a", "b", "four", reader=EXPAND), put_together("one", "b", "four", reader=EXPAND), {}, K
    ),
    "two readers": Pair(
        THREE,
        put_together("a", "minus", "c", reader="u = Reshape(x, t) v = Neg(x) w = Reshape(v, t) y = Add(u, w)"),
        put_together("a", "b", "minus", reader="u = Reshape(x, t) v = Neg(x) w = Reshape(v, t) y = Add(u, w)"),
        {},
        K,
    ),
    "an end behind the data": Pair(
        THREE,
        SHAPE + "e = Add(c, one) y = Slice(x, one, e, two)",
        SHAPE + "e = Add(c, two) y = Slice(x, one, e, two)",
        {},
        K,
    ),
}
_SIZES_TOO = "float[2, 3, 4] x => float[?, ?, ?] y, int64[3] t"
DIFFERENT = {
    "the axes change places": Pair(THREE, put_together("a", "b", "c"), put_together("a", "c", "b"), {"x": X}, K),
    "an output of the model": Pair(
        _SIZES_TOO, put_together("a", "b", "c"), put_together("a", "b", "minus"), {"x": X}, K
    ),
    "a number that is data, too": Pair(
        "float[2, 3, 4] x => float[?, ?, ?] y, float[3] z",
        put_together("a", "b", "c", reader="y = Reshape(x, t) z = Cast <to = 1> (t)"),
        put_together("a", "b", "minus", reader="y = Reshape(x, t) z = Cast <to = 1> (t)"),
        {"x": X},
        K,
    ),
    "one more of the largest": Pair(
        "float[2, 3, 4] x => float[?, ?, ?] y",
        SHAPE + "k = Sub(c, one) y, i = TopK(x, k)",
        SHAPE + "k = Sub(c, two) y, i = TopK(x, k)",
        {"x": X},
        K,
    ),
    "an end within the data": Pair(
        THREE,
        SHAPE + "e = Sub(c, one) y = Slice(x, zero, e, two)",
        SHAPE + "e = Sub(c, two) y = Slice(x, zero, e, two)",
        {"x": X},
        K,
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_another_size_is_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("name", EQUAL)
def test_the_same_size_in_other_numbers_is_none(name: str, is_turned: bool) -> None:
    models = EQUAL[name].models()
    found = splitgraph.verify(*(reversed(models) if is_turned else models))
    assert found.verdict == "equal", found.first_difference
