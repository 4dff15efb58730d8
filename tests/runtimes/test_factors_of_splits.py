"""The factors of splits: how they are written, and what is unusual about them; and what checks say of them."""

from __future__ import annotations

import onnx
import pytest
from runtimes import models
from runtimes.models import model

import splitgraph
from splitgraph.runtimes.check import examine

# What every split here has, unless a case says something else.
PLAIN = {
    "T": "float32",
    "along": "fixed",
    "before": "fixed",
    "behind": "fixed",
    "axis": "second",
    "axis.sign": "positive",
}
PLAIN |= {"data": "data", "outputs.count": "two", "rank": "3"}


def factors(given: onnx.ModelProto, operator: str, plain: dict[str, str]) -> dict[str, str | None]:
    """What the factors of the only node of an operator have that plain ones have not; None for what they lack."""
    (found,) = [each for each in examine(given).nodes if each.node.op_type == operator]
    read = dict(found.factors)
    return {key: value for key, value in read.items() if plain.get(key) != value} | {
        key: None for key in plain if key not in read
    }


EIGHT = "float[2, 8, 8] x"
COMPUTED = "n = Shape(x) i = Constant<value_ints = [1]>() d = Gather(n, i) k = Constant<value_ints = [3]>() r = Sub(d, k) s = Concat<axis = 0>(k, r) y0, y1 = Split<axis = 1>(x, s)"  # noqa: E501
MORE = {"outputs.count": "more"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (models.UNEVEN, {"split": "absent", "parts": "uneven", **MORE}),
        (models.EVEN, {"split": "absent", "parts": "equal", "axis": "last"}),
        (models.LENGTHS, {"split": "init"}),
        (models.EITHER, {"split": "absent", "parts": "open", "along": "open"}),
        (models.EMPTY, {"split": "init", "parts.empty": "yes", **MORE}),
        (models.JOINED, {"split": "init", "parts.empty": "joined", **MORE}),
        (models.WITHOUT_AXIS, {"split": "absent", "axis": "first", "axis.sign": "unwritten"}),
        (models.ATTRIBUTE, {"split": "unequal"}),
        (models.HALF, {"split": "absent", "T": "float16", "axis": "last"}),
        # A part that nothing reads is none that a node reads.
        (models.MIXED, {"split": "absent", "outputs.unused": "yes", "axis": "last"}),
        (
            model("u, y1 = Split<axis = 2>(x) y0 = Relu(u)", 13),
            {"split": "absent", "outputs.mixed": "yes", "axis": "last"},
        ),
        (models.RANK_1, {"split": "absent", "rank": "1 returned", "axis": None}),
        (
            model("u, v = Split<axis = 0>(x) y0 = Relu(u) y1 = Relu(v)", 13, data="float[8] x"),
            {"split": "absent", "rank": "1", "axis": None},
        ),
        (model("y0, y1 = Split<axis = -1>(x)", 13), {"split": "absent", "axis": "last", "axis.sign": "negative"}),
        (model("y0 = Split<axis = 1>(x)", 13), {"split": "absent", "outputs.count": "one"}),
        (model("y0, y1 = Split<axis = 2, split = [4, 4]>(x)", 11), {"split": "equal", "axis": "last"}),
        (model("y0, y1 = Split<axis = 2>(x)", 11), {"split": "absent", "axis": "last"}),
        (model('y0, y1 = Split<axis = 2>(x, "")', 13), {"split": "unnamed", "axis": "last"}),
        (model(COMPUTED, 13), {"split": "sized"}),
        (model(COMPUTED, 13, data="float[2, N, 8] x"), {"split": "shape", "along": "open"}),
        (model("y0, y1 = Split<axis = 1>(x, s)", 13, data="float[2, 7, 8] x, int64[2] s"), {"split": "input"}),
        # A default that a caller may replace is given as it is.
        (
            model("y0, y1 = Split<axis = 1>(x, s)", 13, data="float[2, 7, 8] x, int64[2] s = {3, 4}"),
            {"split": "init"},
        ),
        (model("c = Constant<value_ints = [3, 4]>() y0, y1 = Split<axis = 1>(x, c)", 13), {"split": "node"}),
        (
            model("c = Add(s, s) y0, y1 = Split<axis = 1>(x, c)", 13, more="<int64[2] s = {3, 1}>", data=EIGHT),
            {"split": "folded"},
        ),
        (
            model("y0, y1, y2, y3 = Split<axis = 1, num_outputs = 4>(x)", data="float[2, 6, 8] x"),
            {"split": "absent", "parts": "overrun", **MORE},
        ),
        (
            model("y0, y1, y2, y3 = Split<axis = 1, num_outputs = 4>(x)", data="float[2, 5, 8] x"),
            {"split": "absent", "parts": "beyond", **MORE},
        ),
    ],
)  # fmt: skip
def test_factors_of_a_split(given: onnx.ModelProto, expected: dict[str, str | None]) -> None:
    assert factors(given, "Split", PLAIN) == expected


LAST = {"parts": "equal", "rank.1": "0", "axis": "last"}
SEQUENCE = {key: value for key, value in PLAIN.items() if key != "outputs.count"}
SEQUENCE |= {"S": "sequence of float32", "keepdims": "1", "split": "init", "I": "int64"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q = SplitToSequence<axis = 1>(x, b) y0 = SequenceAt(q, a)", {"parts": "smaller last", "rank.1": "0"}),
        ("q = SplitToSequence<axis = 2>(x, b) y0 = SequenceAt(q, a)", LAST),
        ("q = SplitToSequence<axis = 1>(x, s) y0 = SequenceAt(q, a)", {"I": "int32", "rank.1": "1"}),
        (
            "q = SplitToSequence<axis = 1, keepdims = 0>(x, b) y0 = SequenceAt(q, a)",
            {"parts": "smaller last", "rank.1": "0", "keepdims": "0 beside a size"},
        ),
    ],
)  # fmt: skip
def test_factors_of_a_sequence(body: str, expected: dict[str, str | None]) -> None:
    given = model(body, 13, more="<int64 a = {0}, int64 b = {2}, int32[2] s = {3, 4}>")
    assert factors(given, "SplitToSequence", SEQUENCE) == expected


def test_a_position_and_an_empty_slice() -> None:
    given = model("q = SplitToSequence<axis = 1>(x) y0 = SequenceAt(q, a)", 13, more="<int64 a = {-1}>")
    assert factors(given, "SequenceAt", {})["position.sign"] == "negative"
    for end, expected in ((2, "yes"), (3, None)):
        held = f"<int64[1] a = {{2}}, int64[1] b = {{{end}}}, int64[1] c = {{1}}>"
        assert factors(model("y0 = Slice(x, a, b, c)", 13, more=held), "Slice", {}).get("parts.empty") == expected


def test_operators_and_local_functions() -> None:
    given = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (float[4] x) => (y) { a = Relu(x) y = own.twice(a) }
        <opset_import: ["": 17], domain: "own"> twice (x) => (y) { y = Add(x, x) }""")
    found = {each.label: (each.is_call, each.operator) for each in examine(given).nodes}
    calls = "calls of local functions"
    assert found == {"Relu-14": (False, "Relu-14"), "own.twice": (True, calls), "Add-14": (False, "Add-14")}
    (error,) = (each for each in splitgraph.check(given, "tract") if each.severity == "error")
    assert (error.code, error.operator) == ("SG701", "own.twice")
    assert "tract 0.23.9 refuses calls of local functions" in error.message


def test_a_split_that_is_wrong_has_no_factors() -> None:
    wrong = model("y0, y1 = Split<axis = 5, num_outputs = 2>(x)")
    (found,) = examine(wrong).nodes
    assert found.factors == ()
