"""The traits of a split: how it is written, and what is unusual about it."""

from __future__ import annotations

from collections.abc import Collection

import onnx
import pytest
from runtimes import models
from runtimes.models import model

from splitgraph.inference import walk_model
from splitgraph.runtimes.node_traits import traits_of


def traits(given: onnx.ModelProto, operator: str) -> Collection[str]:
    """The traits of the only node of an operator, without that of its version."""
    (found,) = [each for each in traits_of(given, walk_model(given)) if each.node.op_type == operator]
    return {trait for trait in found.traits if not trait[0].isupper()}


COMPUTED = "n = Shape(x) i = Constant<value_ints = [1]>() d = Gather(n, i) k = Constant<value_ints = [3]>() r = Sub(d, k) s = Concat<axis = 0>(k, r) y0, y1 = Split<axis = 1>(x, s)"  # noqa: E501


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (models.UNEVEN, {"split-18-uneven"}),
        (models.EVEN, {"split-18-even"}),
        (models.LENGTHS, {"split-13-constant"}),
        (models.EITHER, {"split-18-either", "dimension-unknown"}),
        (models.EMPTY, {"split-13-constant", "part-empty"}),
        (models.JOINED, {"split-13-constant", "part-empty-joined"}),
        (models.WITHOUT_AXIS, {"split-13-equal", "axis-omitted"}),
        (models.ATTRIBUTE, {"split-2-lengths"}),
        (models.HALF, {"split-13-equal", "float16"}),
        (models.MIXED, {"split-13-equal", "output-unread", "outputs-mixed"}),
        (models.RANK_1, {"split-13-equal", "rank-1"}),
        (model("y0, y1 = Split<axis = -1>(x)", 13), {"split-13-equal", "axis-negative"}),
        (model("y0 = Split<axis = 1>(x)", 13), {"split-13-equal", "part-single"}),
        (model("y0, y1 = Split<axis = 2, split = [4, 4]>(x)", 11), {"split-2-even-lengths"}),
        (model("y0, y1 = Split<axis = 2>(x)", 11), {"split-2-equal"}),
        (model(COMPUTED, 13), {"split-13-fixed"}),
        (model(COMPUTED, 13, data="float[2, N, 8] x"), {"split-13-computed", "dimension-unknown"}),
        (
            model("y0, y1 = Split<axis = 1>(x, s)", 13, data="float[2, 7, 8] x, int64[2] s"),
            {"split-13-input"},
        ),
        (
            model("y0, y1 = Split<axis = 1>(x, s)", 13, data="float[2, 7, 8] x, int64[2] s = {3, 4}"),
            {"split-13-constant", "lengths-overridable"},
        ),
        (
            model("c = Constant<value_ints = [3, 4]>() y0, y1 = Split<axis = 1>(x, c)", 13),
            {"split-13-constant", "lengths-value-ints"},
        ),
        (
            model("c = Identity(s) y0, y1 = Split<axis = 1>(x, c)", 13, more="<int64[2] s = {3, 4}>"),
            {"split-13-folded"},
        ),
        (
            model("y0, y1, y2, y3 = Split<axis = 1, num_outputs = 4>(x)", data="float[2, 6, 8] x"),
            {"split-18-uneven", "parts-overrun"},
        ),
        (
            model("y0, y1, y2, y3 = Split<axis = 1, num_outputs = 4>(x)", data="float[2, 5, 8] x"),
            {"split-18-uneven", "parts-overrun", "parts-beyond"},
        ),
    ],
)
def test_traits_of_a_split(given: onnx.ModelProto, expected: Collection[str]) -> None:
    assert traits(given, "Split") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q = SplitToSequence<axis = 1>(x) y0 = SequenceAt(q, a)", {"sequence-each"}),
        ("q = SplitToSequence<axis = 1, keepdims = 0>(x) y0 = SequenceAt(q, a)", {"sequence-each", "keepdims-0"}),
        ("q = SplitToSequence<axis = 1>(x, b) y0 = SequenceAt(q, a)", {"sequence-size", "uneven-size"}),
        ("q = SplitToSequence<axis = 2>(x, b) y0 = SequenceAt(q, a)", {"sequence-size"}),
        ("q = SplitToSequence<axis = 1>(x, s) y0 = SequenceAt(q, a)", {"sequence-lengths", "lengths-int32"}),
    ],
)
def test_traits_of_a_sequence(body: str, expected: Collection[str]) -> None:
    given = model(body, 13, more="<int64 a = {0}, int64 b = {2}, int32[2] s = {3, 4}>")
    assert traits(given, "SplitToSequence") == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {1}", {"slice-constant"}),
        ("int32[1] a = {0}, int32[1] b = {3}, int32[1] c = {1}", {"slice-constant", "bounds-int32"}),
        ("int64[1] a = {-3}, int64[1] b = {9223372036854775807}, int64[1] c = {-2}",
         {"slice-constant", "bounds-open", "bounds-negative", "axis-negative"}),
        ("int64[1] a = {2}, int64[1] b = {2}, int64[1] c = {1}", {"slice-constant", "part-empty"}),
    ],
)  # fmt: skip
def test_traits_of_a_slice(bounds: str, expected: Collection[str]) -> None:
    assert traits(model("y0 = Slice(x, a, b, c)", 13, more=f"<{bounds}>"), "Slice") == expected


def test_slices_of_shapes_have_no_form() -> None:
    given = model("n = Shape(x) y0 = Slice(n, a, b)", 13, more="<int64[1] a = {0}, int64[1] b = {1}>")
    assert traits(given, "Slice") == set()


def test_operators_and_local_functions() -> None:
    given = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (float[4] x) => (y) { a = Relu(x) y = own.twice(a) }
        <opset_import: ["": 17], domain: "own"> twice (x) => (y) { y = Add(x, x) }""")
    found = {each.label: each.traits for each in traits_of(given, walk_model(given))}
    assert found == {"Relu-14": set(), "own.twice": {"local-function"}, "Add-14": set()}
