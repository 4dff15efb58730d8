"""Finds the split that a name or a location means."""

from __future__ import annotations

from difflib import get_close_matches

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.inference.analysis import Analysis, SplitReport

_MOST_SHOWN = 5


def find_split(analysis: Analysis, wanted: str) -> SplitReport:
    """Return the split with this location ("main/h.0/Split") or this name. Raise SplitgraphError (SG601) for none
    and for several, and lists the locations that may be meant.
    """
    found = [each for each in analysis.splits if each.location == wanted]
    found = found or [each for each in analysis.splits if each.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        places = [each.location for each in found]
        raise _usage(f"{len(found)} splits are named {wanted!r}. Give the location of one: {_listed(places)}")
    if not analysis.splits:
        raise _usage(f"there is no split {wanted!r}: the model has no splits")
    names = list(dict.fromkeys(text for each in analysis.splits for text in (each.name, each.location)))
    close = get_close_matches(wanted, names, n=_MOST_SHOWN, cutoff=0.5)
    advice = (
        f"did you mean {_listed(close)}?" if close else f"the model has {_listed([e.name for e in analysis.splits])}"
    )
    raise _usage(f"there is no split {wanted!r}; {advice}")


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_SHOWN
    shown = ", ".join(map(repr, texts[:_MOST_SHOWN]))
    return f"{shown} and {more} more" if more > 0 else shown


def _usage(message: str) -> SplitgraphError:
    return SplitgraphError(message, [diagnostic("SG601", message)])
