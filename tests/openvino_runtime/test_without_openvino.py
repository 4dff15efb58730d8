"""splitgraph.openvino where OpenVINO is not installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable

import onnx
import pytest

import splitgraph
import splitgraph.openvino as pipeline
from splitgraph.formats import OpenVINOModel

CALLS: dict[str, Callable[[], object]] = {
    "extensions": pipeline.extensions,
    "from_ov_model": lambda: pipeline.from_ov_model(onnx.ModelProto()),
    "to_ov_model": lambda: pipeline.to_ov_model(OpenVINOModel.__new__(OpenVINOModel)),
    "a pass": lambda: pipeline.__getattr__("SplitToVariadicSplit"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_is_said_what_to_install(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(splitgraph.SplitgraphError, match=r"pip install 'splitgraph\[openvino\]'"):
        call()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pipeline.__getattr__("nothing")


def test_importing_does_not_import_openvino() -> None:
    code = "import sys, splitgraph.openvino; raise SystemExit('openvino' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
