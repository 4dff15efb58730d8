"""Planning a conversion to another opset: training graphs, ambiguous opsets, invalid nodes."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper

from splitgraph.conversion import climb
from splitgraph.conversion.opset import convert_opset
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.inference import infer_model

SPLIT = """<ir_version: 8, opset_import: ["" : 11]>
g (float[N, 6] x) => (float[N, 3] a, float[N, 3] b) { a, b = Split <axis: int = 1> (x) }"""


def test_a_model_with_training_graphs_is_refused() -> None:
    """They are at the model's opset: importing another one would give their nodes another meaning."""
    model = onnx.parser.parse_model(SPLIT)
    model.training_info.add().algorithm.CopyFrom(model.graph)
    assert convert_opset(model, 11).model.training_info == model.training_info
    with pytest.raises(ConversionError) as refusal:
        convert_opset(model, 18)
    assert [(found.code, found.location) for found in refusal.value.diagnostics] == [("SG409", "training_info[0]")]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_two_opsets_at_once_mean_nothing(domain: str) -> None:
    model = onnx.parser.parse_model(SPLIT)
    model.opset_import.add(domain=domain, version=13)
    assert [found.code for found in infer_model(model).diagnostics] == ["SG103"]
    with pytest.raises(ConversionError):
        convert_opset(model, 18)
    model.opset_import[1].version = 11
    assert convert_opset(model, 18).changes


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes", "words"),
    [
        ("BitwiseAnd", 18, ["x"], {}, "BitwiseAnd-18 takes 2 inputs, not 1"),
        ("Col2Im", 18, ["x", "", "x"], {}, "Col2Im-18 needs the input 'image_shape'"),
        ("DepthToSpace", 11, ["x"], {"mode": "CRD"}, "DepthToSpace-11 needs the attribute 'blocksize'"),
    ],
)
def test_a_node_that_does_not_fit_its_schema_is_refused(
    op: str, opset: int, inputs: list[str], attributes: dict[str, Any], words: str
) -> None:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [1, 4, 2, 2])
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **attributes)], "g", [x], [onnx.ValueInfoProto(name="y")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    with pytest.raises(ConversionError, match=words):
        convert_opset(model, 10)


FLOATS = onnx.TensorProto.FLOAT
INVALID = [
    (18, 17, helper.make_node("Resize", ["a", "", "", "none"], ["y"], antialias=1), [[1, 1, 4, 4]]),
    (20, 13, helper.make_node("GridSample", ["a", "b"], ["y"]), [[4], [1, 2, 2, 2]]),
    (19, 13, helper.make_node("DeformConv", ["a", "b", "c"], ["y"], pads=[0]),
     [[1, 1, 4, 4], [1, 1, 2, 2], [1, 8, 3, 3]]),
    (13, 11, helper.make_node("Mod", ["a", "b"], ["y"], fmod=1), [[2], [3]]),
]  # fmt: skip


def invalid_model(opset: int, node: onnx.NodeProto, shapes: list[list[int]]) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, FLOATS, shape) for name, shape in zip("abc", shapes, strict=False)]
    none = helper.make_tensor("none", onnx.TensorProto.INT64, [0], [])
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], [none])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("opset", "target", "node", "shapes"), INVALID, ids=lambda item: getattr(item, "op_type", ""))
def test_a_node_that_inference_refuses_is_left_at_that(
    opset: int, target: int, node: onnx.NodeProto, shapes: list[list[int]]
) -> None:
    with pytest.raises(ConversionError) as raised:
        convert_opset(invalid_model(opset, node, shapes), target)
    assert [found.code for found in raised.value.diagnostics] == ["SG302"]


def test_what_an_adapter_cannot_read_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def adapter(step: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(climb, "adapter_of", lambda *given, **options: adapter)
    node = helper.make_node("ReduceMean", ["a"], ["y"], axes=[0])
    with pytest.raises(
        ConversionError, match=r"its inputs and attributes do not fit together \(IndexError: list index out of range\)"
    ):
        convert_opset(invalid_model(17, node, [[4]]), 18)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("g (float[2, 3] x) => (float[2, 3] y) <int64[0] none = {}> { y = Slice (x, none, none) }", 9),
        ("g (float x) => (float y) <int64[0] none = {}> { y = Pad (x, none) }", 10),
    ],
)
def test_an_empty_list_that_no_attribute_can_hold_is_refused(text: str, target: int) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {text}')
    with pytest.raises(ConversionError, match="would be an empty list"):
        convert_opset(model, target)


@pytest.mark.parametrize(
    ("node", "result"),
    [("Clip (x, held)", "float"), ("QuantizeLinear (x, held)", "uint8"), ("Trilu (x, held)", "float")],
)
@pytest.mark.parametrize("fields", [{"data_type": 99, "dims": [2]}, {}, {"data_type": 1, "raw_data": b"123"}], ids=str)
def test_a_malformed_constant_is_never_a_traceback(node: str, result: str, fields: dict[str, Any]) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 14]> g (float[2, 4] x) => ({result}[2, 4] y) {{ y = {node} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.add(name="held", **fields)
    try:
        convert_opset(model, 9)
    except ConversionError as refusal:
        assert refusal.diagnostics


@pytest.mark.parametrize("domain", ["", "ai.onnx", "local"])
def test_a_graph_that_a_call_gives_to_a_function_is_converted(domain: str) -> None:
    """Of calls of functions in ai.onnx's own domain it once kept the nodes of the older opset."""
    given = onnx.parser.parse_graph("body () => (float[2, 3, 4] p) { p = Softmax (x) }")
    other = onnx.parser.parse_graph("other () => (float[2, 3, 4] q) { q = Neg (x) }")
    choice = helper.make_node("If", ["c"], ["y"], else_branch=other)
    choice.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH, ref_attr_name="body")
    imports = [helper.make_opsetid("", 12), *([helper.make_opsetid(domain, 1)] if domain == "local" else [])]
    function = helper.make_function(domain, "Choose", ["c", "x"], ["y"], [choice], imports[:1], attributes=["body"])
    graph = helper.make_graph(
        [helper.make_node("Choose", ["c", "x"], ["y"], domain=domain, body=given)],
        "g",
        [
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3, 4]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3, 4])],
    )
    model = helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)
    after = convert_opset(model, 13).model.graph.node[0].attribute[0].g
    # Softmax-12 is of all axes from its own on.
    assert [node.op_type for node in after.node] == ["Flatten", "Softmax", "Reshape"]
