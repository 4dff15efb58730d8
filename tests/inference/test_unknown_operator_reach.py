"""Operators that nobody knows are kept with a warning, and only what a conversion has to know stops it."""

from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import splitgraph

FLOAT = TensorProto.FLOAT


def model_of(
    *nodes: NodeProto, opset: int = 13, imports: tuple[str, ...] = (), held: tuple[TensorProto, ...] = ()
) -> ModelProto:
    inputs = [helper.make_tensor_value_info("x", FLOAT, [2, 6])]
    outputs = [helper.make_empty_tensor_value_info(nodes[-1].output[0])]
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, held)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in imports)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


PLUGINS = [
    ("EfficientNMS_TRT", "", ""),
    ("BatchedNMSDynamic_TRT", "", ""),
    ("GridAnchor_TRT", "", ""),
    ("Concatt", "", "Did you mean Concat?"),
    ("ReLU6", "", ""),
    ("Splitt", "", "Did you mean Split?"),
    ("DCNv2", "", ""),
    ("Lookup", "acme", ""),
    ("Split", "acme", ""),
    ("Relu", "acme.nn", ""),
]


@pytest.mark.parametrize("is_imported", [True, False])
@pytest.mark.parametrize(("op_type", "domain", "meant"), PLUGINS)
def test_kept_with_a_warning(op_type: str, domain: str, meant: str, is_imported: bool) -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1),
        helper.make_node(op_type, ["a"], ["p"], domain=domain, name="plugin", level=3),
        helper.make_node("Add", ["b", "b"], ["s"]),
        helper.make_node("Identity", ["p"], ["y"]),
    ]
    model = model_of(*nodes, imports=(domain,) if domain and is_imported else ())
    found = splitgraph.infer(model)
    *imports, warning = found.diagnostics
    codes = [] if is_imported or not domain else ["SG110"]
    assert [(each.code, each.severity) for each in imports] == [(code, "warning") for code in codes]
    assert (warning.code, warning.severity) == ("SG303", "warning")
    assert op_type in warning.message
    assert meant in warning.help
    assert str(found.types["s"]) == "float32[2, 3]"
    assert found.types["y"].shape is None
    for rewrite in (splitgraph.upgrade(model, 18), splitgraph.downgrade(model, 11), splitgraph.convert(model, "split")):
        (kept,) = [node for node in rewrite.model.graph.node if node.name == "plugin"]
        assert kept == nodes[1]


@pytest.mark.parametrize("target", [18, 11])
def test_a_conversion_says_that_the_meaning_is_not_known(target: int) -> None:
    model = model_of(helper.make_node("NMS_TRT", ["x"], ["y"]))
    convert = splitgraph.upgrade if target > 13 else splitgraph.downgrade
    (warning,) = convert(model, target).diagnostics
    assert (warning.code, warning.severity) == ("SG303", "warning")
    assert f"at opset {target} is unknown" in warning.message


def test_what_the_conversion_must_know_stops_it() -> None:
    """A Split below 13 with lengths of run time needs the rank of its data for a negative axis."""
    nodes = [
        helper.make_node("NMS_TRT", ["x"], ["p"]),
        helper.make_node("Softmax", ["p"], ["y"], axis=1, name="soft"),
    ]
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.downgrade(model_of(*nodes), 12)
    assert [found.location for found in refused.value.diagnostics] == ["main/soft"]


@pytest.mark.parametrize(("op_type", "code"), [("Mish", "SG214"), ("Upsample", "SG214"), ("GridSample", "SG214")])
def test_operators_of_another_opset_stay_errors(op_type: str, code: str) -> None:
    found = splitgraph.infer(model_of(helper.make_node(op_type, ["x", "x"], ["y"])))
    assert [(each.code, each.severity) for each in found.diagnostics] == [(code, "error")]


def malformed(name: str) -> TensorProto:
    return TensorProto(name=name, data_type=FLOAT, dims=[4], float_data=[1.0])


def test_a_malformed_initializer_that_nothing_reads() -> None:
    model = model_of(helper.make_node("Relu", ["x"], ["y"]), held=(malformed("w"),))
    (warning,) = splitgraph.infer(model).diagnostics
    assert (warning.code, warning.severity) == ("SG111", "warning")
    assert "unused initializer" in warning.message
    after = splitgraph.upgrade(model, 18).model
    assert after.graph.initializer[0] == malformed("w")


@pytest.mark.parametrize("where", ["node", "output", "body"])
def test_a_malformed_initializer_that_is_read(where: str) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    if where == "node":
        nodes.append(helper.make_node("Neg", ["w"], ["z"]))
    if where == "body":
        branch = helper.make_graph(
            [helper.make_node("Neg", ["w"], ["n"])], "b", [], [helper.make_empty_tensor_value_info("n")]
        )
        condition = helper.make_tensor("t", TensorProto.BOOL, [], [True])
        nodes.append(helper.make_node("Constant", [], ["c"], value=condition))
        nodes.append(helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    model = model_of(*nodes, held=(malformed("w"),))
    if where == "output":
        model.graph.output.append(helper.make_empty_tensor_value_info("w"))
    found = splitgraph.infer(model)
    assert ("SG111", "error") in {(each.code, each.severity) for each in found.diagnostics}
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(model, 18)
