"""onnx2torch: converted to a module of PyTorch."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import onnx2torch
import torch

torch.set_num_threads(1)


def version() -> str:
    """The version of the package."""
    return metadata.version("onnx2torch")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    with torch.no_grad():
        found = onnx2torch.convert(path)(*(torch.from_numpy(array) for array in inputs.values()))
    return [each.numpy() for each in (found if isinstance(found, (tuple, list)) else [found])]
