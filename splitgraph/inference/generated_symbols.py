"""The generated symbols that are shown: those that say that two dimensions are equal, in order of appearance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from splitgraph.dim import Dim, DimLike, Obligation, is_spellable, large_atoms, names_in, substitute_names, symbol
from splitgraph.dim.atoms import Atom
from splitgraph.dim.operations import rebuilt_atom
from splitgraph.dim.printing import spell_large
from splitgraph.inference.solved_symbols import resolve
from splitgraph.value_type import ValueType

T = TypeVar("T")


def tally(values: Collection[T]) -> list[tuple[T, int]]:
    """Each object among the values and how often it stands there, in order of appearance; equal ones may be several.

    Values of a model share few objects, and telling those apart by identity costs a tenth of hashing each.
    """
    objects = {id(value): value for value in values}
    return [(objects[key], times) for key, times in Counter(map(id, values)).items()]


class ShownNames:
    """Converts internal dimensions to reported dimensions.

    A generated symbol that occurs only once, alone, says nothing and becomes None; the others are numbered unk0, unk1,
    ... An expression that the grammar cannot spell (half of `batch-size`) becomes a generated symbol too, and so does a
    large sum or product: the same symbol for the same value, and `meanings` has its meaning. A symbol that `solved`
    equates with something else is shown as that. bounded: symbols that are shown even alone, as their bounds say
    something.
    """

    def __init__(
        self,
        generated: set[str],
        reserved: Iterable[str],
        solved: Mapping[str, DimLike],
        bounded: Iterable[str] = (),
    ) -> None:
        self.generated = generated
        self.solved = solved
        self._reserved = set(reserved)
        self._places: Counter[str] = Counter()
        self._inside: set[str] = set(bounded)
        self._held: dict[Dim, list[tuple[str, bool]]] = {}
        self._shown: dict[DimLike, DimLike | None] = {}
        self._names: dict[str, DimLike] = {}
        self._large: dict[Atom, Dim] = {}
        self._counted: set[Atom] = set()
        self._next = 0
        self.meanings: dict[str, Obligation] = {}

    def count(self, dims: Iterable[DimLike | None], times: int) -> None:
        """Count the places of generated symbols in dimensions that are reported `times` times."""
        for dim in dims:
            if isinstance(dim, Dim):
                self._count_dim(dim, times)

    def _count_dim(self, dim: Dim, times: int) -> None:
        for name, alone in self._generated_in(dim):
            self._places[name] += times
            if not alone:
                self._inside.add(name)
        self._count_large(dim)

    def _count_large(self, dim: Dim) -> None:
        """Note the generated symbols inside large expressions, once: all of them are shown."""
        waiting = large_atoms(resolve(dim, self.solved))
        while waiting:
            atom = waiting.pop()
            if atom in self._counted:
                continue
            self._counted.add(atom)
            for part in atom.parts:
                known = resolve(part, self.solved)
                self._inside |= names_in(known) & self.generated
                waiting += large_atoms(known)

    def _generated_in(self, dim: Dim) -> list[tuple[str, bool]]:
        """The generated symbols in a dimension once it is resolved, each with whether it is the whole dimension."""
        names = self._held.get(dim)
        if names is None:
            known = resolve(dim, self.solved)
            names = [(name, str(known) == name) for name in sorted(names_in(known) & self.generated)]
            self._held[dim] = names
        return names

    def value(self, value: ValueType) -> ValueType:
        """The type as it is reported; the same object where nothing is shown otherwise."""
        if value.element is not None:
            element = self.value(value.element)
            if element is not value.element:
                value = ValueType(value.kind, value.dtype, value.shape, element)
        if value.shape is None or not any(isinstance(dim, Dim) for dim in value.shape):
            return value
        shown = [self.dim(dim) for dim in value.shape]
        if all(mine is theirs for mine, theirs in zip(shown, value.shape, strict=True)):
            return value
        return value.with_shape(shown)

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

    def named(self, dim: DimLike) -> DimLike | None:
        """The dimension as far as generated symbols in it are shown; None when one is not."""
        if any(name not in self._names for name in names_in(dim) & self.generated):
            return None
        return self._under_shown_names(dim)

    def shown_names(self) -> frozenset[str]:
        """The generated symbols under the names that are shown."""
        return frozenset({*map(str, self._names.values()), *self.meanings})

    def _show(self, dim: Dim) -> DimLike | None:
        generated = self._generated_in(dim)
        if any(alone and self._places[name] < 2 and name not in self._inside for name, alone in generated):
            return None
        shown = self._under_shown_names(resolve(dim, self.solved))
        if isinstance(shown, int) or is_spellable(shown):
            return shown
        stand_in = self._new()
        self._note_meaning(stand_in, shown, str(shown))
        return stand_in

    def _under_shown_names(self, known: DimLike) -> DimLike:
        """The dimension with shown names for all generated symbols in it."""
        names = names_in(known)
        values: dict[str, DimLike] = {name: self._name(name) for name in sorted(names & self.generated)}
        values.update({atom.name: self._name_large(atom) for atom in large_atoms(known)})
        return substitute_names(known, values)

    def _name_large(self, atom: Atom) -> Dim:
        """The symbol that stands for a large expression; the large expressions in its meaning get symbols too."""
        waiting, found = [atom], list[tuple[Atom, list[DimLike]]]()
        while waiting:
            each = waiting.pop()
            if each not in self._large:
                self._large[each] = self._new()
                parts = [resolve(part, self.solved) for part in each.parts]
                found.append((each, parts))
                waiting += [inner for part in parts for inner in large_atoms(part)]
        for each, parts in found:
            shown = [self._under_shown_names(part) for part in parts]
            self._note_meaning(self._large[each], rebuilt_atom(each.kind, shown), spell_large(each, shown))
        return self._large[atom]

    def _note_meaning(self, name: Dim, meaning: DimLike, text: str) -> None:
        self.meanings[str(name)] = Obligation(name, "==", meaning, f"{name} == {text}")

    def _name(self, generated: str) -> DimLike:
        if generated not in self._names:
            self._names[generated] = self._new()
        return self._names[generated]

    def _new(self) -> Dim:
        while f"unk{self._next}" in self._reserved:
            self._next += 1
        self._next += 1
        return symbol(f"unk{self._next - 1}")
