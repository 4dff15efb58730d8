"""Processes that answer questions about models for `planted_faults.py`, each question within a time.

A process is asked by lines of JSON. It is ended where it does not answer in time, and a new one answers the next
question. As a script, this file is such a process.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

Answer = dict[str, Any]


class Helper:
    """A process of this file. tree: the folder whose splitgraph the process imports."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def ask(self, question: str, patience: float, **arguments: object) -> Answer:
        """Return the answer of one question; {"failed": reason} where the process gives none.

        patience: the seconds after which the process is ended.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"question": question, **arguments}) + "\n")
            self._process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(self._process.stdout, selectors.EVENT_READ)
                line = self._process.stdout.readline() if selector.select(patience) else None
        except BrokenPipeError:
            line = ""
        if line:
            return dict(json.loads(line))
        reason = f"no answer in {patience:.0f} s" if line is None else f"ended with {self._process.wait()}"
        self.end()
        return {"failed": reason}

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(self._tree)}
        command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def end(self) -> None:
        """End the process, and those that it started."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# In the process ---------------------------------------------------------------------------------------------------


def verify(before: str, after: str, timeout: float) -> Answer:
    """What `splitgraph.verify` says of two files."""
    import splitgraph

    begin = time.monotonic()
    found = splitgraph.verify(before, after, samples=3, timeout=timeout)
    difference = found.first_difference
    return {
        "verdict": found.verdict,
        "seconds": round(time.monotonic() - begin, 3),
        "engine": found.engine,
        "cases": found.cases,
        "max_abs_diff": found.max_abs_diff,
        "first_difference": "" if difference is None else f"{difference.name}: {difference.reason}"[:300],
        "diagnostics": [f"{each.code} {each.message}"[:200] for each in found.diagnostics],
        "regions": [_region(region) for region in getattr(found, "regions", ())],
    }


def _region(region: Any) -> Answer:
    """Return what a region of a verification says."""
    told = {name: getattr(region, name, None) for name in ("name", "verdict", "cases", "max_abs_diff", "reason")}
    sizes = {name: len(getattr(region, name, ())) for name in ("nodes_before", "nodes_after")}
    return {
        **{name: value if isinstance(value, (int, float)) else str(value)[:200] for name, value in told.items()},
        **sizes,
    }


def refused(path: str) -> Answer:
    """Whether inference finds an error in a model, and the checker or onnxruntime does not load it."""
    import onnx
    import onnxruntime

    import splitgraph

    analysis = splitgraph.infer(path)
    if analysis.ok:
        return {"refused": False}
    errors = [f"{each.code} {each.message}" for each in analysis.diagnostics if each.severity == "error"]
    try:
        onnx.checker.check_model(path)
        onnxruntime.set_default_logger_severity(4)
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of many names
        return {"refused": True, "reason": f"{errors[0]}; {error}"[:300]}
    return {"refused": False}


def tree() -> Answer:
    """Where the splitgraph of this process is."""
    import splitgraph

    return {"tree": str(Path(splitgraph.__file__).resolve().parents[1])}


def answer(answers: IO[str]) -> None:
    """Answer each line of the standard input."""
    from planted_faults_oracle import tell_apart

    known: Mapping[str, Callable[..., Answer]] = {
        "verify": verify,
        "refused": refused,
        "tree": tree,
        "oracle": tell_apart,
    }
    for line in sys.stdin:
        arguments = json.loads(line)
        try:
            found = known[arguments.pop("question")](**arguments)
        except Exception as error:  # any error of what is asked is an answer
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    # Engines print to the standard output.
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer(own)
