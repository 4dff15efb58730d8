"""Parts of the conversion matrix that cover every pair of its factors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations
from zlib import crc32

from .matrix_models import Case, cases

ALL = list(cases())
# The slow tests take one case in so many.
MANY = int(os.environ.get("SPLITGRAPH_MATRIX", "3"))


def factors(case: Case) -> tuple[object, ...]:
    """The factors of the matrix that a case stands for."""
    return case.version, case.parts, case.even, case.axis, case.scope, case.shape


def pairs(case: Case) -> set[tuple[int, object, int, object]]:
    """Every pair of factors in a case."""
    return {(i, a, j, b) for (i, a), (j, b) in combinations(enumerate(factors(case)), 2)}


def covering(every: Iterable[Case], share: int) -> list[Case]:
    """One case in `share`, picked by a checksum of its name, and as many more as every pair of factors takes."""
    every = list(every)
    chosen = [case for case in every if crc32(str(case).encode()) % share == 0]
    covered = set().union(*(pairs(case) for case in chosen))
    for case in every:
        if not pairs(case) <= covered:
            chosen.append(case)
            covered |= pairs(case)
    return chosen


def report(found: list[str]) -> str:
    """The failures as one message, the first twenty in full."""
    return f"{len(found)} failures\n" + "\n".join(found[:20])
