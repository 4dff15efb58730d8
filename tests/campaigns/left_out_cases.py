"""What the table of operators says of a measured case that it does not have: the rule of verdicts, held against runs.

    python tests/campaigns/left_out_cases.py mnn tvm opencv@4.14.0
    python tests/campaigns/left_out_cases.py mnn --list > before.txt

Each case of a runtime is left out in turn, and the others are asked about its node. Bases stay: without one, nothing is
known of its family. Printed is how often the answer agrees with what happened; with --list each case, so that two
versions of the rule can be compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from splitgraph.runtimes.target import find_target  # noqa: E402, the folder above is on the path only now
from splitgraph.runtimes.verdicts import MIXED, NOTHING, RUNS, MeasuredOperator  # noqa: E402

_ANSWERS = {"reads": "runs", "some": "not known", "unmeasured": "not known"}


def left_out(entry: MeasuredOperator) -> Iterator[tuple[int, str]]:
    """Yield each case that is no base, by its position, and what the others say of it."""
    for place, (case, letter) in enumerate(zip(entry.cases, entry.letters, strict=True)):
        if letter in (NOTHING, MIXED) or case.base == place:
            continue
        letters = entry.letters[:place] + NOTHING + entry.letters[place + 1 :]
        judged = dataclasses.replace(entry, letters=letters).judge(tuple(sorted(case.factors)))
        yield place, _ANSWERS.get(judged.verdict, "does not")


def main() -> int:
    """Ask about each case of the runtimes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", help="runtimes, as check --target takes them")
    parser.add_argument("--list", action="store_true", help="print each case")
    options = parser.parse_args()
    for name in options.targets:
        figures: Counter[tuple[str, bool]] = Counter()
        for label, entry in find_target(name).operators.entries.items():
            for place, said in left_out(entry):
                ran = entry.letters[place] == RUNS
                figures[said, ran] += 1
                if options.list:
                    print(name, label, place, said, "ran" if ran else "did not")
        parts = (
            f'"{said}" of {figures[said, True]} that run and {figures[said, False]} that do not'
            for said in ("runs", "does not", "not known")
        )
        print(f"{name}: {', '.join(parts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
