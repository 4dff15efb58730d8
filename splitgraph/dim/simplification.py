"""Simpler forms of dimensions by facts: exact quotients, decided maxima, and symbols with only one value.

Remainders come from equalities (`known_remainder`), and the largest argument of a maximum from the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd, lcm
from typing import NamedTuple

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms, sum_dims
from splitgraph.dim.atoms import (
    FLOOR,
    MAX,
    NAMED,
    NESTED_MAX,
    SYMBOL,
    Atom,
    Monomial,
    Terms,
    atoms_by_level,
    order_of,
    quotient_of,
    without,
)
from splitgraph.dim.bounds import IntervalOf
from splitgraph.dim.linear_systems import LinearSystem, TooLarge
from splitgraph.dim.obligation import Fact
from splitgraph.dim.operations import rebuilt, rebuilt_atom, undominated

# One simplification may allow another; a few rounds reach what matters.
_ROUNDS = 3

Linear = tuple[Mapping[int, int], int]
Prove = Callable[[DimLike], bool]


class Remainder(NamedTuple):
    """`terms` leave `remainder` when divided by `modulus`."""

    terms: Terms
    modulus: int
    remainder: int

    @property
    def value(self) -> DimLike:
        """The polynomial of the terms."""
        return from_terms(dict(self.terms), 0)


def simplified(d: Dim, equalities: Sequence[Dim], interval_of: IntervalOf, is_positive: Prove, fixed: bool) -> DimLike:
    """Return an equal dim, rebuilt from its atoms upwards with every rule that applies.

    equalities: dims that are 0. is_positive: whether a dim is known to be >= 0. fixed: also put the number in place of
    a symbol whose interval is a single value.
    """
    value: DimLike = d
    for _ in range(_ROUNDS):
        if isinstance(value, int):
            return value
        before, known = value, dict[Atom, DimLike]()
        remainders = _remainders_for(before, equalities, interval_of)
        for atom in atoms_by_level([before]):
            known[atom] = _simplified_atom(atom, known, remainders, interval_of, is_positive, fixed)
        value = _rebuilt(before, known, remainders)
        if value is before:
            break
    return value


def _remainders_for(d: Dim, equalities: Sequence[Dim], interval_of: IntervalOf) -> list[Remainder]:
    """Return the known remainders of numerators, modulo their divisors, for the quotients in the dim and in the
    equalities.
    """
    if not equalities or all(atom.kind == SYMBOL for monomial, _ in d.terms for atom in monomial):
        return []
    numerators: dict[Terms, int] = {}
    for atom in atoms_by_level([d, *equalities]):
        numerator, divisor = atom.args if atom.kind == FLOOR else (0, 0)
        if isinstance(numerator, Dim) and isinstance(divisor, int):
            terms = _without_common_factor(numerator.terms)
            numerators[terms] = lcm(numerators.get(terms, 1), divisor)
    remainders = []
    for terms, divisor in numerators.items():
        modulus, remainder = _remainder_of(from_terms(dict(terms), 0), equalities, interval_of)
        known = divisor if modulus == 0 else modulus
        if known > 1:
            remainders.append(Remainder(terms, known, remainder % known))
    # A remainder of a factor says more than a remainder of the product. The first remainder that applies decides how a
    # quotient is written, so the order must not depend on the order of the facts.
    return sorted(remainders, key=lambda known: (len(known.terms[0][0]), order_of(known.value)))


def _without_common_factor(terms: Terms) -> Terms:
    """E for `3*E`: its remainder is known where that of `3*E` is, as a quotient's divisor shares no factor with the 3.

    So `(3*E)//8` becomes `3*(E//8)`, whether or not anything else speaks of `E//8`.
    """
    factor = gcd(*(coefficient for _, coefficient in terms))
    return tuple([(monomial, coefficient // factor) for monomial, coefficient in terms])


def _remainder_of(value: DimLike, equalities: Iterable[Dim], interval_of: IntervalOf) -> tuple[int, int]:
    system = LinearSystem(interval_of)
    try:
        asked = system.linear(value)
        for difference in equalities:
            system.equalities.append(system.linear(difference))
        system.add_products(Fact(difference, True) for difference in equalities)
    except TooLarge:
        return 1, 0
    return known_remainder(asked, system.equalities)


def _simplified_atom(
    atom: Atom,
    known: Mapping[Atom, DimLike],
    remainders: Sequence[Remainder],
    interval_of: IntervalOf,
    is_positive: Prove,
    fixed: bool,
) -> DimLike:
    low, high = interval_of(atom)
    if low is not None and low == high and (fixed or atom.kind != SYMBOL):
        return low
    value = from_terms({(atom,): 1}, 0)
    if atom.kind in NAMED:
        return value
    args = [_rebuilt(arg, known, remainders) for arg in atom.args]
    if atom.kind == FLOOR:
        return _quotient(args[0], args[1], remainders)
    if atom.kind in (MAX, NESTED_MAX):
        args = undominated(args, lambda one, other: is_positive(one - other))
    return rebuilt_atom(atom.kind, args)


def _quotient(numerator: DimLike, divisor: DimLike, remainders: Iterable[Remainder]) -> DimLike:
    whole: DimLike = 0
    for remainder in remainders:
        if isinstance(numerator, Dim) and isinstance(divisor, int):
            outside, numerator = _split(numerator, divisor, remainder)
            whole = whole + outside
    return whole + numerator // divisor


def _split(numerator: Dim, divisor: int, known: Remainder) -> tuple[DimLike, DimLike]:
    """Return (whole, rest) with `numerator//divisor == whole + rest//divisor`, for the parts whose remainder is
    known.
    """
    whole: DimLike = 0
    left: DimLike = numerator
    remainder = known.remainder % divisor
    factor = known.terms[0][1]
    for monomial, coefficient in numerator.terms:
        cofactor = quotient_of(monomial, known.terms[0][0])
        if cofactor is None or coefficient % factor or not isinstance(left, Dim):
            continue
        times = coefficient // factor * _monomial(cofactor)
        part = times * known.value
        have = dict(left.terms)
        if isinstance(part, int) or any(have.get(m) != c for m, c in part.terms):
            continue
        if known.modulus % divisor == 0:
            whole = whole + times * (known.value // divisor)
            left = left - part + times * remainder
        elif isinstance(left - part, int):
            # Within one residue of the common factor, the constant does not matter: take the least one. A product has
            # a known residue only if the residue is the same for every cofactor.
            common = gcd(known.modulus, divisor)
            rest = coefficient // factor * known.remainder % common
            if not cofactor or not rest:
                left = left - min((rest + left.const) % common, max(left.const, 0))
    return whole, left


def _rebuilt(value: DimLike, known: Mapping[Atom, DimLike], remainders: Iterable[Remainder]) -> DimLike:
    total = rebuilt(value, known)
    for remainder in remainders:
        if isinstance(total, Dim):
            total = _multiplied_back(total, remainder)
    return total


def _multiplied_back(value: Dim, known: Remainder) -> DimLike:
    """Return quotients of E as a multiple of E and one quotient: `4*(E//4)` is E - r, and `2*(E//4)` is E//2 - r//2."""
    by_cofactor: dict[Monomial, list[tuple[int, int]]] = {}
    for monomial, coefficient in value.terms:
        for atom in monomial:
            divisor = _divisor_of(atom, known)
            if divisor is not None:
                by_cofactor.setdefault(without(monomial, atom), []).append((divisor, coefficient))
                break
    total: DimLike = value
    for cofactor, parts in by_cofactor.items():
        quotients = sum_dims([coefficient * (known.value // divisor) for divisor, coefficient in parts])
        total = total + _monomial(cofactor) * (_as_one(parts, known) - quotients)
    return total


def _divisor_of(atom: Atom, known: Remainder) -> int | None:
    """Return the k of an `E//k` if the remainder of E divided by k is known; None for any other atom."""
    if atom.kind != FLOOR:
        return None
    numerator, divisor = atom.args
    if not isinstance(numerator, Dim) or not isinstance(divisor, int) or known.modulus % divisor:
        return None
    return divisor if numerator.terms == known.terms and numerator.const == 0 else None


def _as_one(parts: Sequence[tuple[int, int]], known: Remainder) -> DimLike:
    """Return the sum of `c*(E//d)`, which is that of `c*(E - r % d)/d`, for the (d, c) of the parts."""
    size = lcm(*(divisor for divisor, _ in parts))
    share = sum(coefficient * (size // divisor) for divisor, coefficient in parts)
    whole = abs(share) // size * (1 if share > 0 else -1)
    left, divisor = share - whole * size, size // gcd(share, size)
    times = left * divisor // size
    # Comparing both sides at E == r gives the constant.
    difference = [*parts, (divisor, -times), (1, -whole)]
    const = sum(coefficient * (known.remainder // number) for number, coefficient in difference)
    return whole * known.value + times * (known.value // divisor) + const


def _monomial(monomial: Monomial) -> DimLike:
    return from_terms({monomial: 1}, 0) if monomial else 1


# Remainders that follow from equalities ------------------------------------------------------------------------------


# Equalities over the integers determine some values modulo a number: `N == 4*t` makes `N % 4` 0. Each equality is
# solved for one variable; if no coefficient is 1, Euclid's algorithm on the coefficients makes one. The rest of the
# value depends on free variables, which can be any integers. So the value is known modulo the greatest common divisor
# of their coefficients.


def known_remainder(value: Linear, equalities: Iterable[Linear]) -> tuple[int, int]:
    """Return (modulus, remainder) of the value. The modulus is 0 if the equalities leave one number, 1 if nothing is
    known.

    Each equality says that an expression is 0. Equalities that contradict the others are ignored.
    """
    rows = [_Row(value), *map(_Row, equalities)]
    waiting = rows[1:]
    while waiting:
        row = waiting.pop()
        if not row.terms:
            continue
        variable = min(row.terms, key=lambda name: (abs(row.terms[name]), name))
        if abs(row.terms[variable]) == 1:
            for other in (rows[0], *waiting):
                other.take_out(variable, row)
        elif row.const % gcd(*row.terms.values()) == 0:
            # x becomes x - sum(q*y): a change of variables that loses no integers, and makes coefficients smaller.
            quotients = {name: c // row.terms[variable] for name, c in row.terms.items() if name != variable}
            for other in (rows[0], *waiting, row):
                other.replace(variable, quotients)
            if len(row.terms) == 1:
                row.const //= row.terms[variable]
                row.terms[variable] = 1
            waiting.append(row)
    left = rows[0]
    modulus = gcd(*left.terms.values()) if left.terms else 0
    return modulus, left.const % modulus if modulus else left.const


class _Row:
    """A linear expression that is changed in place."""

    def __init__(self, linear: Linear) -> None:
        self.terms = {name: c for name, c in linear[0].items() if c}
        self.const = linear[1]

    def add(self, name: int, coefficient: int) -> None:
        total = self.terms.get(name, 0) + coefficient
        if total:
            self.terms[name] = total
        else:
            self.terms.pop(name, None)

    def take_out(self, variable: int, row: _Row) -> None:
        """Put what `row == 0` says in place of a variable whose coefficient there is 1 or -1."""
        factor = self.terms.get(variable, 0) * row.terms[variable]
        if factor:
            for name, coefficient in row.terms.items():
                self.add(name, -factor * coefficient)
            self.const -= factor * row.const

    def replace(self, variable: int, quotients: Mapping[int, int]) -> None:
        factor = self.terms.get(variable, 0)
        if factor:
            for name, quotient in quotients.items():
                self.add(name, -factor * quotient)
