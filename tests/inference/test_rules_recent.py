"""Attention, signal processing, quantisation, images, random numbers, losses and strings: refusals, then shapes."""

from __future__ import annotations

import pytest
from node_models import NEWEST_OPSET, infer_nodes, shape_text

HELD = (
    "int64 zero = {0}, int64 n8 = {8}, int64 n16 = {16}, int64 step = {4}, int64[2] sides = {6, 5}, "
    "int64[2] block = {2, 3}, int64[4] size = {2, 3, 6, 5}, int64[2] crop = {7, 9}, int64[4] full = {1, 3, 5, 5}, "
    "float[1] scale = {1}, uint8 zp = {0}, int8 zp8 = {0}, float[3] scales = {1, 1, 1}, float rate = {1}"
)

INVALID = [
    ("attention-ranks", "float[2,3,4,8] q, float[2,4,24] k", "y = Attention(q, k, k)", 23, "the ranks [3, 4]"),
    ("attention-heads", "float[2,4,24] q", "y = Attention(q, q, q)", 23, "'q_num_heads'"),
    (
        "attention-sizes",
        "float[2,3,4,8] q, float[2,3,6,7] k",
        "y = Attention(q, k, k)",
        23,
        "head sizes of Q and K must be equal",
    ),
    (
        "attention-lengths",
        "float[2,3,4,8] q, float[2,3,6,8] k, float[2,3,5,8] v",
        "y = Attention(q, k, v)",
        23,
        "lengths of K and V",
    ),
    (
        "attention-split",
        "float[2,4,25] q",
        "y = Attention<q_num_heads=3, kv_num_heads=3>(q, q, q)",
        23,
        "25 is not divisible by 3",
    ),
    ("gate", "float[2,4] a, float[2,5] b", "y = SwiGLU(a, b)", 28, "equal, not 4 and 5"),
    ("dft-parts", "float[1,16,3] x", "y = DFT(x)", 20, "last dimension is 3"),
    ("dft-back-real", "float[1,9,1] x", "y = DFT<onesided=1, inverse=1>(x)", 20, "takes complex input"),
    ("dft-axis", "float[1,16,1] x", "y = DFT<axis=2>(x)", 17, "real and imaginary part"),
    ("stft-rank", "float[128] x", "y = STFT(x, step, , n16)", 17, "input 0 has rank 1"),
    ("stft-step", "float[1,128,1] x", "y = STFT(x, zero, , n16)", 17, "frame_step is 0"),
    ("stft-frame", "float[1,12,1] x", "y = STFT(x, step, , n16)", 17, "does not fit a signal of 12"),
    ("stft-window", "float[1,128,1] x, float[15] w", "y = STFT(x, step, w, n16)", 17, "frame_length and the window"),
    ("window-negative", "float[1] x", "m = Neg(n8) y = HannWindow(m)", 17, "negative dimension -8"),
    ("quantize-axis", "float[2,4] x", "y = QuantizeLinear<axis=2>(x, scales)", 13, "out of range [-2, 1]"),
    ("quantize-scales", "float[2,4] x", "y = QuantizeLinear(x, scales)", 13, "equal, not 4 and 3"),
    ("quantize-types", "float[2,4] x", "y = QuantizeLinear<output_dtype=3>(x, scale, zp)", 21, "output_dtype is int8"),
    ("quantize-precision", "float[2,4] x", "y = QuantizeLinear<precision=99>(x, scale)", 23, "is no element type"),
    (
        "causal-conv-activation",
        "float[2,4,9] x, float[4,1,3] w",
        'y, s = CausalConvWithState<activation="relu">(x, w)',
        27,
        "it must be none, silu or swish",
    ),
    ("dequantize-types", "uint8[2,4] x", "y = DequantizeLinear(x, scale, zp8)", 13, "one element type"),
    ("multinomial", "float[4] x", "y = Multinomial(x)", 18, "rank 1; it must have rank 2"),
    ("eye", "float[4] x", "y = EyeLike(x)", 18, "rank 1; it must have rank 2"),
    ("random-type", "float[4] x", "y = RandomNormal<shape=[2], dtype=99>()", 18, "99, which is no element type"),
    ("random-shape", "float[4] x", "y = RandomNormal<shape=[-2]>()", 18, "negative dimension"),
    ("columns", "float[1,13,20] x", "y = Col2Im(x, sides, block)", 18, "13 is not divisible by 6"),
    ("crop", "float[1,13,20] x", "y = CenterCropPad(x, crop)", 18, "2 sizes for 3 axes"),
    ("grid-rank", "float[1,2,6,6] x, float[1,3,2] g", "y = GridSample(x, g)", 20, "the same rank"),
    ("grid-points", "float[1,2,6,6] x, float[1,3,3,3] g", "y = GridSample(x, g)", 20, "coordinates of a point"),
    ("theta", "float[2,3,4] x", "y = AffineGrid(x, size)", 20, "rows of theta"),
    ("regions", "float[1,2,6,6] x, float[4,5] r, int64[4] b", "y = RoiAlign(x, r, b)", 16, "coordinates of a region"),
    ("unpool", "float[1,2,6] x, int64[1,2,6] i", "y = MaxUnpool<kernel_shape=[2,2]>(x, i)", 11, "it needs two less"),
    ("labels", "float[4,5,6] x, int64[4] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "they must have rank"),
    ("labels-batch", "float[4,5] x, int64[3] t", "y = NegativeLogLikelihoodLoss(x, t)", 13, "equal, not 4 and 3"),
    ("strings", "string[2,2,2] x", "y = StringNormalizer(x)", 10, "it must be [C] or [1, C]"),
    ("diagonal", "float[3,4] x", 'y = Einsum<equation="ii->i">(x)', 18, "equal, not 3 and 4"),
]
# Some operators are younger than the oldest supported onnx.
INVALID_HERE = [case for case in INVALID if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "said"), [c[1:] for c in INVALID_HERE], ids=[c[0] for c in INVALID_HERE]
)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset, constants=HELD)
    (found,) = analysis.diagnostics
    assert found.code == "SG302"
    assert said in found.message
    assert analysis.types["y"].shape is None


SHAPES = [
    (
        "attention",
        "float[B,H,S,D] q, float[B,H,L,D] k, float[B,H,L,E] v",
        "y = Attention(q, k, v)",
        23,
        "float32[B, H, S, E]",
    ),
    (
        "attention-flat",
        "float[B,S,24] q, float[B,L,12] k, float[B,L,20] v",
        "y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v)",
        23,
        "float32[B, S, 40]",
    ),
    (
        "attention-past",
        "float[B,H,S,D] q, float[B,H,P,D] p",
        "z, y, v = Attention(q, q, q, , p, p)",
        23,
        "float32[B, H, P + S, D]",
    ),
    (
        "attention-weights",
        "float[B,S,24] q, float[B,L,12] k",
        "z, a, b, y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, k)",
        23,
        "float32[B, 4, S, L]",
    ),
    (
        "linear-attention",
        "float[B,T,16] q, float[B,T,8] k, float[B,T,12] v",
        'y, s = LinearAttention<q_num_heads=4, kv_num_heads=2, update_rule="linear">(q, k, v)',
        27,
        "float32[B, T, 24]",
    ),
    (
        "linear-attention-state",
        "float[B,T,16] q, float[B,T,8] k, float[B,T,12] v",
        's, y = LinearAttention<q_num_heads=4, kv_num_heads=2, update_rule="linear">(q, k, v)',
        27,
        "float32[B, 2, 4, 6]",
    ),
    ("causal-conv", "float[B,C,T] x, float[C,1,4] w", "s, y = CausalConvWithState(x, w)", 27, "float32[B, C, 3]"),
    ("rotary", "float[B,H,S,8] x, float[9,4] c", "y = RotaryEmbedding(x, c, c)", 23, "float32[B, H, S, 8]"),
    ("gate", "float[N,M] a, float[N,4] b", "y = SwiGLU(a, b)", 28, "float32[N, 4]"),
    ("dft", "float[B,N,1] x", "y = DFT(x)", 20, "float32[B, N, 2]"),
    ("dft-half", "float[B,N,1] x", "y = DFT<onesided=1>(x)", 17, "float32[B, N//2 + 1, 2]"),
    ("dft-back", "float[B,9,2] x", "y = DFT<onesided=1, inverse=1>(x)", 20, "float32[B, 16, 1]"),
    ("dft-length", "float[B,N,1] x", "y = DFT(x, n8)", 20, "float32[B, 8, 2]"),
    ("stft", "float[B,N,1] x", "y = STFT(x, step, , n16)", 17, "float32[B, N//4 - 3, 9, 2]"),
    ("stft-whole", "float[1,16,1] x", "y = STFT(x, step)", 17, "float32[1, 1, 9, 2]"),
    (
        "stft-window",
        "float[B,128,1] x, float[W] w",
        "y = STFT<onesided=0>(x, step, w)",
        17,
        "float32[B, 33 - (W + 3)//4, W, 2]",
    ),
    ("stft-flat", "float[B,N] x", "y = STFT(x, step, , n16)", 17, "float32[B, N//4 - 3, 9, 2]"),
    ("stft-unknown", "float[B,N,1] x, int64 s", "y = STFT(x, s, , n16)", 17, "float32[B, ?, 9, 2]"),
    ("window", "float[N] x", "s = Size(x) y = HannWindow(s)", 17, "float32[N]"),
    ("mel", "float[N] x", "s = Size(x) y = MelWeightMatrix(n8, s, n16, rate, rate)", 17, "float32[N//2 + 1, 8]"),
    ("quantize", "float[N,4] x", "y = QuantizeLinear(x, scale, zp8)", 13, "int8[N, 4]"),
    ("quantize-attribute", "float[N,4] x", "y = QuantizeLinear<output_dtype=22>(x, scale)", 21, "int4[N, 4]"),
    ("quantize-default", "float[N,4] x", "y = QuantizeLinear(x, scale)", 10, "uint8[N, 4]"),
    ("dequantize", "uint8[N,4] x, float16 s", "y = DequantizeLinear(x, s)", 19, "float16[N, 4]"),
    (
        "dequantize-attribute",
        "uint8[N,4] x, float s",
        "y = DequantizeLinear<output_dtype=10>(x, s)",
        23,
        "float16[N, 4]",
    ),
    ("dynamic", "float[N,4] x", "y, s, z = DynamicQuantizeLinear(x)", 11, "uint8[N, 4]"),
    ("dynamic-scale", "float[N,4] x", "z, y, w = DynamicQuantizeLinear(x)", 11, "float32[]"),
    (
        "matmul-quantized",
        "uint8[B,N,4] a, int8[4,M] b",
        "y = QLinearMatMul(a, rate, zp, b, rate, zp8, rate, zp)",
        10,
        "uint8[B, N, M]",
    ),
    (
        "conv-quantized",
        "uint8[B,2,N] a, int8[3,2,3] b",
        "y = QLinearConv(a, rate, zp, b, rate, zp8, rate, zp)",
        10,
        "uint8[B, 3, N - 2]",
    ),
    ("bernoulli", "float[N,4] x", "y = Bernoulli<dtype=6>(x)", 15, "int32[N, 4]"),
    ("random", "float[N,4] x", "y = RandomUniform<shape=[2,3], dtype=11>()", 1, "float64[2, 3]"),
    ("random-like", "int64[N,4] x", "y = RandomNormalLike<dtype=1>(x)", 1, "float32[N, 4]"),
    ("multinomial", "float[N,4] x", "y = Multinomial<sample_size=7>(x)", 7, "int32[N, 7]"),
    ("eye", "float[N,4] x", "y = EyeLike<dtype=7>(x)", 9, "int64[N, 4]"),
    ("bits", "float[N,4] x", "y = BitCast<to=6>(x)", 26, "int32[N, 4]"),
    ("grid", "float[N,2,3] t", "y = AffineGrid(t, size)", 20, "float32[2, 6, 5, 2]"),
    ("sample", "float[N,C,H,W] x, float[N,P,Q,2] g", "y = GridSample(x, g)", 20, "float32[N, C, P, Q]"),
    (
        "regions",
        "float[N,C,H,W] x, float[R,4] r, int64[R] b",
        "y = RoiAlign<output_height=3>(x, r, b)",
        16,
        "float32[R, C, 3, 1]",
    ),
    (
        "regions-max",
        "float[N,C,H,W] x, float[R,5] r",
        "y = MaxRoiPool<pooled_shape=[2,3]>(x, r)",
        1,
        "float32[R, C, 2, 3]",
    ),
    ("columns", "float[N,12,L] x", "y = Col2Im(x, sides, block)", 18, "float32[N, 2, 6, 5]"),
    ("crop", "float[C,H,W] x", "y = CenterCropPad<axes=[-2,-1]>(x, crop)", 18, "float32[C, 7, 9]"),
    (
        "deformed",
        "float[N,2,H,8] x, float[4,2,3,3] w, float[N,18,P,6] o",
        "y = DeformConv(x, w, o)",
        19,
        "float32[N, 4, H - 2, 6]",
    ),
    (
        "unpool",
        "float[N,2,H] x, int64[N,2,H] i",
        "y = MaxUnpool<kernel_shape=[2], strides=[2]>(x, i)",
        11,
        "float32[N, 2, 2*H]",
    ),
    (
        "unpool-shape",
        "float[1,3,2,2] x, int64[1,3,2,2] i",
        "y = MaxUnpool<kernel_shape=[2,2]>(x, i, full)",
        11,
        "float32[1, 3, 5, 5]",
    ),
    ("image", "uint8[N] x", 'y = ImageDecoder<pixel_format="Grayscale">(x)', 20, "uint8[?, ?, 1]"),
    ("loss", "float[N,C,H] x, int64[N,H] t", "y = SoftmaxCrossEntropyLoss(x, t)", 13, "float32[]"),
    (
        "loss-each",
        "float[N,C,H] x, int64[N,H] t",
        'y = NegativeLogLikelihoodLoss<reduction="none">(x, t)',
        13,
        "float32[N, H]",
    ),
    ("loss-logs", "float[N,C,H] x, int64[N,H] t", "z, y = SoftmaxCrossEntropyLoss(x, t)", 13, "float32[N, C, H]"),
    ("strings", "string[N,1] a, string[4] b", "y = StringConcat(a, b)", 20, "string[N, 4]"),
    ("matches", "string[N] a", "y = RegexFullMatch(a)", 20, "bool[N]"),
    ("normalized", "string[1,N] a", "y = StringNormalizer(a)", 10, "string[1, max(N, 1)]"),
    ("stopped", "string[N] a", 'y = StringNormalizer<stopwords=["a"]>(a)', 10, "string[?]"),
    (
        "n-grams",
        "int64[N,C] a",
        'y = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], '
        "ngram_indexes=[0,2], pool_int64s=[3,4]>(a)",
        9,
        "float32[N, 3]",
    ),
    ("diagonal", "float[B,N,N] x", 'y = Einsum<equation="bii->bi">(x)', 18, "float32[B, N]"),
]
SHAPES_HERE = [case for case in SHAPES if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES_HERE], ids=[c[0] for c in SHAPES_HERE]
)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected


TYPES = [
    ("add", "bool[2] x", "y = Add(x, x)", 14, "input 0 is bool"),
    ("relu", "string[2] x", "y = Relu(x)", 13, "input 0 is string"),
    ("gather", "float[2] x, float[1] i", "y = Gather(x, i)", 13, "input 1 is float32; it must be one of int32, int64"),
    ("reshape", "float[2] x, int32[1] s", "y = Reshape(x, s)", 13, "input 1 is int32; it must be int64"),
    ("not", "int64[2] x", "y = Not(x)", 1, "input 0 is int64; it must be bool"),
    ("clip", "float[2] x, double m", "y = Clip(x, m)", 13, "input 1 is float64 and input 0 is float32"),
    ("norm", "float[2,4] x, float16[4] s", "y = LayerNormalization(x, s)", 17, "both must be of one type"),
    ("pow", "bool[2] x, float e", "y = Pow(x, e)", 13, "input 0 is bool"),
    ("sequence", "seq(float[2]) x", "y = Reshape(x, x)", 13, "sequence"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in TYPES], ids=[c[0] for c in TYPES])
def test_an_element_type_that_the_schema_lacks_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    (found,) = analysis.diagnostics
    assert found.code == "SG302" and said in found.message


def test_element_types_that_a_later_version_allows_are_taken_there() -> None:
    assert not infer_nodes("bfloat16[2] x", "y = Relu(x)", opset=12).ok
    assert infer_nodes("bfloat16[2] x", "y = Relu(x)", opset=13).ok
