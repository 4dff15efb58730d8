"""Simplifying dimensions by what is known of them: remainders of polynomials, and intervals of atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from splitgraph.dim.arithmetic import Dim, DimLike, atom_value, from_terms
from splitgraph.dim.atoms import (
    FLOOR,
    MAX,
    NESTED_MAX,
    SYMBOL,
    Atom,
    Monomial,
    Terms,
    atoms_by_level,
    quotient_of,
    without,
)
from splitgraph.dim.bounds import IntervalOf, lowest
from splitgraph.dim.extrema import undominated
from splitgraph.dim.values import rebuilt, rebuilt_atom

# Simplifying may make way for more of it; a few rounds reach what matters.
_ROUNDS = 3


class Congruence(NamedTuple):
    """`terms` leave `remainder` when divided by `modulus`; their leading coefficient is 1."""

    terms: Terms
    modulus: int
    remainder: int

    @property
    def value(self) -> DimLike:
        """The polynomial of the terms."""
        return from_terms(dict(self.terms), 0)


def congruence_of(difference: Dim) -> Congruence | None:
    """What `difference == 0` says when it is `E % k == r` in some spelling, else None."""
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1 or monomial[0].kind != FLOOR:
            continue
        numerator, divisor = monomial[0].args
        if not isinstance(numerator, Dim) or not isinstance(divisor, int) or coefficient % divisor:
            continue
        factor = -coefficient // divisor
        rest = difference - coefficient * atom_value(FLOOR, (numerator, divisor)) - factor * numerator
        if isinstance(rest, int) and rest % factor == 0 and numerator.terms[0][1] == 1:
            return Congruence(numerator.terms, divisor, (-rest // factor - numerator.const) % divisor)
    return None


def merged(one: Congruence, other: Congruence) -> Congruence | None:
    """What two remainders of the same terms say together (Chinese remainder theorem); None when both cannot be."""
    common = gcd(one.modulus, other.modulus)
    apart = other.remainder - one.remainder
    if apart % common:
        return None
    step = other.modulus // common
    times = apart // common * pow(one.modulus // common, -1, step) if step > 1 else 0
    modulus = one.modulus * step
    return Congruence(one.terms, modulus, (one.remainder + one.modulus * times) % modulus)


def simplified(d: Dim, congruences: Sequence[Congruence], interval_of: IntervalOf, fixed: bool) -> DimLike:
    """An equal dim, rebuilt from its atoms upwards with every rule that applies.

    fixed: also put the number in place of a symbol whose interval is a single value.
    """
    value: DimLike = d
    for _ in range(_ROUNDS):
        if isinstance(value, int):
            return value
        before, known = value, dict[Atom, DimLike]()
        for atom in atoms_by_level([before]):
            known[atom] = _simplified_atom(atom, known, congruences, interval_of, fixed)
        value = _rebuilt(before, known, congruences)
        if value is before:
            break
    return value


def _simplified_atom(
    atom: Atom, known: Mapping[Atom, DimLike], congruences: Sequence[Congruence], interval_of: IntervalOf, fixed: bool
) -> DimLike:
    low, high = interval_of(atom)
    if low is not None and low == high and (fixed or atom.kind != SYMBOL):
        return low
    if atom.kind == SYMBOL:
        return from_terms({(atom,): 1}, 0)
    args = [_rebuilt(arg, known, congruences) for arg in atom.args]
    if atom.kind == FLOOR:
        return _quotient(args[0], args[1], congruences)
    if atom.kind in (MAX, NESTED_MAX):
        args = undominated(args, lambda one, other: _is_at_least(one, other, interval_of))
    return rebuilt_atom(atom.kind, args)


def _quotient(numerator: DimLike, divisor: DimLike, congruences: Iterable[Congruence]) -> DimLike:
    whole: DimLike = 0
    for congruence in congruences:
        if isinstance(numerator, Dim) and isinstance(divisor, int):
            outside, numerator = _split(numerator, divisor, congruence)
            whole = whole + outside
    return whole + numerator // divisor


def _split(numerator: Dim, divisor: int, congruence: Congruence) -> tuple[DimLike, DimLike]:
    """(whole, rest) with `numerator//divisor == whole + rest//divisor`, for the parts that the congruence tells of."""
    whole: DimLike = 0
    left: DimLike = numerator
    remainder = congruence.remainder % divisor
    for monomial, coefficient in numerator.terms:
        cofactor = quotient_of(monomial, congruence.terms[0][0])
        if cofactor is None or not isinstance(left, Dim):
            continue
        part = coefficient * _monomial(cofactor) * congruence.value
        if not _contains(left, part):
            continue
        if congruence.modulus % divisor == 0:
            whole = whole + coefficient * _monomial(cofactor) * (congruence.value // divisor)
            left = left - part + coefficient * remainder * _monomial(cofactor)
        elif isinstance(left - part, int):
            # Within one residue of the common factor the constant does not matter: it becomes the least.
            common = gcd(congruence.modulus, divisor)
            left = left - (coefficient * congruence.remainder + left.const) % common
    return whole, left


def _contains(whole: Dim, part: DimLike) -> bool:
    have = dict(whole.terms)
    return isinstance(part, Dim) and all(have.get(m) == c for m, c in part.terms)


def _rebuilt(value: DimLike, known: Mapping[Atom, DimLike], congruences: Iterable[Congruence]) -> DimLike:
    total = rebuilt(value, known)
    for congruence in congruences:
        if isinstance(total, Dim):
            total = _multiplied_back(total, congruence)
    return total


def _multiplied_back(value: Dim, congruence: Congruence) -> DimLike:
    """`k*(E//k)` as `E - r`."""
    total: DimLike = value
    for monomial, coefficient in value.terms:
        for atom in monomial:
            if atom.kind != FLOOR:
                continue
            numerator, divisor = atom.args
            if not isinstance(numerator, Dim) or not isinstance(divisor, int) or congruence.modulus % divisor:
                continue
            if numerator.terms == congruence.terms and numerator.const == 0:
                times_whole = abs(coefficient) // divisor * (1 if coefficient > 0 else -1)
                exact = congruence.value - congruence.remainder % divisor
                quotient = divisor * atom_value(FLOOR, (numerator, divisor))
                total = total + times_whole * _monomial(without(monomial, atom)) * (exact - quotient)
                break
    return total


def _monomial(monomial: Monomial) -> DimLike:
    return from_terms({monomial: 1}, 0) if monomial else 1


def _is_at_least(one: DimLike, other: DimLike, interval_of: IntervalOf) -> bool:
    low = lowest(one - other, interval_of, goal=0)
    return low is not None and low >= 0
