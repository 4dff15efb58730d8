"""Relations of dimensions: an `Obligation` as people read it, and a `Fact` as proofs use it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Literal, NamedTuple

from splitgraph.dim.arithmetic import Dim, DimLike, from_terms
from splitgraph.dim.atoms import Monomial, add_into
from splitgraph.dim.operations import symbols_of
from splitgraph.dim.parsing import parse_expression
from splitgraph.dim.printing import spell_inside, spell_relation

# The two sides of a printed relation; a name in brackets may contain anything.
_SIDES = re.compile(r"((?:[^\[=>]|\[(?:[^\]]|\]\])*\])+) (?:==|>=) (.+)", re.DOTALL)


@dataclass(frozen=True)
class Obligation:
    """A relation that must hold: `lhs == rhs` or `lhs >= rhs`.

    `str()` gives the relation in the grammar of dimensions, solved for reading ("N >= 2" for N - 2 and 0). Obligations
    are equal where their sides and their relation are.

    lhs, rhs: the sides, each a number or a dimension. relation: what must hold between them. branches: the locations of
    the bodies of If, Loop or Scan if the relation must hold only where one of them runs ("main/If_3/then_branch");
    empty if it must hold in every run. text: what `str()` gives
    where another spelling than the solved one is plainer, as for a product that is not multiplied out; None elsewhere.
    """

    lhs: DimLike
    relation: Literal["==", ">="]
    rhs: DimLike
    text: str | None = field(default=None, compare=False, repr=False)
    branches: tuple[str, ...] = field(default=(), compare=False)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols that occur."""
        return symbols_of(self.lhs) | symbols_of(self.rhs)

    def within(self, branches: tuple[str, ...]) -> Obligation:
        """Return the obligation for a run in which these bodies run; the same object if there are no bodies."""
        return replace(self, branches=branches) if branches else self

    def solved(self) -> Obligation:
        """Return the same obligation with the sides that `str()` writes. Obligations with the same text have the same
        result.
        """
        difference = self._difference()
        if self.text is not None or isinstance(difference, int):
            return self
        sides = _SIDES.fullmatch(str(self))
        if sides is not None:
            lhs, rhs = map(parse_expression, sides.groups())
            if lhs - rhs == difference:
                return Obligation(lhs, self.relation, rhs)
        # The name of a large dimension does not say what the dimension is.
        return Obligation(difference, self.relation, 0)

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        difference = self._difference()
        if isinstance(difference, int):
            return f"{spell_inside(self.lhs)} {self.relation} {spell_inside(self.rhs)}"
        return spell_relation(difference, self.relation)

    def _difference(self) -> DimLike:
        """Return the difference of the sides, without a common factor; in an equation its first term is positive."""
        difference = self.lhs - self.rhs
        if isinstance(difference, int):
            return difference
        if self.relation == "==" and difference.terms[0][1] < 0:
            difference = -difference
        factor = gcd(*(c for _, c in difference.terms))
        if self.relation == ">=" or difference.const % factor == 0:
            coefficients: dict[Monomial, int] = {}
            const = add_into(coefficients, difference)
            solved = from_terms({m: c // factor for m, c in coefficients.items()}, const // factor)
            return solved if isinstance(solved, Dim) else difference
        return difference


class Fact(NamedTuple):
    """`difference >= 0`, or `difference == 0` for an equality."""

    difference: Dim
    is_equality: bool

    @property
    def sides(self) -> tuple[Dim, ...]:
        """The polynomials that are >= 0."""
        return (self.difference, -self.difference) if self.is_equality else (self.difference,)
