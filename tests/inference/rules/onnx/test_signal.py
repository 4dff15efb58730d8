"""Fourier transforms and windows: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

HELD = "int64 zero = {0}, int64 n8 = {8}, int64 n16 = {16}, int64 step = {4}, float rate = {1}"

INVALID = [
    ("dft-parts", "float[1,16,3] x", "y = DFT(x)", 20, "last dimension is 3"),
    ("dft-back-real", "float[1,9,1] x", "y = DFT<onesided=1, inverse=1>(x)", 20, "requires complex input"),
    ("dft-axis", "float[1,16,1] x", "y = DFT<axis=2>(x)", 17, "real and imaginary part"),
    ("stft-rank", "float[128] x", "y = STFT(x, step, , n16)", 17, "input 0 has rank 1"),
    ("stft-step", "float[1,128,1] x", "y = STFT(x, zero, , n16)", 17, "frame_step is 0"),
    ("stft-frame", "float[1,12,1] x", "y = STFT(x, step, , n16)", 17, "does not fit a signal of 12"),
    (
        "stft-window",
        "float[1,128,1] x, float[15] w",
        "y = STFT(x, step, w, n16)",
        17,
        "frame_length and the length of the window",
    ),
    ("window-negative", "float[1] x", "m = Neg(n8) y = HannWindow(m)", 17, "negative dimension -8"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset, constants=HELD), expected)


SHAPES = [
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
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected
