"""Runs ONNX files in OpenVINO as users do, by its own frontend: `python frontend_worker.py FOLDER`, in a child process.

FOLDER holds `<name>.onnx` and `<name>.<index>.npz` with inputs; for each model `{"outputs": [[[...]]]}` or
`{"failed": reason}` is written to `<name>.json`, so that a crash loses one model only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import openvino as ov


def run(path: Path) -> list[list[list[object]]]:
    core = ov.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    outputs = []
    for feed in sorted(path.parent.glob(f"{path.stem}.*.npz")):
        results = compiled(dict(np.load(feed)))
        outputs.append([[list(value.shape), value.ravel().tolist()] for value in results.values()])
    return outputs


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.onnx")):
        told = path.with_suffix(".json")
        if told.exists():
            continue
        told.write_text(json.dumps({"failed": "crashed"}))
        try:
            told.write_text(json.dumps({"outputs": run(path)}))
        except Exception as error:
            told.write_text(json.dumps({"failed": str(error)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
