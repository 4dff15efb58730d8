"""Runs models in onnxruntime, as the tests' child: `python shape_log_worker.py MODEL...`; the log goes to stderr.

Every input is filled with ones of the declared shape. Prints, as JSON, the shapes of the outputs of each model.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import onnxruntime

_DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}


def main(paths: list[str]) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 2
    options.intra_op_num_threads = 1
    told = []
    for path in paths:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = {value.name: np.ones(value.shape, _DTYPES[value.type]) for value in session.get_inputs()}
        told.append([list(array.shape) for array in session.run(None, feeds)])
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
