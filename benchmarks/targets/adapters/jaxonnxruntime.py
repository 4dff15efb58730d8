"""jaxonnxruntime: its backend; the lengths of a split need not be initializers."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import onnx
from jaxonnxruntime import backend, config

config.update("jaxort_only_allow_initializers_as_static_args", False)


def version() -> str:
    """The version of the package."""
    return metadata.version("jaxonnxruntime")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    return list(backend.run_model(onnx.load(path), list(inputs.values())))
