"""Repeating the effects of an earlier, equal call, as the journal recorded them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from splitgraph.diagnostics import diagnostic
from splitgraph.inference.journal import Avoidable, Entry, Finding, Requirement
from splitgraph.inference.walk_results import FoundSplit
from splitgraph.inference.walk_state import WalkState

Moved = TypeVar("Moved", Requirement, FoundSplit)

# Functions that call functions twice over make a file of a few lines a report of millions of findings.
MOST_REPEATED = 10_000


def replay(state: WalkState, start: int, end: int, old: str, new: str) -> None:
    """Repeat the journal's entries from start to end. old, new: the locations of the earlier call and of the repeating
    call.
    """
    journal = state.journal
    for position in range(start, end):
        journal.repeated += 1
        if journal.repeated > MOST_REPEATED:
            _warn(state, new)
            return
        _again(state, journal.entries[position], old, new)


def _warn(state: WalkState, location: str) -> None:
    if state.journal.is_cut:
        return
    state.journal.is_cut = True
    help = "The others are the same as in the earlier calls of these functions."
    text = f"only {MOST_REPEATED:,} splits and findings of repeated function calls are listed"
    state.diagnostics.append(diagnostic("SG303", text, location, severity="warning", help=help))


def _again(state: WalkState, entry: Entry, old: str, new: str) -> None:
    if isinstance(entry, (Finding, Avoidable)):
        found = replace(entry.found, location=new + entry.found.location[len(old) :])
        if isinstance(entry, Avoidable):
            state.avoid([found])
            return
        with state.muting(entry.never_runs):
            state.report(found, of_symbols=entry.of_symbols, is_misdeclared=entry.is_misdeclared)
    elif isinstance(entry, Requirement):
        state.note_requirement(_moved(entry, old, new))
    else:
        state.keep_report(_moved(entry, old, new))


def _moved(entry: Moved, old: str, new: str) -> Moved:
    """The entry at the location of the repeating call; a body around the call stays."""
    branch = new + entry.branch[len(old) :] if entry.branch.startswith(f"{old}/") else entry.branch
    return entry._replace(location=new + entry.location[len(old) :], branch=branch)
