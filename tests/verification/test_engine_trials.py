"""Engines are tried in processes of their own, so that a broken one is reported and ends nothing."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from splitgraph.model.schemas.table import newest_in_table
from splitgraph.verification import installation
from splitgraph.verification.installation import EngineReport, try_engine

# An onnxruntime that works as far as it is asked to, for variations.
WORKING = """
import os, signal, time
import numpy as np, onnx
__version__ = "9.8.7"
NEWEST = 99
def get_available_providers(): return ["AbacusExecutionProvider"]
class SessionOptions: pass
class GraphOptimizationLevel: ORT_ENABLE_ALL = 99
class InferenceSession:
    def get_providers(self): return ["CPUExecutionProvider"]
    def __init__(self, path, options, **others):
        opset = onnx.load(path).opset_import[0].version
        if opset > NEWEST: raise ValueError(f"opset {opset} is unheard of")
    def run(self, names, feeds): return [feeds["x"][:1], feeds["x"][1:]]
"""
# What is different in each, with the reason that is reported.
BROKEN = [
    ("raise ImportError('DLL load failed while importing _pybind_state')", "ImportError: DLL load failed"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
    ("import os; os._exit(3)", "ended with exit status 3"),
    ("import time; time.sleep(600)", "did not finish within 2 seconds"),
    ("# an empty package, as a removal leaves it", "AttributeError: module 'onnxruntime' has no attribute"),
    (f"{WORKING}\nNEWEST = 5", "opset 13 is unheard of"),
    (f"{WORKING}\nInferenceSession.run = lambda self, n, feeds: [feeds['x'], feeds['x']]", "gives wrong results"),
    (
        f"{WORKING}\nInferenceSession.run = lambda self, n, f: os.kill(os.getpid(), signal.SIGABRT)",
        f"crashed (SIGABRT), with a Split of opset {newest_in_table()}",
    ),
]


def with_package(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "onnxruntime") -> None:
    """Put a package with this source in front of the installed one."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(("source", "reason"), BROKEN)
def test_a_broken_engine_is_reported(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with_package(source, tmp_path, monkeypatch)
    found = try_engine("onnxruntime", seconds=2 if "sleep" in source else 8)
    assert (found.status, found.newest_opset) == ("broken", None)
    assert reason in found.reason
    assert capfd.readouterr() == ("", "")


def test_without_onnx_the_reference_evaluator_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package("raise ImportError('no onnx today')", tmp_path, monkeypatch, "onnx")
    assert "no onnx today" in try_engine("reference").reason
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert try_engine("reference") == EngineReport("reference", "broken", reason="onnx is not installed")


def test_an_engine_that_is_not_installed_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert try_engine("openvino") == EngineReport("openvino", "not installed")


def test_without_temporary_files_no_engine_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    found = installation.examine()
    assert {each.name: each.status for each in found.engines}["reference"] == "broken"
    assert not found.ok
    assert [each.location for each in found.diagnostics if each.code == "SG803"] == [str(tmp_path / "missing")]


@pytest.mark.parametrize("newest", [13, 20, newest_in_table()])
def test_the_newest_opset_is_measured(newest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_package(f"{WORKING}\nNEWEST = {newest}", tmp_path, monkeypatch)
    expected = EngineReport("onnxruntime", "works", "9.8.7", newest, ("AbacusExecutionProvider",))
    assert try_engine("onnxruntime") == expected


@pytest.mark.parametrize(
    "name", [name for name, module in installation.ENGINES.items() if importlib.util.find_spec(module)]
)
def test_an_installed_engine_works(name: str) -> None:
    found = try_engine(name)
    assert (found.status, found.reason) == ("works", "")
    assert found.version == metadata.version(installation.ENGINES[name])
    # Every release that splitgraph supports runs opset 21.
    assert found.newest_opset in range(21, newest_in_table() + 1)
    assert found.devices
