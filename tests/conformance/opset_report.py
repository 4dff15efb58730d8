"""How many of onnx's node tests convert to other opsets, and what became of the rest.

PYTHONPATH=tests python -m conformance.opset_report [--up N ...] [--down N ...] [--back N ...] [--wrap HOW]
    [--only OP ...] [--reasons]

Every case below a target goes up to it, every case above goes down.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx

from .model_cases import ModelCase, opset_of
from .opset_cases import WRAPS, node_cases, operators_of, wrapped
from .opset_judge import STATUSES, Verdict
from .opset_workers import Job, judge_all

UP = (18, 26, 28)
DOWN = (18, 17, 13, 11, 9)
# The name of a way ("up to 18") and the opsets that a case is taken to on it.
Way = tuple[str, tuple[int, ...]]
Found = dict[str, list[tuple[str, Verdict]]]


def ways_of(case: ModelCase, up: Iterable[int], down: Iterable[int], there_and_back: Iterable[int] = ()) -> list[Way]:
    """The ways that a case can go: up to higher opsets, down to lower ones, to another opset and back."""
    opset = opset_of(case.model) or 0
    ways = [(f"up to {target}", (target,)) for target in up if target > opset]
    ways += [(f"down to {target}", (target,)) for target in down if target < opset]
    return ways + [(f"{target} and back", (target, opset)) for target in there_and_back if target != opset]


def survey(jobs: Sequence[tuple[ModelCase, Sequence[Way]]], workers: int = 2) -> Found:
    """The verdicts about cases by the names of their ways."""
    found: Found = {}
    judged = judge_all([Job(case, [opsets for _, opsets in ways]) for case, ways in jobs], workers)
    for (case, ways), verdicts in zip(jobs, judged, strict=True):
        for (name, _), verdict in zip(ways, verdicts, strict=True):
            found.setdefault(name, []).append((case.name, verdict))
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(way: str) -> tuple[int, ...]:
    """Up before down before there and back; each further than the one before."""
    number = int(re.findall(r"\d+", way)[0])
    return (0, number) if way.startswith("up") else (1, -number) if way.startswith("down") else (2, number)


def share(verdicts: Sequence[tuple[str, Verdict]]) -> float:
    """The share of cases that were converted, in percent; what no engine could judge counts as converted."""
    converted = sum(verdict.status in ("equal", "unjudged", "doubtful") for _, verdict in verdicts)
    return 100 * converted / max(len(verdicts), 1)


def table(found: Found) -> Iterator[str]:
    """A row for each way; "of possible": without the cases whose own inputs and outputs do not exist there."""
    yield f"{'':12} {'cases':>6} {'share':>7} {'of possible':>11} " + " ".join(f"{status:>8}" for status in STATUSES)
    for way, verdicts in found.items():
        possible = [(name, verdict) for name, verdict in verdicts if verdict.possible]
        counts = Counter(verdict.status for _, verdict in verdicts)
        cells = " ".join(f"{counts[status]:8}" for status in STATUSES)
        yield f"{way:12} {len(verdicts):6} {share(verdicts):6.1f}% {share(possible):10.1f}% {cells}"


def reasons(verdicts: Iterable[tuple[str, Verdict]]) -> Iterator[str]:
    """What stands in the way, by operator and boundary, that of most cases first, each with its reasons.

    "alone": the cases in which nothing else stands in the way.
    """
    cases: defaultdict[str, list[str]] = defaultdict(list)
    alone: Counter[str] = Counter()
    texts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, verdict in verdicts:
        placed = [(_place(message), f"{code} {_general(message)}") for code, message in verdict.reasons]
        places = dict.fromkeys(place for place, _ in placed)
        for place, text in dict.fromkeys(placed):
            texts[place][text] += 1
        for place in places:
            cases[place].append(name)
            alone[place] += len(places) == 1
    for place, names in sorted(cases.items(), key=lambda item: (-alone[item[0]], -len(item[1]))):
        more = ", ..." if len(names) > 3 else ""
        yield f"{len(names):5} ({alone[place]} alone)  {place}: {', '.join(names[:3])}{more}"
        yield from (f"{count:12}  {text}" for text, count in texts[place].most_common(8))


def _place(message: str) -> str:
    """The operator and the boundary that a reason is about."""
    opset = re.search(r"opset (\d+)", message)
    return f"{message.split(' ', 1)[0]}@{opset[1] if opset else '?'}"


def _general(message: str) -> str:
    """A message without the names and values of one node."""
    return re.sub(r"here it is .*", "here it is ...", re.sub(r"'[^']*'", "'...'", message))


def faults(found: Mapping[str, Sequence[tuple[str, Verdict]]], *statuses: str) -> Iterator[str]:
    """The verdicts of these statuses; those of one way that say the same are one line."""
    for way, verdicts in found.items():
        names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for name, verdict in verdicts:
            if verdict.status in statuses:
                detail = f"{verdict.engine} {verdict.detail}".strip().replace(name, "...")
                names[f"{verdict.status} {way}", detail].append(name)
        for (status, detail), cases in names.items():
            more = f", ... ({len(cases)})" if len(cases) > 3 else ""
            yield f"{status}: {', '.join(cases[:3])}{more}: {detail[:400]}"


def main() -> None:
    """Print the table, and what was asked for beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--up", type=int, nargs="*", help=f"targets upward (default: {UP})")
    parser.add_argument("--down", type=int, nargs="*", help=f"targets downward (default: {DOWN})")
    parser.add_argument("--back", type=int, nargs="*", default=[], help="opsets to go to and back from")
    parser.add_argument("--wrap", choices=WRAPS, default="none", help="where the nodes are")
    parser.add_argument("--only", nargs="*", default=[], help="only cases with one of these operators, or so named")
    parser.add_argument("--reasons", action="store_true", help="list the reasons of refusals")
    parser.add_argument(
        "--show", nargs="*", default=["wrong", "invalid", "crashed"], help="list cases of these statuses"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    # Given one of them, only that.
    default = options.up is None and options.down is None and not options.back
    newest = onnx.defs.onnx_opset_version()
    up = [target for target in (UP if default else options.up or ()) if target <= newest]
    down = DOWN if default else options.down or ()
    chosen = [case for case in node_cases() if _is_wanted(case, options.only)]
    cases = [made for case in chosen if (made := wrapped(case, options.wrap)) is not None]
    jobs = [(case, ways) for case in cases if (ways := ways_of(case, up, down, options.back))]
    found = survey(jobs, options.workers)
    print("\n".join(table(found)))
    for line in faults(found, *options.show):
        print(line)
    if options.reasons:
        for way, verdicts in found.items():
            print(f"\nRefused {way}:")
            print("\n".join(reasons(verdicts)))


def _is_wanted(case: ModelCase, only: Sequence[str]) -> bool:
    return not only or case.name in only or not operators_of(case.model).isdisjoint(only)


if __name__ == "__main__":
    main()
