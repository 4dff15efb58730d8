"""Apache TVM: the frontend of Relax for ONNX, compiled for the CPU by LLVM. It needs onnx, too."""

from __future__ import annotations

from typing import Any

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def version() -> str:
    """Return the version of the package."""
    return str(tvm.__version__)


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    module = from_onnx(onnx.load(path))
    stage("prepare")
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    stage("run")
    found = machine["main"](*(tvm.runtime.tensor(array) for array in inputs.values()))
    return [found.numpy()] if hasattr(found, "numpy") else [each.numpy() for each in found]
