"""Random expressions over a few symbols: sums, quotients, remainders, maxima, minima, and products of symbols."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dim_expressions import Tree

_DIVISORS = (2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 16)
_COEFFICIENTS = (1, 1, 1, 1, -1, -1, 2, 2, -2, 3, 4, -3, 6)


def plus(tree: Tree, number: int) -> Tree:
    """The sum, as a person writes it."""
    if isinstance(tree, int):
        return tree + number
    if number == 0:
        return tree
    return ("+", tree, number) if number > 0 else ("-", tree, -number)


class Expressions:
    """Makes expressions.

    products: whether symbols may be multiplied and divided by. plain: nothing is nested, as in most models.
    """

    def __init__(self, rng: Random, names: Sequence[str], *, products: bool, plain: bool = False) -> None:
        self._rng = rng
        self._names = names
        self._products = products
        self._deepest = 0 if plain else 2

    def short(self) -> Tree:
        """A part, at times with a number or another part beside it."""
        tree = self._part()
        if self._rng.random() < 0.3:
            tree = (self._rng.choice("+-"), tree, self._part())
        return plus(tree, self._rng.randint(-4, 4)) if self._rng.random() < 0.3 else tree

    def linear(self, most: int = 3) -> Tree:
        """A sum of multiples of different symbols, and a number."""
        rng = self._rng
        chosen = rng.sample(self._names, min(len(self._names), rng.randint(1, most)))
        tree: Tree | None = None
        for name in chosen:
            coefficient = rng.choice(_COEFFICIENTS)
            term: Tree = name if abs(coefficient) == 1 else ("*", abs(coefficient), name)
            if tree is None:
                tree = term if coefficient > 0 else ("-", 0, term)
            else:
                tree = ("+" if coefficient > 0 else "-", tree, term)
        assert tree is not None
        return plus(tree, rng.randint(-5, 8)) if rng.random() < 0.4 else tree

    def quotient(self, depth: int = 0) -> Tree:
        """A quotient by a number, or by a symbol."""
        rng = self._rng
        numerator = self._part(depth + 1) if depth < self._deepest and rng.random() < 0.3 else self.linear(2)
        if self._products and rng.random() < 0.4:
            return ("//", numerator, self._divisor())
        return ("//", numerator, rng.choice(_DIVISORS))

    def extremum(self, depth: int = 0) -> Tree:
        """The maximum or minimum of two."""
        rng = self._rng
        operator = rng.choice(("max", "max", "min"))
        other: Tree = rng.randint(0, 9) if rng.random() < 0.4 else self._part(depth + 1)
        return (operator, self._part(depth + 1), other)

    def _remainder(self) -> Tree:
        if self._products and self._rng.random() < 0.3:
            return ("%", self.linear(2), self._divisor())
        return ("%", self.linear(2), self._rng.choice(_DIVISORS))

    def _divisor(self) -> Tree:
        name = self._rng.choice(self._names)
        return name if self._rng.random() < 0.8 else ("+", name, self._rng.randint(1, 3))

    def _product(self, depth: int) -> Tree:
        one = self._rng.choice(self._names)
        return ("*", one, self._part(depth + 1) if self._rng.random() < 0.5 else self._rng.choice(self._names))

    def _part(self, depth: int = 0) -> Tree:
        choice = self._rng.random()
        if self._products and depth <= self._deepest and choice < 0.35:
            return self._product(depth)
        choice = self._rng.random()
        if depth > self._deepest or choice < 0.2:
            return self._rng.choice(self._names)
        if choice < 0.5:
            return self.linear()
        if choice < 0.72:
            return self.quotient(depth)
        if choice < 0.84:
            return self._remainder()
        return self.extremum(depth)
