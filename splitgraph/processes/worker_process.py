"""A process that works on one message after the other: `WorkerProcess`.

A crash, a hang or too much memory ends this process and nothing else. If the process that started it ends, however it
ends, the worker process ends, too. This module imports neither onnx nor NumPy: `splitgraph doctor` must start where
one of them is broken.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any, NamedTuple

from splitgraph.processes.inner_loop import BEGAN, READY, ProcessLimits, read_message, write_message

# How often a process is asked whether it has ended: a grandchild may hold the pipe of a process that has.
_LOOK_SECONDS = 0.5
_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[2])
# A process of `python -m` would import modules of the current folder, which may hold anything.
_CODE = (
    "import sys; sys.path[:] = {path!r}; from splitgraph.processes.inner_loop import serve;"
    " serve({work!r}, cleans_up={cleans_up!r})"
)


class ProcessEnded(Exception):
    """Raised for a process that ended, or was ended, before it answered.

    cause: the signal or the exit status, with the last line on stderr. is_late: the process exceeded its time limit.
    has_begun: the process had taken the message; otherwise, the message did not cause the end.
    """

    def __init__(self, message: str, cause: str = "", *, is_late: bool = False, has_begun: bool = True) -> None:
        super().__init__(message)
        self.cause = cause or message
        self.is_late = is_late
        self.has_begun = has_begun


class Start(NamedTuple):
    """The way in which a process is started. Two processes with an equal start do the same work in the same way."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


def start_of(work: str, *, cleans_up: bool) -> Start:
    """Return how a process for some work is started (see `inner_loop.serve`). It finds the modules that this process
    finds, and none in the current folder of the user.
    """
    path = [entry for entry in sys.path if entry]
    # Last, so that nothing beside an installed package comes before Python's own modules.
    path += [_PACKAGE_FOLDER] if _PACKAGE_FOLDER not in path else []
    code = _CODE.format(path=path, work=work, cleans_up=cleans_up)
    return Start((sys.executable, "-c", code), environment())


def environment() -> dict[str, str]:
    """Return the environment of a new process."""
    # Each arena of malloc in glibc reserves 64 MiB of address space, for up to 8 arenas per core.
    return {"MALLOC_ARENA_MAX": "2", **os.environ}


class WorkerProcess:
    """A process that does one kind of work, and a thread that starts it and talks to it.

    The kernel kills a process when the thread that started it ends (see `killed_with_parent`), so no thread of the
    caller may start it. A message may be too large for the pipe of a process that hangs, so no thread of the caller may
    write it.
    """

    def __init__(self, start: Start, folder: Path | None = None, *, idle: float = 0.0, grace: float = 0.0) -> None:
        """Start the process. folder: its current folder. idle: the seconds after which it ends without a message; 0 for
        a process that gets only one. grace: the seconds that it has to remove its temporary files when it is told to
        end. Raises OSError.
        """
        self.grace = grace
        # Whether the process may take another message.
        self.is_healthy = False
        self._is_prepared = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._talk, args=(start, folder, idle or None), daemon=True).start()
        try:
            started = self._said.get()
        except BaseException:
            self._messages.put(None)
            raise
        if isinstance(started, BaseException):
            raise started
        self._process: Popen[bytes] = started

    def _talk(self, start: Start, folder: Path | None, idle: float | None) -> None:
        """Start the process, pass messages to it, and queue its answers; queue None once it has ended."""
        try:
            process = Popen(
                start.command,
                # Without buffers, which have locks: a fork of this process closes the streams, too.
                bufsize=0,
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._stderr,
                cwd=folder,
                env=start.environment,
                # Ctrl+C in a terminal is for this process, which ends the others.
                start_new_session=True,
            )
        except BaseException as error:  # raised again where the process is wanted
            self._said.put(error)
            return
        self._said.put(process)
        assert isinstance(process.stdin, io.RawIOBase)
        assert isinstance(process.stdout, io.RawIOBase)
        with process, contextlib.suppress(OSError, EOFError):
            messages, answers = io.BufferedWriter(process.stdin), io.BufferedReader(process.stdout)
            while not (line := answers.readline()).endswith(READY):
                if not line:
                    raise EOFError
            with contextlib.suppress(queue.Empty):
                while (message := self._messages.get(timeout=idle)) is not None:
                    write_message(message, messages)
                    self._said.put(read_message(answers))
                    self._said.put(read_message(answers))
            _signal_group(process, _KILL)
        self._said.put(None)

    def prepare(self, message: Any) -> None:
        """Send a new process its first message, and do not wait for the answer: `run` takes it before its own."""
        self._messages.put(pickle.dumps((message, ProcessLimits())))
        self._is_prepared = True

    def run(self, message: Any, limits: ProcessLimits) -> Any:
        """Let the process work on a message; return its answer. After ProcessEnded, the caller must end the process."""
        deadline = None if limits.seconds is None else time.monotonic() + max(limits.seconds, 0.0)
        self.is_healthy = has_begun = False
        # A message that cannot be pickled raises an error here.
        self._messages.put(pickle.dumps((message, limits)))
        try:
            said: bytes | None = b""
            if self._is_prepared:
                self._is_prepared = False
                said = self._next(deadline) and self._next(deadline)
            if said is not None:
                has_begun = self._next(deadline) == BEGAN
                said = self._next(deadline) if has_begun else None
            if said is None:
                self._process.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0))
                raise self._died(has_begun)
        except (queue.Empty, TimeoutExpired):
            text = f"did not finish within {limits.seconds:.3g} seconds"
            raise ProcessEnded(text, is_late=True) from None
        answer, is_last = pickle.loads(said)
        # The process shares the position in this file. Not before the first message: its start may have failed.
        self._stderr.seek(0)
        self._stderr.truncate()
        self.is_healthy = not is_last
        return answer

    def _next(self, deadline: float | None) -> bytes | None:
        """Return the next answer of the process, None if it has ended. Raises queue.Empty after the deadline."""
        had_ended = False
        while True:
            left = _LOOK_SECONDS if deadline is None else deadline - time.monotonic()
            try:
                said: bytes | None = self._said.get(timeout=min(max(left, 0.0), _LOOK_SECONDS))
                return said
            except queue.Empty:
                if left <= 0:
                    raise
                # Its last words may be on their way.
                if had_ended:
                    return None
                had_ended = self.has_ended

    def _died(self, has_begun: bool) -> ProcessEnded:
        status = self._process.returncode
        self._stderr.seek(0)
        lines = [line.strip() for line in self._stderr.read().decode("utf-8", "replace").split("\n") if line.strip()]
        said = f": {lines[-1][:300]}" if lines else ""
        if status == 0:
            return ProcessEnded("ended without a result", f"exit status 0{said}", has_begun=has_begun)
        if status > 0:
            cause = f"exit status {status}"
            return ProcessEnded(f"ended with {cause}{said}", f"{cause}{said}", has_begun=has_begun)
        try:
            cause = signal.Signals(-status).name
        except ValueError:
            cause = f"signal {-status}"
        return ProcessEnded(f"crashed ({cause}){said}", f"{cause}{said}", has_begun=has_begun)

    @property
    def has_ended(self) -> bool:
        """Return True if the process is gone."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End the process and its children, and wait for its end."""
        end_processes([self])

    def forget(self) -> None:
        """Close this end of the pipes to the process. A fork of this process has these pipes, too."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def end_processes(processes: Sequence[WorkerProcess]) -> None:
    """End processes, all at once, and wait for their end. No process is left, even if something interrupts the wait."""
    running = [(worker._process, worker.grace) for worker in processes if not worker.has_ended]
    try:
        asked = [(process, grace) for process, grace in running if grace]
        for process, _ in asked:
            _signal_group(process, signal.SIGTERM)
        began = time.monotonic()
        for process, grace in asked:
            with contextlib.suppress(TimeoutExpired):
                process.wait(max(0.0, began + grace - time.monotonic()))
    finally:
        for process, _ in running:
            if process.poll() is None:
                _signal_group(process, _KILL)
                process.wait()
        for worker in processes:
            worker._messages.put(None)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _signal_group(process: Popen[bytes], number: int) -> None:
    """Send a signal to a process and its children."""
    with contextlib.suppress(OSError):
        if process.poll() is not None:
            return
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif number == signal.SIGTERM:
            process.terminate()
        else:
            process.kill()
