"""The data of a model's page: its graphs, splits and findings, each at its node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from growing_models import FAMILIES
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.model.tensor_data import SourceFile
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
    assert data["obligations"] == [["M % 2 == 0", ["main/s"], 0]]
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


def elements_of(data: dict[str, Any], name: str) -> list[str]:
    """What the page shows of a constant of the main graph."""
    main = data["graphs"][0]
    known = dict(main["elements"])
    return list(data["elements"][known[main["values"].index(name)]])


def with_constant(tensor: onnx.TensorProto) -> onnx.ModelProto:
    model = split_model()
    tensor.name = "w"
    model.graph.initializer.append(tensor)
    model.graph.node.append(helper.make_node("Identity", ["w"], ["w out"], name="reader"))
    return model


@pytest.mark.parametrize(
    ("tensor", "first", "limits"),
    [
        (numpy_helper.from_array(np.array(3, np.int64)), "3", ""),
        (numpy_helper.from_array(np.array([1.5, -2], np.float32)), "[1.5, -2]", ""),
        (numpy_helper.from_array(np.zeros((0, 3), np.float32)), "[]", ""),
        (numpy_helper.from_array(np.arange(17, dtype=np.int32)), "[0, 1, 2, 3, 4, … (17 in all)]", "0 … 16"),
        (
            numpy_helper.from_array(np.arange(3000, dtype=np.float32).reshape(3, 1000)),
            "[0, 1, 2, 3, 4, … (3,000 in all)]",
            "0 … 1023 in the first 1,024",
        ),
        (numpy_helper.from_array(np.ones(20, np.float16)), "[1, 1, 1, 1, 1, … (20 in all)]", "all 1"),
        (
            numpy_helper.from_array(np.array([np.nan, *range(19)], np.float64)),
            "[nan, 0, 1, 2, 3, … (20 in all)]",
            "0 … 18 and NaN",
        ),
        (
            helper.make_tensor("", TensorProto.INT64, [600], range(600)),
            "[0, 1, 2, 3, 4, … (600 in all)]",
            "0 … 511 in the first 512",
        ),
        (
            helper.make_tensor("", TensorProto.STRING, [2], [b"a", b"b" * 70]),
            f'["a", "{"b" * 60}… (70 characters)"]',
            "",
        ),
        (helper.make_tensor("", TensorProto.INT4, [3], [1, -2, 3]), "[1, -2, 3]", ""),
        (helper.make_tensor("", TensorProto.BFLOAT16, [2], [1, 2]), "[1, 2]", ""),
        (TensorProto(data_type=TensorProto.FLOAT, dims=[4]), "", "it has no elements in the file"),
        (TensorProto(data_type=TensorProto.COMPLEX64, dims=[1], raw_data=bytes(8)), "", ""),
    ],
)
def test_what_is_shown_of_a_constant(tensor: onnx.TensorProto, first: str, limits: str) -> None:
    assert elements_of(data_of(with_constant(tensor)), "w") == [first, limits]


@pytest.mark.parametrize("is_typed", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "float32", "float16", "int32"])
def test_constants_in_files_are_shown_as_those_in_memory(dtype: str, is_typed: bool, tmp_path: Path) -> None:
    # Large enough that the weights stay in the file.
    values = (np.arange(600_000) % 900).astype(dtype)
    tensor = numpy_helper.from_array(values)
    if is_typed:
        tensor = helper.make_tensor("", tensor.data_type, values.shape, values)
    model = with_constant(tensor)
    onnx.save(model, tmp_path / "m.onnx")
    [in_memory, in_file] = [elements_of(data_of(each), "w") for each in (model, tmp_path / "m.onnx")]
    assert in_file[0] == in_memory[0] == "[0, 1, 2, 3, 4, … (600,000 in all)]"
    assert in_file[1].startswith("0 … ") and " in the first " in in_file[1]


@pytest.fixture
def external(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    model = with_constant(numpy_helper.from_array(np.arange(100_000, dtype=np.float32)))
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    return path


def test_a_few_kilobytes_of_each_data_file_are_read(external: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    read = SourceFile.read

    def recorded(self: SourceFile, start: int, length: int) -> bytes:
        lengths.append(length)
        return read(self, start, length)

    analysis = splitgraph.infer(external)
    monkeypatch.setattr(SourceFile, "read", recorded)
    data = model_data(analysis, "m").document
    assert elements_of(data, "w") == ["[0, 1, 2, 3, 4, … (100,000 in all)]", "0 … 1023 in the first 1,024"]
    assert lengths == [4096]


def test_the_page_says_why_elements_were_not_read(external: Path) -> None:
    analysis = splitgraph.infer(external)
    kept = onnx.load(external, load_external_data=False)
    (external.parent / "m.data").unlink()
    told = elements_of(model_data(analysis, "m").document, "w")
    assert told == ["", "not read: tensor 'w' is in m.data, which is missing"]
    told = elements_of(data_of(kept), "w")
    assert told == ["", "not read: it is in a data file, and the folder of a model in memory is not known"]


def test_attributes_of_nodes() -> None:
    data = data_of(split_model())
    main = data["graphs"][0]
    shown = [dict(data["attributes"][index]) if index >= 0 else {} for index in main["attrs"]]
    assert shown == [{}, {"axis": "1", "num_outputs": "2"}, {}, {}]


def test_a_constant_node_shows_its_tensor_as_a_value() -> None:
    model = split_model()
    tensor = numpy_helper.from_array(np.array([5, 7], np.int64))
    model.graph.node.append(helper.make_node("Constant", [], ["tensor"], value=tensor))
    model.graph.node.append(helper.make_node("Constant", [], ["ints"], value_ints=[5, 7]))
    data = data_of(model)
    assert elements_of(data, "tensor") == ["[5, 7]", ""]
    assert [data["attributes"][index] if index >= 0 else [] for index in data["graphs"][0]["attrs"][-2:]] == [
        [],
        [("value_ints", "[5, 7]")],
    ]


def test_constants_of_an_openvino_ir() -> None:
    data = data_of(MODELS / "interval_split.xml")
    assert ["[32, -1, 16]", ""] in [list(each) for each in data["elements"]]


def test_requirements_on_symbols_of_the_inputs_come_first() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"], name="places"),
        helper.make_node("Split", ["places"], ["p", "q"], name="halves", axis=1),
        helper.make_node("Split", ["x"], ["a", "b"], name="columns", axis=1),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "b")]
    graph = helper.make_graph(nodes, "g", [given], outputs)
    data = data_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    assert [(text, rank) for text, _, rank in data["obligations"]] == [("M % 2 == 0", 0), ("unk0 % 2 == 0", 2)]
    assert [(name, rank) for name, _, _, rank in data["symbols"]] == [("M", 0), ("N", 0), ("unk0", 2)]


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
