"""Nodes of one model that compute the same are one value: pairs of models that share a node, and that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference
from .test_find import told

F, I64 = np.float32, np.int64
LINE, TWO = "float[N, 4] x => float[N, 4] y", "float[N, 4] x => float[N, 4] y, float[N, 4] z"
CHOICE_LINE = "bool g, float[N, 4] x => float[N, 4] y"
K: dict[str, Any] = {"c": F(2), "c2": F(2), "c3": F(3), "w": np.eye(4, dtype=F), "w2": np.eye(4, dtype=F)}
K |= {"ax": I64([-1]), "eps": F(1e-5), "n": I64(3), "t": np.bool_(True), "i": I64([0, 2]), "zero": np.uint8(128)}
ONE = [[1, 2, 3, 4]]
CALL = '<opset_import: ["": 18], domain: "local"> f (a) => (b) { s = Sin(a) b = Exp(s) }'
RANDOM = '<opset_import: ["": 18], domain: "local"> f (a) => (b) { s = RandomNormalLike(a) b = Exp(s) }'


def pair(before: str, after: str, signature: str = LINE, **options: Any) -> Pair:
    return Pair(signature, before, after, {}, K, **options)


# Nodes that are not the same stay two: each pair differs.
APART = {
    "another attribute": "a = Softmax<axis = 0>(x) b = Softmax<axis = 1>(x) y = Sub(a, b)",
    "another constant": "a = Mul(x, c) b = Mul(x, c3) y = Sub(a, b)",
    "another order of inputs": "a = Sub(x, c) b = Sub(c, x) y = Sub(a, b)",
    "another input": "m = Neg(x) a = Sin(x) b = Sin(m) y = Sub(a, b)",
    "another output of one node": "a, b = Split<num_outputs = 2, axis = 1>(x) d = Sub(a, b) y = Concat<axis = 1>(d, d)",
    "another body": (
        "g = ReduceMax<keepdims = 0>(x) h = Less(g, c) a = If(h) <then_branch = t () => (float[N, 4] p) "
        "{ p = Neg(x) }, else_branch = e () => (float[N, 4] q) { q = Abs(x) }> b = If(h) <then_branch = u () => "
        "(float[N, 4] r) { r = Neg(x) }, else_branch = f () => (float[N, 4] s) { s = Exp(x) }> y = Sub(a, b)"
    ),
}
STAY = {
    "numbers at random": pair("a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b)", "y = Neg(x)"),
    "with a seed": pair(
        "a = RandomNormalLike<seed = 1.0>(x) b = RandomNormalLike<seed = 1.0>(x) y = Sub(a, b)", "y = Neg(x)"
    ),
    "a function of them": pair("a = local.f(x) b = local.f(x) y = Sub(a, b)", "y = Neg(x)", functions=(RANDOM, "")),
    "Dropout in training": pair("a = Dropout(x, c, t) b = Dropout(x, c, t) y = Sub(a, b)", "y = Neg(x)"),
}
# The same twice, and once.
SAME = {
    "Add": pair("a = Sin(x) b = Sin(x) y = Add(a, b)", "a = Sin(x) y = Add(a, a)"),
    "the second one stays": pair("a = Sin(x) b = Sin(x) y = Mul(a, b)", "b = Sin(x) y = Mul(b, b)"),
    "Concat": pair(
        "a = Sin(x) b = Sin(x) q = Concat<axis = 1>(a, b) y = Gather<axis = 1>(q, i)",
        "a = Sin(x) q = Concat<axis = 1>(a, a) y = Gather<axis = 1>(q, i)",
        "float[N, 4] x => float[N, 2] y",
    ),
    "three of them": pair("a = Sin(x) b = Sin(x) s = Sin(x) y = Sum(a, b, s)", "a = Sin(x) y = Sum(a, a, a)"),
    "chains": pair("a = Sin(x) b = Sin(x) d = Exp(a) f = Exp(b) y = Sub(d, f)", "a = Sin(x) d = Exp(a) y = Sub(d, d)"),
    "a norm": pair(
        "m = ReduceMean(x, ax) d = Sub(x, m) f = Sub(x, m) q = Mul(d, f) v = ReduceMean(q, ax) s = Add(v, eps) "
        "r = Sqrt(s) y = Div(d, r)",
        "m = ReduceMean(x, ax) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, ax) s = Add(v, eps) r = Sqrt(s) "
        "y = Div(d, r)",
    ),
    "a constant under two names": pair("a = Mul(x, c) b = Mul(x, c2) y = Sub(a, b)", "a = Mul(x, c) y = Sub(a, a)"),
    "a weight under two names": pair(
        "a = MatMul(x, w) b = MatMul(x, w2) y = Mul(a, b)", "a = MatMul(x, w) y = Mul(a, a)"
    ),
    "a Constant node and an initializer": pair(
        "k = Constant<value = float {2.0}>() a = Mul(x, k) b = Mul(x, c) y = Sub(a, b)",
        "a = Mul(x, c) y = Sub(a, a)",
    ),
    "quantized twice": pair(
        "a = QuantizeLinear(x, c, zero) b = QuantizeLinear(x, c2, zero) f = DequantizeLinear(a, c, zero) "
        "h = DequantizeLinear(b, c, zero) y = Add(f, h)",
        "a = QuantizeLinear(x, c, zero) f = DequantizeLinear(a, c, zero) y = Add(f, f)",
    ),
    "a name of a caller": pair("y = Sin(x) b = Sin(x) z = Mul(y, b)", "y = Sin(x) z = Mul(y, y)", TWO),
    "a name of a caller at the second one": pair(
        "b = Sin(x) y = Sin(x) z = Mul(y, b)", "y = Sin(x) z = Mul(y, y)", TWO
    ),
    "two names of a caller": pair("y = Sin(x) z = Sin(x)", "y = Sin(x) z = Identity(y)", TWO),
    "several outputs": pair(
        "a, b = Split<axis = 1, num_outputs = 2>(x) d, f = Split<axis = 1, num_outputs = 2>(x) "
        "y = Concat<axis = 1>(a, f)",
        "a, b = Split<axis = 1, num_outputs = 2>(x) y = Concat<axis = 1>(a, b)",
    ),
    "calls of a function": pair(
        "a = local.f(x) b = local.f(x) y = Sub(a, b)", "a = local.f(x) y = Sub(a, a)", functions=(CALL, CALL)
    ),
    "what a branch reads": pair(
        "a = Sin(x) b = Sin(x) y = If(g) <then_branch = t () => (float[N, 4] p) { p = Add(a, b) }, "
        "else_branch = e () => (float[N, 4] q) { q = Sub(a, b) }>",
        "a = Sin(x) y = If(g) <then_branch = t () => (float[N, 4] p) { p = Add(a, a) }, "
        "else_branch = e () => (float[N, 4] q) { q = Sub(a, a) }>",
        CHOICE_LINE,
    ),
    "two loops": pair(
        "a = Loop(n, t, x) <body = l (int64 i, bool on, float[N, 4] s) => (bool go, float[N, 4] r) "
        "{ go = Identity(on) r = Sin(s) }> b = Loop(n, t, x) <body = m (int64 j, bool of, float[N, 4] u) => "
        "(bool no, float[N, 4] v) { no = Identity(of) v = Sin(u) }> y = Mul(a, b)",
        "a = Loop(n, t, x) <body = l (int64 i, bool on, float[N, 4] s) => (bool go, float[N, 4] r) "
        "{ go = Identity(on) r = Sin(s) }> y = Mul(a, a)",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_nodes_that_are_not_the_same(name: str) -> None:
    text = APART[name]
    # The last Sub gives 0 only if both were taken for one.
    models = pair(text, text.replace("Sub(a, b)", "Sub(a, a)"))
    shown = models._replace(witness={"x": ONE * 2})
    show_difference(shown)
    find_difference(shown)


@pytest.mark.parametrize("name", STAY)
def test_nodes_that_may_draw_numbers_are_not_merged(name: str) -> None:
    (text,) = told(STAY[name])
    # Both of them, and the Sub.
    assert len(text.split(" > ")[0].split()) == 3


@pytest.mark.parametrize("name", SAME)
def test_what_is_computed_twice_and_once(name: str) -> None:
    models = SAME[name].models()
    assert splitgraph.verify(*models).verdict == "equal"
    assert splitgraph.verify(*reversed(models)).verdict == "equal"


def test_no_region_is_left_of_nodes_that_are_one() -> None:
    assert told(SAME["a norm"]) == []
    assert told(SAME["a name of a caller at the second one"]) == []
    assert told(SAME["what a branch reads"]) == []
