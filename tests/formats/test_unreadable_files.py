"""What is not a readable ONNX file is refused in one line that says what it is instead."""

from __future__ import annotations

import io
import os
import pickle
import random
import zipfile
from pathlib import Path

import onnx
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splitgraph.findings.diagnostics import CODES, ModelError
from splitgraph.formats import load_onnx
from splitgraph.formats.skeleton import explain_unreadable

from .tiny_models import add_model, model_of, nested_model

VALID = add_model().SerializeToString()


def refusal(path: object) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load_onnx(path)  # type: ignore[arg-type]
    error = caught.value
    (finding,) = error.diagnostics
    assert finding.code in CODES
    assert "\n" not in str(error)
    assert finding.message in str(error)
    return error


def zip_of(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            # A ZipInfo of its own date: the name of a test must not depend on when it is collected.
            archive.writestr(zipfile.ZipInfo(name), b"content")
    return buffer.getvalue()


def with_name(model: onnx.ModelProto, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    return model.SerializeToString().replace(old, new)


BAD_CONTENTS = [
    (b"", "is empty", "SG101"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull", "SG101"),
    (b"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML page", "SG101"),
    (b"\n <html>", "an HTML page", "SG101"),
    (b'<?xml version="1.0"?>\n<net name="m" version="11"></net>', "an OpenVINO IR file", "SG101"),
    (b'<?xml version="1.0"?><note/>', "an XML file", "SG101"),
    (b'{"irVersion": "8"}', "JSON text", "SG101"),
    (b'\n\x10\n\x01x\x12\x0bPlaceholder"\x02\x08\x1b', "a TensorFlow model", "SG101"),
    (b"\x08\x01\x12\x0e\x12\x0c\n\n\n\x01c\x12\x05Const", "a TensorFlow model", "SG101"),
    ("Modèle exporté hier".encode(), "plain text", "SG101"),
    ("ß".encode() * 2000, "plain text", "SG101"),
    (zip_of("archive/data.pkl", "archive/version"), "a PyTorch file", "SG101"),
    (zip_of("inner.onnx"), "a zip archive that holds 'inner.onnx'", "SG101"),
    (zip_of("readme.txt"), "a zip archive", "SG101"),
    (zip_of("readme.txt")[:20], "a damaged zip archive", "SG101"),
    (pickle.dumps({"weight": [1.0]}), "a Python pickle", "SG101"),
    ((16).to_bytes(8, "little") + b'{"w":[0,1,2,3]} ', "a safetensors file", "SG101"),
    (b"\x1f\x8b\x08" + bytes(20), "a gzip file", "SG101"),
    (b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file", "SG101"),
    (b"GGUF\x03\0\0\0", "a GGUF file", "SG101"),
    (b"\x18\0\0\0TFL3" + bytes(20), "a TensorFlow Lite model", "SG101"),
    (b"\x18\0\0\0ORTM" + bytes(20), "ORT format", "SG101"),
    (bytes(4096), "nothing but zero bytes", "SG101"),
    (VALID[:-1], "is truncated", "SG101"),
    (VALID[: len(VALID) // 2], "is truncated", "SG101"),
    (random.Random(0).randbytes(4096), "is not a readable ONNX model", "SG101"),
    (b"\xff" * 40, "more than 64 bits", "SG101"),
    # These parse as a ModelProto, but are none.
    (b"\x08\x08", "has no graph", "SG101"),
    (onnx.ModelProto(producer_name="p").SerializeToString(), "has no graph", "SG101"),
    (onnx.ModelProto(graph=add_model().graph).SerializeToString(), "has no IR version", "SG101"),
    (onnx.ModelProto(graph=add_model().graph, ir_version=-3).SerializeToString(), "has no IR version", "SG101"),
    (onnx.ModelProto(ir_version=8, graph=onnx.GraphProto(name="g")).SerializeToString(), "an empty graph", "SG111"),
    (add_model().graph.SerializeToString(), "is not a readable ONNX model", "SG101"),
    (onnx.ModelProto(graph=add_model().graph, ir_version=99).SerializeToString(), "IR version 99", "SG106"),
    (with_name(add_model(), b"add", b"\xffd\xfe"), "NodeProto.name", "SG111"),
    (nested_model(60), "nested deeper than the 100 levels", "SG101"),
]


@pytest.mark.parametrize(("content", "words", "code"), BAD_CONTENTS)
def test_bad_content_is_refused(tmp_path: Path, content: bytes, words: str, code: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    error = refusal(path)
    assert words in str(error)
    assert str(error).startswith(f"{path}: ")
    assert error.diagnostics[0].code == code


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in str(refusal(tmp_path / "nowhere.onnx"))


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in str(refusal(tmp_path))


def test_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(refusal(tmp_path / "pipe"))


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert "cannot be read: Not a directory" in str(refusal(tmp_path / "file" / "model.onnx"))


def test_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read" in str(refusal(tmp_path / "loop"))


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(VALID)

    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "cannot be read: Permission denied" in str(refusal(path))


def test_more_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(VALID)

    def exhausted(self: Path) -> bytes:
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", exhausted)
    assert "does not fit into this machine's memory" in str(refusal(path))


def test_more_than_protobuf_reads(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert "2,147,483,648 bytes" in str(refusal(path))


@pytest.mark.parametrize("path", [b"model.onnx", 0, None, 1.5, "", "a\0b"])
def test_what_is_not_a_path(path: object) -> None:
    refusal(path)


def test_name_that_would_break_the_line(tmp_path: Path) -> None:
    error = refusal(tmp_path / "a\nb\x1b[31m.onnx")
    assert "\\n" in str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("levels", [31, 32])
def test_nesting_at_the_limit(tmp_path: Path, levels: int) -> None:
    path = tmp_path / "nested.onnx"
    path.write_bytes(nested_model(levels))
    if levels == 31:
        assert load_onnx(path).SerializeToString() == path.read_bytes()
    else:
        assert "nested deeper" in str(refusal(path))


def test_explanation_agrees_with_every_truncation() -> None:
    for length in range(1, len(VALID)):
        try:
            onnx.ModelProto.FromString(VALID[:length])
        except Exception:
            assert explain_unreadable(VALID[:length]).startswith("is truncated"), length


@pytest.mark.parametrize("opset", [0, -1, 999])
def test_wrong_opset_is_left_to_inference(tmp_path: Path, opset: int) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_of(add_model().graph, opset).SerializeToString())
    assert load_onnx(path).opset_import[0].version == opset


def test_cycle_is_left_to_inference(tmp_path: Path) -> None:
    model = add_model()
    model.graph.node[0].input[0] = "y"
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert load_onnx(tmp_path / "model.onnx") == model


FUZZ = settings(
    derandomize=True,
    deadline=None,
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def load_or_refuse(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        model = load_onnx(path)
    except ModelError as error:
        assert error.diagnostics and "\n" not in str(error)
    else:
        assert isinstance(model, onnx.ModelProto)


@FUZZ
@given(
    changes=st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), max_size=6),
    keep=st.integers(0, 4096),
)
def test_damaged_models_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], keep: int) -> None:
    content = bytearray(VALID)
    for position, value in changes:
        content[position] = value
    load_or_refuse(tmp_path / "model.onnx", bytes(content[: keep or None]))


@FUZZ
@given(content=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    load_or_refuse(tmp_path / "model.onnx", content)
