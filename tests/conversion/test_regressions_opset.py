"""What conversion to another opset once got wrong, found by odd models."""

from __future__ import annotations

import onnx
import pytest

from splitgraph.conversion.opset import convert_opset
from splitgraph.diagnostics import ConversionError
from splitgraph.inference import infer_model

SPLIT = """<ir_version: 8, opset_import: ["" : 11]>
g (float[N, 6] x) => (float[N, 3] a, float[N, 3] b) { a, b = Split <axis: int = 1> (x) }"""


def test_a_model_with_training_graphs_is_refused() -> None:
    """They are at the model's opset: importing another one would give their nodes another meaning."""
    model = onnx.parser.parse_model(SPLIT)
    model.training_info.add().algorithm.CopyFrom(model.graph)
    assert convert_opset(model, 11).model.training_info == model.training_info
    with pytest.raises(ConversionError) as refusal:
        convert_opset(model, 18)
    assert [(found.code, found.location) for found in refusal.value.diagnostics] == [("SG409", "training_info[0]")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_two_opsets_at_once_mean_nothing(domain: str) -> None:
    model = onnx.parser.parse_model(SPLIT)
    model.opset_import.add(domain=domain, version=13)
    assert [found.code for found in infer_model(model).diagnostics] == ["SG103"]
    with pytest.raises(ConversionError):
        convert_opset(model, 18)
    model.opset_import[1].version = 11
    assert convert_opset(model, 18).changes
