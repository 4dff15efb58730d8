"""A conversion changes the nodes that must change, the opset imports and, where it must, the IR version: every other
byte stays, those of fields that this protobuf schema does not know as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known, known_pairs
from onnx import TensorProto, helper, numpy_helper

import splitgraph

# A field of number 5000 that holds the bytes "kept": no message of ONNX has it.
UNKNOWN = bytes([0xC2, 0xB8, 0x02, 0x04]) + b"kept"
KEPT_PAIRS = known_pairs([(13, 14), (14, 17), (13, 17), (17, 13), (21, 22), (22, 21), (24, 26)])


def described(message: Any, label: str) -> Any:
    """The message with documentation, metadata and an unknown field, as far as it can have them."""
    names = {field.name for field in message.DESCRIPTOR.fields}
    if "doc_string" in names:
        message.doc_string = f"about {label}"
    if "metadata_props" in names:
        message.metadata_props.add(key=f"key of {label}", value="a value")
    message.MergeFromString(UNKNOWN)
    return message


def tensor(name: str, values: Any, dtype: Any = np.float32) -> TensorProto:
    return described(numpy_helper.from_array(np.asarray(values, dtype), name), name)


def value(name: str, shape: list[Any], elem_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return described(helper.make_tensor_value_info(name, elem_type, shape), name)


def branch(label: str) -> onnx.GraphProto:
    node = described(helper.make_node("Neg", ["a"], [f"{label}_out"], f"neg_{label}"), label)
    graph = helper.make_graph([node], label, [], [value(f"{label}_out", ["N", 6])], [tensor(f"{label}_unused", [1])])
    return described(graph, f"branch {label}")


def function() -> onnx.FunctionProto:
    node = described(helper.make_node("Relu", ["v"], ["w"], "inner"), "inner")
    made = helper.make_function("local", "Twice", ["v"], ["w"], [node], [helper.make_opsetid("", 1)], attributes=["k"])
    made.value_info.append(value("w", ["N", 6]))
    return described(made, "function")


def rich_model(opset: int, extra: list[onnx.NodeProto] | None = None) -> onnx.ModelProto:
    """One of everything that a model can hold; its nodes are the same operators at every opset from 9 on."""
    nodes = [
        helper.make_node("Twice", ["x"], ["a"], "call", domain="local"),
        helper.make_node("Add", ["a", "bias"], ["b"], "add"),
        helper.make_node("If", ["condition"], ["c"], "choice", then_branch=branch("then"), else_branch=branch("else")),
        helper.make_node("Scale", ["c"], ["d"], "foreign", domain="com.example", how="much"),
        helper.make_node("Mul", ["b", "d"], ["y"], ""),
    ]
    for index, node in enumerate([*nodes, *(extra or [])]):
        described(node, f"node {index}")
    sparse = helper.make_sparse_tensor(tensor("sparse", [1, 2]), tensor("", [0, 3], np.int64), [6])
    graph = helper.make_graph(
        [*nodes, *(extra or [])],
        "main",
        [value("x", ["N", 6]), value("condition", [], TensorProto.BOOL), value("bias", [6])],
        [value("y", ["N", 6])],
        [tensor("unused 2", [2.0]), tensor("bias", [0.5] * 6), tensor("unused 1", [[1]], np.int8)],
        value_info=[value("b", ["N", 6]), value("a", ["N", 6]), value("not a value", [3])],
        sparse_initializer=[described(sparse, "sparse")],
    )
    described(graph, "graph")
    note = graph.quantization_annotation.add(tensor_name="a")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="bias")
    described(note, "annotation")
    imports = [("com.example", 3), ("", opset), ("unused.domain", 7), ("local", 1)]
    model = helper.make_model(
        graph,
        opset_imports=[described(helper.make_opsetid(*entry), entry[0]) for entry in imports],
        producer_name="a producer",
        producer_version="0.1",
        domain="org.example",
        model_version=42,
        ir_version=13,
        functions=[function()],
    )
    model.functions[0].opset_import[0].version = opset
    model.configuration.add(name="two devices", num_devices=2)
    # A training step without nodes has nothing to convert.
    training = model.training_info.add()
    training.initialization_binding.add(key="bias", value="unused 2")
    training.initialization.name = "start"
    described(training, "training")
    return described(model, "model")


def at_opset(model: onnx.ModelProto, opset: int, ir_version: int) -> onnx.ModelProto:
    """A copy whose imports of ai.onnx say another opset."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = ir_version
    for imports in (copy.opset_import, *(held.opset_import for held in copy.functions)):
        for entry in imports:
            if entry.domain == "":
                entry.version = opset
    return copy


def upgrade_or_downgrade(model: onnx.ModelProto, source: int, target: int) -> onnx.ModelProto:
    return (splitgraph.upgrade if target > source else splitgraph.downgrade)(model, target, ir_version="keep").model


def test_the_model_holds_what_it_should() -> None:
    model = rich_model(13)
    assert model.SerializeToString().count(b"kept") > 30
    assert {field.name for field, _ in model.ListFields()} == {field.name for field in model.DESCRIPTOR.fields}
    assert {field.name for field, _ in model.graph.ListFields()} == {f.name for f in model.graph.DESCRIPTOR.fields}


@pytest.mark.parametrize(("source", "target"), KEPT_PAIRS)
def test_a_model_of_kept_nodes_keeps_every_byte(source: int, target: int) -> None:
    model = rich_model(source)
    converted = upgrade_or_downgrade(model, source, target)
    assert converted.ir_version == 13
    assert converted.SerializeToString() == at_opset(model, target, 13).SerializeToString()


@pytest.mark.parametrize(("source", "target"), KEPT_PAIRS[:4])
def test_a_file_keeps_every_byte(tmp_path: Path, source: int, target: int) -> None:
    model = rich_model(source)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    converted = upgrade_or_downgrade(splitgraph.load(tmp_path / "model.onnx"), source, target)
    splitgraph.save(converted, tmp_path / "converted.onnx")
    assert (tmp_path / "converted.onnx").read_bytes() == at_opset(model, target, 13).SerializeToString()


def test_beside_changed_nodes_all_else_is_kept() -> None:
    unsqueeze = helper.make_node("Unsqueeze", ["y"], ["wide"], "unsqueeze", axes=[0])
    softmax = helper.make_node("Softmax", ["wide"], ["soft"], "softmax", axis=1)
    model = rich_model(12, [unsqueeze, softmax])
    converted = splitgraph.upgrade(model, 13).model
    before, after = at_opset(model, 13, 13), onnx.ModelProto()
    after.CopyFrom(converted)
    names = [node.name for node in model.graph.node]
    kept = [node for node in after.graph.node if node.name in names]
    # The Unsqueeze is edited; what the Softmax became has its name, its output and its documentation.
    assert [node.name for node in kept] == names
    for old, new in zip(before.graph.node, kept, strict=True):
        if old.op_type not in ("Unsqueeze", "Softmax"):
            assert old.SerializeToString() == new.SerializeToString()
        else:
            assert (old.doc_string, old.metadata_props) == (new.doc_string, new.metadata_props)
            assert b"kept" in new.SerializeToString()
    count = len(model.graph.initializer)
    assert list(converted.graph.initializer)[:count] == list(model.graph.initializer)
    for copy in (before, after):
        del copy.graph.node[:]
        del copy.graph.initializer[count:]
    assert before.SerializeToString() == after.SerializeToString()


def test_what_a_quantization_annotation_names_is_kept() -> None:
    """Also where the only node that read it takes an attribute instead."""
    nodes = [helper.make_node("Clip", ["x", "low", "high"], ["y"])]
    bounds = [numpy_helper.from_array(np.float32(bound), name) for name, bound in (("low", -1), ("high", 1))]
    graph = helper.make_graph(nodes, "g", [value("x", ["N"])], [value("y", ["N"])], bounds)
    note = graph.quantization_annotation.add(tensor_name="y")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="high")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    after = splitgraph.downgrade(model, 10).model.graph
    assert [tensor.name for tensor in after.initializer] == ["high"]
    assert after.quantization_annotation == graph.quantization_annotation


@pytest.mark.parametrize("ir_version", [3, 4, 8, 13])
@pytest.mark.parametrize("target", known([13, 18, 21, 24]))
def test_the_ir_version_is_raised_only_where_the_opset_needs_it(ir_version: int, target: int) -> None:
    initializer = numpy_helper.from_array(np.ones(3, np.float32), "w")
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "w")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", inputs, [inputs[0]], [initializer])
    graph.output[0].name = "y"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=ir_version)
    needed = {13: 7, 18: 8, 21: 10, 24: 12}[target]
    up = splitgraph.upgrade(model, target).model
    assert up.ir_version == max(ir_version, needed)
    # Only from IR version 4 on may a caller override the default of w, and 3 came with opset 8.
    assert splitgraph.downgrade(up, 8).model.ir_version == 4
    assert splitgraph.downgrade(up, 8, ir_version="keep").model.ir_version == up.ir_version
    assert splitgraph.downgrade(model, 7).model.ir_version == min(ir_version, 4)


def names_in(graph: Any) -> Iterator[str]:
    """The values that a graph and the graphs in it define."""
    if isinstance(graph, onnx.GraphProto):
        yield from {*(item.name for item in graph.input), *(item.name for item in graph.initializer)}
    else:
        yield from graph.input
    for node in graph.node:
        yield from filter(None, node.output)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from names_in(attribute.g)


def test_what_a_function_declares_of_no_value_is_of_no_new_one() -> None:
    body = [helper.make_node("Unsqueeze", ["v"], ["w"], "u", axes=[0])]
    local = helper.make_function("local", "F", ["v"], ["w"], body, [helper.make_opsetid("", 12)])
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="local")], "g", [value("x", [2])], [value("y", [1, 2])]
    )
    imports = [helper.make_opsetid("", 12), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[local], ir_version=10)
    new = set(names_in(splitgraph.upgrade(model, 13).model.functions[0])) - {"v", "w"}
    assert new
    model.functions[0].value_info.extend(value(name, [7, 7]) for name in new)
    assert new.isdisjoint(names_in(splitgraph.upgrade(model, 13).model.functions[0]))


def test_new_names_are_new_in_every_scope() -> None:
    """What a conversion would call its constants is taken, each name in another scope."""

    def squeeze(source: str, result: str) -> onnx.NodeProto:
        return helper.make_node("Unsqueeze", [source], [result], "u", axes=[0])

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    free = names_of_constants()
    then = helper.make_graph(
        [squeeze("x", "t"), helper.make_node("Identity", ["x"], [free[0]])],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 2])],
    )
    other = helper.make_graph(
        [squeeze("x", "e")], "else", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, [1, 2])]
    )
    body = [squeeze("v", "w"), helper.make_node("Identity", ["v"], [free[0]])]
    local = helper.make_function("local", "F", ["v"], ["w"], body, [helper.make_opsetid("", 12)])
    nodes = [
        squeeze("x", "a"),
        helper.make_node("If", ["c"], ["b"], then_branch=then, else_branch=other),
        helper.make_node("F", ["x"], ["d"], domain="local"),
        helper.make_node("Sum", ["a", "b", "d"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [x, helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(np.zeros(1, np.float32), free[1])],
    )
    imports = [helper.make_opsetid("", 12), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=[local], ir_version=8)
    converted = splitgraph.upgrade(model, 13).model
    onnx.checker.check_model(converted, full_check=True)
    old = {*names_in(model.graph), *names_in(model.functions[0])}
    for root in (converted.graph, converted.functions[0]):
        counted = Counter(names_in(root))
        assert [name for name, count in counted.items() if count > 1] == []
    made = Counter([*names_in(converted.graph), *names_in(converted.functions[0])])
    assert all(count == 1 for name, count in made.items() if name not in old)
    assert len([name for name in made if name not in old]) >= 3


def names_of_constants() -> list[str]:
    """What the conversion calls the axes of an Unsqueeze named u where nothing is taken, and what it would try next."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])
    graph = helper.make_graph([helper.make_node("Unsqueeze", ["x"], ["y"], "u", axes=[0])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    (made,) = splitgraph.upgrade(model, 13).model.graph.initializer
    return [made.name, f"{made.name}_1"]
