"""What facts are made of: obligations that were assumed, and remainders that are known."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple

from splitgraph.dim.arithmetic import Dim
from splitgraph.dim.atoms import SYMBOL
from splitgraph.dim.congruence import Congruence, merged
from splitgraph.dim.obligation import Obligation

# Moduli, of the remainders known of one polynomial, that are each tried to show that a difference is never 0.
_MOST_MODULI = 8


class Record(NamedTuple):
    """An obligation that was assumed: what it says of 0, its symbols, and the remainder that it tells."""

    obligation: Obligation
    difference: Dim
    names: frozenset[str]
    congruence: Congruence | None

    @property
    def inequalities(self) -> list[Dim]:
        """Polynomials that are >= 0."""
        return [self.difference, -self.difference] if self.obligation.relation == "==" else [self.difference]

    @property
    def is_bound(self) -> bool:
        """True when the bounds of a symbol say all of it."""
        terms = self.difference.terms
        return len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][0][0].kind == SYMBOL


class Residue(NamedTuple):
    """What all remainders known of one polynomial say together, its symbols, and the least of their moduli."""

    congruence: Congruence
    names: frozenset[str]
    moduli: tuple[int, ...]

    def and_also(self, other: Residue) -> Residue | None:
        """Both together; None when they contradict each other."""
        both = merged(self.congruence, other.congruence)
        moduli = tuple(sorted({*self.moduli, *other.moduli})[:_MOST_MODULI])
        return None if both is None else Residue(both, self.names, moduli)


def moduli_of(difference: Dim, residues: Iterable[Residue]) -> list[int]:
    """Numbers above 1 by which the remainder of the difference may be known."""
    found: set[int] = set()
    for residue in residues:
        inside = {monomial for monomial, _ in residue.congruence.terms}
        outside = gcd(*(c for monomial, c in difference.terms if monomial not in inside))
        found |= {*residue.moduli, residue.congruence.modulus, gcd(residue.congruence.modulus, outside)}
    return sorted(found - {1})
