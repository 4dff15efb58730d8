"""Run jobs in worker processes, on threads of this process or on an executor; yield the outcomes in the order in which
the jobs end. If a model crashes its process, or hangs, only this process is replaced.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager

from splitgraph.findings.diagnostics import SplitgraphError, diagnostic
from splitgraph.findings.outcome import Outcome
from splitgraph.many.job import Job
from splitgraph.processes.inner_loop import ProcessLimits
from splitgraph.processes.kept_processes import KeptProcesses
from splitgraph.processes.worker_process import ProcessEnded

# Seconds that a scheduler has to answer.
CONNECTING = 10.0
# A model that ends its process twice is left.
_ATTEMPTS = 2
# Seconds that a process has to remove its temporary files once it is told to end.
_GRACE = 2.0


class Workers:
    """Worker processes for jobs. Several threads may use them; each thread has a process of its own meanwhile."""

    def __init__(self) -> None:
        self._processes = KeptProcesses("splitgraph.many.job:run_job", grace=_GRACE)
        self._models: dict[int, str] = {}

    @property
    def running(self) -> list[str]:
        """Return the models that are in work now."""
        return list(self._models.values())

    def run(self, job: Job) -> Outcome:
        """Do a job and return its outcome, even if its process dies. A job that ends its process is tried once more."""
        limits = ProcessLimits(job.seconds, data=job.memory or 0)
        # Engines that a process keeps have its limit of memory, and the paths of models begin in its current folder.
        key = f"{job.memory} {os.getcwd()}"
        began = time.monotonic()
        death = ""
        self._models[threading.get_ident()] = job.model
        try:
            for _ in range(_ATTEMPTS):
                attempted = time.monotonic()
                try:
                    outcome: Outcome = self._processes.run(job, limits, key=key)
                    return outcome
                except ProcessEnded as ended:
                    if ended.is_late:
                        text = f"the model took longer than the limit of {job.seconds:g} s, and its process was ended"
                        return job.failed([diagnostic("SG605", text, job.model)], time.monotonic() - attempted)
                    death = ended.cause
            message = f"the process of the model was ended {_ATTEMPTS} times: {death}"
            return job.failed([diagnostic("SG604", message, job.model)], time.monotonic() - began)
        finally:
            del self._models[threading.get_ident()]

    def close(self) -> None:
        """End all processes for good. Call it again if something interrupts it."""
        self._processes.close()


_OF_PROCESS = Workers()


def run_in_worker(job: Job) -> Outcome:
    """Do a job in a worker process of this process. Any executor of `concurrent.futures` can run this function, on any
    machine.
    """
    return _OF_PROCESS.run(job)


def run_jobs(
    jobs: Sequence[Job], executor: Executor | None, workers: Workers, count: int | None
) -> Generator[Outcome, None, None]:
    """Yield the outcome of each job as it ends. Closing the iterator drops the jobs that have not begun.

    executor: None for threads of this process, each with a worker of `workers`. count: of the threads.
    """
    if executor is not None:
        yield from _collected({executor.submit(run_in_worker, job): job for job in jobs})
        return
    pool = ThreadPoolExecutor(count or default_jobs(), thread_name_prefix="splitgraph")
    try:
        yield from _collected({pool.submit(workers.run, job): job for job in jobs})
    finally:
        # Threads that wait for their workers end when the workers do, also where a second Ctrl+C interrupts this.
        try:
            pool.shutdown(wait=False, cancel_futures=True)
        finally:
            _close(workers)
        pool.shutdown()


def _close(workers: Workers) -> None:
    try:
        workers.close()
    except BaseException:
        workers.close()
        raise


def _collected(jobs: dict[Future[Outcome], Job]) -> Iterator[Outcome]:
    try:
        for future in as_completed(list(jobs)):
            yield _outcome(future, jobs.pop(future))
    finally:
        for future in jobs:
            future.cancel()


def _outcome(future: Future[Outcome], job: Job) -> Outcome:
    """Return the outcome of a job. An executor that lost its workers, or cannot run splitgraph, raises an exception,
    which becomes a failure.
    """
    try:
        return future.result()
    except Exception as error:
        text = f"the executor did not do the work: {type(error).__name__}: {error}"
        return job.failed([diagnostic("SG604", text, job.model)])


def default_jobs() -> int:
    """Return how many models run at a time: one for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Return an executor whose workers are those of a dask.distributed cluster. Raises SplitgraphError."""
    try:
        from distributed import Client
    except ImportError as error:
        text = "--scheduler needs dask.distributed, which is not installed"
        help = "Install it: pip install 'onnx-splitgraph[distributed]'."
        raise SplitgraphError(text, [diagnostic("SG601", text, help=help)]) from error
    try:
        client = Client(address, timeout=CONNECTING)  # type: ignore[no-untyped-call, unused-ignore]
    except (OSError, ValueError) as error:
        text = f"no scheduler of dask answers at {address}: {error}"
        help = "Start one with `dask scheduler`, and workers with `dask worker tcp://HOST:PORT`."
        raise SplitgraphError(text, [diagnostic("SG601", text, help=help)]) from error
    with client:
        yield client.get_executor()  # type: ignore[no-untyped-call, unused-ignore]
