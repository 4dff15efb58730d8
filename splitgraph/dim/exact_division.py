"""Division of polynomials as far as it is exact: by a polynomial that divides, and by factors of a single term."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, TypeVar

from splitgraph.dim.atoms import MOST_WRITTEN, Monomial, Polynomial, Value, monomial_order, quotient_of, without

T = TypeVar("T")
# Makes a dimension of terms and a constant.
FromTerms = Callable[[dict[Monomial, int], int], T]


def exact_quotient(numerator: Value, divisor: Polynomial, from_terms: FromTerms[T]) -> T | None:
    """The quotient when the polynomial divides without a remainder, else None."""
    if isinstance(numerator, int):
        return None
    lead, lead_coefficient = divisor.terms[0]
    left: Value = numerator
    found: Any = 0
    for _ in range(MOST_WRITTEN):
        if isinstance(left, int):
            break
        monomial = quotient_of(left.terms[0][0], lead)
        if monomial is None or left.terms[0][1] % lead_coefficient:
            return None
        step: Any = from_terms({monomial: 1}, 0) if monomial else 1
        step = step * (left.terms[0][1] // lead_coefficient)
        before, left = left, left - step * divisor
        found = found + step
        if not isinstance(left, int) and not monomial_order(before.terms[0]) < monomial_order(left.terms[0]):
            return None
    quotient: T = found
    return quotient if isinstance(left, int) and left == 0 else None


def cancel(numerator: Value, divisor: Polynomial, from_terms: FromTerms[T]) -> tuple[T | int, T | int, T | int]:
    """(whole, rest, reduced divisor) with numerator//divisor == whole + rest//reduced, for a divisor of one term."""
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
