"""Floor quotients of polynomials, as the normal form needs them. `arithmetic` calls these functions:

- Exact division (`exact_quotient`, `cancel`): by a polynomial that divides, and by factors of a single term.
- `terms//divisor` for an integer divisor (`joined`): multiples and common factors are taken out, nested quotients are
  joined.
- Sums of quotients of the same numerator (`fold_quotients`): they are written in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import gcd, lcm
from typing import Any, NamedTuple, TypeVar

from splitgraph.dim.atoms import (
    FLOOR,
    MAX,
    MOST_WRITTEN,
    Atom,
    Monomial,
    Polynomial,
    Terms,
    Value,
    add_into,
    const_of,
    is_deep,
    monomial_order,
    quotient_of,
    times,
    without,
)

T = TypeVar("T")
# Makes a dimension of terms and a constant.
FromTerms = Callable[[dict[Monomial, int], int], T]

# Sums of quotients by larger numbers are left as they are: the table would be larger than the sum.
_LARGEST_TABLE = 256

_REMEMBERED = 1024

MakeQuotient = Callable[[Terms, int, int], Atom]  # terms, constant and divisor of `(terms + constant)//divisor`


# Exact division ------------------------------------------------------------------------------------------------------


def exact_quotient(numerator: Value, divisor: Polynomial, from_terms: FromTerms[T]) -> T | None:
    """Return the quotient if the polynomial divides without a remainder; else None."""
    if isinstance(numerator, int):
        return None
    lead, lead_coefficient = divisor.terms[0]
    left: Value = numerator
    quotient: Any = 0
    for _ in range(MOST_WRITTEN):
        if isinstance(left, int):
            break
        monomial = quotient_of(left.terms[0][0], lead)
        if monomial is None or left.terms[0][1] % lead_coefficient:
            return None
        step: Any = from_terms({monomial: 1}, 0) if monomial else 1
        step = step * (left.terms[0][1] // lead_coefficient)
        before, left = left, left - step * divisor
        quotient = quotient + step
        if not isinstance(left, int) and not monomial_order(before.terms[0]) < monomial_order(left.terms[0]):
            return None
    exact: T = quotient
    return exact if isinstance(left, int) and left == 0 else None


def cancel(numerator: Value, divisor: Polynomial, from_terms: FromTerms[T]) -> tuple[T | int, T | int, T | int]:
    """Return (whole, rest, reduced divisor) with numerator//divisor == whole + rest//reduced, for a divisor of one
    term.
    """
    monomial, factor = divisor.terms[0]
    if isinstance(numerator, int):
        common = gcd(numerator, factor)
        return 0, numerator // common, from_terms({monomial: factor // common}, 0)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for term, coefficient in numerator.terms:
        shared = quotient_of(term, monomial)
        if shared is None or coefficient % factor:
            rest[term] = coefficient
        else:
            whole[shared] = coefficient // factor
    whole_const = whole.pop((), 0)
    common = gcd(factor, numerator.const, *rest.values())
    for atom in monomial:
        if rest and numerator.const == 0 and all(atom in term for term in rest):
            rest = {without(term, atom): c for term, c in rest.items()}
            monomial = without(monomial, atom)
    const = rest.pop((), 0) + numerator.const
    reduced = from_terms({monomial: factor // common}, 0) if monomial else factor // common
    return (
        from_terms(whole, whole_const),
        from_terms({m: c // common for m, c in rest.items()}, const // common),
        reduced,
    )


# Division by an integer ----------------------------------------------------------------------------------------------


def joined(
    whole: dict[Monomial, int], sign: int, terms: Terms, const: int, divisor: int
) -> tuple[dict[Monomial, int], int, int]:
    """Return (rest, const, divisor) with `(terms + const)//divisor == whole + (rest + const)//divisor`.

    What is whole is added to `sign * whole`. The rest has no multiples of the divisor, no common factor with it, and no
    quotient that could be joined with this one.
    """
    left = dict(terms)
    while True:
        rest = take_multiples(whole, sign, left, divisor)
        factor = gcd(divisor, *rest.values())
        if factor > 1:
            rest = {m: c // factor for m, c in rest.items()}
            divisor, const = divisor // factor, const // factor
        nested = joinable(rest, divisor)
        if nested is None:
            return rest, const, divisor
        inner, inner_divisor = nested
        toward = 1 if rest.pop((inner,)) == 1 else -1
        if toward < 0:
            whole[(inner,)] = whole.get((inner,), 0) + sign
        left = {m: c * inner_divisor for m, c in rest.items()}
        const = const * inner_divisor + add_into(left, inner.args[0], toward) + (0 if toward > 0 else inner_divisor - 1)
        divisor *= inner_divisor


def take_multiples(
    whole: dict[Monomial, int], sign: int, terms: dict[Monomial, int], divisor: int
) -> dict[Monomial, int]:
    """Return the remainder of each coefficient; the multiples of the divisor are added to `sign * whole`."""
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in terms.items():
        remainder = coefficient % divisor
        if remainder:
            rest[monomial] = remainder
    for monomial in [m for m in rest if m[-1].kind == MAX]:
        if _is_subtracted(rest, monomial, divisor):
            rest[monomial] -= divisor
    for monomial, coefficient in terms.items():
        quotient = (coefficient - rest.get(monomial, 0)) // divisor
        if quotient:
            whole[monomial] = whole.get(monomial, 0) + sign * quotient
    return rest


def _is_subtracted(rest: dict[Monomial, int], monomial: Monomial, divisor: int) -> bool:
    """Return True for a maximum that reads as subtracted, as in `N - max(0, N - 8)`, even where -1 and 1 are alike."""
    coefficient = rest[monomial]
    argument = monomial[-1].args[1]
    if not isinstance(argument, int):
        leading, factor = argument.terms[0]
        opposite = -coefficient * factor % divisor
        if opposite and rest.get(times(leading, monomial[:-1])) == opposite:
            return True
    return 2 * coefficient > divisor


def joinable(rest: dict[Monomial, int], divisor: int) -> tuple[Atom, int] | None:
    """Return the E//a of `(E//a + R)//b` or `(R - E//a)//b`, which are quotients by a*b, and its a; None if there is
    none.
    """
    inner: Atom | None = None
    for monomial in rest:
        if not any(atom.kind == FLOOR for atom in monomial):
            continue
        if inner is not None or len(monomial) > 1:
            return None
        inner = monomial[0]
    if inner is None or rest[(inner,)] not in (1, divisor - 1):
        return None
    inner_divisor = inner.args[1]
    return (inner, inner_divisor) if isinstance(inner_divisor, int) else None


def is_better_negated(terms: dict[Monomial, int], divisor: int) -> bool:
    """Return True if the first coefficient that is not half of the divisor is, modulo the divisor, nearer to the
    divisor than to 0.
    """
    for _, coefficient in sorted(terms.items(), key=monomial_order):
        if 2 * (coefficient % divisor) != divisor:
            return 2 * (coefficient % divisor) > divisor
    return False


# Sums of quotients ---------------------------------------------------------------------------------------------------


# `c[0]*(Y//k) + c[1]*((Y + 1)//k) + ... + c[k-1]*((Y + k - 1)//k)` can be written in many ways, because the k quotients
# with equal coefficients add up to Y, and every other one of them to a quotient by k/2 (Hermite's identity). Two such
# sums are the same function of Y exactly if their c are equal. So c is taken apart again in one fixed way, coarse
# before fine, each class of residues giving up the value that leaves the least behind.


class _Family(NamedTuple):
    """Quotients with the same cofactor and numerator but for its constant; odd: the odd part of their divisors."""

    cofactor: Monomial
    terms: Terms
    odd: int


def fold_quotients(coefficients: dict[Monomial, int], quotient: MakeQuotient) -> None:
    """Rewrite the sums of quotients among the terms in the normal form of `decompose`."""
    seen: list[list[tuple[Monomial, int]]] = []
    while _fold_families(coefficients, quotient):
        # The whole part of one family may unsettle another. If this goes round in a circle, the least member is taken.
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
        # The quotients of a bounded numerator may be numbers; only division checks that.
        if numerator.terms[0][1] == 1 and numerator.interval[1] is None and not is_deep(numerator):
            family = _Family(without(monomial, quotients[0]), numerator.terms, divisor // (divisor & -divisor))
            families.setdefault(family, []).append((quotients[0], divisor))
    foldable = [family for family, members in families.items() if len(members) > 1 or members[0][1] == 2]
    if len(foldable) > 1:
        foldable.sort(key=lambda family: (-_level(family), _order_of_terms(family.terms), -family.odd, family.cofactor))
    for family in foldable:
        _fold_family(coefficients, family, families[family], quotient)
    return len(foldable) > 1 or any(_level(family) for family in foldable)


def _level(family: _Family) -> int:
    return max(atom.level for monomial, _ in family.terms for atom in monomial)


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
        levels = [1] + [d for d in range(2, size + 1) if size % d == 0 and (size // d).bit_count() == 1]
    for divisor, residue, factor in decompose(tuple(table), tuple(levels)):
        if divisor == 1:
            linear -= factor
        else:
            monomial = times(family.cofactor, (quotient(family.terms, residue, divisor),))
            coefficients[monomial] = coefficients.get(monomial, 0) + factor
    for monomial, factor in family.terms if linear else ():
        key = times(family.cofactor, monomial)
        coefficients[key] = coefficients.get(key, 0) - linear * factor


@lru_cache(_REMEMBERED)
def decompose(coefficients: tuple[int, ...], levels: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return quotients (d, r, factor), meaning `factor*((Y + r)//d)`, whose sum the coefficients describe.

    coefficients: c as above. levels: ascending divisors of len(coefficients) to use, from 1 to len(coefficients).
    Scaling the coefficients by any integer scales the answer. It is remembered, as adding to a sum of quotients folds
    those of every other numerator and divisor anew.
    """
    left = list(coefficients)
    quotients = []
    for divisor in levels:
        for residue in range(divisor):
            shared = _middle(left[residue::divisor])
            if shared:
                quotients.append((divisor, residue, shared))
                for place in range(residue, len(left), divisor):
                    left[place] -= shared
    return quotients


def _middle(values: Sequence[int]) -> int:
    """Return the median; of two in the middle the one nearer to 0, of opposite ones the one unlike the first value."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if low == -high:
        first = next((value for value in values if value), 0)
        return low if first > 0 else high
    return low if abs(low) < abs(high) else high
