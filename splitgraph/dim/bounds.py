"""Sound lower bounds and intervals of polynomials, given the intervals of their atoms and inequalities known to hold.

The bound is searched for in several ways and the best is taken: term by term; with the outermost floor quotient
`E//k` written as the fraction between `(E - k + 1)/k` and `E/k`, or the outermost maximum as each of its arguments,
so that what cancels in the true value cancels in the bound too. What follows from facts is none of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING

from splitgraph.dim.atoms import (
    DEEP,
    FLOOR,
    MAX,
    MOD,
    NAMED,
    NESTED_MAX,
    PRODUCT,
    SUM,
    Atom,
    Interval,
    Monomial,
    add_all,
    coefficients_of,
    lone_atom,
    without,
)

if TYPE_CHECKING:
    from splitgraph.dim.arithmetic import DimLike

IntervalOf = Callable[[Atom], Interval]
Coefficients = Mapping[Monomial, int]  # of a polynomial; the constant is that of the monomial ()

# Rewritings that one search may try; each costs as much as an addition.
_BUDGET = 12
_BUDGET_WHEN_DEEP = 2

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


def interval(value: DimLike, interval_of: IntervalOf = symbolic_interval) -> Interval:
    """A sound interval (None: unbounded) of the value."""
    return lowest(value, interval_of), highest(value, interval_of)


def lowest(value: DimLike, interval_of: IntervalOf = symbolic_interval, goal: int | None = None) -> int | None:
    """An integer that the value never falls below, None when none was found. goal: a bound that is good enough."""
    return value if isinstance(value, int) else lower_bound(coefficients_of(value), interval_of, goal=goal)


def highest(value: DimLike, interval_of: IntervalOf = symbolic_interval, goal: int | None = None) -> int | None:
    """An integer that the value never exceeds, None when none was found. goal: a bound that is good enough."""
    if isinstance(value, int):
        return value
    low = lower_bound(coefficients_of(value, -1), interval_of, goal=None if goal is None else -goal)
    return None if low is None else -low


def lower_bound(
    coefficients: Coefficients,
    interval_of: IntervalOf = symbolic_interval,
    goal: int | None = None,
) -> int | None:
    """An integer that the polynomial never falls below, None when none was found.

    goal: a bound that is good enough; the search stops when it is reached.
    """
    if _is_termwise(coefficients):
        return termwise_bound(coefficients, interval_of)
    # The terms are a multiple of their common factor, which rounds better than the sum.
    const = coefficients.get((), 0)
    factor = gcd(*(c for m, c in coefficients.items() if m)) or 1
    reduced = {m: c // factor for m, c in coefficients.items() if m}
    budget = _BUDGET
    if any(atom.level > DEEP for monomial in reduced for atom in monomial):
        budget = _BUDGET_WHEN_DEEP
    target = None if goal is None else -((const - goal) // factor)
    bound = _Search(interval_of, target, budget).search(reduced, 1)
    return None if bound is None else factor * bound + const


def _is_termwise(coefficients: Coefficients) -> bool:
    """True when nothing can cancel, so that no rewriting is better than term by term."""
    monomials = [monomial for monomial in coefficients if monomial]
    if len(monomials) == 1 and len(monomials[0]) == 1 and monomials[0][0].kind == FLOOR:
        return True
    for monomial in monomials:
        for atom in monomial:
            if atom.kind not in NAMED:
                return False
    return True


class _Search:
    """One search for a lower bound, with a budget of rewritings."""

    def __init__(self, interval_of: IntervalOf, goal: int | None, budget: int) -> None:
        self.interval_of = interval_of
        self.goal = goal
        self.budget = budget

    def search(self, coefficients: Coefficients, scale: int) -> int | None:
        """The best lower bound found of the polynomial divided by `scale`, rounded up: it bounds an integer."""
        direct = termwise_bound(coefficients, self.interval_of)
        best = None if direct is None else -(-direct // scale)
        if self._enough(best):
            return best
        atom = _outermost(coefficients)
        if atom is not None and self.budget > 0:
            self.budget -= 1
            best = _better(best, self._rewritten(coefficients, atom, scale))
        return best

    def _enough(self, bound: int | None) -> bool:
        return bound is not None and self.goal is not None and bound >= self.goal

    def _rewritten(self, coefficients: Coefficients, atom: Atom, scale: int) -> int | None:
        parts = _parts_with(coefficients, atom, self.interval_of)
        if parts is None:
            return None
        if atom.kind in (MAX, NESTED_MAX):
            return self._each_argument(coefficients, atom, parts, scale)
        relaxed = _relax_quotient(coefficients, atom, parts, self.interval_of)
        return None if relaxed is None else self.search(relaxed[0], scale * relaxed[1])

    def _each_argument(
        self, coefficients: Coefficients, atom: Atom, parts: list[tuple[Monomial, int]], scale: int
    ) -> int | None:
        rising = {coefficient > 0 for _, coefficient in parts}
        if len(rising) > 1:
            return None
        # Made when they are wanted: most searches end at the first.
        replaced = (_replaced(coefficients, atom, parts, arg) for arg in atom.args)
        if rising == {False}:
            return self._bound_of_all(replaced, scale)
        best = None
        for one in replaced:
            best = _better(best, self.search(one, scale))
            if self._enough(best):
                return best
        return best

    def _bound_of_all(self, polynomials: Iterable[Coefficients], scale: int) -> int | None:
        """A bound of whichever of the polynomials is the least; nothing is sought further where one has none."""
        least: int | None = None
        for one in polynomials:
            bound = self.search(one, scale)
            if bound is None:
                return None
            least = bound if least is None else min(least, bound)
        return least


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


def _outermost(coefficients: Coefficients) -> Atom | None:
    composite = {atom for m, c in coefficients.items() if c for atom in m if atom.kind not in NAMED | {MOD}}
    return max(composite, key=lambda atom: (atom.level, atom.key), default=None)


def _better(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _relax_quotient(
    coefficients: Coefficients, atom: Atom, parts: list[tuple[Monomial, int]], interval_of: IntervalOf
) -> tuple[dict[Monomial, int], int] | None:
    """(p, scale): the polynomial times the scale, with the quotient replaced by what makes it no larger."""
    numerator, denominator = atom.args
    if not isinstance(denominator, int):
        return _relax_symbolic(coefficients, atom, parts, interval_of)
    result = {m: c * denominator for m, c in coefficients.items() if atom not in m}
    for cofactor, coefficient in parts:
        lowered = numerator - (denominator - 1) if coefficient > 0 else numerator
        add_all(result, lowered, coefficient, cofactor)
    return result, denominator


def _relax_symbolic(
    coefficients: Coefficients, atom: Atom, parts: list[tuple[Monomial, int]], interval_of: IntervalOf
) -> tuple[dict[Monomial, int], int] | None:
    """`B*(E//B) <= E` and `E//B <= E` for E >= 0 and B >= 1 (a quotient by 0 has no value)."""
    numerator, denominator = atom.args
    low = termwise_bound(coefficients_of(numerator), interval_of)
    least = termwise_bound(coefficients_of(denominator), interval_of)
    if low is None or low < 0 or least is None or least < 0 or any(coefficient > 0 for _, coefficient in parts):
        return None
    factor = lone_atom(denominator)
    result = {m: c for m, c in coefficients.items() if atom not in m}
    for cofactor, coefficient in parts:
        rest = without(cofactor, factor) if factor is not None and factor in cofactor else cofactor
        add_all(result, numerator, coefficient, rest)
    return result, 1


def _parts_with(coefficients: Coefficients, atom: Atom, interval_of: IntervalOf) -> list[tuple[Monomial, int]] | None:
    """(cofactor, coefficient) of each term with the atom; None unless all are linear in it with a cofactor >= 0."""
    parts = []
    for monomial, coefficient in coefficients.items():
        if atom not in monomial or not coefficient:
            continue
        cofactor = without(monomial, atom)
        low = monomial_interval(cofactor, interval_of)[0]
        if atom in cofactor or low is None or low < 0:
            return None
        parts.append((cofactor, coefficient))
    return parts


def _replaced(
    coefficients: Coefficients, atom: Atom, parts: list[tuple[Monomial, int]], value: DimLike
) -> dict[Monomial, int]:
    result = {m: c for m, c in coefficients.items() if atom not in m}
    for cofactor, coefficient in parts:
        add_all(result, value, coefficient, cofactor)
    return result


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
