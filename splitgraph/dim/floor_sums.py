"""A normal form for sums of floor quotients of the same numerator.

`c[0]*(Y//k) + c[1]*((Y + 1)//k) + ... + c[k-1]*((Y + k - 1)//k)` can be written in many ways, because the k quotients
with equal coefficients add up to Y, and every other one of them to a quotient by k/2 (Hermite's identity). The
coefficients say everything: two such sums are the same function of Y exactly when their c are equal. So c is taken
apart again in one fixed way, coarse before fine, each class of residues giving up the value that leaves the least
behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import lcm
from typing import NamedTuple

from splitgraph.dim.atoms import FLOOR, Atom, Monomial, Terms, const_of, is_deep, monomial_order, times, without

# Sums of quotients by larger numbers are left as they come: the table would be larger than what it explains.
_LARGEST_TABLE = 256

_REMEMBERED = 1024

MakeQuotient = Callable[[Terms, int, int], Atom]  # terms, constant and divisor of `(terms + constant)//divisor`


class _Family(NamedTuple):
    """Quotients with the same cofactor and numerator but for its constant; odd: the odd part of their divisors."""

    cofactor: Monomial
    terms: Terms
    odd: int


def fold_quotients(coefficients: dict[Monomial, int], quotient: MakeQuotient) -> None:
    """Rewrite the sums of quotients among the terms in the normal form of `decompose`."""
    seen: list[list[tuple[Monomial, int]]] = []
    while _fold_families(coefficients, quotient):
        # One family's whole part may unsettle another; what goes round in a circle gives its least member.
        terms = sorted(((m, c) for m, c in coefficients.items() if c), key=monomial_order)
        if terms in seen:
            coefficients.clear()
            coefficients.update(min(seen[seen.index(terms) :], key=_order_of_terms))
            return
        seen.append(terms)


def _order_of_terms(terms: Iterable[tuple[Monomial, int]]) -> tuple[object, ...]:
    keys = [(*monomial_order(term), term[1]) for term in terms]
    return (len(keys), keys)


def _fold_families(coefficients: dict[Monomial, int], quotient: MakeQuotient) -> bool:
    """Fold each family once; True when that may have made way for more."""
    families: dict[_Family, list[tuple[Atom, int]]] = {}
    for monomial, coefficient in coefficients.items():
        quotients = [atom for atom in monomial if atom.kind == FLOOR]
        if len(quotients) != 1 or not coefficient:
            continue
        numerator, divisor = quotients[0].args
        if isinstance(numerator, int) or not isinstance(divisor, int) or divisor > _LARGEST_TABLE:
            continue
        # A bounded numerator's quotients may be numbers, which only division looks for.
        if numerator.terms[0][1] == 1 and numerator.interval[1] is None and not is_deep(numerator):
            family = _Family(without(monomial, quotients[0]), numerator.terms, divisor // (divisor & -divisor))
            families.setdefault(family, []).append((quotients[0], divisor))
    foldable = [family for family, members in families.items() if len(members) > 1 or members[0][1] == 2]
    for family in foldable if len(foldable) < 2 else sorted(foldable, key=_family_order):
        _fold_family(coefficients, family, families[family], quotient)
    return len(foldable) > 1 or any(_level(family) for family in foldable)


def _level(family: _Family) -> int:
    return max(atom.level for monomial, _ in family.terms for atom in monomial)


def _family_order(family: _Family) -> tuple[object, ...]:
    return (-_level(family), _order_of_terms(family.terms), -family.odd, family.cofactor)


def _fold_family(
    coefficients: dict[Monomial, int], family: _Family, members: list[tuple[Atom, int]], quotient: MakeQuotient
) -> None:
    divisors = sorted({divisor for _, divisor in members})
    size = lcm(*divisors)
    linear = coefficients.get(times(family.cofactor, family.terms[0][0]), 0)
    table = [linear] * size
    for atom, divisor in members:
        coefficient = coefficients.pop(times(family.cofactor, (atom,)))
        for place in range(const_of(atom.args[0]), size, divisor):
            table[place] += coefficient
    levels = [1, *divisors]
    if all(c == 1 for _, c in family.terms):
        levels = [1] + [d for d in range(2, size + 1) if size % d == 0 and _is_power_of_two(size // d)]
    for divisor, residue, factor in decompose(tuple(table), tuple(levels)):
        if divisor == 1:
            linear -= factor
        else:
            monomial = times(family.cofactor, (quotient(family.terms, residue, divisor),))
            coefficients[monomial] = coefficients.get(monomial, 0) + factor
    for monomial, factor in family.terms if linear else ():
        key = times(family.cofactor, monomial)
        coefficients[key] = coefficients.get(key, 0) - linear * factor


def _is_power_of_two(number: int) -> bool:
    return number & number - 1 == 0


@lru_cache(_REMEMBERED)
def decompose(coefficients: tuple[int, ...], levels: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Quotients (d, r, factor), meaning `factor*((Y + r)//d)`, whose sum the coefficients describe.

    coefficients: c as above. levels: ascending divisors of len(coefficients) to use, from 1 to len(coefficients).
    Scaling the coefficients by any integer scales the answer. It is remembered, as adding to a sum of quotients folds
    those of every other numerator and divisor anew.
    """
    left = list(coefficients)
    found = []
    for divisor in levels:
        for residue in range(divisor):
            shared = _middle(left[residue::divisor])
            if shared:
                found.append((divisor, residue, shared))
                for place in range(residue, len(left), divisor):
                    left[place] -= shared
    return found


def _middle(values: Sequence[int]) -> int:
    """The median; of two in the middle the one nearer to 0, of opposite ones the one unlike the first value."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if low == -high:
        first = next((value for value in values if value), 0)
        return low if first > 0 else high
    return low if abs(low) < abs(high) else high
