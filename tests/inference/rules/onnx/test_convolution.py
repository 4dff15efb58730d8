"""Convolution and pooling: refusals, then shapes."""

from __future__ import annotations

import onnx
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import assert_invalid, each, infer_nodes, shape_text

from splitgraph.dim import Dim, evaluate
from splitgraph.inference import infer_model

HELD = "int64[4] full = {1, 3, 5, 5}"
BACK = "float[1,3,8] x, float[3,4,3] w"
CONV = "float[N,3,H,W] x, float[8,3,3,3] w"

INVALID = [
    (
        "unpool",
        "float[1,2,6] x, int64[1,2,6] i",
        "y = MaxUnpool<kernel_shape=[2,2]>(x, i)",
        11,
        "it must have 2 elements fewer",
    ),
    ("conv-channels", "float[1,3,8] x, float[4,2,3] w", "y = Conv(x, w)", 18, "not 3 and 2"),
    ("conv-too-small", "float[1,3,2] x, float[4,3,3] w", "y = Conv(x, w)", 18, "window of 3 does not fit"),
    ("conv-strides", "float[1,3,8] x, float[4,3,3] w", "y = Conv<strides=[1,1]>(x, w)", 18, "2 strides for 1"),
    ("conv-groups", "float[1,4,8] x, float[3,2,3] w", "y = Conv<group=2>(x, w)", 18, "cannot be divided into 2 groups"),
    ("conv-pads", "float[1,3,8] x, float[4,3,3] w", 'y = Conv<auto_pad="SOME">(x, w)', 18, "SOME"),
    ("conv-negative-pads", "float[1,3,8] x, float[4,3,3] w", "y = Conv<pads=[-1,0]>(x, w)", 18, "pads are [-1, 0]"),
    ("conv-strides-zero", "float[1,3,8] x, float[4,3,3] w", "y = Conv<strides=[0]>(x, w)", 18, "strides are [0]"),
    ("conv-no-kernel", "float[1,3,8] x, float[] w", "y = Conv<kernel_shape=[0]>(x, w)", 18, "kernel_shape is [0]"),
    ("pool-no-kernel", "float[1,3,8] x", "y = MaxPool<kernel_shape=[0]>(x)", 18, "kernel_shape is [0]"),
    ("pool-pads", "float[1,3,8] x", "y = AveragePool<kernel_shape=[2], pads=[0,-1]>(x)", 18, "at least 0"),
    ("transpose-shape", BACK, "y = ConvTranspose<output_shape=[-1]>(x, w)", 18, "output_shape is [-1]"),
    ("transpose-padding", BACK, "y = ConvTranspose<output_padding=[-1]>(x, w)", 18, "output_padding is [-1]"),
    ("unpool", "float[1,3,8] x, int64[1,3,8] i", "y = MaxUnpool<kernel_shape=[0]>(x, i)", 11, "kernel_shape is [0]"),
    ("pool-rank", "float[1,3,8] x", "y = MaxPool<kernel_shape=[2,2]>(x)", 18, "rank 3"),
    ("depth-to-space", "float[1,3,2,2] x", "y = DepthToSpace<blocksize=2>(x)", 18, "3 is not divisible by 4"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset, constants=HELD), expected)


SHAPES = [
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
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected


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
@settings(derandomize=True, deadline=None, max_examples=examples(120))
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


@pytest.mark.parametrize("dim", ["M", "1"])
@pytest.mark.parametrize(
    ("stride", "expected"), [(1, "float32[...]"), (2, "float32[1, 3, 0]"), (3, "float32[1, 3, ?]")]
)
def test_a_window_larger_than_a_dimension_that_can_only_be_one(stride: int, expected: str, dim: str) -> None:
    """What does not fit is judged alike where it is written as a number and where it is known to be one."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[{dim}] a, float[1, 3, {dim}] x) => (float[K] y) {{
            one = Constant <value_ints: ints = [1]> ()
            same = Reshape (a, one)
            y = MaxPool <kernel_shape: ints = [3], strides: ints = [{stride}]> (x)
        }}"""
    )
    model.graph.output[0].ClearField("type")
    analysis = infer_model(model)
    assert analysis.ok is (stride > 1)
    assert str(analysis.types["y"]) == expected
