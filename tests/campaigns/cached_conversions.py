"""onnx's node tests, converted with the cache of conversions and without it: the same bytes, but for shared constants.

    python tests/campaigns/cached_conversions.py --jobs 2

Every node test goes to every opset that the tests of the cache take. Printed are how many conversions gave a model, how
many were refused, and each that differs, with its test and target. Ends with 1 where one differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from conformance.opset_cases import node_cases  # noqa: E402, the folders above are on the path only now
from conversion.cache_comparison import TARGETS, converted, to_others, without_cache  # noqa: E402


def compare(number: int) -> list[tuple[str, str]]:
    """What became of one node test at each opset, and a text where that hangs on the cache."""
    case, answers = node_cases()[number], []
    for model, target in to_others([case.model], TARGETS):
        found = converted(model, target)
        differs = found != without_cache(model, target)
        kind = "converted" if isinstance(found, bytes) else "refused"
        answers.append((kind, f"{case.name} to {target} differs" if differs else ""))
    return answers


def main() -> int:
    """Compare all; 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--step", type=int, default=1, help="take one node test in so many")
    options = parser.parse_args()
    counted, differing = Counter[str](), 0
    numbers = range(0, len(node_cases()), options.step)
    with Pool(options.jobs) as pool:
        for answers in pool.imap(compare, numbers, chunksize=20):
            for kind, text in answers:
                counted[kind] += 1
                if text:
                    differing += 1
                    print(text, flush=True)
    print(f"{len(numbers):,} node tests: {counted['converted']:,} converted, {counted['refused']:,} refused")
    print(f"differing: {differing}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
