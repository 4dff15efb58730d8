"""Reducing `terms//divisor`, for an integer divisor: multiples and common factors out, nested quotients joined."""

from __future__ import annotations

from math import gcd

from splitgraph.dim.atoms import FLOOR, MAX, Atom, Monomial, Terms, add_into, monomial_order, times


def joined(
    whole: dict[Monomial, int], sign: int, terms: Terms, const: int, divisor: int
) -> tuple[dict[Monomial, int], int, int]:
    """(rest, const, divisor) with `(terms + const)//divisor == whole + (rest + const)//divisor`.

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
    """The remainder of each coefficient; the multiples of the divisor are added to `sign * whole`."""
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
    """True for a maximum that reads as subtracted, as in `N - max(0, N - 8)`, even where -1 and 1 are alike."""
    coefficient = rest[monomial]
    argument = monomial[-1].args[1]
    if not isinstance(argument, int):
        leading, factor = argument.terms[0]
        opposite = -coefficient * factor % divisor
        if opposite and rest.get(times(leading, monomial[:-1])) == opposite:
            return True
    return 2 * coefficient > divisor


def joinable(rest: dict[Monomial, int], divisor: int) -> tuple[Atom, int] | None:
    """The E//a of `(E//a + R)//b` or `(R - E//a)//b`, which are quotients by a*b, and its a; None if there is none."""
    found: Atom | None = None
    for monomial in rest:
        if not any(atom.kind == FLOOR for atom in monomial):
            continue
        if found is not None or len(monomial) > 1:
            return None
        found = monomial[0]
    if found is None or rest[(found,)] not in (1, divisor - 1):
        return None
    inner_divisor = found.args[1]
    return (found, inner_divisor) if isinstance(inner_divisor, int) else None


def is_better_negated(terms: dict[Monomial, int], divisor: int) -> bool:
    """True when the first coefficient, modulo the divisor, that is not half of it is nearer to it than to 0."""
    for _, coefficient in sorted(terms.items(), key=monomial_order):
        if 2 * (coefficient % divisor) != divisor:
            return 2 * (coefficient % divisor) > divisor
    return False
