"""Intervals of polynomials, term by term, from the intervals of their atoms. They answer most questions quickly.

Cancelling terms and facts need `linear_systems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from splitgraph.dim.atoms import (
    MAX,
    MOD,
    NESTED_MAX,
    PRODUCT,
    SUM,
    Atom,
    Interval,
    Monomial,
    Value,
    coefficients_of,
)

IntervalOf = Callable[[Atom], Interval]
Coefficients = Mapping[Monomial, int]  # of a polynomial; the constant is that of the monomial ()

# Bounds of large atoms are no further from 0.
_LARGEST_BOUND = 2**128


def symbolic_interval(atom: Atom) -> Interval:
    """The interval of an atom when nothing is known but that symbols are >= 0."""
    return atom.interval


def atom_interval(kind: int, ranges: Sequence[Interval]) -> Interval:
    """The interval of an atom that is not a symbol, from those of its arguments."""
    if kind in (MAX, NESTED_MAX):
        return _interval_of_max(ranges)
    if kind == MOD:
        return _interval_of_remainder(ranges[1])
    if kind == SUM:
        return _rounded_outward(reduce(_interval_of_sum, ranges))
    if kind == PRODUCT:
        return _rounded_outward(reduce(_interval_of_product, ranges))
    return _interval_of_quotient(ranges[0], ranges[1])


def interval(value: Value, interval_of: IntervalOf = symbolic_interval) -> Interval:
    """A sound interval (None: unbounded) of the value, from those of its terms."""
    if isinstance(value, int):
        return value, value
    low = termwise_bound(coefficients_of(value), interval_of)
    negated = termwise_bound(coefficients_of(value, -1), interval_of)
    return low, None if negated is None else -negated


def both(one: Interval, other: Interval) -> Interval:
    """Where two intervals overlap."""
    low = one[0] if other[0] is None else other[0] if one[0] is None else max(one[0], other[0])
    high = one[1] if other[1] is None else other[1] if one[1] is None else min(one[1], other[1])
    return low, high


def termwise_bound(coefficients: Coefficients, interval_of: IntervalOf) -> int | None:
    """A lower bound of the sum from those of its terms, None when one has none."""
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


def highest_of_term(monomial: Monomial, coefficient: int, interval_of: IntervalOf) -> int | None:
    """The most that `coefficient` times the monomial can be, None: unbounded."""
    low, high = monomial_interval(monomial, interval_of)
    end = high if coefficient > 0 else low
    return None if end is None else coefficient * end


def monomial_interval(monomial: Monomial, interval_of: IntervalOf) -> Interval:
    """The interval of a product of atoms."""
    if len(monomial) == 1:
        return interval_of(monomial[0])
    product: Interval = (1, 1)
    for atom in monomial:
        product = _interval_of_product(product, interval_of(atom))
    return product


def _interval_of_max(ranges: Sequence[Interval]) -> Interval:
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    return max(lows, default=None), max(highs) if len(highs) == len(ranges) else None


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
    """The interval with no number that is larger than any use of it: squared again and again they fill any memory."""
    low, high = bounds
    low = None if low is None or low < -_LARGEST_BOUND else min(low, _LARGEST_BOUND)
    return low, None if high is None or high > _LARGEST_BOUND else max(high, -_LARGEST_BOUND)


def _interval_of_remainder(denominator: Interval) -> Interval:
    least, most = denominator
    if least is None or least < 0:
        return None, None
    return 0, None if most is None else max(most - 1, 0)


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
