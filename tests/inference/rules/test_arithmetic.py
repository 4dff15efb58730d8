"""Elements of small tensors through the operators of shape arithmetic, against onnxruntime at two sizes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from node_models import model_of, shape_text

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.inference import infer_model

INPUTS = "float[N,M,4] x"
SIZES = ({"N": 2, "M": 3}, {"N": 9, "M": 1})
CONSTANTS = (
    "int64 zero = {0}, int64 one = {1}, int64 eight = {8}, int64[1] i1 = {1}, int64[1] seven = {7}, "
    "int64[2] i10 = {1, 0}, int64[2] first = {1, 0}, int64[1,1] t1 = {1}, int64[2,1] t21 = {2, 1}, "
    "int64[2] twice = {1, 1}, int64[2] pair = {5, 6}, int64[3] odd = {1, 0, 1}, int64[1] axis0 = {0}, "
    "int64[2] row = {1, 3}, int64[1] two = {2}, int64[1] flat = {-1}, float half = {0.5}, "
    "int64[2,2] square = {0, 5, 6, 7}"
)

# What is computed from s = Shape(x), and the shape it makes.
FOLLOWED = [
    ("clip-none", "c = Clip(s)", "[N, M, 4]"),
    ("clip-low", "c = Clip(s, zero)", "[N, M, 4]"),
    ("clip-high", "c = Clip(s, , eight)", "[min(N, 8), min(M, 8), 4]"),
    ("relu", "c = Relu(s)", "[N, M, 4]"),
    ("relu-negative", "n = Neg(s) c = Relu(n)", "[0, 0, 0]"),
    ("cumsum", "c = CumSum(s, zero)", "[N, M + N, M + N + 4]"),
    ("cumsum-exclusive", "c = CumSum<exclusive=1>(s, zero)", "[0, N, M + N]"),
    ("cumsum-reverse", "c = CumSum<reverse=1>(s, zero)", "[M + N + 4, M + 4, 4]"),
    ("scatter-elements", "c = ScatterElements(s, i1, seven)", "[N, 7, 4]"),
    ("scatter-add", 'c = ScatterElements<reduction="add">(s, i1, seven)', "[?, ?, ?]"),
    ("scatter-twice", "c = ScatterElements(s, twice, pair)", "[N, ?, 4]"),
    ("scatter-nd", "c = ScatterND(s, t1, seven)", "[N, 7, 4]"),
    ("gather-elements", "c = GatherElements(s, i10)", "[M, N]"),
    ("gather-nd", "c = GatherND(s, t21)", "[4, M]"),
    ("compress", "b = Cast<to=9>(odd) c = Compress(s, b)", "[N, 4]"),
    ("pad", "c = Pad(s, first, one)", "[1, N, M, 4]"),
    ("pad-edge", 'c = Pad<mode="edge">(s, first)', "[?, ?, ?, ?]"),
    ("optional", "o = Optional(s) c = OptionalGetElement(o)", "[N, M, 4]"),
    ("matrix", "r = Reshape(s, row) c = Squeeze(r, axis0)", "[N, M, 4]"),
    ("half-up", "f = Cast<to=1>(s) d = Mul(f, half) g = Ceil(d) c = Cast<to=7>(g)", "[(N + 1)//2, (M + 1)//2, 2]"),
    ("half-down", "f = Cast<to=1>(s) d = Mul(f, half) g = Floor(d) c = Cast<to=7>(g)", "[N//2, M//2, 2]"),
    ("divide", "c = Div(s, two)", "[N//2, M//2, 2]"),
    ("modulo", "c = Mod(s, two)", "[N % 2, M % 2, 0]"),
    ("product", "p = ReduceProd<keepdims=0>(s) c = Reshape(p, flat)", "[4*M*N]"),
    ("where", "e = Equal(s, flat) c = Where(e, two, s)", "[N, M, 4]"),
    ("tile", "c = Tile(s, two)", "[N, M, 4, N, M, 4]"),
    (
        "concat-rows",
        "r = Reshape(s, row) d = Mul(r, two) t = Concat<axis=0>(r, d) c = Reshape(t, flat)",
        "[N, M, 4, 2*N, 2*M, 8]",
    ),
    ("compress-flat", "r = Reshape(s, row) b = Cast<to=9>(odd) c = Compress(r, b)", "[N, 4]"),
    (
        "compress-axis",
        "r = Reshape(s, row) b = Cast<to=9>(odd) t = Compress<axis=1>(r, b) c = Reshape(t, flat)",
        "[N, 4]",
    ),
    ("cumsum-matrix", "r = Reshape(s, row) t = CumSum(r, zero) c = Reshape(t, flat)", "[?, ?, ?]"),
    ("non-zero", "z = NonZero(odd) c = Reshape(z, flat)", "[0, 2]"),
    ("non-zero-matrix", "z = NonZero(square) t = Transpose(z) c = Reshape(t, flat)", "[0, 1, 1, 0, 1, 1]"),
    ("range", "n = Size(x) r = Range(zero, n, one) c = Shape(r)", "[4*M*N]"),
]


@pytest.mark.parametrize(("body", "expected"), [case[1:] for case in FOLLOWED], ids=[case[0] for case in FOLLOWED])
def test_elements_are_followed(body: str, expected: str) -> None:
    whole = f"s = Shape(x) {body} y = ConstantOfShape(c)"
    assert shape_text(INPUTS, whole, constants=CONSTANTS) == f"float32{expected}"
    model = model_of(INPUTS, whole, constants=CONSTANTS)
    known = infer_model(model).types["y"].shape
    assert known is not None
    del model.graph.output[:]
    model.graph.output.add(name="y")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for sizes in SIZES:
        (real,) = session.run(None, {"x": np.zeros((sizes["N"], sizes["M"], 4), np.float32)})
        for dim, size in zip(known, real.shape, strict=True):
            if dim is None or (isinstance(dim, Dim) and symbols_of(dim) - sizes.keys()):
                continue
            assert (evaluate(dim, sizes) if isinstance(dim, Dim) else dim) == size


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("i = Constant<value_ints=[3]>() c = GatherElements(s, i)", "SG302 GatherElements-13: index 3 is out of"),
        ("i = Constant<value_ints=[-4]>() c = ScatterElements(s, i, seven)", "SG302 ScatterElements-18: index -4 is"),
        ("i = Constant<value_ints=[1, 1, 0, 1]>() b = Cast<to=9>(i) c = Compress(s, b)", "float32[...]"),
    ],
)
def test_positions_out_of_range_say_nothing_of_the_elements(body: str, expected: str) -> None:
    known = shape_text(INPUTS, f"s = Shape(x) {body} y = ConstantOfShape(c)", constants=CONSTANTS)
    assert known.startswith(expected)


@pytest.mark.parametrize(
    ("size", "factor", "dtype", "expected"),
    [
        (6, "0.5", "float16", "float32[3]"),
        (7, "1.5", "float16", "float32[10]"),
        # 1.9995 is 2 in float16, and onnxruntime floors it before it is rounded.
        (6, "0.33325195", "float16", "float32[?]"),
        (6, "0.33325195", "float32", "float32[1]"),
        # Cast already rounds it.
        (6, "0.3", "float16", "float32[?]"),
        (4096, "0.25", "float16", "float32[?]"),
    ],
)
def test_half_precision_is_followed_where_it_is_exact(size: int, factor: str, dtype: str, expected: str) -> None:
    to = {"float16": 10, "float32": 1}[dtype]
    body = (
        f"n = Shape(x) h = Cast<to={to}>(n) k = Constant<value_float={factor}>() c = Cast<to={to}>(k) p = Mul(h, c) "
        "f = Floor(p) i = Cast<to=7>(f) y = ConstantOfShape(i)"
    )
    assert shape_text(f"float[{size}] x", body) == expected
