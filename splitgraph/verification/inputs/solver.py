"""Find sizes for the symbols of a model that satisfy its constraints, with a small exact search.

Symbols that no constraint connects are solved separately. In a group of connected symbols, the search tries candidates
in order of preference, in several passes with fewer and fewer wishes. In the first pass every size is above 1, differs
from all other numbers and from its sizes in earlier cases, and is odd if it was even before. In the last pass only the
constraints must hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from splitgraph.dim import Dim, DimLike, evaluator, substitute, symbol, symbols_of

# A size for each symbol.
SymbolSizes = dict[str, int]
Relation = Literal["==", ">="]
SizeBounds = Mapping[str, "tuple[int, int | None]"]

# Later attempts prefer larger sizes: enough for deep strides, and the usual sizes of images.
_SCALES = (2, 7, 32, 64, 224)
_LARGEST_CONSTANT = 1 << 20
# One pass of the search tries at most so many values; fewer in a large group, where each value costs more.
_BUDGET = 4000
# In an equation of more symbols than this, the sum is chosen last: the other symbols determine it.
_WIDE = 2


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the symbols: `lhs == rhs` or `lhs >= rhs`.

    location: of the node that needs it, "" for the model. symbols: the symbols in it.
    """

    lhs: DimLike
    relation: Relation
    rhs: DimLike
    location: str = ""
    symbols: frozenset[str] = field(init=False)
    # What evaluates each side, made with the first values: a search asks for hundreds of them.
    _sides: Sequence[Callable[[Mapping[str, int]], int]] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", symbols_of(self.lhs) | symbols_of(self.rhs))

    def holds(self, values: Mapping[str, int]) -> bool:
        """Return True if the condition holds for these values of its symbols."""
        try:
            gap = self.gap(values)
        except ArithmeticError:
            return False
        return gap == 0 if self.relation == "==" else gap >= 0

    def gap(self, values: Mapping[str, int]) -> int:
        """Return by how much the left side is larger for these values. Raises ArithmeticError where a side has none."""
        if not self._sides:
            object.__setattr__(self, "_sides", (evaluator(self.lhs), evaluator(self.rhs)))
        left, right = self._sides
        return left(values) - right(values)


@dataclass(slots=True)
class Solver:
    """Finds sizes for one case after the other.

    symbols: in order of importance. constraints: on these symbols only. bounds: of each symbol. fixed: sizes that the
    caller gave. taken: numbers that the sizes should differ from, such as the fixed dimensions of the inputs.
    """

    symbols: Sequence[str]
    constraints: Sequence[Condition]
    bounds: SizeBounds = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    taken: Collection[int] = ()
    # Of each symbol, the candidates that its own constraints allow: the same in every search.
    _allowed: dict[str, list[int]] = field(init=False, repr=False, default_factory=dict)

    def solve(
        self, earlier: Sequence[SymbolSizes] = (), scale: int = 0, small: Collection[str] = ()
    ) -> SymbolSizes | None:
        """Return sizes that differ from those of earlier cases if possible; None if no sizes satisfy the constraints.

        scale: 0 prefers small sizes, 1 to 4 larger ones. small: symbols whose sizes stay small at every scale.
        """
        if not all(constraint.holds({}) for constraint in self.constraints if not constraint.symbols):
            return None
        chosen: SymbolSizes = {}
        used = set(self.taken)
        for group in self._groups():
            scales = {name: _SCALES[0 if name in small else scale % len(_SCALES)] for name in group}
            sizes = self._solve_group(group, used, earlier, scales)
            if sizes is None:
                return None
            chosen.update(sizes)
            used.update(sizes.values())
        return chosen

    def _groups(self) -> list[list[str]]:
        """Group the symbols that constraints connect, in the order of the symbols."""
        leaders = _leaders(self.symbols, self.constraints)
        groups: dict[str, list[str]] = {}
        for name in self.symbols:
            groups.setdefault(leaders[name], []).append(name)
        return list(groups.values())

    def _solve_group(
        self, group: Sequence[str], used: Collection[int], earlier: Sequence[SymbolSizes], scales: Mapping[str, int]
    ) -> SymbolSizes | None:
        constraints_on = {name: _limits(name, self.bounds) for name in group}
        for constraint in self.constraints:
            for name in constraint.symbols & constraints_on.keys():
                constraints_on[name].append(constraint)
        group = self._sums_last(group)
        before = {name: [case[name] for case in earlier if name in case] for name in group}
        domains = {name: self._domain(name, constraints_on[name], before[name], scales[name]) for name in group}
        equal = [c for c in self.constraints if c.symbols <= domains.keys() and _are_equal(c)]
        same = _leaders(group, equal)
        for wish in _passes(domains, used, before, same):
            search = _SizeSearch(group, constraints_on, domains, wish, len(group) + _BUDGET // (1 + len(group) // 16))
            sizes = search.run()
            if sizes is not None:
                return sizes
        return None

    def _sums_last(self, group: Sequence[str]) -> list[str]:
        """Sort the symbols that are the sum of many others to the end: if they came first, they would rarely fit."""
        sums = {
            str(side)
            for constraint in self.constraints
            if constraint.relation == "==" and len(constraint.symbols) > _WIDE
            for side in (constraint.lhs, constraint.rhs)
            if symbols_of(side) == {str(side)}
        }
        return sorted(group, key=lambda name: name in sums)

    def _domain(self, name: str, constraints: Sequence[Condition], before: Sequence[int], scale: int) -> list[int]:
        """Return the candidates for one symbol that its own constraints allow, the preferred ones first."""
        if name not in self._allowed:
            self._allowed[name] = self._allowed_candidates(name, constraints)
        return sorted(self._allowed[name], key=lambda value: _preference(value, before, scale))

    def _allowed_candidates(self, name: str, constraints: Sequence[Condition]) -> list[int]:
        low = max(self.bounds.get(name, (0, None))[0], 0)
        if name in self.fixed:
            candidates: Iterable[int] = [self.fixed[name]]
        else:
            mentioned = _mentioned(constraints)
            candidates = {*range(low, low + 25), *mentioned, 25, 31, 32, 33, 48, 63, 64, 96, 128, 160, 224, 225, 256}
        own = [c for c in constraints if c.symbols == {name}]
        return [value for value in candidates if value >= 0 and all(c.holds({name: value}) for c in own)]


def _leaders(names: Iterable[str], constraints: Iterable[Condition]) -> dict[str, str]:
    """Return for every symbol the leader of its group: one symbol of those that constraints connect."""
    leader = {name: name for name in names}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for constraint in constraints:
        for name in constraint.symbols:
            leader[find(name)] = find(min(constraint.symbols))
    return {name: find(name) for name in leader}


def _are_equal(constraint: Condition) -> bool:
    """Return True if a constraint makes two symbols equal."""
    sides = constraint.lhs, constraint.rhs
    return constraint.relation == "==" and all(symbols_of(side) == {str(side)} for side in sides)


def _limits(name: str, bounds: SizeBounds) -> list[Condition]:
    """Return the bounds of a symbol as constraints."""
    low, high = bounds.get(name, (0, None))
    limits = [Condition(symbol(name), ">=", low)]
    return limits if high is None else [*limits, Condition(high, ">=", symbol(name))]


def _preference(value: int, before: Sequence[int], scale: int) -> tuple[object, ...]:
    """Return the sort key of a candidate: first the wanted scale, then other remainders by 2 and 3, then small."""
    return (
        value < 2,
        scale >= 32 and value % 32 != 0,
        value < scale,
        any(value % 2 == earlier % 2 for earlier in before),
        any(value % 3 == earlier % 3 for earlier in before),
        value,
    )


# Says whether a value for a symbol fulfils a wish, given the values of the symbols before it.
Wish = Callable[[str, int, SymbolSizes], bool]


def _passes(
    domains: Mapping[str, Sequence[int]],
    used: Collection[int],
    before: Mapping[str, Sequence[int]],
    same: Mapping[str, str],
) -> Iterator[Wish]:
    """Yield the wishes of each pass, fewer and fewer. A symbol with only one candidate has no wishes.

    same: the leader of each group of symbols that must be equal; these need not differ from each other.
    """
    free = {name for name, domain in domains.items() if len(domain) > 1}
    both = {name for name in free if len({value % 2 for value in domains[name]}) == 2}

    def above(low: int) -> Wish:
        return lambda name, value, _: name not in free or value >= low

    def distinct(name: str, value: int, partial: SymbolSizes) -> bool:
        if name not in free or value not in partial.values():
            return name not in free or value not in used
        return value not in used and all(same[symbol] == same[name] for symbol in partial if partial[symbol] == value)

    def unseen(name: str, value: int, _: SymbolSizes) -> bool:
        return name not in free or value not in before[name]

    def other_parity(name: str, value: int, _: SymbolSizes) -> bool:
        parities = {earlier % 2 for earlier in before[name]}
        return name not in both or len(parities) != 1 or value % 2 not in parities

    passes: tuple[tuple[Wish, ...], ...] = (
        (above(2), distinct, unseen, other_parity),
        (above(2), distinct, unseen),
        (above(2), unseen, other_parity),
        (above(2), unseen),
        (above(2), distinct),
        (above(2),),
        (above(1),),
        (),
    )
    for wishes in passes:
        yield _all_of(wishes)


def _all_of(wishes: Sequence[Wish]) -> Wish:
    return lambda name, value, partial: all(wish(name, value, partial) for wish in wishes)


@dataclass(slots=True)
class _SizeSearch:
    """Searches sizes for one group of symbols in one pass, depth first."""

    group: Sequence[str]
    constraints_on: Mapping[str, Sequence[Condition]]
    domains: Mapping[str, Sequence[int]]
    wish: Wish
    budget: int

    def run(self) -> SymbolSizes | None:
        """Return sizes for all symbols of the group; None if there are none, or the budget is used up."""
        values: SymbolSizes = {}
        levels = [self._acceptable(0, values)]
        while levels:
            name = self.group[len(levels) - 1]
            value = next(levels[-1], None)
            if value is None:
                levels.pop()
                values.pop(name, None)
                continue
            values[name] = value
            if len(levels) == len(self.group):
                return values
            levels.append(self._acceptable(len(levels), dict(values)))
        return None

    def _acceptable(self, depth: int, partial: SymbolSizes) -> Iterator[int]:
        """Yield the values of one symbol that fit the values of the symbols before it."""
        name = self.group[depth]
        known = partial.keys() | {name}
        due = [c for c in self.constraints_on[name] if c.symbols <= known]
        trial = dict(partial)
        for value in self._candidates(name, partial, due):
            self.budget -= 1
            if self.budget < 0:
                return
            trial[name] = value
            if self.wish(name, value, partial) and all(c.holds(trial) for c in due):
                yield value

    def _candidates(self, name: str, partial: SymbolSizes, due: Sequence[Condition]) -> Iterable[int]:
        """Return the domain of a symbol, or the solution of a linear equation in which only this symbol is open."""
        if len(self.domains[name]) > 1:
            for constraint in due:
                if constraint.relation == "==" and len(constraint.symbols) > 1:
                    solution = _solve_linear(constraint, name, partial)
                    if solution is not None:
                        return [solution] if solution >= 0 else []
        return self.domains[name]


def _solve_linear(constraint: Condition, name: str, partial: SymbolSizes) -> int | None:
    """Return the only possible solution of an equation that is linear in one symbol; None if it is not linear.

    The caller must check that the solution satisfies the equation.
    """
    try:
        gaps = [constraint.gap({**partial, name: value}) for value in (0, 1, 2, 7, 50)]
    except ArithmeticError:
        return None
    slope = gaps[1] - gaps[0]
    if slope == 0 or any(gap != gaps[0] + slope * value for gap, value in zip(gaps, (0, 1, 2, 7, 50), strict=True)):
        return None
    return -gaps[0] // slope


def _mentioned(constraints: Iterable[Condition]) -> set[int]:
    """Return values that constraints may need: the numbers in them, their neighbours, multiples and products."""
    numbers: set[int] = set()
    for constraint in constraints:
        for side in (constraint.lhs, constraint.rhs):
            numbers.update(
                int(digits) for digits in re.findall(r"(?<![\w.])\d+", _without_names(side)) if len(digits) < 8
            )
    small = {number for number in numbers if 0 < number <= 4096}
    products = {left * right for left in small for right in small} | {min(math.lcm(*small), _LARGEST_CONSTANT)}
    near = {number + step for number in numbers for step in range(-1, 25)}
    near.update(number + step for number in products for step in (-1, 0, 1))
    multiples = {number * factor for number in small | products for factor in range(1, 9)}
    return {number for number in near | multiples if 0 <= number <= _LARGEST_CONSTANT}


def _without_names(side: DimLike) -> str:
    """Return the text of an expression with plain names for its symbols, whose own names may contain digits."""
    if not isinstance(side, Dim):
        return str(side)
    return str(substitute(side, {name: symbol(f"s{index}_") for index, name in enumerate(sorted(symbols_of(side)))}))
