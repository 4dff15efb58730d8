"""Describe conditions on the symbols of a model, and the sizes that satisfy them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from splitgraph.dim import DimLike, evaluate, symbols_of

# A size for each symbol.
Sizes = dict[str, int]
Relation = Literal["==", ">="]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on the symbols: `lhs == rhs` or `lhs >= rhs`.

    location: of the node that needs it, "" for the model. symbols: the symbols in it.
    """

    lhs: DimLike
    relation: Relation
    rhs: DimLike
    location: str = ""
    symbols: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", symbols_of(self.lhs) | symbols_of(self.rhs))

    def holds(self, values: Mapping[str, int]) -> bool:
        """Return True if the condition holds for these values of its symbols."""
        try:
            left, right = evaluate(self.lhs, values), evaluate(self.rhs, values)
        except ArithmeticError:
            return False
        return left == right if self.relation == "==" else left >= right
