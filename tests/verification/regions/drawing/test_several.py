"""Models that differ where several elements are certain numbers at once, or by where the greatest element is."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
FOUR, TEXTS = "float[4] x => float[4] y", "string[N] x, string[N] w => bool[N] y"
PLACES = {"i": I64(0), "j": I64(1), "k": I64(2)}
TWO = "a = Gather(x, i) b = Gather(x, j) e = {}(a, c) f = {}(b, d) g = And(e, f)"
FAR = {"c": F(777), "d": F(345)}
TURNED = "n = Neg(x) y = Where(g, x, n)"
LONG = "float[1000] x => float[1000] y"
ROW = "float[1, 1000] x => int64[1] y"


def object_of(text: str) -> np.ndarray:
    return np.array(text, dtype=object)


def one_of_many(place: int) -> np.ndarray:
    return np.eye(1, 1000, place, dtype=np.float32)


DIFFERENT = {
    "two elements": Pair(
        FOUR, "y = Neg(x)", f"{TWO.format('Equal', 'Equal')} {TURNED}", {"x": [777, 345, 0, 0]}, PLACES | FAR
    ),
    "two elements beyond limits": Pair(
        FOUR,
        "y = Neg(x)",
        f"{TWO.format('Greater', 'Less')} {TURNED}",
        {"x": [778, -346, 0, 0]},
        PLACES | FAR | {"d": F(-345)},
    ),
    "two elements of a square": Pair(
        "float[3, 3] x => float[3, 3] y",
        "y = Neg(x)",
        f"l = Reshape(x, s) {TWO.format('Equal', 'Equal').replace('(x,', '(l,')} {TURNED}",
        {"x": [[0, 777, 345], [0, 0, 0], [0, 0, 0]]},
        {"i": I64(1), "j": I64(2), "s": I64([-1]), **FAR},
    ),
    "two whole numbers": Pair(
        "int64[4] x => int64[4] y",
        "y = Neg(x)",
        f"{TWO.format('Equal', 'Equal')} {TURNED}",
        {"x": [777, 345, 0, 0]},
        PLACES | {"c": I64(777), "d": I64(345)},
    ),
    "three elements": Pair(
        FOUR,
        "y = Neg(x)",
        f"{TWO.format('Equal', 'Equal').replace('g =', 'h =')} p = Gather(x, k) q = Equal(p, o) g = And(h, q) {TURNED}",
        {"x": [777, 345, 99, 0]},
        PLACES | FAR | {"o": F(99)},
    ),
    "another number at the second element": Pair(
        FOUR,
        f"{TWO.format('Equal', 'Equal')} {TURNED}",
        f"{TWO.format('Equal', 'Equal')} {TURNED}",
        {"x": [777, 345, 0, 0]},
        PLACES | FAR,
        {"d": F(346)},
    ),
    "a position of a long axis": Pair(
        LONG,
        "y = Neg(x)",
        f"a = ArgMax<keepdims = 0>(x) g = Equal(a, c) {TURNED}",
        {"x": one_of_many(700)[0]},
        {"c": I64(700)},
    ),
    "positions behind a limit": Pair(
        ROW,
        "y = ArgMax<axis = 1, keepdims = 0>(x)",
        "a = ArgMax<axis = 1, keepdims = 0>(x) y = Min(a, c)",
        {"x": one_of_many(990)},
        {"c": I64([900])},
    ),
    "a position of the least": Pair(
        ROW,
        "y = ArgMin<axis = 1, keepdims = 0>(x)",
        "a = ArgMin<axis = 1, keepdims = 0>(x) g = Equal(a, c) y = Where(g, d, a)",
        {"x": -one_of_many(700)},
        {"c": I64([700]), "d": I64([7])},
    ),
    "a position of TopK": Pair(
        "float[1, 1000] x => int64[1, 1] y",
        "v, y = TopK(x, k)",
        "v, a = TopK(x, k) g = Equal(a, c) y = Where(g, d, a)",
        {"x": one_of_many(700)},
        {"c": I64(700), "d": I64(701), "k": I64([1])},
    ),
    "two texts": Pair(
        TEXTS,
        "y = Equal(x, w)",
        "a = Equal(x, w) e = Equal(x, c) f = Equal(w, d) g = And(e, f) y = Xor(a, g)",
        {"x": ["foo"], "w": ["bar"]},
        {"c": object_of("foo"), "d": object_of("bar")},
    ),
    "a text in its third form": Pair(
        "string[N] x => string[M] y",
        'y = StringNormalizer<is_case_sensitive = 1, stopwords = ["monday", "MONDAY"]>(x)',
        'y = StringNormalizer<is_case_sensitive = 0, stopwords = ["monday"]>(x)',
        {"x": ["Monday"]},
    ),
    "two texts of one input": Pair(
        "string[3] x => bool[3] y",
        "y = Equal(x, o)",
        f"z = Equal(x, o) {TWO.format('Equal', 'Equal')} y = Xor(z, g)",
        {"x": ["foo", "bar", ""]},
        PLACES | {"c": object_of("foo"), "d": object_of("bar"), "o": object_of("far")},
    ),
}

EQUAL = {
    "two elements in another order": Pair(
        FOUR,
        f"{TWO.format('Equal', 'Equal')} {TURNED}",
        f"{TWO.format('Equal', 'Equal').replace('And(e, f)', 'And(f, e)')} {TURNED}",
        {},
        PLACES | FAR,
    ),
    "two numbers that one element cannot be": Pair(
        FOUR, "y = Neg(x)", f"{TWO.format('Equal', 'Equal')} {TURNED}", {}, {"i": I64(1), "j": I64(1), **FAR}
    ),
    "a position beyond the axis": Pair(
        ROW,
        "y = ArgMax<axis = 1, keepdims = 0>(x)",
        "a = ArgMax<axis = 1, keepdims = 0>(x) y = Min(a, c)",
        {},
        {"c": I64([999])},
    ),
    "a position by TopK": Pair(
        "float[1, 1000] x => int64[1, 1] y",
        "v, a = TopK(x, k) y = Min(a, c)",
        "a = ArgMax<axis = 1>(x) y = Min(a, c)",
        {},
        {"k": I64([1]), "c": I64([700])},
    ),
    "texts in another order": Pair(TEXTS, "y = Equal(x, w)", "y = Equal(w, x)"),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_several_elements_show_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_several_elements_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found
