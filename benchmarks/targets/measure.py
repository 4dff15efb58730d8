"""Measures which models runtimes read: every model of a folder, in each runtime, compared with what NumPy expects.

    python benchmarks/targets/measure.py --forms FOLDER                              (writes all forms, and models/)
    python benchmarks/targets/measure.py --models FOLDER --runtime mnn@3.6.1 [--form NAME ...] [--jobs 2]
    python benchmarks/targets/measure.py --models FOLDER --all --results FOLDER
    python benchmarks/targets/measure.py --models FOLDER --all --most 12 --kept FOLDER --results FOLDER

A folder holds NAME.onnx (or NAME.xml and NAME.bin), NAME.in.npz and NAME.exp.npz. The answers are reads, refuses,
wrong, rank (right data of another rank), dies and hangs, each with its reason. `table.py`, `factor_table.py` and
`layer_table.py` make the tables of targets of them. With --kept, every answer is in a file at once, and what is there
is not run again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from environments import ADAPTERS, PROGRAMS, RUNTIMES, environment

_WORKER = Path(__file__).with_name("worker.py")
# How names of models end: ONNX models, and IR of OpenVINO.
MODELS = (".onnx", ".xml")


def program_of(adapter: str) -> Path:
    """The file that runs a runtime."""
    own = ADAPTERS / f"{adapter}.py"
    return own if own.exists() else PROGRAMS / f"{adapter}.py"


class Answer(NamedTuple):
    """What a runtime does with a model, and the reason in its own words ("" for none)."""

    answer: str
    reason: str


def measure(
    name: str,
    folder: Path,
    cache: Path,
    *,
    models: Sequence[str] | None = None,
    seconds: float = 90,
    jobs: int = 1,
    kept: Path | None = None,
) -> dict[str, Answer]:
    """The answer of a runtime to each model of a folder.

    name: a key of `RUNTIMES`. cache: where environments are, or are made. models: names of models, None for all.
    seconds: that one model may take. jobs: how many models run at the same time. kept: a file of answers that are
    known, to which the others are added as they come. Raises RuntimeError where the runtime does not start, or a model
    ends the process that was to run the next ones.
    """
    runtime = RUNTIMES[name]
    python, variables = environment(runtime, cache)
    # Without the folder of the worker on the path: modules of a runtime may be called like those here.
    command = [str(each) for each in (python, "-I", _WORKER, program_of(runtime.adapter), seconds)]
    wanted = models if models is not None else sorted(path.stem for path in folder.glob("*.*") if path.suffix in MODELS)
    found = _known(kept)
    missing = [model for model in wanted if model not in found]
    # Neighbours are forms of one group, which take alike long: they go to different workers.
    shares = [missing[first::jobs] for first in range(min(jobs, len(missing)))]
    with ThreadPoolExecutor(jobs) as pool:
        for answers in pool.map(lambda share: _work(name, command, variables, folder.resolve(), share, kept), shares):
            found.update(answers)
    return {model: found[model] for model in wanted}


def _known(kept: Path | None) -> dict[str, Answer]:
    """The answers of a file; none where there is no such file."""
    if kept is None or not kept.exists():
        return {}
    lines = (json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines())
    return {model: Answer(answer, reason) for model, answer, reason in lines}


def _work(
    name: str,
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    models: Sequence[str],
    kept: Path | None,
) -> dict[str, Answer]:
    """The answers of one worker to these models."""
    answers: dict[str, Answer] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as asked:
        asked.write("".join(f"{folder / model}\n" for model in models))
        asked.seek(0)
        with subprocess.Popen(
            command, stdin=asked, stdout=subprocess.PIPE, text=True, env=dict(variables), cwd=folder
        ) as worker:
            assert worker.stdout is not None
            if not worker.stdout.readline():
                raise RuntimeError(f"{name} did not start; TARGETS_DEBUG=1 shows why")
            for line in worker.stdout:
                path, answer, reason = json.loads(line)
                model = Path(path).name
                answers[model] = Answer(answer, reason)
                if kept is not None:
                    with kept.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([model, answer, reason]) + "\n")
    if len(answers) < len(models):
        ended = models[len(answers)]
        raise RuntimeError(f"{name} answered for {len(answers)} of {len(models)} models, and ended at {ended}")
    return answers


def first_of_each(models: Sequence[str], most: int | None) -> list[str]:
    """The first models of each operator version: their names begin with OPERATOR-VERSION.NUMBER. The first of all
    versions come first, so that a measurement that is stopped knows something of each.
    """
    if most is None:
        return list(models)
    numbers = {model: int(model.split(".")[-3]) for model in models}
    return sorted((model for model in models if numbers[model] <= most), key=numbers.__getitem__)


def _result(name: str, answers: Mapping[str, Answer]) -> str:
    """The result as JSON, one model a line."""
    runtime, _, version = name.partition("@")
    head = {"runtime": runtime, "version": version, "date": datetime.date.today().isoformat()}
    lines = ",\n".join(f"  {json.dumps(form)}: {json.dumps(list(answers[form]))}" for form in sorted(answers))
    return json.dumps(head)[:-1] + ',\n "answers": {\n' + lines + "\n }}\n"


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", type=Path, help="write the models of all forms into this folder")
    parser.add_argument("--models", type=Path, help="the folder of the models")
    parser.add_argument("--runtime", action="append", default=[], choices=list(RUNTIMES), help="repeatable")
    parser.add_argument("--all", action="store_true", help="every runtime")
    parser.add_argument("--form", action="append", help="only this model; repeatable")
    parser.add_argument("--cache", type=Path, help="where the environments are; a temporary folder otherwise")
    parser.add_argument("--seconds", type=float, default=90, help="that one model may take")
    parser.add_argument("--jobs", type=int, default=1, help="how many models run at the same time")
    parser.add_argument("--most", type=int, help="of cases of operators: only the first ones of each version")
    parser.add_argument(
        "--kept", type=Path, help="a folder for the answers as they come; what is there is not run again"
    )
    parser.add_argument("--results", type=Path, help="write NAME@VERSION.json of each runtime into this folder")
    given = parser.parse_args()
    if given.forms is not None:
        from forms import write
        from whole_models import write_models

        given.forms.mkdir(parents=True, exist_ok=True)
        count, models = len(write(given.forms)), write_models(given.forms)
        print(f"{count} forms and {models} models of models/ in {given.forms}")
    if given.kept is not None:
        given.kept.mkdir(parents=True, exist_ok=True)
    models = given.form
    if given.most is not None:
        models = first_of_each(sorted(path.stem for path in given.models.glob("*.onnx")), given.most)
    with tempfile.TemporaryDirectory() as scratch:
        for name in RUNTIMES if given.all else given.runtime:
            cache = given.cache or Path(scratch)
            kept = None if given.kept is None else given.kept / f"{name}.jsonl"
            answers = measure(
                name, given.models, cache, models=models, seconds=given.seconds, jobs=given.jobs, kept=kept
            )
            counts = Counter(each.answer for each in answers.values())
            print(f"{name}: {', '.join(f'{number} {answer}' for answer, number in counts.most_common())}", flush=True)
            if given.results is not None:
                given.results.mkdir(parents=True, exist_ok=True)
                Path(given.results, f"{name}.json").write_text(_result(name, answers), encoding="utf-8")


if __name__ == "__main__":
    main()
