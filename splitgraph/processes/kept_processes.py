"""Keep worker processes for the next message: their start takes longer than most of their work.

The contract of a kept process:

- It works on one message at a time, and a thread has it for itself meanwhile. As many are kept as were at work at once.
- It takes a message only for the same purpose (`key`), and only if a new process would be started in the same way: the
  same interpreter, environment and search path. One that was started in another way is ended.
- It is kept only if it is healthy. It is ended after a crash, a time-out, an interrupted message, an answer after which
  the caller wants it no more, and if it holds much more memory than when it started (see `inner_loop.serve`).
- Each message has its own time limit and its own limit of address space, which does not count what earlier messages
  left.
- An answer depends on no earlier message: that is for the work to ensure. A test compares verifications with and
  without kept processes.
- It ends after some time without a message, when the interpreter exits, and when this process is killed.
- A process that ended while it waited is replaced, which no caller notices: a message counts as taken only if the
  process says so.
- A fork of this process has kept processes of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitgraph.processes.inner_loop import ProcessLimits
from splitgraph.processes.worker_process import ProcessEnded, Start, WorkerProcess, end_processes, start_of

# A process without a message ends after this time. 0: no process is kept.
IDLE_SECONDS = 30.0


class KeptProcesses:
    """The processes for one kind of work, "module:function". May be used from several threads.

    grace: the seconds that a process has to remove its temporary files when it is told to end.
    """

    def __init__(self, work: str, *, grace: float = 0.0) -> None:
        self._work = work
        self._grace = grace
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._waiting: defaultdict[str, list[tuple[Start, WorkerProcess]]] = defaultdict(list)
        self._busy: list[WorkerProcess] = []
        self._is_closed = False

    def run(
        self,
        message: Any,
        limits: ProcessLimits,
        *,
        key: str = "",
        folder: Path | None = None,
        is_kept: Callable[[Any], bool] = lambda answer: True,
    ) -> Any:
        """Let a process work on a message; return its answer. Raises ProcessEnded and OSError.

        key: the purpose of the process; a process serves no other purpose. folder: the current folder of a new process.
        is_kept: tells from an answer whether its process may take another message.
        """
        idle = IDLE_SECONDS
        start = start_of(self._work, cleans_up=self._grace > 0)
        while True:
            process = self._take(key, start) if idle else None
            is_new = process is None
            process = process or WorkerProcess(start, folder, idle=idle, grace=self._grace)
            is_healthy = False
            try:
                with self._lock:
                    self._busy.append(process)
                    if self._is_closed:
                        raise ProcessEnded("was closed")
                answer = process.run(message, limits)
                is_healthy = bool(idle) and process.is_healthy and is_kept(answer)
                return answer
            except ProcessEnded as ended:
                if is_new or ended.has_begun:
                    raise
            finally:
                if not is_healthy:
                    process.end()
                with self._lock:
                    self._busy.remove(process)
                    if is_healthy:
                        self._waiting[key].append((start, process))

    def prepare(self, message: Any, *, key: str = "", folder: Path | None = None) -> None:
        """Start a process before there is work for it, and let it take a first message meanwhile; its answer is not
        read. Nothing is done if a process waits for this purpose, or if it cannot be started: `run` says why.
        """
        if not IDLE_SECONDS or self._is_closed:
            return
        start = start_of(self._work, cleans_up=self._grace > 0)
        with self._lock, contextlib.suppress(OSError):
            if not self._waiting[key]:
                process = WorkerProcess(start, folder, idle=IDLE_SECONDS, grace=self._grace)
                process.prepare(message)
                self._waiting[key].append((start, process))

    def _take(self, key: str, start: Start) -> WorkerProcess | None:
        """Return the process that was used last, None if none waits. One that was started in another way is ended."""
        with self._lock:
            waiting = self._waiting.pop(key, [])
            useful = [process for began, process in waiting if began == start and not process.has_ended]
            useless = [process for _, process in waiting if process not in useful]
            taken = useful.pop() if useful else None
            self._waiting[key] += [(start, process) for process in useful]
        end_processes(useless)
        return taken

    def close(self) -> None:
        """End all processes for good. Call it again if something interrupts it."""
        self._is_closed = True
        self.end_all()

    def end_all(self) -> None:
        """End all processes. Those that have a message do not answer it."""
        with self._lock:
            processes = self._busy + [process for waiting in self._waiting.values() for _, process in waiting]
        end_processes(processes)

    def forget_all(self) -> None:
        """Forget the processes of the parent, in a fork: they stay the parent's, and end when it ends."""
        processes = self._busy + [process for waiting in self._waiting.values() for _, process in waiting]
        self._begin()
        for process in processes:
            process.forget()


_ALL: weakref.WeakSet[KeptProcesses] = weakref.WeakSet()


def run_once(work: str, message: Any, folder: Path, seconds: float) -> Any:
    """Let a new process, in a folder, work on one message; return its answer. Raises ProcessEnded and OSError."""
    process = WorkerProcess(start_of(work, cleans_up=False), folder)
    try:
        return process.run(message, ProcessLimits(seconds))
    finally:
        process.end()


@atexit.register
def end_all() -> None:
    """End all kept processes."""
    for processes in list(_ALL):
        with contextlib.suppress(OSError):
            processes.end_all()


def _forget_all() -> None:
    for processes in list(_ALL):
        processes.forget_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
