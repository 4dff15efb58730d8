"""ONNX Runtime: a session on the CPU, at its default level of optimization."""

from __future__ import annotations

from typing import Any

import onnxruntime


def version() -> str:
    """Return the version of the package."""
    return str(onnxruntime.__version__)


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    stage("run")
    return list(session.run(outputs, inputs))
