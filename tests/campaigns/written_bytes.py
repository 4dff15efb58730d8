"""What upgrade, downgrade and convert write, as hashes: to see that a change of the code changes no byte of it.

    python tests/campaigns/written_bytes.py before.json
    python tests/campaigns/written_bytes.py after.json --against before.json

The models are those of `models/` and all of onnx's node tests, each taken to six opsets and, where it has splits, to
VariadicSplit, to Split, and to explicit lengths. A refusal counts with the codes of its reasons, a result with its
notes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import Pool
from pathlib import Path

import onnx

import splitgraph

MODELS = Path(__file__).parents[2] / "models"
OPSETS = (7, 11, 13, 18, 21, 28)


def models() -> Iterator[tuple[str, bytes]]:
    """Every model by its name."""
    from onnx.backend.test.case.node import collect_testcases

    for path in sorted(MODELS.rglob("*.onnx")):
        yield path.name, path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None:
            yield case.name, case.model.SerializeToString()


def written(rewrite: Callable[[], splitgraph.Rewrite]) -> str:
    """The hash of what a conversion writes and notes, or the codes of why it refuses."""
    try:
        found = rewrite()
    except splitgraph.SplitgraphError as error:
        return f"{type(error).__name__} " + " ".join(sorted(each.code for each in error.diagnostics))
    codes = " ".join(sorted(each.code for each in found.diagnostics))
    return f"{hashlib.sha256(found.model.SerializeToString(deterministic=True)).hexdigest()[:16]} {codes}".strip()


def answers_for(item: tuple[str, bytes]) -> tuple[str, dict[str, str]]:
    """What each conversion of one model gives."""
    name, data = item
    model = onnx.load_from_string(data)
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)
    found = {}
    for target in OPSETS if opset is not None else ():
        verb = splitgraph.upgrade if target >= (opset or 0) else splitgraph.downgrade
        found[str(target)] = written(lambda target=target, verb=verb: verb(model, target))  # type: ignore[misc]
    if b"Split" in data:
        for to in ("variadic-split", "split", "slice"):
            found[to] = written(lambda to=to: splitgraph.convert(model, to))  # type: ignore[misc]
        found["explicit"] = written(lambda: splitgraph.convert(model, "split", explicit_lengths=True))
    return name, found


def main() -> int:
    """Write the hashes; 1 where they are not those of another run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--against", type=Path, help="hashes of an earlier run, to compare with")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every n-th model, for a quick look")
    options = parser.parse_args()
    chosen = (item for index, item in enumerate(models()) if index % options.every == 0)
    with Pool(options.jobs) as pool:
        found = dict(pool.imap_unordered(answers_for, chosen, chunksize=16))
    options.output.write_text(json.dumps(found, indent=1, sort_keys=True))
    count = sum(map(len, found.values()))
    print(f"{len(found):,} models, {count:,} conversions")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text())
    differing = [
        (name, to, before.get(name, {}).get(to), answer)
        for name, answers in sorted(found.items())
        for to, answer in answers.items()
        if before.get(name, {}).get(to) != answer
    ]
    for name, to, old, new in differing[:50]:
        print(f"{name} to {to}: {old} became {new}")
    print(f"{len(differing):,} of {count:,} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
