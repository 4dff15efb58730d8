"""Dimensions as plain tuples for pickle. No tuple is nested deeply, whatever the dimension is: pickle recurses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from splitgraph.dim.atoms import Atom, Value

# A number; or the terms, each with the places of its atoms in a list of all atoms, and the constant.
Pickled: TypeAlias = int | tuple[tuple[tuple[tuple[int, ...], int], ...], int]


def pickled(value: Value, places: Mapping[Atom, int]) -> Pickled:
    """A value with each atom as its place in a list of all atoms."""
    if isinstance(value, int):
        return value
    return tuple((tuple(places[atom] for atom in monomial), c) for monomial, c in value.terms), value.const
