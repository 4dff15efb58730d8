"""Repeating the effects of an earlier, equal call, as the journal recorded them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from splitgraph.canonical import CanonicalSplit
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Dim, DimLike, Facts, Obligation, substitute, symbols_of
from splitgraph.inference.graph_walk import symbols_of_type
from splitgraph.inference.knowledge import with_dims
from splitgraph.inference.record import Avoidable, Entry, Finding, Requirement
from splitgraph.inference.walk_results import FoundSplit, SplitDetail
from splitgraph.inference.walk_state import WalkState
from splitgraph.value_type import ValueType

_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Move:
    """From an earlier call to the call that repeats it.

    old, new: their locations. names: the new symbols for those that the earlier call generated.
    """

    old: str
    new: str
    names: Mapping[str, DimLike]

    def location(self, location: str) -> str:
        return self.new + location[len(self.old) :]

    def branch(self, branch: str) -> str:
        """The location of a body; one around the earlier call stays."""
        return self.location(branch) if branch.startswith(f"{self.old}/") else branch

    def finding(self, found: Diagnostic) -> Diagnostic:
        message = found.message
        if self.names:
            message = _WORD.sub(lambda word: str(self.names.get(word[0], word[0])), message)
        return replace(found, location=self.location(found.location), message=message)

    def requirement(self, found: Requirement) -> Requirement:
        moved = found._replace(location=self.location(found.location), branch=self.branch(found.branch))
        return moved._replace(obligation=self._obligation(found.obligation)) if self.names else moved

    def split(self, found: FoundSplit) -> FoundSplit:
        moved = found._replace(location=self.location(found.location), branch=self.branch(found.branch))
        if self.names.keys().isdisjoint(_symbols_of_split(found)):
            return moved
        return moved._replace(
            detail=self._detail(found.detail),
            outputs=[self._type(value) for value in found.outputs],
            obligations=tuple(map(self._obligation, found.obligations)),
        )

    def _detail(self, detail: SplitDetail) -> SplitDetail:
        split = detail.split
        if split is not None:
            lengths = None if split.lengths is None else tuple(map(self._dim, split.lengths))
            total, count, size = (
                None if dim is None else self._dim(dim) for dim in (split.total, split.count, split.size)
            )
            split = replace(split, lengths=lengths, total=total, count=count, size=size)
        written = detail.written
        if written is not None:
            lengths_written = tuple(None if length is None else self._dim(length) for length in written.lengths)
            written = written._replace(lengths=lengths_written)
        return replace(detail, split=split, data=self._type(detail.data), written=written)

    def _obligation(self, held: Obligation) -> Obligation:
        return Obligation(self._dim(held.lhs), held.relation, self._dim(held.rhs), held.text)

    def _type(self, value: ValueType) -> ValueType:
        return with_dims(value, self._dim)

    def _dim(self, dim: DimLike) -> DimLike:
        return substitute(dim, self.names) if isinstance(dim, Dim) else dim


def symbols_to_rename(
    state: WalkState, start: int, given: Collection[str], made_before: int, facts: Facts
) -> list[str] | None:
    """The symbols that a call generated and that are in its outputs or in its entries of the journal, in the order in
    which they were made. None if an entry of a body has one: the facts of the body know the symbol by its own name.

    given: the symbols of the outputs. start: the first entry. made_before: how many symbols there were before the call.
    facts: of the graph around the call.
    """

    def made(names: Collection[str]) -> set[str]:
        return {name for name in names if state.symbols.ordinals.get(name, -1) >= made_before}

    found = made(given)
    for entry in state.record.journal.entries[start:]:
        if isinstance(entry, (Finding, Avoidable)):
            found |= made(_WORD.findall(entry.found.message))
            continue
        if isinstance(entry, Requirement):
            here = made(symbols_of(entry.obligation.lhs) | symbols_of(entry.obligation.rhs))
        else:
            here = made(_symbols_of_split(entry))
        if here and entry.facts is not facts:
            return None
        found |= here
    return sorted(found, key=state.symbols.ordinals.__getitem__)


def _symbols_of_split(found: FoundSplit) -> frozenset[str]:
    split: CanonicalSplit | None = found.detail.split
    dims: list[DimLike | None] = [*found.detail.shown.lengths]
    dims += [] if split is None else [split.total, split.count, split.size]
    dims += [side for held in found.obligations for side in (held.lhs, held.rhs)]
    names = frozenset[str]().union(*(symbols_of(dim) for dim in dims if isinstance(dim, Dim)))
    return names.union(*(_symbols_of_value(value) for value in (found.detail.data, *found.outputs)))


def _symbols_of_value(value: ValueType) -> frozenset[str]:
    inner = frozenset[str]() if value.element is None else _symbols_of_value(value.element)
    return symbols_of_type(value) | inner


def replay(state: WalkState, start: int, end: int, move: Move) -> None:
    """Repeat the journal's entries from start to end for another call."""
    journal = state.record.journal
    for position in range(start, end):
        journal.repeated += 1
        if journal.repeated > state.task.most_repeated:
            _warn(state, move.new)
            return
        _again(state, journal.entries[position], move)


def _warn(state: WalkState, location: str) -> None:
    if state.record.journal.is_cut:
        return
    state.record.journal.is_cut = True
    help = "The others are the same as in the earlier calls of these functions."
    text = f"only {state.task.most_repeated:,} splits and findings of repeated function calls are listed"
    state.record.diagnostics.append(diagnostic("SG303", text, location, severity="warning", help=help))


def _again(state: WalkState, entry: Entry, move: Move) -> None:
    if isinstance(entry, Avoidable):
        state.record.avoid([move.finding(entry.found)])
    elif isinstance(entry, Finding):
        with state.record.muting(entry.never_runs):
            state.record.report(
                move.finding(entry.found), of_symbols=entry.of_symbols, is_misdeclared=entry.is_misdeclared
            )
    elif isinstance(entry, Requirement):
        state.record.note_requirement(move.requirement(entry))
    else:
        state.record.keep_report(move.split(entry))
