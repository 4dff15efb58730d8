"""Find the sizes at which changed nodes decide something about sizes: where a length passes a limit, whatever function
of it is compared, and where the two models compute another size.

The nodes that compute with sizes alone need no tensors of these sizes. So they run alone, in the reference evaluator,
for one size after the other: each small one, and then in steps up to 2^22. Between two steps at which a comparison has
another result, halving finds the first size of the second one. Both models then run at such sizes, and beside them; and
at those of two symbols at once.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from splitgraph.dim import DimLike, evaluate
from splitgraph.model.value_type import UNKNOWN
from splitgraph.verification.inputs.solver import SymbolSizes
from splitgraph.verification.regions.finding.find import Border, ModelRegions
from splitgraph.verification.regions.finding.sides import ModelSide
from splitgraph.verification.regions.sizes.size_numbers import SizeNumbers
from splitgraph.verification.regions.sizes.size_part import LARGEST, SizePart
from splitgraph.verification.verification import UNSEARCHED, Region

# Each size up to the first number is tried, and then so many for each doubling.
_EACH_SIZE, _STEPS = 128, 4
# The models run at so many changes at most of what one comparison says.
_MOST_CHANGES = 4
# Of each symbol, so many lengths are combined with those of another one.
_MOST_LENGTHS = 9

# The sizes of the symbols for a length, one for each way to reach it; None where the model does not take it.
SizesAt = Callable[[int], Sequence[SymbolSizes | None]]


class SizeLimit(NamedTuple):
    """A length at which a changed node decides otherwise than at the one before, or beside it. which: the model of the
    node, "value" for a value that is not the same there. name: of the value, or the location of the node.
    """

    length: int
    which: Literal["first", "second", "value"]
    name: str

    def is_of(self, region: Region, outputs: Sequence[Border]) -> bool:
        """Return True for a limit of a region. outputs: of the region."""
        if self.which == "value":
            return self.name in {border.before for border in outputs}
        return self.name in (region.nodes_before if self.which == "first" else region.nodes_after)

    def __str__(self) -> str:
        what = f"`{self.name}` is not the same" if self.which == "value" else f"{self.name} decides otherwise"
        return f"{what} at a size of {self.length}"


class MissedLimits(NamedTuple):
    """Limits at which the models did not run. unreached: no input has their length. late: there was no time for them.
    unsearched: what was asked about that was not looked at from a length on.
    """

    unreached: Sequence[SizeLimit] = ()
    late: Sequence[SizeLimit] = ()
    unsearched: Sequence[SizeLimit] = ()

    def judged(self, region: Region, outputs: Sequence[Border]) -> Region:
        """Return a region that is equal as "not-run" where one of its limits is unreached, and as open where there was
        no time for one; every other region as it is. outputs: of the region.
        """
        if region.verdict != "equal":
            return region
        never, later, further = (next((each for each in own if each.is_of(region, outputs)), None) for own in self)
        if never is not None:
            return replace(region, verdict="not-run", reason=f"{never}, which no run had")
        if later is not None:
            return replace(region, is_open=True, reason=f"{UNSEARCHED} this: {later}")
        if further is not None:
            return replace(region, is_open=True, reason=f"{UNSEARCHED} sizes from {further.length} on")
        return region


class SizeSearch(NamedTuple):
    """What was found: the lengths at which the models should run, the smallest ones first. unsearched: where the time
    was over before, the first size that was not looked at, for each node and value that was asked about. turning: the
    lengths of limits, each with the place of its sizes among those that `sizes_at` gives.
    """

    limits: Sequence[SizeLimit]
    unsearched: Sequence[SizeLimit] = ()
    turning: Collection[tuple[int, int]] = ()


# What is told of a size: the model and the node, or a value.
_Which = Literal["first", "second", "value"]
_What = tuple[_Which, str]
_Told = dict[_What, bytes]
_SIDES: tuple[_Which, _Which] = ("first", "second")


def find_size_limits(found: ModelRegions, sizes_at: SizesAt, deadline: float) -> SizeSearch:
    """Return the lengths at which the models should run. deadline: until which time they are looked for."""
    changed = [
        {index for region in found.regions for index in (region.before, region.after)[number]} for number in (0, 1)
    ]
    borders = {border for region in found.regions for border in region.outputs}
    numbers = SizeNumbers()
    parts = [SizePart(side, own, numbers) for side, own in zip(found.sides, changed, strict=True)]
    shared = [border for border in borders if border.before in parts[0].sized and border.after in parts[1].sized]
    shared = [each for each in shared if parts[0].number_of(each.before) != parts[1].number_of(each.after)]
    names = [border.before for border in shared], [border.after for border in shared]
    are_open = [part.prepare(own) for part, own in zip(parts, names, strict=True)]
    shapes = [border for border in borders if _shapes_may_differ(found, border)]
    limits = {
        SizeLimit(length, which, node)
        for which, part in zip(_SIDES, parts, strict=True)
        for length, node in part.extents()
        if any(sizes is not None for sizes in sizes_at(length))
    }
    if not shapes and not any(are_open):
        return SizeSearch(sorted(limits))
    asked: set[_What] = {("value", border.before) for border in (*shared, *shapes)}
    asked |= {(which, node) for which, part in zip(_SIDES, parts, strict=True) for node in part.deciders()}

    @cache
    def told(length: int) -> list[_Told]:
        return [
            {} if sizes is None else _told(parts, shared, sizes) | _told_shapes(found, shapes, sizes)
            for sizes in sizes_at(length)
        ]

    last: dict[tuple[int, _What], int] = {}
    turning = set[tuple[int, int]]()
    for length in _ladder():
        if time.monotonic() > deadline:
            return SizeSearch(sorted(_fewest(limits)), sorted(SizeLimit(length, *what) for what in asked), turning)
        for place, says in enumerate(told(length)):
            for what in says:
                low = last.get((place, what), length)
                last[place, what] = length
                if told(low)[place][what] != says[what]:
                    first = _first_change(told, (low, length), place, what)
                    near = [each for each in (first - 1, first, first + 1) if any(told(each))]
                    limits |= {SizeLimit(each, *what) for each in near}
                    turning |= {(place, each) for each in near}
    return SizeSearch(sorted(_fewest(limits)), turning=turning)


def lengths_of_two(search: SizeSearch, names: Sequence[str | None]) -> Iterator[dict[str, int]]:
    """Yield lengths of limits for two symbols at once: a model may decide otherwise only where both meet theirs. names:
    the symbol that each of the sizes is about which `sizes_at` gives, None for several.
    """
    alone = {
        name: sorted(length for each, length in search.turning if each == place)[:_MOST_LENGTHS]
        for place, name in enumerate(names)
        if name is not None
    }
    for one, other in itertools.combinations(alone, 2):
        yield from ({one: left, other: right} for left, right in itertools.product(alone[one], alone[other]))


def unshared(limits: Sequence[SizeLimit]) -> list[SizeLimit]:
    """Return the limits that only one model has: what both decide at one length, they decide alike."""
    lengths = [{limit.length for limit in limits if limit.which == which} for which in _SIDES]
    return [limit for limit in limits if limit.which == "value" or limit.length not in lengths[0] & lengths[1]]


def _ladder() -> list[int]:
    doublings = int(math.log2(LARGEST / _EACH_SIZE) * _STEPS)
    # Many models take multiples of 8 alone.
    steps = (round(_EACH_SIZE / 8 * 2 ** (step / _STEPS)) * 8 for step in range(doublings + 1))
    return [*range(1, _EACH_SIZE), *dict.fromkeys(steps)]


def _first_change(told: Callable[[int], list[_Told]], ends: tuple[int, int], place: int, what: _What) -> int:
    """Return the first size, between two, at which something is not what it is at the smaller one."""
    low, high = ends
    says = told(low)[place][what]
    while high - low > 1:
        middle = (low + high) // 2
        results = told(middle)
        is_same = place < len(results) and results[place].get(what, says) == says
        low, high = (middle, high) if is_same else (low, middle)
    return high


def _fewest(limits: Collection[SizeLimit]) -> Iterator[SizeLimit]:
    """Yield the first limits of each node or value."""
    for what in {limit[1:] for limit in limits}:
        yield from sorted(limit for limit in limits if limit[1:] == what and limit.length > 1)[: 3 * _MOST_CHANGES]


def _told(parts: Sequence[SizePart], shared: Sequence[Border], sizes: SymbolSizes) -> _Told:
    """Return what is known at some sizes: the results of comparisons, and whether the models compute the same sizes."""
    values = [part.run(sizes) for part in parts]
    told: _Told = {}
    for which, part, own in zip(_SIDES, parts, values, strict=True):
        told |= {(which, node): says for node, says in part.decisions(own)}
    for border in shared:
        if border.before in values[0] and border.after in values[1]:
            pair = values[0][border.before], values[1][border.after]
            told["value", border.before] = bytes([np.array_equal(*pair)])
    return told


def _shape_of(side: ModelSide, name: str) -> Sequence[DimLike | None] | None:
    return side.types.get(name, UNKNOWN).shape


def _shapes_may_differ(found: ModelRegions, border: Border) -> bool:
    """Return True if the known dimensions of a value are not written alike in both models."""
    one, other = _shape_of(found.before, border.before), _shape_of(found.after, border.after)
    return one is not None and other is not None and len(one) == len(other) and list(one) != list(other)


def _told_shapes(found: ModelRegions, borders: Sequence[Border], sizes: SymbolSizes) -> _Told:
    """Return whether values have the same shape in both models."""
    told: _Told = {}
    for border in borders:
        pairs = zip(
            _shape_of(found.before, border.before) or (), _shape_of(found.after, border.after) or (), strict=True
        )
        try:
            same = [evaluate(a, sizes) == evaluate(b, sizes) for a, b in pairs if a is not None and b is not None]
        except (ArithmeticError, KeyError):
            # A size that nothing tells, or none at all.
            continue
        told["value", border.before] = bytes([all(same)])
    return told
