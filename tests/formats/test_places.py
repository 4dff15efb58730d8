"""Who has the message of a model has the elements that stayed in its file, whatever else was dropped."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

import splitgraph
from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import open_model, whole_model
from splitgraph.formats.external_data import all_tensors
from splitgraph.model.tensor_data import fill, misfit, place_of
from splitgraph.model.values import array_of
from splitgraph.reports.html.model_page import model_page

from .tiny_models import large


def message_of(path: Path) -> ModelProto:
    """The message alone: what was opened with it is gone."""
    content = open_model(path, weights="leave").model
    gc.collect()
    assert place_of(content.graph.initializer[0]) is not None
    return content


def copied(model: ModelProto) -> ModelProto:
    other = ModelProto()
    other.CopyFrom(model)
    return other


def filled(model: ModelProto) -> ModelProto:
    for tensor in all_tensors(model):
        fill(tensor)
    return model


def saved(model: ModelProto, path: Path) -> ModelProto:
    splitgraph.save(model, path)
    return onnx.load(path)


# What becomes of the message: each is the whole model in the end.
WAYS: dict[str, Callable[[ModelProto, Path], ModelProto]] = {
    "put together": whole_model,
    "filled": lambda model, path: filled(model),
    "a copy is put together": lambda model, path: whole_model(copied(model), path),
    "a deep copy": lambda model, path: whole_model(copy.deepcopy(model), path),
    "serialized and parsed": lambda model, path: whole_model(ModelProto.FromString(model.SerializeToString()), path),
    "pickled here": lambda model, path: whole_model(pickle.loads(pickle.dumps(model)), path),
    "saved": lambda model, path: saved(model, path.with_name("saved.onnx")),
    "saved over its own file": saved,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.sample(3)
def test_a_message_alone_has_its_elements(way: Callable[[ModelProto, Path], ModelProto], tmp_path: Path) -> None:
    path = large(tmp_path / "m.onnx")
    expected = onnx.load(path)
    assert way(message_of(path), path) == expected


def test_one_tensor_alone_has_its_elements(tmp_path: Path) -> None:
    tensor = message_of(large(tmp_path / "m.onnx")).graph.initializer[0]
    gc.collect()
    assert misfit(tensor) is None
    assert array_of(tensor)[1, 0] == 1.0


def test_a_message_is_read_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large(tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    content = message_of(Path("m.onnx"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert whole_model(content, "m.onnx").graph.initializer[0].raw_data


def test_a_name_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"m \xff\n.onnx")
    large(tmp_path / "m.onnx").rename(path)
    assert whole_model(message_of(path), path).graph.initializer[0].raw_data


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.onnx"))


def replace(path: Path) -> None:
    """By another file of the same size and time."""
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(bytes(status.st_size))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def cut(path: Path) -> None:
    os.truncate(path, 1_000_000)


@pytest.mark.parametrize("change", [move, replace, cut, os.unlink])
def test_another_file_is_not_believed(change: Callable[[Path], None], tmp_path: Path) -> None:
    """Whoever holds the result has the file that was read; from the message alone, the name leads to another one."""
    path = large(tmp_path / "m.onnx")
    expected = onnx.load(path)
    loaded = open_model(path, weights="leave")
    content = message_of(path)
    change(path)
    with pytest.raises(ModelError, match="was changed after it was read") as caught:
        whole_model(content, path)
    assert caught.value.diagnostics[0].code == "SG101"
    if change is not cut:
        assert whole_model(loaded.model, path) == expected


def test_no_file_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = large(tmp_path / "m.onnx"), set[int]()
    real_open, real_close = os.open, os.close

    def open_noted(*arguments: int) -> int:
        descriptor = real_open(*arguments)  # type: ignore[call-overload]
        opened.add(descriptor)
        return int(descriptor)

    def close_noted(descriptor: int) -> None:
        opened.discard(descriptor)
        real_close(descriptor)

    monkeypatch.setattr(os, "open", open_noted)
    monkeypatch.setattr(os, "close", close_noted)
    loaded = open_model(path, weights="leave")
    assert opened
    kept = [loaded.model, *(message_of(path) for _ in range(3))]
    del loaded
    assert splitgraph.check(path, "ncnn")
    wholes = [whole_model(model, path) for model in kept]
    gc.collect()
    assert (len(wholes), opened) == (4, set())


def test_what_is_checked_is_the_same_with_and_without_weights(tmp_path: Path) -> None:
    path = large(tmp_path / "m.onnx")
    assert splitgraph.check(path, ["ncnn", "mnn"]) == splitgraph.check(onnx.load(path), ["ncnn", "mnn"])


def test_a_page_of_an_analysis_whose_model_is_a_message(tmp_path: Path) -> None:
    analysis = splitgraph.infer(message_of(large(tmp_path / "m.onnx")))
    assert "MatMul" in model_page(analysis, "m.onnx")
