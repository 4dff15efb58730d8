"""Run as a program: which models onnxruntime and the reference evaluator run. A process of its own, because onnxruntime
ends the process on some invalid sizes: `python sizes_worker.py MODELS ANSWERS`, where MODELS is a pickle of models as
bytes with their feeds. It goes on behind the last line of ANSWERS and adds a line for each model.
"""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator


def by_onnxruntime(model: bytes, feeds: dict[str, Any]) -> None:
    """Run a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def by_reference(model: bytes, feeds: dict[str, Any]) -> None:
    """Run a model in onnx's evaluator."""
    ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)


def main(models: Path, answers: Path) -> None:
    """Add the answers that are missing."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    # A line that says which engines are still asked is there before they are: where the process ends, it stays.
    done = len(answers.read_text().splitlines()) if answers.exists() else 0
    with answers.open("a") as file:
        for model, feeds in pickle.loads(models.read_bytes())[done:]:
            told = []
            file.write("[")
            file.flush()
            for run in (by_onnxruntime, by_reference):
                try:
                    run(model, feeds)
                except Exception:  # the engines' errors have no common base of their own
                    told.append(False)
                else:
                    told.append(True)
            file.write(f"{json.dumps(told)[1:]}\n")
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
