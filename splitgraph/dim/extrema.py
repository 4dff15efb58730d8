"""Minimum and maximum of dimensions, in one normal form.

Only maxima are atoms. One of two values is `a + max(0, b - a)` with the common factor taken out and the leading sign positive
(`max(0, -d)` is `max(0, d) - d`), so that `N - min(N, 3)` is `max(0, N - 3)` and `min + max` is the sum. More than two values are
taken relative to what they share, so that adding to each of them is adding to the maximum.
"""

from __future__ import annotations

from math import gcd

from splitgraph.dim.arithmetic import Dim, DimLike, add_into, atom_value, from_terms
from splitgraph.dim.atoms import MAX, Atom, Monomial, monomial_order

# Nested maxima are flattened up to this many arguments: comparing them pairwise costs the square.
_MOST_ARGUMENTS = 8


def dim_max(*dims: DimLike) -> DimLike:
    """The largest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_max needs at least one dimension")
    return _maximum(list(dims))


def dim_min(*dims: DimLike) -> DimLike:
    """The smallest of the dimensions (at least one); an int when all are."""
    if not dims:
        raise ValueError("dim_min needs at least one dimension")
    return -_maximum([-dim for dim in dims])


def _maximum(dims: list[DimLike]) -> DimLike:
    flat = [part for dim in dims for part in _alternatives(dim)] if len(dims) <= _MOST_ARGUMENTS else dims
    args = _undominated(flat if len(flat) <= _MOST_ARGUMENTS else dims)
    if len(args) == 1:
        return args[0]
    if len(args) == 2:
        return args[0] + _positive_part(args[1] - args[0])
    shared, relative = _relative(args)
    factor = gcd(*(number for arg in relative for number in _numbers(arg)))
    reduced = sorted((_divided(arg, factor) for arg in relative), key=_order)
    return shared + factor * atom_value(MAX, tuple(reduced))


def _positive_part(dim: DimLike) -> DimLike:
    """`max(0, dim)`."""
    if isinstance(dim, int):
        return max(0, dim)
    low, high = dim.interval
    if low is not None and low >= 0:
        return dim
    if high is not None and high <= 0:
        return 0
    rising, falling = _lone_maximum(dim, 1), _lone_maximum(dim, -1)
    if rising is not None and falling is None:
        return _maximum([0, dim])
    if falling is not None and rising is None:
        return dim + _maximum([0, -dim])
    if dim.terms[0][1] < 0:
        return dim + _positive_part(-dim)
    factor = gcd(*_numbers(dim))
    return factor * atom_value(MAX, (0, _divided(dim, factor)))


def _lone_maximum(dim: Dim, sign: int) -> tuple[Atom, int] | None:
    """The maximum that the dim contains as a term of its own with that sign, None when there is not exactly one."""
    found = [(m[0], c) for m, c in dim.terms if len(m) == 1 and m[0].kind == MAX and c * sign > 0]
    return found[0] if len(found) == 1 and len(found[0][0].args) <= _MOST_ARGUMENTS else None


def _alternatives(dim: DimLike) -> list[DimLike]:
    """Values whose maximum is the dim: `R + c*max(a, b)` is the larger of `R + c*a` and `R + c*b`."""
    if isinstance(dim, int):
        return [dim]
    found = _lone_maximum(dim, 1)
    if found is None:
        return [dim]
    atom, coefficient = found
    rest = dim - coefficient * atom_value(MAX, atom.args)
    return [rest + coefficient * arg for arg in atom.args]


def _undominated(dims: list[DimLike]) -> list[DimLike]:
    """The dims without those that another is at least as large as, whatever the symbols."""
    kept: list[DimLike] = []
    for dim in dims:
        if any(_at_least(other, dim) for other in kept):
            continue
        kept = [other for other in kept if not _at_least(dim, other)]
        kept.append(dim)
    return kept


def _at_least(one: DimLike, other: DimLike) -> bool:
    difference = one - other
    low = difference if isinstance(difference, int) else difference.interval[0]
    return low is not None and low >= 0


def _relative(args: list[DimLike]) -> tuple[DimLike, list[DimLike]]:
    """(shared, the args less shared): the lower median of each coefficient, and the constant of the shortest arg."""
    tables = [dict(arg.terms) if isinstance(arg, Dim) else {} for arg in args]
    middle = (len(args) - 1) // 2
    shared: dict[Monomial, int] = {}
    for monomial in {m for table in tables for m in table}:
        shared[monomial] = sorted(table.get(monomial, 0) for table in tables)[middle]
    common = from_terms(shared, 0)
    relative = [arg - common for arg in args]
    shortest = min(relative, key=_order)
    const = shortest if isinstance(shortest, int) else shortest.const
    return common + const, [arg - const for arg in relative]


def _order(dim: DimLike) -> tuple[object, ...]:
    if isinstance(dim, int):
        return (0, [], dim)
    return (len(dim.terms), [(*monomial_order(term), term[1]) for term in dim.terms], dim.const)


def _numbers(dim: DimLike) -> list[int]:
    return [dim] if isinstance(dim, int) else [dim.const, *(c for _, c in dim.terms)]


def _divided(dim: DimLike, factor: int) -> DimLike:
    if isinstance(dim, int):
        return dim // factor
    coefficients: dict[Monomial, int] = {}
    const = add_into(coefficients, dim)
    return from_terms({m: c // factor for m, c in coefficients.items()}, const // factor)
