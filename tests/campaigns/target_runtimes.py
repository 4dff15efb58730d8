"""Models in the runtimes of the table of targets, as they are and converted with `--target`: which are read, and what
`check` says of them.

    python benchmarks/targets/measure.py --forms FOLDER
    python benchmarks/targets/whole_models.py FOLDER MODEL...
    python tests/campaigns/target_runtimes.py --models FOLDER --cache FOLDER
    python tests/campaigns/target_runtimes.py --models FOLDER --cache FOLDER --runtime mnn@3.6.1 --results FILE

The folder of --models holds small models of one form of split each, the models of `models/`, real models, and cases of
operators (node tests). --cache holds the environments of the runtimes, which are made where they are missing. Nothing
that is read after the conversion may be wrong: the script ends with 1 then.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "targets")]

from environments import RUNTIMES  # noqa: E402
from measure import Answer, measure  # noqa: E402, the folders above are on the path only now
from whole_models import OPERATOR_PREFIX, PREFIX, REAL_PREFIX  # noqa: E402

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


class Told(NamedTuple):
    """One model in one runtime. said, said_after: what `check` says: "runs", "does not", "not known". before, after:
    what the runtime does; `after` may also be that splitgraph refuses. reason: of `after`. same: nothing was changed.
    """

    said: str
    before: str
    said_after: str
    after: str
    reason: str
    same: bool


_SAID = {True: "runs", False: "does not", None: "not known"}


def trial(
    name: str, folder: Path, before: Mapping[str, Answer], after: Path, cache: Path, seconds: float
) -> dict[str, Told]:
    """What became of each model."""
    after.mkdir(parents=True)
    told: dict[str, Told] = {}
    for model, answer in before.items():
        source = folder / f"{model}.onnx"
        try:
            said = _SAID[splitgraph.check(source, name).runs]
            rewrite = splitgraph.convert(source, target=name)
            said_after = _SAID[splitgraph.check(rewrite.model, name).runs]
        except splitgraph.SplitgraphError as error:
            told[model] = Told("does not", answer.answer, "", _GONE, str(error), False)
            continue
        same = rewrite.model == onnx.load(source)
        told[model] = Told(said, answer.answer, said_after, *answer, same)
        if not same:
            rewrite.save(after / f"{model}.onnx")
            for ending in ("in", "exp"):
                (after / f"{model}.{ending}.npz").write_bytes((folder / f"{model}.{ending}.npz").read_bytes())
    for model, (answer, reason) in measure(name, after, cache, seconds=seconds).items():
        told[model] = told[model]._replace(after=answer, reason=reason)
    return told


# The sets of models by the beginning of their names; all others are forms of splits.
_SETS = {"models/": PREFIX, "real": REAL_PREFIX, "operators": OPERATOR_PREFIX}


def _set_of(model: str) -> str:
    return next((title for title, prefix in _SETS.items() if model.startswith(prefix)), "forms")


def report(name: str, told: Mapping[str, Told]) -> int:
    """Print a line for each set of models, and one for each that is not read after. Returns how many are wrong."""
    valid = {model: each for model, each in told.items() if not model.startswith(("x_", "zz_")) and not _is_ours(each)}
    for title in ("forms", *_SETS):
        mine = [each for model, each in valid.items() if _set_of(model) == title]
        if mine:
            print(f"{name} {title}: {_line(mine)}", flush=True)
    wrong = {model: each for model, each in valid.items() if each.after in _BAD}
    lost = {model: each for model, each in valid.items() if each.before == "reads" and each.after != "reads"}
    untrue = {model: each for model, each in valid.items() if each.said_after == "runs" and each.after != "reads"}
    alarms = {model: each for model, each in valid.items() if each.said == "does not" and each.before == "reads"}
    for what, found in (("WRONG", wrong), ("LOST", lost), ("UNTRUE", untrue), ("FALSE ALARM", alarms)):
        for model, each in found.items():
            print(f"    {what} {model}: {each.before} -> {each.after}: {each.reason[:300]}", flush=True)
    return len(wrong)


def _is_ours(told: Told) -> bool:
    """True where the adapter cannot give the model to the runtime."""
    return "harness" in told.reason


def _line(told: Sequence[Told]) -> str:
    before, after = Counter(each.before for each in told), Counter(each.after for each in told)
    says = [f"{said}: {_share(told, said)}" for said in _SAID.values()]
    untrue = sum(each.said_after == "runs" and each.after != "reads" for each in told)
    return (
        f"of {len(told)}, {before['reads']} read and {sum(before[each] for each in _BAD)} wrong before; "
        f"{after['reads']} read, {sum(after[each] for each in _BAD)} wrong, {after[_GONE]} refused by splitgraph, "
        f"{after['refuses']} by the runtime after, {untrue} though said to run; check says ({', '.join(says)})"
    )


def _share(told: Sequence[Told], said: str) -> str:
    """How many of the models of which `check` says this run as they are."""
    mine = [each for each in told if each.said == said]
    return f"{sum(each.before == 'reads' for each in mine)} of {len(mine)} run"


if __name__ == "__main__":
    raise SystemExit(main())
