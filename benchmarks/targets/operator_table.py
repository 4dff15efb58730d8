"""Writes the table of operators from measured answers.

    python benchmarks/targets/operator_table.py CASES KEPT...

CASES is the folder that `operator_cases.py` wrote, each KEPT a file of answers that `measure.py --kept` wrote. Of each
operator version: how many cases are read, refused, wrong, dead or hanging; what tells them apart; and the runtime's own
words. A release of a runtime that reads more or less than the one before is a diff of its file in
`splitgraph/runtimes/table/operators/`.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import onnx

from splitgraph.options import STRICT
from splitgraph.runtimes.check import examine
from splitgraph.runtimes.operator_traits import is_default, is_structure, needs_a_case

RESULTS = Path(__file__).with_name("results") / "operators"
TABLE = Path(__file__).parents[2] / "splitgraph" / "runtimes" / "table" / "operators"
Traits = frozenset[str]
# A case, its answer, and the runtime's words.
Row = tuple[Traits, str, str]
_LONGEST = 120
_HARM = ("reads", "refuses", "hangs", "dies", "rank", "wrong")
# Words of a runtime about the case and not about the operator: names of files, numbers, addresses.
_OF_THE_CASE = re.compile(r"0x[0-9a-f]+|'?/?[\w./-]+\.(?:onnx|cpp|cc|h|hpp|py):?\d*'?(?:, line \d+)?", re.IGNORECASE)
# What stands before the words that matter.
_BEFORE = re.compile(r"Exception from …: |Check '[^']*' failed at …: |Errors during ONNX translation: ")


def main(folder: Path, kept: Sequence[Path]) -> None:
    """Write the file of each result, and the traits of all cases."""
    traits = {path.stem: traits_of_case(path) for path in sorted(folder.glob("*.onnx"))}
    known: dict[str, set[str]] = defaultdict(set)
    for name, own in traits.items():
        known[operator_of(name)] |= own
    TABLE.mkdir(exist_ok=True)
    write_lines(TABLE / "cases.json", {operator: sorted(own) for operator, own in sorted(known.items())})
    for path in kept:
        told = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        answers = {name: (answer, said) for name, answer, said in told if name in traits}
        entries = entries_of(traits, answers, known)
        runtime, _, version = path.stem.partition("@")
        measured = date.fromtimestamp(path.stat().st_mtime).isoformat()
        head = {"name": runtime, "version": version, "measured": measured, "cases": len(answers)}
        write_lines(TABLE / f"{path.stem}.json", head | {"operators": entries})
        _keep(RESULTS / f"{path.stem}.jsonl.gz", answers)
        print(f"{path.stem}: {len(answers)} cases of {len(entries)} operator versions")


def _keep(path: Path, answers: Mapping[str, tuple[str, str]]) -> None:
    """Write every answer with the runtime's words; the same bytes for the same answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{json.dumps([name, *answers[name]], ensure_ascii=False)}\n" for name in sorted(answers))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def operator_of(case: str) -> str:
    """The operator version that a case is about: its name begins with it."""
    return case.rsplit(".", 3)[0]


def traits_of_case(path: Path) -> Traits:
    """The traits of the node that a case is about; none of a case that only imports a domain."""
    operator = operator_of(path.stem)
    examined = examine(onnx.load(path), STRICT)
    return next((node.own for node in examined.nodes if node.label == operator), frozenset())


def entries_of(
    traits: Mapping[str, Traits], answers: Mapping[str, tuple[str, str]], known: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """The entries of a runtime by operator version. known: the traits of all cases, also of those that did not run."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for name, (answer, said) in answers.items():
        # What an adapter cannot give to the runtime says nothing of the runtime.
        if name in traits and "harness" not in said:
            rows[operator_of(name)].append((traits[name], answer, said))
    return {operator: entry_of(cases, frozenset(known[operator])) for operator, cases in sorted(rows.items())}


def entry_of(rows: Sequence[Row], known: Traits) -> dict[str, Any]:
    """The entry of an operator version."""
    counts = Counter(answer for _, answer, _ in rows)
    entry: dict[str, Any] = {answer: counts[answer] for answer in _HARM if counts[answer]}
    read = [traits for traits, answer, _ in rows if answer == "reads"]
    failing = [(traits, answer) for traits, answer, _ in rows if answer != "reads"]
    if read:
        rules, left = rules_of(read, failing)
        unexplained = [traits for traits, _ in failing if not any(blamed <= traits for blamed, *_ in rules)]
        unread = sorted(trait for trait in known.difference(*read) if needs_a_case(trait))
        told = {
            "rules": [
                [sorted(blamed), answer, cases, *([like] if (like := _alike(blamed, failing)) else [])]
                for blamed, answer, cases in rules
            ],
            "unread": unread,
            "unexplained": left,
            # Only a node with all that these cases share is like them.
            "like": sorted(filter(needs_a_case, frozenset.intersection(*unexplained))) if unexplained else [],
        }
        entry |= {name: value for name, value in told.items() if value}
    said = Counter(words for _, answer, text in rows if answer != "reads" and (words := _words(text)))
    if said:
        entry["said"] = said.most_common(1)[0][0]
    return entry


def _alike(blamed: Traits, failing: Sequence[tuple[Traits, str]]) -> list[str]:
    """What all cases with these traits have besides, if the traits are only of how a node stands in its model."""
    if not all(map(is_structure, blamed)):
        return []
    shared = frozenset.intersection(*(traits for traits, _ in failing if blamed <= traits))
    return sorted(trait for trait in shared - blamed if needs_a_case(trait) and not is_default(trait))


def rules_of(
    read: Sequence[Traits], failing: Sequence[tuple[Traits, str]]
) -> tuple[list[tuple[Traits, str, int]], int]:
    """What tells the cases apart: traits, alone or two together, with which no case is read; and how many cases that
    are not read have none of them.
    """
    rules: list[tuple[Traits, str, int]] = []
    left = list(failing)
    for size in (1, 2):
        while left:
            candidates = Counter(
                part for traits, _ in left for part in map(frozenset, combinations(sorted(traits), size))
            )
            pure = {part: count for part, count in candidates.items() if not any(part <= traits for traits in read)}
            told = {part: count for part, count in pure.items() if count > 1 or all(map(needs_a_case, part))}
            if not told:
                break
            # Of equals, what is rare among the cases that are read is to blame.
            seen = Counter(trait for traits in read for trait in traits)
            part = max(told, key=lambda each: (told[each], -sum(map(seen.__getitem__, each)), sorted(each)))
            having = [answer for traits, answer in failing if part <= traits]
            rules.append((part, max(having, key=_HARM.index), len(having)))
            left = [(traits, answer) for traits, answer in left if not part <= traits]
    return rules, len(left)


def _words(text: str) -> str:
    """The runtime's words without what belongs to the case, and not too long."""
    plain = _BEFORE.sub("", " ".join(_OF_THE_CASE.sub("…", text).split()))
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def write_lines(path: Path, held: Mapping[str, Any]) -> None:
    """Write a file with one line for each operator version."""
    inner = held.get("operators", held)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each, ensure_ascii=False)}" for name, each in inner.items())
    head = {name: value for name, value in held.items() if name != "operators"} if "operators" in held else {}
    start = json.dumps(head)[:-1] + ',\n "operators": {\n' if head else "{\n"
    path.write_text(f"{start}{lines}\n{' }' if head else ''}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
