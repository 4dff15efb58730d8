"""Text that is not UTF-8 is found wherever it stands, in a small file and in one that is not parsed twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, helper, numpy_helper

import splitgraph
from splitgraph.formats import broken_text, load, onnx_file
from splitgraph.formats.broken_text import find_broken_text

MARK = "marked"


def model() -> ModelProto:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["i"], name="inner")],
        "branch",
        [],
        [helper.make_empty_tensor_value_info("i")],
    )
    nodes = [
        helper.make_node(
            "Constant", [], ["c"], name="constant", value=numpy_helper.from_array(np.ones(3, np.float32), "t")
        ),
        helper.make_node(
            "Constant", [], ["l"], name="large", value=numpy_helper.from_array(np.zeros(9999, np.float32), "large t")
        ),
        helper.make_node("Add", ["x", "c"], ["y"], name="add", doc_string="documentation"),
        helper.make_node("If", ["b"], ["z"], name="if", then_branch=inner, else_branch=inner),
        helper.make_node("Cut", ["y"], ["f"], name="call", domain="local"),
    ]
    function = helper.make_function(
        "local",
        "Cut",
        ["a"],
        ["r"],
        [helper.make_node("Relu", ["a"], ["r"], name="relu")],
        [helper.make_opsetid("", 18)],
    )
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info(name, 1, ["N"]) for name in ("x", "b")],
        [helper.make_tensor_value_info("y", 1, ["N"])],
        [numpy_helper.from_array(np.arange(4), "held")],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)


def _attribute(made: ModelProto) -> AttributeProto:
    return made.graph.node[0].attribute[0]


# What sets a text of the model to MARK, and the field that is named.
TEXTS: dict[str, tuple[Callable[[ModelProto], object], str]] = {
    "producer": (lambda m: setattr(m, "producer_name", MARK), "ModelProto.producer_name"),
    "graph": (lambda m: setattr(m.graph, "name", MARK), "GraphProto.name"),
    "node": (lambda m: setattr(m.graph.node[2], "name", MARK), "NodeProto.name"),
    "operator": (lambda m: setattr(m.graph.node[2], "op_type", MARK), "NodeProto.op_type"),
    "domain": (lambda m: setattr(m.graph.node[2], "domain", MARK), "NodeProto.domain"),
    "documentation": (lambda m: setattr(m.graph.node[2], "doc_string", MARK), "NodeProto.doc_string"),
    "input": (lambda m: m.graph.node[2].input.append(MARK), "NodeProto.input"),
    "output": (lambda m: m.graph.node[0].output.append(MARK), "NodeProto.output"),
    "metadata": (lambda m: m.graph.node[2].metadata_props.add(key=MARK), "StringStringEntryProto.key"),
    "attribute": (lambda m: setattr(_attribute(m), "name", MARK), "AttributeProto.name"),
    "reference": (lambda m: setattr(_attribute(m), "ref_attr_name", MARK), "AttributeProto.ref_attr_name"),
    "tensor in a node": (lambda m: setattr(_attribute(m).t, "name", MARK), "TensorProto.name or doc_string"),
    "large tensor in a node": (
        lambda m: setattr(m.graph.node[1].attribute[0].t, "doc_string", MARK),
        "TensorProto.name or doc_string",
    ),
    "node with a large tensor": (lambda m: setattr(m.graph.node[1], "name", MARK), "NodeProto.name"),
    "one of many tensors in a node": (
        lambda m: m.graph.node[2].attribute.add(name="many").tensors.add(name=MARK),
        "TensorProto.name or doc_string",
    ),
    "node in a branch": (lambda m: setattr(m.graph.node[3].attribute[0].g.node[0], "name", MARK), "NodeProto.name"),
    "initializer": (lambda m: setattr(m.graph.initializer[0], "name", MARK), "TensorProto.name or doc_string"),
    "metadata of an initializer": (
        lambda m: m.graph.initializer[0].metadata_props.add(value=MARK),
        "StringStringEntryProto.value",
    ),
    "external data": (
        lambda m: m.graph.initializer[0].external_data.add(key=MARK),
        "StringStringEntryProto.key",
    ),
    "dimension": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", MARK),
        "Dimension.dim_param",
    ),
    "function": (lambda m: setattr(m.functions[0], "name", MARK), "FunctionProto.name"),
    "node of a function": (lambda m: setattr(m.functions[0].node[0], "name", MARK), "NodeProto.name"),
}


@pytest.fixture(params=["small", "large", "large with many nodes"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "small":
        monkeypatch.setattr(broken_text, "_MOST_PARSED_TWICE", 0)
        monkeypatch.setattr(onnx_file, "_BYTES_FOR_A_NODE", 0 if request.param == "large" else 2**20)
    return str(request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize(("write", "field"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_not_utf8_is_refused(write: Callable[[ModelProto], object], field: str, tmp_path: Path) -> None:
    made = model()
    write(made)
    content = made.SerializeToString()
    assert content.count(MARK.encode()) == 1
    (tmp_path / "m.onnx").write_bytes(content.replace(MARK.encode(), b"m\xff\xfeked"))
    with pytest.raises(splitgraph.SplitgraphError) as caught:
        load(tmp_path / "m.onnx")
    [found] = caught.value.diagnostics
    assert found.code == "SG111" and f"({field})" in found.message


VERBS: dict[str, Callable[[ModelProto, Path], object]] = {
    "infer": lambda m, _: splitgraph.infer(m),
    "upgrade": lambda m, _: splitgraph.upgrade(m, 21),
    "downgrade": lambda m, _: splitgraph.downgrade(m, 13),
    "convert": lambda m, _: splitgraph.convert(m, "split"),
    "verify": lambda m, _: splitgraph.verify(model(), m),
    "save": lambda m, path: splitgraph.save(m, path),
}


@pytest.mark.parametrize("at_once", [0, 2**20])
@pytest.mark.parametrize("most", [0, 8 * 2**20])
@pytest.mark.parametrize(("write", "field"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_not_utf8_is_refused_in_memory(
    write: Callable[[ModelProto], object],
    field: str,
    at_once: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broken_text, "_PARSED_AT_ONCE", at_once)
    monkeypatch.setattr(broken_text, "_MOST_PARSED_TWICE", most)
    assert broken_text.find_broken_text_in_memory(model()) is None
    made = model()
    write(made)
    broken = ModelProto.FromString(made.SerializeToString().replace(MARK.encode(), b"m\xff\xfeked"))
    for verb in VERBS.values():
        with pytest.raises(splitgraph.ModelError) as caught:
            verb(broken, tmp_path / "m.onnx")
        [found] = caught.value.diagnostics
        assert found.code == "SG111" and f"({field})" in found.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("text", ["plain", "größe", "日本", "\U0001f600", ""])
def test_any_utf8_is_read(text: str, tmp_path: Path) -> None:
    made = model()
    for node in made.graph.node:
        node.name = node.doc_string = text
    made.graph.node[0].attribute[0].t.name = text
    onnx.save(made, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx") == made


def test_bytes_may_be_anything() -> None:
    node = NodeProto(op_type="Custom", attribute=[AttributeProto(name="a", type=AttributeProto.STRING, s=b"\xff")])
    tensor = onnx.TensorProto(data_type=8, dims=[1], string_data=[b"\xfe"], raw_data=b"\xff")
    node.attribute.add(name="t", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
    assert find_broken_text(ModelProto(graph=onnx.GraphProto(node=[node]))) is None
