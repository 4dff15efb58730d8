"""Models that are the same, however they are written."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from exported_models import one_of_each
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph import api, open_models
from splitgraph.formats import open_model

from .written import diff, model, unnamed

MODELS = Path(__file__).parents[2] / "models"
COMMITTED = sorted(path for path in MODELS.iterdir() if path.suffix in (".onnx", ".xml"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_a_model_and_itself(path: Path) -> None:
    found = splitgraph.diff(path, path)
    assert found.is_empty
    assert not found
    assert found.before_nodes == found.after_nodes > 0


def in_memory(path: Path) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    loaded = onnx.load(path)
    return loaded, copy.deepcopy(loaded)


def reorder(graph: onnx.GraphProto, seed: int) -> None:
    """Put the nodes into another topological order, and shuffle initializers, declarations and attributes."""
    generator = random.Random(seed)
    waiting, done, order = list(graph.node), set[str](), list[onnx.NodeProto]()
    produced = {name for node in graph.node for name in node.output}
    while waiting:
        ready = [node for node in waiting if not produced.intersection(reads(node)) - done]
        chosen = generator.choice(ready)
        waiting.remove(chosen)
        order.append(chosen)
        done.update(chosen.output)
    nodes = [copy.deepcopy(node) for node in order]
    del graph.node[:]
    graph.node.extend(nodes)
    for entries in (graph.initializer, graph.value_info, *(node.attribute for node in graph.node)):
        shuffled = [copy.deepcopy(entry) for entry in entries]
        generator.shuffle(shuffled)
        del entries[:]
        entries.extend(shuffled)


def reads(node: onnx.NodeProto) -> set[str]:
    names = set(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names.update(*(reads(inner) for inner in graph.node), (value.name for value in graph.output))
    return names


ONNX_FILES = [path for path in COMMITTED if path.suffix == ".onnx"]


@pytest.mark.parametrize("path", one_of_each(ONNX_FILES), ids=lambda path: path.name)
def test_another_order_of_nodes_initializers_and_attributes(path: Path) -> None:
    before, after = in_memory(path)
    reorder(after.graph, seed=1)
    assert not diff(before, after)
    assert not diff(after, before)


@pytest.mark.parametrize("path", ONNX_FILES, ids=lambda path: path.name)
def test_declared_types_of_inner_values_and_documentation(path: Path) -> None:
    before, after = in_memory(path)
    after = splitgraph.infer(after).model
    after.graph.doc_string = after.doc_string = "What this is."
    for node in after.graph.node:
        node.doc_string = "Here."
    found = diff(before, after)
    assert (found.parts, found.nodes, found.values, found.new_findings) == ((), (), (), ())
    # A finding about a declared type is gone with it.
    assert {each.code for each in found.gone_findings} <= {"SG301"}


def filled(tensor: onnx.TensorProto, text: str = "x = Identity(x0)") -> onnx.ModelProto:
    made = model(f"(float[4] x0) => (float[4] y) {{ {text} y = Add(x, w) }}")
    held = made.graph.initializer.add()
    held.CopyFrom(tensor)
    held.name = "w"
    return made


FLOATS = np.array([1.5, -2, np.nan, 0], np.float32)
STORED = [
    (numpy_helper.from_array(FLOATS), helper.make_tensor("w", TensorProto.FLOAT, [4], FLOATS)),
    (
        helper.make_tensor("w", TensorProto.INT64, [2], np.array([1, 2]).tobytes(), raw=True),
        helper.make_tensor("w", TensorProto.INT64, [2], [1, 2]),
    ),
    (
        helper.make_tensor("w", TensorProto.FLOAT16, [2], np.array([1, 2], np.float16).tobytes(), raw=True),
        helper.make_tensor("w", TensorProto.FLOAT16, [2], np.array([1, 2], np.float16)),
    ),
    (
        helper.make_tensor("w", TensorProto.INT4, [3], b"\x21\x03", raw=True),
        helper.make_tensor("w", TensorProto.INT4, [3], [1, 2, 3]),
    ),
    (
        helper.make_tensor("w", TensorProto.FLOAT, [0], b"", raw=True),
        helper.make_tensor("w", TensorProto.FLOAT, [0], []),
    ),
    (
        helper.make_tensor("w", TensorProto.STRING, [1], [b"a"]),
        helper.make_tensor("w", TensorProto.STRING, [1], [b"a"]),
    ),
]


@pytest.mark.parametrize(("one", "other"), STORED)
def test_another_way_of_storing_elements(one: onnx.TensorProto, other: onnx.TensorProto) -> None:
    assert not diff(filled(one), filled(other))
    before, after = constant(one), constant(other)
    assert not diff(before, after)


def constant(tensor: onnx.TensorProto) -> onnx.ModelProto:
    made = model("(float[4] x) => (y) { y = Constant() }")
    made.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    return made


THEN = "then_branch = t () => (a) { r = Relu(x) a = Abs(r) }"
ELSE = "else_branch = e () => (a) { a = Neg(x) }"
PAIRS: dict[str, tuple[onnx.ModelProto, onnx.ModelProto]] = {
    "omitted inputs at the end": (
        model('(float[4] x) => (float[4] y) { y = Clip(x) }'),
        model('(float[4] x) => (float[4] y) { y = Clip(x, "", "") }'),
    ),
    "nodes without names, in another order": (
        unnamed("(float[4] x) => (float[4] y) { a = Relu(x) b = Relu(x) y = Sub(a, b) }"),
        unnamed("(float[4] x) => (float[4] y) { b = Relu(x) a = Relu(x) y = Sub(a, b) }"),
    ),
    "the bodies of an If": (
        model(f"(bool c, float[4] x) => (y) {{ y = If(c) <{THEN}, {ELSE}> }}"),
        model(f"(bool c, float[4] x) => (y) {{ y = If(c) <{ELSE}, {THEN}> }}"),
    ),
}  # fmt: skip


def test_a_node_without_a_name_that_moved() -> None:
    before, after = PAIRS["nodes without names, in another order"]
    moved = diff(before, after).moved
    # Both are Relu nodes; the second is the first one now.
    assert moved == {"main/Relu#0": "main/Relu#1", "main/Relu#1": "main/Relu#0"}


@pytest.mark.parametrize("case", PAIRS)
def test_other_ways_of_writing_the_same(case: str) -> None:
    before, after = PAIRS[case]
    assert not diff(before, after)
    assert not diff(after, before)


def test_the_alias_of_the_domain() -> None:
    before = model("(float[4] x) => (float[4] y) { y = Relu(x) }")
    after = copy.deepcopy(before)
    after.opset_import[0].domain = after.graph.node[0].domain = "ai.onnx"
    assert not diff(before, after)


def test_a_generated_symbol_of_another_number() -> None:
    """An unknown size gets a generated symbol on each side, whose number depends on what else is unknown."""
    body = "b = NonZero(x) y = Transpose(b)"
    before = model(f"(float[4] x) => (y) {{ {body} }}")
    after = model(f"(float[4] x) => (y) {{ a = NonZero(x) z = Identity(a) {body} }}")
    assert splitgraph.infer(before).types["b"] != splitgraph.infer(after).types["b"]
    assert {each.name for each in diff(before, after).values} == {"a", "z"}


@pytest.fixture(params=["inside", "external"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, float], Path]:
    """Saves a model with 2 MB of weights, whose last element is given."""

    def save(name: str, last: float) -> Path:
        weights = np.arange(2**19, dtype=np.float32)
        weights[-1] = last
        made = model("(float[4] x) => (float[4] y) { y = Relu(x) }")
        made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        made.graph.initializer.append(numpy_helper.from_array(np.array([3, 3]), "sizes"))
        path = tmp_path / f"{name}.onnx"
        external = request.param == "external" and name != "a"
        onnx.save(made, path, save_as_external_data=external, location=f"{name}.data", size_threshold=0)
        return path

    return save


def test_weights_in_files(saved: Callable[[str, float], Path]) -> None:
    one, two, other = saved("a", 1.0), saved("b", 1.0), saved("c", 2.0)
    assert not splitgraph.diff(one, two)
    assert not splitgraph.diff(two, one)
    assert not splitgraph.diff(one, onnx.load(two))
    (part,) = splitgraph.diff(two, other).parts
    assert (part.part, part.name, part.kind) == ("initializer", "w", "changed")
    assert part.before == part.after == "float32[524288]"
    assert splitgraph.diff(one, other).parts == splitgraph.diff(onnx.load(one), other).parts == (part,)


def test_a_model_in_memory_whose_data_file_is_not_known(saved: Callable[[str, float], Path]) -> None:
    path = saved("b", 1.0)
    external = onnx.load(path, load_external_data=False)
    assert not splitgraph.diff(external, external)
    copied = copy.deepcopy(external)
    if any(tensor.data_location for tensor in external.graph.initializer):
        # The same names of files lead to other files in another folder.
        for before, after in ((path, external), (external, path), (external, copied)):
            with pytest.raises(splitgraph.ModelError, match="the folder of a model in memory is not known") as refused:
                splitgraph.diff(before, after)
            assert refused.value.diagnostics[0].code == "SG107"
    else:
        assert not splitgraph.diff(external, copied)


def test_a_rewrite_in_memory_has_the_data_files_of_its_model(saved: Callable[[str, float], Path]) -> None:
    before = open_model(onnx.load(saved("b", 1.0), load_external_data=False))
    found = open_models.diff_rewrite(before, api.upgrade(before, 19))
    assert [each.part for each in found.parts] == ["opset", "IR version"]
