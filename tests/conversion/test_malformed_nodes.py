"""Nodes without inputs or outputs, attributes twice, names twice: each verb gives a finding or a SplitgraphError."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper

import splitgraph

VERBS: dict[str, Callable[[ModelProto], object]] = {
    "check": lambda given: splitgraph.check(given, "mnn"),
    "upgrade": lambda given: splitgraph.upgrade(given, 20),
    "downgrade": lambda given: splitgraph.downgrade(given, 9),
    "split": lambda given: splitgraph.convert(given, "split", explicit_lengths=True),
    "variadic-split": lambda given: splitgraph.convert(given, "variadic-split"),
    "slice": lambda given: splitgraph.convert(given, "slice"),
    "target": lambda given: splitgraph.convert(given, target="mnn"),
}
FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[NodeProto],
    opset: int = 13,
    dense: Sequence[TensorProto] = (),
    sparse: Sequence[SparseTensorProto] = (),
) -> ModelProto:
    graph = helper.make_graph(
        nodes, "g", [value("x")], [value("y")], initializer=[*dense, helper.make_tensor("c", 9, [], [1])]
    )
    graph.sparse_initializer.extend(sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name: str, kind: int = FLOAT, shape: Sequence[int] | None = (2, 6)) -> object:
    return helper.make_tensor_value_info(name, kind, shape)


def sparse_tensor(kind: int, dims: Sequence[int]) -> SparseTensorProto:
    return helper.make_sparse_tensor(helper.make_tensor("w", kind, [1], [1]), helper.make_tensor("", 7, [1], [0]), dims)


def of_two_definitions() -> Iterator[tuple[str, ModelProto]]:
    for op_type, kind, dense, sparse in (
        ("Add", FLOAT, 6, 3), ("Mul", 7, 3, 6), ("Max", FLOAT, 1, 6), ("Equal", 6, 6, 1), ("Neg", FLOAT, 6, 3),
    ):  # fmt: skip
        held = helper.make_tensor("w", kind, [dense], [1] * dense)
        inputs = ["w"] if op_type == "Neg" else ["w", "w"]
        nodes = [helper.make_node(op_type, inputs, ["y"])]
        yield f"dense and sparse, {op_type}", model(nodes, 13, [held], [sparse_tensor(kind, [sparse])])
    produced = [helper.make_node("Relu", ["x"], ["w"]), helper.make_node("Add", ["w", "w"], ["y"])]
    yield "an initializer and a node's output", model(produced, 13, [helper.make_tensor("w", FLOAT, [3], [1.0] * 3)])


def body(*op_types: str) -> GraphProto:
    nodes = [helper.make_node("Identity", ["going"], ["goes"])]
    names = ["v", *(f"v{index}" for index in range(1, len(op_types))), "w"]
    for op_type, given, made in zip(op_types, names[:-1], names[1:], strict=True):
        nodes.append(helper.make_node(op_type, [given], [made]))
    inputs, outputs = [value("i", 7, []), value("going", 9, []), value("v")], [value("goes", 9, []), value("w")]
    return helper.make_graph(nodes, "body", inputs, outputs)


def branch(*op_types: str) -> GraphProto:
    names = ["x", *(f"v{index}" for index in range(1, len(op_types))), "w"]
    nodes = [helper.make_node(each, [a], [b]) for each, a, b in zip(op_types, names[:-1], names[1:], strict=True)]
    return helper.make_graph(nodes, "branch", [], [value("w")])


def of_attributes_given_twice() -> Iterator[tuple[str, ModelProto]]:
    longer = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Split", ["r"], ["w", "s"], axis=1)],
        "longer", [], [value("w", shape=None)],
    )  # fmt: skip
    for first, second in ((branch("Neg"), longer), (longer, branch("Neg"))):
        node = helper.make_node("If", ["c"], ["y"], then_branch=first, else_branch=first)
        node.attribute.append(helper.make_attribute("then_branch", second))
        yield f"If, {len(first.node)} nodes first", model([node])
    for op_type, domain in (("Loop", ""), ("SequenceMap", ""), ("Foo", "my")):
        for again in (body("Neg"), body("Relu", "Softmax"), 3):
            node = helper.make_node(op_type, ["", "", "x"], ["y"], domain=domain, body=body("Relu", "Softmax", "Neg"))
            node.attribute.append(helper.make_attribute("body", again))
            given = model([node], 17)
            given.opset_import.add(domain="my", version=1)
            kind = "a number" if again == 3 else f"{len(again.node)} nodes"
            yield f"{op_type}, then {kind}", given


OPERATORS = [
    "Split",
    "SplitToSequence",
    "Slice",
    "Gather",
    "SequenceAt",
    "Concat",
    "ConcatFromSequence",
    "If",
    "Loop",
    "Scan",
    "Squeeze",
    "Scatter",
]


def of_missing_parts() -> Iterator[tuple[str, ModelProto]]:
    for index, op_type in enumerate(OPERATORS):
        for place, (inputs, outputs) in enumerate(((0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (5, 1))):
            opset = (1, 11, 18)[(index + place) % 3] if op_type != "Slice" else (1, 18)[place % 2]
            node = helper.make_node(op_type, ["x"] * inputs, ["y"] * outputs)
            yield f"{op_type}-{opset}, {inputs} inputs, {outputs} outputs", model([node], opset)
    for opset in (1, 11):
        for inputs, outputs in ((0, 0), (0, 1), (2, 0), (1, 1)):
            node = helper.make_node("Slice", ["x"] * inputs, ["y"] * outputs)
            yield f"Slice-{opset} more, {inputs} inputs, {outputs} outputs", model([node], opset)
    yield "Split-18, 1 inputs, 0 outputs", model([helper.make_node("Split", ["x"], [])], 18)


MODELS = dict([*of_two_definitions(), *of_attributes_given_twice(), *of_missing_parts()])


@pytest.mark.parametrize("name", MODELS)
def test_a_finding_or_a_documented_error(name: str) -> None:
    given = MODELS[name]
    before = given.SerializeToString()
    splitgraph.infer(given)
    for verb in VERBS.values():
        try:
            verb(given)
        except splitgraph.SplitgraphError as error:
            assert str(error)
    assert given.SerializeToString() == before


@pytest.mark.parametrize("name", [name for name, _ in (*of_two_definitions(), *of_attributes_given_twice())])
def test_what_is_there_twice_is_an_error(name: str) -> None:
    assert {found.code for found in splitgraph.infer(MODELS[name]).diagnostics if found.severity == "error"} & {
        "SG104",
        "SG212",
    }
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(MODELS[name], 20)
