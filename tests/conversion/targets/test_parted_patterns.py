"""Nodes that a runtime takes for one operator, and fails at, are parted."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.runtimes.check import examine

HALF_INSIDE = "e = Erf (d) a = Add (e, one) h = Mul (half, a) y = Mul (x, h)"
NUMBERS = {"root": "1.4142135", "inverse": "0.707107", "near": "1.4142", "one": "1", "half": "0.5"}
CONSTANTS = "<" + ", ".join(f"float {name} = {{{number}}}" for name, number in NUMBERS.items()) + ">"


def model(body: str) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 8] x, float[2, 8] z) => (float[2, 8] y) {CONSTANTS}'
    return splitgraph.infer(onnx.parser.parse_model(f"{text} {{ {body} }}")).model


def ends(given: onnx.ModelProto) -> list[str]:
    return [node.node.output[0] for node in examine(given).nodes if ("gelu", "halved inside") in node.factors]


@pytest.mark.parametrize(
    "body",
    [
        f"d = Div (x, root) {HALF_INSIDE}",
        "d = Div (x, root) e = Erf (d) a = Add (one, e) h = Mul (a, half) y = Mul (h, x)",
        # OpenCV takes any number for the half, and dies as well.
        "d = Div (x, root) e = Erf (d) a = Add (e, one) h = Mul (near, a) y = Mul (x, h)",
    ],
)
def test_the_last_node_of_a_gelu_tells_of_it(body: str) -> None:
    assert ends(model(body)) == ["y"]


@pytest.mark.parametrize(
    "body",
    [
        # The half comes last, as older exporters wrote it.
        "d = Div (x, root) e = Erf (d) a = Add (e, one) h = Mul (x, a) y = Mul (h, half)",
        # The Erf is of something else.
        f"d = Div (z, root) {HALF_INSIDE}",
        # OpenCV 4.14 and 5 run these: other numbers, and a Mul.
        f"d = Mul (x, inverse) {HALF_INSIDE}",
        f"d = Div (x, near) {HALF_INSIDE}",
        f"d = Div (root, x) {HALF_INSIDE}",
        "d = Div (x, root) e = Erf (d) a = Add (e, near) h = Mul (half, a) y = Mul (x, h)",
        # No Erf, and nothing that is added.
        "d = Div (x, root) e = Tanh (d) a = Add (e, one) h = Mul (half, a) y = Mul (x, h)",
        "d = Div (x, root) e = Erf (d) h = Mul (half, e) y = Mul (x, h)",
        # Of data, not of a constant.
        "d = Div (x, root) e = Erf (d) a = Add (e, z) h = Mul (half, a) y = Mul (x, h)",
        # Something stands between them.
        "d = Div (x, root) e = Erf (d) a = Add (e, one) h = Mul (half, a) i = Identity (h) y = Mul (x, i)",
    ],
)
def test_what_is_no_such_pattern_tells_nothing(body: str) -> None:
    assert not ends(model(body))
