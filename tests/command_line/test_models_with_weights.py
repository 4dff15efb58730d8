"""Every verb that looks at a model without its weights, on models whose weights stay in their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from formats.tiny_models import large

from .program import Run

COMMANDS = {
    "one target": (["check", "m.onnx", "--target", "ncnn"], 1),
    "as JSON": (["check", "m.onnx", "--target", "ncnn", "--json"], 1),
    "a target that reads it": (["check", "m.onnx", "--target", "onnxruntime"], 0),
    "all targets": (["check", "m.onnx", "--all-targets"], 1),
    "many models": (["check", "m.onnx", "n.onnx", "--target", "ncnn"], 1),
    "a folder": (["check", ".", "--target", "ncnn"], 1),
    "a folder in two processes": (["check", ".", "--target", "ncnn", "--jobs", "2"], 1),
    "a page": (["report", "m.onnx", "-o", "page.html"], 0),
    "a page of two": (["report", "--before", "m.onnx", "--after", "n.onnx", "-o", "page.html"], 0),
    "a difference": (["diff", "m.onnx", "n.onnx"], 0),
}


@pytest.mark.parametrize(("arguments", "code"), COMMANDS.values(), ids=COMMANDS)
def test_a_verb_on_a_model_with_weights(
    arguments: list[str], code: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(large(tmp_path / "m.onnx"), tmp_path / "n.onnx")
    monkeypatch.chdir(tmp_path)
    found, text, errors = run(*arguments)
    assert (found, "internal error" in text + errors, "KeyError" in text + errors) == (code, False, False)
