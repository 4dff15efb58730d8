"""Elements that leave their type at usual sizes are unknown; usual shape arithmetic is known. Judged by onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import splitgraph
from splitgraph.dim import Dim, evaluate, symbols_of

SIZES = (0, 1, 3, 7, 60, 1001)
CONSTANTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64 low = {0}, int64 high = {50}, "
    "int64 axis = {0}, int64[1] eight = {8}, int64[1] b24 = {16777216}, int64[1] b31 = {2147483647}, "
    "int64[1] b32 = {4294967296}, int64[1] b40 = {1099511627776}, int64[1] b53 = {9007199254740992}, "
    "int64[1] b63 = {9223372036854775807}, "
    "int32[1] i31 = {2147483647}, int32[1] i16 = {65536}, float[1] f24 = {16777216}, float[1] f1 = {1}, "
    "float[1] half = {0.5}, float[1] f3 = {3}, double[1] d53 = {9007199254740992}, float[1] quarter = {0.25}, "
    "float[1] eighth = {0.125}"
)
LIMITED = " l = Clip(r, low, high)"

# How r or l is computed from d = [a], and what is said of it; None: unknown. Usual arithmetic comes first.
CASES: list[tuple[str, str | None]] = [
    ("l = Add(d, one)", "a + 1"),
    ("l = Mul(d, i) i = Identity(b24)", "16777216*a"),
    ("i = Cast<to=6>(d) j = Mul(i, i) l = Cast<to=7>(j)", "a*a"),
    ("f = Cast<to=1>(d) g = Mul(f, half) h = Floor(g) l = Cast<to=7>(h)", "a//2"),
    ("f = Cast<to=1>(d) g = Div(f, f3) h = Floor(g) l = Cast<to=7>(h)", "a//3"),
    ("f = Cast<to=1>(d) g = Mul(f, f3) h = Mul(g, half) k = Ceil(h) l = Cast<to=7>(k)", "a + (a + 1)//2"),
    ("f = Cast<to=1>(d) g = Mul(f, quarter) h = Mul(g, eighth) k = Floor(h) l = Cast<to=7>(k)", "a//32"),
    ("f = Cast<to=11>(d) g = Cast<to=1>(f) l = Cast<to=7>(g)", "a"),
    ("u = Cast<to=12>(d) l = Cast<to=7>(u)", "a"),
    ("p = Mul(d, d) q = Mul(p, d) i = Cast<to=6>(q) r = Cast<to=7>(i)" + LIMITED, "min(a*a*a, 50)"),
    ("e = Sub(d, b32) r = Add(e, b32)" + LIMITED, "min(a, 50)"),
    ("e = Add(d, b32) i = Cast<to=6>(e) r = Cast<to=7>(i)" + LIMITED, None),
    ("e = Sub(d, b32) i = Cast<to=6>(e) r = Cast<to=7>(i)" + LIMITED, None),
    ("e = Mul(d, b32) i = Cast<to=6>(e) r = Cast<to=7>(i)" + LIMITED, None),
    ("e = Add(d, b32) i = Cast<to=12>(e) r = Cast<to=7>(i)" + LIMITED, None),
    ("e = Add(d, b24) f = Cast<to=1>(e) g = Sub(f, f24) r = Cast<to=7>(g)" + LIMITED, None),
    ("e = Add(d, b53) f = Cast<to=11>(e) g = Sub(f, d53) r = Cast<to=7>(g)" + LIMITED, None),
    ("f = Cast<to=1>(d) g = Add(f, f24) h = Sub(g, f24) r = Cast<to=7>(h)" + LIMITED, None),
    ("f = Cast<to=1>(d) g = Mul(f, f24) h = Add(g, f1) k = Sub(h, g) r = Cast<to=7>(k)" + LIMITED, None),
    ("f = Cast<to=1>(d) g = Neg(f) h = Sub(g, f24) k = Add(h, f24) m = Neg(k) r = Cast<to=7>(m)" + LIMITED, None),
    ("r = Add(d, b63)" + LIMITED, None),
    ("n = Neg(d) m = Sub(n, b63) k = Sub(m, two) r = Neg(k)" + LIMITED, None),
    ("e = Mul(d, b40) r = Mul(e, b40)" + LIMITED, None),
    ("e = Mul(d, b63) r = Abs(e)" + LIMITED, None),
    ("i = Cast<to=6>(d) j = Mul(i, i31) r = Cast<to=7>(j)" + LIMITED, None),
    ("i = Cast<to=6>(d) j = Add(i, i31) r = Cast<to=7>(j)" + LIMITED, None),
    ("i = Cast<to=6>(d) j = Mul(i, i16) k = Mul(j, i16) r = Cast<to=7>(k)" + LIMITED, None),
    ("e = Add(d, b32) p = Pow(e, two) r = Identity(p)" + LIMITED, None),
    ("c = Concat<axis=0>(d, b63) r = ReduceSum<keepdims=1>(c)" + LIMITED, None),
    ("e = Add(d, one) c = Concat<axis=0>(e, b40, b40) r = ReduceProd<keepdims=1>(c)" + LIMITED, None),
    ("c = Concat<axis=0>(b63, d) s1 = CumSum(c, axis) r = Slice(s1, one, two)" + LIMITED, None),
    ("b = Cast<to=3>(d) r = Cast<to=7>(b)" + LIMITED, None),
    ("b = Cast<to=2>(d) r = Cast<to=7>(b)" + LIMITED, None),
    ("b = Cast<to=5>(d) r = Cast<to=7>(b)" + LIMITED, None),
    ("e = Add(d, b32) b = Cast<to=9>(e) r = Cast<to=7>(b)" + LIMITED, "1"),
    ("e = Mul(d, b32) b = Cast<to=9>(e) r = Cast<to=7>(b)" + LIMITED, None),
    ("f = Cast<to=10>(d) r = Cast<to=7>(f)" + LIMITED, None),
    ("m = Max(d, b24) f = Cast<to=1>(m) g = Add(f, f1) h = Sub(g, f24) r = Cast<to=7>(h)" + LIMITED, None),
    ("m = Min(d, eight) n = Mul(m, b31) i = Cast<to=6>(n) r = Cast<to=7>(i)" + LIMITED, None),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_elements_of_types(body: str, expected: str | None) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[a, 2] x) => (float[unknown] y)'
    text += f" <{CONSTANTS}> {{ s = Shape(x) d = Gather(s, zero) {body} y = ConstantOfShape(l) }}"
    model = onnx.parser.parse_model(text)
    [dim] = splitgraph.infer(model).types["y"].shape or ()
    known = isinstance(dim, int) or (isinstance(dim, Dim) and symbols_of(dim) == {"a"})
    assert (str(dim) if known else None) == expected
    assert not known or _runs(model, dim)


def _runs(model: onnx.ModelProto, dim: int | Dim) -> bool:
    """Whether the length is this at all sizes."""
    session = onnxruntime.InferenceSession(_of_lengths(model).SerializeToString(), providers=["CPUExecutionProvider"])
    for size in SIZES:
        [made] = session.run(None, {"x": np.zeros((size, 2), np.float32)})
        if int(made[0]) != (dim if isinstance(dim, int) else evaluate(dim, {"a": size})):
            return False
    return True


def _of_lengths(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model up to the length itself."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.node.pop()
    del copy.graph.output[:]
    copy.graph.output.append(onnx.helper.make_tensor_value_info("l", onnx.TensorProto.INT64, [1]))
    return copy
