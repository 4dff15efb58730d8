"""Carrying obligations over to the bounds of the symbols in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms
from splitgraph.dim.atoms import FLOOR, MAX, NESTED_MAX, SYMBOL, Atom, Interval
from splitgraph.dim.bounds import highest, highest_of_term
from splitgraph.dim.congruence import Congruence

# Inequalities looked at for one new obligation: two that push each other on for ever must end somewhere.
_STEPS = 64

# Of a polynomial of more terms, what each term must be is found term by term and not by a search: it takes linear time.
_SEARCHED_TERMS = 16


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
    waiting = dict.fromkeys(inequalities)  # in order, each once
    for left in reversed(range(_STEPS)):
        if not waiting:
            return
        polynomial = next(iter(waiting))
        del waiting[polynomial]
        for name in _carry(polynomial, known, waiting.setdefault):
            for other in known.inequalities_of(name):
                if len(waiting) >= left:
                    break
                waiting.setdefault(other)


def round_to_congruences(name: str, known: KnownBounds) -> bool:
    """Move the bounds of a symbol to the nearest values that its remainders allow; True when they moved."""
    low, high = known.bound(name)
    before = (low, high)
    for congruence in known.congruences_of(name):
        if len(congruence.terms) != 1 or len(congruence.terms[0][0]) != 1:
            continue
        if congruence.terms[0][0][0].kind != SYMBOL:
            # A remainder of max(N, 2) says nothing of N by itself.
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


def _carry(polynomial: Dim, known: KnownBounds, more: Callable[[Dim], object]) -> list[str]:
    """The symbols whose bounds `polynomial >= 0` tightened; `more` takes what it means for the arguments of atoms."""
    moved = []
    rests = _highest_rests(polynomial, known) if _is_termwise(polynomial) else None
    for place, (monomial, coefficient) in enumerate(polynomial.terms):
        if len(monomial) != 1:
            continue
        if monomial[0].kind in (MAX, NESTED_MAX):
            if rests is None:
                _carry_to_arguments(polynomial, monomial[0], coefficient, known, more)
            continue
        if rests is None:
            most = highest(polynomial - from_terms({monomial: coefficient}, 0), known.interval_of)
        else:
            most = rests[place]
        if most is None:
            continue
        limit = -(most // coefficient) if coefficient > 0 else most // -coefficient
        if monomial[0].kind == SYMBOL:
            if _tighten(monomial[0].name, limit, coefficient > 0, known):
                moved.append(monomial[0].name)
        elif monomial[0].kind == FLOOR:
            _carry_to_numerator(monomial[0], limit, coefficient > 0, more)
    return moved


def _is_termwise(polynomial: Dim) -> bool:
    return len(polynomial.terms) > _SEARCHED_TERMS or all(
        atom.kind == SYMBOL for monomial, _ in polynomial.terms for atom in monomial
    )


def _highest_rests(polynomial: Dim, known: KnownBounds) -> list[int | None]:
    """For each term the most that the others can be together, None: unbounded."""
    terms = [highest_of_term(monomial, c, known.interval_of) for monomial, c in polynomial.terms]
    unbounded = terms.count(None)
    total = polynomial.const + sum(high for high in terms if high is not None)
    if unbounded:
        return [total if high is None and unbounded == 1 else None for high in terms]
    return [None if high is None else total - high for high in terms]


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


def _carry_to_numerator(atom: Atom, limit: int, is_low: bool, more: Callable[[Dim], object]) -> None:
    """What it means for E that `E//k` is >= limit (is_low), or <= limit."""
    numerator, divisor = atom.args
    if isinstance(divisor, int):
        meant = numerator - divisor * limit if is_low else divisor * limit + divisor - 1 - numerator
        if isinstance(meant, Dim):
            more(meant)


def _carry_to_arguments(
    polynomial: Dim, atom: Atom, coefficient: int, known: KnownBounds, more: Callable[[Dim], object]
) -> None:
    """What `R + c*max(a, b) >= 0` means: `R + c*a` and `R + c*b` are >= 0 for c < 0, else the only one that can be."""
    rest = polynomial - from_terms({(atom,): coefficient}, 0)
    cases = [rest + coefficient * arg for arg in atom.args]
    if coefficient > 0:
        cases = [case for case in cases if _may_be_positive(case, known)]
    if coefficient < 0 or len(cases) == 1:
        for case in cases:
            if isinstance(case, Dim):
                more(case)


def _may_be_positive(dim: DimLike, known: KnownBounds) -> bool:
    high = highest(dim, known.interval_of, goal=-1)
    return high is None or high >= 0
