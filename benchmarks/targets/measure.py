"""What runtimes make of the forms of split: right, refused, wrong, dies or hangs.

    python benchmarks/targets/measure.py --runtime mnn [--form NAME]... [--models FOLDER] [--cache DIR] [-o FILE]

Makes the runtime's environment in the cache. A process of that environment imports the runtime, and a forked process
runs each model. `--models` measures the models of a folder instead of the forms; `cases.py` describes its files.
Needs Linux or macOS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import environments
import forms
from answers import DIES, HANGS, KINDS, REFUSED, Answer, judge
from cases import Case, cases_in, read_arrays
from environments import Runtime, SetupError

WORKER = Path(__file__).resolve().parent / "worker.py"
# Seconds for one model, and for importing a runtime.
TIMEOUT = 90.0
_STARTING = 300.0
# One thread each: results are the same, and a crash does not depend on the load of the machine.
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answers of a runtime by the names of the cases, and the version that it says it has."""

    version: str
    answers: dict[str, Answer]


def measure(
    name: str, version: str | None, cases: Sequence[Case], cache: Path, timeout: float = TIMEOUT
) -> dict[str, Answer]:
    """What a runtime makes of each case, by the names of the cases.

    name, version: an adapter and one of its versions; None for its first. cache: the folder for environments.
    timeout: seconds for each case. Raises SetupError where the runtime does not start.
    """
    chosen = environments.runtime(name, version)
    return measure_in(environments.interpreter(chosen, cache), chosen, cases, timeout).answers


def measure_in(python: Path, chosen: Runtime, cases: Sequence[Case], timeout: float = TIMEOUT) -> Measurement:
    """The same with the Python of an environment that has the runtime."""
    with tempfile.TemporaryDirectory(prefix="splitgraph-target-") as folder:
        places = _places(Path(folder), cases)
        version, ends = _work(python, chosen, cases, places, timeout)
        return Measurement(version, {case.name: _answer(case, places[case.name], ends) for case in cases})


def _places(folder: Path, cases: Sequence[Case]) -> dict[str, Path]:
    """A folder for what each case writes."""
    places = {case.name: folder / str(index) for index, case in enumerate(cases)}
    for place in places.values():
        place.mkdir()
    return places


def _work(
    python: Path, chosen: Runtime, cases: Sequence[Case], places: Mapping[str, Path], timeout: float
) -> tuple[str, dict[str, dict[str, str]]]:
    """The runtime's version, and how each case ended, by the worker's events."""
    with tempfile.TemporaryDirectory(prefix="splitgraph-job-") as name:
        job, events = Path(name, "job.json"), Path(name, "events.jsonl")
        listed = [_described(case, places[case.name]) for case in cases]
        job.write_text(json.dumps({"timeout": timeout, "cases": listed}), "utf-8")
        command = [str(python), "-I", str(WORKER), str(chosen.adapter), str(job), str(events)]
        variables = {**os.environ, **_THREADS, **chosen.variables}
        with Path(name, "output.txt").open("w+") as output:
            longest = _STARTING + (timeout + 1) * len(cases)
            said = _run(command, variables, output, longest)
        found = list(_read(events))
        if not found:
            raise SetupError(f"{chosen.name} {chosen.version} does not start: {said}")
        ends = {event["name"]: event for event in found[1:]}
        for case in cases:
            ends.setdefault(case.name, {"ended": "died", "detail": "the process that runs the cases died"})
        return found[0]["version"], ends


def _run(command: Sequence[str], variables: Mapping[str, str], output: Any, seconds: float) -> str:
    """Run the worker, and give the last line of what it says."""
    try:
        subprocess.run(command, env=variables, stdout=output, stderr=output, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:g} seconds"
    output.seek(0)
    return next(iter(reversed(output.read().strip().splitlines())), "it said nothing")


def _described(case: Case, place: Path) -> dict[str, Any]:
    """A case for the worker, which gets absolute paths and the names of the outputs."""
    with zipfile.ZipFile(case.expected) as expected:
        outputs = [name.removesuffix(".npy") for name in expected.namelist()]
    paths = {"model": case.model.resolve(), "inputs": case.inputs.resolve(), "folder": place}
    return {"name": case.name, "outputs": outputs, **{key: str(path) for key, path in paths.items()}}


def _read(events: Path) -> Iterator[dict[str, str]]:
    for line in events.read_text("utf-8").splitlines(keepends=True) if events.exists() else ():
        if line.endswith("\n"):  # a process that dies may leave half a line
            yield json.loads(line)


def _answer(case: Case, place: Path, ends: Mapping[str, Mapping[str, str]]) -> Answer:
    end = ends[case.name]
    if end["ended"] != "returned":
        kind = {"refused": REFUSED, "died": DIES, "hung": HANGS}[end["ended"]]
        return Answer(kind, detail=end["detail"])
    given = read_arrays(place / "outputs.npz")
    return judge([given[str(index)] for index in range(len(given))], read_arrays(case.expected))


def document(chosen: Runtime, measurement: Measurement) -> dict[str, Any]:
    """The results for a JSON file."""
    return {
        "runtime": chosen.name,
        "version": measurement.version,
        "packages": [*chosen.packages, *chosen.npm],
        "measured": datetime.now(timezone.utc).date().isoformat(),
        "answers": {name: answer.document() for name, answer in measurement.answers.items()},
    }


def summary(chosen: Runtime, measurement: Measurement) -> str:
    """One line: how many answers there are of each kind."""
    counts = Counter(answer.kind for answer in measurement.answers.values())
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    return f"{chosen.name} {measurement.version}: {len(measurement.answers)} models, {told}"


@click.command()
@click.option("--runtime", "name", required=True, help="Name of an adapter.")
@click.option("--version", help="One of the adapter's versions; by default, its first.")
@click.option("--form", "wanted", multiple=True, help="Name of a form or model, or its beginning; repeatable.")
@click.option("--models", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of models.")
@click.option("--cache", type=click.Path(path_type=Path), default="runtimes", show_default=True, help="Environments.")
@click.option("--timeout", type=float, default=TIMEOUT, show_default=True, help="Seconds for one model.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for the results.")
def main(
    name: str,
    version: str | None,
    wanted: Sequence[str],
    models: Path | None,
    cache: Path,
    timeout: float,
    output: Path | None,
) -> None:
    """Measure one runtime, and print its answers and a summary."""
    with tempfile.TemporaryDirectory(prefix="splitgraph-forms-") if models is None else nullcontext() as written:
        try:
            cases = forms.write(Path(written)) if models is None else cases_in(models)
            chosen_cases = [case for case in cases if not wanted or case.name.startswith(tuple(wanted))]
            if not chosen_cases:
                raise click.ClickException("no model has such a name")
            chosen = environments.runtime(name, version)
            measurement = measure_in(environments.interpreter(chosen, cache), chosen, chosen_cases, timeout)
        except (SetupError, ValueError) as error:
            raise click.ClickException(str(error)) from error
    for case, answer in measurement.answers.items():
        click.echo(f"{case}: {answer.kind}{' ' + answer.detail if answer.detail else ''}")
    click.echo(summary(chosen, measurement))
    if output is not None:
        output.write_text(json.dumps(document(chosen, measurement), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
