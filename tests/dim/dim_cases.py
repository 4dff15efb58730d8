"""What is asked of `Facts`: symbols with bounds, facts in the order of asking, and one question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from dim_expressions import Constraint, Tree, is_linear, text_of

KINDS: Final = ("prove_ge", "prove_eq", "prove_ne", "prove_divisible", "range_of", "simplify", "require")

Bounds = dict[str, tuple[int, "int | None"]]


class Fact(NamedTuple):
    """`left == right` or `left >= right`."""

    left: Tree
    relation: Literal["==", ">="]
    right: Tree

    @property
    def constraint(self) -> Constraint:
        """The fact as what it says of 0."""
        return Constraint(("-", self.left, self.right), self.relation)

    def __str__(self) -> str:
        return f"{text_of(self.left)} {self.relation} {text_of(self.right)}"


class Question(NamedTuple):
    """A method of `Facts` and its arguments. relation: of an obligation, for "require"."""

    kind: str
    left: Tree
    right: Tree = 0
    relation: Literal["==", ">="] = ">="

    def __str__(self) -> str:
        if self.kind == "require":
            return f"require({Fact(self.left, self.relation, self.right)})"
        second = "" if self.kind in ("range_of", "simplify") else f", {text_of(self.right)}"
        return f"{self.kind}({text_of(self.left)}{second})"


class Case(NamedTuple):
    """Facts and a question. witness: a value of each symbol; most facts hold there."""

    bounds: Bounds
    facts: tuple[Fact, ...]
    question: Question
    witness: dict[str, int]

    @property
    def names(self) -> list[str]:
        """The symbols."""
        return list(self.witness)

    @property
    def bound_constraints(self) -> Iterator[Constraint]:
        """What the bounds say."""
        for name, (low, high) in self.bounds.items():
            yield Constraint(("-", name, low), ">=")
            if high is not None:
                yield Constraint(("-", high, name), ">=")

    @property
    def trees(self) -> list[Tree]:
        """Both sides of each fact and of the question."""
        return [side for one in (*self.facts, self.question) for side in (one.left, one.right)]

    @property
    def is_linear(self) -> bool:
        """True when nothing multiplies symbols or divides by them."""
        return all(map(is_linear, self.trees))

    def __str__(self) -> str:
        bounds = [
            f"{low} <= {name}" if high is None else f"{low} <= {name} <= {high}"
            for name, (low, high) in self.bounds.items()
        ]
        return f"known: {', '.join([*bounds, *map(str, self.facts)]) or 'nothing'}; asked: {self.question}"
