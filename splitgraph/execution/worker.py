"""The child process of an engine: `python -m splitgraph.execution.worker FOLDER`.

FOLDER holds `job.json`: {"engines": [name, name], "seconds", "memory": bytes, "models": [file, file], "ports": [see
`engines.load_engine`, ...], "cases": [{"case": 0, "attempt": 0, "inputs": file}, ...], "probe": see `child.Probe`}.
Both models are loaded, and each case is run by the first and then the second. A case that the first refuses is not
given to the second, and further attempts at a case that it accepted are left out. Where the second is invalid, the
first is run all the same, to tell whether that one is right; any other failure to load ends the job. What happens is
written to `events.jsonl`, a line at a time and flushed, so that the last line tells what a crash interrupted:

    {"event": "start", "stage": "load" | "run", "model": 0 | 1, "case": 0, "attempt": 0}
    {"event": "end", ..., "outputs": file}                      for stage "run": its values are named "0", "1", ...
    {"event": "failed", ..., "unsupported": true, "invalid": false, "reason": ""}   see `child.Failure`

What the probe asks comes last, so that nothing else is lost where it fails:

    {"event": "start", "stage": "move"}                         weights are being moved
    {"event": "moving", "stage": "move", "outputs": [0, ...]}   positions of the outputs that have moved
    {"event": "start" | "failed", "stage": "deploy", "model": 1, "level": "ORT_ENABLE_ALL", "reason": ""}
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from splitgraph.execution.deployment import LEVELS, load_at
from splitgraph.execution.engines import Run, is_invalid, is_unsupported, load_engine, normalise, reason_of
from splitgraph.execution.probing import Ran, find_moving
from splitgraph.execution.values import read_values, write_values


def main(folder: Path) -> None:
    """Do the job that a folder describes."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    _limit(job["seconds"], job["memory"])
    with (folder / "events.jsonl").open("a", encoding="utf-8") as events:
        runs = _load_both(job, folder, events)
        accepted: dict[int, Ran] = {}
        for case in job["cases"] if runs else ():
            if case["case"] in accepted:
                continue
            feeds = read_values(folder / case["inputs"])
            for model, run in enumerate(runs):
                where = {"stage": "run", "model": model, "case": case["case"], "attempt": case["attempt"]}
                gave = _run(run, feeds, folder, where, events)
                if gave is None:
                    break
                accepted.setdefault(case["case"], (folder / case["inputs"], gave))
        if len(runs) == len(job["models"]):
            runs.clear()  # makes room
            _probe(job, folder, list(accepted.values()), events)


def _limit(seconds: float, memory: int) -> None:
    """Take no more than so many bytes of address space, and end this process some time after its parent would have, as
    the parent may have been killed; dump no core.

    macOS holds no process to a limit of its address space, and Windows has none.
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


def _load_both(job: Mapping[str, Any], folder: Path, events: TextIO) -> list[Run]:
    """What runs the models; the first one alone where the second is invalid, nothing where there is nothing to tell."""
    runs: list[Run] = []
    for model, name in enumerate(job["models"]):
        where = {"stage": "load", "model": model}
        _write(events, {"event": "start", **where})
        try:
            runs.append(load_engine(job["engines"][model], folder / name, job["ports"][model]))
        except Exception as error:
            failure = {"unsupported": True, "invalid": is_invalid(error), "reason": reason_of(error)}
            _write(events, {"event": "failed", **where, **failure})
            return runs if failure["invalid"] else []
        _write(events, {"event": "end", **where})
    return runs


def _run(run: Run, feeds: Mapping[str, Any], folder: Path, where: Mapping[str, Any], events: TextIO) -> Path | None:
    """The file with what a model gives; None where it fails."""
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


def _probe(job: Mapping[str, Any], folder: Path, ran: Sequence[Ran], events: TextIO) -> None:
    """Find out what the job asks for beside the outputs."""
    paths, probe = [folder / name for name in job["models"]], job["probe"]
    if probe["movable"] and ran:
        where = {"stage": "move"}
        _write(events, {"event": "start", **where})
        for found in find_moving(job["engines"][0], paths[0], job["ports"][0], probe, ran):
            _write(events, {"event": "moving", **where, "outputs": found})
    if probe["deploy"] and not _deploys(1, paths[1], events):
        _deploys(0, paths[0], events)


def _deploys(model: int, path: Path, events: TextIO) -> bool:
    """Load a model as onnxruntime does by default, or if that fails with less and less optimisation."""
    for level in LEVELS[:-1]:
        where = {"stage": "deploy", "model": model, "level": level}
        _write(events, {"event": "start", **where})
        try:
            load_at(level, path)
        except Exception as error:
            _write(events, {"event": "failed", **where, "reason": reason_of(error)})
        else:
            return level == LEVELS[0]
    return False


def _write(events: TextIO, event: Mapping[str, Any]) -> None:
    events.write(json.dumps(event) + "\n")
    events.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
