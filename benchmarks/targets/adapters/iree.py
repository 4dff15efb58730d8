"""IREE: its importer and compiler for the CPU as commands, and its runtime."""

import os
import subprocess
import sys

PACKAGES = {"3.13.0": ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx"]}
DEVICE = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]


class Refused(Exception):
    """What a command says of a model that it does not read."""


def VERSION():
    import importlib.metadata

    return importlib.metadata.version("iree-base-compiler")


def run(model, inputs, outputs):
    import iree.runtime as runtime

    _command("iree-import-onnx", model, "-o", "model.mlir")
    _command("iree-compile", "model.mlir", *DEVICE, "--iree-llvmcpu-target-cpu=generic", "-o", "model.vmfb")
    context = runtime.SystemContext(config=runtime.Config("local-task"))
    with open("model.vmfb", "rb") as compiled:
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, compiled.read()))
    results = context.modules.module[_graph(model)](*inputs.values())
    return [value.to_host() for value in (results if isinstance(results, (list, tuple)) else [results])]


def _graph(model):
    """The name of the graph, which is the name of the compiled function."""
    import onnx

    return onnx.load(model, load_external_data=False).graph.name


def _command(name, *arguments):
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), name), *arguments], capture_output=True)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:]
        raise Refused(f"{name}: {errors[-1] if name.endswith('onnx') and errors else ''.join(errors[:1])}")
