"""Operators written as the bodies of their functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    number_of,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
    value,
)
from onnx import TensorProto, helper

from splitgraph.conversion.notation.function_bodies import _schema_with_body
from splitgraph.conversion.notation.node_at_boundary import Inexact
from splitgraph.conversion.opset import convert_opset


def every_name(graph: Any) -> list[str]:
    """The names that the nodes, inputs and initializers of a graph and its subgraphs define."""
    names = [held.name for held in (*getattr(graph, "input", ()), *getattr(graph, "initializer", ()))]
    for node in graph.node:
        names += [*(name for name in node.output if name)]
        for attribute in node.attribute:
            names += every_name(attribute.g) if attribute.HasField("g") else []
    return names


def every_node_name(graph: Any) -> list[str]:
    names = []
    for node in graph.node:
        names.append(node.name)
        for attribute in node.attribute:
            names += every_node_name(attribute.g) if attribute.HasField("g") else []
    return names


def in_function(node: onnx.NodeProto, opset: int, attributes: Any = None, **given: Any) -> onnx.ModelProto:
    """A model that calls a function with one node; its attributes come from the call."""
    function = helper.make_function(
        "local", "F", ["x"], ["y"], [node], [helper.make_opsetid("", opset)], attributes=list(attributes or ())
    )
    call = helper.make_node("F", ["x"], ["y"], domain="local", **given)
    graph = helper.make_graph([call], "g", [value("x", ("float32", ("n",)))], [value("y", ("float32", ("n",)))])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=9)


def referring(op: str, name: str) -> onnx.NodeProto:
    node = helper.make_node(op, ["x"], ["y"], name="node")
    node.attribute.add(name=name, ref_attr_name=name, type=onnx.AttributeProto.FLOAT)
    return node


def test_without_a_body_it_is_refused() -> None:
    declared = ("string", ("n",))
    model = build(
        helper.make_node("StringConcat", ["a", "b"], ["c"]), 20, {"a": declared, "b": declared}, {"c": declared}
    )
    assert "has no function body to expand" in refusal(model, 11)


class OlderOnnx:
    """onnx's registry of operators as a release has it that ends at an opset."""

    def __init__(self, newest: int) -> None:
        self.newest = newest

    def has(self, op_type: str, opset: int, domain: str) -> bool:
        return bool(onnx.defs.has(op_type, min(opset, self.newest), domain))

    def get_schema(self, op_type: str, opset: int, domain: str) -> Any:
        return onnx.defs.get_schema(op_type, min(opset, self.newest), domain)


@pytest.mark.parametrize(
    ("op_type", "opset", "newest", "reason"),
    [
        # Not there at all, there in an older version only, and without a body in any.
        ("Mish", 18, 17, "the installed onnx does not know its function body"),
        ("Mish", 22, 21, "the installed onnx does not know its function body"),
        ("Det", 11, 10, "has no function body to expand"),
    ],
)
def test_a_body_that_the_installed_onnx_does_not_have_is_refused(
    op_type: str, opset: int, newest: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("splitgraph.conversion.notation.function_bodies.defs", OlderOnnx(newest))
    with pytest.raises(Inexact, match=reason):
        _schema_with_body(op_type, opset)
    monkeypatch.setattr("splitgraph.conversion.notation.function_bodies.defs", OlderOnnx(opset))
    if op_type == "Mish":
        assert _schema_with_body(op_type, opset).since_version == opset


@pytest.mark.usefixtures("functions_stay")
def test_a_body_that_needs_an_unknown_type_is_refused() -> None:
    model = in_function(helper.make_node("SoftmaxCrossEntropyLoss", ["x", "x"], ["y"]), 12)
    # Nothing calls it, so that nothing is known of its input.
    model.graph.node[0].CopyFrom(helper.make_node("Identity", ["x"], ["y"]))
    assert "depends on the element type" in refusal(model, 11)


def test_a_body_that_does_not_compute_what_the_document_says_is_refused() -> None:
    declared = dict.fromkeys(("start", "limit", "delta"), ("int64", ()))
    model = build(helper.make_node("Range", list(declared), ["y"]), 11, declared, {"y": ("int64", ("n",))})
    assert "float32" in refusal(model, 10) or "Loop" not in operators(converted(model, 10))


@pytest.mark.parametrize("op", ["BlackmanWindow", "HammingWindow", "HannWindow"])
@pytest.mark.parametrize(("dtype", "goes"), [("float32", True), ("float64", True), ("int32", False), ("uint8", False)])
def test_windows_of_integers_are_refused(op: str, dtype: str, goes: bool) -> None:
    """The middle of a window of 10 is 1, which float32 has as 0.99999994: the body gave 0, runtimes 1."""
    size = {"x": ("int32", ())}
    model = build(
        helper.make_node(op, ["x"], ["y"], output_datatype=number_of(dtype)), 17, size, {"y": (dtype, ("n",))}
    )
    if goes:
        feeds = {"x": np.array(10, np.int32)}
        assert_same(run(model, feeds), run(converted(model, 16), feeds), 1e-6)
    else:
        assert "can be off by 1" in refusal(model, 16)


@pytest.mark.usefixtures("functions_stay")
def test_a_reference_to_an_attribute_that_no_call_gives_is_refused() -> None:
    model = in_function(referring("Swish", "alpha"), 24, ["alpha"])
    model.functions[0].node[0].attribute[0].ref_attr_name = "alpha"
    assert "that a call leaves out" in refusal(model, 23)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_random_operator_keeps_its_shape_and_type(dtype: str) -> None:
    node = helper.make_node("Bernoulli", ["x"], ["y"], seed=1.0)
    model = build(node, 15, {"x": (dtype, (3, 2))}, {"y": (dtype, (3, 2))})
    certain = np.array([[0, 1], [0, 1], [0, 1]], dtype)
    after = converted(model, 14)
    assert_same([certain], run(after, {"x": certain}))
    # In float16, few numbers are drawn; in float32, none between 1 and the greatest double below it.
    drawn = next(node for node in after.graph.node if node.op_type == "RandomUniformLike")
    kinds = [held.i for held in drawn.attribute if held.name == "dtype"]
    assert kinds == [number_of("float64" if dtype == "float64" else "float32")]


def test_the_node_that_gives_the_first_output_keeps_name_and_documentation() -> None:
    node = helper.make_node("HardSwish", ["x"], ["y"], name="mine", doc_string="why")
    model = build(node, 14, {"x": ("float32", (3,))}, {"y": ("float32", (3,))})
    after = converted(model, 13)
    last = after.graph.node[-1]
    assert (last.output[0], last.name, last.doc_string) == ("y", "mine", "why")
    assert [node.doc_string for node in after.graph.node[:-1]] == [""] * (len(after.graph.node) - 1)


def test_what_an_output_that_is_left_out_needs_is_left_out() -> None:
    inputs = {"x": ("float32", (2, 3)), "s": ("float32", (3,))}
    one = build(helper.make_node("LayerNormalization", ["x", "s"], ["y"]), 17, inputs, {"y": ("float32", (2, 3))})
    outputs = {"y": ("float32", (2, 3)), "mean": ("float32", (2, 1)), "dev": ("float32", (2, 1))}
    all_three = build(helper.make_node("LayerNormalization", ["x", "s"], list(outputs)), 17, inputs, outputs)
    feeds = {"x": random_array((2, 3)), "s": random_array((3,), seed=1)}
    assert len(converted(one, 16).graph.node) < len(converted(all_three, 16).graph.node)
    for model in (one, all_three):
        after = converted(model, 16)
        used = {name for node in after.graph.node for name in node.input} | {held.name for held in after.graph.output}
        assert all(set(node.output) & used for node in after.graph.node)
        assert all(tensor.name in used for tensor in after.graph.initializer)
        assert_same(run(model, feeds), run(after, feeds), 1e-5)


def test_constants_of_a_body_are_initializers_but_in_functions() -> None:
    model = build(helper.make_node("HardSwish", ["x"], ["y"]), 14, {"x": ("float32", (3,))}, {"y": ("float32", (3,))})
    assert "Constant" not in operators(converted(converted(model, 13), 12))
    swish = build(helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=2.0), 10, {"x": ("float32", (3,))},
                  {"y": ("float32", (3,))})  # fmt: skip
    after = converted(swish, 9)
    assert after.graph.initializer and "Constant" not in operators(after)
    within = converted(in_function(helper.make_node("ThresholdedRelu", ["x"], ["y"], alpha=2.0), 22), 21)
    assert [node.op_type for node in within.functions[0].node] == ["ThresholdedRelu"]


def test_a_reference_to_an_attribute_that_calls_give() -> None:
    model = in_function(referring("Swish", "alpha"), 24, ["alpha"], alpha=2.0)
    x = random_array((4,))
    after = converted(model, 23)
    assert "Swish" not in [node.op_type for node in after.functions[0].node]
    assert_same([x / (1 + np.exp(-2 * x))], run_reference(after, {"x": x}), 1e-5)


@pytest.mark.parametrize(("target", "opset"), [(22, 23), (18, 23), (13, 23), (11, 23), (9, 23)])
def test_a_body_that_splits(target: int, opset: int) -> None:
    x, cos, sin = random_array((1, 2, 3, 4)), random_array((1, 3, 2), seed=1), random_array((1, 3, 2), seed=2)
    inputs: dict[str, Any] = {"x": ("float32", x.shape), "c": ("float32", cos.shape), "s": ("float32", sin.shape)}
    model = build(helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"]), opset, inputs, {"y": inputs["x"]})
    feeds = {"x": x, "c": cos, "s": sin}
    assert_same(run(model, feeds), run(converted(model, target), feeds), 1e-5)


def test_a_body_with_a_subgraph() -> None:
    inner = helper.make_graph(
        [
            helper.make_node("Gelu", ["item"], ["t"], name="gelu"),
            helper.make_node("Add", ["t", "x"], ["out"], name="x"),
        ],
        "inner",
        [value("item", ("float32", ("m",)))],
        [value("out", ("float32", ("m",)))],
    )
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "z"], ["s"]),
        helper.make_node("SequenceMap", ["s"], ["r"], name="map", body=inner),
        helper.make_node("ConcatFromSequence", ["r"], ["y"], axis=0),
    ]
    declared = {"x": ("float32", (3,)), "z": ("float32", (3,))}
    model = build(nodes, 20, declared, {"y": ("float32", ("k",))})
    feeds = {"x": random_array((3,)), "z": random_array((3,), seed=1)}
    for target in (19, 16, 13):
        after = converted(model, target)
        names, node_names = every_name(after.graph), [name for name in every_node_name(after.graph) if name]
        assert len(names) == len(set(names))
        assert len(node_names) == len(set(node_names))
        assert ("SequenceMap" in operators(after)) == (target == 19)
        assert_same(run(model, feeds), run(after, feeds), 1e-5)


@pytest.mark.parametrize("op", ["Gelu", "Mish", "HardSwish", "Celu", "ThresholdedRelu", "Shrink", "Swish"])
@pytest.mark.parametrize("target", [13, 11, 9])
def test_activations(op: str, target: int) -> None:
    x = np.array([0.0, -0.0, 1.5, -1.5, 8.0, -8.0, 0.25], np.float32)
    node = helper.make_node(op, ["x"], ["y"])
    model = build(node, 24, {"x": ("float32", ("n",))}, {"y": ("float32", ("n",))})
    after = converted(model, target)
    assert after.opset_import[0].version == target
    assert_same(run_reference(model, {"x": x}), run_reference(after, {"x": x}), 1e-5)


@pytest.mark.parametrize(
    ("dtype", "attributes", "is_refused"),
    [
        ("int32", {}, False),
        ("int8", {"lambd": 1.5, "bias": 2.0}, False),
        ("int8", {"bias": 0.5}, True),
        ("uint8", {"lambd": -1.0}, True),
        ("uint8", {"bias": 2.0}, False),
        ("uint16", {"lambd": 2.0}, True),
        ("float32", {"lambd": -1.0, "bias": 0.5}, False),
    ],
)
def test_what_shrinks_integers_by_no_integers(dtype: str, attributes: dict[str, float], is_refused: bool) -> None:
    """Runtimes give -4 for what is -5 with a bias of 0.5; the function body gives -5."""
    node = helper.make_node("Shrink", ["x"], ["y"], **attributes)
    model = build(node, 9, {"x": (dtype, (7,))}, {"y": (dtype, (7,))})
    if is_refused:
        assert "rounds lambd and bias" in refusal(model, 8)
        return
    x = np.array([-5, -2, -1, 0, 1, 2, 5]).astype(dtype)
    assert_same(run_reference(model, {"x": x}), run_reference(converted(model, 8), {"x": x}))


def test_in_a_branch_that_reads_outer_values() -> None:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [value(f"{op}_y", ("float32", (3,)))]
        )

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Mish"), else_branch=branch("HardSwish"))
    model = build(node, 18, {"c": ("bool", ()), "x": ("float32", (3,))}, {"y": ("float32", (3,))})
    for condition in (True, False):
        feeds = {"c": np.array(condition), "x": random_array((3,))}
        assert_same(run(model, feeds), run(converted(model, 13), feeds), 1e-6)


def test_the_original_model_is_not_changed() -> None:
    model = build(helper.make_node("Mish", ["x"], ["y"]), 18, {"x": ("float32", (3,))}, {"y": ("float32", (3,))})
    before = model.SerializeToString(deterministic=True)
    convert_opset(model, 13)
    assert model.SerializeToString(deterministic=True) == before
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 28, reason="Attention-25 is newer than this onnx")
def test_the_body_of_a_newer_version_where_the_older_one_lacks_an_attribute() -> None:
    shape = (1, 2, 3, 8)
    inputs: dict[str, Any] = dict.fromkeys("qkv", ("float32", shape))
    model = build(helper.make_node("Attention", list("qkv"), ["y"], left_window_size=1), 25, inputs, {"y": inputs["q"]})
    feeds = {name: random_array(shape, seed=index) for index, name in enumerate("qkv")}
    after = converted(model, 24)
    assert "Attention" not in operators(after)
    assert_same(run_reference(model, feeds), run_reference(after, feeds), 1e-4)
