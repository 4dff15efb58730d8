"""Equal models that round differently: sums in another order, operators written out, folded weights, half precision.

This file continues the table of `test_hidden_equalities`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair

F, F16, F64, I64 = np.float32, np.float16, np.float64, np.int64
LINE = "float[N] x => float[N] y"
THREE, FOUR = "float[N, 3] x => float[N, 3] y", "float[N, 4] x => float[N, 4] y"
IMAGE = "float[N, 3, 5, 5] x => float[N, 3, 3, 3] y"
AXIS = {"a": I64([1]), "b": I64([2, 3])}


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Return weights of a shape, the same at each call."""
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def normalized(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the weights of a Conv with a BatchNormalization, and those of the Conv that does both (fw, fb)."""
    given = {"w": drawn(3, 3, 3, 3), "b": drawn(3, seed=1), "s": drawn(3, seed=2), "t": drawn(3, seed=3)}
    given |= {"m": drawn(3, seed=4), "v": np.abs(drawn(3, seed=5)) + F(0.5)} | changes
    factor = given["s"].astype(F64) / np.sqrt(given["v"].astype(F64) + F64(F(1e-5)))
    shift = (given["b"].astype(F64) - given["m"]) * factor + given["t"]
    whole = given["w"] * factor.reshape(3, 1, 1, 1)
    return given | {"fw": whole.astype(F), "fb": shift.astype(F)}


def scaled() -> dict[str, np.ndarray]:
    """Return the weights of a BatchNormalization, and the factor and the shift that do the same (f, g)."""
    given = normalized(b=np.zeros(3, F))
    factor = given["s"].astype(F64) / np.sqrt(given["v"].astype(F64) + F64(F(1e-5)))
    return given | {"f": factor.astype(F), "g": given["fb"]}


BOTH = "c = Conv(x, w, b) y = BatchNormalization(c, s, t, m, v)"
FOLDED = "y = Conv(x, fw, fb)"
SMALL = F([1, 1e-7, 1])
WEIGHTS = {
    "Conv with BatchNormalization": Pair(IMAGE, BOTH, FOLDED, {}, normalized()),
    "Conv with a small channel": Pair(
        IMAGE, BOTH, FOLDED, {}, normalized(s=drawn(3, seed=2) * SMALL, t=drawn(3, seed=3) * SMALL)
    ),
    "BatchNormalization as Mul": Pair(
        THREE, "y = BatchNormalization(x, s, t, m, v)", "p = Mul(x, f) y = Add(p, g)", {}, scaled()
    ),
    "Conv with Add": Pair(
        IMAGE, "y = Conv(x, w, b)", "c = Conv(x, w) y = Add(c, k)", {}, normalized(k=drawn(3, seed=1).reshape(3, 1, 1))
    ),
    "weights in balance": Pair(
        FOUR,
        "h = MatMul(x, w) r = Relu(h) y = MatMul(r, v)",
        "h = MatMul(x, w) r = Relu(h) y = MatMul(r, v)",
        {},
        {"w": drawn(4, 4), "v": drawn(4, 4, seed=1)},
        {"w": drawn(4, 4) * F(2), "v": drawn(4, 4, seed=1) / F(2)},
    ),
    "channels in balance": Pair(
        FOUR,
        "h = MatMul(x, w) r = Relu(h) y = MatMul(r, v)",
        "h = MatMul(x, w) r = Relu(h) y = MatMul(r, v)",
        {},
        {"w": drawn(4, 4), "v": drawn(4, 4, seed=1)},
        {"w": drawn(4, 4) * F([3, 0.3, 7, 1]), "v": drawn(4, 4, seed=1) / F([[3], [0.3], [7], [1]])},
    ),
    "two MatMuls as one": Pair(
        FOUR,
        "h = MatMul(x, w) y = MatMul(h, v)",
        "y = MatMul(x, f)",
        {},
        {
            "w": drawn(4, 4),
            "v": drawn(4, 4, seed=1),
            "f": (drawn(4, 4).astype(F64) @ drawn(4, 4, seed=1).astype(F64)).astype(F),
        },
    ),
    "a scale in the weights": Pair(
        FOUR,
        "s = Mul(x, k) y = MatMul(s, w)",
        "y = MatMul(x, v)",
        {},
        {"k": F(0.3), "w": drawn(4, 4), "v": drawn(4, 4) * F(0.3)},
    ),
    "weights that were int8": Pair(
        FOUR,
        "d = DequantizeLinear(w, s) y = MatMul(x, d)",
        "y = MatMul(x, f)",
        {},
        {
            "w": np.arange(-8, 8, dtype=np.int8).reshape(4, 4),
            "s": F(0.01),
            "f": np.arange(-8, 8).astype(F).reshape(4, 4) * F(0.01),
        },
    ),
    "MatMul in two columns": Pair(
        "float[N, 1000] x => float[N, 1000] y",
        "y = MatMul(x, w)",
        "a = MatMul(x, u) b = MatMul(x, v) y = Concat<axis = 1>(a, b)",
        {},
        {"w": drawn(1000, 1000), "u": drawn(1000, 1000)[:, :300], "v": drawn(1000, 1000)[:, 300:]},
    ),
    "MatMul in two rows": Pair(
        "float[N, 200] x => float[N, 50] y",
        "y = MatMul(x, w)",
        "p, q = Split<axis = 1, num_outputs = 2>(x) a = MatMul(p, u) b = MatMul(q, v) y = Add(a, b)",
        {},
        {"w": drawn(200, 50), "u": drawn(200, 50)[:100], "v": drawn(200, 50)[100:]},
    ),
}

SUMS = {
    "Gemm": Pair(
        FOUR, "m = MatMul(x, w) y = Add(m, b)", "y = Gemm(x, w, b)", {}, {"w": drawn(4, 4), "b": drawn(4, seed=1)}
    ),
    "Gemm of transposed weights": Pair(
        FOUR,
        "y = Gemm(x, w)",
        "y = Gemm<transB = 1>(x, v)",
        {},
        {"w": drawn(4, 4), "v": np.ascontiguousarray(drawn(4, 4).T)},
    ),
    "Einsum": Pair(
        "float[N, 2, 3] x => float[N, 2, 4] y",
        "y = MatMul(x, w)",
        'y = Einsum<equation = "bij,jk->bik">(x, w)',
        {},
        {"w": drawn(3, 4)},
    ),
    "Conv as MatMul": Pair(
        "float[N, 3, 5] x => float[N, 4, 5] y",
        "y = Conv(x, w)",
        "y = MatMul(v, x)",
        {},
        {"w": drawn(4, 3, 1), "v": drawn(4, 3)},
    ),
    "Conv of each channel": Pair(
        "float[N, 3, 5] x => float[N, 3, 5] y",
        "y = Conv<group = 3>(x, w)",
        "y = Mul(x, v)",
        {},
        {"w": drawn(3, 1, 1), "v": drawn(3, 1)},
    ),
    "a grouped Conv": Pair(
        "float[N, 4, 5] x => float[N, 4, 3] y",
        "y = Conv<group = 2>(x, w)",
        "a, b = Split<axis = 1, num_outputs = 2>(x) c = Conv(a, u) d = Conv(b, v) y = Concat<axis = 1>(c, d)",
        {},
        {"w": drawn(4, 2, 3), "u": drawn(4, 2, 3)[:2], "v": drawn(4, 2, 3)[2:]},
    ),
    "ReduceMean": Pair(
        "float[N, 5] x => float[N, 1] y",
        "y = ReduceMean(x, a)",
        "s = ReduceSum(x, a) y = Div(s, k)",
        {},
        {"k": F(5), **AXIS},
    ),
    "GlobalAveragePool": Pair(
        "float[N, 3, 4, 5] x => float[N, 3, 1, 1] y", "y = GlobalAveragePool(x)", "y = ReduceMean(x, b)", {}, AXIS
    ),
    "ReduceL2": Pair(
        "float[N, 5] x => float[N, 1] y",
        "y = ReduceL2(x, a)",
        "m = Mul(x, x) s = ReduceSum(m, a) y = Sqrt(s)",
        {},
        AXIS,
    ),
    "three terms": Pair(
        "float[N] x, float[N] w, float[N] v => float[N] y", "a = Add(x, w) y = Add(a, v)", "a = Add(w, v) y = Add(x, a)"
    ),
    "Sub as Add": Pair("float[N] x, float[N] w => float[N] y", "y = Sub(x, w)", "n = Neg(w) y = Add(n, x)"),
    "Div as Mul": Pair(LINE, "y = Div(x, c)", "y = Mul(x, d)", {}, {"c": F(3), "d": F(1) / F(3)}),
    "a scale before MatMul": Pair(
        "float[N, 4, 8] x, float[N, 8, 4] w => float[N, 4, 4] y",
        "m = MatMul(x, w) y = Mul(m, k)",
        "s = Mul(x, k) y = MatMul(s, w)",
        {},
        {"k": F(1 / math.sqrt(8))},
    ),
}

WRITTEN_OUT = {
    "LayerNormalization": Pair(
        FOUR,
        "y = LayerNormalization(x, s, t)",
        "m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) e = Add(v, k) r = Sqrt(e) n = Div(d, r) "
        "p = Mul(n, s) y = Add(p, t)",
        {},
        {"s": drawn(4, seed=1), "t": drawn(4, seed=2), "k": F(1e-5), **AXIS},
    ),
    "Softmax": Pair(
        FOUR,
        "y = Softmax(x)",
        "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) y = Div(e, s)",
        {},
        AXIS,
    ),
    "LogSoftmax": Pair(
        FOUR,
        "y = LogSoftmax(x)",
        "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, a) l = Log(s) y = Sub(d, l)",
        {},
        AXIS,
    ),
    "Gelu": Pair(
        LINE,
        "y = Gelu(x)",
        "d = Div(x, r) e = Erf(d) p = Add(e, c) m = Mul(x, p) y = Mul(m, h)",
        {},
        {"r": F(math.sqrt(2)), "c": F(1), "h": F(0.5)},
        opset=20,
    ),
    "HardSwish": Pair(
        LINE,
        "y = HardSwish(x)",
        "p = Add(x, c) l = Clip(p, z, s) d = Div(l, s) y = Mul(x, d)",
        {},
        {"c": F(3), "z": F(0), "s": F(6)},
    ),
    "Mish": Pair(LINE, "y = Mish(x)", "s = Softplus(x) t = Tanh(s) y = Mul(x, t)"),
    "Sigmoid": Pair(LINE, "y = Sigmoid(x)", "n = Neg(x) e = Exp(n) p = Add(e, c) y = Reciprocal(p)", {}, {"c": F(1)}),
    "Tanh": Pair(
        LINE, "y = Tanh(x)", "t = Mul(x, k) s = Sigmoid(t) m = Mul(s, k) y = Sub(m, c)", {}, {"c": F(1), "k": F(2)}
    ),
    "PRelu": Pair(
        THREE,
        "y = PRelu(x, s)",
        "z = Constant<value = float {0.0}>() g = Less(x, z) m = Mul(x, s) y = Where(g, m, x)",
        {},
        {"s": F([0.1, 0.2, 0.3])},
    ),
    "Sqrt": Pair(LINE, "a = Abs(x) y = Sqrt(a)", "a = Abs(x) y = Pow(a, c)", {}, {"c": F(0.5)}),
    "square": Pair(LINE, "y = Pow(x, c)", "y = Mul(x, x)", {}, {"c": F(2)}),
    "DequantizeLinear": Pair(
        "uint8[N] x => float[N] y",
        "y = DequantizeLinear(x, s, z)",
        "w = Cast<to = 1>(x) d = Sub(w, o) y = Mul(d, s)",
        {},
        {"s": F(0.3), "z": np.uint8(200), "o": F(200)},
    ),
    "QuantizeLinear": Pair(
        "int16[N] x => uint8[N] y",
        "f = Cast<to = 1>(x) y = QuantizeLinear(f, s, z)",
        "f = Cast<to = 1>(x) d = Div(f, s) r = Round(d) p = Add(r, o) c = Clip(p, low, high) y = Cast<to = 2>(c)",
        {},
        {"s": F(2), "z": np.uint8(100), "o": F(100), "low": F(0), "high": F(255)},
    ),
    "Tanh of float16": Pair(
        "float16[N] x => float16[N] y", "y = Tanh(x)", "f = Cast<to = 1>(x) t = Tanh(f) y = Cast<to = 10>(t)"
    ),
    "float16 product": Pair(
        "float16[N] x => float16[N] y",
        "y = Mul(x, c)",
        "f = Cast<to = 1>(x) m = Mul(f, d) y = Cast<to = 10>(m)",
        {},
        {"c": F16(1.5), "d": F(1.5)},
    ),
    "float64 in between": Pair(
        LINE,
        "e = Tanh(x) y = Mul(e, c)",
        "d = Cast<to = 11>(x) e = Tanh(d) m = Mul(e, k) y = Cast<to = 1>(m)",
        {},
        {"c": F(3), "k": F64(3)},
    ),
}

TABLE = WEIGHTS | SUMS | WRITTEN_OUT


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(12)
def test_equal_models_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*TABLE[name].models(), timeout=60)
    assert found.verdict == "equal", found
