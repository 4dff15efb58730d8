"""Points of a small box, and near one point: what fails at one of them is wrong, whatever the other judges say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from random import Random

import numpy as np
from dim_expressions import Constraint, Tree, divisors_in
from numpy.typing import NDArray

Values = NDArray[np.int64]

# The largest value of the box, by the number of symbols: about a thousand points for each.
_SIDES = {1: 300, 2: 31, 3: 9, 4: 5, 5: 3, 6: 2}
_NEAR = 400


class Points:
    """Points that satisfy all that was assumed; symbols are integers >= 0."""

    def __init__(self, values: Mapping[str, Values]) -> None:
        self._values = dict(values)
        self.count = len(next(iter(self._values.values())))

    @classmethod
    def at(cls, point: Mapping[str, int]) -> Points:
        """The one point."""
        return cls({name: np.array([value], np.int64) for name, value in point.items()})

    @classmethod
    def around(cls, point: Mapping[str, int]) -> Points:
        """A small box of points, and some near the point."""
        box, offsets = _box(len(point)), _offsets(len(point))
        near = np.maximum(offsets + np.array([[value] for value in point.values()], np.int64), 0)
        return cls(dict(zip(point, np.concatenate([box, near], axis=1), strict=True)))

    @property
    def names(self) -> list[str]:
        """The symbols."""
        return list(self._values)

    def assume(self, constraint: Constraint) -> None:
        """Leave out the points where the constraint does not hold, or its tree has no value."""
        kept = self.holds(constraint) & self.exists(constraint.tree)
        self._values = {name: values[kept] for name, values in self._values.items()}
        self.count = int(kept.sum())

    def exists(self, *trees: Tree) -> NDArray[np.bool_]:
        """Where the trees have values."""
        found = np.ones(self.count, bool)
        for tree in trees:
            for divisor in divisors_in(tree):
                found &= self.values(divisor) != 0
        return found

    def holds(self, constraint: Constraint) -> NDArray[np.bool_]:
        """Where the constraint holds; anything where its tree has no value."""
        values = self.values(constraint.tree)
        if constraint.relation == ">=":
            return values >= 0
        return values == 0 if constraint.relation == "==" else values != 0

    def values(self, tree: Tree) -> Values:
        """The tree at each point; anything where it has no value."""
        with np.errstate(divide="ignore"):
            found = self._value(tree)
        return np.broadcast_to(np.asarray(found, np.int64), self.count)

    def values_that_exist(self, tree: Tree) -> Values:
        """The values of the tree at the points where it has one."""
        return self.values(tree)[self.exists(tree)]

    def counterexample(self, given: Sequence[Tree], concluded: Constraint) -> dict[str, int] | None:
        """A point where the given trees have values, and the conclusion has none or does not hold."""
        fails = self.exists(*given) & ~(self.holds(concluded) & self.exists(concluded.tree))
        places = np.flatnonzero(fails)
        if not places.size:
            return None
        place = places[np.argmin(sum(values[places] for values in self._values.values()))]
        return {name: int(values[place]) for name, values in self._values.items()}

    def _value(self, tree: Tree) -> Values | int:
        if isinstance(tree, int):
            return tree
        if isinstance(tree, str):
            return self._values[tree]
        operator, left, right = tree[0], self._value(tree[1]), self._value(tree[2])
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*":
            return left * right
        if operator in ("max", "min"):
            return np.maximum(left, right) if operator == "max" else np.minimum(left, right)
        return np.floor_divide(left, right) if operator == "//" else np.mod(left, right)


@lru_cache
def _box(count: int) -> Values:
    side = range(_SIDES[count] + 1)
    return np.array(list(product(side, repeat=count)), np.int64).T


@lru_cache
def _offsets(count: int) -> Values:
    rng = Random(count)
    steps = (0, 0, 0, 1, -1, 1, -1, 2, -2, 3, 4, -4, 6, 12)
    return np.array([[rng.choice(steps) for _ in range(_NEAR)] for _ in range(count)], np.int64)
