"""Models that differ in something hard to see: sizes 0 and 1, odd sizes, defaults of attributes, texts, flags.

This file continues the table of `test_hidden_differences`.
"""

from __future__ import annotations

import numpy as np
import pytest

from .model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
LINE = "float[N] x => float[N] y"
ROW = "float[1, 1, N] x => float[1, 1, M] y"
NONE = {"zero": I64([0]), "one": I64([1]), "two": I64([2])}
SIZE = "n = Shape<end = 1>(x) "
RESIZE = 'y = Resize<mode = "nearest", nearest_mode = "{}", coordinate_transformation_mode = "{}">(x, , k)'

SIZES = {
    "Squeeze before a sum": Pair(
        "float[N, 3] x => float[] y",
        "s = Squeeze(x) y = ReduceSum<keepdims = 0>(s, a)",
        "y = ReduceSum<keepdims = 0>(x, a)",
        {"x": [[1, 2, 3]]},
        {"a": I64([-1])},
    ),
    "one row is doubled": Pair(
        "float[N, 3] x => float[N, 3] y",
        "y = Neg(x)",
        SIZE + "e = Equal(n, one) d = Add(x, x) w = Where(e, d, x) y = Neg(w)",
        {"x": [[1, 2, 3]]},
        NONE,
    ),
    "the mean of nothing": Pair(
        "float[N] x => float[1] y",
        SIZE + "s = ReduceSum(x) f = Cast<to = 1>(n) y = Div(s, f)",
        SIZE + "s = ReduceSum(x) m = Max(n, one) f = Cast<to = 1>(m) y = Div(s, f)",
        {"x": []},
        NONE,
    ),
    "the product of nothing": Pair(
        "float[N] x => float[1] y",
        "y = ReduceProd(x)",
        SIZE + "p = ReduceProd(x) m = Min(n, one) f = Cast<to = 1>(m) y = Mul(p, f)",
        {"x": []},
        NONE,
    ),
    "the maximum of nothing": Pair(
        "float[N] x => float[1] y",
        "y = ReduceMax(x)",
        "c = Concat<axis = 0>(x, k) y = ReduceMax(c)",
        {"x": []},
        {"k": F([-1e9])},
        opset=20,
    ),
    "an empty part of a Split": Pair(
        "float[N, 3] x => float[N, 1] y",
        "a, b = Split<axis = 1>(x, l) p = ReduceProd(a, one) s = ReduceSum(b, one) y = Add(p, s)",
        "a, b = Split<axis = 1>(x, l) p = ReduceSum(a, one) s = ReduceSum(b, one) y = Add(p, s)",
        {"x": [[1, 2, 3]]},
        {"l": I64([0, 3]), **NONE},
    ),
    "an odd Split": Pair(
        "float[N] x => float[A] y, float[B] z",
        "y, z = Split<num_outputs = 2>(x)",
        SIZE + "h = Div(n, two) y = Slice(x, zero, h) z = Slice(x, h, n)",
        {"x": [1, 2, 3]},
        NONE,
    ),
    "an odd size of AveragePool": Pair(
        ROW,
        "y = AveragePool<kernel_shape = [2], strides = [2]>(x)",
        "y = AveragePool<kernel_shape = [2], strides = [2], ceil_mode = 1>(x)",
        {"x": [[[1, 2, 3]]]},
        opset=19,
    ),
    "an even size of MaxPool": Pair(
        ROW,
        'y = MaxPool<kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER">(x)',
        'y = MaxPool<kernel_shape = [3], strides = [2], auto_pad = "SAME_LOWER">(x)',
        {"x": [[[1, 2, 3, 4]]]},
    ),
    "an odd size of Resize": Pair(
        ROW,
        'y = Resize<mode = "linear">(x, , k)',
        "n = Shape(x) l = Slice(n, two, three) h = Div(l, two) "
        's = Concat<axis = 0>(one, one, h) y = Resize<mode = "linear">(x, , , s)',
        {"x": [[[1, 2, 3, 9, 5]]]},
        {"k": F([1, 1, 0.5]), "three": I64([3]), **NONE},
    ),
    "nearest of Resize": Pair(
        ROW,
        RESIZE.format("round_prefer_floor", "half_pixel"),
        RESIZE.format("round_prefer_ceil", "half_pixel"),
        {"x": [[[1, 2, 3, 4]]]},
        {"k": F([1, 1, 0.5])},
    ),
    "a factor a little above 1": Pair(
        ROW,
        RESIZE.format("floor", "asymmetric"),
        "y = Identity(x)",
        {"x": np.arange(2600.0).reshape(1, 1, -1)},
        {"k": F([1, 1, 1.0004])},
    ),
    "two factors a little above 1": Pair(
        ROW,
        RESIZE.format("floor", "asymmetric"),
        RESIZE.format("floor", "asymmetric"),
        {"x": np.arange(1100.0).reshape(1, 1, -1)},
        {"k": F([1, 1, 1.001])},
        {"k": F([1, 1, 1.0004])},
    ),
    "a factor a little above 1 of a length": Pair(
        "float[N] x => float[M] y",
        "n = Shape(x) f = Cast<to = 1>(n) p = Mul(f, c) h = Floor(p) i = Cast<to = 7>(h) y = Expand(o, i)",
        "n = Shape(x) y = Expand(o, n)",
        {"x": np.zeros(2600)},
        {"c": F(1.0004), "o": F([1])},
    ),
    "corners of Resize": Pair(
        ROW,
        'y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(x, , k)',
        'y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(x, , k)',
        {"x": [[[3, 5]]]},
        {"k": F([1, 1, 0.5])},
    ),
    "Pad of edge and of wrap": Pair(
        "float[N, 2] x => float[N, 3] y",
        'y = Pad<mode = "edge">(x, p)',
        'y = Pad<mode = "wrap">(x, p)',
        {"x": [[1, 2]]},
        {"p": I64([0, 0, 0, 1])},
        opset=19,
    ),
    "CumSum that is exclusive": Pair(
        "float[N, 2] x => float[N, 2] y",
        "y = CumSum(x, a)",
        "y = CumSum<exclusive = 1>(x, a)",
        {"x": [[1, 2]]},
        {"a": I64(1)},
    ),
    "CumSum from the end": Pair(
        "float[N, 2] x => float[N, 2] y",
        "y = CumSum(x, a)",
        "y = CumSum<reverse = 1>(x, a)",
        {"x": [[1, 2], [3, 4]]},
        {"a": I64(0)},
    ),
    "Slice of the last 4": Pair(
        "float[N] x => float[M] y",
        "y = Slice(x, b, e)",
        SIZE + "s = Add(n, b) y = Slice(x, s, e)",
        {"x": [1, 2, 3]},
        {"b": I64([-4]), "e": I64([99])},
    ),
    "Softmax of a flattened tensor": Pair(
        "float[N, 3, M] x => float[N, 3, M] y",
        "y = Softmax<axis = 1>(x)",
        "y = Softmax<axis = 1>(x)",
        {"x": [[[1, 2], [3, 4], [5, 6]]]},
        opset=12,
        opset_after=13,
    ),
}

NORMAL = {"s": F([1, 1, 1, 1]), "b": F([0, 0, 0, 0]), "m": F([0, 0, 0, 0]), "v": F([10, 10, 10, 10])}
FOUR = "float[N, 4] x => float[N, 4] y"
SMALL = {"x": [[1e-3, -1e-3, 1e-3, -1e-3]]}
STOP = 'y = StringNormalizer<locale = "C", case_change_action = "{}", is_case_sensitive = {}, stopwords = ["a"]>(x)'
ATTRIBUTES = {
    "alpha of Gemm": Pair(
        "float[N, 2] x => float[N, 2] y",
        "y = Gemm(x, w, b)",
        "y = Gemm<alpha = 1.0001>(x, w, b)",
        {"x": [[1, 2]]},
        {"w": F([[1, 2], [3, 4]]), "b": F([1, 1])},
    ),
    "beta of Gemm": Pair(
        "float[N, 2] x => float[N, 2] y",
        "y = Gemm(x, w, b)",
        "y = Gemm<beta = 1.01>(x, w, b)",
        {"x": [[0.1, 0]]},
        {"w": F([[100, 200], [300, 400]]), "b": F([1, 1])},
    ),
    "alpha of LeakyRelu": Pair(LINE, "y = LeakyRelu(x)", "y = LeakyRelu<alpha = 0.01001>(x)", {"x": [-100]}),
    "alpha of Elu": Pair(LINE, "y = Elu(x)", "y = Elu<alpha = 1.0001>(x)", {"x": [-2]}),
    "alpha of HardSigmoid": Pair(LINE, "y = HardSigmoid(x)", "y = HardSigmoid<alpha = 0.16666667>(x)", {"x": [1]}),
    "Clip without a maximum": Pair(LINE, "y = Clip(x, c)", "y = Clip(x, c, d)", {"x": [1e5]}, {"c": F(0), "d": F(6e4)}),
    "epsilon of BatchNormalization": Pair(
        FOUR,
        "y = BatchNormalization(x, s, b, m, v)",
        "y = BatchNormalization<epsilon = 1e-3>(x, s, b, m, v)",
        {"x": [[1, 1, 1, 1]]},
        NORMAL,
    ),
    "epsilon of LayerNormalization": Pair(
        FOUR, "y = LayerNormalization(x, s, b)", "y = LayerNormalization<epsilon = 1e-12>(x, s, b)", SMALL, NORMAL
    ),
    "epsilon of InstanceNormalization": Pair(
        "float[N, 1, 4] x => float[N, 1, 4] y",
        "y = InstanceNormalization(x, s, b)",
        "y = InstanceNormalization<epsilon = 1e-6>(x, s, b)",
        {"x": [SMALL["x"]]},
        {"s": F([1]), "b": F([0])},
    ),
    "p of LpNormalization": Pair(
        FOUR, "y = LpNormalization(x)", "y = LpNormalization<p = 1>(x)", {"x": [[1, 2, 3, 4]]}
    ),
    "case of texts": Pair(
        "string[N] x => string[M] y", STOP.format("NONE", 1), STOP.format("LOWER", 1), {"x": ["B", "c"]}
    ),
    "case of stopwords": Pair(
        "string[N] x => string[M] y", STOP.format("NONE", 1), STOP.format("NONE", 0), {"x": ["A", "c"]}
    ),
    "the empty text": Pair(
        "string[N] x => bool[N] y",
        "y = Equal(x, c)",
        "y = Equal(x, c)",
        {"x": ["", "a"]},
        {"c": np.array("", object)},
        {"c": np.array(" ", object)},
        opset=19,
    ),
}

TWO, FLAGS = "bool[N] x, bool[N] w => bool[N] y", "bool[N] x, bool[N] w, bool[N] v => bool[N] y"
LOGIC = {
    "Or and Xor": Pair(TWO, "y = Or(x, w)", "y = Xor(x, w)", {"x": [True], "w": [True]}),
    "implied and equal": Pair(TWO, "n = Not(x) y = Or(n, w)", "y = Equal(x, w)", {"x": [False], "w": [True]}),
    "most of three": Pair(
        FLAGS,
        "a = And(x, w) b = And(w, v) c = And(x, v) d = Or(a, b) y = Or(c, d)",
        "a = And(x, w) b = And(w, v) y = Or(a, b)",
        {"x": [True], "w": [False], "v": [True]},
    ),
    "one of three": Pair(
        FLAGS,
        "a = Xor(x, w) b = Xor(a, v) c = And(x, w) d = And(c, v) n = Not(d) y = And(b, n)",
        "a = Xor(x, w) y = Xor(a, v)",
        {"x": [True], "w": [True], "v": [True]},
    ),
}

TABLE = SIZES | ATTRIBUTES | LOGIC


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(9)
def test_the_difference_is_found(name: str) -> None:
    find_difference(TABLE[name])


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.sample(8)
def test_the_witness_shows_the_difference(name: str) -> None:
    show_difference(TABLE[name])
