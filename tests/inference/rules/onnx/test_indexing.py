"""Gather and its kin, TopK, OneHot, NonZero, Concat, Tile, Pad, Range, Resize: refusals, then shapes, then contents."""

from __future__ import annotations

import math

import onnx
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import infer_nodes, shape_text

from splitgraph.dim import Dim
from splitgraph.inference import infer_model

HELD = "int64 zero = {0}, int64 two = {2}, int64 minus = {-1}, int64[1] k = {3}, int64[2] pair = {0, -1}"

INVALID = [
    (
        "slice-bounds-of-unknown-data",
        "float[6] x, int64[K] t, int64[2] s, int64[1] e",
        "u = Reshape(x, t) y = Slice(u, s, e)",
        18,
        "2 starts, 1 ends",
    ),
    ("gather-scalar", "float x", "y = Gather(x, zero)", 18, "at least one axis"),
    ("gather-axis", "float[2] x", "y = Gather<axis=1>(x, zero)", 18, "it must be in [-1, 0]"),
    ("gather-shape-index", "float[2] x", "d = Shape(x) y = Gather(d, two)", 18, "index 2 is out of range"),
    (
        "gather-index-of-the-length",
        "float x",
        "y = Gather(pair, two)",
        18,
        "index 2 is out of range on axis 0; it must be in [-2, 1]",
    ),
    ("gather-elements-rank", "float[2,3] x", "y = GatherElements(x, pair)", 18, "rank 2 and the indices rank 1"),
    ("gather-nd-depth", "float[2] x", "y = GatherND(x, pair)", 18, "2 entries"),
    ("top-k", "float[2] x", "y, i = TopK(x, k)", 18, "k is 3, more than the 2"),
    ("top-k-1", "float[2] x", "y, i = TopK<k=3>(x)", 1, "k is 3"),
    ("concat-dims", "float[2,3] a, float[2,4] b", "y = Concat<axis=0>(a, b)", 18, "equal, not 3 and 4"),
    ("concat-ranks", "float[2,3] a, float[2] b", "y = Concat<axis=0>(a, b)", 18, "same rank"),
    ("concat-scalars", "float a, float b", "y = Concat<axis=0>(a, b)", 18, "scalars"),
    ("concat-types", "float[2] a, int64[2] b", "y = Concat<axis=0>(a, b)", 18, "same element type"),
    ("tile-count", "float[2,3] x", "y = Tile(x, k)", 18, "1 repeats for an input of rank 2"),
    ("tile-negative", "float[2,3] x", "y = Tile(x, pair)", 18, "must be at least 0"),
    ("pad-count", "float[2,3] x", "y = Pad(x, pair)", 18, "2 pads for 2 axes"),
    ("pad-too-much", "float[2] x", "y = Pad<pads=[-1,-2]>(x)", 2, "more than the dimension 2"),
    ("range-step", "float[2] x", "y = Range(zero, two, zero)", 18, "delta is 0"),
    ("range-vector", "float[2] x", "y = Range(pair, two, two)", 18, "must be a scalar"),
    ("resize-scales", "float[2,3] x", "y = Upsample<scales=[1.0, 2.0, 2.0]>(x)", 7, "3 scales for 2 axes"),
    ("resize-negative", "float[2,3] x", "y = Upsample<scales=[1.0, -2.0]>(x)", 7, "must be positive"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    answer = shape_text(inputs, body, constants=HELD, opset=opset)
    assert answer.startswith("SG302 ")
    assert said in answer


SHAPES = [
    ("gather", "float[A,B,C] x, int64[I,J] i", "y = Gather<axis=1>(x, i)", 18, "float32[A, I, J, C]"),
    ("gather-scalar-index", "float[A,B] x", "y = Gather(x, zero)", 1, "float32[B]"),
    ("gather-unknown-indices", "float[A,B] x, int64[] i", "y = Gather(x, i)", 18, "float32[...]"),
    ("gather-elements", "float[A,B] x, int64[I,J] i", "y = GatherElements(x, i)", 18, "float32[I, J]"),
    ("gather-nd", "float[A,B,C] x, int64[I,2] i", "y = GatherND(x, i)", 18, "float32[I, C]"),
    ("gather-nd-batch", "float[A,B,C] x, int64[A,1] i", "y = GatherND<batch_dims=1>(x, i)", 18, "float32[A, C]"),
    ("gather-nd-open", "float[A,B] x, int64[I,K] i", "y = GatherND(x, i)", 18, "float32[...]"),
    ("scatter-nd", "float[A,B] x, int64[I,1] i, float[I,B] u", "y = ScatterND(x, i, u)", 18, "float32[A, B]"),
    ("compress", "float[A,B] x, bool[3] c", "y = Compress<axis=0>(x, c)", 18, "float32[?, B]"),
    ("non-zero", "float[A,B] x", "y = NonZero(x)", 18, "int64[2, ?]"),
    ("top-k", "float[A,B] x", "y, i = TopK<axis=0>(x, k)", 18, "float32[3, B]"),
    ("top-k-computed", "float[A,B] x, float[K] z", "count = Shape(z) y, i = TopK(x, count)", 18, "float32[A, K]"),
    ("one-hot", "int64[A] x, float[2] v", "y = OneHot<axis=0>(x, k, v)", 18, "float32[3, A]"),
    ("unique-axis", "float[A,B] x", "y, first, where, often = Unique<axis=1>(x)", 18, "float32[A, unk0]"),
    ("concat", "float[A,3] a, float[B,3] b", "y = Concat<axis=0>(a, b)", 18, "float32[A + B, 3]"),
    ("concat-takes-the-static", "float[2,N] a, float[2,3] b", "y = Concat<axis=0>(a, b)", 18, "float32[4, 3]"),
    ("concat-1-default", "float[2,N] a, float[2,M] b", "y = Concat(a, b)", 1, "float32[2, M + N]"),
    ("concat-one-unknown", "float[A,3] a, float[] b", "y = Concat<axis=0>(a, b)", 18, "float32[A + unk0, 3]"),
    ("tile", "float[A,3] x", "y = Tile(x, r)", 18, "float32[2*A, 9]"),
    ("tile-unknown", "float[A,3] x, int64[2] n", "y = Tile(x, n)", 18, "float32[?, ?]"),
    ("tile-1", "float[A,3] x", "y = Tile(x, f1, t)", 1, "float32[2*A, 3]"),
    ("pad", "float[A,3] x", "y = Pad(x, p)", 18, "float32[A + 4, 9]"),
    ("pad-axes", "float[A,3] x", "y = Pad(x, r, , k1)", 18, "float32[A, 8]"),
    ("pad-2", "float[A,3] x", "y = Pad<pads=[1,0,2,0]>(x)", 2, "float32[A + 3, 3]"),
    ("pad-1", "float[A,3] x", "y = Pad<paddings=[1,0,2,0]>(x)", 1, "float32[A + 3, 3]"),
    ("range", "float x", "y = Range(zero, five, two)", 18, "int64[3]"),
    ("range-backward", "float x", "y = Range(five, zero, back)", 18, "int64[3]"),
    ("range-empty", "float x", "y = Range(five, zero, two)", 18, "int64[0]"),
    ("range-floats", "float x", "y = Range(f0, f1, f2)", 18, "float32[4]"),
    ("range-symbolic", "float[N] x", "n = Size(x) y = Range(zero, n, two)", 18, "int64[(N + 1)//2]"),
    ("range-between", "float[N] x", "n = Size(x) y = Range(two, n, one)", 18, "int64[max(0, N - 2)]"),
    ("range-unknown", "int64 x", "y = Range(zero, x, two)", 18, "int64[?]"),
    ("upsample-7", "float[N,3,H,5] x", "y = Upsample<scales=[1.0,1.0,2.0,2.0]>(x)", 7, "float32[N, 3, 2*H, 10]"),
    ("upsample-9", "float[N,3] x", "y = Upsample(x, half)", 9, "float32[N, 1]"),
    ("resize-half", "float[3,N] x", "y = Resize(x, , half)", 18, "float32[3, N//2]"),
    ("resize-third", "float[3,N] x", "y = Resize(x, , third)", 18, "float32[3, ?]"),
    ("resize-10", "float[3,5] x", "y = Resize(x, half)", 10, "float32[3, 2]"),
    ("resize-sizes", "float[3,N] x", "y = Resize(x, , , r)", 18, "float32[2, 3]"),
    ("resize-axes", "float[3,N] x", "y = Resize<axes=[1]>(x, , , k1)", 18, "float32[3, 1]"),
    (
        "resize-ratio",
        "float[4,9] x",
        'y = Resize<keep_aspect_ratio_policy="not_larger">(x, , , r)',
        18,
        "float32[1, 3]",
    ),
    ("trilu", "float[A,B] x", "y = Trilu(x)", 18, "float32[A, B]"),
]
MORE = HELD + (
    ", int64[2] r = {2, 3}, int64[4] p = {1, 2, 3, 4}, int64[1] k1 = {1}, float t = {0.0}, int64 five = {5}, "
    "int64 back = {-2}, int64 one = {1}, float f0 = {0.5}, float f1 = {2.0}, float f2 = {0.375}, "
    "float[2] half = {1.0, 0.5}, float[2] third = {1.0, 0.3}"
)


@pytest.mark.parametrize(("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, constants=MORE, opset=opset) == expected


def test_what_is_concatenated_must_agree() -> None:
    analysis = infer_nodes("float[A,N] a, float[B,M] b", "y = Concat<axis=0>(a, b) z = Squeeze(b, k1)", constants=MORE)
    assert analysis.ok
    # N and M must be equal, and M must be 1.
    assert analysis.symbols["M"] == (1, 1)
    body = "y = Concat<axis=0>(a, b) u = Squeeze(a, k1) v = Squeeze(c, k1)"
    refused = infer_nodes("float[A,1] a, float[B,M] b, float[M,2] c", body, constants=MORE)
    assert not refused.ok


def test_unknown_elements_beside_known_ones_stay_apart() -> None:
    body = "d = Shape(x) s = Concat<axis=0>(d, n) y = ConstantOfShape(s)"
    assert shape_text("float[N] x, int64[1] n", body) == "float32[N, ?]"


@given(st.integers(-6, 6), st.integers(-6, 6), st.sampled_from([-3, -2, -1, 1, 2, 3]))
@settings(derandomize=True, deadline=None, max_examples=examples(150))
def test_a_range_counts_as_python_does(start: int, limit: int, delta: int) -> None:
    held = f"int64 a = {{{start}}}, int64 b = {{{limit}}}, int64 d = {{{delta}}}"
    counted = len(range(start, limit, delta))
    assert shape_text("float x", "y = Range(a, b, d)", constants=held) == f"int64[{counted}]"
    assert counted == max(0, math.ceil((limit - start) / delta))


def test_a_range_of_symbols_is_followed() -> None:
    body = "n = Size(x) e = Add(n, two) y = Range(n, e, one) s = Add(y, one) z = ConstantOfShape(s)"
    analysis = infer_nodes("float[N] x", body, constants=MORE)
    assert str(analysis.types["z"]) == "float32[N + 1, N + 2]"
    assert all(isinstance(dim, Dim) for dim in analysis.types["z"].shape or ())


@pytest.mark.parametrize(
    ("data", "condition", "expected"),
    [
        ("float[4] x", "[1, 0, 1]", "float32[2]"),
        ("float[2] x", "[1, 0, 0]", "float32[1]"),
        ("float[2] x", "[1, 0, 1]", "float32[?]"),
        ("float[0] x", "[1]", "float32[?]"),
        ("float[N] x", "[0, 0]", "float32[0]"),
        ("float[N] x", "[0, 1]", "float32[?]"),
    ],
)
def test_a_condition_beyond_the_last_element_keeps_nothing_for_certain(
    data: str, condition: str, expected: str
) -> None:
    """onnxruntime passes over what lies beyond; it once was counted."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g ({data}) => (float[K] y) {{
            numbers = Constant <value_ints: ints = {condition}> ()
            held = Cast <to: int = 9> (numbers)
            y = Compress <axis: int = 0> (x, held)
        }}"""
    )
    model.graph.output[0].ClearField("type")
    assert str(infer_model(model).types["y"]) == expected
