"""num_outputs below opset 18, as PyTorch's dynamo exporter writes it: what the finding says, and that nothing else
changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

import splitgraph

MODEL = Path(__file__).parents[2] / "models" / "c2f.opset17.dynamo.onnx"


def split_model(opset: int, *lengths: str, **attributes: Any) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])]
    inputs += [helper.make_tensor_value_info(name, TensorProto.INT64, [2]) for name in lengths]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"]
    node = helper.make_node("Split", ["x", *lengths], ["a", "b"], name="split", axis=1, **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def finding(model: onnx.ModelProto) -> splitgraph.Diagnostic:
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.severity) == ("SG212", "error")
    return found


def test_num_outputs_of_another_number_is_called_the_exporters_fault() -> None:
    message = finding(split_model(17, num_outputs=3)).message
    assert "has no attribute 'num_outputs'" in message
    assert "PyTorch's dynamo exporter" in message
    assert "not even the number of outputs, 2" in message
    assert "export the model again with opset 18; or set its opset import to 18" in message


def test_another_attribute_is_nobodys_known_fault() -> None:
    assert finding(split_model(17, parts=2)).message == "Split-13 has no attribute 'parts'; it has axis"


def test_each_way_that_is_advised_makes_the_model_valid() -> None:
    newer, without = onnx.load(MODEL), onnx.load(MODEL)
    newer.opset_import[0].version = 18
    for node in without.graph.node:
        for attribute in [held for held in node.attribute if held.name == "num_outputs"]:
            node.attribute.remove(attribute)
    for model in (newer, without):
        assert splitgraph.infer(model).ok
    assert splitgraph.verify(newer, without, samples=1).verdict == "equal"
