"""pnnx: a torch module in Python, which it writes beside what it writes for ncnn."""

import os
import shutil
import subprocess
import sys

PACKAGES = {"20261020": ["pnnx==20261020", "ncnn==1.0.20261020", "torch==2.13.0"]}
TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8"}
TYPES.update({"int8": "i8", "bool": "bool"})


class Refused(Exception):
    """A model that pnnx does not convert."""


def VERSION():
    import importlib.metadata

    import torch  # noqa: F401 - imported once for all models

    return importlib.metadata.version("pnnx")


def run(model, inputs, outputs):
    import importlib.util

    import torch

    convert(model, inputs)
    if not os.path.exists("m_pnnx.py"):
        raise Refused("pnnx wrote no Python module")
    spec = importlib.util.spec_from_file_location("m_pnnx", "m_pnnx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.set_num_threads(1)
    with torch.no_grad():
        results = module.Model().eval()(*[torch.from_numpy(value) for value in inputs.values()])
    return [value.numpy() for value in (results if isinstance(results, (list, tuple)) else [results])]


def convert(model, inputs):
    """Run pnnx, which writes files `m…` into this folder."""
    types = [TYPES.get(value.dtype.name) for value in inputs.values()]
    if None in types:
        raise Refused("pnnx has no such element type")
    shutil.copy(model, "m.onnx")
    shapes = [f"[{','.join(map(str, value.shape))}]{kind}" for value, kind in zip(inputs.values(), types, strict=True)]
    command = [os.path.join(os.path.dirname(sys.executable), "pnnx"), "m.onnx", "inputshape=" + ",".join(shapes)]
    done = subprocess.run([*command, "fp16=0"], capture_output=True)
    if not os.path.exists("m_pnnx.py"):
        lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        raise Refused(f"pnnx ended with {done.returncode}: {lines[-1] if lines else ''}")
