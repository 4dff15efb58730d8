"""A model beyond protobuf's limit is written only with its weights beside it; the tests lower the limit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import load_onnx, onnx_writing, save_onnx

from .tiny_models import add_model, external, float_value, model_of

LIMIT = 4096


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_writing, "MAX_PROTO_BYTES", LIMIT)


def heavy_model() -> onnx.ModelProto:
    """Weights as raw data and as typed data, strings, and one tensor too small to move."""
    typed = helper.make_tensor("typed", TensorProto.FLOAT16, [600], np.linspace(0, 1, 600))
    names = helper.make_tensor("names", TensorProto.STRING, [2], [b"a", b"b"])
    tensors = [numpy_helper.from_array(np.arange(n, dtype=np.float32), f"w{n}") for n in (2000, 3, 1000)]
    node = helper.make_node("Identity", ["w3"], ["y"])
    return model_of(helper.make_graph([node], "g", [], [float_value("y", (3,))], [*tensors, typed, names]))


def values(model: onnx.ModelProto) -> dict[str, tuple[str, bytes]]:
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return {name: (str(array.dtype), repr(array.tolist()).encode()) for name, array in arrays.items()}


def test_a_large_model_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        save_onnx(heavy_model(), tmp_path / "model.onnx")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("SG109", "cannot be written: it is over 2 GiB, and no ONNX file is")
    assert "--external-data" in (found.help or "")
    assert os.listdir(tmp_path) == []


def test_graph_that_is_too_large_by_itself(tmp_path: Path) -> None:
    model = heavy_model()
    model.doc_string = "long" * LIMIT
    with pytest.raises(ModelError) as caught:
        save_onnx(model, tmp_path / "model.onnx", external_data="beside")
    assert caught.value.diagnostics[0].code == "SG109"
    assert os.listdir(tmp_path) == []


def test_existing_data_file_is_kept_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "model.onnx.data").write_bytes(b"old")
    with pytest.raises(ModelError) as caught:
        save_onnx(heavy_model(), tmp_path / "model.onnx", overwrite=False, external_data="beside")
    assert caught.value.diagnostics[0].code == "SG108"
    assert (tmp_path / "model.onnx.data").read_bytes() == b"old"


def test_tensor_that_is_not_what_it_says(tmp_path: Path) -> None:
    model = heavy_model()
    model.graph.initializer.append(TensorProto(name="bad", data_type=TensorProto.FLOAT, dims=[600], float_data=[1.0]))
    with pytest.raises(ModelError) as caught:
        save_onnx(model, tmp_path / "model.onnx", external_data="beside")
    assert caught.value.diagnostics[0].code == "SG111"
    assert os.listdir(tmp_path) == []


def test_weights_move_into_a_data_file(tmp_path: Path) -> None:
    model = heavy_model()
    before = model.SerializeToString()
    save_onnx(model, tmp_path / "model.onnx", external_data="beside")
    assert model.SerializeToString() == before
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    written = onnx.load(tmp_path / "model.onnx", load_external_data=False).graph.initializer
    moved = {tensor.name for tensor in written if tensor.data_location == TensorProto.EXTERNAL}
    assert moved == {"w2000", "w1000", "typed"}
    assert all(int(entry.value) % 4096 == 0 for t in written for entry in t.external_data if entry.key == "offset")
    assert values(load_onnx(tmp_path / "model.onnx")) == values(model)
    assert values(onnx.load(tmp_path / "model.onnx")) == values(model)


def test_new_data_file_beside_kept_data(tmp_path: Path) -> None:
    model = heavy_model()
    kept = model.graph.initializer[0].raw_data
    expected = values(model)
    (tmp_path / "model.onnx.data").write_bytes(kept)
    external(model.graph.initializer[0], "model.onnx.data")
    save_onnx(model, tmp_path / "model.onnx", external_data="beside")
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data", "model.onnx.data.1"]
    assert (tmp_path / "model.onnx.data").read_bytes() == kept
    assert values(load_onnx(tmp_path / "model.onnx")) == expected


@pytest.fixture
def split_up(tmp_path: Path) -> Path:
    """The large model in a folder of its own: its weights are in two data files, one tensor of them small."""
    folder = tmp_path / "old"
    folder.mkdir()
    model = heavy_model()
    for index, name in ((0, "a.bin"), (1, "a.bin"), (2, "b.bin")):
        tensor = model.graph.initializer[index]
        with (folder / name).open("ab") as file:
            offset = file.tell()
            file.write(tensor.raw_data)
        external(tensor, name, offset=offset, length=len(tensor.raw_data))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def places(path: Path) -> dict[str, str]:
    """The data file of each tensor; "" for one in the model."""
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return {each.name: each.external_data[0].value if each.external_data else "" for each in tensors}


@pytest.mark.parametrize("name", ["old/model.onnx", "old/new.onnx", "elsewhere/new.onnx"])
def test_weights_in_data_files_move_too(split_up: Path, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    data = f"{path.name}.data"
    old = {each: (split_up.parent / each).read_bytes() for each in ("a.bin", "b.bin")}
    model = load_onnx(split_up, external_data="keep")
    before = model.SerializeToString()
    save_onnx(model, path, source=split_up, external_data="beside")
    assert model.SerializeToString() == before
    assert places(path) == {"w2000": data, "w3": "", "w1000": data, "typed": data, "names": ""}
    assert values(onnx.load(path)) == values(heavy_model())
    assert {each: (split_up.parent / each).read_bytes() for each in old} == old
    # Nothing is to be moved the next time.
    written = path.read_bytes(), (path.parent / data).read_bytes()
    save_onnx(load_onnx(path, external_data="keep"), path, source=path, external_data="beside")
    assert places(path)["w2000"] == data
    assert (path.read_bytes(), (path.parent / data).read_bytes()) == written
    assert not (path.parent / f"{data}.1").exists()


def test_no_old_data_file_is_copied(split_up: Path, tmp_path: Path) -> None:
    """So that the model may have the name of one."""
    path = tmp_path / "elsewhere" / "a.bin"
    path.parent.mkdir()
    save_onnx(load_onnx(split_up, external_data="keep"), path, source=split_up, external_data="beside")
    assert sorted(os.listdir(path.parent)) == ["a.bin", "a.bin.data"]
    assert values(onnx.load(path)) == values(heavy_model())


def test_an_old_data_file_is_not_written_over(split_up: Path) -> None:
    """The new model's data file has its name."""
    with pytest.raises(ModelError) as caught:
        save_onnx(
            load_onnx(split_up, external_data="keep"),
            split_up.parent / "b.bin",
            source=split_up,
            external_data="beside",
        )
    assert caught.value.diagnostics[0].code == "SG108"
    (split_up.parent / "b.bin").rename(split_up.parent / "new.onnx.data")
    model = onnx.load(split_up, load_external_data=False)
    model.graph.initializer[2].external_data[0].value = "new.onnx.data"
    save_onnx(model, split_up.parent / "new.onnx", source=split_up, external_data="beside")
    found = places(split_up.parent / "new.onnx")
    assert (found["w1000"], found["w2000"]) == ("new.onnx.data", "new.onnx.data.1")
    assert values(onnx.load(split_up.parent / "new.onnx")) == values(heavy_model())


def test_a_data_file_that_cannot_be_read_leaves_nothing(split_up: Path, tmp_path: Path) -> None:
    model = load_onnx(split_up, external_data="keep")
    (split_up.parent / "b.bin").unlink()
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ModelError) as caught:
        save_onnx(model, tmp_path / "elsewhere" / "new.onnx", source=split_up, external_data="beside")
    assert caught.value.diagnostics[0].code == "SG107"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_without_weights_there_is_no_data_file(tmp_path: Path) -> None:
    save_onnx(add_model(), tmp_path / "model.onnx", external_data="beside")
    assert os.listdir(tmp_path) == ["model.onnx"]
    assert onnx.load(tmp_path / "model.onnx") == add_model()
