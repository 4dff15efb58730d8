"""Bounds of single symbols: declared bounds, and bounds from each fact by itself.

They are found in two rounds, so that the order of the facts does not matter. In the first round the other symbols of a
fact have the bounds that are declared; in the second (`Facts.bound`) they have those of the first. `linear_systems`
finds what takes more rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from splitgraph.dim.arithmetic import Dim
from splitgraph.dim.atoms import LARGE, MAX, SYMBOL, Atom, Interval, Terms, add_into, atoms_by_level
from splitgraph.dim.bounds import IntervalOf, atom_interval, both, highest_of_term, interval

Bound = tuple[int, "int | None"]
_UNKNOWN: Bound = (0, None)
# Maxima of one fact of which each argument is looked at.
_MOST_MAXIMA = 3


class SymbolBounds:
    """(minimum, maximum or None) by symbol, each at least 0; in an inner scope with those of the scopes around."""

    def __init__(self, declared: Mapping[str, Bound], outer: SymbolBounds | None) -> None:
        self._outer = outer
        self._declared = dict(declared)
        self._by_facts: dict[str, Bound] = {}

    def names(self) -> set[str]:
        """The symbols with bounds in this scope, without the enclosing scopes."""
        return {*self._declared, *self._by_facts}

    def __contains__(self, name: str) -> bool:
        return name in self._declared or name in self._by_facts

    def bound(self, name: str) -> Bound:
        """The bounds of a symbol after the first round."""
        found = _UNKNOWN
        for scope in self._scopes():
            found = narrowed(found, scope._declared.get(name, _UNKNOWN))
            found = narrowed(found, scope._by_facts.get(name, _UNKNOWN))
        return found

    def declare(self, name: str, bound: Bound) -> None:
        """Declare bounds of a symbol that no fact contains yet."""
        self._declared[name] = narrowed(self._declared.get(name, _UNKNOWN), bound)

    def note(self, polynomial: Dim) -> None:
        """Assume that the polynomial is at least 0."""
        intervals: dict[Atom, Interval] = {}
        for name, given in bounds_given(polynomial, lambda atom: interval_under(atom, self._declared_of, intervals)):
            self._by_facts[name] = narrowed(self._by_facts.get(name, _UNKNOWN), given)

    def _declared_of(self, name: str) -> Bound:
        found = _UNKNOWN
        for scope in self._scopes():
            found = narrowed(found, scope._declared.get(name, _UNKNOWN))
        return found

    def _scopes(self) -> Iterator[SymbolBounds]:
        scope: SymbolBounds | None = self
        while scope is not None:
            yield scope
            scope = scope._outer


def bounds_given(polynomial: Dim, interval_of: IntervalOf) -> Iterator[tuple[str, Bound]]:
    """The bounds that `polynomial >= 0` gives to each symbol, under the bounds of the other symbols."""
    for terms, const in _without_maxima(polynomial.terms, polynomial.const, interval_of):
        yield from _bounds_of_terms(terms, const, interval_of)


def _without_maxima(terms: Terms, const: int, interval_of: IntervalOf) -> list[tuple[Terms, int]]:
    """Sums that are all >= 0 where this one is, with each argument in place of a maximum: the same sums, whichever
    spelling the maximum has.
    """
    maxima = [(m[0], c) for m, c in terms if len(m) == 1 and m[0].kind == MAX]
    if not 0 < len(maxima) <= _MOST_MAXIMA:
        return [(terms, const)]
    atom, coefficient = maxima[0]
    found = []
    for arg in atom.args:
        # Added, the maximum is no more than this argument and what another one is at most above it.
        above = [interval(other - arg, interval_of)[1] for other in atom.args] if coefficient > 0 else [0]
        highs = [high for high in above if high is not None]
        if len(highs) == len(above):
            left = {m: c for m, c in terms if m != (atom,)}
            more = add_into(left, arg, coefficient) + coefficient * max(highs)
            found += _without_maxima(tuple([(m, c) for m, c in left.items() if c]), const + more, interval_of)
    return found


def _bounds_of_terms(terms: Terms, const: int, interval_of: IntervalOf) -> Iterator[tuple[str, Bound]]:
    most = [highest_of_term(monomial, c, interval_of) for monomial, c in terms]
    unbounded = most.count(None)
    if unbounded > 1:
        return
    total = const + sum(high for high in most if high is not None)
    for (monomial, coefficient), own in zip(terms, most, strict=True):
        if len(monomial) != 1 or monomial[0].kind != SYMBOL or (unbounded and own is not None):
            continue
        rest = total if own is None else total - own
        yield monomial[0].name, (-(rest // coefficient), None) if coefficient > 0 else (0, rest // -coefficient)


def narrowed(one: Bound, other: Bound) -> Bound:
    """The bounds where both hold."""
    return max(one[0], other[0]), both(one, other)[1]


def interval_under(atom: Atom, bound_of: Callable[[str], Interval], known: dict[Atom, Interval]) -> Interval:
    """The interval of an atom where symbols have the given bounds. known: of other atoms; takes what is found."""
    if atom not in known:
        for part in [*atoms_by_level(atom.args), atom]:
            if part.kind == SYMBOL:
                known[part] = bound_of(part.name)
            elif part.kind in LARGE:
                known[part] = part.interval
            elif part not in known:
                known[part] = atom_interval(part.kind, [interval(arg, known.__getitem__) for arg in part.args])
    return known[atom]
