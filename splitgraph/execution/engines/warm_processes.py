"""Keep engine processes for the next verification: their start takes longer than most small models run.

The contract of a warm process:

- It runs one job at a time, and a thread has it for itself meanwhile. As many are kept as were at work at once.
- It takes a job only of the engine that it ran before, and only if a new process would be started in the same way: the
  same interpreter, environment and search path. One that was started in another way is ended.
- It is kept only if it is healthy. It is ended after a crash, a time-out, a failed allocation, a job that was
  interrupted, any failure of OpenVINO (which keeps state of failed runs), a library of custom operators (which stays
  loaded), and if it holds much more memory than when it started (see `worker.main` and `worker_loop.serve`).
- Each job has its own time limit and its own memory limit, which does not count what earlier jobs left in the address
  space.
- What a job finds out depends on no earlier job: models, sessions and outputs are gone, its output streams and its
  current folder are those of the job. A test compares verifications with and without warm processes.
- It ends after some time without a job, when the interpreter exits, and when this process is killed.
- A process that ended while it waited is replaced, which no caller notices: a job counts as begun only if the process
  says so.
- A fork of this process has warm processes of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from splitgraph.execution.engines.child_process import command_of, describe_exit, environment, kill, overtime, start

# A process without a job ends after this time. 0: no process is kept.
IDLE_SECONDS = 30.0
_WORKER = "splitgraph.execution.engines.worker_loop"
# What a worker says: it took the job; it finished the job and can take another; it finished its last job.
BEGAN, DONE, LAST = b"began\n", b"done\n", b"last\n"
# A grandchild may hold the pipe of a process that has ended; this is how often the process itself is asked.
_LOOK_SECONDS = 0.5

# The command and the environment of a process.
Way = tuple[object, ...]


class _Died(Exception):
    """Raised for a process that ended before it took a job. status: its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Process:
    """A worker in its own process, with a thread that starts it and reads what it says.

    The kernel ends a process when the thread that started it ends (see `parent_process`), so that no thread of the
    caller may start it. is_healthy: after a job, whether the process may take another one.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.is_healthy = False
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        started: queue.SimpleQueue[subprocess.Popen[bytes] | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._follow, args=(started, command, environment, folder), daemon=True).start()
        found = started.get()
        if isinstance(found, BaseException):
            raise found
        self._process = found

    def _follow(
        self,
        started: queue.SimpleQueue[subprocess.Popen[bytes] | BaseException],
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        try:
            with (folder / "stderr").open("wb") as stderr:
                process = start(command, environment, folder, subprocess.PIPE, stderr)
        except BaseException as error:  # raised again where the process is wanted
            started.put(error)
            return
        started.put(process)
        assert process.stdout is not None
        with process.stdout:
            held = b""
            while chunk := process.stdout.read(4096):
                *lines, held = (held + chunk).split(b"\n")
                for line in lines:
                    self._said.put(line + b"\n")
        self._said.put(None)
        process.wait()

    def run(self, folder: Path, seconds: float) -> str:
        """Run the job in a folder; return "" or why it did not end normally. Raises _Died."""
        deadline = time.monotonic() + seconds
        assert self._process.stdin is not None
        try:
            # The pipe of a process that has ended is broken, which shows in what the process says, too.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(str(folder)).encode("ascii") + b"\n")
            if self._next(deadline) != BEGAN:
                raise _Died(self._process.wait(max(deadline - time.monotonic(), 0.0)))
            if self._next(deadline) is None:
                return describe_exit(self._process.wait(max(deadline - time.monotonic(), 0.0)), folder / "stderr")
        except (queue.Empty, subprocess.TimeoutExpired):
            return overtime(seconds)
        return ""

    def _next(self, deadline: float) -> bytes | None:
        """Return what the worker says next, None if it has ended. Raises queue.Empty after the deadline."""
        while True:
            left = deadline - time.monotonic()
            try:
                said = self._said.get(timeout=min(max(left, 0.0), _LOOK_SECONDS))
            except queue.Empty:
                if left <= 0:
                    raise
                if self._process.poll() is None or not self._said.empty():
                    continue
                said = None
            # What a module prints while Python starts is no answer.
            if said in (BEGAN, DONE, LAST, None):
                self.is_healthy = said == DONE
                return said

    @property
    def has_ended(self) -> bool:
        """Return True if the process is gone."""
        return self._process.poll() is not None

    def end(self, *, waits: bool = True) -> None:
        """End the process and those that it started."""
        kill(self._process, waits=waits)
        self.forget()

    def forget(self) -> None:
        """Close this end of the pipe to the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class _Pool:
    """The processes that wait for a job, by engine, each with the way in which it was started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: defaultdict[str, list[tuple[Way, _Process]]] = defaultdict(list)

    def take(self, engine: str, way: Way) -> _Process | None:
        """Return the process that was used last, None if none waits. One that was started in another way is ended."""
        with self._lock:
            waiting = self._waiting.pop(engine, [])
            useless = [process for other, process in waiting if other != way or process.has_ended]
            useful = [entry for entry in waiting if entry[1] not in useless]
            found = useful.pop()[1] if useful else None
            if useful:
                self._waiting[engine] = useful
        for process in useless:
            process.end(waits=False)
        return found

    def give_back(self, engine: str, way: Way, process: _Process) -> None:
        """Keep a healthy process for another job."""
        with self._lock:
            self._waiting[engine].append((way, process))

    def clear(self) -> list[_Process]:
        """Return all processes that wait, and keep none."""
        with self._lock:
            found = [process for waiting in self._waiting.values() for _, process in waiting]
            self._waiting.clear()
        return found


_pool = _Pool()


def run_job(engine: str, folder: Path, seconds: float) -> str:
    """Run the job in a folder with the worker, for at most so many seconds; return "" or why it did not end normally.

    engine: a process that ran it before is preferred. May be called from several threads. Raises OSError.
    """
    idle = IDLE_SECONDS
    command, variables = command_of(_WORKER, str(idle)), environment()
    way = (*command, *sorted(variables.items()))
    while True:
        process = _pool.take(engine, way) if idle else None
        is_new = process is None
        process = process or _Process(command, variables, folder)
        is_kept = False
        try:
            reason = process.run(folder, max(seconds, 0.0))
            is_kept = bool(idle) and not reason and process.is_healthy
            return reason
        except _Died as died:
            if is_new:
                return describe_exit(died.status, folder / "stderr") or "ended without a result"
        finally:
            if is_kept:
                _pool.give_back(engine, way, process)
            else:
                process.end()


@atexit.register
def end_all() -> None:
    """End all processes that wait for a job."""
    for process in _pool.clear():
        process.end(waits=False)


def _forget_all() -> None:
    """Let go of the processes of the parent, in a fork: they stay its own, and end when it ends."""
    global _pool
    left, _pool = _pool, _Pool()
    for waiting in left._waiting.values():
        for _, process in waiting:
            process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
