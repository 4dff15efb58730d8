"""tinygrad: its runner of ONNX models. Without a compiler, DEV=PYTHON is set for it."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from typing import Any

if shutil.which("clang") is None:
    os.environ.setdefault("DEV", "PYTHON")

from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner


def version() -> str:
    """The version of the package."""
    return metadata.version("tinygrad")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    try:
        found = OnnxRunner(path)({name: Tensor(array) for name, array in inputs.items()})
        return [found[name].numpy() if hasattr(found[name], "numpy") else found[name] for name in outputs]
    except FileNotFoundError as error:
        raise BufferError(f"there is no compiler on this machine ({error})") from error
