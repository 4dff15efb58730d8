"""Simple conditions for a dimension to be at least a number: without maxima, quotients and products where possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import gcd

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms
from splitgraph.dim.atoms import FLOOR, MAX, Atom, atoms_by_level
from splitgraph.dim.facts import Facts
from splitgraph.dim.obligation import Obligation

# The most steps for taking a value apart: nobody reads a longer list of conditions.
_MOST_STEPS = 32


def plain_conditions(value: DimLike, is_known: Callable[[DimLike], bool]) -> list[Dim] | None:
    """Return dims that are all >= 0 exactly if the value is; None if the value is never >= 0.

    `5 - max(a, b)` gives `5 - a` and `5 - b`, `N//2 - 1` gives `N - 2`, `N*M - 1` gives `N - 1` and `M - 1`. is_known:
    whether a value is known to be >= 0; such values are left out. If the parts are not plainer, the value itself is
    returned.
    """
    conditions: dict[Dim, None] = {}
    waiting = [value]
    for _ in range(_MOST_STEPS):
        if not waiting:
            return list(conditions)
        candidate = waiting.pop()
        if is_known(candidate):
            continue
        if isinstance(candidate, int) or is_known(-1 - candidate):
            return None
        parts = _parts(candidate, is_known)
        if parts is None:
            conditions[candidate] = None
        else:
            waiting += reversed(parts)
    return [value] if isinstance(value, Dim) else None


def plain_obligation(obligation: Obligation) -> Obligation:
    """Return the obligation without its maxima, if one relation says the same: `max(a, b) == b` is `b >= a`."""
    difference = obligation.lhs - obligation.rhs
    if not any(atom.kind == MAX for atom in atoms_by_level([difference])):
        return obligation
    if obligation.relation == "==":
        known = Facts()
        sign = next((sign for sign in (1, -1) if known.prove_ge(sign * difference, 0)), 0)
        # A value that is never below 0 is 0 exactly if it is not above 0.
        difference = -sign * difference
    conditions = plain_conditions(difference, lambda value: Facts().prove_ge(value, 0)) if difference != 0 else None
    return Obligation(conditions[0], ">=", 0) if conditions is not None and len(conditions) == 1 else obligation


def without_factors(obligation: Obligation, is_positive: Callable[[Dim], bool]) -> Obligation:
    """Return the obligation divided by every factor of both sides that is known to be at least 1: `N*M == 7*N` is `M ==
    7` for such an N. is_positive: whether a factor is.
    """
    difference = obligation.lhs - obligation.rhs
    divided = difference
    for factor in _common_factors(difference):
        quotient = divided // factor if isinstance(divided, Dim) else 0
        if quotient * factor == divided and is_positive(factor):
            divided = quotient
    shared = _shared_sum(obligation.lhs, obligation.rhs) if divided is difference else None
    if shared is not None and is_positive(shared):
        divided = difference // shared
    if obligation.relation == "==":
        divided = _without_coprime_factor(divided)
    return obligation if divided is difference else Obligation(divided, obligation.relation, 0)


def _without_coprime_factor(difference: DimLike) -> DimLike:
    """Return the remainder of a value that is 0 exactly if this remainder is: of N for that of `7*N` divided by 16."""
    for monomial, coefficient in difference.terms if isinstance(difference, Dim) else ():
        number, divisor = monomial[0].args if len(monomial) == 1 and monomial[0].kind == FLOOR else (0, 0)
        if not isinstance(number, Dim) or number.const or coefficient != -divisor or difference != number % divisor:
            continue
        factor = gcd(*(each for _, each in number.terms))
        if factor > 1 and gcd(factor, divisor) == 1:
            remainder: DimLike = (number // factor) % divisor
            return remainder
    return difference


def _common_factors(value: DimLike) -> list[Dim]:
    """Return the atoms that are factors of every term, each as often as it is one of all; none if there is a
    constant.
    """
    if isinstance(value, int) or value.const:
        return []
    common = Counter(value.terms[0][0])
    for monomial, _ in value.terms[1:]:
        common &= Counter(monomial)
    return [dim for atom in sorted(common.elements()) if isinstance(dim := _dim(atom), Dim)]


def _shared_sum(lhs: DimLike, rhs: DimLike) -> Dim | None:
    """Return a sum that is a factor of both sides, up to a number: N + 1 of `N*M + M` and `7*N + 7`."""
    for side in (lhs, rhs):
        if isinstance(side, Dim) and len(side.terms) + bool(side.const) > 1:
            number = gcd(side.const, *(coefficient for _, coefficient in side.terms))
            factor = side // number
            if isinstance(factor, Dim) and all((each // factor) * factor == each for each in (lhs, rhs)):
                return factor
    return None


def _parts(value: Dim, is_known: Callable[[DimLike], bool]) -> list[DimLike] | None:
    """Return plainer values that are all >= 0 exactly if this value is; None if there are none."""
    for monomial, coefficient in value.terms:
        if len(monomial) == 1 and monomial[0].kind == MAX:
            atom = monomial[0]
            alternatives = [value + coefficient * (arg - _dim(atom)) for arg in atom.args]
            if coefficient < 0:
                return alternatives
            # One alternative is enough. The result is plainer only if a single one is possible.
            possible = [one for one in alternatives if not is_known(-1 - one)]
            if len(possible) == 1:
                return possible
    return _of_one_term(value, is_known) if len(value.terms) == 1 else None


def _of_one_term(value: Dim, is_known: Callable[[DimLike], bool]) -> list[DimLike] | None:
    [(monomial, coefficient)] = value.terms
    if len(monomial) == 1:
        atom = monomial[0]
        number, divisor = atom.args if atom.kind == FLOOR else (0, 0)
        if not isinstance(divisor, int) or divisor < 1:
            return None
        if coefficient > 0:
            return [number + divisor * (value.const // coefficient)]
        return [divisor * (value.const // -coefficient + 1) - 1 - number]
    factors = [_dim(atom) for atom in monomial]
    if coefficient > 0 and -coefficient <= value.const < 0 and all(map(is_known, factors)):
        return [factor - 1 for factor in factors]
    return None


def _dim(atom: Atom) -> DimLike:
    return from_terms({(atom,): 1}, 0)
