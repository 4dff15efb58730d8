"""Intervals of polynomials, term by term, and bounds of single symbols.

An interval of a polynomial is the sum of the intervals of its terms. This answers most questions quickly. Cancelling
terms and facts need `linear_systems`.

A symbol has declared bounds, and bounds from each fact by itself. These are found in two rounds, so that the order of
the facts does not matter. In the first round, the other symbols of a fact have their declared bounds; in the second
(`Facts.bound`), they have the bounds of the first. `linear_systems` finds what takes more rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

from splitgraph.dim.atoms import (
    FLOOR,
    LARGE,
    MAX,
    MOD,
    NESTED_MAX,
    PRODUCT,
    SUM,
    SYMBOL,
    Atom,
    Interval,
    Monomial,
    Polynomial,
    Terms,
    Value,
    add_into,
    atoms_by_level,
    coefficients_of,
)

IntervalOf = Callable[[Atom], Interval]
Coefficients = Mapping[Monomial, int]  # of a polynomial; the constant is that of the monomial ()

# Bounds of large atoms are no further from 0.
_LARGEST_BOUND = 2**128


def symbolic_interval(atom: Atom) -> Interval:
    """Return the interval of an atom if all that is known of the symbols is that they are >= 0."""
    return atom.interval


def atom_interval(kind: int, ranges: Sequence[Interval]) -> Interval:
    """Return the interval of an atom that is not a symbol. ranges: the intervals of its arguments."""
    if kind in (MAX, NESTED_MAX):
        lows = [low for low, _ in ranges if low is not None]
        highs = [high for _, high in ranges if high is not None]
        return max(lows, default=None), max(highs) if len(highs) == len(ranges) else None
    if kind == MOD:
        least, most = ranges[1]
        if least is None or least < 0:
            return None, None
        return 0, None if most is None else max(most - 1, 0)
    if kind == SUM:
        return _rounded_outward(reduce(_interval_of_sum, ranges))
    if kind == PRODUCT:
        return _rounded_outward(reduce(_interval_of_product, ranges))
    return _interval_of_quotient(ranges[0], ranges[1])


def interval(value: Value, interval_of: IntervalOf = symbolic_interval) -> Interval:
    """Return a sound interval of the value, from the intervals of its terms. None: unbounded."""
    if isinstance(value, int):
        return value, value
    low = termwise_bound(coefficients_of(value), interval_of)
    negated = termwise_bound(coefficients_of(value, -1), interval_of)
    return low, None if negated is None else -negated


def both(one: Interval, other: Interval) -> Interval:
    """Return where two intervals overlap."""
    low = one[0] if other[0] is None else other[0] if one[0] is None else max(one[0], other[0])
    high = one[1] if other[1] is None else other[1] if one[1] is None else min(one[1], other[1])
    return low, high


def termwise_bound(coefficients: Coefficients, interval_of: IntervalOf) -> int | None:
    """Return a lower bound of the sum, from the lower bounds of its terms; None if a term has none."""
    total = 0
    for monomial, coefficient in coefficients.items():
        if not coefficient:
            continue
        low, high = monomial_interval(monomial, interval_of)
        end = low if coefficient > 0 else high
        if end is None:
            return None
        total += coefficient * end
    return total


def monomial_interval(monomial: Monomial, interval_of: IntervalOf) -> Interval:
    """Return the interval of a product of atoms."""
    if len(monomial) == 1:
        return interval_of(monomial[0])
    product: Interval = (1, 1)
    for atom in monomial:
        product = _interval_of_product(product, interval_of(atom))
    return product


def _interval_of_product(one: Interval, other: Interval) -> Interval:
    (a, b), (c, d) = one, other
    if a is not None and c is not None and a >= 0 and c >= 0:
        high = 0 if b == 0 or d == 0 else None if b is None or d is None else b * d
        return a * c, high
    if a is None or b is None or c is None or d is None:
        return None, None
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _interval_of_sum(one: Interval, other: Interval) -> Interval:
    (a, b), (c, d) = one, other
    return None if a is None or c is None else a + c, None if b is None or d is None else b + d


def _rounded_outward(bounds: Interval) -> Interval:
    """Return the interval with its ends limited to _LARGEST_BOUND: numbers squared again and again fill any memory."""
    low, high = bounds
    low = None if low is None or low < -_LARGEST_BOUND else min(low, _LARGEST_BOUND)
    return low, None if high is None or high > _LARGEST_BOUND else max(high, -_LARGEST_BOUND)


def _interval_of_quotient(numerator: Interval, denominator: Interval) -> Interval:
    """For a denominator that is never negative; 0 is left out, because a quotient by 0 has no value."""
    low, high = numerator
    least, most = denominator
    if least is None or least < 0:
        return None, None
    least = max(least, 1)
    most = None if most is None else max(most, 1)
    bottom = None if low is None else low // least if low < 0 else 0 if most is None else low // most
    top = None if high is None else high // least if high >= 0 else -1 if most is None else high // most
    return bottom, top


# Symbols -------------------------------------------------------------------------------------------------------------


Bound = tuple[int, "int | None"]
_UNKNOWN: Bound = (0, None)
# In a fact with more maxima than this, the arguments of maxima are not tried.
_MOST_MAXIMA = 3


class SymbolBounds:
    """(minimum, maximum or None) by symbol, each at least 0; in an inner scope with those of the scopes around."""

    def __init__(self, declared: Mapping[str, Bound], outer: SymbolBounds | None) -> None:
        self._outer = outer
        self._declared = dict(declared)
        self._by_facts: dict[str, Bound] = {}

    def names(self) -> set[str]:
        """Return the symbols with bounds in this scope, without the enclosing scopes."""
        return {*self._declared, *self._by_facts}

    def __contains__(self, name: str) -> bool:
        return name in self._declared or name in self._by_facts

    def bound(self, name: str) -> Bound:
        """Return the bounds of a symbol after the first round."""
        bound = self._declared_of(name)
        for scope in self._scopes():
            bound = narrowed(bound, scope._by_facts.get(name, _UNKNOWN))
        return bound

    def declare(self, name: str, bound: Bound) -> None:
        """Declare bounds of a symbol that no fact contains yet."""
        self._declared[name] = narrowed(self._declared.get(name, _UNKNOWN), bound)

    def note(self, polynomial: Polynomial) -> None:
        """Assume that the polynomial is at least 0."""
        intervals: dict[Atom, Interval] = {}
        for name, given in bounds_given(polynomial, lambda atom: interval_under(atom, self._declared_of, intervals)):
            self._by_facts[name] = narrowed(self._by_facts.get(name, _UNKNOWN), given)

    def _declared_of(self, name: str) -> Bound:
        bound = _UNKNOWN
        for scope in self._scopes():
            bound = narrowed(bound, scope._declared.get(name, _UNKNOWN))
        return bound

    def _scopes(self) -> Iterator[SymbolBounds]:
        scope: SymbolBounds | None = self
        while scope is not None:
            yield scope
            scope = scope._outer


def bounds_given(polynomial: Polynomial, interval_of: IntervalOf) -> Iterator[tuple[str, Bound]]:
    """Yield the bounds that `polynomial >= 0` gives to each symbol, under the bounds of the other symbols."""
    for terms, const in _without_maxima(polynomial.terms, polynomial.const, interval_of):
        yield from _bounds_of_terms(terms, const, interval_of)


def _without_maxima(terms: Terms, const: int, interval_of: IntervalOf) -> list[tuple[Terms, int]]:
    """Return sums without maxima that are all >= 0 where this sum is. Each argument takes the place of its maximum, so
    the sums do not depend on how the maximum is spelled.
    """
    maxima = [(m[0], c) for m, c in terms if len(m) == 1 and m[0].kind == MAX]
    if not 0 < len(maxima) <= _MOST_MAXIMA:
        return [(terms, const)]
    atom, coefficient = maxima[0]
    sums = []
    for arg in atom.args:
        # A maximum that is added is at most this argument plus the most by which another argument exceeds it.
        above = [interval(other - arg, interval_of)[1] for other in atom.args] if coefficient > 0 else [0]
        highs = [high for high in above if high is not None]
        if len(highs) == len(above):
            left = {m: c for m, c in terms if m != (atom,)}
            more = add_into(left, arg, coefficient) + coefficient * max(highs)
            sums += _without_maxima(tuple([(m, c) for m, c in left.items() if c]), const + more, interval_of)
    return sums


def _bounds_of_terms(terms: Terms, const: int, interval_of: IntervalOf) -> Iterator[tuple[str, Bound]]:
    most: list[int | None] = []
    for monomial, coefficient in terms:
        low, high = monomial_interval(monomial, interval_of)
        end = high if coefficient > 0 else low
        most.append(None if end is None else coefficient * end)
    unbounded = most.count(None)
    if unbounded > 1:
        return
    total = const + sum(high for high in most if high is not None)
    for (monomial, coefficient), own in zip(terms, most, strict=True):
        if len(monomial) != 1 or (unbounded and own is not None):
            continue
        atom, rest = monomial[0], total if own is None else total - own
        bound = (-(rest // coefficient), None) if coefficient > 0 else (0, rest // -coefficient)
        if atom.kind == SYMBOL:
            yield atom.name, bound
        elif atom.kind == FLOOR:
            yield from _bounds_of_quotient(atom, bound, interval_of)


def _bounds_of_quotient(atom: Atom, bound: Bound, interval_of: IntervalOf) -> Iterator[tuple[str, Bound]]:
    """Yield the bounds that a bound of `numerator//divisor` gives to the symbols of the numerator."""
    numerator, divisor = atom.args
    if isinstance(numerator, int) or not isinstance(divisor, int):
        return
    low, high = bound
    if high is None:
        yield from bounds_given(numerator - divisor * low, interval_of)
    else:
        yield from bounds_given(divisor * high + divisor - 1 - numerator, interval_of)


def narrowed(one: Bound, other: Bound) -> Bound:
    """Return the bounds where both hold."""
    return max(one[0], other[0]), both(one, other)[1]


def interval_under(atom: Atom, bound_of: Callable[[str], Interval], known: dict[Atom, Interval]) -> Interval:
    """Return the interval of an atom under the given bounds of symbols. known: the intervals of other atoms; new ones
    are added.
    """
    if atom not in known:
        for part in [*atoms_by_level(atom.args), atom]:
            if part.kind == SYMBOL:
                known[part] = bound_of(part.name)
            elif part.kind in LARGE:
                known[part] = part.interval
            elif part not in known:
                known[part] = atom_interval(part.kind, [interval(arg, known.__getitem__) for arg in part.args])
    return known[atom]
