"""num_outputs below opset 18, as PyTorch's dynamo exporter writes it: what the finding says, and that nothing else
changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph

MODEL = Path(__file__).parents[2] / "models" / "c2f.opset17.dynamo.onnx"
REMOVE = "remove the attribute: without it, a dimension that 2 divides is split into 2 equal parts all the same"


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


@pytest.mark.parametrize("opset", [2, 11, 13, 17])
def test_num_outputs_below_18_is_called_the_exporters_fault(opset: int) -> None:
    message = finding(split_model(opset, num_outputs=2)).message
    assert "has no attribute 'num_outputs'" in message
    assert "PyTorch's dynamo exporter" in message
    assert "export the model again with opset 18; or set its opset import to 18" in message
    assert REMOVE in message


def test_what_the_attribute_contradicts_is_not_advised_to_be_removed() -> None:
    other = finding(split_model(17, num_outputs=3)).message
    assert "not even the number of outputs, 2" in other
    assert "remove" not in other
    assert "remove" not in finding(split_model(17, "lengths", num_outputs=2)).message
    assert "remove" not in finding(split_model(11, split=[1, 3], num_outputs=2)).message


def test_another_attribute_is_nobodys_known_fault() -> None:
    assert finding(split_model(17, parts=2)).message == "Split-13 has no attribute 'parts'; it has axis"


def test_the_exporters_own_model_says_so_and_stays_unconverted() -> None:
    assert REMOVE in finding(onnx.load(MODEL)).message
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.upgrade(MODEL, 18)
    assert any(REMOVE in found.message for found in raised.value.diagnostics)


def test_each_way_that_is_advised_makes_the_model_valid() -> None:
    newer, without = onnx.load(MODEL), onnx.load(MODEL)
    newer.opset_import[0].version = 18
    for node in without.graph.node:
        for attribute in [held for held in node.attribute if held.name == "num_outputs"]:
            node.attribute.remove(attribute)
    for model in (newer, without):
        assert splitgraph.infer(model).ok
    assert splitgraph.verify(newer, without, samples=1).verdict == "equal"
