"""A model that is invalid somewhere is refused for what is wrong with it, whatever conversion makes of the rest."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, parser

import splitgraph
from splitgraph.findings.diagnostics import ConversionError


def model(opset: int, *nodes: NodeProto, domain: str = "") -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def untyped(op_type: str, outputs: Sequence[str] = ("y",), domain: str = "", **attributes: object) -> NodeProto:
    node = helper.make_node(op_type, ["x"], outputs, domain=domain, **attributes)
    for attribute in node.attribute:
        attribute.ClearField("type")
    return node


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (3, untyped("Concat", axis=0)),
        (11, untyped("Softmax", axis=0)),
        (13, untyped("ReduceMean", keepdims=0)),
        (13, untyped("ReduceMean", axes=[0])),
        (11, untyped("Split", "yz", axis=1, split=[2, 4])),
        (13, untyped("Split", "yz", axis=1)),
        (7, untyped("Dropout", ratio=0.1)),
        (6, untyped("Clip", min=0.1, max=0.5)),
        (13, untyped("Transpose", perm=[1, 0])),
        (11, untyped("Unsqueeze", axes=[0])),
        (11, untyped("Cast", to=7)),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else str(value),
)
def test_an_attribute_without_a_type_is_refused(opset: int, node: NodeProto) -> None:
    # Read as absent, it was: unequal parts became equal ones, and the limits of Clip NaN.
    [found] = splitgraph.infer(model(opset, node)).diagnostics
    assert found.code == "SG212" and f"attribute {node.attribute[0].name!r}" in found.message and found.help
    with pytest.raises(ConversionError) as caught:
        splitgraph.upgrade(model(opset, node), 18)
    assert found in caught.value.diagnostics


def test_an_attribute_of_a_call_needs_a_type_too() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "local": 1]> g (float[2, 6] x) => (float[6, 2] y) {
      y = local.turn <order = [1, 0]> (x)
    } <domain: "local", opset_import: ["": 13]> turn <order> (a) => (b) { b = Transpose <perm: ints = @order> (a) }"""
    made = parser.parse_model(text)
    assert str(splitgraph.upgrade(made, 18).model.graph.output[0].name) == "y"
    made.functions[0].node[0].attribute[0].ClearField("type")
    assert not splitgraph.infer(made).diagnostics
    made.graph.node[0].attribute[0].ClearField("type")
    with pytest.raises(ConversionError, match="attribute 'order' of turn has no type"):
        splitgraph.upgrade(made, 18)


@pytest.mark.parametrize("given", ["float", [1, 2], 1.5, helper.make_tensor("", 7, [1], [1])])
def test_an_attribute_of_a_call_has_the_type_of_the_operators(given: object) -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "local": 1]> g (float[2, 6] x) => (float[2, 6] y) {
      y = local.cast (x)
    } <domain: "local", opset_import: ["": 13]> cast <kind> (a) => (b) { b = Cast <to: int = @kind> (a) }"""
    made = parser.parse_model(text)
    made.graph.node[0].attribute.append(helper.make_attribute("kind", given))
    [found] = splitgraph.infer(made).diagnostics
    assert (found.code, found.message) == ("SG212", "attribute 'to' of Cast-13 has the wrong type")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("q = SequenceConstruct (a)  b = ConcatFromSequence <axis: int = @k> (q)", "axis"),
        (
            "b = Scan <num_scan_inputs: int = @k, body = f (float[6] p) => (float[6] r) { r = Neg (p) }> (a)",
            "num_scan_inputs",
        ),
    ],
)
def test_a_required_attribute_that_a_call_leaves_out(body: str, name: str) -> None:
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13, "local": 1]>
    g (float[2, 6] x) => (float[A, B] y) {{ y = local.run (x) }}
    <domain: "local", opset_import: ["": 13]> run <k> (a) => (b) {{ {body} }}""")
    errors = [found for found in splitgraph.infer(made).diagnostics if found.severity == "error"]
    assert [found.code for found in errors] == ["SG212"] and f"needs the attribute {name!r}" in errors[0].message
    with pytest.raises(ConversionError):
        splitgraph.upgrade(made, 18)


def test_what_nobody_interprets_may_lack_a_type() -> None:
    made = model(13, untyped("Custom", domain="vendor", level=3), domain="vendor")
    assert splitgraph.upgrade(made, 18).model.graph.node[0] == made.graph.node[0]


@pytest.mark.parametrize(
    ("source", "target", "body"),
    [
        (8, 17, "b = Upsample (a)"),
        (11, 18, "b = Unsqueeze (a)"),
        (13, 9, "s = Constant <value = int64[1, 2] {1, 1}> ()  b = Pad (a, s)"),
        (13, 9, "s = Constant <value = int64 {1}> ()  b = Pad (a, s)"),
    ],
)
def test_an_invalid_node_of_a_function_is_told_and_no_traceback(source: int, target: int, body: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["": {source}, "local": 1]> g (float[2, 6] x) => (float[A, B] y) {{
      y = local.run (x)
    }} <domain: "local", opset_import: ["": {source}]> run (a) => (b) {{ {body} }}"""
    change = splitgraph.upgrade if target > source else splitgraph.downgrade
    with pytest.raises(ConversionError) as caught:
        change(parser.parse_model(text), target)
    assert any(found.code in ("SG212", "SG302") for found in caught.value.diagnostics)


@pytest.mark.parametrize("value", ["first", b"\xff", ["first"], [0.5], 0.5])
@pytest.mark.parametrize(("op_type", "name"), [("Concat", "axis"), ("Flatten", "axis"), ("ReduceMax", "axes")])
def test_an_attribute_of_another_type_is_told_and_no_traceback(op_type: str, name: str, value: object) -> None:
    made = model(13, helper.make_node(op_type, ["x"], ["y"], **{name: value}))
    with pytest.raises(ConversionError) as caught:
        splitgraph.downgrade(made, 10)
    assert [found.code for found in caught.value.diagnostics] == ["SG212"]


@pytest.mark.parametrize(
    ("node", "target"),
    [
        (helper.make_node("ConstantOfShape", ["s"], ["b"], value=5), 8),
        (helper.make_node("CenterCropPad", ["x", "s"], ["b"], axes=1.5), 17),
    ],
    ids=lambda value: value.op_type if isinstance(value, NodeProto) else str(value),
)
def test_an_invalid_node_that_never_runs_is_told_where_it_would_have_to_change(node: NodeProto, target: int) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2, 6] x) => (float[A, B] y)
    <bool never = {0}, int64[2] s = {2, 6}> {
      y = If (never) <then_branch = t () => (float[A, B] b) { b = Identity (x) },
                      else_branch = e () => (float[A, B] c) { c = Identity (x) }>
    }"""
    made = parser.parse_model(text)
    made.graph.node[0].attribute[0].g.node[0].CopyFrom(node)
    assert splitgraph.infer(made).ok
    assert splitgraph.upgrade(made, 19).model.graph.node[0].attribute[0].g.node[0] == node
    with pytest.raises(ConversionError) as caught:
        splitgraph.downgrade(made, target)
    assert "SG212" in {found.code for found in caught.value.diagnostics}


def test_a_fault_of_a_valid_model_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr("splitgraph.conversion.ladder.Ladder.convert", fault)
    made = model(13, helper.make_node("ReduceMean", ["x"], ["y"], axes=[0]))
    with pytest.raises(KeyError):
        splitgraph.upgrade(made, 18)
    made.graph.node.append(helper.make_node("Concat", ["y"], ["z"], axis=9))
    with pytest.raises(ConversionError, match="main/Concat#1"):
        splitgraph.upgrade(made, 18)


def test_a_scalar_that_is_padded_by_nothing() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g () => (int64 y) {
      c = Constant <value = int64 {1}> ()  p = Constant <value = int64[0] {}> ()  y = Pad (c, p)
    }"""
    found = splitgraph.infer(parser.parse_model(text))
    assert str(found.types["y"]) == "int64[]" and not found.diagnostics


def test_references_need_no_type() -> None:
    reference = AttributeProto(name="axis", ref_attr_name="where")
    assert reference.type == AttributeProto.UNDEFINED
    node = helper.make_node("Softmax", ["a"], ["b"])
    node.attribute.append(reference)
    made = model(13, helper.make_node("cut", ["x"], ["y"], domain="local", where=1), domain="local")
    imports: list[onnx.OperatorSetIdProto] = [helper.make_opsetid("", 13)]
    made.functions.append(helper.make_function("local", "cut", ["a"], ["b"], [node], imports, ["where"]))
    assert not splitgraph.infer(made).diagnostics


def test_a_plugin_goes_along_in_ai_onnx_and_in_a_domain_of_its_own() -> None:
    """As onnx_graphsurgeon makes such nodes, where nobody names a domain; TensorRT finds plugins by their name."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[1, 8, 4] boxes, float[1, 8, 3] scores) => (int32[1, 1] count) {
            doubled = Add (scores, scores)
            count, kept, ratings, classes = EfficientNMS_TRT <max_output_boxes: int = 5> (boxes, doubled)
        }"""
    plugged = parser.parse_model(text)
    rewrite = splitgraph.upgrade(plugged, 18)
    assert rewrite.model.graph.node[1] == plugged.graph.node[1]
    (found,) = rewrite.diagnostics
    assert (found.code, found.severity) == ("SG303", "warning")
    assert "no operator EfficientNMS_TRT: it is kept" in found.message
    plugged.graph.node[1].domain = "TRT"
    plugged.opset_import.add(domain="TRT", version=1)
    after = splitgraph.upgrade(plugged, 18).model
    assert after.graph.node[1] == plugged.graph.node[1]
    assert [(entry.domain, entry.version) for entry in after.opset_import] == [("", 18), ("TRT", 1)]
