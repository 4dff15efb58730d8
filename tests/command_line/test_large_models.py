"""A model whose weights are above protobuf's limit goes to another opset without its weights being read."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from process_memory import run_python

GIB = 2**30
# Of a process; the interpreter with onnx and numpy takes a fifth of it.
MOST_BYTES = 300_000_000

IN_MEMORY = """
import sys, onnx, splitgraph
model = onnx.load(sys.argv[1], load_external_data=False)
splitgraph.save(splitgraph.upgrade(model, 18).model, sys.argv[2])
"""


def large_model(folder: Path) -> Path:
    """Two matrices of 1.5 GiB in a file of zeros that takes no room, between nodes that the way to 18 changes."""
    columns = 3 * GIB // 2 // 4096
    weights = []
    for index in range(2):
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[1024, columns])
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": "weights", "offset": str(index * 3 * GIB // 2), "length": str(3 * GIB // 2)}
        for key, text in entries.items():
            tensor.external_data.add(key=key, value=text)
        weights.append(tensor)
    nodes = [
        helper.make_node("Unsqueeze", ["x"], ["row"], "unsqueeze", axes=[0]),
        helper.make_node("MatMul", ["row", "w0"], ["a"], "first"),
        helper.make_node("MatMul", ["row", "w1"], ["b"], "second"),
        helper.make_node("Add", ["a", "b"], ["sum"], "add"),
        helper.make_node("ReduceSum", ["sum"], ["y"], "total", axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1024])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    with (folder / "weights").open("wb") as data:
        data.truncate(3 * GIB)
    return folder / "large.onnx"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "splitgraph", "upgrade", "large.onnx", "--opset", "18", "--no-verify", "-o", "converted.onnx"],
        ["-c", IN_MEMORY, "large.onnx", "converted.onnx"],
    ],
    ids=["command line", "in memory"],
)
def test_weights_are_not_read(tmp_path: Path, command: list[str]) -> None:
    path = large_model(tmp_path)
    status, held = run_python(command, tmp_path)
    assert status == 0
    assert held < MOST_BYTES
    before = onnx.load(path, load_external_data=False)
    after = onnx.load(tmp_path / "converted.onnx", load_external_data=False)
    assert after.opset_import[0].version == 18
    assert list(after.graph.initializer)[:2] == list(before.graph.initializer)
    assert sorted(os.listdir(tmp_path)) == ["converted.onnx", "large.onnx", "weights"]
    assert (tmp_path / "weights").stat().st_size == 3 * GIB
