"""--inputs, --custom-ops and --provider of the commands that run models: refusals first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from json_schemas import wrong

from .program import Run

X = np.arange(12, dtype=np.float32).reshape(2, 6)
COMMANDS = {
    "verify": ["verify", "model.onnx", "model.onnx"],
    "upgrade": ["upgrade", "model.onnx", "--opset", "18"],
    "downgrade": ["downgrade", "model.onnx", "--opset", "11"],
    "convert": ["convert", "model.onnx", "--to", "variadic-split"],
}
SCHEMA = {"verify": "verify", "upgrade": "rewrite", "downgrade": "rewrite", "convert": "rewrite"}
REFUSED = [
    (["--inputs", "nowhere.npz"], "the inputs nowhere.npz do not exist; give an archive data.npz"),
    (["--inputs", ""], "is empty; give the path of a file"),
    (["--inputs", "wrong.npz"], "wrong.npz: the model has no input 'z'; the inputs of the model are x: float32[N, 6]"),
    (["--custom-ops", "nowhere.so"], "the library of operators 'nowhere.so' does not exist"),
    (["--provider", "cudda"], "there is no provider 'cudda'; onnxruntime has "),
    (["--provider", "vsinpu"], "onnxruntime has no provider VSINPUExecutionProvider here; it has: "),
    (["--provider", "GPU", "--engine", "onnxruntime"], "'GPU' is one of OpenVINO, but onnxruntime runs these models"),
]


@pytest.fixture(autouse=True)
def data(folder: Path) -> None:
    np.savez("data.npz", x=X)
    np.savez("wrong.npz", z=X)
    for number in (0, 1):
        place = Path(f"tests/test_data_set_{number}")
        place.mkdir(parents=True)
        (place / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(X[number:]).SerializeToString())
        (place / "output_0.pb").write_bytes(onnx.numpy_helper.from_array(X[number:, :3]).SerializeToString())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused_and_nothing_is_written(command: str, options: list[str], message: str, run: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    code, out, err = run(*COMMANDS[command], *options)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    document = json.loads(run(*COMMANDS[command], *options, "--json")[1])
    assert wrong(document, SCHEMA[command]) == []
    assert message in document["diagnostics"][0]["message"]
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("source", "cases"), [("data.npz", 1), ("tests", 2), ("tests/test_data_set_0", 1)])
def test_given_inputs_are_run(command: str, source: str, cases: int, run: Run, folder: Path) -> None:
    options = ["--inputs", source, "--provider", "cpu", "--json"]
    code, out, _ = run(*COMMANDS[command], *options)
    document = json.loads(out)
    assert (code, wrong(document, SCHEMA[command])) == (0, [])
    found = document if command == "verify" else document["verification"]
    assert (found["verdict"], found["cases"], found["providers"]) == ("equal", cases, ["CPUExecutionProvider"])
    assert found["diagnostics"] == []


def test_outputs_that_the_model_does_not_give_are_said(run: Run, folder: Path) -> None:
    Path("tests/test_data_set_1/output_0.pb").write_bytes(onnx.numpy_helper.from_array(X[1:, 3:]).SerializeToString())
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--inputs", "tests")
    assert code == 0
    assert "SG509" in err
    assert "does not give the outputs of test_data_set_1: p0" in " ".join(err.split())
    assert "verified equal on 2 inputs" in out
    assert "SG509" in run("verify", "model.onnx", "model.onnx", "--inputs", "tests")[1]


def test_a_provider_other_than_the_cpu_is_named(run: Run, folder: Path) -> None:
    import onnxruntime

    if "AzureExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("no provider beside that of the CPU")
    out = run("verify", "model.onnx", "model.onnx", "--provider", "azure")[1]
    assert " · onnxruntime, AzureExecutionProvider" in out


@pytest.mark.parametrize("option", ["--inputs", "--custom-ops", "--provider"])
def test_the_help_has_the_option(option: str, run: Run) -> None:
    assert all(option in run(command, "--help")[1] for command in COMMANDS)
