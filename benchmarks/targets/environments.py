"""The runtimes that can be installed from a package index, and how: one environment for each version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ADAPTERS = Path(__file__).with_name("adapters")
# Of runtimes that splitgraph runs itself.
PROGRAMS = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "runners" / "programs"


class Runtime(NamedTuple):
    """One version of a runtime. adapter: its file in `ADAPTERS` or `PROGRAMS`. folder: the name of its environment.
    needs: what pip installs. npm: what npm installs, into the same folder.
    """

    adapter: str
    folder: str
    needs: Sequence[str]
    npm: Sequence[str] = ()


def _of_pip(adapter: str, package: str, version: str, *more: str, folder: str | None = None) -> Runtime:
    return Runtime(adapter, f"{folder or adapter}-{version}", (f"{package}=={version}", "numpy", *more))


_OLD_NUMPY = "numpy<2"
# By name and version, as `--target` takes them; the newest version of each runtime first.
RUNTIMES: Mapping[str, Runtime] = {
    "onnxruntime@1.32.0": _of_pip("onnxruntime", "onnxruntime", "1.32.0"),
    "onnxruntime@1.20.1": _of_pip("onnxruntime", "onnxruntime", "1.20.1"),
    "onnxruntime@1.17.3": _of_pip("onnxruntime", "onnxruntime", "1.17.3", _OLD_NUMPY),
    "onnxruntime@1.15.1": _of_pip("onnxruntime", "onnxruntime", "1.15.1", _OLD_NUMPY),
    "onnxruntime-web@1.30.0": Runtime(
        "onnxruntime_web", "onnxruntime_web-1.30.0", ("numpy",), ("onnxruntime-web@1.30.0",)
    ),
    "openvino@2026.4.1": _of_pip("openvino", "openvino", "2026.4.1"),
    "openvino@2024.6.0": _of_pip("openvino", "openvino", "2024.6.0"),
    "openvino@2023.3.0": _of_pip("openvino", "openvino", "2023.3.0", _OLD_NUMPY),
    "opencv@5.0.0": _of_pip("opencv", "opencv-python-headless", "5.0.0.93"),
    "opencv@4.14.0": _of_pip("opencv", "opencv-python-headless", "4.14.0.94"),
    "opencv@4.10.0": _of_pip("opencv", "opencv-python-headless", "4.10.0.84"),
    "tract@0.23.9": _of_pip("tract", "tract", "0.23.9"),
    "tinygrad@0.14.0": _of_pip("tinygrad", "tinygrad", "0.14.0"),
    "mnn@3.6.1": _of_pip("mnn", "MNN", "3.6.1"),
    "tvm@0.27.0": _of_pip("tvm", "apache-tvm", "0.27.0.post1", "onnx"),
    "iree@3.13.0": Runtime(
        "iree", "iree-3.13.0", ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy", "onnx")
    ),
    "jaxonnxruntime@0.3.0": _of_pip("jaxonnxruntime", "jaxonnxruntime", "0.3.0", "jax==0.10.2", "absl-py", "onnx"),
    "onnx2torch@1.5.15": _of_pip("onnx2torch", "onnx2torch", "1.5.15"),
    "onnx2tf@1.29.24": _of_pip("onnx2tf", "onnx2tf", "1.29.24", "tensorflow", "onnx", "onnxsim"),
    "rknn@2.5.0": _of_pip("rknn", "rknn-toolkit2", "2.5.0", "onnx"),
    "ncnn@1.0.20261020": Runtime("ncnn", "pnnx-20261020", ("pnnx==20261020", "ncnn==1.0.20261020", "numpy")),
    "aidge@0.10.1": Runtime(
        "aidge", "aidge-0.10.1", ("aidge-core==0.10.1", "aidge-onnx==0.10.1", "aidge-backend-cpu==0.10.1", "numpy")
    ),
}


def environment(runtime: Runtime, cache: Path) -> tuple[Path, dict[str, str]]:
    """The Python of a runtime's environment, which is made where it is missing, and the variables that it needs."""
    folder = cache / runtime.folder
    python = folder / "bin" / "python"
    if not python.exists() and runtime.needs != ("numpy",):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *runtime.needs], check=True)
    if runtime.npm and not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--ignore-scripts", "--prefix", folder, *runtime.npm], check=True)
    # A runtime of npm is called from the Python that runs this.
    used = python if python.exists() else Path(sys.executable)
    return used, {**os.environ, "NODE_MODULES": str(folder / "node_modules"), "PYTHONPATH": ""}
