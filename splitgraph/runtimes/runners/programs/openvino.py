"""OpenVINO: its frontend for ONNX, or an IR, compiled for the CPU in float32."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import openvino


def version() -> str:
    """Return the version of the package."""
    return metadata.version("openvino")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    core = openvino.Core()
    model = core.read_model(path)
    stage("prepare")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"})
    # By position: an operator that does nothing takes the name of its input away.
    given = dict(enumerate(inputs.values())) if len(compiled.inputs) == len(inputs) else inputs
    stage("run")
    found = compiled.create_infer_request().infer(given)
    return [found[port] for port in compiled.outputs]
