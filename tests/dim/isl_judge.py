"""isl as a judge: exact for linear arithmetic over the integers."""

from __future__ import annotations

from collections.abc import Sequence

import islpy
from dim_expressions import Constraint, Tree, symbols_in, value_of

# Operations of isl for one question; none of a million needed as many.
_MOST_OPERATIONS = 2_000_000


class IslJudge:
    """What follows from the linear constraints that were assumed, over symbols >= 0."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name: f"s{place}" for place, name in enumerate(names)}
        self._context = islpy.Context()
        self._context.set_max_operations(_MOST_OPERATIONS)
        self._known: islpy.Set | None = self._set(" and ".join(f"{name} >= 0" for name in self._names.values()))

    def assume(self, constraint: Constraint) -> None:
        """Take a linear constraint for granted."""
        try:
            added = self._set(self._text(constraint))
            self._known = None if self._known is None else self._known.intersect(added)
        except islpy.Error as error:
            if "maximal number of operations" not in str(error):
                raise
            self._known = None

    def follows(self, given: Sequence[Tree], concluded: Constraint) -> bool | None:
        """Whether the conclusion, which is linear and so has a value everywhere, follows; None: not known."""
        if self._known is None:
            return None
        try:
            failing = self._set(f"not ({self._text(concluded)})")
            return bool(self._known.intersect(failing).is_empty())
        except islpy.Error as error:
            if "maximal number of operations" not in str(error):
                raise
            return None

    def _set(self, condition: str) -> islpy.Set:
        self._context.reset_operations()
        return islpy.Set(f"{{ [{', '.join(self._names.values())}] : {condition} }}", context=self._context)

    def _text(self, constraint: Constraint) -> str:
        relation = {">=": ">=", "==": "=", "!=": "!="}[constraint.relation]
        return f"{self._expression(constraint.tree)} {relation} 0"

    def _expression(self, tree: Tree) -> str:
        if isinstance(tree, int):
            return str(tree)
        if isinstance(tree, str):
            return self._names[tree]
        operator, left, right = tree
        if operator == "*" and not symbols_in(left):
            return f"({value_of(left)}*({self._expression(right)}))"
        one, other = self._expression(left), self._expression(right)
        if operator == "*":
            return f"({value_of(right)}*({one}))"
        if operator in ("max", "min"):
            return f"{operator}({one}, {other})"
        if operator == "//":
            return f"floor(({one})/{right})"
        return f"(({one}) mod {right})" if operator == "%" else f"(({one}) {operator} ({other}))"
