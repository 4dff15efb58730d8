"""Splits as exporters write them, taken through every form and back and run in onnxruntime, over many seeds.

    python tests/campaigns/exporter_idioms.py --from 0 --count 50000 --jobs 2

Prints each wrong result with its seed, and the figures. Wrong is a result that the checker refuses, that has an error
of inference which the source does not have, that does not load or run, or whose outputs are not the same bits.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

from idiom_results import results


def main() -> int:
    """Judge a range of seeds; 1 when a result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--count", type=int, default=50_000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    figures: Counter[str] = Counter()

    def judge(job: int) -> None:
        share = -(-options.count // options.jobs)
        first = options.first + job * share
        for line in results(first, min(first + share, options.first + options.count)):
            for text in line["wrong"]:
                print(f"{line['seed']}: {text}", flush=True)
            figures.update(models=1, wrong=bool(line["wrong"]))
            figures["models that run"] += line["ran"]
            figures["conversions with the same bits"] += line["equal"]
            figures["conversions that join slices"] += line["joined"]
            figures.update(f"refused with {codes}" for codes in line["refused"])

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, range(options.jobs)))
    for name, number in figures.items():
        print(f"{number:12,} {name}")
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
