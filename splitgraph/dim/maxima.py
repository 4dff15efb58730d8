"""Minimum and maximum of dimensions, in one normal form.

Only maxima are atoms, and their arguments are free of maxima: `max(a, b + max(c, d))` is the largest of a, b + c and
b + d, and where a maximum is subtracted from one argument it is added to all of them and subtracted from the result.
Of two values the larger is `a + max(0, b - a)`, with the common factor taken out and the leading sign positive
(`max(0, -d)` is `max(0, d) - d`), so that `N - min(N, 3)` is `max(0, N - 3)`, and minimum and maximum add up to the
sum. More than two values are taken relative to what they share, so that adding to each of them is adding to their
maximum. Where an argument is deep, they are only compared and sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd, prod

from splitgraph.dim.arithmetic import Dim, DimLike, atom_value, from_terms, sum_dims
from splitgraph.dim.atoms import MAX, NESTED_MAX, Atom, Monomial, add_into, const_of, is_deep, order_of
from splitgraph.dim.linear_systems import is_nonnegative

# Nested maxima are flattened up to this many arguments: comparing them pairwise costs the square.
_MOST_ARGUMENTS = 12

# More arguments than this are compared in groups, for the same reason.
_MOST_COMPARED = 32

_REMEMBERED = 4096


def dim_max(*dims: DimLike) -> DimLike:
    """The largest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_max needs at least one dimension")
    return _maximum(dims)


def dim_min(*dims: DimLike) -> DimLike:
    """The smallest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_min needs at least one dimension")
    return -_maximum(tuple(-dim for dim in dims))


def undominated(dims: Iterable[DimLike], is_at_least: Callable[[DimLike, DimLike], bool]) -> list[DimLike]:
    """The dims without those that are proved to be at most another one, in the order of `dims`, which should be fixed.

    A dim that was left out still rules out others: that a third is at most this dim may be all that can be proved.
    """
    every = list(dict.fromkeys(dims))
    larger: dict[DimLike, DimLike] = {}

    def largest_known(dim: DimLike) -> DimLike:
        while dim in larger:
            dim = larger[dim]
        return dim

    for dim in every:
        for other in every:
            # A dim that was left out for this one is equal to it if it is at least as large.
            if other is not dim and is_at_least(other, dim) and largest_known(other) is not dim:
                larger[dim] = other
                break
    return [dim for dim in every if dim not in larger]


@lru_cache(_REMEMBERED)
def _maximum(dims: tuple[DimLike, ...]) -> DimLike:
    shared: DimLike = 0
    args = _grouped(dims)
    seen: list[tuple[DimLike, list[DimLike]]] = []
    while True:
        # Flat before compared: what a whole maximum is at least does not say which of its arguments is.
        falling, flat = (0, args) if any(map(is_deep, args)) else _flattened(args)
        shared, args = shared - falling, undominated(sorted(flat, key=order_of), _is_at_least)
        if len(args) == 1:
            return shared + args[0]
        if any(map(is_deep, args)):
            return shared + atom_value(NESTED_MAX, tuple(args))
        places = [place for place, (_, earlier) in enumerate(seen) if earlier == args]
        if places:
            # Quotients fold differently beside other terms, so that this can go round in a circle: take its least
            # member.
            shared, args = min(seen[places[0] :], key=lambda state: [order_of(arg) for arg in state[1]])
            return shared + _atom(args)
        seen.append((shared, args))
        base = _base(args)
        if base == 0:
            return shared + _atom(args)
        shared, args = shared + base, [arg - base for arg in args]


def _grouped(dims: Iterable[DimLike]) -> list[DimLike]:
    """The dims; if they are too many to compare pairwise, the maxima of groups of them."""
    found = list(dict.fromkeys(dims))
    while len(found) > _MOST_COMPARED:
        found.sort(key=order_of)
        groups = [tuple(found[start : start + _MOST_COMPARED]) for start in range(0, len(found), _MOST_COMPARED)]
        found = list(dict.fromkeys(map(_maximum, groups)))
    return found


def _atom(args: list[DimLike]) -> DimLike:
    """The maximum of sorted args, with their common factor taken out."""
    factor = gcd(*(number for arg in args for number in _numbers(arg)))
    return factor * atom_value(MAX, tuple(_divided(arg, factor) for arg in args))


def _base(args: list[DimLike]) -> DimLike:
    """The value that is subtracted from all args: of two args, the one that leaves 0 and a positive leading
    coefficient.

    Of more, the lower median of each coefficient, or the constant of the shortest arg.
    """
    if len(args) == 2:
        difference = args[1] - args[0]
        return args[1] if isinstance(difference, Dim) and difference.terms[0][1] < 0 else args[0]
    tables = [dict(arg.terms) if isinstance(arg, Dim) else {} for arg in args]
    middle = (len(args) - 1) // 2
    medians: dict[Monomial, int] = {}
    for monomial in {m: None for table in tables for m in table}:
        medians[monomial] = sorted(table.get(monomial, 0) for table in tables)[middle]
    common = from_terms(medians, 0)
    return common if common != 0 else const_of(args[0])


def _flattened(args: list[DimLike]) -> tuple[DimLike, list[DimLike]]:
    """(falling, flat) with max(args) == max(flat) - falling; (0, args) when there is nothing to flatten."""
    falling = _falling_maxima(args)
    raised = [arg + falling for arg in args]
    count = sum(_count_alternatives(arg) for arg in raised)
    if len(args) < count <= _MOST_ARGUMENTS:
        return falling, [flat for arg in raised for flat in _alternatives(arg)]
    return 0, args


def _maxima(dim: DimLike) -> list[tuple[Atom, int]]:
    """The maxima that are terms of their own, with their coefficients."""
    if isinstance(dim, int):
        return []
    return [(m[0], c) for m, c in dim.terms if len(m) == 1 and m[0].kind == MAX]


def _falling_maxima(dims: Iterable[DimLike]) -> DimLike:
    """The sum to add to each dim so that no dim subtracts a maximum."""
    most: dict[Atom, int] = {}
    for dim in dims:
        for atom, coefficient in _maxima(dim):
            most[atom] = max(most.get(atom, 0), -coefficient)
    return sum_dims(coefficient * atom_value(MAX, atom.args) for atom, coefficient in most.items())


def _count_alternatives(dim: DimLike) -> int:
    return prod(len(atom.args) for atom, _ in _maxima(dim))


def _alternatives(dim: DimLike) -> list[DimLike]:
    """Values free of maxima whose maximum is the dim: `R + c*max(a, b)` is the larger of `R + c*a` and `R + c*b`."""
    found = [dim]
    for atom, coefficient in _maxima(dim):
        maximum = atom_value(MAX, atom.args)
        found = [one + coefficient * (arg - maximum) for one in found for arg in atom.args]
    return found


def _is_at_least(one: DimLike, other: DimLike) -> bool:
    difference = one - other
    return difference >= 0 if isinstance(difference, int) else is_nonnegative(difference)


def _numbers(dim: DimLike) -> list[int]:
    return [dim] if isinstance(dim, int) else [dim.const, *(c for _, c in dim.terms)]


def _divided(dim: DimLike, factor: int) -> DimLike:
    if isinstance(dim, int) or factor == 1:
        return dim // factor
    coefficients: dict[Monomial, int] = {}
    const = add_into(coefficients, dim)
    return from_terms({m: c // factor for m, c in coefficients.items()}, const // factor)
