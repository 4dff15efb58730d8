"""A model that does not fit on the disk: the old file stays, the error says why, and nothing else is left.

A limit of the size of files stands for the disk, as it needs no rights. The long tests fill a small file system, where
the system lets them mount one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

CHECKOUT = Path(__file__).parents[2]

# Runs the command line in a process that can write so many bytes to a file.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from splitgraph.cli import main
sys.exit(main(sys.argv[2:]))
"""
# Runs it in a file system of so many bytes, which is gone with the process: what the folder holds is copied there, and
# what is then there is copied to another folder.
FILLED = """
set -e
folder="$1"; size="$2"; python="$3"; shift 3
cp -r "$folder" "$folder.before"
mount -t tmpfs -o "size=$size" none "$folder"
cp -r "$folder.before/." "$folder"
cd "$folder"
status=0
"$python" -m splitgraph "$@" || status=$?
cp -r "$folder" "$folder.after"
exit "$status"
"""
UNSHARED = ["unshare", "--map-root-user", "--mount"]

SMALL, LARGE = 20_480, 3 * 2**20
UPGRADE = ["upgrade", "model.onnx", "--opset", "18", "--no-verify"]
COMMANDS = {
    "to a new name": [*UPGRADE, "-o", "third.onnx"],
    "over another file": [*UPGRADE, "-o", "new.onnx", "--force"],
    "in place": [*UPGRADE, "--in-place"],
    "inferred": ["infer", "model.onnx", "-o", "third.onnx"],
    "converted": ["convert", "model.onnx", "--to", "variadic-split", "--no-verify", "-o", "third.onnx"],
}


def may_mount() -> bool:
    """True where a process may have file systems of its own."""
    return shutil.which("unshare") is not None and subprocess.run([*UNSHARED, "true"], check=False).returncode == 0


# How much room there is, for models with so many bytes of weights.
DISKS: list[Any] = [("limited", SMALL, "0"), ("limited", SMALL, "15000"), ("limited", LARGE, "4096")]
DISKS.append(("limited", LARGE, str(LARGE)))
if may_mount():
    DISKS += [
        pytest.param("filled", SMALL, "44k", marks=pytest.mark.slow),
        pytest.param("filled", LARGE, "5m", marks=pytest.mark.slow),
    ]


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("disk", "size", "room"), DISKS)
@pytest.mark.sample(7)
def test_a_model_that_does_not_fit(disk: str, size: int, room: str, arguments: Sequence[str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    onnx.save(model_of(size), folder / "model.onnx")
    (folder / "new.onnx").write_bytes(b"what was there before")
    before = contents(folder)
    if disk == "limited":
        ran, after = run([sys.executable, "-c", LIMITED, room, *arguments, "--json"], folder), folder
        words = "cannot be written: File too large"
    else:
        command = [*UNSHARED, "sh", "-c", FILLED, "sh", str(folder), room, sys.executable, *arguments, "--json"]
        ran, after = run(command, tmp_path), tmp_path / "folder.after"
        words = "cannot be written: No space left on device"
    assert contents(after) == before
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert words in line
    (found,) = json.loads(ran.stdout)["diagnostics"]
    assert (found["code"], found["message"]) == ("SG109", words)


def model_of(size: int) -> ModelProto:
    """A model with so many bytes of weights."""
    weights = numpy_helper.from_array(np.ones((16, size // 64), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Split", ["h"], ["a", "b"], axis=1)]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 16])]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with the checkout's splitgraph."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
