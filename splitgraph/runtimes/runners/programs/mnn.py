"""MNN: converted by mnnconvert, run by its expression module."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import _tools
import MNN
import numpy as np
from MNN import expr, nn

# What it refuses, and why, stands on its output only.
PRINTS_WHY = True

_KINDS = {"float32": "float", "int32": "int", "int64": "int", "bool": "int", "uint8": "uint8", "int8": "int8"}


def version() -> str:
    """Return the version of the library."""
    return str(MNN.version())


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model; int64 and bool go in as int32, which MNN computes with."""
    with tempfile.TemporaryDirectory() as folder:
        converted = os.path.join(folder, "model.mnn")
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", converted, "--bizCode", "x"])
        if not os.path.exists(converted):
            raise RuntimeError("mnnconvert wrote no file")
        stage("prepare")
        module = nn.load_module_from_file(converted, list(inputs), outputs)
        stage("run")
        return [_array(each) for each in module.forward([_placeholder(array) for array in inputs.values()])]


def _placeholder(array: Any) -> Any:
    kind = getattr(expr, _KINDS.get(str(array.dtype), "float"))
    held = array.astype(np.int32) if array.dtype in (np.int64, np.bool_) else array
    made = expr.placeholder(list(array.shape), expr.NCHW, kind)
    try:
        made.write(np.ascontiguousarray(held))
    except SystemError as error:
        raise BufferError(f"the bindings of MNN take no array of {array.dtype}") from error
    return made


def _array(value: Any) -> Any:
    # The layout of four channels side by side is one of MNN's own.
    plain = expr.convert(value, expr.NCHW) if value.data_format == expr.NC4HW4 else value
    try:
        read = plain.read()
    except SystemError as error:
        raise BufferError("the bindings of MNN do not give back this type") from error
    return np.array(read).reshape(list(plain.shape))
