"""What constants say in terms of dimensions: the target of a Reshape, the bounds of a slice, the lengths of a split.

A Reshape keeps the order of elements. So a dimension of the data has its place in the target where as many elements
stand before and after it: (N, 7, 768) to [8, 7, 12, 64], with N of 8, is [N, 7, 12, 64], and to [56, 768] it is
[7*N, 768]. Only a dimension of 1 can have several places: (N, 16) to [1, 1, 16]. A
batch gets a place of its own, on the axis that it had if it can; any other one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd, prod
from types import MappingProxyType
from typing import NamedTuple

from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, product, symbols_of

# Stand for dimensions of unknown size: no number in a model has such a factor.
_PRIMES = (1000003, 1000033, 1000037, 1000039, 1000081, 1000099, 1000117, 1000121)
# The end of a slice that takes everything that is left.
TO_THE_END = 2**63 - 1


class Ambiguous(Exception):
    """A constant can mean several things. The argument lists them, as people read it."""


class _MovingSize(NamedTuple):
    """A dimension of the data that changes: `dim` is `times` times `part`, whose old size is `size`. before, after: how
    many elements stand before and after it in the order of elements.
    """

    axis: int
    times: int
    part: DimLike
    size: int
    before: int
    after: int


class _Spot(NamedTuple):
    """A place in the target: the entry, and the factors before and after the part in it."""

    entry: int
    before: int
    after: int


def read_target(
    dims: Sequence[DimLike],
    target: Sequence[int],
    wanted: Wanted,
    outer: Mapping[int, int] = MappingProxyType({}),
    *,
    zeros_are_sizes: bool = False,
    decided: Mapping[int, DimLike] = MappingProxyType({}),
    choose: Callable[[int, int], int] | None = None,
) -> list[DimLike] | None:
    """Return the target of a Reshape in terms of the dimensions of its data; an entry of 0 or -1 stays where that says
    the same. None for a target that does not fit the old sizes.

    outer: of 24*N along an axis, what stands outside of N, where that is known. decided: entries that are known.
    choose: asked where a batch has several places; gets the axis of the data and how many there are, and returns the
    number of one. Raises Ambiguous for other dimensions that have several places.
    """
    parts = [parted(dim) for dim in dims]
    before = [wanted.before(part) for _, part in parts]
    unknown = list(dict.fromkeys(part for part in before if isinstance(part, Dim)))
    if len(unknown) > len(_PRIMES):
        return None
    primes: dict[DimLike, int] = dict(zip(unknown, _PRIMES, strict=False))
    numbers = [
        times * (part if isinstance(part, int) else primes[part])
        for (times, _), part in zip(parts, before, strict=True)
    ]
    out = _resolved(numbers, target, zeros_are_sizes=zeros_are_sizes)
    if out is None:
        return None
    entries = [_named(number, primes) for number in out]
    for factor in _factors(dims, numbers, wanted):
        spots = sorted(_spots(factor, out, outer.get(factor.axis)), key=lambda spot: _rank(spot, factor, dims, out))
        if not spots:
            return None
        rest = [spot for spot in spots if target[spot.entry] == -1]
        if rest and not any(spot.before == spot.after == 1 for spot in spots):
            spots = rest
        if any(isinstance(each, Dim) and symbols_of(each) & symbols_of(factor.part) for each in decided.values()):
            continue
        taken = 0
        if not symbols_of(factor.part) <= wanted.batch:
            # Items of a batch are checked one by one; of any other dimension, nothing tells which place is right.
            likely = [spot for spot in spots if spot.before == spot.after == 1] or spots
            if len(likely) > 1:
                raise Ambiguous(", or ".join(_told(spot, factor, entries[spot.entry]) for spot in likely))
        elif len(spots) > 1 and choose is not None:
            taken = choose(factor.axis, len(spots))
        entries[spots[taken].entry] = entries[spots[taken].entry] // factor.size * factor.part
    return _as_written(dims, target, entries, zeros_are_sizes=zeros_are_sizes)


def _told(spot: _Spot, factor: _MovingSize, entry: DimLike) -> str:
    return f"{entry // factor.size * factor.part} in entry {spot.entry} of the target"


def parted(dim: DimLike) -> tuple[int, DimLike]:
    """Return a dimension as a number times a part that no number divides; a number has the part 1."""
    if isinstance(dim, int):
        return dim, 1
    times = gcd(dim.const, *(coefficient for _, coefficient in dim.terms))
    return times, dim // times


def _named(number: int, primes: Mapping[DimLike, int]) -> DimLike:
    """Return a number with the dimensions again for which primes stand."""
    dims: list[DimLike] = []
    for dim, prime in primes.items():
        while number and number % prime == 0:
            number //= prime
            dims.append(dim)
    return product([number, *dims])


def _resolved(numbers: Sequence[int], target: Sequence[int], *, zeros_are_sizes: bool) -> list[int] | None:
    """Return the numbers that a target of numbers stands for; None if it does not fit."""
    out = list(target)
    for axis, entry in enumerate(target):
        if entry == 0 and not zeros_are_sizes:
            if axis >= len(numbers):
                return None
            out[axis] = numbers[axis]
    total, rest = prod(numbers), [axis for axis, entry in enumerate(out) if entry == -1]
    if rest:
        known = prod(entry for entry in out if entry != -1)
        if len(rest) > 1 or known <= 0 or total % known:
            return None
        out[rest[0]] = total // known
    return out if prod(out) == total and total > 0 else None


def _factors(dims: Sequence[DimLike], numbers: Sequence[int], wanted: Wanted) -> Iterator[_MovingSize]:
    for axis, dim in enumerate(dims):
        if not isinstance(dim, Dim) or not wanted.moves(dim):
            continue
        times, part = parted(dim)
        yield _MovingSize(axis, times, part, numbers[axis] // times, prod(numbers[:axis]), prod(numbers[axis + 1 :]))


def _spots(factor: _MovingSize, out: Sequence[int], outside: int | None) -> Iterator[_Spot]:
    """Yield the places where as many elements stand before and after the part as in the data. outside: what stands
    outside of the part in its own dimension; None if that is not known: 1 first.
    """
    seen: set[int] = set()
    for outer in _divisors(factor.times) if outside is None else (outside,):
        before, after = factor.before * outer, factor.after * (factor.times // outer)
        for entry, size in enumerate(out):
            left, right = prod(out[:entry]), prod(out[entry + 1 :])
            if entry in seen or before % left or after % right:
                continue
            inside = before // left, after // right
            if inside[0] * factor.size * inside[1] == size:
                seen.add(entry)
                yield _Spot(entry, *inside)


def _divisors(number: int) -> list[int]:
    """Return the divisors of a number, 1 first."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0] if number < 1 << 16 else [1]


def _rank(spot: _Spot, factor: _MovingSize, dims: Sequence[DimLike], out: Sequence[int]) -> tuple[bool, int, int]:
    """Sort places: of its own first; then the axis that it had, counted from the nearer end."""
    is_own = spot.before == spot.after == 1
    behind = len(dims) - 1 - factor.axis
    distance = abs(spot.entry - factor.axis) if factor.axis <= behind else abs(len(out) - 1 - spot.entry - behind)
    return not is_own, distance if is_own else 0, spot.entry


def _as_written(
    dims: Sequence[DimLike],
    target: Sequence[int],
    entries: Sequence[DimLike],
    *,
    zeros_are_sizes: bool,
) -> list[DimLike]:
    """Return the entries with the 0 and -1 of the target where these say the same."""
    written: list[DimLike] = []
    for axis, entry in enumerate(entries):
        copies = target[axis] == 0 and not zeros_are_sizes
        written.append(target[axis] if target[axis] == -1 or (copies and entry == dims[axis]) else entry)
    return written


def read_slice(start: int, end: int, step: int, old: int) -> tuple[int, int]:
    """Return the bounds of a slice along a dimension that changes, whose old size is `old`: an end there is the end of
    any size. Raises Ambiguous for a half, and for the last element by its number.
    """
    if step < 0:
        # It begins at the last element, which a number says as well as -1.
        return (-1 if old > 1 and start == old - 1 else start), end
    if start > 0 and end >= old and start == old - 1:
        raise Ambiguous(f"the last element, or all from {start} on, or element {start} whatever the size")
    if old > 2 and ((start == 0 and 2 * end == old) or (2 * start == old and end >= old)):
        raise Ambiguous(f"half of the dimension, or {old // 2} elements whatever its size")
    return start, TO_THE_END if end == old else end
