"""How a dimension is pickled: by its parts, so that it is the same object again where it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from splitgraph.dim.arithmetic import Dim, DimLike, atom_value, interned, symbol
from splitgraph.dim.atoms import SYMBOL, Atom, all_atoms

# A number; or the terms, each with the places of its atoms in a list of all atoms, and the constant. No tuple is nested
# deeply, whatever the dimension is: pickle recurses.
_Pickled: TypeAlias = int | tuple[tuple[tuple[tuple[int, ...], int], ...], int]
# The kind, the name and the arguments of an atom.
_Part: TypeAlias = tuple[int, str, tuple[_Pickled, ...]]


def reduced(dim: Dim) -> tuple[Callable[..., Dim], tuple[Any, ...]]:
    """Return what pickle asks for: a function, and the arguments with which it makes the dimension."""
    atoms = all_atoms([dim])
    places = {atom: place for place, atom in enumerate(atoms)}
    parts = [(atom.kind, atom.name, tuple(_pickled(part, places) for part in atom.parts)) for atom in atoms]
    return _unpickled, (parts, _pickled(dim, places))


def _pickled(value: DimLike, places: Mapping[Atom, int]) -> _Pickled:
    if isinstance(value, int):
        return value
    return tuple((tuple(places[atom] for atom in monomial), c) for monomial, c in value.terms), value.const


def _unpickled(parts: Sequence[_Part], whole: _Pickled) -> Dim:
    atoms: list[Atom] = []

    def read(pickled: _Pickled) -> DimLike:
        if isinstance(pickled, int):
            return pickled
        terms, const = pickled
        return interned(tuple((tuple(atoms[place] for place in monomial), c) for monomial, c in terms), const)

    for kind, name, args in parts:
        made = symbol(name) if kind == SYMBOL else atom_value(kind, tuple(read(arg) for arg in args))
        atoms.append(made.terms[0][0][0])
    dim = read(whole)
    assert isinstance(dim, Dim)
    return dim
