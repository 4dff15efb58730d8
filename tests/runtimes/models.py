"""Small models of one split, in onnx's text form, for tests of targets."""

from __future__ import annotations

import onnx
import onnx.parser


def model(
    body: str, opset: int = 18, ir_version: int = 8, data: str = "float[2, 7, 8] x", more: str = ""
) -> onnx.ModelProto:
    """A model whose graph has this body. data: its inputs. more: initializers."""
    outputs = ", ".join(f"y{index}" for index in range(9) if f"y{index}" in body)
    return onnx.parser.parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g ({data}) => ({outputs}) {more} {{ {body} }}'
    )


UNEVEN = model("y0, y1, y2 = Split<axis = 1, num_outputs = 3>(x)")
EVEN = model("y0, y1 = Split<axis = 2, num_outputs = 2>(x)")
LENGTHS = model("y0, y1 = Split<axis = 1>(x, s)", 13, more="<int64[2] s = {3, 4}>")
EITHER = model("y0, y1 = Split<axis = 1, num_outputs = 2>(x)", data="float[2, N, 8] x")
SEQUENCE = model("q = SplitToSequence<axis = 1>(x, s) y0 = SequenceAt(q, a) y1 = SequenceAt(q, b)", 13,
                 more="<int64[2] s = {3, 4}, int64 a = {0}, int64 b = {1}>")  # fmt: skip
EMPTY = model("y0, y1, y2 = Split<axis = 1>(x, s)", 13, more="<int64[3] s = {3, 0, 4}>")
JOINED = model("a, b, c = Split<axis = 1>(x, s) y0 = Concat<axis = 1>(c, b, a)", 13, more="<int64[3] s = {3, 0, 4}>")
WITHOUT_AXIS = model("y0, y1 = Split(x)", 13, data="float[6, 6, 8] x")
ATTRIBUTE = model("y0, y1 = Split<axis = 1, split = [4, 3]>(x)", 11, 6)
SLICES = model(
    "y0 = Slice<axes = [1], starts = [0], ends = [3]>(x) y1 = Slice<axes = [1], starts = [3], ends = [7]>(x)", 9, 4
)
HALF = model("y0, y1 = Split<axis = 2>(x)", 13, data="float16[2, 7, 8] x")
MIXED = model("y0, u = Split<axis = 2>(x)", 13)
RANK_1 = model("y0, y1 = Split<axis = 0>(x)", 13, data="float[8] x")
