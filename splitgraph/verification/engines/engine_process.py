"""Let an engine run models in its own process (see `processes`), and read the events that it reports.

A crash, a time-out or an abort of the engine ends the engine process and nothing else. Both processes share files in a
private temporary folder, which is always removed. A healthy process is kept for the next run of the same engine with
the same settings: a process that ran on a GPU keeps memory of the GPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from splitgraph.processes.folders import temporary_folder
from splitgraph.processes.inner_loop import ProcessLimits
from splitgraph.processes.worker_process import ProcessEnded
from splitgraph.verification.engine_settings import DEFAULT, EngineSettings, memory_limit
from splitgraph.verification.engines.error_texts import says_out_of_memory
from splitgraph.verification.engines.kept_engines import ENGINES, key_of
from splitgraph.verification.models.model_files import write_model
from splitgraph.verification.values import Value, read_values, write_values

if TYPE_CHECKING:
    from splitgraph.formats import Model

Stage = Literal["library", "load", "run"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One set of inputs, by name. A case has several attempts, until the first model accepts one."""

    case: int
    attempt: int
    inputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """Describes why an engine failed.

    stage, model (0 first, 1 second): what the engine was doing. case: None while loading. unsupported: the engine
    crashed, timed out or lacks something, which says nothing about the model; False if the engine refused the model on
    these inputs. invalid: the engine did not load the model because the model breaks the rules of ONNX.
    """

    stage: Stage
    model: int
    case: int | None
    unsupported: bool
    reason: str
    invalid: bool = False


@dataclass(frozen=True, slots=True)
class Suspect:
    """Values on which an engine computes a region differently before and after.

    kind: of the values: "captured" from the first model, or drawn (see `regions.drawing.draw`). case: their number.
    inputs: of the region. outputs: of both sides; of the first one alone if the second one fails.
    """

    kind: str
    case: int
    reason: str
    inputs: Mapping[str, Value]
    outputs: Sequence[list[Value]]


@dataclass(frozen=True, slots=True)
class RegionRecord:
    """What happened to a region, or to a kind of region on drawn values (see `checking.local_check.RegionRun`)."""

    cases: int = 0
    max_abs_diff: float | None = None
    suspects: Sequence[Suspect] = ()
    dropped: int = 0
    unchecked: str = ""
    broken: str = ""
    is_open: bool = False
    seen: Collection[tuple[int, bool]] = ()
    moved: Collection[int] = ()


@dataclass(slots=True)
class EngineRun:
    """Holds the results of an engine process.

    outputs: of each model (0 first, 1 second), by case and attempt, in the order of the graph outputs. failures: in the
    order in which they happened. undeployed: for each model, the optimisation levels at which it does not load, with
    the reason. deviating: what each model does otherwise with the default optimisations. providers: what the models ran
    on. idle: of these, the ones that got no node of a model. seconds: what the longest run of each model took. refused:
    why the settings cannot be used here, "" if they can. opsets: what a model was taken for, if that is not the opset
    that it imports. regions, drawn: what happened to each region, and to each kind of regions on drawn values. read: of
    each kind, what was read of what was asked (see `regions.checking.reading`). bases: files of the values that reached
    a region of a kind; base_seconds: what comparing on such values took. parting: the first value in which the models
    differ, by its number, with the case and the reason. uncaptured: why the engine returns no inner values, "" if it
    does. crashed: the region, or the kind on drawn values, that ended the process; crashed_case: the case of drawn
    values.
    """

    outputs: tuple[dict[tuple[int, int], list[Value]], dict[tuple[int, int], list[Value]]] = field(
        default_factory=lambda: ({}, {})
    )
    failures: list[EngineFailure] = field(default_factory=list)
    undeployed: dict[int, dict[str, str]] = field(default_factory=dict)
    deviating: dict[int, str] = field(default_factory=dict)
    providers: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    refused: str = ""
    opsets: dict[int, int] = field(default_factory=dict)
    regions: dict[int, RegionRecord] = field(default_factory=dict)
    drawn: dict[int, RegionRecord] = field(default_factory=dict)
    bases: dict[int, Path] = field(default_factory=dict)
    base_seconds: dict[int, float] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    read: dict[int, set[int]] = field(default_factory=dict)
    uncaptured: str = ""
    parting: tuple[int, int, str] | None = None
    crashed: int | None = None
    crashed_case: int | None = None


class Workplace:
    """A temporary folder that holds the models. Engines run in it one after the other."""

    def __init__(
        self,
        folder: Path,
        models: Sequence[Model],
        ports: Sequence[Mapping[str, Any] | None],
        folders: Sequence[Path | None],
        settings: EngineSettings = DEFAULT,
        rounded: Sequence[bool] = (False, False),
    ) -> None:
        self.folder = folder
        self._rounded = list(rounded)
        self.settings = settings
        self._models = [
            write_model(model, folder / f"model_{index}", data_folder)
            for index, (model, data_folder) in enumerate(zip(models, folders, strict=True))
        ]
        self._ports = list(ports)
        self._runs = 0
        self._folders = 0

    def new_folder(self) -> Path:
        """Return a new folder beside the models, which is removed with them."""
        self._folders += 1
        folder = self.folder / f"parts_{self._folders}"
        folder.mkdir()
        return folder

    @contextmanager
    def swapped(self) -> Iterator[Workplace]:
        """Let engines take the second model for the first one, and the other way round."""
        for swapped in (self._models, self._ports, self._rounded):
            swapped.reverse()
        try:
            yield self
        finally:
            for swapped in (self._models, self._ports, self._rounded):
                swapped.reverse()

    @property
    def weights(self) -> list[int]:
        """Return how many bytes of weights each model has."""
        return [model.weights for model in self._models]

    def run(
        self,
        engine: str,
        attempts: Sequence[Attempt],
        seconds: float,
        *,
        deploy: int = 0,
        regions: Sequence[Any] | None = None,
        locate: Mapping[str, Any] | None = None,
        only_first: bool = False,
    ) -> EngineRun:
        """Run the models on all attempts in an engine process, for at most so many seconds.

        engine: one for all models, or one for each model, joined by "+". deploy: on how many cases the second model
        runs with the default optimisations of onnxruntime, too. regions: to check (see `region_job`). locate: the
        values to compare in place of the outputs (see `worker`). only_first: the second model does not run.
        """
        self._runs += 1
        folder = self.folder / f"run_{self._runs}"
        folder.mkdir()
        cases = []
        for item in attempts:
            name = f"inputs_{item.case}_{item.attempt}.bin"
            write_values(folder / name, item.inputs)
            cases.append({"case": item.case, "attempt": item.attempt, "inputs": name})
        models = [os.path.relpath(model.path, folder) for model in self._models[: 1 if only_first else None]]
        # Drivers of GPUs reserve far more address space than they use.
        memory = 0 if self.settings.has_devices else memory_limit(sum(model.weights for model in self._models))
        engines = (engine.split("+") * len(models))[: len(models)]
        job = {"engines": engines, "models": models, "cases": cases}
        job["ports"] = self._ports
        job["rounded"] = self._rounded
        job["folders"] = [None if model.folder is None else str(model.folder) for model in self._models]
        job["settings"] = self.settings.as_json()
        job |= {"deploy": deploy, "regions": regions, "locate": locate}
        (folder / "job.json").write_text(json.dumps(job), "utf-8")
        key = key_of(engine, self.settings)
        return _collect(folder, _run_worker(key, folder, ProcessLimits(seconds, address_space=memory)), memory)


@contextmanager
def workplace(
    models: Sequence[Model],
    ports: Sequence[Mapping[str, Any] | None] = (None, None),
    folders: Sequence[Path | None] = (None, None),
    settings: EngineSettings = DEFAULT,
    rounded: Sequence[bool] = (False, False),
) -> Iterator[Workplace]:
    """Create a Workplace for the models and remove its folder at the end, whatever happens.

    ports: for each model, its input and output names (see `engine.load_engine`). folders: of the external data of each.
    settings: of the engines. rounded: whether the weights of each are rounded to float16.
    """
    with temporary_folder() as folder:
        yield Workplace(folder, models, ports, folders, settings, rounded)


def _run_worker(key: str, folder: Path, limits: ProcessLimits) -> str:
    """Run the worker on a folder; return "" or why its process did not end normally. Tests replace this function to run
    the worker in their own process.
    """
    try:
        ENGINES.run(folder, limits, key=key, folder=folder, is_kept=bool)
    except ProcessEnded as ended:
        return str(ended)
    return ""


def _collect(folder: Path, abnormal: str, memory: int) -> EngineRun:
    """Return what the events of a worker say. abnormal: why its process did not end normally, "" if it did. memory: the
    limit in bytes, 0 for none.
    """
    run = EngineRun()
    last: dict[str, Any] = {"event": "start", "stage": "load", "model": 0}
    # Outputs of both models that are the same are in one file.
    read: dict[str, list[Value]] = {}
    for event in _read_events(folder / "events.jsonl"):
        last = event
        if event.get("stage") in ("region", "drawn"):
            _add_region(run, folder, event)
        elif event["event"] == "end" and event["stage"] == "run":
            key, name = (event["case"], event["attempt"]), event["outputs"]
            run.seconds[event["model"]] = max(run.seconds.get(event["model"], 0.0), event["seconds"])
            if name not in read:
                read[name] = list(read_values(folder / name).values())
            run.outputs[event["model"]][key] = read[name]
        else:
            _add_event(run, event)
    if abnormal:
        _add_crash(run, last, abnormal)
    for position, failure in enumerate(run.failures):
        if memory and says_out_of_memory(failure.reason):
            text = f"needs more memory than the limit of {memory / 2**30:.3g} GiB: {failure.reason}"
            run.failures[position] = replace(failure, reason=text)
    return run


def _add_event(run: EngineRun, event: Mapping[str, Any]) -> None:
    """Add what an event says of the engine, of loading a model, or of a failure."""
    if event["event"] == "refused":
        run.refused = event["reason"]
    elif event["event"] == "end" and event["stage"] == "load":
        run.providers += (name for name in event["providers"] if name not in run.providers)
        run.idle += (name for name in event["idle"] if name not in run.idle)
        run.opsets |= {event["model"]: event["opset"]} if event["opset"] else {}
    elif event["event"] == "parts":
        run.parting = event["value"], event["case"], event["reason"]
    elif event["event"] == "deviates":
        run.deviating[event["model"]] = event["reason"]
    elif event["event"] == "failed" and event["stage"] == "deploy":
        run.undeployed.setdefault(event["model"], {})[event["level"]] = event["reason"]
    elif event["event"] == "failed":
        run.failures.append(_failure(event, event["unsupported"], event["reason"], invalid=event["invalid"]))


def _add_crash(run: EngineRun, last: Mapping[str, Any], abnormal: str) -> None:
    """Add why the process did not end normally, to what it did then. last: its last event."""
    stage = last["stage"]
    if stage == "deploy" and "crashed" in abnormal:
        run.undeployed.setdefault(last["model"], {})[last["level"]] = abnormal
    elif stage in ("region", "drawn"):
        run.crashed, run.crashed_case = last.get("region", last.get("kind")), last.get("case")
    elif stage in get_args(Stage):
        text = f"the library {last['library']}: {abnormal}" if stage == "library" else abnormal
        run.failures.append(_failure(last, True, text))


def _add_region(run: EngineRun, folder: Path, event: Mapping[str, Any]) -> None:
    """Add what an event says of a region ("region"), or of a kind of regions on drawn values ("drawn")."""
    if event["event"] == "end" and event["stage"] == "region":
        run.regions[event["region"]] = _record(folder, event)
    elif event["event"] == "end":
        run.drawn[event["kind"]] = _record(folder, event)
    elif event["event"] == "base":
        run.bases[event["kind"]] = folder / event["inputs"]
        run.base_seconds[event["kind"]] = event["seconds"]
    elif event["event"] == "read":
        run.read[event["kind"]] = set(event["numbers"])
    elif event["event"] == "failed":
        run.uncaptured = event["reason"]


def _record(folder: Path, event: Mapping[str, Any]) -> RegionRecord:
    """Return what an event at the end of a check says."""
    return RegionRecord(
        event["cases"],
        event["max_abs_diff"],
        [_suspect(folder, suspect) for suspect in event["suspects"]],
        event["dropped"],
        event["unchecked"],
        event["broken"],
        event["open"],
        {(position, truth) for position, truth in event["seen"]},
        set(event["moved"]),
    )


def _suspect(folder: Path, suspect: Mapping[str, Any]) -> Suspect:
    outputs = [list(read_values(folder / name).values()) for name in suspect["outputs"]]
    inputs = read_values(folder / suspect["inputs"])
    return Suspect(suspect["kind"], suspect["case"], suspect["reason"], inputs, outputs)


def _failure(event: Mapping[str, Any], unsupported: bool, reason: str, *, invalid: bool = False) -> EngineFailure:
    return EngineFailure(event["stage"], event["model"], event.get("case"), unsupported, reason, invalid)


def _read_events(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):  # a process that crashes may leave half a line
            yield json.loads(line)
