"""MatMul, Gemm, Einsum, convolution, pooling, reductions and recurrent networks: refusals, then shapes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import infer_nodes, shape_text

from splitgraph.dim import Dim, evaluate

BACK = "float[1,3,8] x, float[3,4,3] w"
INVALID = [
    ("matmul", "float[2,3] a, float[4,5] b", "y = MatMul(a, b)", 18, "inner dimensions must be equal, not 3 and 4"),
    ("matmul-scalar", "float[2,3] a, float b", "y = MatMul(a, b)", 18, "scalar"),
    ("matmul-batch", "float[2,3,4] a, float[5,4,2] b", "y = MatMul(a, b)", 18, "2 and 5"),
    ("gemm-rank", "float[2,3,4] a, float[4,5] b", "y = Gemm(a, b)", 18, "rank 3"),
    ("gemm-added", "float[2,3] a, float[3,5] b, float[4] c", "y = Gemm(a, b, c)", 18, "4 where the product has 5"),
    ("einsum-terms", "float[2,3] a", 'y = Einsum<equation="ij,jk->ik">(a)', 18, "2 terms for 1 inputs"),
    ("einsum-rank", "float[2,3] a", 'y = Einsum<equation="ijk->ik">(a)', 18, "rank 2"),
    ("conv-channels", "float[1,3,8] x, float[4,2,3] w", "y = Conv(x, w)", 18, "not 3 and 2"),
    ("conv-too-small", "float[1,3,2] x, float[4,3,3] w", "y = Conv(x, w)", 18, "window of 3 does not fit"),
    ("conv-strides", "float[1,3,8] x, float[4,3,3] w", "y = Conv<strides=[1,1]>(x, w)", 18, "2 strides for 1"),
    ("conv-groups", "float[1,4,8] x, float[3,2,3] w", "y = Conv<group=2>(x, w)", 18, "do not divide into 2 groups"),
    ("conv-pads", "float[1,3,8] x, float[4,3,3] w", 'y = Conv<auto_pad="SOME">(x, w)', 18, "SOME"),
    ("conv-negative-pads", "float[1,3,8] x, float[4,3,3] w", "y = Conv<pads=[-1,0]>(x, w)", 18, "pads are [-1, 0]"),
    ("conv-strides-zero", "float[1,3,8] x, float[4,3,3] w", "y = Conv<strides=[0]>(x, w)", 18, "strides are [0]"),
    ("conv-no-kernel", "float[1,3,8] x, float[] w", "y = Conv<kernel_shape=[0]>(x, w)", 18, "kernel_shape is [0]"),
    ("pool-no-kernel", "float[1,3,8] x", "y = MaxPool<kernel_shape=[0]>(x)", 18, "kernel_shape is [0]"),
    ("pool-pads", "float[1,3,8] x", "y = AveragePool<kernel_shape=[2], pads=[0,-1]>(x)", 18, "at least 0"),
    ("transpose-shape", BACK, "y = ConvTranspose<output_shape=[-1]>(x, w)", 18, "output_shape is [-1]"),
    ("transpose-padding", BACK, "y = ConvTranspose<output_padding=[-1]>(x, w)", 18, "output_padding is [-1]"),
    (
        "roi-align",
        "float[1,3,8,8] x, float[2,4] r, int64[2] b",
        "y = RoiAlign<output_height=-2>(x, r, b)",
        16,
        "output_height and output_width are -2 and 1",
    ),
    (
        "roi-pool",
        "float[1,3,8,8] x, float[2,5] r",
        "y = MaxRoiPool<pooled_shape=[2,-1]>(x, r)",
        16,
        "pooled_shape is [2, -1]",
    ),
    ("unpool", "float[1,3,8] x, int64[1,3,8] i", "y = MaxUnpool<kernel_shape=[0]>(x, i)", 11, "kernel_shape is [0]"),
    ("pool-rank", "float[1,3,8] x", "y = MaxPool<kernel_shape=[2,2]>(x)", 18, "rank 3"),
    ("depth-to-space", "float[1,3,2,2] x", "y = DepthToSpace<blocksize=2>(x)", 18, "3 is not divisible by 4"),
    ("reduce-axis", "float[2,3] x", "y = ReduceMax<axes=[2]>(x)", 13, "out of range [-2, 1]"),
    ("arg-max-axis", "float[2,3] x", "y = ArgMax<axis=-3>(x)", 13, "out of range"),
    ("lstm-rank", "float[2,3] x, float[1,8,3] w, float[1,8,2] r", "y = LSTM<hidden_size=2>(x, w, r)", 14, "rank 3"),
    ("gru-gates", "float[2,1,3] x, float[1,8,3] w, float[1,6,2] r", "y = GRU(x, w, r)", 14, "not 6 and 8"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    answer = shape_text(inputs, body, opset=opset)
    assert answer.startswith("SG302 ")
    assert said in answer


CONV = "float[N,3,H,W] x, float[8,3,3,3] w"
SHAPES = [
    ("matmul", "float[N,3] a, float[3,M] b", "y = MatMul(a, b)", 18, "float32[N, M]"),
    ("matmul-batch", "float[B,H,N,4] a, float[H,4,M] b", "y = MatMul(a, b)", 18, "float32[B, H, N, M]"),
    ("matmul-vectors", "float[3] a, float[3] b", "y = MatMul(a, b)", 18, "float32[]"),
    ("matmul-row", "float[3] a, float[B,3,M] b", "y = MatMul(a, b)", 18, "float32[B, M]"),
    ("matmul-column", "float[B,N,3] a, float[3] b", "y = MatMul(a, b)", 18, "float32[B, N]"),
    ("matmul-unknown", "float[N,3] a, float[] b", "y = MatMul(a, b)", 18, "float32[...]"),
    ("gemm", "float[K,N] a, float[M,K] b, float[M] c", "y = Gemm<transA=1, transB=1>(a, b, c)", 18, "float32[N, M]"),
    ("gemm-unknown", "float[] a, float[K,M] b", "y = Gemm(a, b)", 18, "float32[?, M]"),
    ("einsum", "float[B,N,K] a, float[B,K,M] b", 'y = Einsum<equation="bij,bjk->bik">(a, b)', 18, "float32[B, N, M]"),
    ("einsum-implicit", "float[N,K] a, float[K,M] b", 'y = Einsum<equation="ij,jk">(a, b)', 18, "float32[N, M]"),
    ("einsum-ellipsis", "float[A,B,N,M] a", 'y = Einsum<equation="...ij->...ji">(a)', 18, "float32[A, B, M, N]"),
    ("conv-same", CONV, "y = Conv<pads=[1,1,1,1]>(x, w)", 18, "float32[N, 8, H, W]"),
    ("conv-plain", CONV, "y = Conv(x, w)", 18, "float32[N, 8, H - 2, W - 2]"),
    (
        "conv-strided",
        CONV,
        "y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)",
        18,
        "float32[N, 8, (H + 1)//2, (W + 1)//2]",
    ),
    ("conv-auto", CONV, 'y = Conv<auto_pad="SAME_UPPER", strides=[2,1]>(x, w)', 1, "float32[N, 8, (H + 1)//2, W]"),
    ("conv-dilated", CONV, "y = Conv<dilations=[2,1]>(x, w)", 18, "float32[N, 8, H - 4, W - 2]"),
    ("conv-static", "float[N,4,9] x, float[6,2,3] w", "y = Conv<group=2, strides=[3]>(x, w)", 18, "float32[N, 6, 3]"),
    (
        "conv-transpose",
        "float[N,3,H] x, float[3,5,4] w",
        "y = ConvTranspose<strides=[2], pads=[1,1]>(x, w)",
        18,
        "float32[N, 5, 2*H]",
    ),
    (
        "conv-transpose-shape",
        "float[N,3,H] x, float[3,5,4] w",
        "y = ConvTranspose<output_shape=[9]>(x, w)",
        18,
        "float32[N, 5, 9]",
    ),
    *[
        (
            f"conv-transpose-{pad}",
            "float[N,3,H] x, float[3,5,4] w",
            f'y = ConvTranspose<auto_pad="{pad}", strides=[2]>(x, w)',
            18,
            "float32[N, 5, 2*H]",
        )
        for pad in ("SAME_UPPER", "SAME_LOWER")
    ],
    ("max-pool", "float[N,C,H] x", "y = MaxPool<kernel_shape=[2], strides=[2]>(x)", 18, "float32[N, C, H//2]"),
    ("max-pool-indices", "float[N,C,9] x", "z, y = MaxPool<kernel_shape=[3]>(x)", 18, "int64[N, C, 7]"),
    (
        "pool-up",
        "float[N,C,H] x",
        "y = MaxPool<kernel_shape=[2], strides=[2], ceil_mode=1>(x)",
        18,
        "float32[N, C, (H + 1)//2]",
    ),
    (
        "pool-up-static",
        "float[N,C,4] x",
        "y = MaxPool<kernel_shape=[1], strides=[2], ceil_mode=1>(x)",
        18,
        "float32[N, C, 2]",
    ),
    ("global", "float[N,C,H,W] x", "y = GlobalAveragePool(x)", 18, "float32[N, C, 1, 1]"),
    ("depth-to-space", "float[N,C,H,W] x", "y = DepthToSpace<blocksize=2>(x)", 18, "float32[N, C//4, 2*H, 2*W]"),
    ("space-to-depth", "float[N,C,4,W] x", "y = SpaceToDepth<blocksize=2>(x)", 18, "float32[N, 4*C, 2, W//2]"),
    ("reduce", "float[A,B,C] x", "y = ReduceMean<axes=[-1], keepdims=0>(x)", 13, "float32[A, B]"),
    ("reduce-all", "float[A,B] x", "y = ReduceMean(x)", 13, "float32[1, 1]"),
    ("reduce-noop", "float[A,B] x", "y = ReduceSum<noop_with_empty_axes=1>(x)", 13, "float32[A, B]"),
    ("reduce-unknown-axes", "float[1,B] x, int64[1] a", "y = ReduceSum(x, a)", 13, "float32[1, ?]"),
    ("reduce-unknown-dropped", "float[1,B] x, int64[1] a", "y = ReduceSum<keepdims=0>(x, a)", 13, "float32[...]"),
    ("reduce-to-scalar", "float[] x", "y = ReduceSum<keepdims=0>(x)", 13, "float32[]"),
    ("arg-max", "float[A,B] x", "y = ArgMax<axis=1, keepdims=0>(x)", 13, "int64[A]"),
    ("layer-norm", "float[A,B,4] x, float[4] s", "z, y, d = LayerNormalization(x, s)", 17, "float32[A, B, 1]"),
    ("layer-norm-optimized", "float[A,B,4] x, float[4] s", "z, y = LayerNormalization(x, s)", 11, "float32[A, B, 1]"),
    ("det", "float[A,3,3] x", "y = Det(x)", 18, "float32[A]"),
    (
        "lstm",
        "float[T,B,3] x, float[2,8,3] w, float[2,8,2] r",
        'y = LSTM<hidden_size=2, direction="bidirectional">(x, w, r)',
        14,
        "float32[T, 2, B, 2]",
    ),
    ("gru-last", "float[T,B,3] x, float[1,6,3] w, float[1,6,2] r", "z, y = GRU(x, w, r)", 14, "float32[1, B, 2]"),
    (
        "rnn-batch-first",
        "float[B,T,3] x, float[1,2,3] w, float[1,2,2] r",
        "y = RNN<layout=1>(x, w, r)",
        14,
        "float32[B, T, 1, 2]",
    ),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected


def test_inner_dimensions_that_must_agree() -> None:
    analysis = infer_nodes("float[N,K] a, float[3,M] b", "y = MatMul(a, b)")
    assert analysis.symbols["K"] == (3, 3)
    refused = infer_nodes("float[N,K] a, float[3,M] b, float[4,M] c", "y = MatMul(a, b) z = MatMul(a, c)")
    assert not refused.ok


def test_a_window_must_fit() -> None:
    analysis = infer_nodes("float[1,3,H] x, float[4,3,5] w", "y = Conv(x, w)")
    assert analysis.symbols["H"] == (5, None)


def pooled(size: int, kernel: int, stride: int, dilation: int, before: int, after: int, round_up: bool) -> int:
    """How many windows there are, counted one by one as the specification describes them."""
    extent = (kernel - 1) * dilation + 1
    starts = list(range(-before, size + after, stride))
    if round_up:
        fitting = [s for s in starts if s < size and (s - stride + extent < size + after or s == -before)]
    else:
        fitting = [s for s in starts if s + extent <= size + after]
    return len(fitting)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.data(), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=120)
def test_windows_are_as_many_as_can_be_counted(
    kernel: int, stride: int, dilation: int, data: st.DataObject, round_up: bool
) -> None:
    before, after = data.draw(st.integers(0, kernel - 1)), data.draw(st.integers(0, kernel - 1))
    attributes = f"kernel_shape=[{kernel}], strides=[{stride}], dilations=[{dilation}], pads=[{before},{after}]"
    body = f"y = MaxPool<{attributes}, ceil_mode={int(round_up)}>(x)"
    symbolic = infer_nodes("float[1,1,H] x", body).types["y"].shape
    assert symbolic is not None
    extent = (kernel - 1) * dilation + 1
    smallest = max(1, extent - before - after)
    for size in range(smallest, smallest + 12):
        counted = pooled(size, kernel, stride, dilation, before, after, round_up)
        static = infer_nodes(f"float[1,1,{size}] x", body).types["y"].shape
        assert static == (1, 1, counted)
        assert isinstance(symbolic[2], Dim)
        assert evaluate(symbolic[2], {"H": size}) == counted
