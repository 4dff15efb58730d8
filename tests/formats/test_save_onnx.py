"""A file that is written is afterwards the old one or the new one, whole, and nothing else is left in the folder."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import load_onnx, save_onnx
from splitgraph.formats.atomic_write import WriteTogether

from .tiny_models import add_model

CHECKOUT = Path(__file__).parents[2]

OLD = b"what was there before"


def refusal(path: object, **arguments: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        save_onnx(add_model(), path, **arguments)  # type: ignore[arg-type]
    return caught.value


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_existing_file_is_kept_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    assert refusal(path, overwrite=False).diagnostics[0].code == "SG108"
    assert path.read_bytes() == OLD


def test_missing_folder(tmp_path: Path) -> None:
    error = refusal(tmp_path / "nowhere" / "model.onnx")
    assert error.diagnostics[0].code == "SG109"
    assert "does not exist" in str(error)
    assert listing(tmp_path) == []


def test_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").mkdir()
    assert "is a folder" in str(refusal(tmp_path / "model.onnx"))


def test_named_pipe_in_the_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(refusal(tmp_path / "pipe"))


def test_link_to_itself_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").diagnostics[0].code == "SG109"
    assert (tmp_path / "loop").is_symlink()


def test_write_protected_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "write-protected" in str(refusal(path))
    assert path.read_bytes() == OLD


@pytest.mark.parametrize("path", [b"model.onnx", 1, None, "", "a\0b"])
def test_what_is_not_a_path(path: object) -> None:
    assert refusal(path).diagnostics[0].code == "SG101"


def disk_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def only_for_folders(fault: Callable[..., None]) -> Callable[[int], None]:
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            fault()
        sync(descriptor)

    return fsync


def after(fault: Callable[..., None]) -> Callable[..., None]:
    """os.replace that does its work the first time, and then fails as if interrupted just behind the call."""
    replace, calls = os.replace, []

    def replace_and_fail(*arguments: Any) -> None:
        replace(*arguments)
        calls.append(arguments)
        if len(calls) == 1:
            fault()

    return replace_and_fail


FAULTS = [
    ("fsync", lambda fault: fault),
    ("fsync", only_for_folders),
    ("replace", lambda fault: fault),
    ("replace", after),
    ("fdopen", lambda fault: fault),
    ("chmod", lambda fault: fault),
]


@pytest.mark.parametrize("fault", [disk_full, interrupted])
@pytest.mark.parametrize(
    ("name", "inject", "exists"),
    # A new file has no permissions to keep, and takes nothing away that a power cut could lose.
    [(*case, exists) for case in FAULTS for exists in (True, False) if exists or case[0] not in ("chmod", "fsync")],
)
def test_failing_write_leaves_the_old_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    inject: Callable[..., Any],
    fault: Callable[..., None],
    exists: bool,
) -> None:
    path = tmp_path / "model.onnx"
    if exists:
        path.write_bytes(OLD)
    monkeypatch.setattr(os, name, inject(fault))
    with pytest.raises(ModelError if fault is disk_full else KeyboardInterrupt) as caught:
        save_onnx(add_model(), path)
    monkeypatch.undo()
    if isinstance(caught.value, ModelError):
        assert caught.value.diagnostics[0].code == "SG109"
        assert "No space left on device" in str(caught.value)
    assert listing(tmp_path) == (["model.onnx"] if exists else [])
    assert not exists or path.read_bytes() == OLD


def test_failing_write_of_the_contents(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    with pytest.raises(KeyboardInterrupt), WriteTogether() as files, files.open(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == OLD
    assert listing(tmp_path) == ["model.onnx"]


def test_several_files_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(OLD + name.encode())
    replace, calls = os.replace, []

    def fail_at_the_third(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 3:
            disk_full()
        replace(*arguments)

    monkeypatch.setattr(os, "replace", fail_at_the_third)
    with pytest.raises(OSError, match="No space"), WriteTogether() as files:
        for name in ("a", "b", "new/deep/c"):
            with files.open(tmp_path / name) as file:
                file.write(b"new")
    assert listing(tmp_path) == ["a", "b"]
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [OLD + b"a", OLD + b"b"]


def test_old_file_outlives_a_failing_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    replace, calls = os.replace, []

    def only_once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) > 1:
            disk_full()
        replace(*arguments)

    monkeypatch.setattr(os, "replace", only_once)
    monkeypatch.setattr(os, "fsync", only_for_folders(disk_full))
    error = refusal(path)
    (backup,) = [name for name in listing(tmp_path) if name != "model.onnx"]
    assert backup in str(error)
    assert (tmp_path / backup).read_bytes() == OLD


def test_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "link", disk_full)
    monkeypatch.setattr(os, "fsync", only_for_folders(disk_full))
    refusal(path)
    assert path.read_bytes() == OLD
    assert listing(tmp_path) == ["model.onnx"]


def test_file_system_that_cannot_sync_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported() -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", only_for_folders(unsupported))
    (tmp_path / "model.onnx").write_bytes(OLD)
    save_onnx(add_model(), tmp_path / "model.onnx")
    assert load_onnx(tmp_path / "model.onnx") == add_model()


@pytest.mark.parametrize(
    ("old", "synced"),
    [((), []), (("a",), ["a", "b", ""]), (("b",), ["b", "a", ""]), (("a", "b"), ["a", "b", ""])],
)
def test_what_is_on_the_disk_before_an_old_file_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: Sequence[str], synced: Sequence[str]
) -> None:
    for name in old:
        (tmp_path / name).write_bytes(OLD)
    sync, replace = os.fsync, os.replace
    done: list[str] = []

    def note(descriptor: int) -> None:
        status = os.fstat(descriptor)
        staged = {b"new a": "a", b"new b": "b"}
        same = [path for path in tmp_path.iterdir() if os.path.samestat(path.stat(), status)]
        done.append("" if stat.S_ISDIR(status.st_mode) else staged[same[0].read_bytes()])
        sync(descriptor)

    def last(*arguments: Any) -> None:
        assert done == [name for name in synced if name]
        replace(*arguments)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "replace", last)
    with WriteTogether() as files:
        for name in ("a", "b"):
            with files.open(tmp_path / name) as file:
                file.write(b"new " + name.encode())
    assert done == synced
    assert [(tmp_path / name).read_bytes() for name in ("a", "b")] == [b"new a", b"new b"]


@pytest.mark.parametrize("moment", ["fsync", "link", "replace"])
def test_killed_program_leaves_the_old_file(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    program = (
        "import os, signal, sys, onnx; from splitgraph.formats import save_onnx\n"
        f"os.{moment} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "save_onnx(onnx.ModelProto(ir_version=10), sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], cwd=CHECKOUT).returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(OLD)
    path.chmod(0o640)
    save_onnx(add_model(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert listing(tmp_path) == ["model.onnx"]


def test_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    save_onnx(add_model(), tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "model.onnx").write_bytes(OLD)
    (tmp_path / "link.onnx").symlink_to(Path("real") / "model.onnx")
    save_onnx(add_model(), tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert load_onnx(tmp_path / "real" / "model.onnx") == add_model()


def test_link_to_nothing_yet_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to("model.onnx")
    save_onnx(add_model(), tmp_path / "link.onnx", overwrite=False)
    assert (tmp_path / "link.onnx").is_symlink()
    assert load_onnx(tmp_path / "model.onnx") == add_model()


def test_longest_name_that_the_file_system_takes(tmp_path: Path) -> None:
    save_onnx(add_model(), tmp_path / ("m" * 255))
    assert listing(tmp_path) == ["m" * 255]


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_onnx(add_model(), "model.onnx")
    assert load_onnx("model.onnx") == add_model()


def test_unchanged_model_comes_back_byte_for_byte(tmp_path: Path) -> None:
    model = add_model(np.zeros((2, 3), np.float32))
    model.metadata_props.add(key="k", value="v")
    # A field that this onnx does not know (number 900, 3 bytes), as a newer release may have written.
    content = model.SerializeToString() + b"\xa2\x38\x03abc"
    (tmp_path / "in.onnx").write_bytes(content)
    loaded = load_onnx(tmp_path / "in.onnx")
    save_onnx(loaded, tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == content
    assert isinstance(loaded, onnx.ModelProto)
