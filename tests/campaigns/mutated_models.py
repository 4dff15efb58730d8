"""Mutated models, inferred and converted by splitgraph: each gets an answer within limits, and never a traceback.

    python tests/campaigns/mutated_models.py --from 0 --count 300000 --jobs 2
    python tests/campaigns/mutated_models.py --kind faults --judge --count 5000
    python tests/campaigns/mutated_models.py --from 4711 --count 1 --reduce

The models are onnx's own node tests and files, those of `models/` that are small, and some of `growing_models.py`. Each
seed changes one in its bytes, in the fields of its file, in memory as a hostile program would (objects), or by one
plain fault. The mutant is inferred, converted, saved and read again, and some are given to the command line; a file is
read both as it is and without its weights. Each of these steps takes at most 10 s of CPU time and 1 GiB, and gives a
result or an error that is documented. With --judge, what splitgraph takes of a mutant with one fault is put before
onnx's checker and onnxruntime, and is wrong where both refuse it.

Printed are the kinds of outcomes, and every fault with its seed that is not in `mutated_models_today.py`. A seed is the
same mutant with the same onnx.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from mutated_models_mutants import KINDS, Mutant, make_mutant  # noqa: E402, the folders above are on the path only now
from mutated_models_sources import sources  # noqa: E402
from mutated_models_today import known_fault  # noqa: E402
from mutated_models_workers import Answer, Work, work_on  # noqa: E402

# So many cases are listed that took the most time or memory.
_LISTED = 5
# How many characters are printed of a mutant, and of a fault that is seen for the first time.
_LINE, _SHOWN = 300, 3000


def make_work(kinds: Sequence[str], *, judged: bool, alone: bool) -> Work:
    """What a worker does with a seed."""
    # In the parent, so that each worker has it: what is imported here takes seconds.
    from mutated_models_trial import try_mutant

    if judged:
        from mutated_models_judges import judge_mutant

    def work(seed: int, folder: Path, renew: Callable[[], None]) -> Answer:
        mutant = make_mutant(seed, kinds)
        report = try_mutant(mutant, folder, renew)
        if judged and mutant.kind == "faults" and not report.place:
            judge_mutant(mutant, report, alone=alone)
        return {"mutant": str(mutant), "kind": mutant.kind, **dataclasses.asdict(report)}

    return work


class Figures:
    """What happened to all mutants. kinds: those of `make_mutant`."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.faults: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._kinds = kinds
        self._outcomes: Counter[str] = Counter()
        self._mutants: Counter[str] = Counter()
        self._costs: list[tuple[float, int, int]] = []

    def add(self, seed: int, answer: Answer) -> None:
        """Count an answer, and print its fault."""
        if "died" in answer:
            mutant = make_mutant(seed, self._kinds)
            place, _, fault = answer["died"].partition("\n")
            answer = {"mutant": str(mutant), "kind": mutant.kind, "place": place, "fault": fault, "outcomes": ["died"]}
        else:
            self._costs.append((answer["seconds"], answer["bytes"], seed))
        self._mutants[answer["kind"]] += 1
        self._outcomes.update(f"{answer['kind']}: {outcome}" for outcome in answer["outcomes"])
        place = answer["place"]
        if not place:
            return
        known = known_fault(place, answer["mutant"])
        if known is not None:
            self._known[known.what] += 1
            return
        self.faults[place] += 1
        print(f"{seed}: {place}: {answer['mutant'][:_LINE]}", flush=True)
        if self.faults[place] == 1:
            print(answer["fault"][-_SHOWN:], flush=True)

    def show(self) -> None:
        """Print the figures."""
        for outcome, count in sorted(self._outcomes.items()):
            print(f"{count:10,} {outcome}")
        for number, unit, scale in ((0, "s", 1), (1, "MiB", 2**20)):
            most = sorted(self._costs, key=lambda cost: -cost[number])[:_LISTED]
            print(f"most {unit}: " + ", ".join(f"{cost[number] / scale:.1f} (seed {cost[2]})" for cost in most))
        mutants = ", ".join(f"{count:,} of {kind}" for kind, count in self._mutants.items())
        print(f"{self._mutants.total():,} mutants: {mutants}")
        print(f"{sum(cost[0] for cost in self._costs):,.0f} s of CPU time")
        for what, count in self._known.most_common():
            print(f"{count:10,} known faults: {what}")
        for place, count in self.faults.most_common():
            print(f"{count:10,} FAULTS: {place}")


def reduce(seed: int, kinds: Sequence[str]) -> None:
    """Print the smallest form of a mutant that has a fault."""
    from mutated_models_reduction import reduced, shown
    from mutated_models_trial import try_mutant

    def place_of(mutant: Mutant) -> str:
        ((_, answer),) = work_on([0], 1, lambda _, *rest: {"place": try_mutant(mutant, *rest).place})
        return str(answer["died"].splitlines()[0] if "died" in answer else answer["place"])

    mutant = make_mutant(seed, kinds)
    place = place_of(mutant)
    if not place:
        print("There is no fault.")
        return
    print(f"{place}, after {mutant.plan}\n{shown(reduced(mutant, lambda smaller: place_of(smaller) == place))}")


def main() -> int:
    """Try a range of seeds; 1 when there was a fault that is not known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--count", type=int, default=3000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=1, help="how many worker processes")
    parser.add_argument("--kind", action="append", choices=list(KINDS), default=[], help="only these kinds of mutants")
    parser.add_argument("--judge", action="store_true", help="ask the judges about mutants of one fault")
    parser.add_argument("--alone", action="store_true", help="print also what onnxruntime alone refuses")
    parser.add_argument("--reduce", action="store_true", help="print the smallest form of the first seed's mutant")
    options = parser.parse_args()
    sources()
    if options.reduce:
        reduce(options.first, options.kind)
        return 0
    work = make_work(options.kind, judged=options.judge, alone=options.alone)
    gc.collect()
    gc.freeze()
    figures = Figures(options.kind)
    for seed, answer in work_on(range(options.first, options.first + options.count), options.jobs, work):
        figures.add(seed, answer)
    figures.show()
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
