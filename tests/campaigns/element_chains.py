"""Random arithmetic on the elements of shapes, at the level of dimensions: a million chains take an hour.

    python tests/campaigns/element_chains.py --from 0 --count 1000000

Printed are every crash and every wrong answer with its seed, and the figures. Wrong is a value that differs from plain
integers at a point where all assumed relations hold, and a relation that is said to be impossible and holds there.
`shape_chains.py` compares whole models, three times slower.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "inference"), str(Path(__file__).parents[2])]

from element_checks import check_elements  # noqa: E402, the folders above are on the path only now


def main() -> int:
    """Check a range of seeds; 1 when an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--count", type=int, default=20000, help="how many seeds")
    options = parser.parse_args()
    figures: Counter[str] = Counter(chains=0, crashes=0, wrong=0)
    for seed in range(options.first, options.first + options.count):
        figures["chains"] += 1
        try:
            wrong = check_elements(seed)
        except Exception:
            figures["crashes"] += 1
            print(f"{seed}: {traceback.format_exc()}", flush=True)
            continue
        figures["wrong"] += bool(wrong)
        for text in wrong:
            print(f"{seed}: {text}", flush=True)
    for name, number in figures.items():
        print(f"{number:12,} {name}")
    return 1 if figures["crashes"] or figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
