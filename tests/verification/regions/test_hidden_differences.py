"""Models that differ in something hard to see: the ends of types, NaN, -0.0, ties, thresholds, defaults of attributes.

Each pair has a witness: legal inputs on which the models differ. The files beside this one continue the table.
"""

from __future__ import annotations

import numpy as np
import pytest

from .model_pairs import Pair, find_difference, show_difference

F, F16, F64, I32, I64 = np.float32, np.float16, np.float64, np.int32, np.int64
LINE, TRUTH = "float[N] x => float[N] y", "float[N] x => bool[N] y"
WIDE = "a = Cast<to = 6>(x) b = Cast<to = 6>(w) "

N_GRAMS = "min_gram_length = 1, max_gram_length = 2, ngram_counts = [0, 2], ngram_indexes = [0, 1, 2]"
N_GRAMS += ", pool_int64s = [20, 400, 200, 300]"
WORD_PAIRS = "min_gram_length = 2, max_gram_length = 2, ngram_counts = [0, 0], ngram_indexes = [0]"
WORD_PAIRS += ', pool_strings = ["emu", "yak"]'


def counted(grams: str, mode: str = "TF", skip: int = 0, more: str = "") -> str:
    return f'y = TfIdfVectorizer<mode = "{mode}", max_skip_count = {skip}, {grams}{more}>(x)'


GRAMS = {
    "a weight of one item": Pair(
        "int64[N] x => float[3] y",
        counted(N_GRAMS, "TFIDF", more=", weights = [1.0, 2.0, 1.0]"),
        counted(N_GRAMS, "TFIDF", more=", weights = [1.0, 3.0, 1.0]"),
        {"x": [400]},
    ),
    "the second item of a pair": Pair(
        "int64[N] x => float[3] y", counted(N_GRAMS), counted(N_GRAMS.replace("300", "301")), {"x": [200, 300]}
    ),
    "an item between those of a pair": Pair(
        "int64[N] x => float[3] y", counted(N_GRAMS), counted(N_GRAMS, skip=1), {"x": [200, 7, 300]}
    ),
    "three words between those of a pair": Pair(
        "string[N] x => float[1] y",
        counted(WORD_PAIRS, skip=2),
        counted(WORD_PAIRS, skip=3),
        {"x": ["emu", *"abc", "yak"]},
    ),
    "pairs that are counted": Pair(
        "string[N] x => float[1] y",
        counted(WORD_PAIRS),
        counted(WORD_PAIRS, "IDF"),
        {"x": ["emu", "yak", "emu", "yak"]},
    ),
}

COUNTS = {
    "counts of equal elements": Pair(
        "int64[N] x => int64[M] y, int64[M] n",
        "y, i, j, n = Unique(x)",
        "y, i, j, c = Unique(x) n = Min(c, most)",
        {"x": [5, 5, 5, 5]},
        {"most": I64(3)},
    ),
    "a count of truths": Pair(
        "bool[N] x => int64 y",
        "i = Cast<to = 7>(x) y = ReduceSum<keepdims = 0>(i)",
        "i = Cast<to = 7>(x) s = ReduceSum<keepdims = 0>(i) y = Min(s, most)",
        {"x": [True] * 40},
        {"most": I64(30)},
    ),
    "a position": Pair(
        "float[N] x => int64 y",
        "y = ArgMax<keepdims = 0>(x)",
        "i = ArgMax<keepdims = 0>(x) y = Min(i, most)",
        {"x": [*range(40)]},
        {"most": I64(30)},
    ),
    "the length of a sequence": Pair(
        "float[N, 2] x => int64 y",
        "s = SplitToSequence(x) y = SequenceLength(s)",
        "s = SplitToSequence(x) l = SequenceLength(s) y = Min(l, most)",
        {"x": np.zeros((40, 2))},
        {"most": I64(30)},
    ),
    "boxes by their centres": Pair(
        "float[1, B, 4] x, float[1, 1, B] w => int64[M, 3] y",
        "y = NonMaxSuppression(x, w, k, c)",
        "y = NonMaxSuppression<center_point_box = 1>(x, w, k, c)",
        {"x": [[[0, 0, 2, 2], [0.4, 0.4, 2, 2]]], "w": [[[0.9, 0.8]]]},
        {"k": I64([100]), "c": F([0.5])},
    ),
    "a position of TopK": Pair(
        "float[N] x => float[1] w, int64[1] y",
        "w, y = TopK(x, k)",
        "w, i = TopK(x, k) y = Min(i, most)",
        {"x": [*range(40)]},
        {"k": I64([1]), "most": I64(30)},
    ),
}

INTEGERS = {
    "int8 difference wraps": Pair(
        "int8[N] x, int8[N] w => int8[N] y",
        WIDE + "s = Sub(a, b) y = Cast<to = 3>(s)",
        WIDE + "s = Sub(a, b) c = Clip(s, low, high) y = Cast<to = 3>(c)",
        {"x": [-100], "w": [100]},
        {"low": I32(-128), "high": I32(127)},
    ),
    "uint8 difference wraps": Pair(
        "uint8[N] x, uint8[N] w => uint8[N] y",
        WIDE + "s = Sub(a, b) y = Cast<to = 2>(s)",
        WIDE + "s = Sub(a, b) c = Max(s, low) y = Cast<to = 2>(c)",
        {"x": [1], "w": [2]},
        {"low": I32(0)},
    ),
    "int16 product wraps": Pair(
        "int16[N] x, int16[N] w => int16[N] y",
        WIDE + "s = Mul(a, b) y = Cast<to = 5>(s)",
        WIDE + "s = Mul(a, b) c = Clip(s, low, high) y = Cast<to = 5>(c)",
        {"x": [300], "w": [300]},
        {"low": I32(-(2**15)), "high": I32(2**15 - 1)},
    ),
    "int64 to int32 wraps": Pair(
        "int64[N] x => int32[N] y",
        "y = Cast<to = 6>(x)",
        "c = Clip(x, low, high) y = Cast<to = 6>(c)",
        {"x": [2**31]},
        {"low": I64(-(2**31)), "high": I64(2**31 - 1)},
    ),
    "int8 without -128": Pair(
        "float[N] x => int8[N] y",
        "y = QuantizeLinear(x, s, z)",
        "q = QuantizeLinear(x, s, z) y = Max(q, low)",
        {"x": [-64.0]},
        {"s": F(0.5), "z": np.int8(0), "low": np.int8(-127)},
    ),
    "int8 read as uint8": Pair(
        "int8[N] x => int32[N] y", "y = Cast<to = 6>(x)", "u = Cast<to = 2>(x) y = Cast<to = 6>(u)", {"x": [-1]}
    ),
    "uint32 read as int32": Pair(
        "uint32[N] x => int64[N] y", "y = Cast<to = 7>(x)", "i = Cast<to = 6>(x) y = Cast<to = 7>(i)", {"x": [2**31]}
    ),
    "int32 through float32": Pair(
        "int32[N] x => int32[N] y",
        "y = Clip(x, low, high)",
        "c = Clip(x, low, high) f = Cast<to = 1>(c) y = Cast<to = 6>(f)",
        {"x": [2**24 + 1]},
        {"low": I32(-(2**30)), "high": I32(2**30)},
    ),
    "int16 through bfloat16": Pair(
        "int16[N] x => int32[N] y", "y = Cast<to = 6>(x)", "f = Cast<to = 16>(x) y = Cast<to = 6>(f)", {"x": [257]}
    ),
    "int16 through float16": Pair(
        "int16[N] x => int32[N] y", "y = Cast<to = 6>(x)", "f = Cast<to = 10>(x) y = Cast<to = 6>(f)", {"x": [2049]}
    ),
    "Mod and fmod": Pair(
        "int64[N] x => int64[N] y", "y = Mod(x, c)", "y = Mod<fmod = 1>(x, c)", {"x": [-3]}, {"c": I64(7)}
    ),
    "Mod and fmod of two inputs": Pair(
        "int64[N] x, int64[N] w => int64[N] y", "y = Mod(x, w)", "y = Mod<fmod = 1>(x, w)", {"x": [-3], "w": [7]}
    ),
    "the remainder of a quotient that rounds to 0": Pair(
        "int32[N] x, int32[N] w => int32[N] y",
        "y = Mod(x, w)",
        "q = Div(x, w) m = Mul(q, w) y = Sub(x, m)",
        {"x": [3], "w": [-7]},
    ),
    "a quotient by large numbers": Pair(
        "uint32[N] x, uint32[N] w => uint32[N] y",
        "y = Div(x, w)",
        "c = Min(w, most) y = Div(x, c)",
        {"x": [2**31], "w": [2**20]},
        {"most": np.uint32(2**19)},
    ),
    # 0 ends the process of onnxruntime.
    "a quotient of which 0 ends the engine": Pair(
        "float[N] x, int32[N] w => int32[N] y",
        "i = Cast<to = 6>(x) y = Div(w, i)",
        "i = Cast<to = 6>(x) a = Abs(i) s = Sign(i) q = Div(w, a) c = Max(q, low) y = Mul(c, s)",
        {"x": [2.0], "w": [-500]},
        {"low": I32(-100)},
    ),
    "Div rounds to 0": Pair(
        "int32[N] x => int32[N] y",
        "y = Div(x, c)",
        "m = Mod(x, c) d = Sub(x, m) y = Div(d, c)",
        {"x": [-1]},
        {"c": I32(4)},
    ),
    "fmod of negatives": Pair(
        LINE,
        "y = Mod<fmod = 1>(x, c)",
        "d = Div(x, c) f = Floor(d) m = Mul(f, c) y = Sub(x, m)",
        {"x": [-1]},
        {"c": F(3)},
    ),
    "the top bit is shifted out": Pair(
        "uint32[N] x => uint32[N] y",
        "y = Identity(x)",
        'a = BitShift<direction = "LEFT">(x, c) y = BitShift<direction = "RIGHT">(a, c)',
        {"x": [2**31]},
        {"c": np.uint32(1)},
    ),
    "shift by at least 4": Pair(
        "uint8[N] x, uint8[N] s => uint8[N] y",
        't = BitwiseAnd(s, c) y = BitShift<direction = "RIGHT">(x, t)',
        't = BitwiseAnd(s, c) y = BitShift<direction = "RIGHT">(x, t)',
        {"x": [255], "s": [4]},
        {"c": np.uint8(7)},
        {"c": np.uint8(3)},
    ),
    "one id": Pair(
        "int64[N] i => bool[N] y",
        "y = Equal(i, c)",
        "y = Equal(i, c)",
        {"i": [4711]},
        {"c": I64(4711)},
        {"c": I64(4712)},
    ),
    "int64 compared as float64": Pair(
        "int64[N] x => bool[N] y",
        "y = Less(x, c)",
        "a = Cast<to = 11>(x) b = Cast<to = 11>(c) y = Less(a, b)",
        {"x": [2**53]},
        {"c": I64(2**53 + 1)},
    ),
}

SPECIAL_FLOATS = {
    "NaN in Max": Pair(LINE, "y = Max(x, c)", "g = Greater(x, c) y = Where(g, x, c)", {"x": [np.nan]}, {"c": F(1)}),
    "NaN in Min": Pair(LINE, "y = Min(x, c)", "g = Less(x, c) y = Where(g, x, c)", {"x": [np.nan]}, {"c": F(1)}),
    "NaN in Relu": Pair(LINE, "y = Relu(x)", "g = Greater(x, c) y = Where(g, x, c)", {"x": [np.nan]}, {"c": F(0)}),
    "NaN in Clip": Pair(
        LINE,
        "y = Clip(x, c, d)",
        "g = Greater(x, c) a = Where(g, x, c) l = Less(a, d) y = Where(l, a, d)",
        {"x": [np.nan]},
        {"c": F(0), "d": F(6)},
    ),
    "NaN is not itself": Pair(TRUTH, "y = Equal(x, x)", "e = Equal(x, x) n = Not(e) y = Or(e, n)", {"x": [np.nan]}),
    "not less": Pair(TRUTH, "y = GreaterOrEqual(x, c)", "l = Less(x, c) y = Not(l)", {"x": [np.nan]}, {"c": F(0.37)}),
    "NaN in NonZero": Pair(
        "float[N] x => int64[1, M] y",
        "y = NonZero(x)",
        "a = Abs(x) g = Greater(a, c) y = NonZero(g)",
        {"x": [np.nan]},
        {"c": F(0)},
    ),
    "infinity times 0": Pair(
        "float[N] x, float[N] w => float[N] y",
        "z = Mul(x, c) y = Add(z, w)",
        "y = Identity(w)",
        {"x": [np.inf], "w": [1]},
        {"c": F(0)},
    ),
    "infinity less itself": Pair(
        "float[N] x, float[N] w => float[N] y",
        "z = Sub(x, x) y = Add(z, w)",
        "y = Identity(w)",
        {"x": [np.inf], "w": [1]},
    ),
    "IsInf of one sign": Pair(TRUTH, "y = IsInf(x)", "y = IsInf<detect_negative = 0>(x)", {"x": [-np.inf]}),
    "Softmax over size 1": Pair(
        "float[N, 1] x => float[N, 1] y",
        "y = Softmax<axis = 1>(x)",
        "s = Shape(x) o = ConstantOfShape<value = float[1] {1.0}>(s) z = Constant<value = float {0.0}>() "
        "m = Clip(x, z, z) y = Sub(o, m)",
        {"x": [[np.inf]]},
    ),
    "0 less 0": Pair(
        LINE, "n = Neg(x) y = Reciprocal(n)", "n = Sub(c, x) y = Reciprocal(n)", {"x": [0.0]}, {"c": F(0)}
    ),
    "Where drops -0.0": Pair(
        LINE, "y = Reciprocal(x)", "e = Equal(x, c) w = Where(e, c, x) y = Reciprocal(w)", {"x": [-0.0]}, {"c": F(0)}
    ),
    "Round to -0.0": Pair(
        LINE,
        "r = Round(x) y = Div(c, r)",
        "r = Round(x) p = Add(r, d) y = Div(c, p)",
        {"x": [-0.25]},
        {"c": F(1), "d": F(0)},
    ),
    "Pow of negatives": Pair(LINE, "y = Pow(x, c)", "l = Log(x) m = Mul(l, c) y = Exp(m)", {"x": [-1]}, {"c": F(2)}),
    "odd Pow": Pair(LINE, "r = Relu(x) y = Pow(r, c)", "y = Pow(x, c)", {"x": [-2]}, {"c": F(3)}),
    "float16 product overflows": Pair(
        "float16[N] x => float16[N] y",
        "y = Mul(x, c)",
        "f = Cast<to = 1>(x) m = Mul(f, d) l = Clip(m, low, high) y = Cast<to = 10>(l)",
        {"x": [8192]},
        {"c": F16(16), "d": F(16), "low": F(-65504), "high": F(65504)},
    ),
    "float16 sum overflows": Pair(
        "float16[N, 4] x => float16[N, 1] y",
        "y = ReduceSum(x, a)",
        "f = Cast<to = 1>(x) s = ReduceSum(f, a) l = Clip(s, low, high) y = Cast<to = 10>(l)",
        {"x": [[60000, 60000, 1, 1]]},
        {"a": I64([1]), "low": F(-65504), "high": F(65504)},
    ),
    "float16 in between": Pair(LINE, "y = Neg(x)", "h = Cast<to = 10>(x) f = Cast<to = 1>(h) y = Neg(f)", {"x": [0.1]}),
    "float32 in between": Pair(
        "double[N] x => double[N] y", "y = Neg(x)", "f = Cast<to = 1>(x) d = Cast<to = 11>(f) y = Neg(d)", {"x": [0.1]}
    ),
    "float16 constant underflows": Pair(
        "float16[N] x => float[N] y",
        "f = Cast<to = 1>(x) m = Mul(f, c) y = Div(m, d)",
        "m = Mul(x, e) f = Cast<to = 1>(m) y = Div(f, d)",
        {"x": [1]},
        {"c": F(1e-8), "d": F(1e-8), "e": F16(1e-8)},
    ),
    "Exp overflows": Pair(LINE, "y = Softplus(x)", "e = Exp(x) p = Add(e, c) y = Log(p)", {"x": [100]}, {"c": F(1)}),
    "Softmax without maximum": Pair(
        "float[N, 3] x => float[N, 3] y",
        "y = Softmax(x)",
        "e = Exp(x) s = ReduceSum(e, a) y = Div(e, s)",
        {"x": [[100, 0, 0]]},
        {"a": I64([1])},
    ),
    "float8 saturates": Pair(
        LINE,
        "f = Cast<to = 17>(x) y = Cast<to = 1>(f)",
        "f = Cast<to = 17, saturate = 0>(x) y = Cast<to = 1>(f)",
        {"x": [1000]},
        opset=19,
    ),
}

TIES = {
    "Round away from 0": Pair(
        LINE,
        "y = Round(x)",
        "s = Sign(x) a = Abs(x) h = Add(a, c) f = Floor(h) y = Mul(s, f)",
        {"x": [0.5]},
        {"c": F(0.5)},
    ),
    "QuantizeLinear of ties": Pair(
        "float[N] x => uint8[N] y",
        "y = QuantizeLinear(x, s, z)",
        "d = Div(x, s) h = Add(d, c) f = Floor(h) i = Clip(f, low, high) y = Cast<to = 2>(i)",
        {"x": [0.25]},
        {"s": F(0.5), "z": np.uint8(0), "c": F(0.5), "low": F(0), "high": F(255)},
    ),
    "Cast rounds to 0": Pair(
        "float[N] x => int32[N] y",
        "c = Clip(x, low, high) y = Cast<to = 6>(c)",
        "c = Clip(x, low, high) f = Floor(c) y = Cast<to = 6>(f)",
        {"x": [-0.5]},
        {"low": F(-99), "high": F(99)},
    ),
    "float16 threshold in float32": Pair(
        "float16[N] x => bool[N] y",
        "y = Greater(x, c)",
        "f = Cast<to = 1>(x) y = Greater(f, d)",
        {"x": [0.7]},
        {"c": F16(0.7), "d": F(0.7)},
    ),
    "bfloat16 next to a threshold": Pair(
        TRUTH,
        "y = Greater(x, c)",
        "h = Cast<to = 16>(x) g = Cast<to = 1>(h) y = Greater(g, c)",
        {"x": [1.0001]},
        {"c": F(1)},
    ),
    "Where at its threshold": Pair(
        LINE,
        "g = Greater(x, c) n = Neg(x) y = Where(g, x, n)",
        "g = GreaterOrEqual(x, c) n = Neg(x) y = Where(g, x, n)",
        {"x": [0.37]},
        {"c": F(0.37)},
    ),
    "ThresholdedRelu at alpha": Pair(
        LINE,
        "y = ThresholdedRelu(x)",
        "g = GreaterOrEqual(x, c) y = Where(g, x, d)",
        {"x": [1]},
        {"c": F(1), "d": F(0)},
    ),
    "a threshold behind a scale": Pair(
        TRUTH,
        "h = Mul(x, k) y = Greater(h, c)",
        "h = Mul(x, k) y = Greater(h, c)",
        {"x": [np.nextafter(F(1.7), F(9))]},
        {"k": F(4), "c": F(1.7) * F(4)},
        {"c": np.nextafter(F(1.7) * F(4), F(9))},
    ),
    "float64 constant as float32": Pair(
        "double[N] x => double[N] y",
        "m = Mul(x, c) y = Floor(m)",
        "m = Mul(x, c) y = Floor(m)",
        {"x": [10]},
        {"c": F64(0.7)},
        {"c": F64(F(0.7))},
    ),
    "float64 threshold as float32": Pair(
        "double[N] x => bool[N] y",
        "y = Less(x, c)",
        "y = Less(x, c)",
        {"x": [0.1]},
        {"c": F64(0.1)},
        {"c": F64(F(0.1))},
    ),
    "ArgMax of ties": Pair(
        "float[N, 3] x => int64[N, 1] y",
        "y = ArgMax<axis = 1>(x)",
        "y = ArgMax<axis = 1, select_last_index = 1>(x)",
        {"x": [[1, 2, 2]]},
    ),
    "ArgMin of ties": Pair(
        "int32[N, 3] x => int64[N, 1] y",
        "y = ArgMin<axis = 1>(x)",
        "y = ArgMin<axis = 1, select_last_index = 1>(x)",
        {"x": [[1, 1, 2]]},
    ),
    "TopK of ties": Pair(
        "float[N, 3] x => int64[N, 1] y",
        "v, y = TopK(x, k)",
        "y = ArgMax<axis = 1, select_last_index = 1>(x)",
        {"x": [[5, 2, 5]]},
        {"k": I64([1])},
    ),
    "Unique in another order": Pair(
        "int64[N] x => int64[M] y", "y = Unique(x)", "y = Unique<sorted = 0>(x)", {"x": [2, 1, 2]}
    ),
    "Hardmax of ties": Pair(
        "float[N, 3] x => float[N, 3] y",
        "y = Hardmax(x)",
        "m = ReduceMax<keepdims = 1>(x, a) e = Equal(x, m) y = Cast<to = 1>(e)",
        {"x": [[1, 2, 2]]},
        {"a": I64([1])},
    ),
}

TABLE = GRAMS | COUNTS | INTEGERS | SPECIAL_FLOATS | TIES
# No numbers beyond 1e18 are drawn, because right rewrites overflow there.
ONLY_AT_THE_WITNESS = {
    "float32 squared": Pair(LINE, "y = Abs(x)", "s = Mul(x, x) y = Sqrt(s)", {"x": [1e20]}),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(14)
def test_the_difference_is_found(name: str) -> None:
    find_difference(TABLE[name])


@pytest.mark.parametrize("name", TABLE | ONLY_AT_THE_WITNESS)
@pytest.mark.sample(8)
def test_the_witness_shows_the_difference(name: str) -> None:
    show_difference((TABLE | ONLY_AT_THE_WITNESS)[name])


def test_a_position_in_a_sequence() -> None:
    signature, most = "seq(float[N]) x, int64 i => float[K] y", {"most": I64(30)}
    find_difference(Pair(signature, "y = SequenceAt(x, i)", "j = Min(i, most) y = SequenceAt(x, j)", {}, most))
