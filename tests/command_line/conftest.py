"""A folder to work in, and the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest

from splitgraph import cli

from .program import split_model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, with model.onnx: a valid Split-13 of float32[N, 6] into two."""
    monkeypatch.chdir(tmp_path)
    onnx.save(split_model(), "model.onnx")
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run
