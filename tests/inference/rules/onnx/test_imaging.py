"""Operators on images: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

HELD = "int64[2] sides = {6, 5}, int64[2] block = {2, 3}, int64[4] size = {2, 3, 6, 5}, int64[2] crop = {7, 9}"

INVALID = [
    ("columns", "float[1,13,20] x", "y = Col2Im(x, sides, block)", 18, "13 is not divisible by 6"),
    ("crop", "float[1,13,20] x", "y = CenterCropPad(x, crop)", 18, "2 sizes for 3 axes"),
    ("grid-rank", "float[1,2,6,6] x, float[1,3,2] g", "y = GridSample(x, g)", 20, "[1, 3, 2]; it must be [1, ?, ?, 2]"),
    (
        "grid-points",
        "float[1,2,6,6] x, float[1,3,3,3] g",
        "y = GridSample(x, g)",
        20,
        "[1, 3, 3, 3]; it must be [1, ?, ?, 2]",
    ),
    ("theta", "float[2,3,4] x", "y = AffineGrid(x, size)", 20, "[2, 3, 4]; it must be [2, 2, 3]"),
    ("regions", "float[1,2,6,6] x, float[4,5] r, int64[4] b", "y = RoiAlign(x, r, b)", 16, "it must be [R, 4]"),
    (
        "roi-align",
        "float[1,3,8,8] x, float[2,4] r, int64[2] b",
        "y = RoiAlign<output_height=-2>(x, r, b)",
        16,
        "output_height is -2; it must be at least 1",
    ),
    (
        "roi-pool",
        "float[1,3,8,8] x, float[2,5] r",
        "y = MaxRoiPool<pooled_shape=[2,-1]>(x, r)",
        16,
        "pooled_shape is [2, -1]",
    ),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset, constants=HELD), expected)


SHAPES = [
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
    ("image", "uint8[N] x", 'y = ImageDecoder<pixel_format="Grayscale">(x)', 20, "uint8[?, ?, 1]"),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected
