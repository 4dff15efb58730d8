"""Which runtimes have a runner, and which Python runs it: the one that the caller names, or this one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from splitgraph.findings.diagnostics import SplitgraphError

_PROGRAMS = Path(__file__).with_name("programs")
LOOP = _PROGRAMS / "loop.py"
_VARIABLE = "SPLITGRAPH_RUNTIME_"


class Kind(NamedTuple):
    """A runtime that has a runner. name: of its targets. title: its own name. packages: what pip installs."""

    name: str
    title: str
    packages: str

    @property
    def program(self) -> Path:
        """The program that runs models in it."""
        return _PROGRAMS / f"{self.name}.py"

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install {self.packages}"

    @property
    def variable(self) -> str:
        """The environment variable that names its Python."""
        return f"{_VARIABLE}{self.name}"


# By the names of targets.
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("onnxruntime", "ONNX Runtime", "onnxruntime"),
        Kind("openvino", "OpenVINO", "openvino"),
        Kind("opencv", "OpenCV", "opencv-python-headless"),
        Kind("tract", "tract", "tract"),
        Kind("mnn", "MNN", "MNN"),
        Kind("tvm", "Apache TVM", "apache-tvm onnx"),
    )
}


def interpreter_for(kind: Kind, named: Sequence[str] = ()) -> str:
    """Return the Python that is to run a runtime: the one that the caller names, else the one of the environment
    variable SPLITGRAPH_RUNTIME_<name>, else this one.

    named: paths, or NAME=PATH for one runtime. Raises SplitgraphError for a path that is no program.
    """
    given = dict(_named(text) for text in named)
    path = given.get(kind.name) or given.get("") or os.environ.get(kind.variable) or sys.executable
    found = shutil.which(path)
    if found is None:
        where = "" if path in given.values() else f" of {kind.variable}"
        raise SplitgraphError(
            f"the Python {path!r}{where} is no program; give the path of a Python that has {kind.title}"
        )
    return os.path.abspath(found)


def _named(text: str) -> tuple[str, str]:
    """Return the runtime that a path is for, "" for all, and the path."""
    name, sign, path = text.partition("=")
    if sign and name in KINDS:
        return name, path
    if sign and not os.path.exists(text):
        known = ", ".join(KINDS)
        raise SplitgraphError(f"there is no runner for {name!r}; there are: {known}")
    return "", text
