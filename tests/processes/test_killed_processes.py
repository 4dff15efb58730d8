"""A process that is killed leaves nothing running, and the next run removes its temporary files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from verification.small_models import endless_model

from splitgraph.processes.folders import remove_abandoned, temporary_folder

from .watching import comes_true, first_line, has_ended, kill, start

# Runs a model that does not end, and prints the id of the engine's process.
VERIFYING = """
import subprocess, sys, onnx, splitgraph
class Told(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)
subprocess.Popen = Told
model = onnx.load(sys.argv[1])
splitgraph.verify(model, model, engine="reference", timeout=600)
"""
# Runs the module below in a folder.
STARTING = """
import sys
from pathlib import Path
from splitgraph.processes.kept_processes import run_once
folder = Path(sys.argv[1])
run_once("sleeping:sleep", folder, folder, 600)
"""
# Writes its id to a file, and sleeps.
SLEEPING = """
import os, time
def sleep(folder):
    (folder / "made").write_text(str(os.getpid()))
    (folder / "made").rename(folder / "pid")
    time.sleep(600)
"""
# Python imports this module at its start. It leaves a worker process one of the two ways to learn of its parent's end.
HIDING = """
import os, sys, time
if any("inner_loop" in each for each in sys.orig_argv):
    {hiding}
"""
WAYS = {"stdin": "sys.platform = 'other'"}
if sys.platform == "linux":
    WAYS["the kernel"] = "os._exit = lambda status: time.sleep(600)"
# Holds a temporary folder, and prints its name.
HOLDING = """
import time
from splitgraph.processes.folders import temporary_folder
with temporary_folder() as folder:
    (folder / "large").write_bytes(b"0")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and of those that it starts."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.mark.parametrize("way", WAYS)
def test_child_learns_of_the_end_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    (tmp_path / "sitecustomize.py").write_text(HIDING.format(hiding=WAYS[way]))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parent = start(STARTING, tmp_path)
    assert comes_true((tmp_path / "pid").exists)
    child = int((tmp_path / "pid").read_text())
    assert not has_ended(child)
    kill(parent)
    assert comes_true(lambda: has_ended(child))


def test_engine_ends_with_verify_and_its_files_go_in_the_next_run(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(endless_model().SerializeToString())
    verifying = start(VERIFYING, path)
    engine = int(first_line(verifying))
    kill(verifying)
    assert comes_true(lambda: has_ended(engine))
    (left,) = folder.iterdir()
    assert any(left.glob("model_*"))
    with temporary_folder() as made:
        assert list(folder.iterdir()) == [made]
    assert list(folder.iterdir()) == []


def test_folder_of_a_process_stays_until_that_has_ended(folder: Path) -> None:
    holding = start(HOLDING)
    held = Path(first_line(holding))
    with temporary_folder() as own:
        remove_abandoned.cache_clear()
        remove_abandoned(str(folder))
        assert sorted(folder.iterdir()) == sorted([held, own])
    kill(holding)
    remove_abandoned.cache_clear()
    remove_abandoned(str(folder))
    assert list(folder.iterdir()) == []


def as_folder(path: Path) -> None:
    path.mkdir()
    (path / "notes").write_text("mine")


def as_file(path: Path) -> None:
    path.write_text("mine")


def as_link(path: Path) -> None:
    """To a folder that was made here and is abandoned, but lies elsewhere."""
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".splitgraph-owner").touch()
    path.symlink_to(elsewhere)


def with_linked_owner(path: Path) -> None:
    as_folder(path)
    (path / ".splitgraph-owner").symlink_to("notes")


def with_folder_as_owner(path: Path) -> None:
    as_folder(path)
    (path / ".splitgraph-owner").mkdir()


def of_another_user(path: Path) -> None:
    as_folder(path)
    (path / ".splitgraph-owner").touch()
    for each in (path, path / ".splitgraph-owner"):
        os.chown(each, 12345, 12345)


FOREIGN = [as_folder, as_file, as_link, with_linked_owner, with_folder_as_owner]
# Only root can give files away.
FOREIGN += [of_another_user] if hasattr(os, "getuid") and os.getuid() == 0 else []


@pytest.mark.parametrize("make", FOREIGN)
def test_what_others_made_stays(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "splitgraph-data")
    before = sorted(folder.parent.rglob("*"))
    remove_abandoned(str(folder))
    assert sorted(folder.parent.rglob("*")) == before


def test_folder_for_temporary_files_that_is_not_there(tmp_path: Path) -> None:
    remove_abandoned(str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []
