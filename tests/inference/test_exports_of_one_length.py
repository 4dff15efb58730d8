"""Exports that run at one length only: the requirement says the length, a warning names reshape, one error the size."""

from __future__ import annotations

import onnx
import pytest

import splitgraph
from splitgraph.inference import single_sizes
from splitgraph.inference.analysis import Analysis

SIZES = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] seven = {7}, int64[1] four = {4}, int64[1] rest = {-1}"
SIZES += ", int64[3] flat = {0, 7, 64}, int64[4] heads = {0, 7, 4, 16}, int64[3] tokens = {-1, 7, 64}"
SIZES += ", float[3, 2] weights = {1, 2, 3, 4, 5, 6}"
ATTENTION = """
  whole = Shape(x) batch = Gather(whole, zero)
  parts = Concat<axis=0>(batch, seven, four, rest) back = Concat<axis=0>(batch, seven, rest)
  q0 = Reshape(x, parts) k0 = Reshape(x, parts) v0 = Reshape(x, parts)
  q = Transpose<perm=[0, 2, 1, 3]>(q0) k = Transpose<perm=[0, 2, 3, 1]>(k0) v = Transpose<perm=[0, 2, 1, 3]>(v0)
  s = MatMul(q, k) p = Softmax(s) o = MatMul(p, v) t = Transpose<perm=[0, 2, 1, 3]>(o)
  r = Reshape(t, back) y = Add(x, r)"""


def inferred(body: str, *, shape: str = "batch, seq, 64", bind: dict[str, int] | None = None) -> Analysis:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[{shape}] x) => (float[a, b, c] y) <{SIZES}> {{ {body} }}'
    return splitgraph.infer(onnx.parser.parse_model(text), bind=bind)


def said(analysis: Analysis) -> tuple[list[str], list[str]]:
    """The requirements on the names of the input, and the assumptions."""
    required = [str(each) for each in analysis.obligations if each.symbols <= {"batch", "seq", "more"}]
    return required, list(map(str, analysis.assumptions))


# The nodes, the shape of the input, the requirements, the assumptions, and what SG307 names. What stays comes first.
CASES: dict[str, tuple[str, str, list[str], list[str], list[str]]] = {
    "any length": ("y = Relu(x)", "batch, seq, 64", [], [], []),
    "groups of seven": ("y = Reshape(x, tokens)", "batch, seq, 64", ["(batch*seq) % 7 == 0"], [], []),
    "a width that weights decide": ("y = MatMul(x, weights)", "batch, seq, width", [], [], []),
    "a number already": ("y = Reshape(x, flat)", "batch, 7, 64", [], [], []),
    "a batch of 0 copied": ("y = Reshape(x, flat)", "batch, seq, 64", ["seq == 7"], ["batch >= 1"], ["seq"]),
    "one item": ("y = Reshape(x, flat)", "1, seq, 64", ["seq == 7"], [], ["seq"]),
    "a computed batch": (
        "s = Shape(x) b = Gather(s, zero) t = Concat<axis=0>(b, seven, rest) r = Reshape(x, t) y = Add(x, r)",
        "batch, seq, 64",
        ["batch >= 1", "seq == 7"],
        [],
        ["seq"],
    ),
    "attention": (ATTENTION, "batch, seq, 64", ["batch >= 1", "seq == 7"], [], ["seq"]),
    "four heads": ("y = Reshape(x, heads)", "batch, seq, 64", ["seq == 7"], ["batch >= 1"], ["seq"]),
    "the batch is known later": (
        "y0 = Reshape(x, flat) s = Shape(x) b = Gather(s, zero) t = Concat<axis=0>(b, rest) y = Reshape(y0, t)",
        "batch, seq, 64",
        ["seq == 7", "batch >= 1"],
        [],
        ["seq"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_requirements(name: str) -> None:
    body, shape, required, assumed, warned = CASES[name]
    analysis = inferred(body, shape=shape)
    assert said(analysis) == (required, assumed)
    warnings = [finding for finding in analysis.diagnostics if finding.code == "SG307"]
    for finding, dimension in zip(warnings, warned, strict=True):
        assert f"'{dimension}'" in finding.message
        assert "reshape" in (finding.help or "")


# Requirements that say a size only when they are read together, or are written with other symbols.
HIDDEN = {
    **{name: case[:2] for name, case in CASES.items()},
    "a product": ("y0 = Reshape(x, flat) t = Concat<axis=0>(seven, seven) y = Reshape(y0, t)", "batch, seq, 64"),
    "a second name": ("y0 = Reshape(x, flat) y = Add(y0, x)", "batch, seq, width"),
    "a part": ("s = Slice(x, zero, seven, one) y = Reshape(s, flat)", "batch, seq, 64"),
    "a half": ("s0, s1 = Split<axis=1>(x) y = Reshape(s0, flat)", "batch, seq, 64"),
    "a broadcast": ("y0 = Reshape(x, flat) y = Max(y0, x)", "batch, more, 64"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_no_size_is_missed_without_reading_the_requirements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, shape = HIDDEN[name]
    found = inferred(body, shape=shape).diagnostics
    monkeypatch.setattr(single_sizes, "_may_fix_sizes", lambda state, solved: True)
    assert inferred(body, shape=shape).diagnostics == found


ERRORS: dict[str, tuple[str, dict[str, int], str | None]] = {
    "the right length": (ATTENTION, {"seq": 7}, None),
    "another batch": (ATTENTION, {"batch": 3}, None),
    "attention": (ATTENTION, {"seq": 5}, "3 other nodes fail for the same reason"),
    "attention of two": (ATTENTION, {"seq": 5, "batch": 2}, "for the same reason"),
    "constant targets": ("y = Reshape(x, flat)", {"seq": 5}, "requires seq == 7"),
    "several constant targets": ("a0 = Reshape(x, flat) b0 = Reshape(x, heads) y = Relu(a0)", {"seq": 5}, "seq == 7"),
    "a longer one": ("y = Reshape(x, flat)", {"seq": 14}, "requires seq == 7"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_error(name: str) -> None:
    body, bind, expected = ERRORS[name]
    errors = [finding for finding in inferred(body, bind=bind).diagnostics if finding.severity == "error"]
    assert len(errors) == (expected is not None)
    assert expected is None or expected in errors[0].message


def test_two_causes_are_two_errors() -> None:
    body = "t = Transpose<perm=[1, 0, 2]>(x) a0 = Reshape(x, flat) b0 = Reshape(t, flat) y = Relu(a0)"
    errors = [each for each in inferred(body, bind={"seq": 5, "batch": 2}).diagnostics if each.severity == "error"]
    assert [error.location for error in errors] == ["main/Reshape#1", "main/Reshape#2"]


# The shape of the input, the nodes, and the dimension that can only be 0: two sizes of the file contradict each other.
EMPTY: dict[str, tuple[str, str, str | None]] = {
    "the size that it has": ("batch, 7, 64", "y = Reshape(x, flat)", None),
    "a fixed 0": ("0, 5, 64", "y = Reshape(x, flat)", None),
    "groups of seven": ("batch, 5, 64", "y = Reshape(x, tokens)", None),
    "broadcast to a multiple": ("batch, 5, 64", "u = Concat<axis=0>(x, x) y = Add(u, x)", None),
    "another length": ("batch, 5, 64", "y = Reshape(x, flat)", "batch"),
    "another length and heads": ("batch, 5, 64", "y = Reshape(x, heads)", "batch"),
    "two nodes": ("batch, 5, 64", "a0 = Reshape(x, flat) b0 = Reshape(x, heads) y = Relu(a0)", "batch"),
    "another width": ("rows, 7, 63", "y = Reshape(x, flat)", "rows"),
    "a multiple of itself": ("batch, 5, 64", "u = Concat<axis=0>(x, x) y = Concat<axis=2>(u, x)", "batch"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_what_fits_nothing_but_an_empty_tensor(name: str) -> None:
    shape, body, dimension = EMPTY[name]
    found = inferred(body, shape=shape)
    assert found.ok
    told = [(each.code, each.severity, each.message) for each in found.diagnostics if each.code == "SG307"]
    text = f"the dimension {dimension!r} of the inputs can only be 0: this node fits nothing but an empty tensor"
    assert told == ([] if dimension is None else [("SG307", "warning", text)])
