"""The data of a model's page: its graphs, splits and findings, each at its node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from growing_models import FAMILIES
from onnx import TensorProto, helper

import splitgraph
from splitgraph.reports.html.model_data import model_data

from .pages import split_model

MODELS = Path(__file__).parents[3] / "models"
EVERY_MODEL = [*sorted(path.name for path in MODELS.glob("*.onnx")), "interval_split.xml"]


def data_of(model: Any, name: str = "m.onnx") -> dict[str, Any]:
    return model_data(splitgraph.infer(model), name).document


def values(data: dict[str, Any], graph: int, kind: str) -> list[str]:
    held = data["graphs"][graph]
    return [held["values"][value] for value in held[kind]]


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_every_split_and_finding_is_at_a_node_of_its_name(name: str) -> None:
    data = data_of(MODELS / name)
    assert len(data["splits"]) == len(splitgraph.infer(MODELS / name).splits)
    for split in data["splits"]:
        graph, node = split["at"]
        held = data["graphs"][graph]
        assert held["names"][node] == split["name"] or split["name"].startswith(f"{split['op'].split('-')[0]}#")
        shown = [held["values"][value] if value >= 0 else "" for value in held["outs"][node]]
        assert shown == [output for output, _ in split["outputs"]]
        assert held["values"][held["ins"][node][0]] == split["input"][0]
    for finding in data["findings"]:
        assert finding["at"] is not None or "/" not in finding["loc"]


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_indices_are_in_their_tables(name: str) -> None:
    data = data_of(MODELS / name)
    for graph in data["graphs"]:
        known = range(-1, len(graph["values"]))
        assert len(graph["types"]) == len(graph["values"])
        assert all(0 <= index < len(data["types"]) for index in graph["types"])
        assert all(0 <= index < len(data["ops"]) for index in graph["ops"])
        assert all(value in known for held in (*graph["ins"], *graph["outs"]) for value in held)
        assert all(value in known for kind in ("consts", "inputs", "outputs") for value in graph[kind])
        assert len(graph["names"]) == len(graph["ops"]) == len(graph["ins"]) == len(graph["outs"])
    assert all(0 <= index < len(data["dims"]) for split in data["splits"] for index in split["lengths"])


def test_types_are_those_of_the_analysis() -> None:
    analysis = splitgraph.infer(MODELS / "gpt2.opset17.onnx")
    data = model_data(analysis, "gpt2").document
    main = data["graphs"][0]
    shown = dict(zip(main["values"], (data["types"][index] for index in main["types"]), strict=True))
    assert shown == {name: str(value) for name, value in analysis.types.items()}


def test_bodies_are_graphs_of_their_own() -> None:
    data = data_of(MODELS / "split_in_if.onnx")
    assert [graph["title"] for graph in data["graphs"]] == ["main", "choose · then_branch", "choose · else_branch"]
    assert [graph["parent"] for graph in data["graphs"]] == [None, (0, 1), (0, 1)]
    assert [split["at"][0] for split in data["splits"]] == [1, 2, 2]


def test_each_call_of_a_function_has_its_own_types() -> None:
    data = data_of(MODELS / "split_in_function.onnx")
    assert [graph["loc"] for graph in data["graphs"]] == ["main", "main/gate_channels", "main/gate_sequence"]
    shown = [
        [data["types"][graph["types"][graph["values"].index("value")]] for graph in data["graphs"][1:]],
        [data["types"][split["outputs"][0][1]] for split in data["splits"]],
    ]
    assert shown[1] == ["float32[batch, seq, 4]", "float32[batch, (seq + 1)//2, 4]"]
    # A dimension that the walk of the call knows under a symbol of its own is left open there.
    assert [text.replace("?", "(seq + 1)//2") for text in shown[0]] == shown[1]


def test_a_function_without_splits_and_findings_is_not_opened() -> None:
    model = onnx.load(MODELS / "split_in_function.onnx")
    for function in model.functions:
        del function.node[:]
        function.node.append(helper.make_node("Relu", list(function.input[:1]), list(function.output), name="r"))
    assert [graph["loc"] for graph in data_of(model)["graphs"]] == ["main"]


@pytest.mark.parametrize(
    ("name", "kind", "op", "lengths"),
    [
        ("split13_initializer.onnx", "split", "Split-13", None),
        ("split_to_sequence11_each.onnx", "sequence", "SplitToSequence-11", ["1", "1", "1"]),
        ("string_split20.onnx", "string", "StringSplit-20", []),
        ("variadic_split_rest.onnx", "variadic", "VariadicSplit", ["1", "length - 3", "2"]),
    ],
)
def test_kinds_of_splits(name: str, kind: str, op: str, lengths: list[str] | None) -> None:
    data = data_of(MODELS / name)
    split = data["splits"][0]
    assert (split["kind"], split["op"]) == (kind, op)
    if lengths is not None:
        assert [data["dims"][index][0] for index in split["lengths"]] == lengths


@pytest.mark.parametrize("name", ["variadic_split_rest.onnx", "interval_split.xml"])
def test_the_rest_of_a_variadic_split_is_marked(name: str) -> None:
    assert [split.get("rest") for split in data_of(MODELS / name)["splits"]][:1] == [1]


def test_lengths_as_weights() -> None:
    data = data_of(split_model(shape=("N", "M")))
    [split] = data["splits"]
    assert [data["dims"][index] for index in split["lengths"]] == [["(M + 1)//2", 120], ["M//2", 120]]
    assert split.get("needs") is None


def test_conditions_are_listed_with_their_nodes() -> None:
    model = split_model(shape=("N", "M"))
    model.opset_import[0].version = 13
    del model.graph.node[1].attribute[1:]
    data = data_of(model)
    assert data["obligations"] == [["M % 2 == 0", ["main/s"]]]
    assert data["splits"][0]["needs"] == ["M % 2 == 0"]


def test_splits_of_one_name_are_at_different_nodes() -> None:
    nodes = [helper.make_node("Split", [f"x{i}"], [f"a{i}", f"x{i + 1}"], name="same", axis=0) for i in range(3)]
    nodes.insert(0, helper.make_node("Relu", ["x0"], ["unread"], name="same"))
    inputs, outputs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x0", "x3"))
    inputs.type.tensor_type.shape.dim.add(dim_value=8)
    graph = helper.make_graph(nodes, "g", [inputs], [outputs])
    data = data_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    assert [split["at"] for split in data["splits"]] == [(0, 1), (0, 2), (0, 3)]
    assert [split["input"][0] for split in data["splits"]] == ["x0", "x1", "x2"]


def test_a_finding_is_at_its_node() -> None:
    model = split_model(shape=("N", 7))
    model.opset_import[0].version = 13
    del model.graph.node[1].attribute[1:]
    [finding] = data_of(model)["findings"]
    assert (finding["code"], finding["severity"], finding["at"]) == ("SG206", "error", (0, 1))


def test_a_cycle_is_in_the_data() -> None:
    model = split_model()
    model.graph.node[0].input[0] = "a out"
    data = data_of(model)
    assert "SG102" in [finding["code"] for finding in data["findings"]]
    assert len(data["graphs"][0]["ops"]) == 4


def test_initializers_are_constants_and_omitted_values_have_no_name() -> None:
    model = split_model()
    model.graph.initializer.append(helper.make_tensor("low", TensorProto.FLOAT, [], [0.0]))
    model.graph.node.append(helper.make_node("Clip", ["a", "", "low"], ["clipped"], name="clip"))
    data = data_of(model)
    assert values(data, 0, "consts") == ["low"]
    assert data["graphs"][0]["ins"][-1][1] == -1


def test_the_data_of_a_large_model_is_small() -> None:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"r{i}") for i in range(2000)]
    inputs, outputs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("v0", "v2000"))
    model = helper.make_model(helper.make_graph(nodes, "g", [inputs], [outputs]), ir_version=8)
    data = data_of(model)
    assert len(data["types"]) == 2
    assert len(data["ops"]) == 1


@pytest.mark.parametrize("name", FAMILIES)
def test_models_with_large_dimensions(name: str) -> None:
    make, size = FAMILIES[name]
    data = data_of(make(size))
    assert len(data["graphs"][0]["ops"]) >= 1
    assert all(isinstance(weight, float) and weight >= 0 for _, weight in data["dims"])


def test_a_split_in_a_branch_of_a_called_function() -> None:
    split = helper.make_node("Split", ["v"], ["p", "q"], name="inner", axis=0)
    branches = [
        helper.make_graph([split], "then", [], [helper.make_tensor_value_info("p", TensorProto.FLOAT, None)]),
        helper.make_graph(
            [helper.make_node("Relu", ["v"], ["r"])], "else", [], [helper.make_tensor_value_info("r", 1, None)]
        ),
    ]
    choice = helper.make_node("If", ["c"], ["w"], name="choice", then_branch=branches[0], else_branch=branches[1])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Half", ["v", "c"], ["w"], [choice], opsets[:1])
    call = helper.make_node("Half", ["x", "flag"], ["y"], name="call", domain="own")
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [8]),
        helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph([call], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    data = data_of(helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function]))
    [found] = data["splits"]
    assert found["loc"] == "main/call/choice/then_branch/inner"
    assert data["graphs"][found["at"][0]]["title"] == "choice · then_branch"
    assert [data["graphs"][number]["parent"] for number in range(4)] == [None, (0, 0), (1, 0), (1, 0)]
