"""Worker processes that try one mutant after the other, each within limits of time and memory.

They are forked, so that what takes seconds to make is made once; the parent must have no threads. A worker that dies of
a mutant is a fault of that mutant, and another worker goes on with the next one. Needs Linux, for its limits.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import resource
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

# Seconds of CPU time, and bytes of address space beside what a worker has already.
MOST_SECONDS = 10
MOST_BYTES = 2**30
_TRACE = "trace.txt"

Answer = dict[str, Any]
# Takes the item, a folder, and what sets the limits anew for what comes next.
Work = Callable[[int, Path, Callable[[], None]], Answer]


@dataclass(slots=True)
class _Worker:
    """A worker process. waiting: what it has not answered yet, the next first. folder: where it works."""

    process: int
    answers: IO[str]
    waiting: Sequence[int]
    folder: tempfile.TemporaryDirectory[str]


def work_on(items: Sequence[int], jobs: int, work: Work) -> Iterator[tuple[int, Answer]]:
    """Each item with the answer that `work` gave for it; so many workers at a time.

    An answer has the CPU time that it took ("seconds") and the memory ("bytes") beside what `work` says; where the
    worker died of it, only what it died of ("died").
    """
    with selectors.DefaultSelector() as selector:
        for job in range(jobs):
            _start(items[job::jobs], work, selector)
        while selector.get_map():
            for key, _ in selector.select():
                yield from _take(key.data, work, selector)


def _start(items: Sequence[int], work: Work, selector: selectors.BaseSelector) -> None:
    if not items:
        return
    folder = tempfile.TemporaryDirectory(prefix="mutated-models-", ignore_cleanup_errors=True)
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as answers, open(Path(folder.name, _TRACE), "w") as trace:
            try:
                _answer(items, work, Path(folder.name), answers, trace)
            except BaseException:
                traceback.print_exc(file=trace)
                trace.flush()
            # Nothing of the parent's is done again here.
            os._exit(0)
    os.close(writer)
    worker = _Worker(process, os.fdopen(reader), items, folder)
    selector.register(worker.answers, selectors.EVENT_READ, worker)


def _take(worker: _Worker, work: Work, selector: selectors.BaseSelector) -> Iterator[tuple[int, Answer]]:
    """The next answer of a worker; one that has ended makes way for another."""
    line = worker.answers.readline()
    if line.endswith("\n"):
        item, worker.waiting = worker.waiting[0], worker.waiting[1:]
        yield item, json.loads(line)
        return
    selector.unregister(worker.answers)
    worker.answers.close()
    _, status = os.waitpid(worker.process, 0)
    if worker.waiting:
        trace = Path(worker.folder.name, _TRACE).read_text(errors="replace")
        yield worker.waiting[0], {"died": f"{_ending(status)}\n{trace}"}
        _start(worker.waiting[1:], work, selector)
    worker.folder.cleanup()


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return f"more than {MOST_SECONDS} s of CPU time"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


# In a worker -----------------------------------------------------------------------------------------------------


def _answer(items: Sequence[int], work: Work, folder: Path, answers: IO[str], trace: IO[str]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A model that names the standard input as its data must not wait for it.
    os.dup2(os.open(os.devnull, os.O_RDWR), sys.__stdin__.fileno())  # type: ignore[union-attr]
    faulthandler.enable(trace, all_threads=False)
    faulthandler.register(signal.SIGXCPU, trace, all_threads=False, chain=True)
    for item in items:
        _limit()
        started, held = time.process_time(), _held("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        answer = work(item, folder, _limit)
        answer |= {"seconds": time.process_time() - started, "bytes": max(0, _held("VmHWM") - held)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _limit() -> None:
    """Set the limits for what comes next, beside what the process has used."""
    used = math.ceil(time.process_time())
    for limit, most in ((resource.RLIMIT_CPU, used + MOST_SECONDS), (resource.RLIMIT_AS, _held("VmSize") + MOST_BYTES)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most, hard))


def _held(name: str) -> int:
    """A number of /proc/self/status, in bytes: VmSize, VmRSS, VmHWM."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f"{name}:"))
