"""Reads the target of a Reshape in terms of the dimensions of its data.

A Reshape regroups the digits of its data (`digits.py`): each has its place in the target where as many elements stand
before and after it. (N, 7, 768) to [8, 7, 12, 64], with N of 8, is [N, 7, 12, 64], to [56, 768] it is [7*N, 768], and
from there to [8, 7, 768] it is [N, 7, 768] again.

Only a digit of 1 can have several places: (N, 16) to [1, 1, 16]. It takes one of its own before one beside others, and
the axis that it had before if it can. A digit that no entry holds is cut: 56 to [8, 7] is [H//7, 7] or [8, H//8].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, prod
from types import MappingProxyType
from typing import NamedTuple

from splitgraph.conversion.sizes.digits import Digit, Order, parted
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, product, symbols_of

# Stand for dimensions of unknown size: no number in a model has such a factor.
_PRIMES = (1000003, 1000033, 1000037, 1000039, 1000081, 1000099, 1000117, 1000121)


class Choice(NamedTuple):
    """The readings of one number; or those of the target of a Reshape, which differ in the place of one digit.

    number: of the entry with the number, or of the digit. symbols: those that change. readings: for each, the entry
    that changes, and what it becomes; a number means that it stays. is_asked: if several readings fit, the user is
    asked. is_cut: one of them cuts the digit. likely: if the first one fits, only so many are tried; 0 for all.
    is_value: the number changes no dimension, so that all readings fit.
    """

    number: int
    symbols: frozenset[str]
    readings: tuple[tuple[int, DimLike], ...]
    is_asked: bool
    is_cut: bool = False
    likely: int = 0
    is_value: bool = False


# Returns the number of the reading that is taken.
Choose = Callable[[Choice], int]
# Gets a digit that is cut, and the number that has to divide it.
Cut = Callable[[DimLike, int], None]


class _Spot(NamedTuple):
    """A place in the target: the entry, and how many elements of the entry stand before and after the digit."""

    entry: int
    before: int
    after: int

    @property
    def is_own(self) -> bool:
        return self.before == self.after == 1


class _ChangingDigit(NamedTuple):
    """A digit that changes. size: the old one. before, after: how many elements stand before and after it. times: how
    often the data has its dimension.
    """

    number: int
    axis: int
    digit: Digit
    size: int
    before: int
    after: int
    times: int


def read_target(
    dims: Sequence[DimLike],
    target: Sequence[DimLike],
    wanted: Wanted,
    orders: Mapping[int, Order] = MappingProxyType({}),
    *,
    zeros_are_sizes: bool = False,
    decided: Mapping[int, DimLike] = MappingProxyType({}),
    choose: Choose = lambda choice: 0,
    cut: Cut = lambda dim, number: None,
) -> list[DimLike] | None:
    """Return the target of a Reshape in terms of the dimensions of its data; an entry of 0 or -1 stays where that says
    the same. None for a target that does not fit the old sizes, or that a digit does not fit. Raises DisplacedError.

    orders: the digits of the data, by axis, where they are known. decided: entries that are known.
    choose: asked where there are several readings. cut: told of digits that are cut.
    """
    reader = _TargetReader(dims, target, wanted, zeros_are_sizes, decided, choose, cut)
    try:
        return reader.read(orders)
    except _NoFit:
        return None


class DisplacedError(Exception):
    """A length of 1 has no place of its own in a target, because another entry of 1 is new there.

    [1, T, 8] to [-1, 2, 1, 4] was [-1, T, 2, 4] and a Transpose. The Transpose does nothing at T = 1, so that tools
    make one node of both, and nothing says any more where T stands. The same happens to a batch inside of other axes:
    [5, N, 2, 4] to [1, 5, 8]. dim: the length.
    """

    def __init__(self, dim: DimLike) -> None:
        super().__init__(str(dim))
        self.dim = dim


class _NoFit(Exception):
    """A target does not fit the data."""


@dataclass(slots=True)
class _TargetReader:
    dims: Sequence[DimLike]
    target: Sequence[DimLike]
    wanted: Wanted
    zeros_are_sizes: bool
    decided: Mapping[int, DimLike]
    choose: Choose
    cut: Cut
    primes: dict[DimLike, int] = field(default_factory=dict)
    # The size of each digit.
    numbers: list[int] = field(default_factory=list)
    # Of each entry, what is left of its old number, and the dimensions in it that change.
    out: list[int] = field(default_factory=list)
    parts: list[list[DimLike]] = field(default_factory=list)
    is_cut: bool = False
    in_part: set[int] = field(default_factory=set)
    # What has several readings, with the places of the digit, and the reading that is taken.
    asked: list[tuple[_ChangingDigit, Choice, Sequence[_Spot], int]] = field(default_factory=list)

    def read(self, orders: Mapping[int, Order]) -> list[DimLike]:
        """Return the target in terms of the dimensions of the data. Raises _NoFit and DisplacedError.

        The old numbers of the target are taken first. Each digit that changes is divided out of the entry in which it
        stands, and multiplied to it as a dimension.
        """
        of_axes = [self._digits(dim, orders.get(axis, ())) for axis, dim in enumerate(self.dims)]
        sizes_of_axes = [[self._number(digit.dim) for digit in digits] for digits in of_axes]
        digits = [(axis, digit) for axis, each in enumerate(of_axes) for digit in each]
        self.numbers = numbers = [number for each in sizes_of_axes for number in each]
        self.out = self._resolved([prod(each) for each in sizes_of_axes])
        self.parts = [[] for _ in self.out]
        whole = tuple(self.out)
        exchanged = self._exchanged([digit.dim for _, digit in digits], whole)
        for number, (axis, digit) in enumerate(digits):
            if self.wanted.changes(digit.dim) and number not in exchanged:
                before, after = prod(numbers[:number]), prod(numbers[number + 1 :])
                times = sum(each.dim == digit.dim for _, each in digits)
                self._place(_ChangingDigit(number, axis, digit, numbers[number], before, after, times), whole)
        self._restate_readings()
        entries = zip(self.out, self.parts, strict=True)
        return self._as_written([product([_named(left, self.primes), *parts]) for left, parts in entries])

    def _digits(self, dim: DimLike, order: Order) -> Sequence[Digit]:
        """Return the digits of a dimension: those that are known, or else items as the outermost one."""
        if order:
            return order
        times, part = parted(dim)
        # Nothing shows the order. A run verifies that items are outermost. Any other dimension stays one digit.
        is_apart = order is not None or symbols_of(dim) <= self.wanted.batch
        if times == 1 or part == 1 or not is_apart:
            return [Digit(dim)]
        return [Digit(part), Digit(times)]

    def _number(self, dim: DimLike) -> int:
        """Return the old size of a digit; a prime stands for one that is not known."""
        times, part = parted(self.wanted.before(dim))
        if isinstance(part, int):
            return times * part
        if part not in self.primes and len(self.primes) == len(_PRIMES):
            raise _NoFit
        return times * self.primes.setdefault(part, _PRIMES[len(self.primes) % len(_PRIMES)])

    def _resolved(self, sizes: Sequence[int]) -> list[int]:
        """Return the numbers that the target stands for."""
        out: list[int] = []
        for axis, entry in enumerate(self.target):
            if entry == 0 and not self.zeros_are_sizes:
                if axis >= len(sizes):
                    raise _NoFit
                out.append(sizes[axis])
            else:
                out.append(self._number_of_product(entry))
        total, rest = prod(sizes), [axis for axis, entry in enumerate(out) if entry == -1]
        if rest:
            known = prod(entry for entry in out if entry != -1)
            if len(rest) > 1 or known <= 0 or total % known:
                raise _NoFit
            out[rest[0]] = total // known
        if prod(out) != total or total <= 0:
            raise _NoFit
        return out

    def _number_of_product(self, entry: DimLike) -> int:
        """Return the number that stands for an entry: the product of those that stand for its factors."""
        dim, number = self.wanted.before(entry), 1
        for known, prime in self.primes.items():
            while isinstance(dim, Dim) and known != 1 and (dim // known) * known == dim:
                dim, number = dim // known, number * prime
        if isinstance(dim, Dim):
            raise _NoFit
        return dim * number

    def _exchanged(self, dims: Sequence[DimLike], whole: Sequence[int]) -> set[int]:
        """Put two lengths in a row into entries that have them the other way round; return their numbers. (31, 16) to
        [16, 31] of 2*T - 1 and T, as relative positions are shifted, is [T, 2*T - 1]: no other entries are these at
        the old sizes, and the same product at all. Lengths that have nothing to do with each other may be so by luck,
        and items would not stay apart.
        """
        found: set[int] = set()
        for number, pair in enumerate(pairwise(dims)):
            if number in found or not all(map(self._is_length, pair)) or symbols_of(pair[0]) != symbols_of(pair[1]):
                continue
            first, second = self.numbers[number : number + 2]
            before = prod(self.numbers[:number])
            entry = next((at for at in range(len(whole) - 1) if prod(whole[:at]) == before and whole[at] > 1), None)
            if entry is None or first == second or (whole[entry], whole[entry + 1]) != (second, first):
                continue
            entries = entry, entry + 1
            if any(
                at in self.decided or self.target[at] == 0 or self.wanted.changes(self.target[at]) for at in entries
            ):
                continue
            for at, dim in zip(entries, reversed(pair), strict=True):
                self.out[at], self.parts[at] = 1, [dim]
            found |= {number, number + 1}
        return found

    def _is_length(self, dim: DimLike) -> bool:
        return self.wanted.changes(dim) and symbols_of(dim).isdisjoint(self.wanted.batch)

    def _place(self, changing: _ChangingDigit, whole: Sequence[int]) -> None:
        """Put a digit that changes into the target: into the likeliest entry or the one that is chosen, or, in parts,
        into one of several entries that share it. Do nothing if an entry already says the digit.
        """
        dim, symbols = changing.digit.dim, symbols_of(changing.digit.dim)
        fixed = {entry: dim for entry, dim in enumerate(self.target) if self.wanted.changes(dim)} | dict(self.decided)
        said = {entry for entry, each in fixed.items() if symbols & symbols_of(each)}
        own = {spot.entry for spot in _spots(changing, whole) if spot.is_own}
        # An entry says the digit already. If the data has its size twice, the entry may say the other one.
        is_other = changing.times > 1 and own and own.isdisjoint(said)
        if said and not is_other:
            parts = [each for each in self.decided.values() if symbols & symbols_of(each)]
            self.is_cut = self.is_cut or any(product([each // dim, dim]) != each for each in parts)
            return
        if self._is_displaced(changing, whole):
            raise DisplacedError(dim)
        spots = [spot for spot in _spots(changing, whole) if self._is_free(spot.entry, changing, fixed)]
        if not spots:
            self._cut(changing, whole)
            return
        likely = self._likely(spots, changing)
        window = None if len(likely) > 1 else self._window(likely[0], changing, whole)
        readings = [(spot.entry, self._held(spot.entry, changing)) for spot in likely]
        if window is not None:
            readings.append((window, dim // changing.size))
        taken = 0
        if len(readings) > 1:
            # The place of a batch is checked by its items; any other one is asked.
            is_asked = window is not None or not symbols <= self.wanted.unquestioned
            choice = Choice(changing.number, symbols, tuple(readings), is_asked, window is not None)
            taken = self.choose(choice)
            self.asked.append((changing, choice, likely, taken))
        if taken == len(likely):
            self._put_part(*readings[taken], dim, changing.size)
            return
        self.out[likely[taken].entry] //= changing.size
        self.parts[likely[taken].entry].append(dim)

    def _is_displaced(self, changing: _ChangingDigit, whole: Sequence[int]) -> bool:
        """Return True for a length of 1 that has no place of its own in the target (see `DisplacedError`)."""
        dim = changing.digit.dim
        is_merged = self.dims[changing.axis] != dim
        if changing.size != 1 or (is_merged and changing.digit.home is None):
            return False
        if is_merged and not symbols_of(dim) <= self.wanted.unquestioned:
            return False
        if changing.before == 1 and symbols_of(dim) <= self.wanted.unquestioned:
            # Items that stand outside are merged with what follows: [N, T, 8] to [T, 1, 8] is [T*N, 1, 8].
            return False
        # Entries of 1 beside the length, and all others, in the data and in the target.
        beside, others = [], []
        for sizes in ([self._number(each) for each in self.dims], whole):
            places = [prod(sizes[:at]) for at, size in enumerate(sizes) if size == 1]
            beside.append(places.count(changing.before))
            others.append(len(places) - beside[-1])
        # Items that were merged on the way had an axis, too.
        return beside[1] < beside[0] + is_merged and others[1] > others[0]

    def _window(self, spot: _Spot, changing: _ChangingDigit, whole: Sequence[int]) -> int | None:
        """Return an entry of 1 beside a digit that may be a number of windows; None if there is none.

        The windows have as many elements as the digit had, and another axis of the data is cut into such windows, too:
        7 x 14 to [1, 7, 2, 7] is [H//7, 7, 2, 7], or [1, H, 2, 7]. An entry of 1 beside those with which the digit is
        merged may count groups: 2 x 5 to [1, 10] is [T//2, 10], or [1, 5*T].
        """
        if changing.size == 1:
            return None
        if not spot.is_own:
            own_axis = prod(map(self._number, self.dims[: changing.axis])), self._number(self.dims[changing.axis])
            if own_axis == (prod(whole[: spot.entry]), whole[spot.entry]):
                # It was merged before, and is one axis here.
                return None
            for side, inside in ((-1, spot.before), (1, spot.after)):
                if inside == 1 and self._is_added_one(spot.entry + side, side, changing, whole):
                    return spot.entry + side
            return None
        bounds = [prod(self.numbers[:at]) for at in range(len(self.numbers) + 1)]
        for side in (-1, 1):
            beside = spot.entry + side
            if not self._is_added_one(beside, side, changing, whole):
                continue
            # A batch of 1 comes back as the first entry.
            if side == -1 and beside > 0 and changing.digit.home != (spot.entry, len(whole)):
                return beside
            for entry in range(max(-side, 0), len(whole) - max(side, 0)):
                first, last = sorted((entry, entry + side))
                spans = [prod(whole[:first]), prod(whole[: last + 1])]
                axis = next((at for at in range(len(bounds) - 1) if bounds[at : at + 2] == spans), None)
                if entry != spot.entry and whole[entry] == changing.size and axis not in (None, changing.number):
                    return beside
        return None

    def _is_added_one(self, entry: int, side: int, changing: _ChangingDigit, whole: Sequence[int]) -> bool:
        """Return True for an entry of 1 beside a digit that is new in the target. side: the side of the digit."""
        if not 0 <= entry < len(whole) or whole[entry] != 1 or self.parts[entry] or self.target[entry] not in (1, -1):
            return False
        there = 0
        while 0 <= entry + there * side < len(whole) and whole[entry + there * side] == 1:
            there += 1
        here, at = 0, changing.number + side
        while 0 <= at < len(self.numbers) and self.numbers[at] == 1:
            here, at = here + 1, at + side
        return there > here

    def _is_free(self, entry: int, changing: _ChangingDigit, fixed: Mapping[int, DimLike]) -> bool:
        """Return True for an entry that can take a digit. A 0 takes those of its own axis only, and an entry that the
        model computes takes none.
        """
        copies = self.target[entry] == 0 and not self.zeros_are_sizes
        return entry not in fixed and (not copies or entry == changing.axis) and self.out[entry] % changing.size == 0

    def _likely(self, spots: Sequence[_Spot], changing: _ChangingDigit) -> Sequence[_Spot]:
        """Return the places that a digit may take, the best first.

        An entry of 0 copies the digit. A length stays on its axis. A batch can be anywhere, as its items are checked
        one by one, and prefers an entry of its own. All other places are possible only where none of these is.
        """
        copied = [spot for spot in spots if self.target[spot.entry] == 0 and not self.zeros_are_sizes]
        if copied:
            return copied
        symbols, is_batch = symbols_of(changing.digit.dim), symbols_of(changing.digit.dim) <= self.wanted.unquestioned
        own = [spot for spot in spots if spot.is_own and (changing.size > 1 or not self.parts[spot.entry])]
        at_home = [spot for spot in own if changing.digit.home == (spot.entry, len(self.target))]
        if not at_home and not is_batch:
            at_home = self._on_its_axis(own, spots, changing)
        if at_home:
            return at_home
        own = sorted(own, key=lambda spot: (self._distance(spot, changing), spot.entry))
        if own and is_batch:
            return own
        left_open = [spot for spot in spots if self.target[spot.entry] == -1]
        if left_open and str(changing.digit.dim) not in symbols:
            # The digit counts windows, as (H + 1)//2 does: the target leaves open how many there are.
            return left_open
        beside = sorted(spots, key=lambda spot: (self.target[spot.entry] != -1, spot.entry))
        return [*own, *(spot for spot in beside if spot not in own)]

    def _on_its_axis(self, own: Sequence[_Spot], spots: Sequence[_Spot], changing: _ChangingDigit) -> list[_Spot]:
        """Return the places on the axis that a length had: of those of its own, at most one."""
        if changing.digit.home is not None:
            return [spot for spot in own if self._distance(spot, changing) == 0]
        stays = self._in_turn(spots, changing)
        return [spot for spot in own if spot.entry == stays]

    def _in_turn(self, spots: Sequence[_Spot], changing: _ChangingDigit) -> int | None:
        """Return the entry of a digit of 1 if the target has as many entries of 1 there as the data has axes of 1 in a
        row: each axis keeps its turn.
        """
        first = last = changing.axis
        while first > 0 and self.wanted.before(self.dims[first - 1]) == 1:
            first -= 1
        while last < len(self.dims) - 1 and self.wanted.before(self.dims[last + 1]) == 1:
            last += 1
        own = [spot.entry for spot in spots if spot.is_own]
        return own[changing.axis - first] if len(own) == last - first + 1 else None

    def _distance(self, spot: _Spot, changing: _ChangingDigit) -> int:
        """Return how far a place is from the axis that the digit had, counted from the nearer end."""
        axis, rank = changing.digit.home or (changing.axis, len(self.dims))
        behind = rank - 1 - axis
        return abs(spot.entry - axis if axis <= behind else len(self.out) - 1 - spot.entry - behind)

    def _held(self, entry: int, changing: _ChangingDigit) -> DimLike:
        """Return what an entry holds with a digit in it."""
        return product([_named(self.out[entry] // changing.size, self.primes), *self.parts[entry], changing.digit.dim])

    def _restate_readings(self) -> None:
        """Offer the readings again with all digits of an entry: (1, H, W) to [1, 6] is [1, H*W], not [1, 6*H]."""
        for changing, choice, likely, taken in self.asked:
            entries = [self._held(spot.entry, changing) for spot in likely]
            if taken < len(likely):
                here = likely[taken].entry
                entries[taken] = product([_named(self.out[here], self.primes), *self.parts[here]])
            told = [(spot.entry, held) for spot, held in zip(likely, entries, strict=True)]
            whole = choice._replace(readings=(*told, *choice.readings[len(likely) :]))
            if whole != choice:
                self.choose(whole)

    def _cut(self, changing: _ChangingDigit, whole: Sequence[int]) -> None:
        """Put a digit that several entries share into one of them; the others keep their numbers."""
        bounds = sorted(
            {prod(self.numbers[:at]) for at in range(len(self.numbers) + 1)}
            & {prod(whole[:at]) for at in range(len(whole) + 1)}
        )
        low = max(bound for bound in bounds if bound <= changing.before)
        high = min(bound for bound in bounds if bound >= changing.before * changing.size)
        shared = [entry for entry, size in enumerate(whole) if size > 1 and low <= prod(whole[:entry]) < high]
        if any(self.parts[entry] or self.out[entry] != whole[entry] for entry in shared):
            raise _NoFit
        # What the target leaves open follows; otherwise each of the entries can.
        shared = [entry for entry in shared if self.target[entry] == -1] or shared
        cuts = tuple((entry, whole[entry] * changing.digit.dim // changing.size) for entry in shared)
        taken = (
            0
            if len(cuts) == 1
            else self.choose(Choice(changing.number, symbols_of(changing.digit.dim), cuts, True, True))
        )
        entry, part = cuts[taken]
        self.out[entry] = 1
        self._put_part(entry, part, changing.digit.dim, changing.size // gcd(changing.size, whole[entry]))

    def _put_part(self, entry: int, part: DimLike, dim: DimLike, number: int) -> None:
        """Put a part of a digit into an entry. number: into how many parts it is cut."""
        self.is_cut = True
        self.in_part.add(entry)
        self.parts[entry].append(part)
        self.cut(dim, number)

    def _as_written(self, entries: Sequence[DimLike]) -> list[DimLike]:
        """Return the entries, with 0, -1 and what the model computes as the target has them, if they mean the same.
        Beside the parts of a digit that is cut, a -1 is written out: inference would not find its size.
        """
        written: list[DimLike] = []
        for axis, entry in enumerate(entries):
            own = self.target[axis]
            copies = own == 0 and not self.zeros_are_sizes
            is_open = own == -1 and not (self.is_cut and axis not in self.in_part)
            stays = is_open or self.wanted.changes(own) or (copies and entry == self.dims[axis])
            written.append(own if stays else entry)
        return written


def _named(number: int, primes: Mapping[DimLike, int]) -> DimLike:
    """Return a number with the dimensions again for which primes stand."""
    dims: list[DimLike] = []
    for dim, prime in primes.items():
        while number and number % prime == 0:
            number //= prime
            dims.append(dim)
    return product([number, *dims])


def _spots(changing: _ChangingDigit, out: Sequence[int]) -> Iterator[_Spot]:
    """Yield the places where as many elements stand before and after the digit as in the data."""
    for entry, size in enumerate(out):
        left, right = prod(out[:entry]), prod(out[entry + 1 :])
        if changing.before % left == 0 and changing.after % right == 0:
            inside = changing.before // left, changing.after // right
            if inside[0] * changing.size * inside[1] == size:
                yield _Spot(entry, *inside)
