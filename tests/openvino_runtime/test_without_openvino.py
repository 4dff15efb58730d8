"""splitgraph.openvino where OpenVINO is not installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import splitgraph
import splitgraph.openvino as pipeline
from splitgraph.formats import OpenVINOModel

from .split_ir import variadic_split

CALLS: dict[str, Callable[[], object]] = {
    "extensions": pipeline.extensions,
    "from_ov_model": lambda: pipeline.from_ov_model(onnx.ModelProto()),
    "to_ov_model": lambda: pipeline.to_ov_model(OpenVINOModel.__new__(OpenVINOModel)),
    "a pass": lambda: pipeline.__getattr__("SplitToVariadicSplit"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_is_said_what_to_install(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(splitgraph.SplitgraphError, match=r"pip install openvino"):
        call()


def test_ir_is_not_run_and_it_is_said_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = variadic_split(tmp_path, [2, 4])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = splitgraph.verify(model, model)
    assert (found.verdict, found.diagnostics[0].code) == ("not-run", "SG501")
    assert "pip install openvino" in found.diagnostics[0].help


def test_onnx_is_not_written_as_ir_and_it_is_said_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(splitgraph.SplitgraphError, match=r"pip install openvino"):
        splitgraph.save(onnx.ModelProto(), tmp_path / "model.xml")
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pipeline.__getattr__("nothing")


def test_importing_does_not_import_openvino() -> None:
    code = "import sys, splitgraph.openvino; raise SystemExit('openvino' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
