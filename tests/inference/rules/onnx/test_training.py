"""Gradients and optimizers: what comes back has the type of what went in."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis

STEP = [("float32", []), ("int64", [])]
A, B = ("float32", ["N", 3]), ("float64", [4])
MOMENTUM = {"alpha": 0.9, "beta": 0.9, "mode": "standard", "norm_coefficient": 0.0}


def inferred(operator: str, inputs: list[Any], attributes: dict[str, Any], outputs: int) -> Analysis:
    """A node of the domain, inferred."""
    names = [f"i{index}" for index in range(len(inputs))]
    types = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64}
    values = [
        helper.make_tensor_value_info(name, types[dtype], shape)
        for name, (dtype, shape) in zip(names, inputs, strict=True)
    ]
    results = [f"o{index}" for index in range(outputs)]
    node = helper.make_node(operator, names, results, domain="ai.onnx.preview.training", **attributes)
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=name) for name in results])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.preview.training", 1)]
    return infer_model(helper.make_model(graph, opset_imports=imports, ir_version=9))


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "outputs", "found"),
    [
        ("Adagrad", [*STEP, A, A], {}, 1, "3 are required for each"),
        ("Adam", [*STEP, A, A, A], {}, 1, "4 are required for each"),
        ("Momentum", [*STEP, A], MOMENTUM, 1, "3 are required for each"),
        ("Gradient", [A], {"xs": ["a", "b"], "y": "c"}, 1, "xs names 2 tensors for 1 inputs"),
        ("Gradient", [A, B], {"xs": ["a"], "y": "c"}, 2, "and 2 outputs"),
    ],
)
def test_an_invalid_node_is_a_finding(
    operator: str, inputs: list[Any], attributes: dict[str, Any], outputs: int, found: str
) -> None:
    (diagnostic,) = inferred(operator, inputs, attributes, outputs).diagnostics
    assert diagnostic.code == "SG302" and found in diagnostic.message


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "expected"),
    [
        ("Adagrad", [*STEP, *(A, B) * 3], {}, [A, B, A, B]),
        ("Momentum", [*STEP, *(A, B) * 3], MOMENTUM, [A, B, A, B]),
        ("Adam", [*STEP, *(A, B) * 4], {}, [A, B, A, B, A, B]),
        ("Gradient", [A, B], {"xs": ["a", "b"], "y": "c"}, [A, B]),
        ("Gradient", [A, B], {"xs": ["a"], "zs": ["b"], "y": "c"}, [A]),
    ],
)
def test_what_comes_back(operator: str, inputs: list[Any], attributes: dict[str, Any], expected: list[Any]) -> None:
    analysis = inferred(operator, inputs, attributes, len(expected))
    assert analysis.ok
    found = [analysis.types[f"o{index}"] for index in range(len(expected))]
    assert [(known.dtype, [str(dim) for dim in known.shape or ()]) for known in found] == [
        (dtype, [str(dim) for dim in shape]) for dtype, shape in expected
    ]
