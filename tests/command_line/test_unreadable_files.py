"""Files that are no models, and models that are wrong, given to every command."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

from .program import Run, files, split_model

NOT_MODELS = {
    "empty.onnx": b"",
    "text.onnx": b"version https://git-lfs.github.com/spec/v1\n",
    "random.onnx": bytes(range(255, 0, -1)) * 20,
    "truncated.onnx": split_model().SerializeToString()[:-9],
}


@pytest.mark.parametrize("name", [*NOT_MODELS, "missing.onnx", "."])
@pytest.mark.parametrize(
    "command",
    [
        ["infer"],
        ["upgrade", "--opset", "18", "-o", "out.onnx"],
        ["convert", "--to", "split", "-o", "out.onnx"],
        ["verify"],
    ],
)
def test_an_unreadable_file(name: str, command: list[str], run: Run, folder: Path) -> None:
    for written, content in NOT_MODELS.items():
        Path(written).write_bytes(content)
    before = files(folder)
    arguments = [*command, name, *(["model.onnx"] if command == ["verify"] else [])]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert name in err
    code, out, err = run(*arguments, "--json")
    document = json.loads(out)
    assert (code, document.get("ok", False)) == (2, False)
    assert document["diagnostics"][0]["code"].startswith("SG1")
    assert files(folder) == before


def test_a_cyclic_model_is_a_finding(run: Run, folder: Path) -> None:
    nodes = [helper.make_node("Relu", ["b"], ["a"], name="r"), helper.make_node("Relu", ["a"], ["b"], name="q")]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "cycle.onnx")
    code, out, err = run("infer", "cycle.onnx")
    assert code == 1
    assert "SG102" in out
    assert (err.count("\n"), "SG102" in err) == (1, True)
    code, out, err = run("upgrade", "cycle.onnx", "--opset", "20")
    assert (code, out) == (1, "")
    assert "SG102" in err or "SG409" in err
    assert files(folder) == {"model.onnx", "cycle.onnx"}
