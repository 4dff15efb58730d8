"""What holds of any two models."""

from __future__ import annotations

import copy
from collections import Counter

import onnx
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from splitgraph import ModelDifference

from .written import diff

OPERATORS = ("Relu", "Abs", "Neg", "Add", "Split", "Constant", "NonZero", "Softmax")
NAMES = st.sampled_from(["", "", "n0", "n1", "n2"])
MIRRORED = {"added": "removed", "removed": "added", "changed": "changed"}


@st.composite
def graphs(draw: st.DrawFn, most: int = 7) -> onnx.ModelProto:
    """A graph of a few nodes, whose names are often missing and often the same."""
    values, nodes = ["x"], list[onnx.NodeProto]()
    for index in range(draw(st.integers(0, most))):
        op = draw(st.sampled_from(OPERATORS))
        outputs = [f"v{draw(st.integers(0, 3)) * 10 + index}" for _ in range(1)]
        if op == "Split":
            outputs.append(f"{outputs[0]}b")
        inputs = [] if op == "Constant" else [draw(st.sampled_from(values)) for _ in range(1 + (op == "Add"))]
        attributes = {"axis": draw(st.integers(0, 1))} if op in ("Split", "Softmax") else {}
        if op == "Constant":
            attributes = {"value_ints": [draw(st.integers(0, 1))]}
        nodes.append(helper.make_node(op, inputs, outputs, name=draw(NAMES), **attributes))
        values += outputs
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    shape = draw(st.sampled_from([["N", 4], [None, 4], [2, 4]]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], declared)
    opset = draw(st.sampled_from([13, 13, 14]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@st.composite
def edited(draw: st.DrawFn) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model, and the same with a few edits."""
    before = draw(graphs())
    after = copy.deepcopy(before)
    for _ in range(draw(st.integers(0, 3))):
        nodes = after.graph.node
        edit = draw(st.sampled_from(["name", "drop", "repeat", "rename", "operator"]))
        if not nodes:
            break
        index = draw(st.integers(0, len(nodes) - 1))
        if edit == "name":
            nodes[index].ClearField("name")
            if (name := draw(NAMES)) != "":
                nodes[index].name = name
        elif edit == "drop":
            del nodes[index]
        elif edit == "repeat":
            nodes.add().CopyFrom(nodes[index])
            nodes[-1].output[:] = [f"{name}c" for name in nodes[-1].output]
        elif edit == "operator":
            nodes[index].op_type = draw(st.sampled_from(["Relu", "Abs", "Identity"]))
        else:
            old = nodes[index].output[0]
            for node in nodes:
                node.input[:] = ["r" if name == old else name for name in node.input]
                node.output[:] = ["r" if name == old else name for name in node.output]
    return before, after


PAIRS = st.one_of(edited(), st.tuples(graphs(), graphs()))


def kinds(found: ModelDifference) -> tuple[Counter, ...]:
    return (
        Counter((node.kind, node.aspects) for node in found.nodes),
        Counter(part.kind for part in found.parts),
        Counter(value.kind for value in found.values),
    )


def mirrored(counts: Counter) -> Counter:
    return Counter(
        {(MIRRORED[key[0]], *key[1:]) if isinstance(key, tuple) else MIRRORED[key]: n for key, n in counts.items()}
    )


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(graphs())
def test_a_model_does_not_differ_from_itself(model: onnx.ModelProto) -> None:
    assert not diff(model, onnx.ModelProto.FromString(model.SerializeToString()))


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(PAIRS)
def test_the_other_way_round_is_the_mirror_image(pair: tuple[onnx.ModelProto, onnx.ModelProto]) -> None:
    before, after = pair
    one, two = diff(before, after), diff(after, before)
    assert kinds(two) == tuple(map(mirrored, kinds(one)))
    assert (len(one.new_findings), len(one.gone_findings)) == (len(two.gone_findings), len(two.new_findings))


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(PAIRS)
def test_every_node_is_counted_once(pair: tuple[onnx.ModelProto, onnx.ModelProto]) -> None:
    before, after = pair
    found = diff(before, after)
    counts = Counter(node.kind for node in found.nodes)
    assert len(after.graph.node) - len(before.graph.node) == counts["added"] - counts["removed"]
    for graph, side in ((before.graph, "before"), (after.graph, "after")):
        forms = [form for node in found.nodes if (form := getattr(node, side)) is not None]
        written = Counter((node.op_type, node.name, tuple(node.output)) for node in graph.node)
        told = Counter((form.operator.rpartition("-")[0], form.name, form.outputs) for form in forms)
        assert told <= written


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(PAIRS)
def test_models_without_a_difference_have_the_same_nodes(pair: tuple[onnx.ModelProto, onnx.ModelProto]) -> None:
    before, after = pair
    nodes = [sorted(node.SerializeToString(deterministic=True) for node in model.graph.node) for model in pair]
    if not diff(before, after).nodes:
        assert nodes[0] == nodes[1]
