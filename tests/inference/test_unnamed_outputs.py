"""Outputs without a name: onnx's checker and onnxruntime take only optional ones."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, parser

import splitgraph

# A node without one of its outputs, and the position of the output that the finding names.
NODES = {
    "indices of TopK": ("v, i = TopK(x, k)", ["v", ""], 1),
    "values of TopK": ("v, i = TopK(x, k)", ["", "i"], 0),
    "the only output": ("z = Abs(x)", [""], 0),
    "the first of several": ("m, o = MaxPool<kernel_shape = [1, 1]>(y)", ["", "o"], 0),
    "an optional one": ("m, o = MaxPool<kernel_shape = [1, 1]>(y)", ["m", ""], None),
    "several optional ones": ("u, f, g, n = Unique(x)", ["u", "", "", "n"], None),
    "all are there": ("v, i = TopK(x, k)", ["v", "i"], None),
}


def model_of(node: str, outputs: list[str]) -> ModelProto:
    text = (
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[2, 4] x, float[1, 1, 2, 2] y) => (float[2, 4] r) <int64[1] k = {2}> "
        f"{{ {node} r = Relu(x) }}"
    )
    model = parser.parse_model(text)
    model.graph.node[0].output[:] = outputs
    return model


@pytest.mark.parametrize("name", NODES)
def test_an_output_that_is_not_optional_needs_a_name(name: str) -> None:
    node, outputs, position = NODES[name]
    model = model_of(node, outputs)
    analysis = splitgraph.infer(model)
    assert analysis.ok
    found = [finding for finding in analysis.diagnostics if finding.code == "SG212"]
    assert [finding.severity for finding in found] == ([] if position is None else ["warning"])
    assert all(f"output {position} " in finding.message for finding in found)
    if position is None:
        onnx.checker.check_model(model)
    else:
        with pytest.raises(onnx.checker.ValidationError, match="empty string"):
            onnx.checker.check_model(model)


@pytest.mark.parametrize("name", NODES)
def test_onnxruntime_refuses_it(name: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    node, outputs, position = NODES[name]
    model = model_of(node, outputs)
    findings = splitgraph.check(model, "onnxruntime")
    told = [finding for finding in findings if finding.code == "SG701" and "has no name" in finding.message]
    assert len(told) == (position is not None)
    if told:
        assert findings.runs is False
        with pytest.raises(Exception, match="empty string"):
            ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    else:
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
