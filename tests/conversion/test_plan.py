"""Plan, then apply: what a rewrite leaves alone, what it refuses as a whole, and what it takes along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

FLOAT = TensorProto.FLOAT


def value(name: str, shape: Sequence[int | str | None] | None = None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def held(name: str, values: Any, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype), name)


def split(inputs: Sequence[str], outputs: Sequence[str], name: str = "split", **attributes: Any) -> NodeProto:
    return helper.make_node("Split", list(inputs), list(outputs), name=name, **attributes)


def model_of(
    nodes: Sequence[NodeProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[TensorProto] = (),
    *,
    opset: int = 13,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
    shape: Sequence[int | str | None] = (6,),
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "plan", [value("x", shape)], list(outputs), list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def outputs_of(names: str, rank: int = 1) -> list[onnx.ValueInfoProto]:
    return [value(name, [None] * rank) for name in names]


def convert(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    source = model.opset_import[0].version
    converted: onnx.ModelProto = (splitgraph.upgrade if target >= source else splitgraph.downgrade)(model, target).model
    return converted


@pytest.mark.parametrize(
    ("dtype", "source", "target", "words"),
    [
        ("BFLOAT16", 13, 12, "Split-11 does not take bfloat16"),
        ("BFLOAT16", 18, 2, "Split-2 does not take bfloat16"),
        ("INT64", 2, 1, "Split-1 does not take int64"),
        ("UNDEFINED", 13, 12, "the element type is unknown, and Split-11 takes fewer than Split-13"),
    ],
)
def test_element_types_that_the_target_does_not_take_are_refused(
    dtype: str, source: int, target: int, words: str
) -> None:
    attributes = {"num_outputs": 2} if source == 18 else {}
    nodes = [helper.make_node("Make", ["x"], ["unknown"], domain="own")] if dtype == "UNDEFINED" else []
    nodes.append(split(["unknown" if nodes else "x"], ["a", "b"], axis=0, **attributes))
    model = model_of(nodes, [onnx.ValueInfoProto(name=name) for name in "ab"], opset=source, domains=["own"])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DataType.Value(dtype) or FLOAT
    with pytest.raises(splitgraph.ConversionError, match=words):
        convert(model, target)


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *sizes: int) -> None:
    onnx.checker.check_model(after, full_check=True)
    assert_equal(before, after, *sizes)


def assert_equal(before: onnx.ModelProto, after: onnx.ModelProto, *sizes: int) -> None:
    for size in sizes or (6,):
        data = {"x": np.arange(size, dtype=np.float32)}
        for want, have in zip(run(load(before), data), run(load(after), data), strict=True):
            np.testing.assert_array_equal(want, have)


def initializers(model: onnx.ModelProto) -> list[str]:
    return [tensor.name for tensor in model.graph.initializer]


# Refused as a whole --------------------------------------------------------------------------------------------------


def test_every_blocker_is_listed_and_nothing_is_changed() -> None:
    nodes = [
        split(["x"], "ab", "first", num_outputs=2),
        split(["x"], "cd", "fine", num_outputs=2, axis=0),
        helper.make_node("StringSplit", ["text"], ["parts", "counts"], name="strings"),
        helper.make_node("RegexFullMatch", ["text"], ["matches"], name="regex", pattern="a*"),
    ]
    nodes[0].input[0] = "w"
    graph = helper.make_graph(
        nodes,
        "plan",
        [value("x", [6]), value("w", ["N"]), value("text", [1], TensorProto.STRING)],
        [*outputs_of("abcd"), value("counts", [None], TensorProto.INT64), value("matches", [1], TensorProto.BOOL)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    original = model.SerializeToString(deterministic=True)
    with pytest.raises(splitgraph.ConversionError) as raised:
        splitgraph.downgrade(model, 8)
    places = [(found.code, found.location) for found in raised.value.diagnostics]
    assert places == [("SG402", "main/first"), ("SG404", "main/strings"), ("SG404", "main/regex")]
    assert raised.value.diagnostics[1].message == "StringSplit exists from opset 20 on and has no older form"
    assert all(found.message in str(raised.value) for found in raised.value.diagnostics)
    assert model.SerializeToString(deterministic=True) == original


@pytest.mark.parametrize("opset", [0, -1, 999])
def test_an_opset_that_does_not_exist_is_refused(opset: int) -> None:
    model = model_of([split(["x"], "ab")], outputs_of("ab"))
    for verb in (splitgraph.upgrade, splitgraph.downgrade):
        with pytest.raises(splitgraph.SplitgraphError):
            verb(model, opset)


def test_the_wrong_direction_is_refused() -> None:
    model = model_of([split(["x"], "ab")], outputs_of("ab"))
    with pytest.raises(splitgraph.SplitgraphError, match="downgrade"):
        splitgraph.upgrade(model, 11)
    with pytest.raises(splitgraph.SplitgraphError, match="upgrade"):
        splitgraph.downgrade(model, 18)


@pytest.mark.parametrize("target", [2, 11, 18])
def test_an_invalid_split_is_refused_as_such(target: int) -> None:
    model = model_of([split(["x", "lengths"], "ab")], outputs_of("ab"), [held("lengths", [1, 2])])
    with pytest.raises(splitgraph.ConversionError) as raised:
        convert(model, target)
    assert {found.location for found in raised.value.diagnostics} == {"main/split"}
    assert {"SG204", "SG407"} == {found.code for found in raised.value.diagnostics}


# Left alone ----------------------------------------------------------------------------------------------------------


def test_a_model_without_operators_of_onnx_stays_as_it_is() -> None:
    node = helper.make_node("Split", ["x"], ["y"], domain="com.example")
    model = model_of([node], outputs_of("y"), domains=["com.example"])
    del model.opset_import[0]
    assert splitgraph.upgrade(model, 18).model == model


def test_a_function_that_is_called_split_is_no_split() -> None:
    body = [helper.make_node("Neg", ["v"], ["p"]), helper.make_node("Abs", ["v"], ["q"])]
    function = helper.make_function("", "Split", ["v"], ["p", "q"], body, [helper.make_opsetid("", 13)])
    model = model_of(
        [helper.make_node("Split", ["x"], ["a", "b"], name="call")], outputs_of("ab"), functions=[function]
    )
    assert splitgraph.infer(model).splits == ()
    assert splitgraph.convert(model, "split").model == model


@pytest.mark.parametrize(
    ("name", "opset", "target"), [("Split", 13, 18), ("Softmax", 12, 13), ("Gelu", 20, 18), ("Gelu", 18, 20)]
)
def test_a_function_with_the_name_of_an_operator_is_refused(name: str, opset: int, target: int) -> None:
    function = helper.make_function(
        "", name, ["v"], ["p"], [helper.make_node("Neg", ["v"], ["p"])], [helper.make_opsetid("", opset)]
    )
    nodes = [helper.make_node(name, ["x"], ["y"])]
    model = model_of(nodes, outputs_of("y"), functions=[function], opset=opset)
    with pytest.raises(splitgraph.ConversionError) as raised:
        convert(model, target)
    assert [(found.code, found.location) for found in raised.value.diagnostics] == [("SG409", f"::{name}")]
    assert convert(model, opset).graph == model.graph


def test_a_function_with_the_name_of_an_operator_that_stays_is_kept() -> None:
    body = [helper.make_node("Neg", ["v"], ["p"])]
    function = helper.make_function("", "Relu", ["v"], ["p"], body, [helper.make_opsetid("", 17)])
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], outputs_of("y"), functions=[function], opset=17)
    made = convert(model, 18)
    assert made.graph == model.graph
    assert made.functions[0].node == function.node


def test_what_was_unused_before_stays() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["nobody"], name="unused"), split(["x", "lengths"], "ab")]
    model = model_of(nodes, outputs_of("ab"), [held("lengths", [2, 4]), held("spare", [1])])
    converted = convert(model, 11)
    assert [node.name for node in converted.graph.node] == ["unused", "split"]
    assert initializers(converted) == ["spare"]


def test_lengths_that_something_else_reads_stay() -> None:
    nodes = [split(["x", "lengths"], "ab"), helper.make_node("Identity", ["lengths"], ["y"])]
    model = model_of(nodes, [*outputs_of("ab"), value("y", [2], TensorProto.INT64)], [held("lengths", [2, 4])])
    converted = convert(model, 11)
    assert initializers(converted) == ["lengths"]
    assert_same(model, converted)


def test_lengths_that_are_an_output_stay() -> None:
    constant = helper.make_node("Constant", [], ["lengths"], value=held("", [2, 4]))
    model = model_of(
        [constant, split(["x", "lengths"], "ab")], [*outputs_of("ab"), value("lengths", [2], TensorProto.INT64)]
    )
    converted = convert(model, 11)
    assert [node.op_type for node in converted.graph.node] == ["Constant", "Split"]
    assert_same(model, converted)


def test_lengths_that_a_branch_reads_stay() -> None:
    branches = [
        helper.make_graph(
            [helper.make_node("Identity", ["lengths"], [name])], name, [], [value(name, [2], TensorProto.INT64)]
        )
        for name in ("t", "e")
    ]
    nodes = [
        split(["x", "lengths"], "ab"),
        helper.make_node("If", ["yes"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    constants = [held("lengths", [2, 4]), held("yes", True, np.bool_)]
    model = model_of(nodes, [*outputs_of("ab"), value("y", [2], TensorProto.INT64)], constants)
    converted = convert(model, 11)
    assert initializers(converted) == ["lengths", "yes"]
    assert_same(model, converted)


# Taken along ---------------------------------------------------------------------------------------------------------


def test_lengths_of_two_splits_go_with_the_last() -> None:
    nodes = [split(["x", "lengths"], "ab", "one"), split(["x", "lengths"], "cd", "two")]
    model = model_of(nodes, outputs_of("abcd"), [held("lengths", [2, 4])])
    model.graph.value_info.append(value("lengths", [2], TensorProto.INT64))
    converted = convert(model, 11)
    assert initializers(converted) == []
    assert list(converted.graph.value_info) == []
    assert_same(model, converted)


def test_nodes_that_only_computed_lengths_go() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["dim"]),
        helper.make_node("Div", ["dim", "three"], ["third"]),
        helper.make_node("Sub", ["dim", "third"], ["rest"]),
        helper.make_node("Concat", ["third", "rest"], ["lengths"], axis=0),
        split(["x", "lengths"], "ab"),
    ]
    model = model_of(nodes, outputs_of("ab"), [held("three", [3])])
    converted = convert(model, 11)
    assert [node.op_type for node in converted.graph.node] == ["Split"]
    assert initializers(converted) == []
    assert_same(model, converted)


def test_a_split_that_only_computed_lengths_goes() -> None:
    nodes = [
        split(["sizes"], ["first", "second"], "of_sizes"),
        helper.make_node("Concat", ["second", "first"], ["lengths"], axis=0),
        split(["x", "lengths"], "ab"),
    ]
    model = model_of(nodes, outputs_of("ab"), [held("sizes", [2, 4])])
    for target in (11, 2):
        converted = convert(model, target)
        assert [node.name for node in converted.graph.node] == ["split"]
        assert initializers(converted) == []
        assert_same(model, converted)


# New names -----------------------------------------------------------------------------------------------------------

TAKEN = [
    f"split_{hint}" for hint in ("lengths", "size", "dim", "shape", "axis", "parts", "ones", "start", "bound", "ends")
]


def busy_branch(name: str, number: int) -> GraphProto:
    """A branch that uses every name that a rewrite of `split` would like to use, for values and nodes."""
    chosen = [f"{taken}{suffix}" for taken in TAKEN for suffix in ("", "_node")][number::2]
    nodes = [helper.make_node("Identity", ["x"], [taken], name=taken) for taken in chosen]
    nodes.append(helper.make_node("Sum", chosen, [name], name=f"sum_{name}"))
    return helper.make_graph(nodes, name, [], [value(name, ["N"])])


@pytest.mark.parametrize("target", [11, 13])
def test_new_names_are_new_in_every_scope(target: int) -> None:
    nodes = [
        split(["x"], "abc", num_outputs=3),
        helper.make_node(
            "If", ["yes"], ["y"], name="if", then_branch=busy_branch("t", 0), else_branch=busy_branch("e", 1)
        ),
        helper.make_node("Neg", ["a"], ["n"], name="split_part1"),
    ]
    model = model_of(nodes, outputs_of("abcyn"), [held("yes", True, np.bool_)], opset=18, shape=("N",))
    converted = convert(model, target)
    values, names = set(), []
    for graph in [
        converted.graph,
        *(attribute.g for node in converted.graph.node for attribute in node.attribute if attribute.HasField("g")),
    ]:
        names += [node.name for node in graph.node]
        defined = [*initializers(converted)] if graph is converted.graph else []
        defined += [name for node in graph.node for name in node.output]
        assert values.isdisjoint(defined)
        values.update(defined)
    assert len(names) == len(set(names))
    assert_same(model, converted, 6, 7)


@pytest.mark.parametrize("named", ["mean_axes", "mean_axes_1", "n"])
def test_a_new_constant_may_be_called_as_a_node_is(named: str) -> None:
    # Names of nodes are apart from those of values (namespaces in ONNX's IR.md).
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["y"], name="mean", axes=[0]),
        helper.make_node("Relu", ["y"], ["z"], name=named),
    ]
    converted = convert(model_of(nodes, outputs_of("z"), opset=17, shape=("N",)), 18)
    assert [*initializers(converted)] == ["mean_axes"]
    assert [node.name for node in converted.graph.node] == ["mean", named]


def test_a_new_node_is_never_called_as_another_is() -> None:
    def names(relu: str) -> list[str]:
        nodes = [
            helper.make_node("Relu", ["x"], ["y"], name=relu),
            helper.make_node("Mish", ["y"], ["z"], name="mish"),
        ]
        return [node.name for node in convert(model_of(nodes, outputs_of("z"), opset=18, shape=("N",)), 13).graph.node]

    made = names("relu")[1:]
    assert len(set(made)) == len(made) > 1
    for taken in {*made} - {"mish"}:
        given = names(taken)
        assert given[0] == taken and len(set(given)) == len(given)


def test_splits_without_names_get_distinct_helpers() -> None:
    nodes = [split(["x"], "ab", "", num_outputs=2), split(["x"], "cd", "", num_outputs=2)]
    model = model_of(nodes, outputs_of("abcd"), opset=18, shape=("N",))
    converted = convert(model, 13)
    assert_same(model, converted, 6, 7)
    assert sorted(node.name for node in converted.graph.node if node.op_type == "Split") == ["", ""]


# Versions ------------------------------------------------------------------------------------------------------------


def test_the_alias_of_the_domain_stays_as_it_is_spelled() -> None:
    model = model_of([split(["x"], "ab")], outputs_of("ab"))
    model.opset_import[0].domain = "ai.onnx"
    model.graph.node[0].domain = "ai.onnx"
    converted = convert(model, 18)
    assert [(entry.domain, entry.version) for entry in converted.opset_import] == [("ai.onnx", 18)]
    assert converted.graph.node[0].domain == "ai.onnx"
    # onnx's checker does not know the alias.
    assert_equal(model, converted)


@pytest.mark.parametrize(("target", "lowest"), [(18, 8), (21, 10), (24, 12)])
def test_the_ir_version_goes_up_where_it_must_and_down_only_with_the_opset(target: int, lowest: int) -> None:
    model = model_of([split(["x"], "ab")], outputs_of("ab"))
    assert convert(model, target).ir_version == max(8, lowest)
    model.ir_version = 12
    assert convert(model, target).ir_version == 12
    assert convert(model, 11).ir_version == 6


def test_functions_of_another_opset_come_along() -> None:
    body = [split(["v"], "pq", "inner", split=[2, 4])]
    function = helper.make_function("local", "Cut", ["v"], ["p", "q"], body, [helper.make_opsetid("", 11)])
    unused = helper.make_function("local", "Unused", ["v"], ["p", "q"], body, [helper.make_opsetid("", 11)])
    call = helper.make_node("Cut", ["x"], ["a", "b"], domain="local")
    model = model_of([call], outputs_of("ab"), functions=[function, unused], domains=["local"])
    converted = convert(model, 18)
    for made in converted.functions:
        assert made.opset_import[0].version == 18
        assert [node.op_type for node in made.node] == ["Constant", "Split"]
    assert_same(model, converted)


def test_new_nodes_take_the_name_of_no_other_node() -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], name="s", axis=0, num_outputs=2),
        helper.make_node("Relu", ["a"], ["y"], name="s_shape_node"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "b")]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    names = [node.name for node in splitgraph.downgrade(model, 13).model.graph.node]
    assert len(set(names)) == len(names)
    assert {"s", "s_shape_node", "s_shape_node_1"} <= set(names)
