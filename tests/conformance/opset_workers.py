"""Judging many cases in worker processes: onnx and its engines abort a process on some models."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .model_cases import ModelCase
from .opset_judge import ENGINES, Judge, Verdict

# Seconds for one stage of one case.
PATIENCE = 60
# A process takes as long to start as it takes to judge so many cases.
_WORTH_ANOTHER = 50
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Job:
    """A case and the ways that it is to go: the opsets that it is taken to, one after the other."""

    case: ModelCase
    ways: Sequence[tuple[int, ...]]


def judge_all(jobs: Sequence[Job], workers: int = 2) -> Iterator[list[Verdict]]:
    """The verdicts of each job, in the order of its ways; the jobs in their order. Few jobs have one worker."""
    idle = [_Worker() for _ in range(min(workers, 1 + len(jobs) // _WORTH_ANOTHER))]
    try:
        with ThreadPoolExecutor(len(idle)) as threads:
            yield from threads.map(lambda job: _with_worker(idle, job), jobs)
    finally:
        for worker in idle:
            worker.stop()


def _with_worker(idle: list[_Worker], job: Job) -> list[Verdict]:
    worker = idle.pop()
    try:
        return [worker.judge(job.case, way) for way in job.ways]
    finally:
        idle.append(worker)


@dataclass(slots=True)
class _Worker:
    """A process that judges, started anew after each crash."""

    _process: Any = None
    _connection: Connection | None = None
    # The case that the process holds, and the engines that did not crash on it.
    _case: ModelCase | None = None
    _engines: list[str] = field(default_factory=list)

    def judge(self, case: ModelCase, way: tuple[int, ...]) -> Verdict:
        """The verdict; an engine that crashes is not asked again about this case."""
        if case is not self._case:
            self._case, self._engines = case, list(ENGINES)
            self._send(case)
        while True:
            self._send((way, tuple(self._engines)))
            verdict, stage = self._answer()
            if verdict is not None:
                return verdict
            self.stop()
            if not stage.startswith("run "):
                return Verdict("crashed", f"the process ended: {stage}")
            engine = stage.split()[1]
            self._engines.remove(engine)

    def _send(self, message: Any) -> None:
        if self._process is None:
            self._start()
            if message is not self._case:
                self._connection.send(self._case)
        self._connection.send(message)

    def _answer(self) -> tuple[Verdict | None, str]:
        """The verdict, or None and what was under way when the process ended."""
        assert self._connection is not None
        stage = "start"
        try:
            while self._connection.poll(PATIENCE):
                message = self._connection.recv()
                if isinstance(message, Verdict):
                    return message, stage
                stage = message
        except (EOFError, ConnectionResetError):
            pass
        return None, stage

    def _start(self) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = self._connection = None


def _serve(connection: Connection) -> None:
    """The worker: takes cases, and for each any number of (opsets, engines)."""
    # onnx and the engines write to the streams themselves.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    judge = None
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        if not isinstance(message, tuple):
            judge = Judge(message, connection.send)
            continue
        way, judge.engines = message
        try:
            connection.send(judge.judge(*way))
        except Exception as error:
            connection.send(Verdict("crashed", f"the judge failed: {type(error).__name__}: {error}"))
