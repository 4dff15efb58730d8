"""Operators of other domains, and their versions, are written as the runtime of a target reads them."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import splitgraph

ML = "ai.onnx.ml"
SCALER = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : {}]>
g (float[N, 2] x) => (float[N, 2] y) {{
  s = ai.onnx.ml.Scaler <offset: floats = [1.0, 2.0], scale: floats = [0.5, 2.0]> (x)
  y = Relu (s)
}}"""
ENCODER = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 4]>
g (string[N] x) => (int64[N] y) {
  y = ai.onnx.ml.LabelEncoder <keys_strings: strings = ["a", "b"], values_int64s: ints = [3, 4]> (x)
}"""


def _model(text: str) -> onnx.ModelProto:
    return parser.parse_model(text)


@pytest.mark.parametrize(
    ("version", "target", "wanted"),
    [
        (4, "onnxruntime@1.15", 3),
        (5, "onnxruntime@1.15", 3),
        (5, "onnxruntime@1.17", 4),
        (4, "onnxruntime@1.17", 4),
        (3, "onnxruntime@1.15", 3),
        (5, "onnxruntime", 5),
    ],
)
def test_a_target_chooses_the_version_that_it_reads(version: int, target: str, wanted: int) -> None:
    model = _model(SCALER.format(version))
    rewrite = splitgraph.convert(model, target=target)
    assert rewrite.to_opset == {"": 17, ML: wanted}
    assert rewrite.model.graph == model.graph
    assert splitgraph.check(model, target).after_conversion is True


def test_the_operator_of_a_chosen_version_is_written() -> None:
    rewrite = splitgraph.convert(_model(ENCODER), target="onnxruntime@1.15")
    assert rewrite.to_opset[ML] == 3


def test_what_a_target_does_not_read_is_written_in_ai_onnx() -> None:
    rewrite = splitgraph.convert(_model(SCALER.format(3)), target="openvino", verify=True)
    assert {node.domain for node in rewrite.model.graph.node} == {""}
    assert rewrite.to_opset == {"": 17}
    assert rewrite.verified


def test_what_has_no_form_stays_in_the_way() -> None:
    found = splitgraph.check(_model(ENCODER), "openvino")
    assert not found.after_conversion


def test_a_version_that_is_asked_for_goes_before_the_target() -> None:
    rewrite = splitgraph.convert(_model(SCALER.format(3)), target="onnxruntime", opset={"": 18, ML: 5})
    assert rewrite.to_opset == {"": 18, ML: 5}
