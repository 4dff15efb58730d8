"""Inputs that a node leaves out by an empty name, or a call by giving fewer than its function takes."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(*nodes: NodeProto, functions: list[FunctionProto] | None = None, opset: int = 17) -> ModelProto:
    """x and z are vectors, n is a count, c a condition; y is what the last node gives first."""
    inputs = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in "xz"]
    inputs += [helper.make_tensor_value_info("n", INT64, []), helper.make_tensor_value_info("c", BOOL, [])]
    outputs = [helper.make_empty_tensor_value_info(nodes[-1].output[0])]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions or [])


def errors_of(model: ModelProto) -> list[Diagnostic]:
    return [found for found in splitgraph.infer(model).diagnostics if found.severity == "error"]


VARIADIC: list[tuple[str, dict[str, Any]]] = [
    ("Concat", {"axis": 0}),
    ("Sum", {}),
    ("Max", {}),
    ("Min", {}),
    ("Mean", {}),
    ("Einsum", {"equation": "i,i->i"}),
    ("SequenceConstruct", {}),
]


@pytest.mark.parametrize(("op_type", "attributes"), VARIADIC)
@pytest.mark.parametrize("inputs", [["x", ""], ["", "x"], ["x", "", "z"]], ids=str)
def test_a_variadic_input_is_never_left_out(op_type: str, attributes: dict[str, Any], inputs: list[str]) -> None:
    model = model_of(helper.make_node(op_type, inputs, ["y"], name="v", **attributes))
    (found, *_) = errors_of(model)
    assert (found.code, found.location) == ("SG212", "main/v")
    if op_type != "Einsum" or len(inputs) == 2:
        assert f"input {inputs.index('')}" in found.message
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(model, 18)


@pytest.mark.parametrize(("op_type", "attributes"), VARIADIC)
def test_given_variadic_inputs_stay_valid(op_type: str, attributes: dict[str, Any]) -> None:
    assert not errors_of(model_of(helper.make_node(op_type, ["x", "z"], ["y"], **attributes)))


def test_states_of_a_loop_are_never_left_out() -> None:
    given = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT64), ("d", BOOL), ("a", FLOAT))]
    result = [helper.make_tensor_value_info("e", BOOL, []), helper.make_tensor_value_info("b", FLOAT, [])]
    nodes = [helper.make_node("Identity", ["d"], ["e"]), helper.make_node("Identity", ["a"], ["b"])]
    body = helper.make_graph(nodes, "b", given, result)
    (found, *_) = errors_of(model_of(helper.make_node("Loop", ["n", "c", ""], ["y"], body=body)))
    assert found.code == "SG212"


def test_features_are_never_left_out() -> None:
    node = helper.make_node("FeatureVectorizer", ["x", ""], ["y"], domain="ai.onnx.ml", inputdimensions=[3, 3])
    assert [found.code for found in errors_of(model_of(node))] == ["SG212"]


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Clip", ["x", "", ""], ["y"]),
        helper.make_node("Clip", ["x", "", "m"], ["y"]),
        helper.make_node(
            "Loop",
            ["n", "", "x"],
            ["y"],
            body=helper.make_graph(
                [helper.make_node("Identity", ["d"], ["e"]), helper.make_node("Identity", ["a"], ["b"])],
                "b",
                [
                    helper.make_tensor_value_info(name, kind, None)
                    for name, kind in (("i", INT64), ("d", BOOL), ("a", FLOAT))
                ],
                [helper.make_tensor_value_info("e", BOOL, []), helper.make_tensor_value_info("b", FLOAT, None)],
            ),
        ),
        helper.make_node("Resize", ["t", "", "s"], ["y"]),
    ],
    ids=lambda node: f"{node.op_type}{list(node.input)}",
)
def test_optional_inputs_may_be_left_out(node: NodeProto) -> None:
    maximum = helper.make_node("Constant", [], ["m"], value_float=1.0)
    scales = helper.make_node("Constant", [], ["s"], value_floats=[1.0, 2.0])
    table = helper.make_node("Unsqueeze", ["x", "axes"], ["t"])
    axes = helper.make_node("Constant", [], ["axes"], value_ints=[0])
    assert not errors_of(model_of(maximum, scales, axes, table, node))


def function(
    body: list[NodeProto], inputs: list[str], outputs: list[str], attributes: list[str] | None = None
) -> FunctionProto:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_function("local", "F", inputs, outputs, body, imports, attributes=attributes)


def referring(op_type: str, name: str, kind: int) -> NodeProto:
    """A node whose attribute is the function's."""
    node = helper.make_node(op_type, ["a"], ["r"])
    node.attribute.append(AttributeProto(name=name, ref_attr_name=name, type=kind))
    return node


ADD = function([helper.make_node("Add", ["a", "b"], ["r"])], ["a", "b"], ["r"])
CLIP = function([helper.make_node("Clip", ["a", "b"], ["r"])], ["a", "b"], ["r"])
FIRST = function([helper.make_node("Identity", ["a"], ["r"])], ["a", "b"], ["r"])
CAST = function([referring("Cast", "to", AttributeProto.INT)], ["a"], ["r"], ["to"])
LEAKY = function([referring("LeakyRelu", "alpha", AttributeProto.FLOAT)], ["a"], ["r"], ["alpha"])
CONCAT = function([helper.make_node("Concat", ["a", "b"], ["r"], axis=0)], ["a", "b"], ["r"])
BRANCH = function(
    [
        helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", BOOL, [], [True])),
        helper.make_node(
            "If",
            ["t"],
            ["r"],
            then_branch=helper.make_graph(
                [helper.make_node("Add", ["a", "b"], ["s"])], "t", [], [helper.make_empty_tensor_value_info("s")]
            ),
            else_branch=helper.make_graph(
                [helper.make_node("Add", ["a", "b"], ["u"])], "e", [], [helper.make_empty_tensor_value_info("u")]
            ),
        ),
    ],
    ["a", "b"],
    ["r"],
)


@pytest.mark.parametrize(
    ("made", "inputs", "outputs", "attributes", "said"),
    [
        (ADD, ["x", "z", "x"], ["y"], {}, "has 2 inputs, not 3"),
        (CLIP, ["x", "", "", ""], ["y"], {}, "has 2 inputs, not 4"),
        (ADD, ["x", "z"], ["y", "w"], {}, "has 1 output, not 2"),
        (ADD, ["x"], ["y"], {}, "needs the input 'B'"),
        (ADD, ["x", ""], ["y"], {}, "needs the input 'B'"),
        (ADD, ["", "x"], ["y"], {}, "needs the input 'A'"),
        (CONCAT, ["x"], ["y"], {}, "input 1, which the function call omits; each of 'inputs'"),
        (BRANCH, ["x"], ["y"], {}, "needs the input 'B'"),
        (CAST, ["x"], ["y"], {}, "needs the attribute 'to'"),
        (CAST, ["x"], ["y"], {"to": 1.0}, "has the wrong type"),
        (LEAKY, ["x"], ["y"], {"alpha": 2}, "has the wrong type"),
    ],
)
def test_calls_that_do_not_fit(
    made: FunctionProto, inputs: list[str], outputs: list[str], attributes: dict[str, Any], said: str
) -> None:
    call = helper.make_node("F", inputs, outputs, name="call", domain="local", **attributes)
    model = model_of(call, functions=[made])
    (found, *_) = errors_of(model)
    assert found.code == "SG212"
    assert found.location.startswith("main/call")
    assert said in found.message
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(model, 18)


@pytest.mark.parametrize(
    ("made", "inputs", "attributes"),
    [
        (ADD, ["x", "z"], {}),
        (CLIP, ["x"], {}),
        (CLIP, ["x", ""], {}),
        (FIRST, ["x"], {}),
        (FIRST, ["x", ""], {}),
        # onnxruntime and the reference evaluator pass by what the function does not declare.
        (ADD, ["x", "z"], {"unheard": 1}),
        (LEAKY, ["x"], {}),
        (LEAKY, ["x"], {"alpha": 0.5}),
        (CAST, ["x"], {"to": FLOAT}),
    ],
)
def test_calls_that_fit(made: FunctionProto, inputs: list[str], attributes: dict[str, Any]) -> None:
    call = helper.make_node("F", inputs, ["y"], domain="local", **attributes)
    found = splitgraph.infer(model_of(call, functions=[made]))
    assert not found.diagnostics
    assert str(found.types["y"]) == "float32[3]"


def test_a_call_in_a_function_hands_on_what_its_own_call_leaves_out() -> None:
    outer = helper.make_function(
        "local",
        "G",
        ["p", "q"],
        ["s"],
        [helper.make_node("F", ["p", "q"], ["s"], domain="local")],
        [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
    )
    call = helper.make_node("G", ["x"], ["y"], domain="local")
    assert not errors_of(model_of(call, functions=[CLIP, outer]))
    (found, *_) = errors_of(model_of(call, functions=[ADD, outer]))
    assert "needs the input 'B'" in found.message


@pytest.mark.parametrize("model", [model_of(helper.make_node("Add", ["x", "z"], ["y"]))])
def test_the_checker_agrees_on_the_ground(model: ModelProto) -> None:
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, [3]))
    onnx.checker.check_model(model)
