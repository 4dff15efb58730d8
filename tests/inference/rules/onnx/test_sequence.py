"""Sequences: refusals, then what is known of their elements."""

from __future__ import annotations

import onnx
import pytest
from node_models import infer_nodes, shape_text

from splitgraph.inference import infer_model

HELD = (
    "int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 last = {-1}, int64[2] parts = {2, 3}, int64 four = {4}, "
    "int64[1] v = {0}"
)
MADE = "q = SequenceConstruct(a, b)"
TWO = "float[N,3] a, float[M,3] b"

INVALID = [
    (
        "past-the-end",
        TWO,
        f"{MADE} y = SequenceAt(q, two)",
        "position 2 is out of range for 2 elements; it must be in [-2, 1]",
    ),
    ("before-the-start", TWO, f"{MADE} m = Sub(last, two) y = SequenceAt(q, m)", "position -3"),
    ("a-tensor", "float[N] a", "y = SequenceAt(a, zero)", "not a sequence"),
    ("empty", "float[N] a", "q = SequenceEmpty() y = ConcatFromSequence<axis=0>(q)", "the sequence is empty"),
    ("erase-nothing", "float[N] a", "q = SequenceEmpty() y = SequenceErase(q)", "the sequence is empty"),
    (
        "insert-type",
        "int64[N] a",
        "q = SequenceEmpty() y = SequenceInsert(q, a)",
        "int64 does not fit a sequence of float32",
    ),
    ("concat-axis", TWO, f"{MADE} y = ConcatFromSequence<axis=2>(q)", "axis 2 is out of range"),
    ("concat-misfit", "float[2,3] a, float[2,4] b", f"{MADE} y = ConcatFromSequence<axis=0>(q)", "3 and 4"),
]


@pytest.mark.parametrize(("inputs", "body", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_an_invalid_node_is_a_finding(inputs: str, body: str, said: str) -> None:
    answer = shape_text(inputs, body, constants=HELD)
    assert answer.startswith("SG302 ")
    assert said in answer


@pytest.mark.parametrize(
    "body",
    [
        "q = SequenceEmpty() r = SequenceErase(q)",
        "q = SequenceConstruct(a) r = SequenceConstruct(q)",
        "q = SequenceConstruct(a) r = SequenceInsert(q, b)",
        "r = SequenceEmpty<dtype=99>()",
    ],
)
def test_what_reads_an_invalid_sequence_is_not_invalid_too(body: str) -> None:
    analysis = infer_nodes("float[N] a, int64[N] b", f"{body} y = SequenceLength(r)")
    assert len([found for found in analysis.diagnostics if found.severity == "error"]) == 1
    assert analysis.types["r"].kind == "unknown"


SHAPES = [
    ("at", TWO, f"{MADE} y = SequenceAt(q, one)", "float32[M, 3]"),
    ("at-last", TWO, f"{MADE} y = SequenceAt(q, last)", "float32[M, 3]"),
    ("at-any", TWO + ", int64 p", f"{MADE} y = SequenceAt(q, p)", "float32[?, 3]"),
    ("construct", TWO, "y = SequenceConstruct(a, b)", "sequence(float32[?, 3])"),
    ("insert", TWO, f"{MADE} r = SequenceInsert(q, b, zero) y = SequenceAt(r, zero)", "float32[M, 3]"),
    ("insert-end", TWO, f"{MADE} r = SequenceInsert(q, b) y = SequenceAt(r, two)", "float32[M, 3]"),
    ("insert-in-empty", TWO, "q = SequenceEmpty() y = SequenceInsert(q, a)", "sequence(float32[N, 3])"),
    ("erase", TWO, f"{MADE} r = SequenceErase(q, zero) y = SequenceAt(r, zero)", "float32[M, 3]"),
    ("erase-last", TWO, f"{MADE} y = SequenceErase(q)", "sequence(float32[N, 3])"),
    ("concat", TWO, f"{MADE} y = ConcatFromSequence<axis=0>(q)", "float32[M + N, 3]"),
    (
        "stack",
        "float[N,3] a, float[N,3] b",
        f"{MADE} y = ConcatFromSequence<axis=1, new_axis=1>(q)",
        "float32[N, 2, 3]",
    ),
    ("parts-at", "float[N,5] x", "q = SplitToSequence<axis=1>(x, parts) y = SequenceAt(q, last)", "float32[N, 3]"),
    (
        "chunk-first",
        "float[N,M] x",
        "q = SplitToSequence<axis=1>(x, four) y = SequenceAt(q, zero)",
        "float32[N, min(M, 4)]",
    ),
    (
        "chunk-third",
        "float[N,M] x",
        "q = SplitToSequence<axis=1>(x, four) y = SequenceAt(q, two)",
        "float32[N, min(M, 12) - 8]",
    ),
    (
        "chunk-last",
        "float[N,M] x",
        "q = SplitToSequence<axis=1>(x, four) y = SequenceAt(q, last)",
        "float32[N, (M + 3) % 4 + 1]",
    ),
    (
        "chunk-before-last",
        "float[N,M] x",
        "q = SplitToSequence<axis=1>(x, four) m = Sub(last, one) y = SequenceAt(q, m)",
        "float32[N, 4]",
    ),
    (
        "chunk-anywhere",
        "float[N,M] x, int64 p",
        "q = SplitToSequence<axis=1>(x, four) y = SequenceAt(q, p)",
        "float32[N, ?]",
    ),
    ("single-at", "float[N,M] x", "q = SplitToSequence<axis=1, keepdims=0>(x) y = SequenceAt(q, two)", "float32[N]"),
    (
        "parts-back",
        "float[N,M] x",
        "q = SplitToSequence<axis=1>(x, four) y = ConcatFromSequence<axis=1>(q)",
        "float32[N, M]",
    ),
    (
        "parts-back-negative",
        "float[N,M] x",
        "q = SplitToSequence<axis=-1>(x, four) y = ConcatFromSequence<axis=-1>(q)",
        "float32[N, M]",
    ),
    (
        "squeezed-back",
        "float[N,M] x",
        "q = SplitToSequence<axis=1, keepdims=0>(x) y = ConcatFromSequence<axis=1, new_axis=1>(q)",
        "float32[N, M]",
    ),
    (
        "parts-of-unlike-size",
        "float[N,M] x, int64 p",
        "q = SplitToSequence<axis=1>(x, four) y = SequenceAt(q, p)",
        "float32[N, ?]",
    ),
    ("an-input", "seq(float[N,3]) q", "y = SequenceAt(q, zero)", "float32[N, 3]"),
    ("an-input-unknown", "seq(float[?,3]) q", "y = SequenceAt(q, zero)", "float32[?, 3]"),
]


@pytest.mark.parametrize(("inputs", "body", "expected"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_shapes(inputs: str, body: str, expected: str) -> None:
    assert shape_text(inputs, body, constants=HELD) == expected


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        (TWO, f"{MADE} n = SequenceLength(q)", "2"),
        ("float[N] x", "q = SplitToSequence(x, four) n = SequenceLength(q)", "(N + 3)//4"),
        (
            "float[N] x",
            "q = SplitToSequence(x, four) r = SequenceErase(q, zero) n = SequenceLength(r)",
            "(N + 3)//4 - 1",
        ),
        ("seq(float[N]) q", "n = SequenceLength(q)", "?"),
    ],
)
def test_the_length_of_a_sequence_is_followed(inputs: str, body: str, expected: str) -> None:
    text = f"{body} s = Unsqueeze(n, v) y = ConstantOfShape(s)"
    assert shape_text(inputs, text, constants=HELD) == f"float32[{expected}]"


def test_elements_of_unlike_size_are_not_claimed_to_be_equal() -> None:
    body = "q = SplitToSequence<axis=1>(x, four) a = SequenceAt(q, p) b = SequenceAt(q, r)"
    analysis = infer_nodes("float[N,M] x, int64 p, int64 r", body, constants=HELD)
    assert str(analysis.types["a"]) == str(analysis.types["b"]) == "float32[N, ?]"
    both = infer_nodes("seq(float[?]) q, int64 p", "a = SequenceAt(q, p) b = SequenceAt(q, p) c = Add(a, b)")
    assert both.ok
    assert str(both.types["c"]) == "float32[?]"


def test_an_optional_of_a_sequence_has_the_type_of_its_tensors() -> None:
    for inputs, body in (
        ("optional(seq(int32[N])) o", "y = OptionalGetElement(o)"),
        ("seq(int32[N]) q", "o = Optional(q) y = OptionalGetElement(o)"),
    ):
        analysis = infer_nodes(inputs, body)
        assert analysis.types["o"].dtype == "int32"
        assert str(analysis.types["o"]) == "optional(sequence(int32[N]))"
        assert str(analysis.types["y"]) == "sequence(int32[N])"


def test_parts_of_unlike_lengths_share_no_symbol() -> None:
    """A sequence's elements may differ where its type says nothing; a symbol there once made them look alike."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4, N] x) => (float[M, N] y) {
            size = Constant <value_int: int = 3> ()
            parts = SplitToSequence <axis: int = 0> (x, size)
            same = Identity (parts)
            rows = SplitToSequence <axis: int = 1> (x, size)
            y = ConcatFromSequence <axis: int = 0> (same)
        }"""
    )
    analysis = infer_model(model)
    assert [str(analysis.types[name]) for name in ("parts", "same", "rows")] == [
        "sequence(float32[?, N])",
        "sequence(float32[?, N])",
        "sequence(float32[4, ?])",
    ]
    assert str(analysis.types["y"]) == "float32[4, N]"
