"""z3 as a judge: products of symbols and quotients by symbols too, where it finds an answer within its limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3
from dim_expressions import Constraint, Tree, divisors_in

# In z3's own unit of work, not in time: the same answer on each machine.
_LIMIT = 400_000


class Z3Judge:
    """What follows from the constraints that were assumed, over symbols >= 0."""

    def __init__(self, names: Sequence[str]) -> None:
        self._symbols = {name: z3.Int(f"s{place}") for place, name in enumerate(names)}
        self._waiting: list[Constraint] = []
        self._assumed: list[Any] = [symbol >= 0 for symbol in self._symbols.values()]
        # What quotients are, and by text, which quotient is which variable.
        self._definitions: list[Any] = []
        self._quotients: dict[tuple[Tree, Tree], Any] = {}

    def assume(self, constraint: Constraint) -> None:
        """Take a constraint for granted, and that its tree has a value."""
        # Written for z3 when it is first asked: for most cases it never is.
        self._waiting.append(constraint)

    def follows(self, given: Sequence[Tree], concluded: Constraint) -> bool | None:
        """Whether the conclusion holds, and has a value, wherever the given trees have values; None: not known."""
        for constraint in self._waiting:
            self._assumed += [self._formula(constraint), *self._exists(constraint.tree)]
        self._waiting.clear()
        fails = z3.Not(z3.And(self._formula(concluded), *self._exists(concluded.tree)))
        exist = [part for tree in given for part in self._exists(tree)]
        solver = z3.Solver()
        solver.set("rlimit", _LIMIT)
        solver.add(*self._assumed, *self._definitions, *exist, fails)
        found = solver.check()
        return None if found == z3.unknown else bool(found == z3.unsat)

    def _exists(self, tree: Tree) -> list[Any]:
        return [self._value(divisor) >= 1 for divisor in divisors_in(tree)]

    def _formula(self, constraint: Constraint) -> Any:
        value = self._value(constraint.tree)
        if constraint.relation == ">=":
            return value >= 0
        return value == 0 if constraint.relation == "==" else value != 0

    def _value(self, tree: Tree) -> Any:
        if isinstance(tree, int):
            return z3.IntVal(tree)
        if isinstance(tree, str):
            return self._symbols[tree]
        operator, left, right = tree[0], self._value(tree[1]), self._value(tree[2])
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*":
            return left * right
        if operator == "max":
            return z3.If(left >= right, left, right)
        if operator == "min":
            return z3.If(left <= right, left, right)
        quotient = self._quotient(tree[1], tree[2])
        return quotient if operator == "//" else left - right * quotient

    def _quotient(self, numerator: Tree, divisor: Tree) -> Any:
        found = self._quotients.get((numerator, divisor))
        if found is None:
            found = self._quotients[numerator, divisor] = z3.Int(f"q{len(self._quotients)}")
            above, below = self._value(numerator), self._value(divisor)
            rest = above - below * found
            self._definitions.append(z3.Implies(below >= 1, z3.And(rest >= 0, rest <= below - 1)))
        return found
