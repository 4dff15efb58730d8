"""Element types that only the schema forbids: errors that stay errors, and the warnings of the others."""

from __future__ import annotations

import pytest
from node_models import infer_nodes

# Runtimes do not read these, disagree, or were not measured.
ERRORS = [
    ("before the first measured opset", "int32[2] x", "y = Relu(x)", 6),
    ("a type that no version allows", "string[2] x", "y = Relu(x)", 13),
    ("a type that was not measured", "bfloat16[2] x", "y = Relu(x)", 12),
    ("integers of which the square root is rounded", "int64[2] x", "y = Sqrt(x)", 13),
    ("logic of integers", "int32[2] x", "y = Not(x)", 13),
    ("two types", "int32[2] x, int64[2] w", "y = Add(x, w)", 14),
    ("unsigned shapes", "float[2] x, uint8[1] s", "y = Reshape(x, s)", 13),
    ("floats as a shape", "float[2] x, float[1] s", "y = Reshape(x, s)", 13),
    ("int32 where only the evaluator reads it", "float[2] x, int32[2] p", "y = Pad(x, p)", 13),
    ("a shape that onnx refuses", "int32[2] x", "y = ConstantOfShape(x)", 13),
    ("another fault beside it", "string[2] x, int32[1] s", "y = Relu(x) z = Reshape(y, s)", 13),
]


@pytest.mark.parametrize(("inputs", "body", "opset"), [each[1:] for each in ERRORS], ids=[each[0] for each in ERRORS])
def test_what_stays_an_error(inputs: str, body: str, opset: int) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    assert "error" in {found.severity for found in analysis.diagnostics if found.code == "SG302"}


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "said"),
    [
        ("float[2] x, int32[1] s", "y = Reshape(x, s)", 13, "as if int32 were int64"),
        ("float[2] x, int32[1] s, int64[1] e", "y = Slice(x, s, e)", 13, "as if int32 were int64"),
        ("int32[2] x", "y = Relu(x)", 13, "like Relu-14"),
        ("int64[2] x, int64 m", "y = Clip(x, m)", 11, "like Clip-12"),
        ("float[2] x", "y = Equal(x, x)", 7, "like Equal-11"),
        ("float[2] x, int64[2] e", "y = Pow(x, e)", 7, "like Pow-12"),
    ],
)
def test_what_is_a_warning(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    (found,) = analysis.diagnostics
    assert (found.code, found.severity) == ("SG302", "warning")
    assert f"OpenVINO and the reference evaluator read the node {said}; onnxruntime refuses the node" in found.message


def test_every_node_is_told() -> None:
    """Nodes that are alike are inferred once, but each has its own finding."""
    analysis = infer_nodes("int32[2] x", "y = Relu(x) z = Relu(x)", opset=13)
    assert [found.location for found in analysis.diagnostics] == ["main/Relu#0", "main/Relu#1"]
