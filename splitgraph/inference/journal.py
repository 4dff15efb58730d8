"""What the visit of a call did beyond saying what its outputs are, so that a repeated call can do it at its own place.

A finding, a split that is reported and a requirement are done again, each at the location of the call that repeats
them. Other effects make a visit unrepeatable, and are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Union

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Facts, Obligation

if TYPE_CHECKING:
    from splitgraph.inference.state import FoundSplit, State

# Functions that call functions twice over make a file of a few lines a report of millions of findings.
MOST_REPEATED = 10_000


class Finding(NamedTuple):
    """A finding. of_symbols, is_misdeclared: as `State.report`. never_runs: it is of a branch that no run takes."""

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


Entry = Union[Finding, Avoidable, Requirement, "FoundSplit"]


@dataclass(slots=True)
class Journal:
    """What the calls of one inference did, in order.

    unrepeatable: how often something was done that cannot be done again at another place.
    """

    entries: list[Entry] = field(default_factory=list)
    unrepeatable: int = 0
    _repeated: int = 0
    _is_cut: bool = False

    def repeat(self, state: State, start: int, end: int, old: str, new: str) -> None:
        """Do again what one call did, as the entries from start to end say. old, new: locations of that call and of the
        one that repeats it.
        """
        for position in range(start, end):
            self._repeated += 1
            if self._repeated > MOST_REPEATED:
                self._warn(state, new)
                return
            _again(state, self.entries[position], old, new)

    def _warn(self, state: State, location: str) -> None:
        if self._is_cut:
            return
        self._is_cut = True
        help = "The others are those of earlier calls of the same functions."
        text = f"of splits and findings in calls that repeat earlier ones, only {MOST_REPEATED:,} are listed"
        state.diagnostics.append(diagnostic("SG303", text, location, severity="warning", help=help))


def _again(state: State, entry: Entry, old: str, new: str) -> None:
    if isinstance(entry, (Finding, Avoidable)):
        found = replace(entry.found, location=new + entry.found.location[len(old) :])
        if isinstance(entry, Avoidable):
            state.avoid([found])
            return
        with state.muting(entry.never_runs):
            state.report(found, of_symbols=entry.of_symbols, is_misdeclared=entry.is_misdeclared)
    elif isinstance(entry, Requirement):
        state.note_requirement(entry.obligation, new + entry.location[len(old) :], entry.facts)
    else:
        state.keep_report(entry._replace(location=new + entry.location[len(old) :]))
