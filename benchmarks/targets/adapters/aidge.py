"""Aidge: loaded by aidge_onnx, run on its backend for the CPU."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import aidge_backend_cpu  # noqa: F401  # registers the backend
import aidge_core
import aidge_onnx
import numpy as np


def version() -> str:
    """The version of the package."""
    return metadata.version("aidge_onnx")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    arrays = list(inputs.values())
    if any(str(array.dtype) not in ("float32", "int64", "int32") for array in arrays):
        raise BufferError("this adapter gives float32, int32 and int64 only")
    graph = aidge_onnx.load_onnx(path)
    if not aidge_onnx.has_native_coverage(graph):
        raise RuntimeError("an operator is not known")
    graph.set_backend("cpu")
    graph.forward_dims([list(array.shape) for array in arrays], allow_data_dependency=True)
    aidge_core.SequentialScheduler(graph).forward(True, [aidge_core.Tensor(array) for array in arrays])
    return [np.array(node.get_operator().get_output(index)) for node, index in graph.get_ordered_outputs()]
