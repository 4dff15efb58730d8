"""IREE: imported, compiled for any CPU, run on the local task system."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import iree.runtime

_TARGET = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",
]


def version() -> str:
    """The version of the compiler."""
    return metadata.version("iree-base-compiler")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model, whose graph is a function of its own name."""
    with tempfile.TemporaryDirectory() as folder:
        imported, compiled = Path(folder, "model.mlir"), Path(folder, "model.vmfb")
        _call("iree-import-onnx", path, "-o", str(imported))
        _call("iree-compile", str(imported), *_TARGET, "-o", str(compiled))
        context = iree.runtime.SystemContext(config=iree.runtime.Config("local-task"))
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, compiled.read_bytes()))
        module = context.modules[-1] if not hasattr(context.modules, "module") else context.modules.module
        names = [name for name in module.vm_module.function_names if not name.startswith("__") and "$" not in name]
        found = module[names[0]](*inputs.values())
        return [each.to_host() for each in (found if isinstance(found, (tuple, list)) else [found])]


def _call(tool: str, *arguments: str) -> None:
    done = subprocess.run([Path(sys.executable).with_name(tool), *arguments], capture_output=True, text=True)
    if done.returncode:
        told = [each for each in done.stderr.splitlines() if "error" in each.lower()] or done.stderr.splitlines()
        raise RuntimeError(f"{tool} ends with {done.returncode}: {told[0] if told else ''}")
