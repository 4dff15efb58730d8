"""Starting an engine in a child process, and reading what it says.

A crash, a time-out or an abort of the engine ends the child and nothing else, and the end of this process ends the
child; the files that both share lie in a private temporary folder that is always removed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from splitgraph.execution.memory import out_of_memory, says_out_of_memory
from splitgraph.execution.model_files import Model, write_model
from splitgraph.execution.values import Value, read_values, write_values
from splitgraph.temporary_folders import temporary_folder

Stage = Literal["load", "run"]

# Bytes of address space that a child may take, and how often it may hold the models beside that: as read, as arrays and
# as the engine keeps them. Never more than this share of the machine's memory, or the machine would fail instead.
MEMORY_LIMIT = 8 * 2**30
_COPIES_OF_MODELS = 4
_SHARE_OF_MEMORY = 0.75


@dataclass(frozen=True, slots=True)
class Attempt:
    """One set of inputs by name; a case is tried with several of them until the first model accepts one."""

    case: int
    attempt: int
    inputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in an engine.

    stage and model (0 before, 1 after): what was under way. case: None at loading. unsupported: the engine crashed,
    timed out or lacks something, so that nothing follows for the model; otherwise it refused the model on these inputs.
    invalid: the engine did not load the model because it breaks ONNX's rules.
    """

    stage: Stage
    model: int
    case: int | None
    unsupported: bool
    reason: str
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """What is asked of the engine once the cases were run.

    movable: positions of the outputs of the first model that should move when its weights do. kept: names of weights
    that are not moved. rtol, atol: what counts as moving. deploy: whether the second model is loaded as onnxruntime
    loads it by default.
    """

    movable: Sequence[int] = ()
    kept: Sequence[str] = ()
    rtol: float = 0.0
    atol: float = 0.0
    deploy: bool = False


@dataclass(slots=True)
class EngineRun:
    """What an engine did.

    outputs: of each model (0 before, 1 after) by case and attempt, in the order of the graph's outputs. failures: in
    the order in which they happened. moving: positions of the outputs that moved with the weights. undeployed: of each
    model, the levels of optimisation at which it does not load, with the reason.
    """

    outputs: tuple[dict[tuple[int, int], list[Value]], dict[tuple[int, int], list[Value]]] = field(
        default_factory=lambda: ({}, {})
    )
    failures: list[Failure] = field(default_factory=list)
    moving: set[int] = field(default_factory=set)
    undeployed: dict[int, dict[str, str]] = field(default_factory=dict)


class Workplace:
    """The temporary folder that holds both models; engines run in it one after the other."""

    def __init__(
        self,
        folder: Path,
        models: Sequence[Model],
        ports: Sequence[Mapping[str, Any] | None],
        folders: Sequence[Path | None],
    ) -> None:
        self.folder = folder
        self._models = [
            write_model(model, folder / f"model_{index}", data_folder)
            for index, (model, data_folder) in enumerate(zip(models, folders, strict=True))
        ]
        self._ports = list(ports)
        self._runs = 0

    @property
    def weights(self) -> list[int]:
        """How many bytes of weights each model has."""
        return [model.weights for model in self._models]

    def run(self, engine: str, attempts: Sequence[Attempt], seconds: float, probe: Probe | None = None) -> EngineRun:
        """Run both models on all attempts in a new child process, for at most so many seconds.

        engine: that of both models, or those of each, joined by "+". probe: what else to find out, where there is time.
        """
        self._runs += 1
        folder = self.folder / f"run_{self._runs}"
        folder.mkdir()
        cases = []
        for item in attempts:
            name = f"inputs_{item.case}_{item.attempt}.bin"
            write_values(folder / name, item.inputs)
            cases.append({"case": item.case, "attempt": item.attempt, "inputs": name})
        models = [os.path.relpath(model.path, folder) for model in self._models]
        memory = memory_limit(sum(model.weights for model in self._models))
        engines = (engine.split("+") * len(models))[: len(models)]
        job = {"engines": engines, "seconds": seconds, "memory": memory, "models": models, "cases": cases}
        job["ports"] = self._ports
        job["folders"] = [None if model.folder is None else str(model.folder) for model in self._models]
        job["probe"] = asdict(probe or Probe())
        (folder / "job.json").write_text(json.dumps(job), "utf-8")
        return _collect(folder, _run_worker(folder, seconds), memory)


@contextmanager
def workplace(
    models: Sequence[Model],
    ports: Sequence[Mapping[str, Any] | None] = (None, None),
    folders: Sequence[Path | None] = (None, None),
) -> Iterator[Workplace]:
    """A Workplace for two models; its folder is removed at the end, whatever happens.

    ports: for each model, what `engines.load_engine` takes. folders: of the external data of each.
    """
    with temporary_folder() as folder:
        yield Workplace(folder, models, ports, folders)


def memory_limit(models: int) -> int:
    """Bytes of address space that a child with models of so many bytes may take."""
    limit = MEMORY_LIMIT + _COPIES_OF_MODELS * models
    if not hasattr(os, "sysconf"):
        return limit
    return min(limit, int(_SHARE_OF_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))


def _run_worker(folder: Path, seconds: float) -> str:
    return run_module("splitgraph.execution.worker", folder, seconds)


def run_module(module: str, folder: Path, seconds: float) -> str:
    """Run a module of ours on a folder, in a process of its own; "" when it ended by itself, else why it did not."""
    command = [sys.executable, "-m", module, str(folder)]
    package_folder = str(Path(__file__).resolve().parents[2])
    # The child finds what this process finds, and nothing in whatever folder the user happens to be in.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package_folder, *filter(None, sys.path)])}
    # Each arena of glibc's malloc reserves 64 MiB of address space, for up to 8 arenas a core.
    environment.setdefault("MALLOC_ARENA_MAX", "2")
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command,
            # Its end tells the child of the end of this process (see `parent_process`).
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            status = _wait(process, max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            return f"did not finish within {seconds:.3g} seconds"
        finally:
            _kill(process)
            if process.stdin is not None:
                process.stdin.close()
    return _describe_exit(status, folder / "stderr")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """As `Popen.wait`, which looks only every 50 ms where it has a limit: a tenth of what a small model takes."""
    if not hasattr(os, "pidfd_open"):
        return process.wait(seconds)
    deadline = time.monotonic() + seconds
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(1000 * seconds)
    finally:
        os.close(descriptor)
    return process.wait(max(deadline - time.monotonic(), 0.0))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child and what it may have started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def _describe_exit(status: int, stderr: Path) -> str:
    if status == 0:
        return ""
    if status < 0:
        try:
            cause = f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            cause = f"crashed (signal {-status})"
    else:
        cause = f"ended with exit status {status}"
    lines = [line.strip() for line in stderr.read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"{cause}: {lines[-1][:300]}" if lines else cause


def _collect(folder: Path, abnormal: str, memory: int) -> EngineRun:
    run = EngineRun()
    last: dict[str, Any] = {"event": "start", "stage": "load", "model": 0}
    for event in _read_events(folder / "events.jsonl"):
        last = event
        if event["event"] == "moving":
            run.moving.update(event["outputs"])
        elif event["event"] == "failed" and event["stage"] == "deploy":
            run.undeployed.setdefault(event["model"], {})[event["level"]] = event["reason"]
        elif event["event"] == "failed":
            run.failures.append(_failure(event, event["unsupported"], event["reason"], invalid=event["invalid"]))
        elif event["event"] == "end" and event["stage"] == "run":
            outputs = read_values(folder / event["outputs"])
            run.outputs[event["model"]][event["case"], event["attempt"]] = list(outputs.values())
    if abnormal and last["stage"] == "deploy" and "crashed" in abnormal:
        run.undeployed.setdefault(last["model"], {})[last["level"]] = abnormal
    elif abnormal and last["stage"] in get_args(Stage):
        run.failures.append(_failure(last, True, abnormal))
    run.failures = [_with_limit(failure, memory) for failure in run.failures]
    return run


def _with_limit(failure: Failure, memory: int) -> Failure:
    if not says_out_of_memory(failure.reason):
        return failure
    return replace(failure, reason=out_of_memory(memory, failure.reason))


def _failure(event: Mapping[str, Any], unsupported: bool, reason: str, *, invalid: bool = False) -> Failure:
    return Failure(event["stage"], event["model"], event.get("case"), unsupported, reason, invalid)


def _read_events(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # a child that dies may leave half a line
            yield json.loads(line)
