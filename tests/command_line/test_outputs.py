"""Where the results of the rewriting commands go, with their external data."""

from __future__ import annotations

import json
import stat
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.numpy_helper
import pytest
from onnx import helper

from splitgraph import rewrites

from .program import Run, files, split_model


def test_an_existing_output_is_refused_before_any_work(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("model.opset18.onnx").write_text("precious")
    monkeypatch.setattr(rewrites, "rewritten", None)
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


@pytest.mark.parametrize("output", ["model.onnx", "link.onnx"])
def test_inference_does_not_overwrite_its_model(output: str, run: Run, folder: Path) -> None:
    Path("link.onnx").symlink_to("model.onnx")
    code, out, err = run("infer", "model.onnx", "-o", output, "--force")
    assert (code, out) == (2, "")
    assert f"{output} is the model itself; give another name with -o" in err
    assert onnx.load("model.onnx") == split_model()


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
    written = Path(out.partition("wrote ")[2].splitlines()[0])
    assert (written.parent / "weights.bin").read_bytes() == data
    (weights,) = onnx.load(written).graph.initializer
    assert onnx.numpy_helper.to_array(weights).sum() == np.arange(600).sum()
    assert len(written.read_bytes()) < len(data)


def test_a_copy_of_data_is_for_those_who_may_read_the_data(run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    Path("weights.bin").chmod(0o600)
    Path("elsewhere").mkdir()
    assert run("upgrade", "model.onnx", "--opset", "18", "-o", "elsewhere/new.onnx")[0] == 0
    assert stat.S_IMODE(Path("elsewhere/weights.bin").stat().st_mode) == 0o600


# Where "w" and "v" are, and what is written over: the other file, or one that a copy would take the name of.
OWN_DATA = {
    "a data file": (("w.bin", "sub/v.bin"), "sub/v.bin"),
    "a data file in the same folder": (("w.bin", "v.bin"), "v.bin"),
    "a copy over another data file": (("w.bin", "sub/w.bin"), "sub/new.onnx"),
    "the weights of an IR": (("model.bin", "v.bin"), "model.xml"),
}


UPGRADE, INFER = ["upgrade", "model.onnx", "--opset", "18"], ["infer", "model.onnx"]
# infer writes no IR of an ONNX model, and nothing does without openvino.
OVERWRITING = [(name, UPGRADE) for name in OWN_DATA if find_spec("openvino") or "IR" not in name]
OVERWRITING += [(name, INFER) for name in OWN_DATA if "IR" not in name]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(("name", "command"), OVERWRITING)
def test_data_of_the_model_is_never_overwritten(
    name: str, size: int, command: list[str], run: Run, folder: Path
) -> None:
    """Not even with --force, and neither what was read because it is small: it stays where it is."""
    locations, output = OWN_DATA[name]
    model = weighted_model()
    model.graph.node.insert(1, helper.make_node("Add", ["sum", "v"], ["more"]))
    model.graph.node[2].input[0] = "more"
    del model.graph.initializer[:]
    Path("sub").mkdir()
    for location, initializer in zip(locations, ("w", "v"), strict=True):
        tensor = onnx.numpy_helper.from_array(np.full((size, 6), len(location), np.float32), initializer)
        Path(location).write_bytes(tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, location)
        tensor.ClearField("raw_data")
        model.graph.initializer.append(tensor)
    Path("model.onnx").write_bytes(model.SerializeToString())
    held = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, out, err = run(*command, "-o", output, "--force")
    assert (code, out, err[-8:]) == (2, "", "[SG108]\n")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == held


@pytest.mark.parametrize("name", ["x.json", "x.textproto", "x.ONNXTXT"])
def test_names_of_text_formats_are_refused(name: str, run: Run, folder: Path) -> None:
    """onnx.load would look for text in it."""
    code, out, err = run("upgrade", "model.onnx", "--opset", "18", "-o", name)
    assert (code, out) == (2, "")
    assert ("a name for JSON" if name == "x.json" else "text") in err
    assert files(folder) == {"model.onnx"}


@pytest.mark.parametrize("arguments", [["model.onnx", "-o", "x" * 300], ["x" * 300]])
def test_a_name_that_is_too_long(arguments: list[str], run: Run, folder: Path) -> None:
    code, out, err = run("upgrade", *arguments, "--opset", "18", "--json")
    assert code == 2
    assert not json.loads(out)["ok"]
    assert "xxx: " in err


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


def test_weights_are_put_beside_the_model(run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "weighted.onnx")
    code, out, err = run("upgrade", "weighted.onnx", "--opset", "18", "-o", "new.onnx", "--external-data")
    assert (code, err) == (0, "")
    (weights,) = onnx.load("new.onnx", load_external_data=False).graph.initializer
    assert weights.external_data[0].value == "new.onnx.data"
    assert run("infer", "weighted.onnx", "-o", "typed.onnx", "--external-data")[0] == 0
    for name in ("new.onnx", "typed.onnx"):
        assert onnx.load(name).graph.initializer[0].raw_data == weighted_model().graph.initializer[0].raw_data
    code, out, err = run("infer", "weighted.onnx", "-o", "typed.onnx", "--external-data")
    assert (code, out) == (2, "")


def test_data_files_are_linked_where_that_is_asked_for(run: Run, folder: Path) -> None:
    onnx.save(weighted_model(), "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    arguments = ("upgrade", "model.onnx", "--opset", "18", "-o", "elsewhere/")
    assert run(*arguments, "--external-data", "link")[0] == 0
    assert Path("elsewhere/weights.bin").samefile("weights.bin")
    Path("elsewhere/weights.bin").unlink()
    assert run(*arguments, "--force")[0] == 0
    assert not Path("elsewhere/weights.bin").samefile("weights.bin")
    assert Path("elsewhere/weights.bin").read_bytes() == Path("weights.bin").read_bytes()
