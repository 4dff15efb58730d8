"""Values of unknown element type stop a node only where they could have an ordinary type that the target refuses."""

from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import splitgraph


def model_of(*nodes: NodeProto, opset: int, domain: str = "acme", dtype: int = TensorProto.STRING) -> ModelProto:
    """The first node is of a domain of its own, and reads t."""
    inputs = [helper.make_tensor_value_info("t", dtype, ["N"])]
    graph = helper.make_graph(list(nodes), "g", inputs, [helper.make_empty_tensor_value_info(nodes[-1].output[0])])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=7)


def unknown(*outputs: str) -> NodeProto:
    return helper.make_node("Mystery", ["t"], list(outputs), domain="acme")


# Below the older opset these take no bfloat16, or nothing else that is young.
YOUNG = [
    ("Identity", 13, 12, "bfloat16"),
    ("Transpose", 13, 12, "bfloat16"),
    ("Shape", 13, 12, "bfloat16"),
    ("Reshape", 13, 12, "bfloat16"),
    ("Flatten", 13, 12, "bfloat16"),
    ("Identity", 21, 20, "int4"),
    ("Shape", 19, 18, "float8"),
]


@pytest.mark.parametrize(("op_type", "opset", "target", "young"), YOUNG)
def test_young_types_stop_nothing(op_type: str, opset: int, target: int, young: str) -> None:
    inputs = ["p", "s"] if op_type == "Reshape" else ["p"]
    nodes = [unknown("p"), helper.make_node(op_type, inputs, ["y"])]
    if op_type == "Reshape":
        nodes.insert(0, helper.make_node("Constant", [], ["s"], value_ints=[-1]))
    rewrite = splitgraph.downgrade(model_of(*nodes, opset=opset), target)
    (warning,) = [found for found in rewrite.diagnostics if found.code == "SG403"]
    assert warning.severity == "warning"
    assert young in warning.message
    assert f"{op_type} does not take" in warning.message
    assert rewrite.model.graph.node[-1].op_type == op_type


@pytest.mark.parametrize(
    ("op_type", "opset", "target", "attributes"),
    [
        # Integers are no young types.
        ("MatMul", 9, 8, {}),
        ("Greater", 9, 8, {}),
        ("Equal", 11, 10, {}),
        ("Max", 12, 11, {}),
        ("Clip", 12, 11, {}),
        ("Neg", 6, 5, {}),
    ],
)
def test_ordinary_types_do(op_type: str, opset: int, target: int, attributes: dict[str, int]) -> None:
    inputs = ["p"] if op_type in ("Neg", "Clip") else ["p", "p"]
    nodes = [unknown("p"), helper.make_node(op_type, inputs, ["y"], name="stopped", **attributes)]
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.downgrade(model_of(*nodes, opset=opset), target)
    assert {found.location for found in refused.value.diagnostics} == {"main/stopped"}


@pytest.mark.parametrize("domain", ["ai.onnx.contrib", "com.microsoft.extensions"])
@pytest.mark.parametrize(
    ("op_type", "outputs", "types"),
    [
        ("BertTokenizer", ["i", "s", "m"], ["int64[...]"] * 3),
        ("GPT2Tokenizer", ["i", "m"], ["int64[...]"] * 2),
        ("SentencepieceTokenizer", ["i", "s"], ["int32[...]", "int64[...]"]),
        ("WordpieceTokenizer", ["w", "i", "r"], ["string[...]", "int32[...]", "int64[...]"]),
        ("StringRegexReplace", ["r"], ["string[N]"]),
        ("StringLength", ["n"], ["int64[N]"]),
        ("BertTokenizerDecoder", ["d"], ["string[...]"]),
    ],
)
def test_types_of_tokenizers_are_known(domain: str, op_type: str, outputs: list[str], types: list[str]) -> None:
    node = helper.make_node(op_type, ["t"], outputs, domain=domain)
    last = helper.make_node("Identity", [outputs[0]], ["y"])
    model = model_of(node, last, opset=13, domain=domain)
    found = splitgraph.infer(model)
    assert [str(found.types[name]) for name in outputs] == types
    assert not found.diagnostics
    assert not [each for each in splitgraph.downgrade(model, 11).diagnostics if each.code == "SG403"]


def test_a_type_that_is_known_is_held_against_the_target() -> None:
    model = model_of(helper.make_node("Identity", ["t"], ["y"], name="n"), opset=13, dtype=TensorProto.BFLOAT16)
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.downgrade(model, 12)
    assert [found.code for found in refused.value.diagnostics] == ["SG403"]
