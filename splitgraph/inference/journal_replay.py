"""Repeating the effects of an earlier, equal call, as the journal recorded them."""

from __future__ import annotations

from dataclasses import replace

from splitgraph.diagnostics import diagnostic
from splitgraph.inference.journal import Avoidable, Entry, Finding, Requirement
from splitgraph.inference.walk_state import WalkState

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
        state.note_requirement(entry.obligation, new + entry.location[len(old) :], entry.facts)
    else:
        state.keep_report(entry._replace(location=new + entry.location[len(old) :]))
