"""Writes IR by a release of OpenVINO, by its own Python: `python ir_writer.py FOLDER`, names of models on the input.

Each line of the input is the path of a model without `.onnx`; beside it are `.in.npz` and `.exp.npz`. The IR goes into
FOLDER, and is run there: a line of the answer is JSON, the path and "" if the results are those that are expected, else
what was wrong. All models are converted in one process, which converts twenty times as many in a minute as a process
for each of them; the one that calls it starts it again behind a model of which the process dies. Imports nothing of
the project.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import openvino

_SECONDS = 60
_LONGEST = 300


def main(folder: Path) -> None:
    """Write the IR of every line of the input."""
    answers = os.fdopen(os.dup(1), "w")
    # What OpenVINO prints goes nowhere; the answers have a stream of their own.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    core, harness = openvino.Core(), _harness()
    for line in sys.stdin:
        path = line.rstrip("\n")
        # A model that takes longer ends the process, as one does of which the process dies.
        signal.alarm(_SECONDS)
        try:
            problem = _write(core, harness, path, folder)
        except BaseException as error:
            problem = " ".join(f"{type(error).__name__}: {error}".split())
        print(json.dumps([path, problem[:_LONGEST]]), file=answers, flush=True)


def _write(core: Any, harness: Any, path: str, folder: Path) -> str:
    """Write one IR and run it. Return what is wrong with its results."""
    written = Path(folder, f"{Path(path).name}.xml")
    openvino.save_model(openvino.convert_model(f"{path}.onnx"), written, compress_to_fp16=False)
    compiled = core.compile_model(core.read_model(written), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled.create_infer_request().infer(harness.arrays(f"{path}.in.npz"))
    answer, words = harness.compare([found[port] for port in compiled.outputs], harness.arrays(f"{path}.exp.npz"), 1e-4)
    return "" if answer == "reads" else f"{answer}: {words}"


def _harness() -> Any:
    """The module that compares results in every measurement. Its folder is not on the path, where modules of a runtime
    may be called like those there.
    """
    specification = importlib.util.spec_from_file_location("worker", Path(__file__).with_name("worker.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(Path(sys.argv[1]))
