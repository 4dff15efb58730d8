"""The process in a runtime's environment: `python -I worker.py ADAPTER JOB EVENTS`.

ADAPTER is the file of an adapter. JOB is a JSON file: {"timeout": seconds, "cases": [{"name", "model", "inputs",
"outputs": [names], "folder"}]}. The adapter and its runtime are imported once. A forked process runs each case, so a
crash or an endless loop ends only this case. The process writes its outputs, or the reason of a refusal, into the
case's folder, where its standard output goes as well.

EVENTS gets one JSON object a line: {"version": text} at first, then {"name", "ended": "returned" | "refused" | "died" |
"hung", "detail": text} for each case.

The process needs only NumPy and the runtime, and is written for Python 3.8.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np

# Seconds between two looks at a process.
_PAUSE = 0.005
# Characters of a reason.
_LONGEST = 300


def main(adapter_file, job_file, events_file):
    """Run every case of the job."""
    adapter = _module(adapter_file)
    job = json.loads(Path(job_file).read_text("utf-8"))
    with open(events_file, "w", encoding="utf-8") as events:
        _write(events, {"version": str(adapter.VERSION())})
        for case in job["cases"]:
            ended, detail = _in_process(adapter, case, job["timeout"])
            _write(events, {"name": case["name"], "ended": ended, "detail": detail})


def _module(path):
    spec = importlib.util.spec_from_file_location("adapter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _write(events, event):
    events.write(json.dumps(event) + "\n")
    events.flush()


def _in_process(adapter, case, timeout):
    """How a process that runs the case ended, and what there is to say of the end."""
    process = os.fork()
    if process == 0:
        _child(adapter, case)
    status = _wait(process, time.monotonic() + timeout)
    _end_group(process)  # what the runtime started and left
    if status is None:
        os.waitpid(process, 0)
        return "hung", f"no end after {timeout:g} seconds"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "died", f"signal {number} ({signal.Signals(number).name})"
    refusal = Path(case["folder"], "refusal.txt")
    if refusal.exists():
        return "refused", refusal.read_text("utf-8")
    if os.WEXITSTATUS(status) != 0 or not Path(case["folder"], "outputs.npz").exists():
        return "died", f"exit status {os.WEXITSTATUS(status)}"
    return "returned", ""


def _wait(process, deadline):
    """The status of a process that has ended; None where it has not at the deadline."""
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status
        time.sleep(_PAUSE)
    return None


def _end_group(leader):
    """End the processes of the group that a case began, the first of which may have ended by itself."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # macOS: only processes that have ended remain
        pass


def _child(adapter, case):
    """Run a case, write what came of it, and end the process without what the runtime does at its end."""
    os.setsid()
    folder = Path(case["folder"])
    output = os.open(str(folder / "output.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(str(folder))
    status = 0
    try:
        # A copy, because converters rewrite the file that they read.
        model = shutil.copy(case["model"], str(folder / "model.onnx"))
        outputs = adapter.run(model, _inputs(case["inputs"]), case["outputs"])
        np.savez(str(folder / "outputs.npz"), **{str(index): _stored(array) for index, array in enumerate(outputs)})
    except BaseException as error:  # a runtime may also end the process by SystemExit
        traceback.print_exc()
        Path(folder, "refusal.txt").write_text(_reason(error), "utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _inputs(path):
    with np.load(path) as stored:
        arrays = {key: stored[key] for key in stored.files}
    return {key: array.astype(object) if array.dtype.kind == "U" else array for key, array in arrays.items()}


def _stored(array):
    """An output as a file can hold it: strings as text."""
    array = np.asarray(array)
    if array.dtype != object:
        return array
    texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()]
    return np.array(texts, dtype=str).reshape(array.shape)


def _reason(error):
    """The first line of an error that says something, after the class of the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    own = type(error).__name__ == "Refused"
    return text if own else f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    main(*sys.argv[1:])
