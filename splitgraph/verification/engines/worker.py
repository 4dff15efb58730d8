"""Run models inside an engine process, one job after the other (see `processes.inner_loop`).

A job is a folder with `job.json`: {"engines": [name, name],
"models": [file, file], "rounded": [whether the weights of each are rounded to float16, ...],
"folders": [of the external data of each, ...], "ports": [see `engine.load_engine`, ...],
"cases": [{"case": 0, "attempt": 0, "inputs": file}, ...], "settings": see `engine_settings.EngineSettings`,
"extras": {"inputs": [file, ...], "rtol", "atol", "only_finite"}, "probe": see `engine_process.Probe`}.

The worker loads the libraries of the settings and looks for their providers. It loads the first model and runs it on
each case; then the second model, on the cases that the first one accepted. Once an attempt at a case is accepted, the
other attempts at that case are skipped. The worker writes each event as a line of `events.jsonl` and flushes it, so
that the last line shows what a crash interrupted:

    {"event": "start" | "failed", "stage": "library", "model": 0, "library": path, "reason": ""}
    {"event": "refused", "reason": ""}                          a provider is not available; nothing else is done
    {"event": "start", "stage": "load" | "run", "model": 0 | 1, "case": 0, "attempt": 0}
    {"event": "end", ..., "providers": [...], "idle": [...], "opset": 26}   for stage "load": see `engine.Loaded`
    {"event": "end", ..., "outputs": file}                      for stage "run": its values are named "0", "1", ...
    {"event": "failed", ..., "unsupported": true, "invalid": false, "reason": ""}   see `engine_process.EngineFailure`

Outputs of the second model that are the same as those of the first one, bit for bit, are in one file with them.

The probe comes after the cases, so that nothing else is lost if it fails:

    {"event": "start", "stage": "move"}                         the weights are about to change
    {"event": "moving", "stage": "move", "outputs": [0, ...]}   positions of the outputs that changed with them
    {"event": "start" | "failed", "stage": "deploy", "model": 1, "level": "ORT_ENABLE_ALL", "reason": ""}

The extra inputs come last. They are unusual, so that an engine may fail on them, which says nothing. Both models run on
each, and the outputs are compared here:

    {"event": "start" | "failed" | "end", "stage": "extra", "extra": 0, "reason": ""}       end: both models ran
    {"event": "differs", "stage": "extra", "extra": 0, "outputs": [file, file]}
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine import Loaded, load_engine, load_library, normalise, settings_of
from splitgraph.verification.engines.error_texts import is_invalid, is_unsupported, reason_of, says_out_of_memory
from splitgraph.verification.engines.onnxruntime_engine import LEVELS, session_at
from splitgraph.verification.engines.weight_probe import CaseFiles, find_moving, round_onnx, rounded_to_half
from splitgraph.verification.values import (
    Run,
    UnsupportedError,
    Value,
    are_identical,
    read_values,
    tensors_of,
    write_values,
)

# How many texts, members of sequences and entries of maps the outputs of a case may hold.
_MOST_OBJECTS = 2**20
# The outputs of one job may take so many bytes of the temporary folder, which may be in memory.
_MOST_WRITTEN = 2**32
# After so much time, no other extra inputs are tried: a slow model has many of them.
_SECONDS_OF_EXTRAS = 5.0


class _Events:
    """Writes the events of a job. is_healthy: whether this process may take another job after them."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.is_healthy = True

    def write(self, event: Mapping[str, Any]) -> None:
        """Write an event and flush it."""
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()
        if event["event"] == "failed" and says_out_of_memory(event["reason"]):
            self.is_healthy = False


def main(folder: Path) -> bool:
    """Run the job of a folder (see `run_job_in`), which is the current folder meanwhile: engines may write there."""
    os.chdir(folder)
    is_healthy = run_job_in(folder)
    os.chdir(folder.parents[1])
    return is_healthy


def run_job_in(folder: Path) -> bool:
    """Run the job that a folder describes; return whether this process may take another job."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        events = _Events(file)
        settings = _prepare(job, events)
        if settings is not None:
            failures = _run_models(job, settings, folder, events)
            # OpenVINO keeps state of runs that failed.
            events.is_healthy &= not (failures and "openvino" in job["engines"])
    # A library of operators stays loaded.
    return events.is_healthy and not job["settings"]["custom_ops"]


def _prepare(job: Mapping[str, Any], events: _Events) -> Mapping[str, EngineSettings] | None:
    """Load libraries and look for providers; return the settings of each engine, None if something is missing."""
    settings = EngineSettings.from_json(job["settings"])
    engines = list(dict.fromkeys(job["engines"]))
    libraries = {}
    for path in settings.custom_ops:
        where = {"stage": "library", "model": 0, "library": path}
        events.write({"event": "start", **where})
        try:
            libraries[path] = load_library(engines, path)
        except UnsupportedError as error:
            events.write({"event": "failed", **where, "unsupported": True, "invalid": False, "reason": str(error)})
            return None
    try:
        return {engine: settings_of(engine, settings, libraries) for engine in engines}
    except ValueError as error:
        events.write({"event": "refused", "reason": str(error)})
        return None


def _run_models(job: Mapping[str, Any], settings: Mapping[str, EngineSettings], folder: Path, events: _Events) -> bool:
    """Run the models and the probe; return whether anything failed."""
    task = _Task(job, settings, folder, events)
    ran = [_run_model(0, task, job["cases"])]
    cases = [case for case, _ in ran[0].accepted]
    if len(job["models"]) > 1 and (ran[0].is_loaded or ran[0].is_invalid):
        ran.append(_run_model(1, task, cases))
    if all(model.is_loaded for model in ran) and len(ran) == len(job["models"]):
        _probe(task, [(folder / case["inputs"], outputs) for case, outputs in ran[0].accepted])
    has_failed = any(model.has_failed for model in ran)
    runs = [model.run for model in ran if model.run is not None]
    # A model that runs on none of the cases is not asked about unusual inputs.
    if len(runs) > 1 and ran[1].accepted:
        has_failed |= _run_extras(task, runs)
    return has_failed


class _Task(NamedTuple):
    """A job, the settings of each of its engines, its folder, and where its events go."""

    job: Mapping[str, Any]
    settings: Mapping[str, EngineSettings]
    folder: Path
    events: _Events

    def path(self, model: int) -> Path:
        """Return the file of a model."""
        return self.folder / str(self.job["models"][model])

    def data_folder(self, model: int) -> Path | None:
        """Return the folder of the external data of a model."""
        named = self.job["folders"][model]
        return None if named is None else Path(named)

    def settings_of(self, model: int) -> EngineSettings:
        """Return the settings of the engine that runs a model."""
        return self.settings[self.job["engines"][model]]


class _ModelRun(NamedTuple):
    """Holds what happened to a model. is_invalid: the model was not loaded because it breaks the rules of ONNX.
    has_failed: it was not loaded, or did not run on some inputs. accepted: the cases that it ran on, each with the file
    of its outputs. run: runs the model, if there are extra inputs.
    """

    is_loaded: bool
    is_invalid: bool
    has_failed: bool
    accepted: list[tuple[Mapping[str, Any], Path]]
    run: Run | None = None


def _run_model(model: int, task: _Task, cases: Sequence[Mapping[str, Any]]) -> _ModelRun:
    """Load a model and run it on each case. Only one model is in memory at a time, unless there are extra inputs.

    cases: if a case has several attempts, the first one that is accepted counts.
    """
    where = {"stage": "load", "model": model}
    task.events.write({"event": "start", **where})
    try:
        loaded = _load(task, model)
    except Exception as error:
        failure = {"unsupported": True, "invalid": is_invalid(error), "reason": reason_of(error)}
        task.events.write({"event": "failed", **where, **failure})
        return _ModelRun(False, bool(failure["invalid"]), True, [])
    task.events.write({"event": "end", **where, **loaded._asdict() | {"run": None}})
    accepted: dict[int, tuple[Mapping[str, Any], Path]] = {}
    has_failed = False
    for case in cases:
        if case["case"] in accepted:
            continue
        where = {"stage": "run", "model": model, "case": case["case"], "attempt": case["attempt"]}
        outputs = _run(loaded.run, read_values(task.folder / case["inputs"]), where, task)
        has_failed |= outputs is None
        if outputs is not None:
            accepted[case["case"]] = case, outputs
    run = loaded.run if task.job["extras"]["inputs"] else None
    return _ModelRun(True, False, has_failed, list(accepted.values()), run)


def _load(task: _Task, model: int) -> Loaded:
    engine, ports, folder = task.job["engines"][model], task.job["ports"][model], task.data_folder(model)
    path, move = task.path(model), None
    if task.job["rounded"][model] and path.suffix == ".xml":
        move = rounded_to_half
    elif task.job["rounded"][model]:
        path = round_onnx(path, folder)
    return load_engine(engine, path, ports, move, folder=folder, settings=task.settings_of(model))


def _run(run: Run, feeds: Mapping[str, Any], where: Mapping[str, Any], task: _Task) -> Path | None:
    """Run a model on one case; return the file of its outputs, None if it fails."""
    task.events.write({"event": "start", **where})
    try:
        outputs = normalise(run(feeds))
        name, first = (f"outputs_{model}_{where['case']}_{where['attempt']}.bin" for model in (where["model"], 0))
        if where["model"] and are_identical(task.folder / first, outputs):
            name = first
        else:
            _write(task.folder / name, outputs)
    except Exception as error:
        failure = {"unsupported": is_unsupported(error), "invalid": False, "reason": reason_of(error)}
        task.events.write({"event": "failed", **where, **failure})
        return None
    task.events.write({"event": "end", **where, "outputs": name})
    return task.folder / name


def _write(path: Path, outputs: Sequence[Value]) -> None:
    written = sum(file.stat().st_size for file in path.parent.glob("outputs_*.bin"))
    if written + sum(array.nbytes for value in outputs for array in tensors_of(value)) > _MOST_WRITTEN:
        raise UnsupportedError(f"the outputs take more than {_MOST_WRITTEN >> 30} GiB; smaller sizes may fit")
    try:
        write_values(path, {str(index): value for index, value in enumerate(outputs)}, _MOST_OBJECTS)
    except OSError as error:  # such as a full disk
        raise UnsupportedError(f"the outputs cannot be written: {error.strerror or error}") from None


def _run_extras(task: _Task, runs: Sequence[Run]) -> bool:
    """Run both models on the extra inputs, and compare their outputs; return whether anything failed."""
    extras, has_failed = task.job["extras"], False
    comparison = Comparison(extras["rtol"], extras["atol"], only_finite=extras["only_finite"])
    started = time.monotonic()
    for number, inputs in enumerate(extras["inputs"]):
        if time.monotonic() - started > _SECONDS_OF_EXTRAS:
            break
        where = {"stage": "extra", "extra": number}
        task.events.write({"event": "start", **where})
        try:
            first, second = (normalise(run(read_values(task.folder / inputs))) for run in runs)
            names = [str(position) for position in range(len(first))]
            if comparison.compare_outputs(names, first, second, number) is not None:
                files = [f"extra_{number}_{model}.bin" for model in (0, 1)]
                for file, values in zip(files, (first, second), strict=True):
                    _write(task.folder / file, values)
                task.events.write({"event": "differs", **where, "outputs": files})
        except Exception as error:  # engines raise errors of their own types; unusual inputs may be invalid
            task.events.write({"event": "failed", **where, "reason": reason_of(error)})
            has_failed = True
        else:
            task.events.write({"event": "end", **where})
    return has_failed


def _probe(task: _Task, ran: Sequence[CaseFiles]) -> None:
    """Find out what the probe of the job asks for."""
    probe = task.job["probe"]
    if probe["movable"] and ran:
        where = {"stage": "move"}
        task.events.write({"event": "start", **where})
        model = task.path(0), task.data_folder(0), task.job["ports"][0]
        for moving in find_moving(task.job["engines"][0], *model, probe, ran, task.settings_of(0)):
            task.events.write({"event": "moving", **where, "outputs": moving})
    if probe["deploy"] and not _deploys(1, task):
        _deploys(0, task)


def _deploys(model: int, task: _Task) -> bool:
    """Load a model with the default optimisations of onnxruntime; if that fails, with less and less. Return True if the
    default works.
    """
    for level in LEVELS[:-1]:
        where = {"stage": "deploy", "model": model, "level": level}
        task.events.write({"event": "start", **where})
        try:
            session_at(level, task.path(model), task.data_folder(model), task.settings_of(model))
        except Exception as error:
            task.events.write({"event": "failed", **where, "reason": reason_of(error)})
        else:
            return level == LEVELS[0]
    return False
