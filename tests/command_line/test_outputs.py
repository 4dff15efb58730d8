"""Where the results of the rewriting commands go, with their external data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import helper

from splitgraph import api

from .program import Run, files, split_model


def test_an_existing_output_is_refused_before_any_work(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("model.opset18.onnx").write_text("precious")
    monkeypatch.setattr(api, "upgrade", None)
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "--json")
    assert code == 2
    assert [found["code"] for found in json.loads(out)["diagnostics"]] == ["SG108"]
    assert "--force" in err
    assert Path("model.opset18.onnx").read_text() == "precious"


def test_force_overwrites(run: Run, folder: Path) -> None:
    for arguments in (["upgrade", "model.onnx", "--opset", "18", "-o"], ["infer", "model.onnx", "-o"]):
        Path("out.onnx").write_text("not precious")
        assert run(*arguments, "out.onnx")[0] == 2
        assert Path("out.onnx").read_text() == "not precious"
        assert run(*arguments, "out.onnx", "--force")[0] == 0
        assert onnx.load("out.onnx").graph.node[0].op_type == "Split"


def test_in_place(run: Run, folder: Path) -> None:
    code, out, _ = run("upgrade", "model.onnx", "--opset", "18", "--in-place")
    assert code == 0
    assert out.endswith("wrote model.onnx\n")
    assert files(folder) == {"model.onnx"}
    assert onnx.load("model.onnx").opset_import[0].version == 18


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "model.onnx"],
        ["-o", "model.onnx", "--force"],
        ["-o", "link.onnx", "--force"],
        ["-o", "x.onnx", "--in-place"],
    ],
)
def test_the_model_itself_is_only_overwritten_in_place(arguments: list[str], run: Run, folder: Path) -> None:
    Path("link.onnx").symlink_to("model.onnx")
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert (code, out) == (2, "")
    assert "--in-place" in err
    assert onnx.load("model.onnx") == split_model()
    assert files(folder) == {"model.onnx", "link.onnx"}


def weighted_model() -> onnx.ModelProto:
    """split_model after an addition of weights, [1, 6], that are large enough to stay in a file of their own."""
    model = split_model()
    model.graph.node.insert(0, helper.make_node("Add", ["x", "w"], ["sum"], name="add"))
    model.graph.node[1].input[0] = "sum"
    weights = np.arange(600, dtype=np.float32).reshape(100, 6)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 100
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


@pytest.mark.parametrize("arguments", [["-o", "elsewhere/new.onnx"], ["-o", "new.onnx"], ["--in-place"]])
def test_external_data_goes_along(arguments: list[str], run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    data = Path("weights.bin").read_bytes()
    Path("elsewhere").mkdir()
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", *arguments)
    assert (code, err) == (0, "")
    assert "verified equal" in out
    written = Path(out.split()[-1])
    assert (written.parent / "weights.bin").read_bytes() == data
    (weights,) = onnx.load(written).graph.initializer
    assert onnx.numpy_helper.to_array(weights).sum() == np.arange(600).sum()
    assert len(written.read_bytes()) < len(data)


def test_missing_external_data_is_an_unreadable_file(run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    Path("weights.bin").unlink()
    for arguments in (["infer", "model.onnx"], ["upgrade", "model.onnx", "--opset", "18"]):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.endswith("[SG107]\n")
    assert files(folder) == {"model.onnx"}


def test_an_output_that_cannot_be_written(run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "-o", "missing/folder/out.onnx")
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert files(folder) == {"model.onnx"}
