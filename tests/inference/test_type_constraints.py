"""Element types of inputs, against those that the schemas allow."""

from __future__ import annotations

import pytest
from node_models import infer_nodes

TYPES = [
    ("add", "bool[2] x", "y = Add(x, x)", 14, "input 0 is bool"),
    ("relu", "string[2] x", "y = Relu(x)", 13, "input 0 is string"),
    ("gather", "float[2] x, float[1] i", "y = Gather(x, i)", 13, "input 1 is float32; it must be one of int32, int64"),
    ("reshape", "float[2] x, int32[1] s", "y = Reshape(x, s)", 13, "input 1 is int32; it must be int64"),
    ("not", "int64[2] x", "y = Not(x)", 1, "input 0 is int64; it must be bool"),
    ("clip", "float[2] x, double m", "y = Clip(x, m)", 13, "input 1 is float64 and input 0 is float32"),
    ("norm", "float[2,4] x, float16[4] s", "y = LayerNormalization(x, s)", 17, "both must have the same type"),
    ("pow", "bool[2] x, float e", "y = Pow(x, e)", 13, "input 0 is bool"),
    ("sequence", "seq(float[2]) x", "y = Reshape(x, x)", 13, "sequence"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in TYPES], ids=[c[0] for c in TYPES])
def test_an_element_type_that_the_schema_lacks_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    (found,) = analysis.diagnostics
    assert found.code == "SG302" and said in found.message


def test_element_types_that_a_later_version_allows_are_taken_there() -> None:
    assert not infer_nodes("bfloat16[2] x", "y = Relu(x)", opset=12).ok
    assert infer_nodes("bfloat16[2] x", "y = Relu(x)", opset=13).ok
