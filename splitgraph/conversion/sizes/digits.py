"""Dimensions as ordered digits: factors of a dimension, from the outside in.

A Reshape keeps the order of elements, so that `24*N` may be [N, 24] or [24, N]. It only regroups digits:
`reshape_targets.py` reads what its target says in terms of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from splitgraph.dim import DimLike

# What is cut to a limit.
_LIMITED = re.compile(r"\b(?:max|min)\(")


class Digit(NamedTuple):
    """A factor of a dimension: a number, or what is no product, as N or (H + 1)//2. home: the axis that it had before
    it was merged with others, and the rank of that value; None if it was not.
    """

    dim: DimLike
    home: tuple[int, int] | None = None


# A dimension as digits; None if their order is not known.
Order = tuple[Digit, ...] | None


def is_one_factor(dim: DimLike) -> bool:
    """Return True for what is no product of dimensions: N, (H + 1)//2, N + 5."""
    if isinstance(dim, int):
        return True
    return parted(dim)[0] == 1 and all(len(monomial) == 1 for monomial, _ in dim.terms)


def is_limited(dim: DimLike) -> bool:
    """Return True for a dimension that is cut to a limit, as min(T, 240)."""
    return _LIMITED.search(str(dim)) is not None


def parted(dim: DimLike) -> tuple[int, DimLike]:
    """Return a dimension as a number times a part that no number divides; a number has the part 1."""
    if isinstance(dim, int):
        return dim, 1
    times = gcd(dim.const, *(coefficient for _, coefficient in dim.terms))
    return times, dim // times


def regrouped(digits: Sequence[Digit], shape: Sequence[DimLike], axis: int) -> Order:
    """Return the digits of one axis of what a Reshape makes of them; None if no digits give its dimensions. A number
    may be cut in two, anything else may not.
    """
    waiting = [digit for digit in reversed(digits) if digit.dim != 1]
    taken: list[Digit] = []
    for dim in shape[: axis + 1]:
        taken, so_far = [], 1
        while so_far != dim:
            if not waiting:
                return None
            digit = waiting.pop()
            part = _part_of(dim, so_far, digit.dim)
            if part != digit.dim and isinstance(digit.dim, int):
                waiting.append(Digit(digit.dim // part))
                digit = Digit(part)
            taken.append(digit)
            so_far = so_far * digit.dim  # type: ignore[assignment]
    return tuple(taken)


def _part_of(dim: DimLike, so_far: DimLike, digit: DimLike) -> int:
    """Return which part of a number completes a dimension; all of it if none does."""
    if not isinstance(digit, int):
        return 0
    missing, rest = divmod(parted(dim)[0], parted(so_far)[0])
    is_last = rest == 0 and missing and digit % missing == 0 and so_far * missing == dim
    return missing if is_last else digit
