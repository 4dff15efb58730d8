"""Large models: the work grows with their size, and their weights stay in their files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from process_memory import run_python

import splitgraph

from .written import diff, unnamed

COUNT = 20_000


def test_nodes_with_nothing_in_common_but_their_operators() -> None:
    """With a search of all pairs of nodes, this test would take hours."""
    bodies = [
        [f"{prefix}{index + 1} = {('Relu', 'Abs', 'Neg')[index % 3]}({prefix}{index})" for index in range(COUNT)]
        for prefix in "ab"
    ]
    del bodies[1][5000]
    bodies[1][5000] = bodies[1][5000].replace("b5001", "b5000")
    before, after = (
        unnamed(f"(float[4] {prefix}0) => (float[4] {prefix}{COUNT}) {{ {' '.join(body)} }}")
        for prefix, body in zip("ab", bodies, strict=True)
    )
    kinds = [node.kind for node in diff(before, after).nodes]
    # The outputs have other names, and the reader of what is gone has another input.
    assert (kinds.count("removed"), kinds.count("added"), kinds.count("changed")) == (1, 0, COUNT - 1)


def graph_of(*nodes: onnx.NodeProto, inputs: int = 1) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(f"x{index}", 1, [COUNT]) for index in range(inputs)]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def parts(prefix: str, operator: str) -> list[onnx.NodeProto]:
    """One split, and a reader of each of its parts."""
    names = [f"{prefix}{index}" for index in range(COUNT // 10)]
    split = helper.make_node("Split", ["x0"], names, num_outputs=len(names))
    return [split, *(helper.make_node(operator, [name], [f"{name}r"]) for name in names)]


WIDE = {
    "a split of many parts": (graph_of(*parts("a", "Relu")), graph_of(*parts("b", "Relu"))),
    "many readers of a value": (
        graph_of(*(helper.make_node("Relu", ["x0"], [f"a{index}"]) for index in range(COUNT))),
        graph_of(*(helper.make_node("Relu", ["x0"], [f"b{index}"]) for index in range(COUNT))),
    ),
    "many inputs": (graph_of(inputs=COUNT), graph_of(inputs=COUNT + 1)),
    "a node that reads a value many times": (
        graph_of(helper.make_node("Concat", ["x0"] * COUNT, ["y"], axis=0)),
        graph_of(helper.make_node("Concat", ["x0"] * (COUNT - 1), ["y"], axis=0)),
    ),
}


@pytest.mark.parametrize("case", WIDE)
def test_wide_graphs(case: str) -> None:
    before, after = WIDE[case]
    found = diff(before, after)
    assert not [node for node in found.nodes if node.kind != "changed"]
    assert found


# On Windows, a process does not tell what it held.
@pytest.mark.skipif(sys.platform == "win32", reason="the memory of a process is not measured")
def test_weights_are_not_loaded(tmp_path: Path) -> None:
    size = 2**26
    for name, last in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        weights = np.zeros(size // 4, np.float32)
        weights[-1] = last
        made = unnamed("(float[4] x) => (float[4] y) { y = Relu(x) }")
        made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        onnx.save(made, tmp_path / f"{name}.onnx", save_as_external_data=name == "b", location="b.data")
    for other, status in (("a", 0), ("b", 0), ("c", 1)):
        ended, held = run_python(["-m", "splitgraph", "diff", "a.onnx", f"{other}.onnx"], tmp_path)
        assert ended == status
        assert held < size
    assert splitgraph.diff(tmp_path / "b.onnx", tmp_path / "c.onnx").parts[0].name == "w"
