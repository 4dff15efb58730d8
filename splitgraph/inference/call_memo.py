"""The memo of calls: a call of a function that repeats an earlier one gives what that one gave, and its body is not
walked again. Otherwise a file of a few functions that call each other twice over is a model of millions of nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from splitgraph.dim import Facts
from splitgraph.inference.outputs_of_call import OutputsOfCall
from splitgraph.inference.state import State
from splitgraph.inference.visit_memo import VisitMemo
from splitgraph.inference.walked_node import WalkedNode
from splitgraph.value_type import ValueType

# The function, the attributes that it is called with, whether findings are reported, and one object for what is known
# of each input.
CallKey = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class CallVisit:
    """What walking the body of a function for one call did.

    made: symbols in what it gives that it made. location: of the call. start, end: of what it did in the journal.
    unknown: how often each operator that nobody knows was met. version: of the facts that it was walked with; settled:
    its answers hold whatever else is learnt. held: what the key tells apart by identity, which must stay alive.
    """

    given: OutputsOfCall
    made: Sequence[str]
    location: str
    start: int
    end: int
    unknown: Mapping[str, int]
    version: int
    settled: bool
    held: object

    def repeat(self, state: State, ctx: WalkedNode) -> Sequence[ValueType]:
        """Do for a call what was done for this one. Gives the types of its outputs."""
        state.journal.repeat(state, self.start, self.end, self.location, ctx.location)
        for label, count in self.unknown.items():
            state.unknown_operators[label] += count
        return self.given.renamed({name: state.fresh() for name in self.made}).hand_to(ctx)


class CallMemo:
    """The calls that were walked with some facts and may be repeated. Graphs that share facts share their memo.

    What a call may depend on. Its key: the function, its attributes, whether findings are reported, and what is known
    of each input; of the elements of a constant only where the body looks at them, so that layers that differ in
    their weights are alike. And what is known of the symbols: the rules of `VisitMemo` hold for everything in the body.

    What a repeated call does again, at its own location: findings, splits that are reported, requirements of bodies
    that may not run, operators that nobody knows. Symbols that the call made and gives are made anew.

    What makes a call unrepeatable. A fact that was learnt. Symbols that were made, where something is reported too,
    which may speak of them. What the journal counts as unrepeatable: a symbol for a broadcast, a name that was adopted
    from a declaration, recursion, and a call that is not followed.

    When a call is forgotten. As a node: one that had an open question holds while nothing more is learnt, others to
    the end. Facts of a body that has learnt nothing of its own are those around it, and so is the memo.
    """

    def __init__(self, facts: Facts, around: CallMemo | None = None) -> None:
        self.facts = facts
        self.around = around
        self._visits: dict[CallKey, CallVisit] = {}
        # By key, the inputs whose elements a body looked at: what is known of them tells calls apart, too.
        self._read: dict[CallKey, frozenset[int]] = {}

    def find(self, key: CallKey, ctx: WalkedNode) -> CallVisit | None:
        """The call that this one repeats; None when it is to be walked."""
        version = self.facts.version
        memo: CallMemo | None = self
        while memo is not None:
            read = memo._read.get(key)
            if read is not None:
                visit = memo._visits.get(_with_elements(key, ctx, read))
                # Equal versions: nothing was learnt since, here or in a body between that memo and this one.
                if visit is not None and (visit.settled or visit.version == version):
                    return visit
            memo = memo.around
        return None

    def keep(self, key: CallKey, ctx: WalkedNode, read: frozenset[int], visit: CallVisit) -> None:
        """Remember a call. read: the inputs whose elements it looked at."""
        if not VisitMemo.remembers:
            return
        memo = self
        while memo.around is not None and memo.around.facts.version == visit.version:
            memo = memo.around
        read |= memo._read.get(key, frozenset())
        memo._read[key] = read
        memo._visits[_with_elements(key, ctx, read)] = visit


def _with_elements(key: CallKey, ctx: WalkedNode, read: frozenset[int]) -> CallKey:
    return (*key, *(_elements(ctx, position) for position in sorted(read)))


def _elements(ctx: WalkedNode, position: int) -> Hashable:
    ctx.contents(position)
    return ctx.given[position]
