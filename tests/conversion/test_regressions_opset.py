"""What conversion to another opset once got wrong, found by odd models."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper

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


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes", "words"),
    [
        ("BitwiseAnd", 18, ["x"], {}, "BitwiseAnd has 1 inputs, and takes at least 2"),
        ("Col2Im", 18, ["x", "", "x"], {}, "Col2Im leaves its input image_shape out"),
        ("DepthToSpace", 11, ["x"], {"mode": "CRD"}, "DepthToSpace has no attribute blocksize"),
    ],
)
def test_a_node_that_does_not_fit_its_schema_is_refused(
    op: str, opset: int, inputs: list[str], attributes: dict[str, Any], words: str
) -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [1, 4, 2, 2])
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)], "g", [x], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    with pytest.raises(ConversionError, match=words):
        convert_opset(model, 10)
