"""What the tests of the command line share: a small model, the program in a child process, the files of a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import onnx.numpy_helper
from onnx import TensorProto, helper

from splitgraph.findings.diagnostics import diagnostic
from splitgraph.verification.verification import Verification

ROOT = Path(__file__).parents[2]


def split_model(
    opset: int = 13, shape: Sequence[int | str] = ("N", 6), parts: int = 2, **attributes: object
) -> onnx.ModelProto:
    """x -> Split on axis 1 -> p0, p1, ..."""
    names = [f"p{i}" for i in range(parts)]
    node = helper.make_node("Split", ["x"], names, name="s", **{"axis": 1, **attributes})
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


Run = Callable[..., tuple[int, str, str]]


def in_child(*command: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments in the checkout's environment."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=folder,
        check=False,
    )


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


NOT_RUN = Verification("not-run", "", 0, None, None, None, (), (diagnostic("SG503", "reference crashed"),))
