"""A worker process: it reads jobs from stdin and writes outcomes to stdout, both pickled. It ends when stdin ends, even
while it works.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from typing import IO

from splitgraph.batch.job import Job, run_job
from splitgraph.execution.engines.parent_process import killed_with_parent
from splitgraph.process import stopped_cleanly

# A process that has used more than this many bytes is replaced: memory that was used once is not given back.
_MOST_USED = 2**30


def main(memory: int) -> None:
    """Do jobs until stdin ends, or until the process has used much memory, which is told with the last outcome.

    memory: the limit of its memory in bytes, 0 for none.
    """
    killed_with_parent()
    _limit_memory(memory)
    jobs, outcomes = _streams()
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(jobs, waiting), daemon=True).start()
    with stopped_cleanly():
        while True:
            outcome = run_job(waiting.get())
            is_last = _used_memory() > _MOST_USED
            pickle.dump((outcome, is_last), outcomes)
            outcomes.flush()
            if is_last:
                return


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """The streams of jobs and outcomes. What libraries print goes to stderr."""
    jobs, outcomes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return jobs, outcomes


def _read(jobs: IO[bytes], waiting: queue.SimpleQueue[Job]) -> None:
    while True:
        try:
            waiting.put(pickle.load(jobs))
        except EOFError:
            os._exit(0)


def _limit_memory(memory: int) -> None:
    """Limit what this process and each of its engines may allocate; only Linux counts that."""
    if not memory or sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    memory = min(memory, sys.maxsize)
    allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _used_memory() -> int:
    """The most memory that this process has had, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    # Kilobytes on Linux, bytes on macOS.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used
