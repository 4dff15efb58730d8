"""What must hold of dimensions for a model to be valid."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms
from splitgraph.dim.atoms import Monomial, add_into
from splitgraph.dim.printing import spell_relation
from splitgraph.dim.values import symbols_of


@dataclass(frozen=True)
class Obligation:
    """`lhs == rhs` or `lhs >= rhs`, to hold for every run of the model; str() solves it for reading ("N >= 2")."""

    lhs: DimLike
    relation: Literal["==", ">="]
    rhs: DimLike

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols that occur."""
        return symbols_of(self.lhs) | symbols_of(self.rhs)

    def __str__(self) -> str:
        difference = self.lhs - self.rhs
        if isinstance(difference, int):
            return f"{self.lhs} {self.relation} {self.rhs}"
        if self.relation == "==" and difference.terms[0][1] < 0:
            difference = -difference
        factor = gcd(*(c for _, c in difference.terms))
        if self.relation == ">=" or difference.const % factor == 0:
            coefficients: dict[Monomial, int] = {}
            const = add_into(coefficients, difference)
            solved = from_terms({m: c // factor for m, c in coefficients.items()}, const // factor)
            difference = solved if isinstance(solved, Dim) else difference
        return spell_relation(difference, self.relation)
