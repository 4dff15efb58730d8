"""Points at which all that is known of symbols holds: what fails at one of them has no proof, and none is sought."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from math import prod
from typing import Protocol
from zlib import crc32

from splitgraph.dim.arithmetic import Dim, DimLike
from splitgraph.dim.atoms import DEEP, SYMBOL, Atom, level_of
from splitgraph.dim.obligation import Obligation
from splitgraph.dim.values import OPERATIONS

# Obligations that are looked at anew whenever more is known; of more, looking would cost what it saves.
_MOST_OBLIGATIONS = 64
# Symbols of a point that are given other values, so that it meets the obligations.
_MOST_MOVES = 4


class Knowledge(Protocol):
    """What points have to agree with."""

    def bound(self, name: str) -> tuple[int, int | None]:
        """(minimum, maximum or None) of a symbol."""

    def solution_of(self, name: str) -> DimLike | None:
        """What an equality says that a symbol is."""


def _scattered(name: str) -> int:
    """A number that is another one for nearly every name, and the same in every run."""
    return 3 + crc32(name.encode("utf-8", "surrogatepass")) % 89


# The value of a symbol, where nothing else determines it: all alike, each its own, each one of two; the last ones in
# both orders.
_CHOICES: tuple[Callable[[str], int], ...] = (
    lambda name: 1,
    lambda name: 0,
    _scattered,
    lambda name: 100 - _scattered(name),
    lambda name: 1000,
    lambda name: _scattered(name) % 2,
    lambda name: 1 - _scattered(name) % 2,
)


class _Nowhere(Exception):
    """A value does not exist at a point: a quotient by 0, or a symbol that would be out of its bounds."""


class _Point:
    """Values of symbols, and of the atoms made of them, each worked out when it is asked for."""

    def __init__(self, knowledge: Knowledge, choice: Callable[[str], int], given: Mapping[str, int] = {}) -> None:
        self._knowledge = knowledge
        self._choice = choice
        self._given = given
        # None while it is being worked out.
        self._values: dict[Atom, int | None] = {}

    def value(self, dim: DimLike) -> int:
        """The number that a dim is here. Raises _Nowhere."""
        if isinstance(dim, int):
            return dim
        total, values = dim.const, self._values
        for monomial, coefficient in dim.terms:
            for atom in monomial:
                value = values.get(atom)
                coefficient *= self._worked_out(atom) if value is None else value
            total += coefficient
        return total

    def _worked_out(self, atom: Atom) -> int:
        if atom in self._values:
            raise _Nowhere
        self._values[atom] = None
        value = self._symbol(atom.name) if atom.kind == SYMBOL else self._operation(atom)
        self._values[atom] = value
        return value

    def _operation(self, atom: Atom) -> int:
        try:
            return OPERATIONS[atom.kind]([self.value(arg) for arg in atom.args])
        except ZeroDivisionError:
            raise _Nowhere from None

    def _symbol(self, name: str) -> int:
        low, high = self._knowledge.bound(name)
        solution = self._knowledge.solution_of(name)
        if solution is None and name not in self._given:
            value = max(low, self._choice(name))
            return value if high is None else min(value, high)
        value = self._given[name] if solution is None else self.value(solution)
        if value < low or (high is not None and value > high):
            raise _Nowhere
        return value

    def where_zero(self, dim: Dim) -> _Point | None:
        """A point near this one at which a dim is 0, by the value of one symbol; None where that does not help."""
        if level_of(dim):
            return None
        for atom in dict.fromkeys(atom for monomial, _ in dim.terms for atom in monomial):
            if atom.name in self._given or self._knowledge.solution_of(atom.name) is not None:
                continue
            with_it = [(monomial, c) for monomial, c in dim.terms if atom in monomial]
            if any(monomial.count(atom) > 1 for monomial, _ in with_it):
                continue
            # The dim is slope * atom + rest.
            slope = sum(c * prod(self.value_of(other) for other in m if other is not atom) for m, c in with_it)
            rest = self.value(dim) - slope * self.value_of(atom)
            if slope and rest % slope == 0 and -rest // slope >= 0:
                return _Point(self._knowledge, self._choice, {**self._given, atom.name: -rest // slope})
        return None

    def value_of(self, atom: Atom) -> int:
        """The number that an atom is here. Raises _Nowhere."""
        value = self._values.get(atom)
        return self._worked_out(atom) if value is None else value


class Counterexamples:
    """A few points that meet every obligation."""

    def __init__(self, knowledge: Knowledge, obligations: Sequence[tuple[Obligation, Dim]]) -> None:
        self._points: list[_Point] = []
        choices = _CHOICES if len(obligations) <= _MOST_OBLIGATIONS else ()
        points = (_meeting(_Point(knowledge, choice), obligations) for choice in choices)
        self._further = (point for point in points if point is not None)

    def values(self, dim: Dim) -> Iterator[int]:
        """Values that the dim can have; none where they are hard to tell."""
        if level_of(dim) > DEEP:
            return
        for index in count():
            if index == len(self._points):
                # Most claims fail at the first: others are made when they are wanted.
                found = next(self._further, None)
                if found is None:
                    return
                self._points.append(found)
            try:
                yield self._points[index].value(dim)
            except _Nowhere:
                continue


def _meeting(point: _Point, required: Sequence[tuple[Obligation, Dim]]) -> _Point | None:
    """The point, or one near it that meets every obligation; None where none is found."""
    found: _Point | None = point
    for _ in range(_MOST_MOVES):
        if found is None:
            break
        try:
            failing = _failing(found, required)
            if failing is None:
                return found
            found = found.where_zero(failing)
        except _Nowhere:
            return None
    return None


def _failing(point: _Point, required: Sequence[tuple[Obligation, Dim]]) -> Dim | None:
    """What an obligation that the point does not meet says of 0."""
    for obligation, difference in required:
        value = point.value(difference)
        if value < 0 or (value > 0 and obligation.relation == "=="):
            return difference
    return None
