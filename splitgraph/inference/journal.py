"""What the visit of a call did beyond saying what its outputs are, so that a repeated call can do it at its own place.

A finding, a split that is reported and a requirement are done again, each at the location of the call that repeats
them. Other effects make a visit unrepeatable, and are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from splitgraph.diagnostics import Diagnostic
from splitgraph.dim import Facts, Obligation
from splitgraph.inference.walk_results import FoundSplit


class Finding(NamedTuple):
    """A finding. of_symbols, is_misdeclared: as `WalkState.report`. never_runs: it is of a branch that no run takes."""

    found: Diagnostic
    of_symbols: bool
    is_misdeclared: bool
    never_runs: bool


class Avoidable(NamedTuple):
    """An error of a body beside which there is a way that is right."""

    found: Diagnostic


class Requirement(NamedTuple):
    """What a node requires of the symbols in a body that may not run. facts: of that body."""

    obligation: Obligation
    location: str
    facts: Facts


Entry: TypeAlias = Finding | Avoidable | Requirement | FoundSplit


@dataclass(slots=True)
class Journal:
    """What the calls of one inference did, in order.

    unrepeatable: how often something was done that cannot be done again at another place. repeated: how many entries
    were done again. is_cut: there were too many of these, and a warning says so.
    """

    entries: list[Entry] = field(default_factory=list)
    unrepeatable: int = 0
    repeated: int = 0
    is_cut: bool = False
