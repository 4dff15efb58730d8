"""Run models in one runtime: `python -I loop.py PROGRAM`, jobs on standard input, answers on standard output.

Both are lines of JSON. The first answer says who answers, or why nobody can:

    {"protocol": 1, "version": "4.14.0", "python": "3.11.7"}
    {"missing": "No module named 'cv2'"}

A job, and its answer:

    {"id": 1, "model": path, "inputs": path of an npz, "names": [name, ...], "outputs": [name, ...],
     "save": path of an npz or null, "seconds": 60, "megabytes": 8192}
    {"id": 1, "answer": "ran", "stage": "run", "said": "", "seconds": 0.1, "peak_mb": 80}

answer: "ran", "refuses" (an error of the runtime), "dies", "hangs", or "not given" (the bindings lack a type). stage:
"read", "prepare" or "run". said: the runtime's own words. The inputs are "i0", "i1", ... in the order of their names,
and the results are saved as "o0", "o1", ... in the order of the outputs. Texts are in both as text of fixed width.

The runtime is imported once. Each job is run in a process of its own, so that a death costs one job: a fork, or a new
process where there are none (`python -I loop.py PROGRAM JOB ANSWER`, two files).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

if TYPE_CHECKING:
    # The stage, the answer, what was said, and the peak of memory.
    _Outcome = tuple[str, str, str, "int | None"]

# Characters of what a runtime says.
_LONGEST = 400


def main(program: str) -> None:
    """Answer every job of the input."""
    jobs, answers = os.dup(0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What runtimes print goes to a file, and they can read nothing.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        try:
            module = _load(program)
            hello = {"protocol": 1, "version": str(module.version()), "python": platform.python_version()}
        except BaseException as error:
            hello = {"missing": _told(error, ())}
        _write(answers, hello)
        if "missing" not in hello:
            for line in _lines(jobs):
                _write(answers, _answer_of(module, program, json.loads(line), jobs, answers, printed))


def _write(answers: TextIO, document: dict[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


def _lines(descriptor: int) -> Iterator[str]:
    """Yield the lines of a stream. Nothing is read ahead: `select` must see what comes during a job."""
    text = b""
    while True:
        piece = os.read(descriptor, 65536)
        if not piece:
            return
        text += piece
        while b"\n" in text:
            line, _, text = text.partition(b"\n")
            yield line.decode("utf-8")


def _load(program: str) -> Any:
    # Under a name of its own: programs are called like the packages that they import.
    specification = importlib.util.spec_from_file_location("program_of_the_runtime", program)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


# One job --------------------------------------------------------------------------------------------------------------


def _answer_of(
    module: Any, program: str, job: dict[str, Any], jobs: int, answers: TextIO, printed: Any
) -> dict[str, Any]:
    """Run a job in a process of its own."""
    printed.seek(0)
    printed.truncate()
    began = time.monotonic()
    found = _in_a_fork(module, job, jobs, answers) if hasattr(os, "fork") else _in_a_new_process(program, job)
    stage, answer, said, peak = found
    if answer == "dies" or (answer == "refuses" and getattr(module, "PRINTS_WHY", False)):
        last = _last_line(printed)
        if last and last not in said:
            said = said + ": " + last if said else last
    seconds = round(time.monotonic() - began, 3)
    said = said[:_LONGEST]
    return {"id": job["id"], "answer": answer, "stage": stage, "said": said, "seconds": seconds, "peak_mb": peak}


def _in_a_fork(module: Any, job: dict[str, Any], jobs: int, answers: TextIO) -> _Outcome:
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # Whoever reads the answers sees the end of the loop, whatever this process does.
            for descriptor in (receiving, jobs, answers.fileno()):
                os.close(descriptor)
            os.setsid()
            _end_with_parent()
            _limit(job["megabytes"])
            with os.fdopen(sending, "w", encoding="utf-8") as events:
                _run(module, job, events)
                # At the end of the events this process is ended.
                _flush()
        finally:
            os._exit(0)
    os.close(sending)
    told, is_late = _read(receiving, job["seconds"], jobs)
    os.close(receiving)
    # Also what the runtime started and left.
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    status = os.wait4(child, 0)[1]
    cause = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    return _outcome(told, is_late, job["seconds"], cause)


def _read(receiving: int, seconds: float, jobs: int) -> tuple[bytes, bool]:
    """Return the lines that the child writes, and whether it takes too long."""
    text, deadline = b"", time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([receiving, jobs], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return text, True
        if receiving not in ready:
            # There is one job at a time: the input ended, and nobody waits for the answer.
            return text, True
        piece = os.read(receiving, 65536)
        if not piece:
            return text, False
        text += piece


def _in_a_new_process(program: str, job: dict[str, Any]) -> _Outcome:
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("job.json", "events.jsonl")]
        with open(files[0], "w", encoding="utf-8") as file:
            json.dump(job, file)
        open(files[1], "w").close()
        command = [sys.executable, "-I", os.path.abspath(__file__), program, *files]
        is_late, cause = False, ""
        try:
            ended = subprocess.run(command, timeout=job["seconds"])
            cause = f"exit code {ended.returncode}"
        except subprocess.TimeoutExpired:
            is_late = True
        with open(files[1], "rb") as file:
            return _outcome(file.read(), is_late, job["seconds"], cause)


def _outcome(events: bytes, is_late: bool, seconds: float, cause: str) -> _Outcome:
    """Return the stage, the answer, what was said, and the peak of memory. cause: of the end of the process."""
    told = [json.loads(line) for line in events.decode("utf-8").splitlines(keepends=True) if line.endswith("\n")]
    if told and "answer" in told[-1]:
        return told[-1]["stage"], told[-1]["answer"], told[-1]["said"], told[-1]["peak_mb"]
    stage = told[-1]["stage"] if told else "read"
    return (stage, "hangs", f"no answer after {seconds:g} s", None) if is_late else (stage, "dies", cause, None)


def _flush() -> None:
    """Write what Python and C hold back of what was printed: a fork ends without it."""
    import ctypes

    sys.stdout.flush()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).fflush(None)


def _end_with_parent() -> None:
    """Let the kernel kill this process when the loop ends, however that ends. Only Linux can do this."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _limit(megabytes: float) -> None:
    """Limit the memory that this process may allocate, where the system can."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = int(megabytes) << 20
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


# In the process of the job --------------------------------------------------------------------------------------------


def _run(module: Any, job: dict[str, Any], events: TextIO) -> None:
    """Run a job, and write its events: each stage, and then the answer."""
    reached = ["read"]

    def stage(name: str) -> None:
        reached[0] = name
        _write(events, {"stage": name})

    answer, said = "ran", ""
    try:
        inputs = _arrays(job["inputs"], job["names"])
        found = [np.asarray(each) for each in module.run(job["model"], inputs, job["outputs"], stage)]
        if job["save"] is not None:
            texts: list[Any] = [each.astype(str) if each.dtype == object else each for each in found]
            np.savez(job["save"], **{f"o{position}": each for position, each in enumerate(texts)})
    except BaseException as error:
        answer = "not given" if type(error) is BufferError else "refuses"
        said = _told(error, [os.path.dirname(job["model"])])
    _write(events, {"stage": reached[0], "answer": answer, "said": said, "peak_mb": _peak()})


def _peak() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit


def _arrays(path: str, names: list[str]) -> dict[str, Any]:
    with np.load(path) as held:
        found = {name: held[f"i{position}"] for position, name in enumerate(names)}
    return {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in found.items()}


def _told(error: BaseException, folders: Iterable[str]) -> str:
    """Return what an error says, in one line; of an error that holds the traceback of another one, what the other says.

    Files of this machine are named without their folders, so that another machine says the same.
    """
    text = type(error).__name__ + ": " + str(error)
    if str(error).startswith("Traceback (most recent call last)"):
        lines = str(error).splitlines()
        calls = [number for number, line in enumerate(lines) if line.startswith("  ")]
        text = "\n".join(lines[max(calls, default=0) + 1 :])
    return _plain(text, folders)


def _plain(text: str, folders: Iterable[str]) -> str:
    local = "|".join(map(re.escape, {*folders, sys.prefix, sys.base_prefix, tempfile.gettempdir()} - {""}))
    return re.sub(rf"(?<![\w.-])(?:{local})/(?:[^\s'\":]*/)?", "", " ".join(text.split()))


def _last_line(printed: Any) -> str:
    printed.seek(0)
    lines = [line.strip() for line in printed.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return _plain(lines[-1], ())[:_LONGEST] if lines else ""


if __name__ == "__main__":
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as given, open(sys.argv[3], "a", encoding="utf-8") as told:
            _run(_load(sys.argv[1]), json.load(given), told)
    else:
        main(sys.argv[1])
