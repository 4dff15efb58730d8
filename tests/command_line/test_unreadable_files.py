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


@pytest.mark.parametrize("name", [*NOT_MODELS, "missing.onnx"])
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
    assert err == "error: cycle.onnx: 1 error\n"
    code, out, err = run("upgrade", "cycle.onnx", "--opset", "20")
    assert (code, out) == (1, "")
    assert "SG102" in err or "SG409" in err
    assert files(folder) == {"model.onnx", "cycle.onnx"}


WRONG_OPSETS = [
    ([11, 13], "Remove all of these imports but the one that the nodes were written for."),
    ([0], "Import the opset that the nodes were written for."),
    ([-3], "Import the opset that the nodes were written for."),
    ([1 << 40], "Install a newer onnx, or export the model at an older opset."),
]


@pytest.mark.parametrize(("opsets", "help"), WRONG_OPSETS)
def test_what_to_do_about_a_wrong_opset(opsets: list[int], help: str, run: Run, folder: Path) -> None:
    model = split_model()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid("", opset) for opset in opsets)
    onnx.save(model, "wrong.onnx")
    code, out, _ = run("infer", "wrong.onnx", "--json")
    (found,) = json.loads(out)["diagnostics"]
    assert (code, found["code"], found["help"]) == (1, "SG103", help)
