"""The process in the environment of an old onnxruntime: `python -I old_runtimes_worker.py VALUES FOLDER`.

VALUES is the file of `splitgraph.verification.values`, which needs only numpy; splitgraph cannot be imported there.
FOLDER holds `old_job.json`: {"model": file, "cases": [{"case": 0, "attempt": 0, "inputs": file, "outputs": file}]}. The
model is loaded as a user loads it, with all optimisations. What happens is written to `old_events.jsonl`, a line at a
time, so that the last line tells what a crash interrupted:

    {"event": "start" | "end", "stage": "load"}
    {"event": "start" | "end", "stage": "run", "case": 0, "attempt": 0, "outputs": file}
    {"event": "failed", "stage": ..., "reason": ""}

It is written for Python 3.8.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path


def main(values_file: Path, folder: Path) -> None:
    """Do the job that a folder describes."""
    values = _module(values_file)
    job = json.loads((folder / "old_job.json").read_text("utf-8"))
    with (folder / "old_events.jsonl").open("w", encoding="utf-8") as events:
        session = _step(events, {"stage": "load"}, _load, job["model"])
        for case in job["cases"] if session is not None else ():
            where = {"stage": "run", **{key: case[key] for key in ("case", "attempt", "outputs")}}
            _step(events, where, _run, session, case, folder, values)


def _step(events, where, function, *arguments):
    """What the function gives; None where it fails, which is written down."""
    _write(events, {"event": "start", **where})
    try:
        made = function(*arguments)
    except Exception as error:  # onnxruntime's errors have no common class
        _write(events, {"event": "failed", **where, "reason": str(error)})
        return None
    _write(events, {"event": "end", **where})
    return made


def _load(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _run(session, case, folder, values):
    outputs = session.run(None, values.read_values(folder / case["inputs"]))
    values.write_values(folder / case["outputs"], {str(index): value for index, value in enumerate(outputs)})


def _module(path):
    """A module by its file alone."""
    spec = importlib.util.spec_from_file_location("values", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _write(events, event):
    events.write(json.dumps(event) + "\n")
    events.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
