"""A constant that a runtime may round otherwise is computed where the runtime does not read what computes it."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.conversion.folding.fold import convert_folded
from splitgraph.conversion.targets.convert import starts_of
from splitgraph.conversion.targets.prepared import Prepared
from splitgraph.options import STRICT
from splitgraph.runtimes.target import find_target


def model(body: str, more: str = "", opset: int = 17) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N, 2] x) => (float[N, 2] y) {more} {{ {body} }}'
    return onnx.parser.parse_model(text)


def operators(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


TWO = "<float[2] c = {0.3, 0.7}>"
# What the specification lets a runtime give in several ways; the last one of an integer that overflows on its way.
ROUNDED = [
    ("s = Sin(c) y = Mul(x, s)", TWO),
    ("s = Exp(c) t = Softmax(s) y = Mul(x, t)", TWO),
    ("s = MatMul(m, m) y = MatMul(x, s)", "<float[2, 2] m = {0.1, 0.2, 0.3, 0.4}>"),
    ("s = Range(a, b, d) y = Mul(x, s)", "<float a = {0}, float b = {0.2}, float d = {0.1}>"),
    (
        "l = Log(c) i = Cast<to = 7>(l) j = Add(i, i) k = Where(far, j, near) f = Cast<to = 1>(k) y = Mul(x, f)",
        "<float[2] c = {0, 9}, bool[2] far = {0, 1}, int64[2] near = {3, 3}>",
    ),
]
NOT_ROUNDED = [
    # Exact, and so folded by everybody.
    ("s = Add(c, c) y = Mul(x, s)", TWO, ["Mul"]),
    # An input has a say.
    ("s = Sin(x) y = Mul(x, s)", "", ["Sin", "Mul"]),
    # It is drawn anew in each run.
    ("s = RandomNormal<shape = [2]>() y = Mul(x, s)", "", ["RandomNormal", "Mul"]),
    # Weights stay small.
    (
        "s = DequantizeLinear(q, w, z) y = Mul(x, s)",
        "<uint8[2] q = {1, 2}, float w = {0.1}, uint8 z = {0}>",
        ["DequantizeLinear", "Mul"],
    ),
]


@pytest.mark.parametrize(("body", "more"), ROUNDED)
def test_one_of_several_results_is_written_if_that_is_wanted(body: str, more: str) -> None:
    given = model(body, more)
    assert len(convert_folded(given).model.graph.node) > 1
    rewrite = convert_folded(given, rounds=True)
    assert (len(rewrite.model.graph.node), rewrite.rounding) == (1, True)
    assert splitgraph.verify(given, rewrite.model).verdict == "equal"


@pytest.mark.parametrize(("body", "more", "left"), NOT_ROUNDED)
def test_what_has_one_result_or_none_is_not_rounded(body: str, more: str, left: list[str]) -> None:
    rewrite = convert_folded(model(body, more), rounds=True)
    assert (operators(rewrite.model), rewrite.rounding) == (left, False)


def test_a_conversion_for_a_target_begins_with_what_is_exact() -> None:
    given = model("z = Add(c, c) s = Sin(z) y = Mul(x, s)", TWO)
    starts = starts_of(Prepared(given, STRICT), find_target("mnn"))
    assert [operators(start.model) for start in starts] == [["Sin", "Mul"], ["Mul"], ["Add", "Sin", "Mul"]]
    # For nobody in particular, the Sin stays.
    assert operators(splitgraph.convert(given, fold=True).model) == ["Sin", "Mul"]


def test_what_can_only_be_exact_has_no_rounded_start() -> None:
    assert not Prepared(model("s = Add(c, c) y = Mul(x, s)", TWO), STRICT).rounded
