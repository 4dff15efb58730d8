"""Which generated symbols are shown: those that tell that two dimensions are equal, numbered in order of appearance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from splitgraph.dim import Dim, DimLike, is_spellable, substitute, symbol, symbols_of
from splitgraph.value_type import ValueType


class Naming:
    """Turns internal dimensions into those that are reported.

    A generated symbol that stands alone in a single place says nothing and becomes None; the others are numbered unk0,
    unk1, ... An expression that the grammar cannot spell (half of `batch-size`) becomes a generated symbol too, the
    same one for the same value, and `meanings` says what it stands for.
    """

    def __init__(self, generated: set[str], reserved: Iterable[str]) -> None:
        self.generated = generated
        self._reserved = set(reserved)
        self._places: Counter[str] = Counter()
        self._inside: set[str] = set()
        self._held: dict[Dim, frozenset[str]] = {}
        self._shown: dict[DimLike, DimLike | None] = {}
        self._names: dict[str, DimLike] = {}
        self._next = 0
        self.meanings: dict[str, str] = {}

    def count(self, value: ValueType) -> None:
        """Note where generated symbols stand in a type that will be reported."""
        for dim in value.shape or ():
            if isinstance(dim, Dim):
                self.count_dim(dim)

    def count_dim(self, dim: Dim) -> None:
        """Note the generated symbols of one dimension."""
        names = self._generated_in(dim)
        for name in names:
            self._places[name] += 1
            if str(dim) != name:
                self._inside.add(name)

    def _generated_in(self, dim: Dim) -> frozenset[str]:
        names = self._held.get(dim)
        if names is None:
            names = self._held[dim] = symbols_of(dim) & self.generated
        return names

    def value(self, value: ValueType) -> ValueType:
        """The type as it is reported."""
        if value.shape is None or not any(isinstance(dim, Dim) for dim in value.shape):
            return value
        return value.with_shape([self.dim(dim) for dim in value.shape])

    def dim(self, dim: DimLike | None) -> DimLike | None:
        """The dimension as it is reported."""
        if not isinstance(dim, Dim):
            return dim
        if dim not in self._shown:
            self._shown[dim] = self._show(dim)
        return self._shown[dim]

    def shown_name(self, generated: str) -> DimLike | None:
        """The name under which a generated symbol is shown; None when it is not shown anywhere."""
        return self._names.get(generated)

    def _show(self, dim: Dim) -> DimLike | None:
        generated = self._generated_in(dim)
        if generated and str(dim) in generated and self._places[str(dim)] < 2 and str(dim) not in self._inside:
            return None
        shown = substitute(dim, {name: self._name(name) for name in sorted(generated)}) if generated else dim
        if isinstance(shown, int) or is_spellable(shown):
            return shown
        stand_in = self._new()
        self.meanings[str(stand_in)] = str(shown)
        return stand_in

    def _name(self, generated: str) -> DimLike:
        if generated not in self._names:
            self._names[generated] = self._new()
        return self._names[generated]

    def _new(self) -> Dim:
        while f"unk{self._next}" in self._reserved:
            self._next += 1
        self._next += 1
        return symbol(f"unk{self._next - 1}")
