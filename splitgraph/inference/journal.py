"""The journal of calls: what walking a function body did besides inferring outputs, so that an equal call can do the
same at its own location.

Findings, reported splits and requirements are done again, at the location of the repeating call. All other effects make
a call unrepeatable; the journal only counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from splitgraph.diagnostics import Diagnostic
from splitgraph.dim import Facts, Obligation
from splitgraph.inference.walk_results import FoundSplit


class Finding(NamedTuple):
    """A finding. of_symbols, is_misdeclared: see `WalkState.report`. never_runs: no run takes the branch of the
    finding.
    """

    found: Diagnostic
    of_symbols: bool
    is_misdeclared: bool
    never_runs: bool


class Avoidable(NamedTuple):
    """An error in a body, where another branch has no error."""

    found: Diagnostic


class Requirement(NamedTuple):
    """A requirement of a node. facts: those of its graph. branch: the location of the innermost body around the node,
    which may not run; "" for a node of the main graph or of a function that it calls.
    """

    obligation: Obligation
    location: str
    facts: Facts
    branch: str


Entry: TypeAlias = Finding | Avoidable | Requirement | FoundSplit


@dataclass(slots=True)
class Journal:
    """The effects of all calls of one inference, in order.

    unrepeatable: how often something was done that cannot be done again at another place. repeated: how many entries
    were done again. is_cut: there were too many of these, and a warning says so.
    """

    entries: list[Entry] = field(default_factory=list)
    unrepeatable: int = 0
    repeated: int = 0
    is_cut: bool = False
