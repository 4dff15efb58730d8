"""Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze, Expand, Transpose, Slice: refusals, then shapes, then contents."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import infer_nodes, shape_text
from onnx import TensorProto, helper

import splitgraph
from splitgraph.dim import Dim, Facts, evaluate, symbol
from splitgraph.inference import infer_model
from splitgraph.inference.rules.onnx.slicing import slice_length

INVALID = [
    ("reshape-count", "float[2,3] x", "y = Reshape(x, s)", "int64[2] s = {4, 2}", 18, "6 elements"),
    ("reshape-two-rests", "float[2,3] x", "y = Reshape(x, s)", "int64[2] s = {-1, -1}", 18, "more than one -1"),
    ("reshape-negative", "float[2,3] x", "y = Reshape(x, s)", "int64[2] s = {-2, 3}", 18, "value allowed is -1"),
    ("reshape-not-a-multiple", "float[2,3] x", "y = Reshape(x, s)", "int64[2] s = {4, -1}", 18, "multiple of 4"),
    ("reshape-zero-past-the-rank", "float[6] x", "y = Reshape(x, s)", "int64[2] s = {6, 0}", 18, "position 1"),
    ("reshape-matrix", "float[6] x", "y = Reshape(x, s)", "int64[1,2] s = {6, 1}", 18, "rank 1"),
    (
        "reshape-allowzero",
        "float[0,3] x",
        "y = Reshape<allowzero=1>(x, s)",
        "int64[2] s = {0, -1}",
        18,
        "both 0 and -1",
    ),
    (
        "flatten-axis",
        "float[2,3] x",
        "y = Flatten<axis=3>(x)",
        "",
        18,
        "axis 3 is out of range for a tensor of rank 2; it must be in [-2, 2]",
    ),
    ("squeeze-two", "float[2,3] x", "y = Squeeze(x, a)", "int64[1] a = {0}", 18, "dimension 2"),
    ("squeeze-axis", "float[2,3] x", "y = Squeeze<axes=[2]>(x)", "", 11, "it must be in [-2, 1]"),
    ("unsqueeze-twice", "float[2,3] x", "y = Unsqueeze(x, a)", "int64[2] a = {0, -4}", 18, "twice"),
    ("expand-misfit", "float[2,3] x", "y = Expand(x, s)", "int64[2] s = {2, 4}", 18, "3 and 4"),
    ("expand-negative", "float[2,3] x", "y = Expand(x, s)", "int64[2] s = {2, -1}", 18, "negative dimension -1"),
    ("transpose-twice", "float[2,3] x", "y = Transpose<perm=[0,0]>(x)", "", 18, "not a permutation"),
    ("transpose-rank", "float[2,3] x", "y = Transpose<perm=[0,2,1]>(x)", "", 18, "3 axes"),
    ("slice-step", "float[4] x", "y = Slice(x, z, e, z, z)", "int64[1] z = {0}, int64[1] e = {4}", 18, "step is 0"),
    ("slice-axis", "float[4] x", "y = Slice<starts=[0], ends=[1], axes=[1]>(x)", "", 9, "out of range"),
    (
        "slice-counts",
        "float[4,4] x",
        "y = Slice(x, s, e)",
        "int64[1] s = {0}, int64[2] e = {1, 1}",
        18,
        "numbers must be equal",
    ),
    ("a-sequence", "seq(float[4]) x", "y = Shape(x)", "", 18, "is a sequence"),
]


@pytest.mark.parametrize(
    ("inputs", "body", "constants", "opset", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID]
)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, constants: str, opset: int, said: str) -> None:
    answer = shape_text(inputs, body, constants=constants, opset=opset)
    assert answer.startswith("SG302 ")
    assert said in answer


ENDS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1}, int64[1] minus_two = {-2}, "
    "int64[1] end = {2147483647}, int64[1] start = {-9223372036854775808}"
)
SHAPES = [
    ("shape", "float[N,3] x", "y = Shape(x)", "", 18, "int64[2]"),
    ("shape-of-unknown-rank", "float[] x", "y = Shape(x)", "", 18, "int64[?]"),
    ("shape-part", "float[N,3,C] x", "y = Shape<start=-2, end=9>(x)", "", 18, "int64[2]"),
    ("size", "float[N,3] x", "y = Size(x)", "", 18, "int64[]"),
    ("reshape-known", "float[N,6] x", "y = Reshape(x, s)", "int64[3] s = {-1, 2, 3}", 18, "float32[N, 2, 3]"),
    ("reshape-copy", "float[N,6] x", "y = Reshape(x, s)", "int64[3] s = {0, 2, -1}", 18, "float32[N, 2, 3]"),
    ("reshape-allowzero", "float[0,3] x", "y = Reshape<allowzero=1>(x, s)", "int64[2] s = {3, 0}", 18, "float32[3, 0]"),
    ("reshape-floor", "float[N,6] x", "y = Reshape(x, s)", "int64[2] s = {4, -1}", 18, "float32[4, N + N//2]"),
    ("reshape-scalar", "float[1,1] x", "y = Reshape(x, s)", "int64[0] s = {}", 18, "float32[]"),
    ("reshape-attribute", "float[N,6] x", "y = Reshape<shape=[0,2,3]>(x)", "", 1, "float32[N, 2, 3]"),
    ("reshape-unknown-input", "float[] x", "y = Reshape(x, s)", "int64[3] s = {2, -1, 3}", 18, "float32[2, ?, 3]"),
    ("reshape-unknown-target", "float[2,3] x, int64[2] s", "y = Reshape(x, s)", "", 18, "float32[?, ?]"),
    ("reshape-unknown-length", "float[2,3] x, int64[K] s", "y = Reshape(x, s)", "", 18, "float32[...]"),
    (
        "reshape-one-unknown-element",
        "float[A,B] x, int64[1] n",
        "s = Concat<axis=0>(n, two) y = Reshape(x, s)",
        "int64[1] two = {2}",
        18,
        "float32[(A*B)//2, 2]",
    ),
    (
        "reshape-computed",
        "float[B,S,768] x",
        "d = Shape<start=0, end=2>(x) s = Concat<axis=0>(d, h) y = Reshape(x, s)",
        "int64[2] h = {12, -1}",
        18,
        "float32[B, S, 12, 64]",
    ),
    (
        "reshape-merge",
        "float[B,S,12,64] x",
        "b = Shape<start=0, end=1>(x) s = Concat<axis=0>(b, h) y = Reshape(x, s)",
        "int64[2] h = {-1, 768}",
        18,
        "float32[B, S, 768]",
    ),
    ("flatten", "float[A,B,C] x", "y = Flatten<axis=2>(x)", "", 18, "float32[A*B, C]"),
    ("flatten-0", "float[A,B] x", "y = Flatten<axis=0>(x)", "", 18, "float32[1, A*B]"),
    ("flatten-end", "float[A,B] x", "y = Flatten<axis=-1>(x)", "", 18, "float32[A, B]"),
    ("squeeze-all", "float[1,3,1] x", "y = Squeeze(x)", "", 18, "float32[3]"),
    ("squeeze-all-symbolic", "float[1,N] x", "y = Squeeze(x)", "", 18, "float32[...]"),
    ("squeeze-axes", "float[N,1,3] x", "y = Squeeze(x, a)", "int64[1] a = {-2}", 18, "float32[N, 3]"),
    ("squeeze-no-axes-agreed", "float[2,3] x", "y = Squeeze(x, a)", "int64[0] a = {}", 18, "float32[2, 3]"),
    ("squeeze-no-axes-disputed", "float[1,3] x", "y = Squeeze(x, a)", "int64[0] a = {}", 18, "float32[...]"),
    ("squeeze-attribute", "float[N,1,3] x", "y = Squeeze<axes=[1]>(x)", "", 1, "float32[N, 3]"),
    ("unsqueeze", "float[N] x", "y = Unsqueeze(x, a)", "int64[2] a = {-1, 0}", 18, "float32[1, N, 1]"),
    ("unsqueeze-attribute", "float[N] x", "y = Unsqueeze<axes=[0]>(x)", "", 11, "float32[1, N]"),
    ("unsqueeze-unknown-axes", "float[N] x, int64[2] a", "y = Unsqueeze(x, a)", "", 18, "float32[?, ?, ?]"),
    ("expand", "float[3,1] x", "y = Expand(x, s)", "int64[3] s = {2, 1, 6}", 18, "float32[2, 3, 6]"),
    ("expand-to-shape", "float[1,C] x, float[N,1] z", "s = Shape(z) y = Expand(x, s)", "", 18, "float32[N, C]"),
    (
        "slice-backward-to-the-first",
        "float[N] x",
        "y = Slice(x, minus, zero, zero, minus)",
        ENDS,
        18,
        "float32[max(0, N - 1)]",
    ),
    ("transpose", "float[A,B,C] x", "y = Transpose(x)", "", 18, "float32[C, B, A]"),
    ("transpose-perm", "float[A,B,C] x", "y = Transpose<perm=[0,2,1]>(x)", "", 18, "float32[A, C, B]"),
    ("transpose-unknown", "float[] x", "y = Transpose<perm=[1,0]>(x)", "", 18, "float32[unk1, unk0]"),
    ("slice-1", "float[N,6] x", "y = Slice<starts=[1], ends=[2147483647], axes=[1]>(x)", "", 1, "float32[N, 5]"),
    ("slice-tail", "float[N] x", "y = Slice(x, one, end)", ENDS, 13, "float32[max(0, N - 1)]"),
    ("slice-head", "float[N] x", "y = Slice(x, zero, minus)", ENDS, 13, "float32[max(0, N - 1)]"),
    ("slice-all", "float[N] x", "y = Slice(x, zero, end)", ENDS, 13, "float32[N]"),
    ("slice-first-two", "float[N] x", "y = Slice(x, zero, two)", ENDS, 13, "float32[min(N, 2)]"),
    ("slice-last-two", "float[N] x", "y = Slice(x, minus_two, end)", ENDS, 13, "float32[min(N, 2)]"),
    ("slice-steps", "float[N] x", "y = Slice(x, zero, end, zero, two)", ENDS, 13, "float32[(N + 1)//2]"),
    ("slice-reverse", "float[N] x", "y = Slice(x, minus, start, zero, minus)", ENDS, 13, "float32[N]"),
    ("slice-unknown-end", "float[N,4] x, int64[1] e", "y = Slice(x, zero, e)", ENDS, 13, "float32[?, 4]"),
    ("slice-unknown-axes", "float[N,4] x, int64[1] a", "y = Slice(x, one, two, a)", ENDS, 13, "float32[?, ?]"),
    (
        "slice-to-computed-end",
        "float[P] a, float[S] b",
        "z = Concat<axis=0>(a, b) s = Shape(a) e = Shape(z) y = Slice(z, s, e)",
        "",
        18,
        "float32[S]",
    ),
]


@pytest.mark.parametrize(
    ("inputs", "body", "constants", "opset", "expected"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES]
)
def test_shapes(inputs: str, body: str, constants: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, constants=constants, opset=opset) == expected


# What a tensor holds shows in the shape of a ConstantOfShape that is made of it.
CONTENTS = [
    ("shape", "s = Shape(x)", "[N, 6, C]"),
    ("shape-part", "s = Shape<start=1>(x)", "[6, C]"),
    ("size", "n = Size(x) s = Reshape(n, one)", "[6*C*N]"),
    ("gather", "d = Shape(x) s = Gather(d, order)", "[C, N]"),
    ("gather-scalar", "d = Shape(x) n = Gather(d, last) s = Unsqueeze(n, zero)", "[C]"),
    ("slice", "d = Shape(x) s = Slice(d, zero, two)", "[N, 6]"),
    ("slice-backward", "d = Shape(x) s = Slice(d, minus, far, zero, minus)", "[C, 6, N]"),
    ("transpose-2d", "d = Shape(x) m = Reshape(d, column) t = Transpose(m) s = Squeeze(t, zero)", "[N, 6, C]"),
    ("concat-2d", "d = Shape(x) m = Unsqueeze(d, zero) c = Concat<axis=0>(m, m) s = Gather<axis=1>(c, last)", "[C, C]"),
    ("tile", "d = Shape<start=2>(x) s = Tile(d, two)", "[C, C]"),
    ("expand", "d = Shape<start=2>(x) s = Expand(d, two)", "[C, C]"),
    ("flatten", "d = Shape<start=2>(x) f = Flatten<axis=0>(d) s = Squeeze(f, zero)", "[C]"),
    ("identity", "d = Shape<start=2>(x) s = Identity(d)", "[C]"),
]
HELD = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] order = {2, 0}, int64 last = {-1}, "
    "int64[1] minus = {-1}, int64[1] far = {-9223372036854775808}, int64[2] column = {3, 1}"
)


@pytest.mark.parametrize(("body", "expected"), [c[1:] for c in CONTENTS], ids=[c[0] for c in CONTENTS])
def test_contents_are_followed(body: str, expected: str) -> None:
    answer = shape_text("float[N,6,C] x", f"{body} y = ConstantOfShape(s)", constants=HELD)
    assert answer == f"float32{expected}"


def test_an_inexact_rest_must_divide() -> None:
    analysis = infer_nodes("float[N] x", "y = Reshape(x, s)", constants="int64[2] s = {4, -1}")
    assert analysis.ok
    assert str(analysis.types["y"]) == "float32[4, N//4]"
    # The obligation stands: what a later node requires of N must go with it.
    refused = infer_nodes(
        "float[N] x", "y = Reshape(x, s) z = Reshape(x, six)", constants="int64[2] s = {4, -1}, int64[1] six = {6}"
    )
    assert not refused.ok


def test_a_squeezed_symbol_must_be_one() -> None:
    analysis = infer_nodes("float[N,3] x", "y = Squeeze(x, a)", constants="int64[1] a = {0}")
    assert analysis.ok
    assert analysis.symbols["N"] == (1, 1)


def test_two_obligations_that_contradict_are_an_error() -> None:
    body = "y = Reshape(x, five) z = Reshape(x, four)"
    analysis = infer_nodes("float[N] x", body, constants="int64[1] five = {5}, int64[1] four = {4}")
    assert not analysis.ok


POSITIONS = st.one_of(st.integers(-9, 9), st.sampled_from([2**31 - 1, 2**63 - 1, -(2**31), -(2**63)]))


def numpy_length(size: int, start: int, end: int, step: int) -> int:
    """How many elements the specification's clamping leaves."""
    start, end = start + size if start < 0 else start, end + size if end < 0 else end
    if step > 0:
        return len(range(min(max(start, 0), size), min(max(end, 0), size), step))
    return len(range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)) if size else 0


@given(POSITIONS, POSITIONS, st.sampled_from([1, 2, 3, -1, -2, -3]), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=examples(400))
def test_the_symbolic_length_of_a_slice_is_the_static_one(start: int, end: int, step: int, bounded: bool) -> None:
    n = symbol("N")
    facts = Facts({"N": (9, None)}) if bounded else Facts()
    length = slice_length(facts, n, start, end, step)
    for size in range(9 if bounded else 0, 14):
        expected = numpy_length(size, start, end, step)
        static = slice_length(facts, size, start, end, step)
        assert static in (expected, None)
        if length is not None:
            assert evaluate(length, {"N": size}) == expected


@given(st.integers(0, 12), st.integers(0, 12), st.integers(-3, 3), st.integers(-3, 3))
@settings(derandomize=True, deadline=None, max_examples=examples(300))
def test_computed_positions_slice_as_constants_do(n: int, m: int, before: int, after: int) -> None:
    size = symbol("N") + symbol("M")
    start, end = symbol("N") + before, symbol("N") + symbol("M") + after
    length = slice_length(Facts(), size, start, end, 1)
    if isinstance(length, Dim):
        values = {"N": n, "M": m}
        expected = len(np.arange(n + m)[evaluate(start, values) : evaluate(end, values)])
        assert evaluate(length, values) == expected


@pytest.mark.parametrize(("other", "required"), [("S", False), ("H", True)])
def test_a_computed_0_copies_what_is_0_all_the_same(other: str, required: bool) -> None:
    """Where one of the dimensions that broadcast is 0, so is the one that the target's 0 would copy. Elsewhere the
    target's dimension is at least 1, which an obligation that divides by it says.
    """
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[S, 4] x, float[{other}] u, float[K] v) => (float[] y) {{
        d = Shape<start = 0, end = 1>(x)
        rest = Constant<value = int64[1] {{-1}}>()
        t = Concat<axis = 0>(d, rest)
        w = Add(u, v)
        y = Reshape(w, t)
    }}"""
    told = [str(each) for each in splitgraph.infer(onnx.parser.parse_model(text)).obligations]
    assert ("0 == max(H, K) % S" in told) == required


def test_a_computed_reshape_target_that_can_be_0_copies() -> None:
    """`M % 2` is 0 for a tensor that has elements, and then copies; it once was taken for the dimension."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[M, 3] x) => (float[A, B] y) {
            shape = Shape (x)
            four = Constant <value_int: int = 4> ()
            target = Mod (shape, four)
            y = Reshape (x, target)
        }"""
    )
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    analysis = infer_model(model)
    assert analysis.ok
    assert str(analysis.types["y"]) == "float32[M, 3]"
    assert analysis.obligations == ()
