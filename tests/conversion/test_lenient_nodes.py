"""Nodes with element types that only the schema forbids, on the way to another opset."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph


def model(body: str, opset: int) -> onnx.ModelProto:
    """A graph with the inputs x: float[2, 4] and k: int32[2]; p, q and r are the constants [1], [4, 2] and 0."""
    held = "<int32[1] p = {1}, int32[2] q = {4, 2}, int32 r = {0}>"
    head = f'<ir_version: 7, opset_import: ["": {opset}]> g (float[2, 4] x, int32[2] k) => ()'
    return onnx.parser.parse_model(f"{head} {held} {{ [n] {body} [s] a, b = Split<axis = 1>(x) }}")


@pytest.mark.parametrize(
    ("body", "opset", "target"),
    [
        # Exponents of floats for integers have other rules; k is an attribute below 10; nothing is measured below 7.
        ("y = Pow(k, x)", 11, 13),
        ("y = TopK(x, k)", 11, 9),
        ("y = Relu(k)", 13, 6),
    ],
)
def test_what_cannot_stay_is_refused(body: str, opset: int, target: int) -> None:
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.convert(model(body.replace("y =", "y, z =") if "TopK" in body else body, opset), opset=target)
    assert raised.value.diagnostics


@pytest.mark.parametrize(
    ("body", "opset", "target"),
    [
        ("y = Relu(k)", 13, 18),
        ("y = Relu(k)", 13, 11),
        ("y = Reshape(x, q)", 13, 18),
        ("y = Reshape(x, q)", 13, 11),
        ("y = Max(k, k)", 8, 18),
        ("y = Equal(x, x)", 10, 18),
    ],
)
def test_what_stays(body: str, opset: int, target: int) -> None:
    made = model(body, opset)
    rewrite = splitgraph.convert(made, opset=target)
    assert made.graph.node[0] in rewrite.model.graph.node
    assert "Split" in {node.op_type for node in rewrite.model.graph.node}
    # The user is told, because onnxruntime refuses the model.
    told = [found for found in rewrite.diagnostics if found.code == "SG302"]
    assert [(found.severity, found.location) for found in told] == [("warning", "main/n")]


def test_constant_axes_become_an_attribute() -> None:
    rewrite = splitgraph.downgrade(model("y = ReduceMax(x, p)", 18), 13)
    (reduction,) = (node for node in rewrite.model.graph.node if node.op_type == "ReduceMax")
    assert list(reduction.attribute[0].ints) == [1]


@pytest.mark.parametrize(("target", "told"), [("onnxruntime", ("SG701", "error")), ("openvino", ("SG302", "warning"))])
def test_a_target_is_told(target: str, told: tuple[str, str]) -> None:
    found = splitgraph.check(model("y = Relu(k)", 13), target)
    assert [(each.code, each.severity) for each in found if each.location == "main/n"][:1] == [told]


def test_a_target_that_refuses_the_node() -> None:
    made, reshaped = model("y = Relu(k)", 13), model("y = Reshape(x, q)", 13)
    for each in (made, reshaped):
        # What nobody reads goes with a fold.
        each.graph.output.add(name="y")
    # The model goes to an opset that allows the type.
    assert splitgraph.convert(made, target="onnxruntime").to_opset[""] == 14
    assert splitgraph.convert(made, target="openvino").changes == ()
    with pytest.raises(splitgraph.ConversionError, match="refuses the node"):
        splitgraph.convert(made, target="onnxruntime", opset=13)
    # No opset allows this one.
    with pytest.raises(splitgraph.ConversionError, match="refuses the node"):
        splitgraph.convert(reshaped, target="onnxruntime")
