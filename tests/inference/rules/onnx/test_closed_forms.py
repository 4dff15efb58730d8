"""Closed forms of truncating division, of slices from the end and of sizes beside a -1, held against what runs give."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import splitgraph
from splitgraph.dim import evaluate

HELD = (
    "int64[1] one = {1}, int64[1] four = {4}, int64[1] nine = {9}, int64[1] less = {-3}, int64[1] front = {0}, "
    "int64[1] end = {9223372036854775807}, int64[1] back = {-1}, int64[1] start = {-9223372036854775807}"
)
# A dimension that may be 0: the shape that a computed vector gives.
MADE = "f = ConstantOfShape(v) y = Identity(f)"

_REFUSED = (
    onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
)
TRUNCATED = [
    ("d = Sub(n, one) q = Div(d, four) v = Add(q, one)", "max(0, N - 1)//4 + 1"),
    ("d = Sub(n, four) q = Div(d, four) v = Add(q, one)", "max(0, N - 4)//4 + (min(N, 4) + 3)//4"),
    ("d = Sub(n, nine) q = Div(d, four) v = Add(q, nine)", "max(0, N - 9)//4 + (min(N, 9) + 2)//4 + 7"),
    ("d = Sub(one, n) q = Div(d, less) v = Add(q, one)", "max(0, N - 1)//3 + 1"),
    ("d = Neg(n) q = Div(d, four) v = Neg(q)", "N//4"),
    ("d = Sub(n, one) q = Div(d, m) v = Add(q, one)", None),
    ("d = Sub(n, nine) q = Mod<fmod=1>(d, four) v = Add(q, nine)", None),
    ("d = Sub(n, one) r = Cast<to=1>(d) s = Cast<to=1>(four) w = Div(r, s) q = Cast<to=7>(w) v = Add(q, one)", None),
    ("d = Sub(n, nine) v = Abs(d)", "2*max(0, N - 9) - N + 9"),
    # Near misses: nothing is negative, or the division leaves nothing.
    ("d = Add(n, four) v = Div(d, four)", "N//4 + 1"),
    ("d = Mul(n, four) v = Div(d, four)", "N"),
    ("v = Mod(n, four)", "N % 4"),
]
SLICED = [
    ("p = Neg(n) y = Slice(x, p, end)", "N", ()),
    ("d = Add(n, n) p = Neg(d) y = Slice(x, p, end)", "N", ()),
    ("d = Add(n, m) p = Neg(d) y = Slice(x, p, end)", "N", ()),
    ("d = Mul(n, four) p = Neg(d) y = Slice(x, p, end)", "N", ()),
    ("p = Neg(n) y = Slice(x, front, p)", "0", ()),
    ("p = Neg(m) y = Slice(x, p, end)", "min(M, N)", ("M >= 1",)),
    ("d = Mul(m, four) p = Neg(d) y = Slice(x, p, end)", "min(4*M, N)", ("M >= 1",)),
    ("p = Neg(m) y = Slice(x, front, p)", "max(M, N) - M", ("M >= 1",)),
    ("e = Slice(x, front, front) y = Slice(e, back, start, front, back)", "0", ()),
    ("e = Slice(x, front, front) y = Slice(e, four, start, front, less)", "0", ()),
    # Near misses: what is at least 1 needs no assumption, and the other end has no special case.
    ("d = Add(m, one) p = Neg(d) y = Slice(x, p, end)", "min(M + 1, N)", ()),
    ("y = Slice(x, m, end)", "max(M, N) - M", ()),
    ("y = Slice(x, less, end)", "min(N, 3)", ()),
    ("y = Slice(x, back, start, front, back)", "N", ()),
]


def made_of(body: str) -> onnx.ModelProto:
    text = f"g (float[N] x, float[M] z) => (float[Y] y) <{HELD}> {{ n = Shape(x) m = Shape(z) {body} }}"
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')


def compare(model: onnx.ModelProto, analysis: splitgraph.Analysis) -> int:
    """Compare the inferred dimension with a run at every pair of sizes. Give the number of runs."""
    (dim,) = analysis.types["y"].shape or ()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    count = 0
    for n, m in itertools.product((0, 1, 2, 3, 4, 5, 8, 9, 10, 14), (0, 1, 2, 7)):
        at = {"N": n, "M": m}
        if not all(evaluate(each.lhs, at) >= evaluate(each.rhs, at) for each in analysis.assumptions):
            continue
        feeds = {"x": np.zeros(n, np.float32), "z": np.zeros(m, np.float32)}
        try:
            (y,) = session.run(None, feeds)
        except _REFUSED:
            continue
        wanted = evaluate(dim, at)
        assert y.shape == (wanted,), at
        count += 1
    return count


@pytest.mark.parametrize(("body", "shown"), TRUNCATED)
def test_a_truncated_quotient_is_known_for_every_size(body: str, shown: str | None) -> None:
    model = made_of(f"{body} {MADE}")
    analysis = splitgraph.infer(model)
    assert not analysis.generated
    if shown is not None:
        assert str(analysis.types["y"]) == f"float32[{shown}]"
    assert compare(model, analysis) >= 20


@pytest.mark.parametrize(("body", "shown", "assumed"), SLICED)
def test_a_slice_from_the_end_is_known_for_every_size(body: str, shown: str, assumed: tuple[str, ...]) -> None:
    model = made_of(body)
    analysis = splitgraph.infer(model)
    assert (str(analysis.types["y"]), tuple(map(str, analysis.assumptions))) == (f"float32[{shown}]", assumed)
    assert compare(model, analysis) >= 20


@pytest.mark.parametrize(
    ("shape", "target", "required"),
    [
        ("N, 3", "0, -1", "N >= 1"),
        ("N, M, 3", "0, 0, -1", "M >= 1, N >= 1"),
        ("N, M, 3", "0, -1, 3", "N >= 1"),
        ("3, N, M", "-1, 0", "N >= 1"),
        ("M, N", "1, 0, -1", "N >= 1"),
        # Near misses: nothing stands beside the -1 that may be 0, or there is no -1.
        ("N, 3", "-1, 0", ""),
        ("N, 3", "-1", ""),
        ("N, 3", "0, 3", ""),
        ("N, 3", "0, 1, 3", ""),
    ],
)
def test_the_size_beside_a_rest_is_at_least_1(shape: str, target: str, required: str) -> None:
    count = target.count(",") + 1
    outputs = ", ".join("ABC"[:count])
    text = f"g (float[{shape}] x) => (float[{outputs}] y) <int64[{count}] t = {{{target}}}> {{ y = Reshape (x, t) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    analysis = splitgraph.infer(model)
    obligations = [each for each in analysis.obligations if each.symbols <= {"N", "M"}]
    assert ", ".join(sorted(map(str, obligations))) == required
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for at in ({"N": n, "M": m} for n in (0, 1, 2) for m in (0, 1, 3)):
        feeds = {"x": np.zeros([at[dim] if dim in at else int(dim) for dim in shape.split(", ")], np.float32)}
        holds = all(evaluate(each.lhs, at) >= evaluate(each.rhs, at) for each in obligations)
        try:
            (y,) = session.run(None, feeds)
        except _REFUSED:
            assert not holds, at
            continue
        assert holds, at
        assert y.shape == tuple(evaluate(dim, at) for dim in analysis.types["y"].shape or ())
