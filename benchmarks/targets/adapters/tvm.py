"""Apache TVM: the frontend of Relax for ONNX, compiled for the CPU by LLVM."""

from __future__ import annotations

from typing import Any

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def version() -> str:
    """The version of the package."""
    return str(tvm.__version__)


def run(path: str, inputs: dict[str, Any], outputs: list[str]) -> list[Any]:
    """Run a model."""
    compiled = tvm.compile(from_onnx(onnx.load(path)), target="llvm")
    machine = relax.VirtualMachine(compiled, tvm.cpu())
    found = machine["main"](*(tvm.runtime.tensor(array) for array in inputs.values()))
    return [found.numpy()] if hasattr(found, "numpy") else [each.numpy() for each in found]
