"""Inference of a whole model: what is wrong with the model itself."""

from __future__ import annotations

import onnx
import pytest

from splitgraph.inference import infer_model


@pytest.mark.parametrize("opset", [0, -1, 29_000, 2**40])
def test_an_opset_that_nobody_knows(opset: int) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { y = Relu (x) }'
    )
    model.opset_import[0].version = opset
    assert [found.code for found in infer_model(model).diagnostics] == ["SG103"]
