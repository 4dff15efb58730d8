"""Checks the laws of new sizes on two walks: over the model as it was, and over the model with its new sizes.

In the second walk a size that changes has a name, `N` for 8; the model's own names stay in both. Relations and
dimensions are compared at many sizes, not proved: all names together take each size up to 12.

1. No new condition. The result runs wherever the model did, with any size for N. A condition on a length alone, as
   `32 | H` of a U-Net, cannot be forbidden, but has to hold again and again, or up to a limit beyond the old size: a
   table of 1,024 positions has no more.
2. What keeps its name keeps its meaning: an output of the size `batch` has that size, whatever N is. A batch stands
   along one axis of an output, and is a factor there.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, Obligation, evaluator, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.record import Requirement
from splitgraph.model.scopes import MAIN, Scope, node_label
from splitgraph.model.value_type import Shape

# The largest size that is tried for names together, by how many names there are, and for more than that.
_LARGEST, _OF_MANY = {0: 1, 1: 12, 2: 12, 3: 12, 4: 7, 5: 5}, 3
_MOST_NAMES = 7
# A condition on a length holds in each of so many windows of sizes, which are at least so wide.
_WINDOWS, _WIDTH = 3, 128
# So many remainders are told instead of the conditions that leave them.
_MOST_REMAINDERS = 3
# Larger than any table.
_BEYOND = 2**32


class Breach(NamedTuple):
    """What breaks a law: the node, or the output, and what it does. obligation: what the node needs, if it needs
    sizes.
    """

    location: str
    text: str
    obligation: Obligation | None = None


class Judgement(NamedTuple):
    """What two walks show. breaches: of the laws. lost: dimensions that are no batch, by symbol. conditions: those that
    are let through, as they are of lengths alone.
    """

    breaches: tuple[Breach, ...]
    lost: Mapping[str, Breach]
    conditions: tuple[Requirement, ...]


def judge(
    before: Walked,
    after: Walked,
    wanted: Wanted,
    ignored: Collection[str] = (),
    further: Sequence[Requirement] = (),
) -> Judgement:
    """Return which laws are broken. ignored: locations of nodes that have errors without new sizes. further: what nodes
    require besides.
    """
    kept = _names_of_inputs(after) - wanted.old.keys()
    breaches: list[Breach] = []
    lost: dict[str, Breach] = {}
    said: list[Requirement] = []
    had: dict[str, list[Obligation]] = {}
    for each in before.requirements:
        had.setdefault(each.location, []).append(each.obligation)
    for each in (*after.requirements, *further):
        names = each.obligation.symbols
        if each.location in ignored or not names & wanted.old.keys() or names - wanted.old.keys() - kept:
            continue
        if any(_is_same(_before(each.obligation, wanted), own) for own in had.get(each.location, ())):
            continue
        condition = _Condition(each.obligation, wanted, names & (kept | wanted.batch))
        if not condition.is_broken:
            said += [each] if condition.says_something else []
            continue
        found = Breach(each.location, f"needs {each.obligation}", each.obligation)
        if names <= wanted.batch - wanted.batch_of_caller and len(names) == 1:
            lost.setdefault(min(names), found)
        else:
            breaches.append(found)
    for found, name in _changed_outputs(before, after, wanted, kept):
        if name in wanted.batch - wanted.batch_of_caller:
            lost.setdefault(name, found)
        else:
            breaches.append(found)
    return Judgement((*breaches, *_forgotten(before, after, wanted, kept)), lost, tuple(said))


def _names_of_inputs(walked: Walked) -> set[str]:
    main = _main(walked)
    types = walked.graphs[MAIN].types
    shapes = [types[value.name].shape or () for value in main.proto.input if value.name in types] if main else []
    return {name for shape in shapes for dim in shape if dim is not None for name in symbols_of(dim)}


def _main(walked: Walked) -> Scope | None:
    return next((scope for scope in walked.scopes if scope.path == MAIN and not scope.is_function), None)


# Sizes that are tried -------------------------------------------------------------------------------------------------


def _grid(names: Collection[str], together: int) -> Iterator[dict[str, int]]:
    """Yield sizes for names. together: the number of all names that are tried together."""
    listed = sorted(names)
    largest = _LARGEST.get(together, _OF_MANY)
    for sizes in itertools.product(range(1, largest + 1), repeat=len(listed)):
        yield dict(zip(listed, sizes, strict=True))


def _varies(value: Callable[[Mapping[str, int]], object], names: Collection[str], others: Collection[str]) -> bool:
    """Return True if a value is not the same for all sizes of some names, with the others as they are."""
    together = len(names) + len(others)
    if together > _MOST_NAMES:
        return True
    for fixed in _grid(others, together):
        found = (value({**fixed, **sizes}) for sizes in _grid(names, together))
        first = next(found)
        if any(each != first for each in found):
            return True
    return False


def _values_of(dim: DimLike) -> Callable[[Mapping[str, int]], int | None]:
    """Return what gives the number that a dimension is at some sizes; None if there is none."""
    evaluated = evaluator(dim)

    def value(sizes: Mapping[str, int]) -> int | None:
        try:
            return evaluated(sizes)
        except ArithmeticError:
            return None

    return value


# Law 1: no new condition ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Condition:
    """A condition that the model does not have. fixed: the names in it of which no size may be asked."""

    obligation: Obligation
    wanted: Wanted
    fixed: frozenset[str]
    _sides: Sequence[Callable[[Mapping[str, int]], int | None]] = field(init=False)

    def __post_init__(self) -> None:
        self._sides = [_values_of(side) for side in (self.obligation.lhs, self.obligation.rhs)]

    @property
    def is_broken(self) -> bool:
        """True if it asks for sizes of the fixed names, holds for few sizes of the others, or not for those that are
        wanted. A limit of the others is none.
        """
        names = self.obligation.symbols
        if self.fixed and (_varies(self.holds, self.fixed, names - self.fixed) or self._ends):
            return True
        if names <= self.wanted.new.keys() and not self.holds(self.wanted.new):
            return True
        if self.obligation.relation == ">=" or self.fixed:
            return False
        return self._binds(names) or not all(self._holds_again(name) or self._is_limit(name) for name in names)

    @property
    def says_something(self) -> bool:
        """True if there are sizes that a caller can choose at which it does not hold."""
        names = self.obligation.symbols
        if self.fixed or names <= self.wanted.new.keys():
            return False
        return self._ends or _varies(self.holds, names, ())

    @property
    def _ends(self) -> bool:
        """True if it does not hold for large sizes of the one name in it."""
        names = self.obligation.symbols
        return len(names) == 1 and not self.holds({min(names): _BEYOND})

    def holds(self, sizes: Mapping[str, int]) -> bool:
        left, right = (value(sizes) for value in self._sides)
        if left is None or right is None:
            return False
        return left == right if self.obligation.relation == "==" else left >= right

    def _binds(self, names: Set[str]) -> bool:
        """Return True if the sizes of one name that it allows are others for another size of a second one."""
        for name in names if 1 < len(names) <= _MOST_NAMES else ():
            allowed = set[frozenset[int]]()
            for others in _grid(names - {name}, len(names)):
                sizes = (each[name] for each in _grid({name}, len(names)) if self.holds({**others, **each}))
                allowed.add(frozenset(sizes))
                if len(allowed - {frozenset()}) > 1:
                    return True
        return len(names) > _MOST_NAMES

    def _holds_again(self, name: str) -> bool:
        """Return True if it holds in each of the next windows of sizes."""
        others = {**self.wanted.old, **self.wanted.new}
        width = max(self.wanted.old[name], _WIDTH)
        return all(
            any(self.holds({**others, name: size}) for size in range(first, first + width))
            for first in range(self.wanted.old[name] + 1, self.wanted.old[name] + 1 + _WINDOWS * width, width)
        )

    def _is_limit(self, name: str) -> bool:
        """Return True if it holds for all sizes up to one that is larger than the old one: a table has so many rows."""
        others = {**self.wanted.old, **self.wanted.new}
        return all(self.holds({**others, name: size}) for size in range(1, self.wanted.old[name] + 2))


def condition_findings(judgement: Judgement, wanted: Wanted) -> Iterator[Diagnostic]:
    """Yield the conditions on lengths that the result has. Those on one name are put together where that is plain."""
    for names, group in _by_names(judgement.conditions).items():
        texts = {str(each.obligation): each.location for each in group}
        if len(names) == 1:
            (name,) = names
            conditions = [_Condition(each.obligation, wanted, frozenset()) for each in group]
            tried = range(1, _WINDOWS * _WIDTH)
            good = [size for size in tried if all(each.holds({name: size}) for each in conditions)]
            equality = next((each for each in reversed(group) if each.obligation.relation == "=="), group[-1])
            if good and good == [size for size in tried if size % good[0] == 0]:
                texts = {f"{name} to be a multiple of {good[0]}": equality.location}
            elif good and good == [size for size in tried if size >= good[0]]:
                texts = {f"{name} to be at least {good[0]}": equality.location}
            elif good and good == [size for size in tried if size <= good[-1]]:
                texts = {f"{name} to be at most {_limit(conditions, name)}": equality.location}
            elif text := _remainders(good, tried, name):
                texts = {text: equality.location}
        for text, location in texts.items():
            yield diagnostic("SG423", f"needs {wanted.spelled(text)}", location, severity="info")


def _remainders(good: Sequence[int], tried: Sequence[int], name: str) -> str:
    """Return what is left of sizes: "H % 16 to be 0 or 1", from some size on. "" where they are not so regular."""
    for divisor in range(2, _WIDTH // 2 + 1):
        left = sorted({size % divisor for size in good})
        regular = [size for size in tried if size % divisor in left]
        if len(left) <= _MOST_REMAINDERS and good == [size for size in regular if size >= good[0]]:
            least = f", and {name} at least {good[0]}" if regular[0] < good[0] else ""
            return f"{name} % {divisor} to be {' or '.join(map(str, left))}{least}"
    return ""


def _limit(conditions: Sequence[_Condition], name: str) -> int:
    """Return the largest size at which conditions hold that hold for all smaller ones."""

    def breaks(size: int) -> bool:
        return not all(each.holds({name: size}) for each in conditions)

    return bisect.bisect_left(range(1, _BEYOND), True, key=breaks)


def _by_names(requirements: Iterable[Requirement]) -> Mapping[frozenset[str], list[Requirement]]:
    found: dict[frozenset[str], list[Requirement]] = {}
    for each in requirements:
        found.setdefault(each.obligation.symbols, []).append(each)
    return found


def _before(obligation: Obligation, wanted: Wanted) -> Obligation:
    return Obligation(wanted.before(obligation.lhs), obligation.relation, wanted.before(obligation.rhs))


def _is_same(one: Obligation, other: Obligation) -> bool:
    return one.relation == other.relation and str(one) == str(other)


# Law 2: what keeps its name keeps its meaning -------------------------------------------------------------------------


def _changed_outputs(before: Walked, after: Walked, wanted: Wanted, kept: Set[str]) -> Iterator[tuple[Breach, str]]:
    """Yield what is another size than it was, and the name in it."""
    for name, old, new in _outputs(before, after):
        known = [dim for dim in new if dim is not None and symbols_of(dim) <= {*kept, *wanted.old}]
        if len(known) < len(new) or len(old) != len(new):
            continue
        for axis, (own, dim) in enumerate(zip(old, known, strict=True)):
            for symbol in kept:
                if own is not None and symbols_of(own) <= kept and not _keeps(symbol, own, dim):
                    text = f"the output {name!r} would have the size {dim} along axis {axis}, where it has {own}"
                    yield Breach(f"main/{name}", text), symbol
        for symbol in sorted(wanted.batch):
            axes = [axis for axis, dim in enumerate(known) if _depends(dim, symbol)]
            if len(axes) > 1 or any(not _is_factor(symbol, known[axis]) for axis in axes):
                text = f"the output {name!r} has the dimensions [{', '.join(map(str, new))}]: {symbol} is no factor"
                yield Breach(f"main/{name}", f"{text} of one of them"), symbol


def _outputs(before: Walked, after: Walked) -> Iterator[tuple[str, Shape, Shape]]:
    """Yield the outputs whose ranks are known, with their shapes in both walks."""
    main = _main(after)
    for value in () if main is None else main.proto.output:
        shapes = [
            walked.graphs[MAIN].types[value.name].shape if value.name in walked.graphs[MAIN].types else None
            for walked in (before, after)
        ]
        if shapes[0] is not None and shapes[1] is not None:
            yield value.name, shapes[0], shapes[1]


def _keeps(name: str, old: DimLike, new: DimLike) -> bool:
    """Return True if a name means in a new dimension what it meant in the old one."""
    if isinstance(old, Dim) and str(old) == name:
        return new == old or not _varies(_values_of(new - old), {*symbols_of(new), name}, ())
    if not _depends(old, name):
        return not _depends(new, name)
    return _is_factor(name, new) or not _is_factor(name, old)


def _depends(dim: DimLike, name: str) -> bool:
    names = symbols_of(dim)
    return name in names and _varies(_values_of(dim), {name}, names - {name})


def _is_factor(name: str, dim: DimLike) -> bool:
    """Return True if a dimension grows in proportion to a name."""
    names, value = symbols_of(dim), _values_of(dim)

    def is_in_proportion(sizes: Mapping[str, int]) -> bool:
        found = value(sizes)
        return found is not None and found == sizes[name] * (value({**sizes, name: 1}) or 0)

    return name in names and not _varies(is_in_proportion, {name}, names - {name})


def _forgotten(before: Walked, after: Walked, wanted: Wanted, kept: Set[str]) -> Iterator[Breach]:
    """Yield the nodes that read a length and whose result has a size that was known, and is not known any more."""
    lengths, known = wanted.old.keys() - wanted.batch, {*kept, *wanted.old}
    for scope in after.scopes if lengths else ():
        if scope.path not in before.graphs or scope.path not in after.graphs:
            continue
        own, types = before.graphs[scope.path].types, after.graphs[scope.path].types
        for index, node in enumerate(scope.nodes):
            read = [types[name].shape for name in node.input if name in types]
            names = {symbol for shape in read for dim in shape or () if dim is not None for symbol in symbols_of(dim)}
            if None in read or not names & lengths or names - known:
                continue
            for name in node.output:
                old, new = (each[name].shape if name in each else None for each in (own, types))
                if old is None or (new is not None and len(old) != len(new)):
                    continue
                for axis, (size, dim) in enumerate(zip(old, new or [None] * len(old), strict=True)):
                    if size is not None and symbols_of(size) <= kept and (dim is None or symbols_of(dim) - known):
                        text = f"the size of {name!r} along axis {axis}, which was {size}, cannot be told any more"
                        yield Breach(f"{scope.location}/{node_label(node, index)}", text)
