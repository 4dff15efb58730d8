"""The child process of an engine: `python -m splitgraph.execution.worker FOLDER`.

FOLDER holds `job.json`: {"engines": [name, name], "seconds", "memory": bytes, "models": [file, file], "ports": [see
`engines.load_engine`, ...], "cases": [{"case": 0, "attempt": 0, "inputs": file}, ...]}. Both models are loaded, and
each case is run by the first and then the second. A case that the first refuses is not given to the second, and further
attempts at a case that it accepted are left out. Where the second is invalid, the first is run all the same, to tell
whether that one is right; any other failure to load ends the job. What happens is written to `events.jsonl`, a line at
a time and flushed, so that the last line tells what a crash interrupted:

    {"event": "start", "stage": "load" | "run", "model": 0 | 1, "case": 0, "attempt": 0}
    {"event": "end", ..., "outputs": file}                      for stage "run": its values are named "0", "1", ...
    {"event": "failed", ..., "unsupported": true, "invalid": false, "reason": ""}   see `child.Failure`
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from splitgraph.execution.engines import Run, is_invalid, is_unsupported, load_engine, normalise, reason_of
from splitgraph.execution.values import read_values, write_values


def main(folder: Path) -> None:
    """Do the job that a folder describes."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    _limit(job["seconds"], job["memory"])
    with (folder / "events.jsonl").open("a", encoding="utf-8") as events:
        runs = _load_both(job, folder, events)
        accepted: set[int] = set()
        for case in job["cases"] if runs else ():
            if case["case"] in accepted:
                continue
            feeds = read_values(folder / case["inputs"])
            for model, run in enumerate(runs):
                where = {"stage": "run", "model": model, "case": case["case"], "attempt": case["attempt"]}
                if not _run(run, feeds, folder, where, events):
                    break
                accepted.add(case["case"])


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


def _run(run: Run, feeds: Mapping[str, Any], folder: Path, where: Mapping[str, Any], events: TextIO) -> bool:
    _write(events, {"event": "start", **where})
    try:
        outputs = normalise(run(feeds))
        name = f"outputs_{where['model']}_{where['case']}_{where['attempt']}.bin"
        write_values(folder / name, {str(index): value for index, value in enumerate(outputs)})
    except Exception as error:
        failure = {"unsupported": is_unsupported(error), "invalid": False, "reason": reason_of(error)}
        _write(events, {"event": "failed", **where, **failure})
        return False
    _write(events, {"event": "end", **where, "outputs": name})
    return True


def _write(events: TextIO, event: Mapping[str, Any]) -> None:
    events.write(json.dumps(event) + "\n")
    events.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
