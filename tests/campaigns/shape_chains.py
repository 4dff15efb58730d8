"""Random chains of shape arithmetic, inferred by splitgraph and compared with a simulator at many sizes.

    python tests/campaigns/shape_chains.py --from 0 --count 20000

Printed are every wrong answer with its seed, and the figures. Wrong is an error for a chain that runs, a dimension that
differs where the chain runs and all assumptions hold, an obligation that does not hold there, a word of Python in a
text, and a crash. Counted beside: dimensions that could be written plainer, and answers that hang on the names of
symbols. With --broadcasts, dimensions of different names meet in broadcasts all the time.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "inference"), str(TESTS.parent)]

from chain_checks import check_chain  # noqa: E402, the folders above are on the path only now


def main() -> int:
    """Check a range of seeds; 1 when an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many seeds")
    parser.add_argument("--plainer", action="store_true", help="print dimensions that could be written plainer")
    parser.add_argument("--broadcasts", action="store_true", help="chains of broadcasts, at sizes of 0, 1 and 4")
    options = parser.parse_args()
    figures: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        try:
            found = check_chain(seed, rename=True, broadcasts=options.broadcasts)
        except Exception:
            figures["crashes"] += 1
            print(f"{seed}: {traceback.format_exc()}", flush=True)
            continue
        for kind, text in found.wrong[:3]:
            print(f"{seed}: {kind}: {text}", flush=True)
        if options.plainer:
            for text in found.plainer:
                print(f"{seed}: plainer: {text}", flush=True)
        figures.update({f"chains with a wrong {kind}": 1 for kind, _ in found.wrong})
        figures["chains"] += 1
        figures["points at which they run"] += found.points
        figures["dimensions"] += found.dims
        figures["symbolic dimensions"] += found.symbolic
        figures["unknown dimensions"] += found.unknown
        figures["obligations"] += found.obligations
        figures["assumptions"] += found.assumptions
        figures["chains that assume something"] += found.assumptions > 0
        figures["points that assumptions exclude"] += found.excluded
        figures["dimensions that could be plainer"] += len(found.plainer)
        figures["chains whose answers hang on names"] += found.named
    for name, number in figures.items():
        print(f"{number:12,} {name}")
    return 1 if figures["crashes"] or any("wrong" in name for name in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
