"""What mutants show that does not hold yet. An entry goes when its fault is mended: it hides others like it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Known(NamedTuple):
    """A fault that is known.

    place: of the fault, as a regular expression. mutation: part of what was done to the mutant. what: is wrong.
    """

    place: str
    mutation: str
    what: str


KNOWN: Final[tuple[Known, ...]] = (
    Known(
        r"ended by SIGSEGV|MemoryError.*|more than \d+ s of CPU time|out of memory",
        "deep_graph",
        "below opset 11, one branch of each If is copied over the other: twice as much for each level (_copy_branch)",
    ),
    Known(
        r"DecodeError in .*",
        "deep_graph",
        "protobuf copies no node that is nested deeper than 100 messages; in memory there are such",
    ),
    Known(
        r"what \w+ gives is saved so that protobuf does not read it",
        "deep_graph",
        "types are written into graphs that are nested so deep that a file with them is not read again",
    ),
    Known(
        r"MemoryError in shapes\.dense_constant",
        "sparse",
        "a sparse constant is written out below opset 11 however large it is",
    ),
)


def known_fault(place: str, mutant: str) -> Known | None:
    """The entry for a fault of a mutant; None for a new one."""
    return next((each for each in KNOWN if re.fullmatch(each.place, place) and each.mutation in mutant), None)
