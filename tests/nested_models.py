"""Models whose graphs, functions and types are nested in one another, as deep as is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
IMPORTS = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]


def _model(nodes: Sequence[NodeProto], functions: Sequence[onnx.FunctionProto] = ()) -> ModelProto:
    """From x, a tensor of floats, c, a condition, and k, a count, to y."""
    inputs = [("x", FLOAT, ["N"]), ("c", BOOL, []), ("k", INT64, [])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )
    return helper.make_model(graph, functions=functions, opset_imports=IMPORTS, ir_version=10)


def _functions(bodies: Sequence[Sequence[NodeProto]]) -> list[onnx.FunctionProto]:
    """f0, f1, ... from x and c to y."""
    return [helper.make_function("d", f"f{i}", ["x", "c"], ["y"], body, IMPORTS) for i, body in enumerate(bodies)]


def _call(number: int, output: str = "y") -> NodeProto:
    return helper.make_node(f"f{number}", ["x", "c"], [output], domain="d")


def _branch(nodes: Sequence[NodeProto], output: str) -> GraphProto:
    return helper.make_graph(nodes, output, [], [helper.make_tensor_value_info(output, FLOAT, None)])


_LAST = helper.make_node("Split", ["x"], ["y"], num_outputs=1)


def calls(depth: int) -> ModelProto:
    """Functions that call each other, one behind the other."""
    return _model([_call(0)], _functions([*([_call(i + 1)] for i in range(depth - 1)), [_LAST]]))


def calls_twice(depth: int) -> ModelProto:
    """Functions that call the next one twice: 2**depth nodes when they are written out."""
    body = [[_call(i + 1, "t"), _call(i + 1, "u"), helper.make_node("Add", ["t", "u"], ["y"])] for i in range(depth)]
    return _model([_call(0)], _functions([*body, [_LAST]]))


def calls_in_branches(depth: int) -> ModelProto:
    """Functions that call the next one in a branch, so that so many graphs lie in one another."""
    bodies = []
    for i in range(depth):
        other = _branch([helper.make_node("Identity", ["x"], ["e"])], "e")
        then = _branch([_call(i + 1, "t")], "t")
        bodies.append([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)])
    return _model([_call(0)], _functions([*bodies, [_LAST]]))


def branches(depth: int) -> ModelProto:
    """Branches in branches."""
    model = _model([])
    graph, output = model.graph, "y"
    for i in range(depth):
        node = graph.node.add(op_type="If", name=f"if{i}", input=["c"], output=[output])
        other = node.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH).g
        other.CopyFrom(_branch([helper.make_node("Identity", ["x"], [f"e{i}"])], f"e{i}"))
        graph, output = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g, f"t{i}"
        graph.output.add(name=output)
    graph.node.add(op_type="Identity", input=["x"], output=[output])
    return model


def sequences_in_branches(depth: int) -> ModelProto:
    """Branches in branches, a sequence in the innermost one; protobuf reads it at any depth that is looked into."""
    model = branches(depth)
    graph = model.graph
    for _ in range(depth):
        graph = next(held.g for held in graph.node[0].attribute if held.name == "then_branch")
    graph.node.add(op_type="SplitToSequence", input=["x"], output=["parts"])
    return model


def loops(depth: int) -> ModelProto:
    """Loops in loops."""
    model = _model([])
    graph, carried, output = model.graph, "x", "y"
    for i in range(depth):
        node = graph.node.add(op_type="Loop", name=f"loop{i}", input=["k", "c", carried], output=[output])
        graph, carried, output = node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g, f"x{i}", f"y{i}"
        for name in (f"n{i}", f"c{i}", carried):
            graph.input.add(name=name)
        graph.node.add(op_type="Identity", input=[f"c{i}"], output=[f"d{i}"])
        for name in (f"d{i}", output):
            graph.output.add(name=name)
    graph.node.add(op_type="Identity", input=[carried], output=[output])
    return model


def unknown_bodies(depth: int) -> ModelProto:
    """Bodies in bodies of nodes of an operator that nobody knows."""
    model = _model([])
    graph, output = model.graph, "y"
    for i in range(depth):
        node = graph.node.add(op_type="Unknown", domain="d", name=f"u{i}", input=["x"], output=[output])
        graph, output = node.attribute.add(name="body", type=onnx.AttributeProto.GRAPH).g, f"t{i}"
        graph.output.add(name=output)
    graph.node.add(op_type="Identity", input=["x"], output=[output])
    return model


def out_of_order(depth: int) -> ModelProto:
    """Branches in branches beside nodes that are out of order."""
    model = branches(depth)
    for read, made in (("late", "u"), ("x", "late")):
        model.graph.node.add(op_type="Relu", input=[read], output=[made])
    return model


def nested_type(depth: int, kind: str = "sequence_type") -> ModelProto:
    """An input and an output of a type in so many others; kind: the field of TypeProto that these are of."""
    model = ModelProto(ir_version=10, opset_import=IMPORTS)
    made = model.graph.input.add(name="x").type
    inner: TypeProto = made
    for _ in range(depth):
        inner = inner.map_type.value_type if kind == "map_type" else getattr(inner, kind).elem_type
    inner.tensor_type.elem_type = FLOAT
    inner.tensor_type.shape.dim.add(dim_param="N")
    model.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    model.graph.output.add(name="y").type.CopyFrom(made)
    return model


def optional_values(depth: int) -> ModelProto:
    """Nodes each of which makes an optional value of what the one before it gives."""
    names = ["x", *(f"v{i}" for i in range(depth - 1)), "y"]
    nodes = [helper.make_node("Optional", [read], [made]) for read, made in pairwise(names)]
    model = _model(nodes)
    model.graph.output[0].ClearField("type")
    return model
