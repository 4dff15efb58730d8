"""Backward slices from a position that counts from the end, and com.microsoft operators with pads, as they run."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import splitgraph
from splitgraph.dim import Dim, evaluate

FAR = -9223372036854775808
WEIGHTS = f"float[2, 3, 3, 3] w = {{{', '.join(['1'] * 54)}}}, float[3] bias = {{1, 2, 3}}"


def checked(inputs: str, body: str, constants: str, sizes: list[dict[str, int]]) -> tuple[str, list[str]]:
    """The type of y and the assumptions, after runs at the sizes at which these hold."""
    head = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    model = onnx.parser.parse_model(f"{head} g ({inputs}) => (float y) <{constants}> {{ {body} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    analysis = splitgraph.infer(model)
    if not analysis.ok:
        return analysis.diagnostics[0].message, []
    known = analysis.types["y"].shape or ()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for size in sizes:
        if any(evaluate(each.lhs, size) < evaluate(each.rhs, size) for each in analysis.assumptions):
            continue
        shape = [evaluate(dim, size) if isinstance(dim, Dim) else dim for dim in analysis.types["x"].shape or ()]
        [made] = session.run(None, {"x": np.zeros([dim or 0 for dim in shape], np.float32)})
        said = [evaluate(dim, size) if isinstance(dim, Dim) else dim for dim in known]
        assert all(dim is None or dim == real for dim, real in zip(said, made.shape, strict=True)), (size, made.shape)
    return str(analysis.types["y"]), list(map(str, analysis.assumptions))


# start, end, step, the type and the assumptions. What needs none comes first.
SLICES: list[tuple[int, int, int, str, list[str]]] = [
    (-1, FAR, -1, "float32[N]", []),
    (5, FAR, -1, "float32[min(N, 6)]", []),
    (-2, FAR, 1, "float32[min(N, 2)]", []),
    (-2, FAR, -1, "float32[max(0, N - 1)]", ["N >= 2"]),
    (-3, FAR, -2, "float32[max(0, (N + 1)//2 - 1)]", ["N >= 3"]),
    (-2, 0, -1, "float32[max(0, N - 2)]", ["N >= 2"]),
    (-4, 1, -2, "float32[max(0, N//2 - 2)]", ["N >= 4"]),
    (-2, -4, -1, "float32[min(max(0, N - 1), 2)]", ["N >= 2"]),
    (-2, -1, -1, "float32[0]", ["N >= 2"]),
]


@pytest.mark.parametrize(("start", "end", "step", "expected", "assumed"), SLICES)
def test_backward_slices(start: int, end: int, step: int, expected: str, assumed: list[str]) -> None:
    if step > 0:
        end = 2**63 - 1
    constants = f"int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, int64[1] t = {{{step}}}"
    found = checked("float[N] x", "y = Slice(x, s, e, a, t)", constants, [{"N": size} for size in range(8)])
    assert found == (expected, assumed)


def test_a_number_that_is_too_small_stays_unknown() -> None:
    constants = "int64[1] s = {-3}, int64[1] e = {-99}, int64[1] a = {0}, int64[1] t = {-1}"
    assert checked("float[2] x", "y = Slice(x, s, e, a, t)", constants, [])[0] in ("float32[?]", "float32[unk0]")


# Attributes, pads, and the type of the output.
PADS: list[tuple[str, str, str]] = [
    ("", "int64[3] p = {1, 0, 0}", "Pad-1: 3 pads for 2 axes; two are required for each"),
    ("", "int64[2, 2] p = {1, 0, 0, 2}", "Pad-1: the pads have rank 2; they must be a list, or a matrix of one row"),
    ("", "int64[4] p = {1, 0, 0, 2}", "float32[N + 1, 5]"),
    ("", "int64[1, 4] p = {1, 0, 0, 2}", "float32[N + 1, 5]"),
    ("", "int64[4] p = {-1, 0, 0, -2}", "float32[N - 1, 1]"),
    ('<mode="reflect">', "int64[4] p = {1, 0, 1, 2}", "float32[N + 2, 5]"),
    ('<mode="edge">', "int64[4] p = {3, 1, 1, 2}", "float32[N + 4, 6]"),
]


@pytest.mark.parametrize(("attributes", "pads", "expected"), PADS)
def test_pad(attributes: str, pads: str, expected: str) -> None:
    sizes = [{"N": size} for size in (2, 3, 7)]
    assert checked("float[N, 3] x", f"y = com.microsoft.Pad{attributes}(x, p)", pads, sizes)[0] == expected


def test_pads_from_a_shape() -> None:
    body = "p1 = Shape(x) p = Concat<axis=0>(p1, p1) y = com.microsoft.Pad(x, p)"
    assert checked("float[N, 3] x", body, "", [{"N": 2}, {"N": 5}])[0] == "float32[3*N, 9]"


TRANSPOSED: list[tuple[str, str, str, str]] = [
    ("", "x, w, p", "int64[2] p = {1, 0}", "2 pads for 2 spatial dimensions; two are required for each"),
    ("", "x, w, p", "int64[4] p = {1, 0, 1, 2}", "float32[N, 3, H, W]"),
    ("", "x, w, p, bias", "int64[4] p = {0, 0, 0, 0}", "float32[N, 3, H + 2, W + 2]"),
    ("<strides=[2, 2]>", "x, w, p", "int64[4] p = {1, 0, 1, 2}", "float32[N, 3, 2*H - 1, 2*W - 1]"),
    ("<strides=[2, 1], output_padding=[1, 0]>", "x, w, p", "int64[4] p = {1, 0, 1, 2}", "float32[N, 3, 2*H, W]"),
    ("<dilations=[2, 1]>", "x, w, p", "int64[4] p = {1, 0, 1, 2}", "float32[N, 3, H + 2, W]"),
    ("<group=2>", "x, w, p", "int64[4] p = {1, 0, 1, 2}", "float32[N, 6, H, W]"),
]


@pytest.mark.parametrize(("attributes", "given", "pads", "expected"), TRANSPOSED)
def test_transposed_convolution(attributes: str, given: str, pads: str, expected: str) -> None:
    body = f"y = com.microsoft.ConvTransposeWithDynamicPads{attributes}({given})"
    sizes = [{"N": 1, "H": 4, "W": 5}, {"N": 2, "H": 7, "W": 3}]
    found = checked("float[N, 2, H, W] x", body, f"{WEIGHTS}, {pads}", sizes)[0]
    assert found.endswith(expected)
