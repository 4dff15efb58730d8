"""Questions about dimensions as systems of linear constraints over the integers.

Every monomial is a variable of the system. What an atom means becomes constraints: for `q = e//k` it is
`0 <= e - k*q <= k - 1`, a maximum is at least each of its arguments, and a product of factors with known bounds obeys
the products of these bounds. `integer_systems` then says whether integers exist that meet everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Protocol

from splitgraph.dim.atoms import (
    FLOOR,
    MAX,
    MOD,
    NAMED,
    Atom,
    Interval,
    Monomial,
    Polynomial,
    Value,
    is_linear,
    quotient_of,
    times,
    without,
)
from splitgraph.dim.bounds import both, monomial_interval, symbolic_interval
from splitgraph.dim.integer_systems import Linear, bounds_of, has_solution

# New inequalities and cases that one question may make.
STEPS = 1000
# Variables of one system, and products of a fact with a factor: a question that needs more is not decided.
_MOST_VARIABLES = 48
_MOST_PRODUCTS = 24
# The most terms of a fact that is multiplied with a factor.
_WIDEST_FACTOR = 6
# With more maxima, their arguments are not tried as the largest.
_MOST_MAXIMA = 3

_REMEMBERED = 4096

IntervalOf = Callable[[Atom], Interval]


class Constraint(Protocol):
    """`difference >= 0`, or `difference == 0` for an equality; a `Fact` is one."""

    @property
    def difference(self) -> Polynomial: ...

    @property
    def is_equality(self) -> bool: ...


class TooLarge(Exception):
    """The system has more variables than one question may have."""


class LinearSystem:
    """The constraints of one question: the claim, the facts, and the meanings of the atoms in both."""

    def __init__(self, interval_of: IntervalOf) -> None:
        self._interval_of = interval_of
        self._variables: dict[Monomial, int] = {}
        self._defined = 0
        self._extra = 0
        self._maxima: dict[Atom, list[Linear]] = {}
        # Products whose factors' bounds were multiplied, as a factor and the rest.
        self._multiplied: set[tuple[Atom, Monomial]] = set()
        self.equalities: list[Linear] = []
        self.inequalities: list[Linear] = []

    def add(self, difference: Value, *, is_equality: bool) -> None:
        """Add `difference >= 0`, or `difference == 0`, and the meanings of all atoms in it."""
        (self.equalities if is_equality else self.inequalities).append(self.linear(difference))
        self._define_all()

    def define(self, value: Value) -> None:
        """Add the meanings of all atoms in a value: they hold because the value exists."""
        self.linear(value)
        self._define_all()

    def linear(self, value: Value) -> Linear:
        """Return a polynomial over the variables; new monomials become variables."""
        if isinstance(value, int):
            return {}, value
        if not any(_is_positive_part(monomial) for monomial, _ in value.terms):
            return {self._variable(monomial): coefficient for monomial, coefficient in value.terms}, value.const
        total: Linear = {}, value.const
        for monomial, coefficient in value.terms:
            total = _sum(total, self._linear_of(monomial), coefficient)
        return total

    def _linear_of(self, monomial: Monomial) -> Linear:
        """Return a monomial over the variables.

        The variable of `max(0, p - f)` stands for `max(p, f)`, which is that plus f: whether the normal form has this
        atom or `max(0, f - p)` is a matter of names, and no answer should be.
        """
        own: Linear = {self._variable(monomial): 1}, 0
        return _sum(own, self._sides(monomial[0])[1], -1) if _is_positive_part(monomial) else own

    def _sides(self, atom: Atom) -> tuple[Linear, Linear]:
        """Return the p and f of `max(0, p - f)`, neither with a negative term."""
        _, difference = atom.args
        rising: Linear = {}, 0
        falling: Linear = {}, 0
        for monomial, coefficient in () if isinstance(difference, int) else difference.terms:
            if coefficient > 0:
                rising = _sum(rising, self._linear_of(monomial), coefficient)
            else:
                falling = _sum(falling, self._linear_of(monomial), -coefficient)
        const = difference if isinstance(difference, int) else difference.const
        return (rising[0], max(const, 0)), (falling[0], max(-const, 0))

    def is_impossible(self, steps: int = STEPS) -> bool:
        """Return True if no integers satisfy the constraints; False if some do, or if there is no proof."""
        if has_solution(self.equalities, self.inequalities, steps) is False:
            return True
        # Each maximum equals one of its arguments; this matters only if a maximum is large.
        maxima = list(self._maxima.items())
        return 0 < len(maxima) <= _MOST_MAXIMA and all(
            has_solution([*self.equalities, *case], self.inequalities, steps) is False for case in self._cases(maxima)
        )

    def range_of(self, value: Value, steps: int = STEPS) -> Interval:
        """Return (lowest, highest) that a value can be where the constraints are met, None: unbounded or not known."""
        self.define(value)
        asked = self.linear(value)
        maxima = list(self._maxima.items())
        cases = list(self._cases(maxima)) if len(maxima) <= _MOST_MAXIMA else [[]]
        bounds = [bounds_of(asked, [*self.equalities, *case], self.inequalities, steps) for case in cases]
        possible = [ends for ends in bounds if ends is not None]
        lows = [low for low, _ in possible if low is not None]
        highs = [high for _, high in possible if high is not None]
        least = min(lows, default=None) if len(lows) == len(possible) else None
        return least, max(highs, default=None) if len(highs) == len(possible) else None

    def _cases(self, maxima: Sequence[tuple[Atom, list[Linear]]]) -> Iterator[list[Linear]]:
        """Yield every choice of the arguments that are the largest, as equalities."""
        if not maxima:
            yield []
            return
        for chosen in maxima[0][1]:
            for rest in self._cases(maxima[1:]):
                yield [chosen, *rest]

    def _variable(self, monomial: Monomial) -> int:
        variable = self._variables.setdefault(monomial, len(self._variables))
        if variable >= _MOST_VARIABLES:
            raise TooLarge
        return variable

    def _define_all(self) -> None:
        while self._defined < len(self._variables):
            for monomial in list(self._variables)[self._defined :]:
                self._defined += 1
                if len(monomial) == 1:
                    self._define_atom(monomial[0])
                else:
                    self._bounded(monomial)
            self._multiply_bounds()

    def _bounded(self, monomial: Monomial) -> None:
        low, high = monomial_interval(monomial, self._interval_of)
        place = self._variable(monomial)
        if low is not None:
            self.inequalities.append(({place: 1}, -low))
        if high is not None:
            self.inequalities.append(({place: -1}, high))

    def _define_atom(self, atom: Atom) -> None:
        # Rows are written out and not as dims, whose normal form may have another spelling for the same quotient.
        if atom.kind in NAMED or atom.kind == MOD:
            self._bounded((atom,))
        if atom.kind in (FLOOR, MOD):
            self._define_division(atom)
        elif atom.kind not in NAMED:
            own: Linear = {self._variable((atom,)): 1}, 0
            args = self._sides(atom) if _is_positive_part((atom,)) else map(self.linear, atom.args)
            differences = [_sum(own, arg, -1) for arg in args]
            self.inequalities.extend(differences)
            self._maxima[atom] = differences

    def _define_division(self, atom: Atom) -> None:
        """Add the meaning of a quotient or remainder; a divisor is at least 1 where the value exists."""
        numerator, divisor = atom.args
        least = self._lowest(divisor)
        if not isinstance(divisor, int) and least is not None and least >= 0:
            self.inequalities.append(self.linear(divisor - 1))
        if least is None or least < 0:
            self._bounded((atom,))
        elif atom.kind == FLOOR:
            rest = _sum(self.linear(numerator), self._times(divisor, (atom,)), -1)
            self.inequalities += [rest, _sum(self.linear(divisor - 1), rest, -1)]
            lowest = self._interval_of(atom)[0]
            if not isinstance(divisor, int) and lowest is not None and lowest >= 0:
                # The divisor is at least 1, so that its product with the quotient is at least the quotient.
                self.inequalities.append(self._times(divisor - 1, (atom,)))
        elif isinstance(divisor, int):
            # A variable of its own says how often the divisor goes into the numerator.
            self._extra -= 1
            own: Linear = {self._variable((atom,)): 1, self._extra: divisor}, 0
            self.equalities.append(_sum(self.linear(numerator), own, -1))

    def _times(self, value: Value, cofactor: Monomial) -> Linear:
        """Return the product of a value with a monomial."""
        terms = () if isinstance(value, int) else value.terms
        coefficients = {self._variable(times(monomial, cofactor)): coefficient for monomial, coefficient in terms}
        const = value if isinstance(value, int) else value.const
        return _sum((coefficients, 0), self._linear_of(cofactor), const) if const else (coefficients, 0)

    def _lowest(self, value: Value) -> int | None:
        if isinstance(value, int):
            return value
        total = value.const
        for monomial, coefficient in value.terms:
            end = monomial_interval(monomial, self._interval_of)[coefficient < 0]
            if end is None:
                return None
            total += coefficient * end
        return total

    def _multiply_bounds(self) -> None:
        """Add the bounds of products that follow from bounds of factors: `(x - low)*(y - low) >= 0`, and so for upper
        bounds.

        A product of three factors or more counts as one of two factors where one of these is in question by itself.
        """
        for monomial in [monomial for monomial in self._variables if len(monomial) > 1]:
            for factor in dict.fromkeys(monomial):
                rest = without(monomial, factor)
                if (len(rest) > 1 and rest not in self._variables) or (factor, rest) in self._multiplied:
                    continue
                self._multiplied |= {(factor, rest), (rest[0], (factor,))} if len(rest) == 1 else {(factor, rest)}
                for end, other in product(self._ends((factor,)), self._ends(rest)):
                    self.inequalities.append(self._distance(monomial, (factor,), end, rest, other))

    def _distance(
        self, whole: Monomial, one: Monomial, end: tuple[int, int], other: Monomial, other_end: tuple[int, int]
    ) -> Linear:
        """Return the product of how far two factors are from a bound of each, which is at least 0."""
        sign = end[0] * other_end[0]
        parts = ((whole, sign), (one, -sign * other_end[1]), (other, -sign * end[1]))
        total: Linear = {}, sign * end[1] * other_end[1]
        for monomial, coefficient in parts:
            total = _sum(total, self._linear_of(monomial), coefficient)
        return total

    def _ends(self, monomial: Monomial) -> list[tuple[int, int]]:
        """Return the bounds of a monomial: (1, least) and (-1, most), such that `sign*(monomial - bound)` is at least
        0.
        """
        low, high = monomial_interval(monomial, self._interval_of)
        return [(sign, bound) for sign, bound in ((1, low), (-1, high)) if bound is not None]

    def add_products(self, facts: Iterable[Constraint]) -> None:
        """Add the products of facts with factors that are at least 0, if the question contains such products."""
        for fact, cofactor in self._products_to_add(facts):
            rows = self.equalities if fact.is_equality else self.inequalities
            rows.append(self._times(fact.difference, cofactor))
        self._define_all()

    def _products_to_add(self, facts: Iterable[Constraint]) -> Collection[tuple[Constraint, Monomial]]:
        """Return which facts to multiply by which factors: all that may help; if these are too many, those that bring
        no new monomial; or none. A part of them would depend on the order of the facts.
        """
        multiplied: dict[tuple[Constraint, Monomial], None] = {}
        products = [monomial for monomial in self._variables if len(monomial) > 1]
        for fact in facts:
            if len(fact.difference.terms) > _WIDEST_FACTOR:
                continue
            for cofactor in _cofactors(fact.difference, products):
                low = monomial_interval(cofactor, self._interval_of)[0]
                if fact.is_equality or (low is not None and low >= 0):
                    multiplied[(fact, cofactor)] = None
        if len(multiplied) <= _MOST_PRODUCTS:
            return multiplied
        known = [
            (fact, cofactor)
            for fact, cofactor in multiplied
            if all(times(monomial, cofactor) in self._variables for monomial, _ in fact.difference.terms)
        ]
        return known if len(known) <= _MOST_PRODUCTS else ()


@lru_cache(_REMEMBERED)
def is_nonnegative(value: Polynomial) -> bool:
    """Return True when the value is at least 0 for any symbols >= 0; False when there is no proof."""
    low = value.interval[0]
    if is_linear(value) or (low is not None and low >= 0):
        return low is not None and low >= 0
    system = LinearSystem(symbolic_interval)
    try:
        system.add(-1 - value, is_equality=False)
    except TooLarge:
        return False
    return system.is_impossible()


@lru_cache(_REMEMBERED)
def range_of(value: Polynomial) -> Interval:
    """Return (lowest, highest) value if the constraints hold. None: unbounded or not known."""
    if is_linear(value):
        return value.interval
    try:
        return both(value.interval, LinearSystem(symbolic_interval).range_of(value))
    except TooLarge:
        return value.interval


def _is_positive_part(monomial: Monomial) -> bool:
    """Return True for `max(0, d)`, where d is no number."""
    [atom] = monomial if len(monomial) == 1 else (None,)
    return atom is not None and atom.kind == MAX and len(atom.args) == 2 and not isinstance(atom.args[1], int)


def _cofactors(difference: Polynomial, products: Iterable[Monomial]) -> list[Monomial]:
    quotients = (quotient_of(whole, monomial) for whole in products for monomial, _ in difference.terms)
    return list(dict.fromkeys(cofactor for cofactor in quotients if cofactor))


def _sum(one: Linear, other: Linear, factor: int) -> Linear:
    """`one + factor * other`"""
    coefficients = dict(one[0])
    for variable, coefficient in other[0].items():
        coefficients[variable] = coefficients.get(variable, 0) + factor * coefficient
    return coefficients, one[1] + factor * other[1]
