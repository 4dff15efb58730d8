"""Which traits of a layer of OpenVINO IR are to blame for the cases that are not read, and the lines of its table.

Of each layer: how many cases are read, refused, wrong, dead or hanging; what tells them apart; and the release's own
words. `layer_table.py` makes the table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from splitgraph.runtimes.operator_traits import is_default, is_structure, needs_a_case

Traits = frozenset[str]
# A case, its answer, and the runtime's words.
Row = tuple[Traits, str, str]
_LONGEST = 120
_HARM = ("reads", "refuses", "hangs", "dies", "rank", "wrong")
# Words of a runtime about the case and not about the operator: names of files, numbers, addresses.
_OF_THE_CASE = re.compile(r"0x[0-9a-f]+|'?/?[\w./-]+\.(?:onnx|cpp|cc|h|hpp|py):?\d*'?(?:, line \d+)?", re.IGNORECASE)
# What stands before the words that matter.
_BEFORE = re.compile(r"Exception from …: |Check '[^']*' failed at …: |Errors during ONNX translation: ")


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
