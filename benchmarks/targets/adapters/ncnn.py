"""ncnn: converted by pnnx for the shapes of the inputs, run in float32."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

_KINDS = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64",
    "int32": "i32", "uint8": "u8", "int8": "i8", "bool": "bool",
}  # fmt: skip


def version() -> str:
    """The version of the library."""
    return metadata.version("ncnn")


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    if any(str(array.dtype) not in _KINDS for array in inputs.values()):
        raise RuntimeError("pnnx has no name for this element type")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder, "m.onnx"))
        shapes = ",".join(f"[{','.join(map(str, each.shape))}]{_KINDS[str(each.dtype)]}" for each in inputs.values())
        done = subprocess.run([_pnnx(), "m.onnx", f"inputshape={shapes}", "fp16=0"], cwd=folder, capture_output=True)
        if not Path(folder, "m.ncnn.param").exists():
            raise (SystemError if done.returncode < 0 else RuntimeError)(f"pnnx wrote no file ({done.returncode})")
        if any(array.dtype != np.float32 for array in inputs.values()):
            raise BufferError("the extractor of ncnn takes float32 only")
        return _extracted(folder, inputs, outputs)


def _pnnx() -> Path:
    """The converter itself: the command that its package installs loads torch before it runs this."""
    found = importlib.util.find_spec("pnnx")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0], "pnnx")


def _extracted(folder: str, inputs: dict[str, Any], outputs: list[str]) -> list[Any]:
    net = ncnn.Net()
    for option in ("use_fp16_storage", "use_fp16_packed", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    if net.load_param(f"{folder}/m.ncnn.param") or net.load_model(f"{folder}/m.ncnn.bin"):
        raise RuntimeError("ncnn does not load what pnnx wrote")
    extractor = net.create_extractor()
    for index, array in enumerate(inputs.values()):
        extractor.input(f"in{index}", ncnn.Mat(np.ascontiguousarray(array)).clone())
    found = [extractor.extract(f"out{index}") for index in range(len(outputs))]
    if any(code for code, _ in found):
        raise RuntimeError("ncnn cannot extract an output")
    return [np.array(each) for _, each in found]
