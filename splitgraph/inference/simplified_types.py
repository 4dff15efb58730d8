"""Types with dimensions simplified by what is known: with N % 2 == 0, `2*(N//2)` becomes N."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from splitgraph.dim import Dim, DimLike, Facts, symbol
from splitgraph.dim.atoms import MAX, SYMBOL, Atom, atoms_by_level
from splitgraph.dim.operations import rebuilt, rebuilt_atom, undominated
from splitgraph.dim.printing import bare_symbol
from splitgraph.inference.solved_symbols import resolve
from splitgraph.value_type import ValueType


class TypeSimplifier:
    """Simplifies dimensions by everything that is known after the whole model has been walked, obligations of later
    nodes included.

    solved: the values of generated symbols that equal something else in every run.
    """

    def __init__(self, solved: Mapping[str, DimLike]) -> None:
        self._solved = solved
        self._known: dict[tuple[Facts, Dim], DimLike] = {}

    def dim(self, dim: Dim, facts: Facts) -> DimLike:
        """The dimension, simplified by the facts of a scope. A symbol alone stays, even one with only one value."""
        known = self._known.get((facts, dim))
        if known is None:
            plain = _plain(dim, facts)
            known = resolve(plain, self._solved)
            known = self._known[facts, dim] = known if known is plain else _plain(known, facts)
        return known

    def value(self, value: ValueType, facts: Facts) -> ValueType:
        """The type, simplified by the facts of a scope; the same object if nothing changes."""
        return with_dims(value, lambda dim: self.dim(dim, facts))

    def dims(self, dims: Iterable[DimLike | None], facts: Facts) -> tuple[DimLike | None, ...]:
        """Each dimension, simplified by the facts of a scope."""
        return tuple([self.dim(dim, facts) if isinstance(dim, Dim) else dim for dim in dims])


def simplified(value: ValueType, facts: Facts) -> ValueType:
    """The type, simplified by what is known in a scope so far; the same object if nothing changes."""
    return with_dims(value, facts.simplify)


def _plain(dim: DimLike, facts: Facts) -> DimLike:
    if isinstance(dim, int) or bare_symbol(dim) is not None:
        return dim
    return _with_decided_maxima(facts.simplify(dim, fixed=True), facts)


def _with_decided_maxima(dim: DimLike, facts: Facts) -> DimLike:
    """The dimension without the arguments of maxima that another one is known to be at least as large as."""
    atoms, known = atoms_by_level([dim]), dict[Atom, DimLike]()
    if not any(atom.kind == MAX for atom in atoms):
        return dim
    for atom in atoms:
        if atom.kind == SYMBOL:
            known[atom] = symbol(atom.name)
            continue
        args: list[DimLike] = [rebuilt(arg, known) for arg in atom.args]
        known[atom] = rebuilt_atom(atom.kind, undominated(args, facts.prove_ge) if atom.kind == MAX else args)
    return rebuilt(dim, known)


def with_dims(value: ValueType, change: Callable[[Dim], DimLike]) -> ValueType:
    """The type with each symbolic dimension changed; the same object where nothing is."""
    if value.element is not None:
        element = with_dims(value.element, change)
        if element is not value.element:
            value = ValueType(value.kind, value.dtype, value.shape, element)
    if value.shape is None or not any(isinstance(dim, Dim) for dim in value.shape):
        return value
    dims = [change(dim) if isinstance(dim, Dim) else dim for dim in value.shape]
    same = all(mine is theirs for mine, theirs in zip(dims, value.shape, strict=True))
    return value if same else value.with_shape(dims)
