"""Dimensions as they are reported: simplified by all that is known at the end, and under shown names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from splitgraph.dim import (
    Dim,
    DimLike,
    Facts,
    Obligation,
    is_spellable,
    large_atoms,
    names_in,
    substitute_names,
    symbol,
    symbols_of,
)
from splitgraph.dim.atoms import MAX, SYMBOL, Atom, atoms_by_level
from splitgraph.dim.operations import rebuilt, rebuilt_atom, undominated
from splitgraph.dim.printing import bare_symbol, spell_large
from splitgraph.inference.knowledge import with_dims
from splitgraph.value_type import ValueType

T = TypeVar("T")


def solve(obligations: Iterable[Obligation], generated: Collection[str]) -> dict[str, DimLike]:
    """The values of generated symbols, by name, that hold in every run, as the obligations of the model say:
    `unk1 == past + seq` gives `past + seq` for unk1.

    A value may contain generated symbols that are solved themselves; `resolve` follows them.
    """
    solved: dict[str, DimLike] = {}
    for obligation in obligations:
        if obligation.relation != "==":
            continue
        difference = resolve(obligation.lhs - obligation.rhs, solved)
        found = None if isinstance(difference, int) else _solution(difference, generated)
        if found is not None:
            solved[found[0]] = found[1]
    return solved


def resolve(dim: DimLike, solved: Mapping[str, DimLike]) -> DimLike:
    """The dimension with the values of solved symbols put in; unchanged where that makes a divisor 0, or where it
    stands for a large expression.
    """
    while solved and not isinstance(dim, int) and not solved.keys().isdisjoint(names_in(dim)):
        try:
            dim = substitute_names(dim, solved)
        except ZeroDivisionError:
            break
    return dim


def _solution(difference: Dim, generated: Collection[str]) -> tuple[str, DimLike] | None:
    """A generated symbol and its value where the difference is 0: the newest symbol that is a term of its own. None
    without one.
    """
    names = [name for name in symbols_of(difference) if name in generated]
    for name in sorted(names, key=lambda name: (len(name), name), reverse=True):
        for sign in (1, -1):
            rest = difference - sign * symbol(name)
            if name not in symbols_of(rest):
                return name, -sign * rest
    return None


class _Simplified(dict[Dim, DimLike]):
    """Each dimension simplified by the facts of a scope, with N % 2 == 0 `2*(N//2)` is N; computed on first use."""

    def __init__(self, facts: Facts, solved: Mapping[str, DimLike]) -> None:
        super().__init__()
        self._facts = facts
        self._solved = solved

    def __missing__(self, dim: Dim) -> DimLike:
        plain = _plain(dim, self._facts)
        known = resolve(plain, self._solved)
        known = self[dim] = known if known is plain else _plain(known, self._facts)
        return known


class TypeSimplifier:
    """Simplifies dimensions by everything that is known after the whole model has been walked, obligations of later
    nodes included. A symbol alone stays, even one with only one value.

    solved: the values of generated symbols that equal something else in every run.
    """

    def __init__(self, solved: Mapping[str, DimLike]) -> None:
        self._solved = solved
        self._known: dict[Facts, _Simplified] = {}

    def _of(self, facts: Facts) -> _Simplified:
        known = self._known.get(facts)
        if known is None:
            known = self._known[facts] = _Simplified(facts, self._solved)
        return known

    def value(self, value: ValueType, facts: Facts) -> ValueType:
        """The type, simplified by the facts of a scope; the same object if nothing changes."""
        return with_dims(value, self._of(facts).__getitem__)

    def dims(self, dims: Iterable[DimLike | None], facts: Facts) -> tuple[DimLike | None, ...]:
        """Each dimension, simplified by the facts of a scope."""
        known = self._of(facts)
        return tuple([known[dim] if isinstance(dim, Dim) else dim for dim in dims])


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


def tally(values: Collection[T]) -> list[tuple[T, int]]:
    """Each object among the values and how often it stands there, in order of appearance; equal ones may be several.

    Values of a model share few objects, and telling those apart by identity costs a tenth of hashing each.
    """
    keys = [*map(id, values)]
    objects = dict(zip(keys, values, strict=True))
    return [(objects[key], times) for key, times in Counter(keys).items()]


class ShownNames(dict[Dim, "DimLike | None"]):
    """Converts internal dimensions to reported dimensions; each is put into words on first use.

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
        super().__init__()
        self.generated = generated
        self.solved = solved
        self._reserved = set(reserved)
        self._places: Counter[str] = Counter()
        self._inside: set[str] = set(bounded)
        self._held: dict[Dim, list[tuple[str, bool]]] = {}
        self._names: dict[str, DimLike] = {}
        self._large: dict[Atom, Dim] = {}
        self._counted: set[Atom] = set()
        self._next = 0
        self.meanings: dict[str, Obligation] = {}

    def count(self, places: Iterable[tuple[Iterable[DimLike | None], int]]) -> None:
        """Count the places of generated symbols in dimensions, each with how often it is reported."""
        counts: dict[Dim, int] = {}
        for dims, times in places:
            for dim in dims:
                if isinstance(dim, Dim):
                    counts[dim] = counts.get(dim, 0) + times
        for dim, times in counts.items():
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
        return with_dims(value, self.__getitem__)

    def dim(self, dim: DimLike | None) -> DimLike | None:
        """The dimension as it is reported."""
        return self[dim] if isinstance(dim, Dim) else dim

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

    def __missing__(self, dim: Dim) -> DimLike | None:
        shown = self[dim] = self._show(dim)
        return shown

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
