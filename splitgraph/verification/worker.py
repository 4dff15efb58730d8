"""Run models inside an engine process, one job after the other (see `processes.inner_loop`).

A job is a folder with `job.json`: {"engines": [name, name],
"models": [file, file], "rounded": [whether the weights of each are rounded to float16, ...],
"folders": [of the external data of each, ...], "ports": [see `engine.load_engine`, ...],
"cases": [{"case": 0, "attempt": 0, "inputs": file}, ...], "settings": see `engine_settings.EngineSettings`,
"deploy": on how many cases the second model runs with the default optimisations of onnxruntime, "regions": null, or
see `regions.checking.region_job`}.

The worker loads the libraries of the settings and looks for their providers. It loads the first model and runs it on
each case; then the second model, on the cases that the first one accepted. Once an attempt at a case is accepted, the
other attempts at that case are skipped. The worker writes each event as a line of `events.jsonl` and flushes it, so
that the last line shows what a crash interrupted:

    {"event": "start" | "failed", "stage": "library", "model": 0, "library": path, "reason": ""}
    {"event": "refused", "reason": ""}                          a provider is not available; nothing else is done
    {"event": "start", "stage": "load" | "run", "model": 0 | 1, "case": 0, "attempt": 0}
    {"event": "end", ..., "providers": [...], "idle": [...], "opset": 26}   for stage "load": see `engine.Loaded`
    {"event": "end", ..., "outputs": file, "seconds": 0.1}      for stage "run": its values are named "0", "1", ...
    {"event": "failed", ..., "unsupported": true, "invalid": false, "reason": ""}   see `engine_process.EngineFailure`

Outputs of the second model that are the same as those of the first one, bit for bit, are in one file with them.

The regions of the two models (see `regions.checking.local_check`) are compared while the values of the first model
are in memory, batch by batch of regions, so that these never take too much of it. A job with "drawn" runs no models,
and compares the kinds of regions on drawn values, each in its share of the time; one whose run takes longer ends the
process, after its last event:

    {"event": "start" | "end", "stage": "region", "region": 0, ...}     end: see `local_check.RegionRun.as_event`
    {"event": "base", "stage": "region", "kind": 0, "inputs": file, "seconds": 0.1}     values that reached a kind
    {"event": "read", "stage": "region", "kind": 0, "numbers": [0, ...]}    of what is asked: what was read
    {"event": "failed", "stage": "region", "reason": ""}                the engine returns no inner values
    {"event": "start" | "case" | "end", "stage": "drawn", "kind": 0, ...}   "case": before each case, with its number

A job with "locate": {"values": [[name in the first model, name in the second one], ...], "batches": [[number, ...],
...], "rtol", "atol"} runs both models, and compares these values, in their order:

    {"event": "parts", "stage": "locate", "value": number, "case": 0, "reason": ""}     the first that differs

At the end, the second model is loaded as a deployment would load it:

    {"event": "start" | "failed" | "deviates", "stage": "deploy", "model": 1, "level": "ORT_ENABLE_ALL", "reason": ""}
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines.engine import Loaded, load_engine, load_library, normalise, settings_of
from splitgraph.verification.engines.error_texts import is_invalid, is_unsupported, reason_of, says_out_of_memory
from splitgraph.verification.engines.half_weights import round_onnx, rounded_to_half
from splitgraph.verification.engines.onnxruntime_engine import LEVELS, runner, session_at
from splitgraph.verification.regions.checking.local_check import RegionRun, Regions
from splitgraph.verification.regions.checking.region_job import RegionJob
from splitgraph.verification.values import (
    Array,
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
# Drawn values have the shapes of those that reach a region. Where they take so many times as long and so many seconds,
# the numbers decide how long, and the end may never come.
_LATE_TIMES, _LATE_SECONDS = 20, 2.0
# Optimisations round differently: relative to each number, and to the largest number of the outputs.
_RTOL_DEPLOYED = 1e-2


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


def main(folder: Path | str) -> bool:
    """Run the job of a folder (see `run_job_in`), which is the current folder meanwhile: engines may write there. For
    the name of a module, import it: the first job is then shorter.
    """
    if isinstance(folder, str):
        # Where it is broken, the first job says so.
        with contextlib.suppress(Exception):
            import_module(folder)
        return True
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
        regions = None if job["regions"] is None else RegionJob.from_json(job["regions"])
        task = None if settings is None else _Task(job, settings, folder, events, regions)
        if task is not None and regions is not None and regions.drawn:
            _run_drawn(task)
        elif task is not None and job["locate"]:
            _locate(task)
        elif task is not None:
            failures = _run_models(task)
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


def _run_models(task: _Task) -> bool:
    """Run the models, and check the regions on the way; return whether anything failed."""
    job = task.job
    ran = [_run_model(0, task, job["cases"])]
    cases = [case for case, _ in ran[0].accepted]
    if len(job["models"]) > 1 and (ran[0].is_loaded or ran[0].is_invalid):
        ran.append(_run_model(1, task, cases))
    if all(model.is_loaded for model in ran) and job["deploy"] and not _deploys(1, task, ran[1].accepted):
        _deploys(0, task, ran[0].accepted)
    return any(model.has_failed for model in ran)


class _Task(NamedTuple):
    """A job, the settings of each of its engines, its folder, where its events go, and the regions to check."""

    job: Mapping[str, Any]
    settings: Mapping[str, EngineSettings]
    folder: Path
    events: _Events
    regions: RegionJob | None

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

    def outputs_of(self, model: int) -> Sequence[str] | None:
        """Return the outputs to ask a model for: those that it has itself where it returns inner values, too; None for
        all of them.
        """
        return self.regions.outputs if self.regions is not None and model == 0 else None

    def loaded_regions(self) -> Regions | None:
        """Return the regions to check, None without any."""
        engine = self.job["engines"][0]

        def load(path: Path, folder: Path | None) -> Loaded:
            return load_engine(engine, path, folder=folder, settings=self.settings[engine])

        return None if self.regions is None else Regions(self.regions, self.folder, load)


class _ModelRun(NamedTuple):
    """Holds what happened to a model. is_invalid: the model was not loaded because it breaks the rules of ONNX.
    has_failed: it was not loaded, or did not run on some inputs. accepted: the cases that it ran on, each with the file
    of its outputs.
    """

    is_loaded: bool
    is_invalid: bool
    has_failed: bool
    accepted: list[tuple[Mapping[str, Any], Path]]


def _run_model(model: int, task: _Task, cases: Sequence[Mapping[str, Any]]) -> _ModelRun:
    """Load a model and run it on each case; check the regions while the first model runs. Only one model is in memory
    at a time.

    cases: if a case has several attempts, the first one that is accepted counts.
    """
    regions = task.loaded_regions() if model == 0 else None
    where = {"stage": "load", "model": model}
    task.events.write({"event": "start", **where})
    try:
        try:
            loaded = _load(task, model, [] if regions is None else regions.batches[0].names)
        except Exception as error:
            if regions is None:
                raise
            # An engine may refuse some values as outputs.
            task.events.write({"event": "failed", "stage": "region", "reason": reason_of(error)})
            regions = None
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
        feeds = read_values(task.folder / case["inputs"])
        # Regions whose values do not fit in memory together are compared on the first case only.
        is_checked = regions is not None and (not accepted or len(regions.batches) == 1)
        names = regions.batches[0].names if regions is not None and is_checked else ()
        outputs, values = _run(loaded.run, feeds, where, task, names)
        has_failed |= outputs is None
        if outputs is not None:
            accepted[case["case"]] = case, outputs
            if regions is not None and len(values) == len(names) and is_checked:
                _check_regions(regions, (feeds, values), case["case"], task)
    if regions is not None:
        _tell_regions(regions, task)
    return _ModelRun(True, False, has_failed, list(accepted.values()))


def _check_regions(
    regions: Regions, known: tuple[Mapping[str, Value], Sequence[Value]], case: int, task: _Task
) -> None:
    """Compare the regions on the values of the first model, batch by batch: an engine holds all outputs of a model in
    memory, so that the model is loaded for each. known: its inputs, and the values of the first batch.
    """
    feeds, inner = known
    for number, batch in enumerate(regions.batches):
        inner = normalise(_load(task, 0, batch.names).run(feeds, batch.names)) if number else inner
        values = {**feeds, **dict(zip(batch.names, inner, strict=True))}
        for region in batch.regions:
            task.events.write({"event": "start", "stage": "region", "region": region})
            regions.check(region, values, case)


def _tell_regions(regions: Regions, task: _Task) -> None:
    for number, region in enumerate(regions.runs):
        task.events.write({"event": "end", "stage": "region", "region": number, **region.as_event()})
    for kind, inputs in regions.bases.items():
        seconds = regions.base_seconds[kind]
        task.events.write({"event": "base", "stage": "region", "kind": kind, "inputs": inputs, "seconds": seconds})
    _tell_read(regions, task)


def _tell_read(regions: Regions, task: _Task) -> None:
    for number, kind in enumerate(regions.kinds):
        if kind.read:
            task.events.write({"event": "read", "stage": "region", "kind": number, "numbers": sorted(kind.read)})


def _locate(task: _Task) -> None:
    """Find the first value in which both models differ, batch by batch of values."""
    job = task.job["locate"]
    comparison = Comparison(job["rtol"], job["atol"])
    for batch in job["batches"]:
        names = [[job["values"][number][model] for number in batch] for model in (0, 1)]
        runs = [_load(task, model, names[model]).run for model in (0, 1)]
        for case in task.job["cases"]:
            feeds = read_values(task.folder / case["inputs"])
            try:
                before, after = (normalise(run(feeds, own)) for run, own in zip(runs, names, strict=True))
            except Exception:  # of the engine's own types; a model that does not run has no values to compare
                continue
            for number, one, other in zip(batch, before, after, strict=True):
                difference = comparison.compare_outputs([""], [one], [other], case["case"])
                if difference is not None:
                    told = {"value": number, "case": case["case"], "reason": difference.reason}
                    task.events.write({"event": "parts", "stage": "locate", **told})
                    return


def _run_drawn(task: _Task) -> None:
    """Compare kinds of regions on drawn values."""
    regions = task.loaded_regions()
    assert regions is not None
    waiting = regions.job.drawn
    end = time.monotonic() + regions.job.seconds
    if regions.job.only_asks:
        for kind, inputs, *_ in waiting:
            task.events.write({"event": "start", "stage": "drawn", "kind": kind})
            regions.ask_drawn(kind, read_values(task.folder / inputs), end)
        _tell_read(regions, task)
        return
    for number, (kind, inputs, seconds, ending) in enumerate(waiting):
        # What the cheap ones leave is for those that come later.
        share = (end - time.monotonic()) / (len(waiting) - number)
        if share <= 0:
            return
        limit = _LATE_SECONDS + _LATE_TIMES * seconds
        _draw_kind(regions, kind, read_values(task.folder / inputs), (share, limit), ending, task)


def _draw_kind(
    regions: Regions,
    kind: int,
    base: Mapping[str, Value],
    seconds: tuple[float, float],
    ending: Sequence[int],
    task: _Task,
) -> None:
    """Compare a kind of region on drawn values. seconds: for all of them, and for one. ending: see `check_drawn`."""
    drawn = RegionRun()
    where = {"stage": "drawn", "kind": kind}
    task.events.write({"event": "start", **where})
    share, limit = seconds
    # The first values load the models.
    limits = chain([share + limit], repeat(limit))

    def guard(case: int) -> AbstractContextManager[None]:
        task.events.write({"event": "case", **where, "case": case})
        return _ended_after(next(limits), drawn, where, task.events)

    try:
        regions.check_drawn(kind, base, share, drawn, guard, ending)
    except MemoryError:
        drawn.is_open = True
    except Exception as error:  # those of the engine are caught where it runs: this is a fault of splitgraph
        drawn.broken = f"{type(error).__name__}: {error}"
    task.events.write({"event": "end", **where, **drawn.as_event()})


@contextmanager
def _ended_after(seconds: float, drawn: RegionRun, where: Mapping[str, Any], events: _Events) -> Iterator[None]:
    """End this process if the work takes longer: nothing else stops a kernel. What was found before is reported."""

    def end() -> None:
        drawn.is_open = True
        events.write({"event": "end", **where, **drawn.as_event()})
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _load(task: _Task, model: int, captured: Sequence[str] = ()) -> Loaded:
    engine, ports, folder = task.job["engines"][model], task.job["ports"][model], task.data_folder(model)
    path, move = task.path(model), None
    if task.job["rounded"][model] and path.suffix == ".xml":
        move = rounded_to_half
    elif task.job["rounded"][model]:
        path = round_onnx(path, folder)
    settings = task.settings_of(model)
    return load_engine(engine, path, ports, move, folder=folder, settings=settings, captured=captured)


def _run(
    run: Run, feeds: Mapping[str, Any], where: Mapping[str, Any], task: _Task, captured: Sequence[str] = ()
) -> tuple[Path | None, Sequence[Value]]:
    """Run a model on one case; return the file of its outputs, None if it fails, and the captured values."""
    task.events.write({"event": "start", **where})
    began = time.monotonic()
    try:
        own = task.outputs_of(where["model"])
        try:
            values = normalise(run(feeds, None if own is None else [*own, *captured]))
        except Exception as error:
            if not captured or not says_out_of_memory(str(error)):
                raise
            # The inner values were larger than thought; the regions are compared on other cases.
            values = normalise(_load(task, where["model"]).run(feeds, own))
        seconds = time.monotonic() - began
        outputs, inner = (values, []) if own is None else (values[: len(own)], values[len(own) :])
        name, first = (f"outputs_{model}_{where['case']}_{where['attempt']}.bin" for model in (where["model"], 0))
        if where["model"] and are_identical(task.folder / first, outputs):
            name = first
        else:
            _write(task.folder / name, outputs)
    except Exception as error:
        failure = {"unsupported": is_unsupported(error), "invalid": False, "reason": reason_of(error)}
        task.events.write({"event": "failed", **where, **failure})
        return None, []
    task.events.write({"event": "end", **where, "outputs": name, "seconds": seconds})
    return task.folder / name, inner


def _write(path: Path, outputs: Sequence[Value]) -> None:
    written = sum(file.stat().st_size for file in path.parent.glob("outputs_*.bin"))
    if written + sum(array.nbytes for value in outputs for array in tensors_of(value)) > _MOST_WRITTEN:
        raise UnsupportedError(f"the outputs take more than {_MOST_WRITTEN >> 30} GiB; smaller sizes may fit")
    try:
        write_values(path, {str(index): value for index, value in enumerate(outputs)}, _MOST_OBJECTS)
    except OSError as error:  # such as a full disk
        raise UnsupportedError(f"the outputs cannot be written: {error.strerror or error}") from None


def _deploys(model: int, task: _Task, accepted: Sequence[tuple[Mapping[str, Any], Path]]) -> bool:
    """Load a model with the default optimisations of onnxruntime, and run it; if it does not load, load it with less
    and less. Return True if the default works, and gives the same outputs.
    """
    for level in LEVELS[:-1]:
        where = {"stage": "deploy", "model": model, "level": level}
        task.events.write({"event": "start", **where})
        try:
            session = session_at(level, task.path(model), task.data_folder(model), task.settings_of(model))
        except Exception as error:
            task.events.write({"event": "failed", **where, "reason": reason_of(error)})
            continue
        reason = _deviation(runner(session), model, task, accepted) if level == LEVELS[0] else ""
        if reason:
            task.events.write({"event": "deviates", **where, "reason": reason})
        return level == LEVELS[0] and not reason
    return False


def _deviation(run: Run, model: int, task: _Task, accepted: Sequence[tuple[Mapping[str, Any], Path]]) -> str:
    """Return how the outputs of an optimised model differ from those without optimisations; "" if they agree."""
    names = task.outputs_of(model)
    for case, stored in accepted[: task.job["deploy"]]:
        plain = list(read_values(stored).values())
        sizes = [float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in _floats(plain)]
        comparison = Comparison(_RTOL_DEPLOYED, _RTOL_DEPLOYED * max(sizes, default=0.0))
        try:
            outputs = normalise(run(read_values(task.folder / case["inputs"]), names))
        except Exception as error:  # engines raise errors of their own types
            return f"does not run: {reason_of(error)}"
        labels = [str(position) for position in range(len(plain))]
        difference = comparison.compare_outputs(labels, plain, outputs, case["case"])
        if difference is not None:
            return f"gives other outputs: {difference.reason}"
    return ""


def _floats(values: Sequence[Value]) -> Iterator[Array]:
    return (array for value in values for array in tensors_of(value) if array.dtype.kind == "f")
