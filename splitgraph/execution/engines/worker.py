"""Run models inside an engine process: `python -m splitgraph.execution.engines.worker FOLDER`.

FOLDER holds `job.json`: {"engines": [name, name], "seconds", "memory": bytes, "models": [file, file], "folders": [of
the external data of each, ...], "ports": [see `engine.load_engine`, ...], "cases": [{"case": 0, "attempt": 0,
"inputs": file}, ...], "probe": see `engine_process.Probe`}. The worker loads the first model and runs it on each case;
then the second model, on the cases that the first one accepted. Once an attempt at a case is accepted, the other
attempts at that case are skipped. The worker writes each event as a line of `events.jsonl` and flushes it, so that the
last line shows what a crash interrupted:

    {"event": "start", "stage": "load" | "run", "model": 0 | 1, "case": 0, "attempt": 0}
    {"event": "end", ..., "outputs": file}                      for stage "run": its values are named "0", "1", ...
    {"event": "failed", ..., "unsupported": true, "invalid": false, "reason": ""}   see `engine_process.Failure`

The probe comes last, so that nothing else is lost if it fails:

    {"event": "start", "stage": "move"}                         the weights are about to change
    {"event": "moving", "stage": "move", "outputs": [0, ...]}   positions of the outputs that changed with them
    {"event": "start" | "failed", "stage": "deploy", "model": 1, "level": "ORT_ENABLE_ALL", "reason": ""}
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from splitgraph.execution.engines.engine import load_engine, normalise
from splitgraph.execution.engines.error_texts import is_invalid, is_unsupported, reason_of
from splitgraph.execution.engines.onnxruntime_engine import LEVELS, session_at
from splitgraph.execution.engines.parent_process import end_with_parent
from splitgraph.execution.engines.weight_probe import CaseFiles, find_moving
from splitgraph.execution.values import Run, read_values, write_values


def main(folder: Path) -> None:
    """Run the job that a folder describes."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    _limit(job["seconds"], job["memory"])
    with (folder / "events.jsonl").open("a", encoding="utf-8") as events:
        ran = [_run_model(0, job, job["cases"], folder, events)]
        cases = [case for case, _ in ran[0].accepted]
        if len(job["models"]) > 1 and (ran[0].is_loaded or ran[0].is_invalid):
            ran.append(_run_model(1, job, cases, folder, events))
        if all(model.is_loaded for model in ran) and len(ran) == len(job["models"]):
            _probe(job, folder, [(folder / case["inputs"], outputs) for case, outputs in ran[0].accepted], events)


class _ModelRun(NamedTuple):
    """Holds what happened to a model. is_invalid: the model was not loaded because it breaks the rules of ONNX.
    accepted: the cases that it ran on, each with the file of its outputs.
    """

    is_loaded: bool
    is_invalid: bool
    accepted: list[tuple[Mapping[str, Any], Path]]


def _run_model(
    model: int, job: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], folder: Path, events: TextIO
) -> _ModelRun:
    """Load a model and run it on each case. Only one model is in memory at a time.

    cases: if a case has several attempts, the first one that is accepted counts.
    """
    where = {"stage": "load", "model": model}
    _write(events, {"event": "start", **where})
    try:
        run = _load(job, model, folder)
    except Exception as error:
        failure = {"unsupported": True, "invalid": is_invalid(error), "reason": reason_of(error)}
        _write(events, {"event": "failed", **where, **failure})
        return _ModelRun(False, bool(failure["invalid"]), [])
    _write(events, {"event": "end", **where})
    accepted: dict[int, tuple[Mapping[str, Any], Path]] = {}
    for case in cases:
        if case["case"] in accepted:
            continue
        where = {"stage": "run", "model": model, "case": case["case"], "attempt": case["attempt"]}
        outputs = _run(run, read_values(folder / case["inputs"]), folder, where, events)
        if outputs is not None:
            accepted[case["case"]] = case, outputs
    return _ModelRun(True, False, list(accepted.values()))


def _load(job: Mapping[str, Any], model: int, folder: Path) -> Run:
    path, data_folder = folder / job["models"][model], _data_folder(job, model)
    return load_engine(job["engines"][model], path, job["ports"][model], folder=data_folder)


def _data_folder(job: Mapping[str, Any], model: int) -> Path | None:
    named = job["folders"][model]
    return None if named is None else Path(named)


def _limit(seconds: float, memory: int) -> None:
    """Limit the address space of this process, disable core dumps, and end the process after its time is over, because
    the parent process may have been killed.

    macOS does not enforce a limit of the address space, and Windows has none.
    """
    if not hasattr(signal, "alarm"):
        return
    import resource

    signal.alarm(int(seconds) + 5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "darwin":
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def _run(run: Run, feeds: Mapping[str, Any], folder: Path, where: Mapping[str, Any], events: TextIO) -> Path | None:
    """Run a model on one case; return the file of its outputs, None if it fails."""
    _write(events, {"event": "start", **where})
    try:
        outputs = normalise(run(feeds))
        name = f"outputs_{where['model']}_{where['case']}_{where['attempt']}.bin"
        write_values(folder / name, {str(index): value for index, value in enumerate(outputs)})
    except Exception as error:
        failure = {"unsupported": is_unsupported(error), "invalid": False, "reason": reason_of(error)}
        _write(events, {"event": "failed", **where, **failure})
        return None
    _write(events, {"event": "end", **where, "outputs": name})
    return folder / name


def _probe(job: Mapping[str, Any], folder: Path, ran: Sequence[CaseFiles], events: TextIO) -> None:
    """Find out what the probe of the job asks for."""
    paths, probe = [folder / name for name in job["models"]], job["probe"]
    if probe["movable"] and ran:
        where = {"stage": "move"}
        _write(events, {"event": "start", **where})
        held = paths[0], _data_folder(job, 0), job["ports"][0]
        for found in find_moving(job["engines"][0], *held, probe, ran):
            _write(events, {"event": "moving", **where, "outputs": found})
    if probe["deploy"] and not _deploys(1, paths[1], _data_folder(job, 1), events):
        _deploys(0, paths[0], _data_folder(job, 0), events)


def _deploys(model: int, path: Path, folder: Path | None, events: TextIO) -> bool:
    """Load a model with the default optimisations of onnxruntime; if that fails, with less and less. Return True if the
    default works.
    """
    for level in LEVELS[:-1]:
        where = {"stage": "deploy", "model": model, "level": level}
        _write(events, {"event": "start", **where})
        try:
            session_at(level, path, folder)
        except Exception as error:
            _write(events, {"event": "failed", **where, "reason": reason_of(error)})
        else:
            return level == LEVELS[0]
    return False


def _write(events: TextIO, event: Mapping[str, Any]) -> None:
    events.write(json.dumps(event) + "\n")
    events.flush()


if __name__ == "__main__":
    end_with_parent()
    main(Path(sys.argv[1]))
