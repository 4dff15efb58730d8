"""Carrying obligations over to the bounds of the symbols in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms
from splitgraph.dim.atoms import FLOOR, MOD, SYMBOL, Atom, Interval
from splitgraph.dim.bounds import IntervalOf, interval
from splitgraph.dim.congruence import Congruence

# Inequalities looked at for one new obligation: two that push each other on for ever must end somewhere.
_STEPS = 64


class Contradiction(Exception):
    """A symbol that no value is left for."""


class KnownBounds(Protocol):
    """The bounds that are carried to, and what else is known of the symbols."""

    def bound(self, name: str) -> tuple[int, int | None]: ...
    def tighten(self, name: str, low: int, high: int | None) -> None: ...
    def interval_of(self, atom: Atom) -> Interval: ...
    def congruences_of(self, name: str) -> Sequence[Congruence]: ...
    def inequalities_of(self, name: str) -> Iterable[Dim]: ...


def propagate(inequalities: Iterable[Dim], known: KnownBounds) -> None:
    """Tighten the bounds of symbols by polynomials that must be >= 0, and by what that means for other inequalities.

    Raises Contradiction when the bounds of a symbol leave no value.
    """
    waiting = deque(inequalities)
    for _ in range(_STEPS):
        if not waiting:
            return
        polynomial = waiting.popleft()
        for name in _carry(polynomial, known, waiting.append):
            waiting.extend(known.inequalities_of(name))


def round_to_congruences(name: str, known: KnownBounds) -> bool:
    """Move the bounds of a symbol to the nearest values that its remainders allow; True when they moved."""
    low, high = known.bound(name)
    before = (low, high)
    for congruence in known.congruences_of(name):
        if len(congruence.terms) != 1 or len(congruence.terms[0][0]) != 1:
            continue
        low += (congruence.remainder - low) % congruence.modulus
        if high is not None:
            high -= (high - congruence.remainder) % congruence.modulus
    if high is not None and low > high:
        raise Contradiction(name)
    if (low, high) == before:
        return False
    known.tighten(name, low, high)
    return True


def _carry(polynomial: Dim, known: KnownBounds, more: Callable[[Dim], None]) -> list[str]:
    """The symbols whose bounds `polynomial >= 0` tightened; `more` takes what it means for the arguments of atoms."""
    moved = []
    for monomial, coefficient in polynomial.terms:
        if len(monomial) != 1:
            continue
        rest = polynomial - from_terms({monomial: coefficient}, 0)
        most = interval(rest, known.interval_of)[1]
        if most is None:
            continue
        limit = -(most // coefficient) if coefficient > 0 else most // -coefficient
        if monomial[0].kind == SYMBOL:
            if _tighten(monomial[0].name, limit, coefficient > 0, known):
                moved.append(monomial[0].name)
        else:
            for meant in _meant(monomial[0], limit, coefficient > 0, known.interval_of):
                more(meant)
    return moved


def _tighten(name: str, limit: int, is_low: bool, known: KnownBounds) -> bool:
    low, high = known.bound(name)
    least = limit if high is None else min(high, limit)
    tighter = (max(low, limit), high) if is_low else (low, least)
    if tighter == (low, high):
        return False
    if tighter[1] is not None and tighter[0] > tighter[1]:
        raise Contradiction(name)
    known.tighten(name, *tighter)
    round_to_congruences(name, known)
    return True


def _meant(atom: Atom, limit: int, is_low: bool, interval_of: IntervalOf) -> list[Dim]:
    """Inequalities for the arguments of an atom that is >= limit (is_low), or <= limit."""
    if atom.kind == FLOOR:
        numerator, divisor = atom.args
        if not isinstance(divisor, int):
            return []
        return _dims([numerator - divisor * limit if is_low else divisor * limit + divisor - 1 - numerator])
    if atom.kind == MOD:
        return []
    if not is_low:
        return _dims([limit - arg for arg in atom.args])
    able = [arg for arg in atom.args if _may_reach(arg, limit, interval_of)]
    return _dims([able[0] - limit]) if len(able) == 1 else []


def _may_reach(arg: DimLike, limit: int, interval_of: IntervalOf) -> bool:
    high = interval(arg, interval_of)[1]
    return high is None or high >= limit


def _dims(values: list[DimLike]) -> list[Dim]:
    return [value for value in values if isinstance(value, Dim)]
