"""An attack on "verified equal": pairs of models that differ and pairs that are equal, each known without splitgraph.

    python tests/campaigns/attacks.py attacks.jsonl --minutes 60
    python tests/campaigns/attacks.py attacks.jsonl --only body --every 5
    python tests/campaigns/attacks.py attacks.jsonl --summary

`attacks_that_differ.py` changes one thing in a model: an attribute, an optional input, an element of a constant, an
operator into a near one, the type in between, in the main graph, behind an Identity, and in the body of an If, a Loop,
a Scan and a function. onnxruntime runs both models on inputs of ten kinds, or on the input that comes with the pair: a
pair counts only where the outputs differ beyond rounding. `attacks_that_are_equal.py` renames, reorders, shares,
repeats, folds and outlines without changing what is computed. `attacks_by_hand.py` has pairs that an attacker wrote.

Both numbers have to be 0: pairs that differ and are called equal, and pairs that are equal and are called different.
"not-run" is no fault, and is counted. Results are lines of JSON, and a run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from attacks_by_hand import pairs_by_hand  # noqa: E402
from attacks_pairs import Pair  # noqa: E402
from attacks_that_are_equal import equal_pairs  # noqa: E402  (the folders above are on the path only now)
from attacks_that_differ import different_pairs  # noqa: E402
from planted_faults_process import Helper  # noqa: E402

_SECONDS = 60.0
_SLACK = 30.0


def pairs() -> Iterator[Pair]:
    """Yield all pairs, of both sorts."""
    return chain(pairs_by_hand(), different_pairs(), equal_pairs())


def judge(pair: Pair, helper: Helper, folder: Path) -> Mapping[str, Any]:
    """Return what became of a pair: its witness, if it needs one, and the verdict."""
    files = [str(folder / name) for name in ("before.onnx", "after.onnx")]
    for model, file in zip((pair.before, pair.after), files, strict=True):
        Path(file).write_bytes(model.SerializeToString())
    witness: Mapping[str, Any] = {}
    if pair.differs:
        feed = None
        if pair.feed is not None:
            feed = str(folder / "feed.npz")
            np.savez(feed, **pair.feed)
        arguments = {"before": files[0], "right": files[0], "after": files[1], "engine": "onnxruntime", "seconds": 10.0}
        witness = helper.ask("oracle", 20.0, **arguments, feed=feed)
        if not witness.get("apart"):
            return {"outcome": "no witness", "witness": witness}
    found = helper.ask("verify", _SECONDS + _SLACK, before=files[0], after=files[1], timeout=_SECONDS)
    wrong = found.get("verdict") == ("equal" if pair.differs else "different")
    outcome = "WRONG" if wrong or "failed" in found else "not-run" if found["verdict"] == "not-run" else "right"
    if wrong and witness.get("kind") == "special":
        # What a kernel makes of infinities behind a mask is its own, where the specification's evaluator sees none.
        again = helper.ask("oracle", 60.0, **{**arguments, "engine": "reference", "seconds": 50.0}, feed=feed)
        outcome = "WRONG" if again.get("apart") or "failed" in again else "no witness"
    return {"outcome": outcome, "witness": witness, **found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="", help="pairs whose name holds this text")
    parser.add_argument("--every", type=int, default=1, help="each n-th pair")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--keep", type=Path, help="a folder for the models of pairs that are judged wrong")
    parser.add_argument("--summary", action="store_true", help="only print what the file says")
    options = parser.parse_args(arguments)
    done = {}
    if options.results.exists():
        done = {record["name"]: record for record in map(json.loads, options.results.read_text().splitlines())}
    if not options.summary:
        _run(options, done)
    _print_summary(done)


def _run(options: argparse.Namespace, done: dict[str, Any]) -> None:
    deadline = time.monotonic() + 60 * options.minutes
    chosen = (pair for pair in pairs() if options.only in pair.name)
    with Helper(ROOT) as helper, tempfile.TemporaryDirectory() as scratch, options.results.open("a") as held:
        for number, pair in enumerate(chosen):
            if number % options.every or pair.name in done:
                continue
            if time.monotonic() > deadline:
                return
            record = {"name": pair.name, "differs": pair.differs, **judge(pair, helper, Path(scratch))}
            done[pair.name] = record
            held.write(json.dumps(record) + "\n")
            held.flush()
            if record["outcome"] == "WRONG" and options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                for model, side in ((pair.before, "before"), (pair.after, "after")):
                    onnx.save(model, options.keep / f"{pair.name.replace('/', '_')}.{side}.onnx")


def _print_summary(done: Mapping[str, Any]) -> None:
    counts = Counter((record["name"].split("/")[0], record["differs"], record["outcome"]) for record in done.values())
    for (kind, differs, outcome), count in sorted(counts.items()):
        print(f"{kind:24} {'differ' if differs else 'equal':8} {outcome:12} {count}")
    judged = [record for record in done.values() if record["outcome"] != "no witness"]
    wrong = [record for record in judged if record["outcome"] == "WRONG"]
    for record in wrong:
        said = record.get("failed") or record.get("first_difference") or record.get("engine", "")
        print(f"WRONG {record['name']}: {record.get('verdict', 'failed')} ({said[:150]})")
    slowest = max(judged, key=lambda record: record.get("seconds", 0.0), default=None)
    print(f"{len(judged)} pairs: {sum(record['differs'] for record in judged)} differ; {len(wrong)} judged wrong")
    print(f"not-run: {sum(record['outcome'] == 'not-run' for record in judged)}")
    if slowest is not None:
        print(f"slowest: {slowest['name']}, {slowest.get('seconds')} s")


if __name__ == "__main__":
    main()
