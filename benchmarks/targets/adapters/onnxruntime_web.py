"""ONNX Runtime Web: the WebAssembly build, in Node, one process for each model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

_MODULES = Path(os.environ["NODE_MODULES"])
_KINDS = {"float32", "float64", "int32", "int64", "uint8", "int8", "bool", "string"}
_SCRIPT = Path(__file__).with_name("onnxruntime_web.cjs")


def version() -> str:
    """The version of the package."""
    return str(json.loads((_MODULES / "onnxruntime-web" / "package.json").read_text())["version"])


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    if any(_kind(array) not in _KINDS for array in inputs.values()):
        raise BufferError("this adapter does not give this element type to JavaScript")
    given = {name: [_kind(each), list(each.shape), [str(x) for x in each.ravel()]] for name, each in inputs.items()}
    text = json.dumps({"model": path, "inputs": given, "outputs": outputs})
    environment = {**os.environ, "NODE_PATH": str(_MODULES)}
    done = subprocess.run(["node", str(_SCRIPT)], input=text, capture_output=True, text=True, env=environment)
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    last = (done.stdout.strip().splitlines() or ["{}"])[-1]
    found = json.loads(last) if last.startswith("{") else {}
    if "outputs" not in found:
        raise RuntimeError(found.get("error") or f"node ends with {done.returncode}: {done.stderr.strip()[-200:]}")
    return [_array(*each) for each in found["outputs"]]


def _kind(array: Any) -> str:
    return "string" if array.dtype == object else str(array.dtype)


def _array(kind: str, shape: list[int], items: list[str]) -> Any:
    if kind == "bool":
        return np.array([item in ("1", "true") for item in items]).reshape(shape)
    made = np.array(items, object) if kind == "string" else np.array([float(each) for each in items]).astype(kind)
    return made.reshape(shape)
