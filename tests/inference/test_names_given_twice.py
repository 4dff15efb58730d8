"""Functions of one key, and attributes that a node has twice: errors, as runtimes differ in which one they take."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import splitgraph


def function(op_type: str, *, overload: str = "", domain: str = "l") -> onnx.FunctionProto:
    body = [helper.make_node(op_type, ["a"], ["b"])]
    made = helper.make_function(domain, "f", ["a"], ["b"], body, [helper.make_opsetid("", 18)], ["k"])
    made.overload = overload
    return made


def model(node: NodeProto, functions: list[onnx.FunctionProto]) -> ModelProto:
    """The node reads x: float[2, 4] and gives y."""
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info(name) for name in node.output])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions)


def node(op_type: str, *attributes: tuple[str, object], domain: str = "", outputs: int = 1) -> NodeProto:
    made = helper.make_node(op_type, ["x"], [f"y{index}" for index in range(outputs)], "n", domain=domain)
    made.attribute.extend(helper.make_attribute(name, value) for name, value in attributes)
    return made


CALL = node("f", domain="l")
GOOD = {
    "another overload": model(CALL, [function("Neg"), function("Abs", overload="o")]),
    "another domain": model(CALL, [function("Neg"), function("Abs", domain="m")]),
    "two attributes": model(node("Split", ("axis", 1), ("num_outputs", 2), outputs=2), []),
    "of an operator that nobody knows": model(node("g", ("axis", 1), ("axis", 0), domain="l"), []),
}
TWICE = "has the attribute 'axis' more than once"
WRONG = {
    "functions": (model(CALL, [function("Neg"), function("Abs")]), "SG104", "l::f", "l::f is defined 2 times"),
    "equal functions": (model(CALL, [function("Neg")] * 3), "SG104", "l::f", "l::f is defined 3 times"),
    "functions that nothing calls": (
        model(node("Relu"), [function("Neg", overload="o")] * 2),
        "SG104",
        "l::f:o",
        "l::f:o is defined 2 times",
    ),
    "attributes": (model(node("Softmax", ("axis", 0), ("axis", 1)), []), "SG212", "main/n", f"Softmax {TWICE}"),
    "equal attributes": (model(node("Softmax", ("axis", 1), ("axis", 1)), []), "SG212", "main/n", f"Softmax {TWICE}"),
    "attributes of a split": (
        model(node("Split", ("axis", 0), ("num_outputs", 2), ("axis", 1), outputs=2), []),
        "SG212",
        "main/n",
        f"Split {TWICE}",
    ),
    "attributes of a call": (
        model(node("f", ("k", 1), ("k", 2), domain="l"), [function("Neg")]),
        "SG212",
        "main/n",
        "f has the attribute 'k' more than once",
    ),
}


@pytest.mark.parametrize("made", GOOD.values(), ids=GOOD)
def test_what_is_no_error(made: ModelProto) -> None:
    assert splitgraph.infer(made).ok


@pytest.mark.parametrize(("made", "code", "location", "text"), WRONG.values(), ids=WRONG)
def test_what_is_an_error(made: ModelProto, code: str, location: str, text: str) -> None:
    (found,) = splitgraph.infer(made).diagnostics
    assert (found.code, found.severity, found.location) == (code, "error", location)
    assert text in found.message
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.upgrade(made, 20)
    assert found in raised.value.diagnostics


@pytest.mark.parametrize("name", WRONG)
def test_onnxruntime_refuses_it(name: str) -> None:
    """As the findings say."""
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        onnxruntime.InferenceSession(WRONG[name][0].SerializeToString(), providers=["CPUExecutionProvider"])
