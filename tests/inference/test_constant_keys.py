"""A Constant node is read from its bytes only where these say no more than an output and one attribute."""

from __future__ import annotations

import onnx
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, NodeProto, TensorProto, helper, parser

from splitgraph.inference import infer_model
from splitgraph.inference.memo import constant_key

VALUE = AttributeProto(name="value_int", type=AttributeProto.INT, i=7)
LONG = AttributeProto(name="value_ints", type=AttributeProto.INTS, ints=range(1000))
TOO_LONG = AttributeProto(name="value_ints", type=AttributeProto.INTS, ints=range(3000))


def constant(**fields: object) -> NodeProto:
    return NodeProto(**{"op_type": "Constant", "output": ["c"], "attribute": [VALUE], **fields})


OTHER_NODES = {
    "an input": constant(input=["x"]),
    "an input without a name": constant(input=[""]),
    "no output": constant(output=[]),
    "two outputs": constant(output=["c", "d"]),
    "an output without a name": constant(output=[""]),
    "a long output": constant(output=["c" * 128]),
    "a long name": constant(name="c" * 128),
    "a very long name": constant(name="c" * 300),
    "no attribute": constant(attribute=[]),
    "too long an attribute": constant(attribute=[TOO_LONG]),
    "two attributes": constant(attribute=[VALUE, VALUE]),
    "a domain": constant(domain="ai.onnx"),
    "an overload": constant(overload="o"),
    "documentation": constant(doc_string="text"),
    "metadata": constant(metadata_props=[onnx.StringStringEntryProto(key="k", value="v")]),
    "another operator": constant(op_type="ConstantOfShape"),
    "a shorter operator": constant(op_type="Consta"),
    "no operator": NodeProto(output=["c"], attribute=[VALUE]),
    "nothing": NodeProto(),
    "an operator only": NodeProto(op_type="Constant"),
    "a name that looks like the operator": constant(name='a"\x08Constant'),
    "an output that looks like the operator": constant(output=['a"\x08Constant']),
    "an output that looks like a whole node": constant(output=['a"\x08Constant*\x00']),
    "a field that nobody knows": NodeProto.FromString(constant().SerializeToString() + b"\xfa\x3e\x01x"),
}


@pytest.mark.parametrize("node", OTHER_NODES.values(), ids=OTHER_NODES)
def test_what_says_more_is_not_read(node: NodeProto) -> None:
    written = node.SerializeToString()
    assert constant_key(written) is None
    earlier = {constant_key(constant().SerializeToString())[1]}
    assert constant_key(written, earlier) is None


def with_a_node_in_its_name() -> bytes:
    """A node whose name, of 256 bytes, goes on like a node where a name of 128 bytes would end."""
    operator, attribute = b'"\x08Constant', NodeProto(attribute=[VALUE]).SerializeToString()
    shown = operator + b"*" + bytes([128 + (126 + len(attribute)) % 128, (126 + len(attribute)) // 128])
    name = (b"n" * 127 + shown).ljust(256, b"n")
    whole = b"\x12\x01c\x1a\x80\x02" + name + operator + attribute
    assert NodeProto.FromString(whole).op_type == "Constant"
    return whole


@pytest.mark.parametrize(
    "broken",
    [
        constant().SerializeToString().replace(b"\x12\x01c", b"\x12\x01\xff"),
        with_a_node_in_its_name(),
        b"",
        b"\x12",
        b'"\x08Constant*',
        b'\x12\x01c"\x08Constant',
        b'\x12\x01c"\x08Constant*',
        b'\x12\x01c"\x08Constant*\x80',
        b'\x12\x01c"\x08Constant*\x05ab',
        b'\x12\x01c\x1a"\x08Constant*\x00',
    ],
)
def test_bytes_that_are_no_node_are_not_read(broken: bytes) -> None:
    assert constant_key(broken) is None


@pytest.mark.parametrize("attribute", [VALUE, LONG, AttributeProto()], ids=["short", "long", "empty"])
@pytest.mark.parametrize("name", ["", "n", "n" * 127, "größe"])
@pytest.mark.parametrize("output", ["c", "c" * 127, "größe"])
def test_output_and_attribute_are_read(output: str, name: str, attribute: AttributeProto) -> None:
    node = NodeProto(op_type="Constant", output=[output], attribute=[attribute])
    if name:
        node.name = name
    found = constant_key(node.SerializeToString())
    assert found is not None and found[0] == output
    assert NodeProto.FromString(found[1]) == NodeProto(attribute=[attribute])


TEXTS = st.text(alphabet='c*"\x08\x12\x1aConstant', min_size=0, max_size=140)


@settings(max_examples=examples(300))
@given(st.lists(TEXTS, max_size=2), TEXTS, st.sampled_from(["Constant", "C"]), TEXTS, TEXTS)
def test_what_is_read_is_all_that_the_node_says(
    outputs: list[str], name: str, op_type: str, doc: str, held: str
) -> None:
    attribute = helper.make_attribute("value_string", held)
    node = NodeProto(op_type=op_type, output=outputs, attribute=[attribute])
    for field, text in (("name", name), ("doc_string", doc)):
        if text:
            setattr(node, field, text)
    found = constant_key(node.SerializeToString())
    if found is not None:
        whole = NodeProto.FromString(found[1])
        whole.MergeFrom(NodeProto(op_type="Constant", output=[found[0]]))
        node.ClearField("name")
        assert whole == node
    elif op_type == "Constant" and len(outputs) == 1 and not doc:
        assert not 0 < len(outputs[0]) < 128 or len(name) >= 128 or '"\x08Constant' in outputs[0] + name


def test_constants_of_a_function_named_like_the_operator_are_calls() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "local": 1]> g (float[N] x) => () {
      a = Constant <value_ints = [1, 2]> ()  b = local.Constant <value_ints = [1, 2]> ()
      c = Constant <value_ints = [1, 2]> ()  d = local.Constant <value_ints = [1, 2]> ()
    } <domain: "local", opset_import: ["": 18]> Constant <value_ints> () => (y) { y = Constant <value_int = 3> () }"""
    found = infer_model(parser.parse_model(text))
    assert [str(found.types[name]) for name in "abcd"] == ["int64[2]", "int64[]", "int64[2]", "int64[]"]


def test_constants_are_told_apart_by_all_that_their_attributes_say() -> None:
    one, other = (helper.make_tensor("t", TensorProto.INT64, dims, [1, 2]) for dims in ([2], [2, 1]))
    held = {"a": one, "b": other, "c": one}
    nodes = [helper.make_node("Constant", [], [name], value=tensor) for name, tensor in held.items()]
    nodes.append(helper.make_node("Concat", ["a", "c"], ["d"], axis=0))
    graph = helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info("d")])
    found = infer_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    assert [str(found.types[name]) for name in "abcd"] == ["int64[2]", "int64[2, 1]", "int64[2]", "int64[4]"]


def test_a_constant_that_defines_a_name_again_is_reported() -> None:
    text = """<ir_version: 10, opset_import: ["": 18]> g (float[N] x) => () {
      a = Constant <value_int = 1> ()  b = Constant <value_int = 1> ()  a = Constant <value_int = 1> ()  y = Add (x, x)
    }"""
    assert [found.code for found in infer_model(parser.parse_model(text)).diagnostics] == ["SG104"]


PAIR = helper.make_tensor("t", TensorProto.DOUBLE, [2], [2.0, 3.0])
DECLARED = {
    "nothing": None,
    "its type": helper.make_tensor_value_info("b", TensorProto.DOUBLE, [2]),
    "its element type": helper.make_tensor_value_info("b", TensorProto.DOUBLE, None),
    "a name for its length": helper.make_tensor_value_info("b", TensorProto.DOUBLE, ["N"]),
}


@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
def test_the_elements_of_a_constant_that_repeats_are_known_whatever_is_declared_of_it(
    declared: onnx.ValueInfoProto | None,
) -> None:
    nodes = [helper.make_node("Constant", [], [name], value=PAIR) for name in "ab"]
    nodes += [
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("Cast", ["c"], ["d"], to=TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["d"], ["y"]),
    ]
    known = [] if declared is None else [declared]
    graph = helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info("y")], value_info=known)
    found = infer_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    assert str(found.types["y"]) == "float32[4, 9]"


def test_nothing_is_known_of_a_constant_with_too_few_elements() -> None:
    short = TensorProto(data_type=TensorProto.INT64, dims=[2], int64_data=[1])
    nodes = [helper.make_node("Constant", [], [name], value=short) for name in "ab"]
    nodes.append(helper.make_node("ConstantOfShape", ["b"], ["y"]))
    graph = helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info("y")])
    found = infer_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    # That b holds a shape is what its reader demands of it.
    assert [found.types[name].rank for name in "aby"] == [None, 1, None]
    assert [found.types[name].dtype for name in "aby"] == [None, "int64", "float32"]
