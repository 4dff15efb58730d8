"""Models in the runtimes of the table of targets, as they are and converted with `--target`: which are read.

    python benchmarks/targets/measure.py --forms FOLDER
    python tests/campaigns/target_runtimes.py --models FOLDER --cache FOLDER
    python tests/campaigns/target_runtimes.py --models FOLDER --cache FOLDER --runtime mnn@3.6.1

The folder of --models holds small models of one form of split each, and the models of `models/`. --cache holds the
environments of the runtimes, which are made where they are missing. Nothing that is read after the conversion may be
wrong: the script ends with 1 then.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "targets")]

from environments import RUNTIMES  # noqa: E402
from measure import Answer, measure  # noqa: E402, the folders above are on the path only now
from whole_models import PREFIX  # noqa: E402

import splitgraph  # noqa: E402

_GONE = "refused by splitgraph"
_BAD = ("wrong", "rank", "dies", "hangs")


def main() -> int:
    """Measure what the command line says, and print one line for each runtime and set of models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="the folder of the models")
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the environments")
    parser.add_argument("--runtime", action="append", choices=list(RUNTIMES), help="repeatable; all by default")
    parser.add_argument("--before", type=Path, help="results of measure.py, so that only converted models are run")
    parser.add_argument("--seconds", type=float, default=120, help="that one model may take")
    parser.add_argument("--results", type=Path, help="write every answer into this file")
    given = parser.parse_args()
    kept: dict[str, Any] = {}
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in given.runtime or RUNTIMES:
            before = _read(given.before, name) or measure(name, given.models, given.cache, seconds=given.seconds)
            answers = trial(name, given.models, before, Path(scratch, name), given.cache, given.seconds)
            kept[name] = answers
            wrong += report(name, answers)
            if given.results is not None:
                given.results.write_text(json.dumps(kept, indent=1))
    return 1 if wrong else 0


def _read(folder: Path | None, name: str) -> dict[str, Answer]:
    """The answers that were measured before; none where there is no file of them."""
    path = Path("" if folder is None else folder, f"{name}.json")
    if folder is None or not path.exists():
        return {}
    return {model: Answer(*answer) for model, answer in json.loads(path.read_text())["answers"].items()}


def trial(
    name: str, folder: Path, before: Mapping[str, Answer], after: Path, cache: Path, seconds: float
) -> dict[str, list[str]]:
    """By model: its answer as it is, its answer when converted, and the reason of the last."""
    after.mkdir(parents=True)
    refused, same = {}, set()
    for model in before:
        source = folder / f"{model}.onnx"
        try:
            rewrite = splitgraph.convert(source, target=name)
        except splitgraph.SplitgraphError as error:
            refused[model] = str(error)
            continue
        if rewrite.model == onnx.load(source):
            same.add(model)
            continue
        rewrite.save(after / f"{model}.onnx")
        for ending in ("in", "exp"):
            (after / f"{model}.{ending}.npz").write_bytes((folder / f"{model}.{ending}.npz").read_bytes())
    converted = measure(name, after, cache, seconds=seconds)
    answers = {}
    for model, (was, reason) in before.items():
        found = converted.get(model, Answer(was, reason))
        answers[model] = [was, *((_GONE, refused[model]) if model in refused else found), model in same]
    return {model: [str(each) for each in answer] for model, answer in answers.items()}


def report(name: str, answers: Mapping[str, list[str]]) -> int:
    """Print a line for each set of models, and one for each that is not read after. Returns how many are wrong."""
    valid = {model: answer for model, answer in answers.items() if not model.startswith(("x_", "zz_"))}
    for title, is_whole in (("forms", False), ("models/", True)):
        mine = [answer for model, answer in valid.items() if model.startswith(PREFIX) == is_whole]
        before, after = Counter(answer[0] for answer in mine), Counter(answer[1] for answer in mine)
        told = ", ".join(f"{number} {answer}" for answer, number in after.most_common() if answer != "reads")
        bad = sum(before[each] for each in _BAD)
        print(f"{name} {title}: of {len(mine)}, {before['reads']} read and {bad} wrong before, ", end="")
        print(f"{after['reads']} read after; {told}", flush=True)
    wrong = {model: answer for model, answer in valid.items() if answer[1] in _BAD}
    lost = {model: answer for model, answer in valid.items() if answer[0] == "reads" and answer[1] != "reads"}
    missed = {model: answer for model, answer in valid.items() if answer[1] == "refuses"}
    for what, each in (("WRONG", wrong), ("LOST", lost), ("still refused", missed)):
        for model, answer in each.items():
            print(f"    {what} {model}: {answer[0]} -> {answer[1]}: {answer[2][:200]}", flush=True)
    return len(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
