"""What `Facts` answers to random facts and questions, checked by isl, by z3 and at small points.

    python tests/campaigns/dim_oracles.py --count 1000000 --first 0 --jobs 2

One seed is one case: up to 6 symbols, up to 8 facts, one question; the answer to each fact is checked too. Printed are
every wrong answer, with its seed and the smallest case like it, what never ends, the figures, and what is proved of
what isl proves. It ends with 1 where an answer is wrong, never comes, or is a crash. --variants: also ask under other
names, in another order, after other questions and in an inner scope; answers that differ count as wrong.

islpy and z3-solver are in the extra `test`; there is no islpy for Windows.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from types import FrameType
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / "dim"), str(Path(__file__).parents[2])]

from dim_cases import Case  # noqa: E402, the folders above are on the path only now
from dim_figures import Figures  # noqa: E402
from dim_judging import judged  # noqa: E402
from dim_shrinking import shrunk  # noqa: E402
from dim_variants import differences  # noqa: E402
from random_cases import random_case  # noqa: E402

# Seconds of processor time, hundreds of times what a case takes.
_LIMIT = 5.0
_CHUNK = 50
# z3 checks what isl has checked in one case of so many.
_EVERY_JUDGE = 50


class Options(NamedTuple):
    """variants: tell each case in other ways too. missed: print what isl proves and `Facts` does not."""

    variants: bool
    missed: bool


class _NeverEnds(Exception):
    pass


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise _NeverEnds inside after so much processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _NeverEnds

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check(seeds: range, options: Options) -> tuple[Figures, Counter[str], list[str]]:
    """(figures, what is wrong besides unsound answers, texts to print) of some cases."""
    figures, wrong, texts = Figures(), Counter[str](), list[str]()
    for seed in seeds:
        case = random_case(seed)
        try:
            with limited(_LIMIT):
                _check_case(seed, case, options, figures, wrong, texts)
        except _NeverEnds:
            wrong["cases that never end"] += 1
            texts.append(f"{seed}: never ends: {case}")
        except Exception:
            wrong["crashes"] += 1
            texts.append(f"{seed}: {case}: {traceback.format_exc(limit=-2)}")
    return figures, wrong, texts


def _check_case(
    seed: int, case: Case, options: Options, figures: Figures, wrong: Counter[str], texts: list[str]
) -> None:
    verdict = judged(case, every_judge=seed % _EVERY_JUDGE == 0)
    figures.add(verdict)
    texts += [f"{seed}: UNSOUND: {text}" for text in verdict.unsound]
    texts += [f"{seed}: {text}" for text in verdict.disagreements]
    if verdict.unsound:
        texts.append(f"{seed}: smallest: {shrunk(case, _is_unsound)}")
    if options.missed:
        texts += [f"{seed}: missed: {text}; {case}" for text in verdict.overlooked]
    for variant, text in differences(case, seed) if options.variants else ():
        wrong[f"answers that differ with {variant}"] += 1
        texts.append(f"{seed}: {variant}: {case}: {text}")


def _is_unsound(case: Case) -> bool:
    try:
        with limited(1):
            return bool(judged(case).unsound)
    except (_NeverEnds, ValueError):
        return False


def main() -> int:
    """Check a range of seeds; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--variants", action="store_true", help="tell each case in other ways too")
    parser.add_argument("--missed", action="store_true", help="print what isl proves and Facts does not")
    parser.add_argument("--table", type=Path, help="write the table of what is proved to this file")
    options = parser.parse_args()
    last = options.first + options.count
    chunks = [range(start, min(start + _CHUNK, last)) for start in range(options.first, last, _CHUNK)]
    figures, wrong = Figures(), Counter[str]()
    with Pool(options.jobs) as pool:
        work = partial(check, options=Options(options.variants, options.missed))
        for part, more, texts in pool.imap(work, chunks):
            figures.merge(part)
            wrong.update(more)
            for text in texts:
                print(text, flush=True)
    print(*figures.lines(), *(f"{number:10,} {name}" for name, number in wrong.items()), "", figures.table(), sep="\n")
    if options.table:
        options.table.write_text(figures.table() + "\n")
    return 1 if figures.unsound or figures.disagreements or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
