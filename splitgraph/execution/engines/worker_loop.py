"""Take jobs in an engine process: `python -m splitgraph.execution.engines.worker_loop SECONDS`.

The parent writes the folder of each job to stdin, as a line of JSON (see `warm_processes`). After so many seconds
without a job, the process ends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import queue
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from splitgraph.execution.engines import worker
from splitgraph.execution.engines.parent_process import end_with_parent
from splitgraph.execution.engines.warm_processes import BEGAN, DONE, LAST

# A process that holds so many bytes more than when it started takes no other job.
_MOST_HELD = 2**30


def serve(idle: float) -> None:
    """Run jobs until the parent ends, there is none for so many seconds, or this process is not healthy."""
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    end_with_parent(requests.put)
    # What engines print goes to a file of the job.
    replies = os.dup(1)
    at_start = _memory()
    while True:
        try:
            line = requests.get(timeout=max(idle, 1.0))
        except queue.Empty:
            return
        os.write(replies, BEGAN)
        # What was made before the job is no garbage of the job.
        gc.freeze()
        with _within(Path(json.loads(line))) as folder:
            is_healthy = worker.main(folder, _memory().size - at_start.size)
        gc.collect()
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        is_kept = is_healthy and _memory().resident - at_start.resident < _MOST_HELD
        os.write(replies, DONE if is_kept else LAST)
        if not is_kept:
            return


class _Memory(NamedTuple):
    """How much memory this process has, in bytes. size: of the address space. resident: in the memory of the machine.
    Both are 0 on systems that do not say so, and that do not enforce a limit of the address space either.
    """

    size: int
    resident: int


def _memory() -> _Memory:
    try:
        size, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
    except OSError:
        return _Memory(0, 0)
    page = mmap.PAGESIZE
    return _Memory(int(size) * page, int(resident) * page)


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[Path]:
    """Let the current folder be that of a job, and its files take what engines print."""
    files = [os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for name in ("stdout", "stderr")]
    for target, file in enumerate(files, start=1):
        os.dup2(file, target)
        os.close(file)
    os.chdir(folder)
    try:
        yield folder
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Not after an error, which ends the process with a traceback.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for target in (1, 2):
        os.dup2(nowhere, target)
    os.close(nowhere)
    os.chdir(folder.parents[1])


if __name__ == "__main__":
    serve(float(sys.argv[1]))
