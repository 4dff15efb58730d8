"""Saves a converted model and kills the save, again and again: `python saving_worker.py FOLDER MOMENTS PLACE`.

PLACE is "in-place", or "beside" for a new name. A process of its own, since it forks one for each save and must have no
threads. A JSON line for each moment says whether the save was ended early, what the target then was ("old", "new" or
"neither"; where there was no file, none is the old one) and which other files were left, and the same of the save after
it, that nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import splitgraph

# Of float32: 32 MB in four tensors.
_ROWS, _COLUMNS, _TENSORS = 1024, 2048, 4


def make_model(path: Path) -> None:
    """A model whose weights are most of its file: a chain of products, and a split."""
    random_numbers = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(random_numbers.normal(size=(_ROWS, _COLUMNS)).astype(np.float32), f"w{number}")
        for number in range(_TENSORS)
    ]
    nodes = [helper.make_node("Gemm", ["x", tensor.name], [f"h_{tensor.name}"]) for tensor in weights]
    nodes.append(helper.make_node("Sum", [f"h_{tensor.name}" for tensor in weights], ["h"]))
    nodes.append(helper.make_node("Split", ["h"], ["a", "b"], axis=1))
    inputs = [helper.make_tensor_value_info("x", 1, ["N", _ROWS])]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class Saves:
    """Saves of one result to one target, each from the same beginning."""

    def __init__(self, folder: Path, *, in_place: bool) -> None:
        self.folder = folder / "saved"
        self.folder.mkdir()
        self.source, self.target = self.folder / "model.onnx", self.folder / "new.onnx"
        if in_place:
            self.target = self.source
        make_model(self.source)
        self._before = folder / "before.onnx"
        shutil.copy(self.source, self._before)
        self.old = self.target.read_bytes() if in_place else None
        self.result = splitgraph.upgrade(self.source, 18)
        self.result.save(folder / "expected.onnx")
        self.new = (folder / "expected.onnx").read_bytes()

    def begin_again(self) -> None:
        """The folder as it was before the save."""
        for path in self.folder.iterdir():
            path.unlink()
        shutil.copy(self._before, self.source)

    def run(self, delay: float | None) -> bool:
        """Save in a process, and kill it after so many seconds; True where that ended the save early."""
        process = os.fork()
        if process == 0:
            self.result.save(self.target)
            os._exit(0)
        if delay is not None:
            time.sleep(delay)
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        return os.waitstatus_to_exitcode(status) != 0

    def found(self) -> str:
        """Which file the target is now."""
        known = {self.old: "old", self.new: "new"}
        return known.get(self.target.read_bytes() if self.target.exists() else None, "neither")

    def left(self) -> list[str]:
        """The names of all other files in the folder."""
        return sorted({path.name for path in self.folder.iterdir()} - {self.source.name, self.target.name})


def main(folder: Path, moments: int, *, in_place: bool) -> None:
    """Kill saves at random moments."""
    saves, random_numbers = Saves(folder, in_place=in_place), random.Random(0)
    # How long a save takes says only which moments are worth a try: no answer hangs on it.
    started = time.perf_counter()
    saves.run(None)
    longest = time.perf_counter() - started
    for moment in range(moments):
        saves.begin_again()
        # The first is killed at once.
        is_killed = saves.run((moment + random_numbers.random() * (moment > 0)) / moments * longest)
        answer = {"killed": is_killed, "target": saves.found(), "left": saves.left()}
        saves.run(None)
        print(json.dumps({**answer, "next": saves.found(), "left by the next": saves.left()}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), in_place=sys.argv[3] == "in-place")
