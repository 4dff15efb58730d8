"""Nodes out of order: inferred as if they were sorted, written sorted by every rewrite, and verified."""

from __future__ import annotations

import random

import onnx
import pytest

import splitgraph
from splitgraph.model.scopes import sorted_order

HEAD = '<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[N, 6] x, bool c) => (float[N, K] y)'
# Each in order; the nodes of the graphs that are named are reversed.
MODELS = {
    "a chain": f"{HEAD} {{ a = Abs (x) b = Neg (a) y = Relu (b) }}",
    "splits": f"{HEAD} {{ a, b = Split <axis = 1> (x) c0, d = Split <axis = 1> (x) e = Add (a, d) y = Mul (e, b) }}",
    "shapes": f"""{HEAD} {{ s = Shape (x) two = Constant <value_ints = [2, -1]> () t = Reshape (x, two)
        u = Reshape (t, s) y = Neg (u) }}""",
    "a branch that reads what comes later": f"""{HEAD} {{ z = Abs (x) y = If (c) <
        then_branch = t () => (float[N, M] a) {{ a = Relu (z) }},
        else_branch = e () => (float[N, M] b) {{ b0 = Neg (x) b1 = Abs (b0) b = Relu (b1) }}> }}""",
    "a function": f"""{HEAD} {{ a = my.f (x) y = Neg (a) }}
        <domain: "my", opset_import: ["": 17]> f (x) => (y) {{
            a, b = Split <axis = 1> (x) c = Neg (a) y = Add (c, b) }}""",
    "a subgraph of two levels": f"""{HEAD} {{ z = Abs (x) w = Neg (z) y = If (c) <
        then_branch = t () => (float[N, M] a) {{ a = If (c) <
            then_branch = t2 () => (float[N, M] a2) {{ a2 = Add (w, z) }},
            else_branch = e2 () => (float[N, M] b2) {{ b2 = Relu (w) }}> }},
        else_branch = e () => (float[N, M] b) {{ b = Neg (x) }}> }}""",
}


def graphs_of(model: onnx.ModelProto) -> list[onnx.GraphProto | onnx.FunctionProto]:
    found: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    for graph in found:
        found += [held.g for node in graph.node for held in node.attribute if held.HasField("g")]
    return found


def disordered(model: onnx.ModelProto, seed: int | None = None) -> onnx.ModelProto:
    """The model with the nodes of every graph in reverse, or shuffled, and with names."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in graphs_of(copy):
        for index, node in enumerate(graph.node):
            node.name = f"{graph.name}_{index}"
    for graph in reversed(graphs_of(copy)):
        nodes = list(graph.node)[::-1]
        if seed is not None:
            random.Random(seed).shuffle(nodes)
        copied = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copied)
    return copy


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_types_are_those_of_the_sorted_model(name: str, seed: int | None) -> None:
    model = onnx.parser.parse_model(MODELS[name])
    wrong = disordered(model, seed)
    expected, found = splitgraph.infer(model), splitgraph.infer(wrong)
    assert {text: str(kind) for text, kind in found.types.items()} == {
        text: str(kind) for text, kind in expected.types.items()
    }
    assert {(each.code, each.severity) for each in found.diagnostics} <= {("SG112", "warning")}
    assert [node.name for node in found.model.graph.node] == [node.name for node in wrong.graph.node]


@pytest.mark.parametrize("name", MODELS)
def test_every_rewrite_writes_them_sorted(name: str) -> None:
    model = disordered(onnx.parser.parse_model(MODELS[name]))
    assert {found.code for found in splitgraph.infer(model).diagnostics} == {"SG112"}
    for rewrite in (
        splitgraph.upgrade(model, 21),
        splitgraph.downgrade(model, 13),
        splitgraph.upgrade(model, 17),
        splitgraph.convert(model, "split", explicit_lengths=True),
        splitgraph.convert(model, "variadic-split"),
    ):
        assert ("SG112", "info") in {(found.code, found.severity) for found in rewrite.diagnostics}
        assert all(sorted_order(graph.node) == [*range(len(graph.node))] for graph in graphs_of(rewrite.model))
        onnx.checker.check_model(rewrite.model, full_check=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_order_is_left_alone(name: str) -> None:
    model = onnx.parser.parse_model(MODELS[name])
    assert not splitgraph.infer(model).diagnostics
    assert splitgraph.upgrade(model, 17).model == model


CYCLES = [
    "y = Relu (y)",
    "a = Abs (b) b = Neg (a) y = Relu (x)",
    "y = Relu (a) a = Abs (b) b = Neg (a)",
    "y = If (c) <then_branch = t () => (float[N, M] a) { a = Relu (y) }, else_branch = e () => (float[N, M] b) "
    "{ b = Neg (x) }>",
]


@pytest.mark.parametrize("body", CYCLES)
def test_a_cycle_is_an_error(body: str) -> None:
    model = onnx.parser.parse_model(f"{HEAD} {{ {body} }}")
    found = splitgraph.infer(model)
    assert [each.code for each in found.diagnostics if each.severity == "error"] == ["SG102"]
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(model, 18)


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_models_out_of_order_are_verified(engine: str) -> None:
    model = disordered(onnx.parser.parse_model(MODELS["a branch that reads what comes later"]))
    found = splitgraph.verify(model, splitgraph.upgrade(model, 18).model, samples=1, engine=engine)  # type: ignore[arg-type]
    assert found.verdict == "equal"


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_stable(seed: int) -> None:
    """Nodes in order stay as they are; every order puts producers first, whatever the order was."""
    chosen = random.Random(seed)
    nodes = []
    for index in range(30):
        read = chosen.sample(range(index), min(index, chosen.randrange(3)))
        nodes.append(onnx.helper.make_node("Sum", [f"v{each}" for each in read] or ["x"], [f"v{index}"]))
    assert sorted_order(nodes) == [*range(30)]
    chosen.shuffle(nodes)
    place = {nodes[index].output[0]: position for position, index in enumerate(sorted_order(nodes))}
    assert sorted(place.values()) == [*range(30)]
    assert all(place[name] < place[node.output[0]] for node in nodes for name in node.input if name != "x")
