"""An attribute that a node's operator does not have at its opset is a finding: an older or newer version may give it a
meaning, which a conversion would bring into force.
"""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph

# Operator, opset, inputs, attributes, and what is said.
UNKNOWN = [
    ("ReduceMean", 21, 1, {"axes": [1], "keepdims": 0}, "ReduceMean-18 has no attribute 'axes'; ReduceMean-13 has it"),
    ("Squeeze", 13, 1, {"axes": [1]}, "Squeeze-13 has no attribute 'axes'; Squeeze-11 has it"),
    ("Clip", 11, 1, {"max": 1.0}, "Clip-11 has no attribute 'max'; Clip-6 has it"),
    ("Dropout", 12, 2, {"ratio": 0.1}, "Dropout-12 has no attribute 'ratio'; Dropout-10 has it"),
    ("Softmax", 13, 1, {"axes": [1]}, "Softmax-13 has no attribute 'axes'"),
    ("Cast", 13, 1, {"to": 1, "saturate": 0}, "Cast-13 has no attribute 'saturate'; Cast-19 has it"),
    ("Relu", 14, 1, {"alpha": 0.1}, "Relu-14 has no attribute 'alpha'"),
]


def model(op_type: str, opset: int, inputs: int, attributes: dict[str, object]) -> onnx.ModelProto:
    node = helper.make_node(op_type, ["x"] * inputs, ["y"], **attributes)
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("op_type", "opset", "inputs", "attributes", "text"), UNKNOWN)
def test_it_is_found(op_type: str, opset: int, inputs: int, attributes: dict[str, object], text: str) -> None:
    made = model(op_type, opset, inputs, attributes)
    with pytest.raises(onnx.checker.ValidationError, match="Unrecognized attribute"):
        onnx.checker.check_model(made)
    (found,) = splitgraph.infer(made).diagnostics
    assert (found.code, found.severity, found.message) == ("SG212", "error", text)


@pytest.mark.parametrize(("op_type", "opset", "inputs", "attributes", "text"), UNKNOWN)
@pytest.mark.parametrize("target", [9, 28])
def test_it_is_not_converted(
    op_type: str, opset: int, inputs: int, attributes: dict[str, object], text: str, target: int
) -> None:
    made = model(op_type, opset, inputs, attributes)
    with pytest.raises(splitgraph.ConversionError) as raised:
        (splitgraph.upgrade if target > opset else splitgraph.downgrade)(made, target)
    assert [found.message for found in raised.value.diagnostics] == [text]


def test_names_that_tools_keep_for_themselves() -> None:
    made = model("Relu", 14, 1, {"__device": "npu"})
    onnx.checker.check_model(made)
    analysis = splitgraph.infer(made)
    assert (analysis.ok, str(analysis.types["y"])) == (True, "float32[1, 4]")
