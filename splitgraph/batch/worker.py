"""Worker processes, in which models run one after the other. A model that crashes its process, or hangs, takes no other
model with it: the process is replaced.

Any executor of `concurrent.futures` can run `run_in_worker`: each of its threads has a worker process of its own, on
whatever machine the thread is.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

from splitgraph.batch.job import Job
from splitgraph.diagnostics import diagnostic
from splitgraph.outcome import Outcome

# A model that ends its process twice is left.
_ATTEMPTS = 2
# Seconds that a worker has to remove its temporary files once it is told to end.
_GRACE = 2.0
# Seconds between two looks at the time of all jobs.
_WATCH = 0.1
_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[2])
# A process of `python -m` would import modules of the current folder, which may hold anything.
_CODE = "import sys; sys.path[:] = {path!r}; from splitgraph.batch.child import main; main({memory})"


class Worker:
    """A process that does one job after the other. It is started for the first job, and again after it has ended."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.thread = threading.current_thread()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the worker
        self._memory: int | None = None
        # Guards what the watcher and `close` see: which job the process does, and until when.
        self._lock = threading.Lock()
        self._is_over = False
        self._deadline: float | None = None
        self._is_late = False

    def run(self, job: Job) -> Outcome:
        """Do a job: its outcome, whatever happens to the process. A job that ends its process is tried once more."""
        self.job = job
        began = time.monotonic()
        death = "its worker was closed"
        try:
            for _ in range(_ATTEMPTS):
                outcome = self._try(job)
                if outcome is not None:
                    return outcome
                death = self._cause_of_death()
                if self._is_over:
                    break
            message = f"the process of the model was ended {_ATTEMPTS} times: {death}"
            return job.failed([diagnostic("SG604", message, job.model)], time.monotonic() - began)
        finally:
            self.job = None

    def mark_over(self) -> subprocess.Popen[bytes] | None:
        """Start no process again. Returns the one that runs; its job has no outcome."""
        with self._lock:
            self._is_over = True
            return self._process

    def end_if_late(self) -> None:
        """End the process of a job that is over its time."""
        with self._lock:
            if self._deadline is None or self._process is None or time.monotonic() <= self._deadline:
                return
            # The job cannot end meanwhile: it waits for the lock.
            self._is_late, self._deadline = True, None
            late = self._process
        end_processes([late])

    def release(self) -> None:
        """Give back the process, which has ended or is told to end, and the files."""
        process = self.mark_over()
        if process is not None:
            self._forget(process)
        self._stderr.close()

    def _try(self, job: Job) -> Outcome | None:
        """Do a job once; None where its process ends before it has an outcome."""
        began = time.monotonic()
        process = self._running(job)
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            self._is_late = False
            self._deadline = None if job.seconds is None else began + job.seconds
        outcome: Outcome | None = None
        is_last = False
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            outcome, is_last = pickle.load(process.stdout)
        with self._lock:
            self._deadline = None
            is_late = self._is_late
        if is_late or is_last:
            self._forget(process)
        if outcome is None and is_late:
            text = f"the model took longer than the limit of {job.seconds:g} s, and its process was ended"
            return job.failed([diagnostic("SG605", text, job.model)], time.monotonic() - began)
        return outcome

    def _running(self, job: Job) -> subprocess.Popen[bytes] | None:
        """The process for a job; None once the worker is over."""
        process = self._process
        if process is not None and (process.poll() is not None or self._memory != job.memory):
            self._forget(process)
            process = None
        if process is None:
            self._stderr.seek(0)
            self._stderr.truncate()
            self._memory = job.memory
            with self._lock:
                if self._is_over:
                    return None
                process = self._process = _start(job.memory, self._stderr)
        return process

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        """End a process, and close the streams to it."""
        end_processes([process])
        with self._lock:
            if self._process is process:
                self._process = None
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _cause_of_death(self) -> str:
        status = None if self._process is None else self._process.wait()
        self._stderr.seek(0)
        said = self._stderr.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        cause = _status_text(status)
        return f"{cause}: {last[:300]}" if last else cause


def end_processes(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes, all at once, and wait for their end. Their engines end with them.

    Whatever interrupts the wait, no process is left.
    """
    running = [process for process in processes if process.poll() is None]
    try:
        for process in running:
            _signal_group(process, signal.SIGTERM)
        limit = time.monotonic() + _GRACE
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
    finally:
        for process in running:
            if process.poll() is None:
                _signal_group(process, getattr(signal, "SIGKILL", signal.SIGTERM))
                process.wait()


def _start(memory: int | None, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    path = [entry for entry in sys.path if entry]
    # Last, so that nothing beside an installed package comes before Python's own modules.
    path += [_PACKAGE_FOLDER] if _PACKAGE_FOLDER not in path else []
    return subprocess.Popen(
        [sys.executable, "-c", _CODE.format(path=path, memory=memory or 0)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        # Ctrl+C in a terminal is for the process that started the workers, which ends them.
        start_new_session=True,
    )


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        elif number == signal.SIGTERM:
            process.terminate()
        else:
            process.kill()


def _status_text(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


class Workers:
    """A worker for each thread that has a job to do."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None

    def run(self, job: Job) -> Outcome:
        """Do a job in the worker of this thread."""
        worker: Worker | None = getattr(self._of_thread, "worker", None)
        if worker is None:
            worker = self._of_thread.worker = Worker()
            with self._lock:
                if self._closed.is_set():
                    worker.mark_over()
                self._all.append(worker)
                if self._watcher is None:
                    self._watcher = threading.Thread(target=self._watch, daemon=True)
                    self._watcher.start()
        return worker.run(job)

    def _watch(self) -> None:
        """End jobs that are over their time, and workers of threads that have ended. One thread for all: a timer for
        each job would cost as much as the job.
        """
        while not self._closed.wait(_WATCH):
            for worker in list(self._all):
                worker.end_if_late()
                if not worker.thread.is_alive():
                    with self._lock:
                        self._all.remove(worker)
                    worker.release()

    @property
    def running(self) -> list[str]:
        """The models that are worked on now."""
        jobs = [worker.job for worker in list(self._all)]
        return [job.model for job in jobs if job is not None]

    def close(self) -> None:
        """End all workers. To be called again where something interrupts that."""
        with self._lock:
            self._closed.set()
            workers = list(self._all)
        processes = [worker.mark_over() for worker in workers]
        end_processes([process for process in processes if process is not None])


_OF_PROCESS = Workers()


def _after_fork() -> None:
    """A forked process has neither the threads nor the workers of its parent."""
    global _OF_PROCESS
    _OF_PROCESS = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_in_worker(job: Job) -> Outcome:
    """Do a job in the worker of this thread, which ends with this process. For executors of other packages."""
    return _OF_PROCESS.run(job)
