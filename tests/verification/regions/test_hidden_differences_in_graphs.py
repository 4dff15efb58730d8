"""Models that differ in something hard to see: rare rows, small channels, faults behind a mask, bodies, odd sizes.

This file continues the table of `test_hidden_differences`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .model_pairs import Pair, find_difference, show_difference

F, I32, I64 = np.float32, np.int32, np.int64
LINE = "float[N] x => float[N] y"
THREE = "float[N, 3] x => float[N, 3] y"


def drawn(*shape: int) -> np.ndarray:
    """Return weights of a shape, the same at each call."""
    return np.random.default_rng(0).standard_normal(shape).astype(F)


def changed_at(array: np.ndarray, place: Any, number: float) -> np.ndarray:
    """Return a copy of an array with another number at one place."""
    copied = np.array(array)
    copied[place] = number
    return copied


def weights(
    signature: str, body: str, witness: dict[str, Any], name: str, at: Any, to: float, **constants: Any
) -> Pair:
    """Return two models with one text, whose initializer `name` has another number at one place."""
    return Pair(signature, body, body, witness, constants, {name: changed_at(constants[name], at, to)})


ROWS = {
    "one row of 50,000": weights(
        "int64[N] i => float[N, 2] y", "y = Gather(w, i)", {"i": [31415]}, "w", (31415, 1), 9, w=drawn(50_000, 2)
    ),
    "one column of 4,000": weights(
        "int64[N] i => float[3, N] y", "y = Gather<axis = 1>(w, i)", {"i": [2718]}, "w", (1, 2718), 9, w=drawn(3, 4000)
    ),
    "one entry of two axes": weights(
        "int64[N, 2] i => float[N] y", "y = GatherND(w, i)", {"i": [[17, 101]]}, "w", (17, 101), 9, w=drawn(200, 150)
    ),
    "one entry of GatherElements": weights(
        "int64[1, 900] i => float[1, 900] y",
        "y = GatherElements(w, i)",
        {"i": [[333] * 900]},
        "w",
        (333, 444),
        9,
        w=drawn(900, 900),
    ),
    "a row of a sum of tables": weights(
        "int64[N] i, int64[N] j => float[N, 2] y",
        "a = Gather(w, i) b = Gather(v, j) y = Add(a, b)",
        {"i": [0], "j": [6000]},
        "v",
        (6000, 0),
        9,
        w=drawn(5000, 2),
        v=drawn(7000, 2),
    ),
    "a row for one byte": weights(
        "uint8[N] x => float[N, 2] y",
        "i = Cast<to = 6>(x) y = Gather(w, i)",
        {"x": [200]},
        "w",
        (200, 1),
        9,
        w=drawn(256, 2),
    ),
    "a row from the end": Pair(
        "int64[N] i => float[N, 2] y",
        "y = Gather(w, i)",
        "j = Max(i, z) y = Gather(w, j)",
        {"i": [-1]},
        {"w": drawn(9, 2), "z": I64(0)},
    ),
    "OneHot from the end": Pair(
        "int64[N] i => float[N, 5] y",
        "y = OneHot(i, d, v)",
        "u = Unsqueeze(i, a) e = Equal(u, r) y = Cast<to = 1>(e)",
        {"i": [-1]},
        {"d": I64(5), "v": F([0, 1]), "a": I64([1]), "r": np.arange(5)},
    ),
    "a row under ScatterND": weights(
        "int64[N, 1] i, float[N] u, int64[M] j => float[M] y",
        "s = ScatterND(w, i, u) y = Gather(s, j)",
        {"i": [[1]], "u": [2], "j": [4321]},
        "w",
        4321,
        9,
        w=drawn(9000),
    ),
    "an id that is masked": weights(
        "int64[N] i => float[N] y",
        "g = Gather(w, i) e = Equal(i, c) z = Constant<value = float {0.0}>() y = Where(e, z, g)",
        {"i": [4712]},
        "c",
        (),
        4712,
        w=drawn(9000),
        c=I64(4711),
    ),
}

TINY = F([1, 1e-7, 1])
CHANNELS = {
    "a small column of MatMul": weights(
        "float[N, 4] x => float[N, 3] y",
        "y = MatMul(x, w)",
        {"x": [[0, 0, 1e6, 0]]},
        "w",
        (2, 1),
        3e-7,
        w=np.abs(drawn(4, 3)) * TINY,
    ),
    "a small channel of Conv": weights(
        "float[N, 1, 6] x => float[N, 3, 6] y",
        "y = Conv<kernel_shape = [1]>(x, w)",
        {"x": np.full((1, 1, 6), 1e6)},
        "w",
        (1, 0, 0),
        2e-7,
        w=TINY.reshape(3, 1, 1),
    ),
    "a small scale of BatchNormalization": weights(
        THREE,
        "y = BatchNormalization(x, s, b, m, v)",
        {"x": [[1e6, 1e6, 1e6]]},
        "s",
        1,
        2e-7,
        s=TINY,
        b=F([0, 0, 0]),
        m=F([0, 0, 0]),
        v=F([1, 1, 1]),
    ),
    "a small bias that grows": weights(
        THREE,
        "m = Mul(x, s) h = Add(m, b) y = Mul(h, g)",
        {"x": [[1, 1, 1]]},
        "b",
        1,
        2e-7,
        s=TINY,
        b=TINY,
        g=F([1, 1e7, 1]),
    ),
    "a small scale of DequantizeLinear that grows": weights(
        "int8[N, 3] x => float[N, 3] y",
        "z = Constant<value = int8[3] {0, 0, 0}>() d = DequantizeLinear<axis = 1>(x, s, z) y = Mul(d, g)",
        {"x": [[1, 1, 1]]},
        "s",
        1,
        2e-7,
        s=TINY,
        g=F([1, 1e7, 1]),
    ),
    "a zero point per axis": weights(
        "uint8[N, 3] x => float[N, 3] y",
        "y = DequantizeLinear<axis = 1>(x, s, z)",
        {"x": [[1, 1, 1]]},
        "z",
        2,
        127,
        s=F([1, 1, 0.01]),
        z=np.uint8([0, 0, 128]),
    ),
    "a weight of a million": weights(
        "float[N, 1000] x => float[N, 1000] y",
        "y = MatMul(x, w)",
        {"x": np.ones((1, 1000))},
        "w",
        (321, 654),
        0.5,
        w=drawn(1000, 1000) * F(0.03),
    ),
    "an int8 weight of a million": weights(
        "float[N, 1000] x => float[N, 1000] y",
        "d = DequantizeLinear(w, s) y = MatMul(x, d)",
        {"x": np.ones((1, 1000))},
        "w",
        (321, 654),
        100,
        w=np.zeros((1000, 1000), np.int8) + np.arange(1000, dtype=np.int8) % 7,
        s=F(0.01),
    ),
}

PLAIN = {"w": F([[1, 1], [1, -1]]), "v": F([[1], [1]])}
HIDDEN = {
    "a Relu that is always 0": weights(
        "float[N, 2] x => float[N, 1] y",
        "h = MatMul(x, w) a = Add(h, b) r = Relu(a) y = MatMul(r, v)",
        {"x": [[2e4, 0]]},
        "v",
        (1, 0),
        5,
        b=F([0, -1e4]),
        **PLAIN,
    ),
    "a column times 0": weights(
        "float[N, 2] x => float[N, 2] y",
        "h = MatMul(x, w) y = Mul(h, m)",
        {"x": [[3e38, 0]]},
        "w",
        (0, 1),
        4,
        m=F([1, 0]),
        w=PLAIN["w"],
    ),
    "a column times a gate": weights(
        "float[N, 2] x, float[1] g => float[N, 2] y",
        "h = MatMul(x, w) a = Sub(g, c) r = Relu(a) m = Concat<axis = 0>(o, r) y = Mul(h, m)",
        {"x": [[1, 0]], "g": [2e4]},
        "w",
        (0, 1),
        4,
        c=F(1e4),
        o=F([1]),
        w=PLAIN["w"],
    ),
    "behind Clip": weights(
        "float[N, 2] x => float[N, 2] y",
        "h = MatMul(x, w) a = Add(h, c) y = Clip(a, low, high)",
        {"x": [[-1e4, 0]]},
        "w",
        (0, 0),
        2,
        c=F(1e4),
        low=F(-1),
        high=F(1),
        w=PLAIN["w"],
    ),
    "behind Tanh": weights(
        THREE, "m = Mul(x, k) a = Add(m, c) y = Tanh(a)", {"x": [[-100, 0, 0]]}, "k", 0, 1.01, k=F([1, 1, 1]), c=F(100)
    ),
    "behind Sigmoid": weights(
        THREE,
        "m = Mul(x, k) a = Sub(m, c) y = Sigmoid(a)",
        {"x": [[0, 0, 200]]},
        "k",
        2,
        1.01,
        k=F([1, 1, 1]),
        c=F(200),
    ),
    "behind Max": weights(
        THREE, "m = Mul(x, k) y = Max(m, c)", {"x": [[1e6, 0, 0]]}, "k", 0, 2, k=F([1, 1, 1]), c=F(1e5)
    ),
    "behind Where": weights(
        "float[N] x, float[N] g => float[N] y",
        "m = Mul(x, k) b = Greater(g, c) y = Where(b, m, x)",
        {"x": [1], "g": [2e6]},
        "k",
        (),
        3,
        k=F(2),
        c=F(1e6),
    ),
    "behind a mask of 12 flags": Pair(
        "bool[N, 12] x => bool[N, 1] y",
        "i = Cast<to = 6>(x) m = ReduceMin(i, a) y = Cast<to = 9>(m)",
        "s = Slice(x, b, e, a) i = Cast<to = 6>(s) m = ReduceMin(i, a) y = Cast<to = 9>(m)",
        {"x": [[True] * 11 + [False]]},
        {"a": I64([1]), "b": I64([0]), "e": I64([11])},
    ),
    "behind Softmax": weights(
        "float[N, 3] x => float[N, 3] y",
        "m = Mul(x, k) a = Add(m, b) y = Softmax(a)",
        {"x": [[-1000, 1, 1]]},
        "k",
        2,
        2,
        k=F([1, 1, 1]),
        b=F([1000, 0, 0]),
    ),
    "behind ReduceMax": weights(
        "float[N, 3] x => float[N, 1] y",
        "m = Mul(x, k) a = Add(m, b) y = ReduceMax(a, axes)",
        {"x": [[0, 0, 2000]]},
        "k",
        2,
        2,
        k=F([1, 1, 1]),
        b=F([1000, 0, 0]),
        axes=I64([1]),
    ),
    "behind TopK": weights(
        "float[N, 3] x => float[N, 1] y",
        "m = Mul(x, k) a = Add(m, b) y, i = TopK(a, n)",
        {"x": [[0, 0, 2000]]},
        "k",
        2,
        2,
        k=F([1, 1, 1]),
        b=F([1000, 0, 0]),
        n=I64([1]),
    ),
    "behind ArgMax": weights(
        "float[N, 3] x => int64[N, 1] y",
        "m = Mul(x, k) y = ArgMax<axis = 1>(m)",
        {"x": [[1.00005, 1, 0]]},
        "k",
        1,
        1.0001,
        k=F([1, 1, 1]),
    ),
    "behind Floor": weights(
        THREE, "m = Mul(x, k) y = Floor(m)", {"x": [[0, 1.5e6, 0]]}, "k", 1, 1.4e-6, k=F([1, 1e-6, 1])
    ),
}

BRANCH = (
    "If(g) <then_branch = t () => (float[N] a) {{ k = Constant<value = float {{{number}}}>() a = Mul(x, k) }}, "
    "else_branch = e () => (float[N] b) {{ b = Neg(x) }}>"
)
RARE = "m = ReduceMax<keepdims = 0>(x) g = Greater(m, c) y = " + BRANCH
OWN_WEIGHTS = (
    "m = ReduceSum<keepdims = 0>(x) g = Greater(m, c) y = If(g) <then_branch = t () => (float[N, 3] a) "
    "<float[3] w = {{1, 2, {}}}> {{ a = Mul(x, w) }}, else_branch = e () => (float[N, 3] b) {{ b = Neg(x) }}>"
)
LATE = (
    "t = Constant<value = bool {{1}}>() y = Loop(n, t, x) <body = l (int64 i, bool on, float[M] s) => "
    "(bool go, float[M] r) {{ go = Identity(on) f = Constant<value = int64 {{5}}>() b = Greater(i, f) "
    "k = Constant<value = float {{{}}}>() p = Add(s, k) r = Where(b, p, s) }}>"
)
SCAN = (
    "z = Constant<value = float[2] {{0, 0}}>() f, y = Scan(z, x) <num_scan_inputs = 1, "
    "body = c (float[2] s, float[2] v) => "
    "(float[2] r, float[2] o) {{ k = Constant<value = float {{{}}}>() a = Add(s, v) r = Min(a, k) o = Identity(r) }}>"
)
CALL = '<opset_import: ["": 18], domain: "local"> f (a) => (b) {{ k = Constant<value_float = {}>() b = Min(a, k) }}'
OUTER = ' <opset_import: ["": 18, "local": 1], domain: "local"> h (a) => (b) { n = Neg(a) b = local.f(n) }'
RARELY = {"c": F(1e6)}
BODIES = {
    "a rare branch": Pair(LINE, RARE.format(number=2), RARE.format(number=3), {"x": [2e6]}, RARELY),
    "a weight of a branch": Pair(
        THREE, OWN_WEIGHTS.format(3), OWN_WEIGHTS.format(4), {"x": np.full((1, 3), 40)}, {"c": F(100)}
    ),
    "a late step of a Loop": Pair(
        "int64 n, float[M] x => float[M] y", LATE.format(1), LATE.format(2), {"n": 8, "x": [1, 2]}
    ),
    "a bound in a Scan": Pair(
        "float[N, 2] x => float[N, 2] y", SCAN.format(100), SCAN.format(200), {"x": np.full((3, 2), 60)}
    ),
    "a bound in a function": Pair(
        LINE, "y = local.f(x)", "y = local.f(x)", {"x": [700]}, functions=(CALL.format(500.0), CALL.format(600.0))
    ),
    "a bound in a function of a function": Pair(
        LINE,
        "y = local.h(x)",
        "y = local.h(x)",
        {"x": [-700]},
        functions=(CALL.format(500.0) + OUTER, CALL.format(600.0) + OUTER),
    ),
}

TABLE = ROWS | CHANNELS | HIDDEN | BODIES


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(10)
def test_the_difference_is_found(name: str) -> None:
    find_difference(TABLE[name])


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_the_witness_shows_the_difference(name: str) -> None:
    show_difference(TABLE[name])
