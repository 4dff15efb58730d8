"""A length that only bodies read: what they make of it is known, or it stays."""

from __future__ import annotations

import onnx
import pytest

import splitgraph

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 4] s, bool c) => (y)
<int64[1] one = {{1}}> {{ y = If(c) <then_branch = t () => (p) {{ p = {then}(s{axes}) }},
else_branch = e () => (q) {{ q = {other}(s) }}> }}"""


def _model(then: str, other: str, axes: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(MODEL.format(then=then, other=other, axes=axes))


@pytest.mark.parametrize("size", [8, "L"])
def test_a_result_of_unknown_shape_is_refused(size: int | str) -> None:
    with pytest.raises(splitgraph.ConversionError, match="what If makes of"):
        splitgraph.reshape(_model("Unsqueeze", "Relu", ", one"), {"s": [1, 2, size]})


@pytest.mark.parametrize("size", [8, "L"])
def test_a_result_of_known_shape_follows(size: int | str) -> None:
    splitgraph.reshape(_model("Neg", "Relu"), {"s": [1, 2, size]})
