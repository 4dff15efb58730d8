"""Talk to the program that runs models in a runtime (see `programs.loop`)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from splitgraph.runtimes.runners.interpreters import LOOP, Kind

# The answers to a job: it ran; the runtime gave an error; its process died, or took too long; its bindings lack a type.
JobAnswer = Literal["ran", "refuses", "dies", "hangs", "not given"]
# Importing a runtime on a busy machine takes seconds.
_STARTING_SECONDS = 120.0
# The program itself ends a job in time; so many seconds later, it hangs itself.
_GRACE_SECONDS = 30.0
# What a job may allocate.
MEGABYTES = 8192


class ModelJob(NamedTuple):
    """A model to run.

    inputs: an npz with the array "i0", "i1", ... of each of the names. save: the npz for the results "o0", "o1", ...
    """

    model: Path
    inputs: Path
    names: Sequence[str]
    outputs: Sequence[str]
    save: Path | None
    seconds: float


class JobResult(NamedTuple):
    """What became of a job: the answer, the stage that it reached ("read", "prepare" or "run"), and what the runtime
    said. seconds, peak_mb: what it took; None for not known.
    """

    answer: JobAnswer
    stage: str
    said: str
    seconds: float | None = None
    peak_mb: int | None = None


class MissingRuntimeError(Exception):
    """Raised for a Python that does not have a runtime; the message says what it said."""


class Runner:
    """A process that runs models in a runtime. Use it in a `with` statement, and from one thread.

    A job that kills its process, or takes too long, costs that job. If the program itself ends, it is started again for
    the next job. program: see `programs`. python: that runs it. variables: of its environment. version, python_version:
    as the program says. Raises MissingRuntimeError, and OSError if no process can be started.
    """

    def __init__(self, program: Path, python: str, variables: Mapping[str, str] | None = None) -> None:
        self.python = python
        self._command = [python, "-I", str(LOOP), str(program)]
        self._variables = dict(os.environ if variables is None else variables)
        self._number = 0
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._variables,
            # Ctrl+C in a terminal is for this process, which ends the other one.
            start_new_session=True,
        )
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self._process, self._answers), daemon=True).start()
        try:
            hello = self._next(_STARTING_SECONDS)
        except BaseException:
            self.close()
            raise
        if hello is None or "missing" in hello:
            self.close()
            raise MissingRuntimeError("it does not start" if hello is None else hello["missing"])
        self.version, self.python_version = str(hello["version"]), str(hello["python"])

    @staticmethod
    def _listen(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
        assert process.stdout is not None
        # Closed here: another thread could not close it while this one reads.
        with process.stdout, contextlib.suppress(OSError):
            for line in process.stdout:
                answers.put(line)
        answers.put(None)

    def _next(self, seconds: float) -> dict[str, Any] | None:
        """Return the next answer; None if the program ended, or does not answer."""
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            return None
        try:
            answer: dict[str, Any] | None = None if line is None else json.loads(line)
        except ValueError:
            return None
        return answer

    def run(self, job: ModelJob) -> JobResult:
        """Run a model; return what became of it."""
        if self._process.poll() is not None:
            self._start()
        self._number += 1
        document = {
            "id": self._number,
            "model": str(job.model),
            "inputs": str(job.inputs),
            "names": list(job.names),
            "outputs": list(job.outputs),
            "save": None if job.save is None else str(job.save),
            "seconds": job.seconds,
            "megabytes": MEGABYTES,
        }
        began = time.monotonic()
        answer = None
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(document).encode("utf-8") + b"\n")
            self._process.stdin.flush()
            answer = self._next(job.seconds + _GRACE_SECONDS)
        if answer is None:
            # The runtime took the program with it.
            is_late = time.monotonic() - began >= job.seconds
            self.close()
            text = f"no answer after {job.seconds:g} s" if is_late else "the program that runs it ended"
            return JobResult("hangs" if is_late else "dies", "read", text)
        return JobResult(answer["answer"], answer["stage"], answer["said"], answer["seconds"], answer["peak_mb"])

    def close(self) -> None:
        """End the program, and what it started."""
        process = self._process
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()

    def __enter__(self) -> Runner:
        """Return the runner."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the program."""
        self.close()


def runner_of(kind: Kind, python: str) -> Runner:
    """Start a runtime in a Python. Raises MissingRuntimeError and OSError."""
    return Runner(kind.program, python)
