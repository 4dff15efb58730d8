"""A folder with models, and worker processes that are faulty for some names."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import onnx
import pytest
from command_line.conftest import run  # noqa: F401  # the command line in this process
from command_line.program import split_model

FAULTY = Path(__file__).parent / "faulty"


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with models of opset 13 in zoo/ and zoo/deep/, one of opset 18, and files that are none."""
    monkeypatch.chdir(tmp_path)
    for name, opset in (("a.onnx", 13), ("deep/b.onnx", 13), ("deep/new.onnx", 18)):
        path = tmp_path / "zoo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(split_model(opset, **({"num_outputs": 2} if opset == 18 else {})), path)
    (tmp_path / "zoo" / "readme.txt").write_text("no model")
    (tmp_path / "zoo" / "page.xml").write_text("<?xml version='1.0'?><page/>")
    (tmp_path / "zoo" / ".hidden").mkdir()
    onnx.save(split_model(), tmp_path / "zoo" / ".hidden" / "c.onnx")
    return tmp_path / "zoo"


def hearing_interrupts() -> None:
    """To be run in a new process: a shell starts what runs in the background with Ctrl+C ignored, and so its tests."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes crash, hang and fail on models of some names (see faulty/sitecustomize.py)."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTY), str(FAULTY.parents[2])]))
