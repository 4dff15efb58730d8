"""The memo of function calls: a call that equals an earlier call gets its results, and the body is not walked again.
Without it, a file with a few functions that call each other twice is a model of millions of nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from splitgraph.dim import Facts
from splitgraph.inference.call_outputs import CallOutputs
from splitgraph.inference.knowledge import Knowledge
from splitgraph.inference.visit_memo import SettledVisits, VisitMemo
from splitgraph.value_type import Contents

# The function, the attributes that it is called with, whether findings are reported, and one object for what is known
# of each input.
CallKey = tuple[Hashable, ...]


class Call(Protocol):
    """A node that calls a function. given: what is known of each input; `contents` reads the elements of one."""

    given: list[Knowledge]

    def contents(self, index: int) -> Contents | None: ...


@dataclass(frozen=True, slots=True)
class CallVisit:
    """The results and effects of walking a function body for one call.

    given: the outputs. made: symbols in the outputs, or in what is reported, that this call generated. location: of
    the call. start, end: its entries in the journal. unknown: how often each unknown operator occurred. version: of the
    facts before the walk.
    settled: the results hold whatever else becomes known. held: keeps objects alive that the key compares by identity.
    """

    given: CallOutputs
    made: Sequence[str]
    location: str
    start: int
    end: int
    unknown: Mapping[str, int]
    version: int
    settled: bool
    held: object


class CallMemo:
    """The calls that may be repeated in graphs that share the same facts.

    What a call may depend on. Its key: the function, its attributes, whether findings are reported, and what is known
    of each input; of the elements of a constant only where the body looks at them, so that layers that differ in their
    weights are alike. And what is known of the symbols: the rules of `VisitMemo` hold for everything in the body.

    What a repeated call does again, at its own location: findings, splits that are reported, requirements of bodies
    that may not run, operators that nobody knows. Symbols that the call made and gives, or reports, are made anew.

    What makes a call unrepeatable. A fact that was learnt. Symbols that were made and that are reported of a body,
    whose facts may speak of them. What the journal counts as unrepeatable: a symbol for a broadcast, a name that was
    adopted from a declaration, recursion, and a call that is not followed.

    When a call is forgotten. As a node: one that had an open question holds while nothing more is learnt, others to the
    end. Facts of a body that has learnt nothing of its own are those around it, and so is the memo.
    """

    def __init__(self, facts: Facts, around: CallMemo | None = None) -> None:
        self.facts = facts
        self.around = around
        # Of single nodes, by the same rules.
        self.settled: SettledVisits = SettledVisits(facts, None if around is None else around.settled)
        self._visits: dict[CallKey, CallVisit] = {}
        # By key, the inputs whose elements a body looked at: what is known of them tells calls apart, too.
        self._read: dict[CallKey, frozenset[int]] = {}

    def find(self, key: CallKey, call: Call) -> CallVisit | None:
        """The call that this one repeats; None when it is to be walked."""
        version = self.facts.version
        memo: CallMemo | None = self
        while memo is not None:
            read = memo._read.get(key)
            if read is not None:
                visit = memo._visits.get(_with_elements(key, call, read))
                # Equal versions: nothing was learnt since, here or in a body between that memo and this one.
                if visit is not None and (visit.settled or visit.version == version):
                    return visit
            memo = memo.around
        return None

    def keep(self, key: CallKey, call: Call, read: frozenset[int], visit: CallVisit) -> None:
        """Remember a call. read: the inputs whose elements it looked at."""
        if not VisitMemo.remembers:
            return
        memo = self
        while memo.around is not None and memo.around.facts.version == visit.version:
            memo = memo.around
        read |= memo._read.get(key, frozenset())
        memo._read[key] = read
        memo._visits[_with_elements(key, call, read)] = visit


def _with_elements(key: CallKey, call: Call, read: frozenset[int]) -> CallKey:
    return (*key, *(_elements(call, position) for position in sorted(read)))


def _elements(call: Call, position: int) -> Hashable:
    call.contents(position)
    return call.given[position]
