"""The cases that take longer than one and a half seconds, which the default tests leave out: `long_cases.txt`.

    python -m pytest -m "not browser" --durations=0 --durations-min=0.5 > durations.txt
    python tests/long_cases.py durations.txt      writes the list anew

One case of each file stays in the default tests, whatever it takes.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
_LONGEST = 1.5
_LINE = re.compile(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S.*)$")


def long_cases() -> set[str]:
    """Return the node ids of the cases that take long."""
    return set(LIST.read_text(encoding="utf-8").splitlines())


def found_in(lines: Iterable[str]) -> list[str]:
    """Return the cases that took long, as pytest's report of durations says it; of each file, the shortest stays."""
    seconds: dict[str, float] = defaultdict(float)
    for line in lines:
        if told := _LINE.match(line):
            seconds[told[2].strip()] += float(told[1])
    files: dict[str, list[str]] = defaultdict(list)
    for case in sorted(seconds, key=seconds.__getitem__):
        files[case.partition("::")[0]].append(case)
    return sorted(case for cases in files.values() for case in cases[1:] if seconds[case] > _LONGEST)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    LIST.write_text("".join(f"{case}\n" for case in found_in(text.splitlines())), encoding="utf-8")
