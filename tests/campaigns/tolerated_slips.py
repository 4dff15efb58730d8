"""Which small slips runtimes read: int32 for int64, and attributes of another version of an operator.

    python tests/campaigns/tolerated_slips.py --cache FOLDER
    python tests/campaigns/tolerated_slips.py --cache FOLDER --operator Split --operator LSTM

Each engine runs every model, with the slip and without it, in its own process. The results are kept in the folder of
--cache, and a campaign that was interrupted goes on from there. Printed is each slip that at least two engines run like
the model without it and that no engine runs in another way: the entries for `inference/repairs.py` and
`inference/repairs.py`. --check prints the entries of these tables that were not found so instead, and
ends with 1 if there are any; with --operator, the entries of these operators.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1]), str(HERE)]

import numpy as np  # noqa: E402, the folders above are on the path only now
from tolerated_slips_cases import Base, Slip, bases, operators, slips  # noqa: E402
from tolerated_slips_worker import ENGINES  # noqa: E402

from splitgraph.inference.repairs import INT32_INPUTS, SUPERFLUOUS  # noqa: E402

Results = Mapping[str, Mapping[str, Any]]
Key = tuple[str, str, str]


def made(chosen: Iterable[str]) -> tuple[list[Base], list[Slip]]:
    """The models of these operators that are run: those without a slip that have a model with one, and these."""
    plain, slipped = [], []
    for op in chosen:
        for base in bases(op):
            found = list(slips(base))
            plain += [base] if found else []
            slipped += found
    return plain, slipped


def measured(plain: Iterable[Base], slipped: Iterable[Slip], cache: Path) -> Results:
    """By engine and name of a model, its outputs, or a text where it has none."""
    cache.mkdir(parents=True, exist_ok=True)
    cases = [(each.name, each.model.SerializeToString(), dict(each.feeds)) for each in (*plain, *slipped)]
    path = cache / "cases.pickle"
    path.write_bytes(pickle.dumps(cases))
    return {engine: run_all(engine, path, cache / f"{engine}.jsonl") for engine in ENGINES}


def run_all(engine: str, cases: Path, results: Path) -> Mapping[str, Any]:
    """Run every model in an engine, in a process of its own; return the outputs or a text by name."""
    command = [sys.executable, str(HERE / "tolerated_slips_worker.py"), engine, str(cases), str(results)]
    # A model that ends the process has a result by then, so that each call gets further.
    while subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pass
    return dict(json.loads(line) for line in results.read_text().splitlines())


def judged(slipped: Iterable[Slip], results: Results) -> dict[Key, dict[int, set[str]]]:
    """By slip and version, what the models of it came to: the engines that run it alike, or "differs"."""
    found: dict[Key, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for slip in slipped:
        found[slip.key][slip.version].add(_judge(slip, results))
    return found


def _judge(slip: Slip, results: Results) -> str:
    alike = []
    for engine, outcomes in results.items():
        plain, own = outcomes[slip.base], outcomes[slip.name]
        if isinstance(own, str):
            continue
        if isinstance(plain, str) or not _are_equal(plain, own):
            return "differs"
        alike.append(engine)
    return " and ".join(alike) or "none"


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list) and one and isinstance(one[0], list):
        return len(one) == len(other) and all(_are_equal(a, b) for a, b in zip(one, other, strict=True))
    if one[:2] != other[:2]:
        return False
    if one[2] and isinstance(one[2][0], str):
        return bool(one[2] == other[2])
    return np.allclose(one[2], other[2], rtol=1e-5, atol=1e-6, equal_nan=True)


def tolerated(found: Mapping[Key, Mapping[int, set[str]]]) -> Iterator[tuple[Key, list[int]]]:
    """Each slip that at least two engines run alike, with the versions of which that is true for every model."""
    for key, versions in sorted(found.items()):
        held = [version for version, told in sorted(versions.items()) if all(" and " in each for each in told)]
        if held:
            yield key, held


def entries(chosen: Collection[str]) -> Iterator[Key]:
    """The slips that the tables of the program tolerate, of these operators."""
    for op, inputs in INT32_INPUTS.items():
        yield from ((op, "int32", str(index)) for index in inputs if op in chosen)
    for op, attributes in SUPERFLUOUS.items():
        yield from ((op, name, str(value)) for name, value in attributes.items() if op in chosen)


def unfounded(chosen: Collection[str], found: Mapping[Key, Mapping[int, set[str]]]) -> list[str]:
    """Entries of the tables that no model was found to run with in two engines, each with what was found instead."""
    held = {key for key, _ in tolerated(found)}
    return [
        f"{' '.join(key)}: {', '.join(sorted(set[str]().union(*found.get(key, {}).values()))) or 'no model'}"
        for key in entries(chosen)
        if key not in held
    ]


def main() -> int:
    """Measure, and print what is tolerated, or what the tables hold without it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--operator", action="append", help="repeatable; all by default")
    parser.add_argument("--check", action="store_true", help="print the entries of the tables that do not hold")
    parser.add_argument("--all", action="store_true", help="print what is not tolerated, too")
    given = parser.parse_args()
    chosen = given.operator or operators()
    plain, slipped = made(chosen)
    print(f"{len(plain)} models, {len(slipped)} slips", flush=True)
    found = judged(slipped, measured(plain, slipped, given.cache))
    if given.check:
        wrong = unfounded(chosen, found)
        print(*wrong, sep="\n")
        return 1 if wrong else 0
    if given.all:
        for (op, what, how), versions in sorted(found.items()):
            print(
                f"{op} {what} {how}: " + "; ".join(f"{v}: {', '.join(sorted(t))}" for v, t in sorted(versions.items()))
            )
        return 0
    for (op, what, how), held in tolerated(found):
        print(f"{op} {what} {how}: {held}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
