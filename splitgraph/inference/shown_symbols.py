"""Prepares dimensions and requirements for reports.

They are simplified by all that is known at the end (`TypeSimplifier`), and get shown names (`ShownNames`).
Requirements that others imply are left out (`Requirements`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from splitgraph.dim import (
    Dim,
    DimLike,
    Facts,
    Obligation,
    dim_max,
    dim_min,
    is_spellable,
    large_atoms,
    names_in,
    product,
    substitute_names,
    symbol,
    symbols_of,
)
from splitgraph.dim.atoms import MAX, NAMED, Atom, atoms_by_level
from splitgraph.dim.conditions import plain_obligation, without_factors
from splitgraph.dim.operations import rebuilt, rebuilt_atom, undominated
from splitgraph.dim.printing import bare_symbol, spell_inside, spell_large
from splitgraph.inference.memo import with_dims
from splitgraph.inference.walk_results import FoundSplit
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.value_type import ValueType

# Simplifying dimensions by all that is known at the end ---------------------------------------------------------------

T = TypeVar("T")


class TypeSimplifier:
    """Simplifies dimensions by everything that is known at the end, obligations of later nodes included. A single
    symbol stays, even if it has only one value.

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
        """Return the type, simplified by the facts of a scope; the same object if nothing changes."""
        return with_dims(value, self._of(facts).__getitem__)

    def dims(self, dims: Iterable[DimLike | None], facts: Facts) -> tuple[DimLike | None, ...]:
        """Return each dimension, simplified by the facts of a scope."""
        known = self._of(facts)
        return tuple([known[dim] if isinstance(dim, Dim) else dim for dim in dims])


class _Simplified(dict[Dim, DimLike]):
    """Each dimension simplified by the facts of a scope, on first use: `2*(N//2)` is N if N % 2 == 0."""

    def __init__(self, facts: Facts, solved: Mapping[str, DimLike]) -> None:
        super().__init__()
        self._facts = facts
        self._solved = solved

    def __missing__(self, dim: Dim) -> DimLike:
        plain = _plain(dim, self._facts)
        known = resolve(plain, self._solved)
        known = self[dim] = known if known is plain else _plain(known, self._facts)
        return known


def _plain(dim: DimLike, facts: Facts) -> DimLike:
    if isinstance(dim, int) or bare_symbol(dim) is not None:
        return dim
    return _with_decided_maxima(facts.simplify(dim, fixed=True), facts)


def _with_decided_maxima(dim: DimLike, facts: Facts) -> DimLike:
    """Return the dimension without those arguments of a maximum that are never larger than another one. It stays as it
    is if a divisor would become 0: then the dimension has no value in any run.
    """
    atoms, known = atoms_by_level([dim]), dict[Atom, DimLike]()
    if not any(atom.kind == MAX for atom in atoms):
        return dim
    for atom in atoms:
        if atom.kind in NAMED:
            continue
        args: list[DimLike] = [rebuilt(arg, known) for arg in atom.args]
        try:
            known[atom] = rebuilt_atom(atom.kind, undominated(args, facts.prove_ge) if atom.kind == MAX else args)
        except ZeroDivisionError:
            return dim
    return rebuilt(dim, known)


def solve(obligations: Iterable[Obligation], generated: Collection[str]) -> dict[str, DimLike]:
    """Return the values of generated symbols, by name, that hold in every run. They follow from the obligations of the
    model: `unk1 == past + seq` gives `past + seq` for unk1.

    A value may contain generated symbols that are solved themselves; `resolve` follows them.
    """
    solved: dict[str, DimLike] = {}
    for obligation in obligations:
        if obligation.relation != "==":
            continue
        difference = resolve(obligation.lhs - obligation.rhs, solved)
        solution = None if isinstance(difference, int) else _solution(difference, generated)
        if solution is not None:
            solved[solution[0]] = solution[1]
    return solved


def resolve(dim: DimLike, solved: Mapping[str, DimLike]) -> DimLike:
    """Put the values of solved symbols into a dimension. It stays as it is if a divisor would become 0."""
    while solved and not isinstance(dim, int) and not solved.keys().isdisjoint(names_in(dim)):
        try:
            dim = substitute_names(dim, solved)
        except ZeroDivisionError:
            break
    return dim


def _solution(difference: Dim, generated: Collection[str]) -> tuple[str, DimLike] | None:
    """Return a generated symbol and its value where the difference is 0: the newest symbol that is a term of its own.
    Return None if there is none.
    """
    names = [name for name in symbols_of(difference) if name in generated]
    for name in sorted(names, key=lambda name: (len(name), name), reverse=True):
        for sign in (1, -1):
            rest = difference - sign * symbol(name)
            if name not in symbols_of(rest):
                return name, -sign * rest
    return None


def tally(values: Collection[T]) -> list[tuple[T, int]]:
    """Return each object among the values and how often it occurs, in order of appearance. Some of the objects may be
    equal.

    The values of a model share few objects, and to tell these apart by identity costs a tenth of hashing each.
    """
    keys = [*map(id, values)]
    objects = dict(zip(keys, values, strict=True))
    return [(objects[key], times) for key, times in Counter(keys).items()]


# The names of dimensions ----------------------------------------------------------------------------------------------


class ShownNames(dict[Dim, "DimLike | None"]):
    """Converts internal dimensions to reported dimensions, each on first use.

    A generated symbol that occurs only once, and alone, says nothing and becomes None. The others are numbered unk0,
    unk1, ... An expression that the grammar cannot spell (half of `batch-size`) becomes a generated symbol too, and so
    does a large sum or product: equal values get the same symbol, and `meanings` has its meaning. A symbol that
    `solved` equates with something else is shown as that. bounded: symbols that are shown even alone, because their
    bounds say something.
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
        self._generated_of: dict[Dim, list[tuple[str, bool]]] = {}
        self._names: dict[str, DimLike] = {}
        self._large: dict[Atom, Dim] = {}
        self._counted: set[Atom] = set()
        self._next = 0
        self.meanings: dict[str, Obligation] = {}

    def count(self, places: Iterable[tuple[Iterable[DimLike | None], int]]) -> None:
        """Count the places of generated symbols in dimensions. Each dimension comes with the number of its reports."""
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
        """Note the generated symbols inside large expressions, once. All of them are shown."""
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
        """Return the generated symbols in a resolved dimension, and whether each is the whole dimension."""
        names = self._generated_of.get(dim)
        if names is None:
            known = resolve(dim, self.solved)
            names = [(name, str(known) == name) for name in sorted(names_in(known) & self.generated)]
            self._generated_of[dim] = names
        return names

    def value(self, value: ValueType) -> ValueType:
        """Return the type as it is reported; the same object where nothing is shown otherwise."""
        return with_dims(value, self.__getitem__)

    def dim(self, dim: DimLike | None) -> DimLike | None:
        """Return the dimension as it is reported."""
        return self[dim] if isinstance(dim, Dim) else dim

    def shown_name(self, generated: str) -> DimLike | None:
        """Return the name under which a generated symbol is shown; None if it is not shown."""
        return self._names.get(generated)

    def named(self, dim: DimLike) -> DimLike | None:
        """Return the dimension with shown names; None if one of its generated symbols is not shown."""
        if any(name not in self._names for name in names_in(dim) & self.generated):
            return None
        return self._under_shown_names(dim)

    def shown_names(self) -> frozenset[str]:
        """Return the names of the generated symbols that are shown."""
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
        """Return the dimension with shown names for all generated symbols in it."""
        names = names_in(known)
        values: dict[str, DimLike] = {name: self._name(name) for name in sorted(names & self.generated)}
        values.update({atom.name: self._name_large(atom) for atom in large_atoms(known)})
        return substitute_names(known, values)

    def _name_large(self, atom: Atom) -> Dim:
        """Return the symbol that stands for a large expression; the large expressions in its meaning get
        symbols too.
        """
        waiting, expressions = [atom], list[tuple[Atom, list[DimLike]]]()
        while waiting:
            large = waiting.pop()
            if large not in self._large:
                self._large[large] = self._new()
                parts = [resolve(part, self.solved) for part in large.parts]
                expressions.append((large, parts))
                waiting += [inner for part in parts for inner in large_atoms(part)]
        for large, parts in expressions:
            shown = [self._under_shown_names(part) for part in parts]
            self._note_meaning(self._large[large], rebuilt_atom(large.kind, shown), spell_large(large, shown))
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


# Requirements on symbols, and assumptions -----------------------------------------------------------------------------

# Of more obligations none is left out, and each is shown as the node said it: to compare them takes the longer, the
# more there are.
_MOST_COMPARED = 200


class Requirements:
    """The obligations of a model under shown names.

    An obligation is not shown if the others imply it (of `N % 2 == 0` and `N % 4 == 0` the first), or if it is about a
    dimension that is not shown. Obligations of a body are compared with those around it, but never the other way round:
    the body may not run.
    """

    def __init__(self, naming: ShownNames, noted: Iterable[tuple[Obligation, Facts]]) -> None:
        self._naming = naming
        self._shown: dict[Obligation, Obligation | None] = {}
        self._plain: dict[tuple[Facts, Obligation], Obligation] = {}
        scopes: dict[Facts, dict[Obligation, None]] = {}
        for obligation, facts in noted:
            if obligation not in self._shown:
                self._shown[obligation] = self._under_shown_names(obligation)
            shown = self._shown[obligation]
            if shown is not None:
                scopes.setdefault(facts, {})[shown] = None
        compared = sum(map(len, scopes.values())) <= _MOST_COMPARED
        common = _named_twice(chain.from_iterable(scopes.values())) if compared else set[str]()
        known: dict[Facts, Facts] = {}
        # The outer ones first.
        for facts in sorted(scopes, key=lambda facts: sum(1 for _ in facts.enclosing())):
            around = next((known[outer] for outer in facts.enclosing() if outer in known), None)
            known[facts] = Facts() if around is None else around.child()
            for shown, plain in _plainest(tuple(scopes[facts]), known[facts], common):
                self._plain[facts, shown] = plain

    def plain(self, obligation: Obligation, facts: Facts) -> Obligation | None:
        """Return the reported form of an obligation of a scope; None if it is not reported."""
        shown = self._shown[obligation]
        return None if shown is None else self._plain.get((facts, shown))

    def _under_shown_names(self, obligation: Obligation) -> Obligation | None:
        """Return the obligation in shown names; None when it speaks of a dimension that is not shown at all, or goes
        without saying because it holds for all sizes, as it does where both sides are shown alike.
        """
        naming = self._naming
        lhs, rhs = resolve(obligation.lhs, naming.solved), resolve(obligation.rhs, naming.solved)
        known = Facts()
        if known.prove_eq(lhs, rhs) if obligation.relation == "==" else known.prove_ge(lhs, rhs):
            return None
        left, right = naming.named(lhs), naming.named(rhs)
        return None if left is None or right is None else plain_obligation(Obligation(left, obligation.relation, right))


def _named_twice(obligations: Iterable[Obligation]) -> set[str]:
    """Return the symbols in more than one obligation. Obligations on other symbols neither follow from others nor
    simplify others.
    """
    counts = Counter(name for obligation in set(obligations) for name in obligation.symbols)
    return {name for name, count in counts.items() if count > 1}


def _plainest(shown: Sequence[Obligation], known: Facts, common: set[str]) -> Iterable[tuple[Obligation, Obligation]]:
    """Return each obligation of a scope that the others do not imply, with its plainest form beside them. `known` takes
    them in.
    """
    # The walk leaves out what earlier obligations imply. The reversed order shows what later ones imply.
    later, kept = known.child(), list[Obligation]()
    for obligation in reversed(shown):
        if common.isdisjoint(obligation.symbols) or later.require(obligation) != "proved":
            kept.append(obligation)
    # A bound of one symbol is always shown as it is, so that others may rely on it wherever it stands.
    bounds = known.child()
    for obligation in kept:
        if obligation.relation == ">=" and len(obligation.symbols) == 1:
            bounds.require(obligation)
    for obligation in reversed(kept):
        plain = obligation
        if not common.isdisjoint(obligation.symbols):
            divided = obligation
            if len(obligation.symbols) > 1:
                divided = without_factors(obligation, lambda factor: bounds.prove_ge(factor, 1))
            plain = min(divided, _by_what_is_known(divided, known), key=lambda candidate: len(str(candidate)))
            known.require(obligation)
        yield obligation, plain.solved()


def _by_what_is_known(obligation: Obligation, known: Facts) -> Obligation:
    plain = known.simplify(obligation.lhs - obligation.rhs)
    return Obligation(plain, obligation.relation, 0) if isinstance(plain, Dim) else obligation


def shown_requirements(
    state: WalkState,
    naming: ShownNames,
    requirements: Requirements,
    splits: Iterable[tuple[FoundSplit, Sequence[Obligation]]],
) -> dict[Obligation, tuple[str, ...]]:
    """Return all requirements on symbols, each with the locations of the nodes that require it. splits: the
    requirements of each split.
    """
    meanings = frozenset(naming.meanings.values())
    required_at: dict[Obligation, dict[str, None]] = {}
    branches: dict[Obligation, dict[str, None]] = {}
    for noted in state.record.requirements:
        plain = requirements.plain(noted.obligation, noted.facts)
        if plain is not None:
            required_at.setdefault(plain, {})[noted.location] = None
            branches.setdefault(plain, {})[noted.branch] = None
    for split, required in splits:
        for plain in required:
            # The meaning of a symbol holds everywhere.
            required_at.setdefault(plain, {})[split.location] = None
            branches.setdefault(plain, {})["" if plain in meanings else split.branch] = None
    for name, definition in state.symbols.definitions.items():
        meaning = None if definition is None else naming.dim(definition[0])
        if definition is not None and isinstance(meaning, Dim) and meaning != symbol(name):
            required_at.setdefault(Obligation(symbol(name), "==", meaning).solved(), {})[definition[1]] = None
    for name in _known_broadcasts(state):
        shown, operands = naming.shown_name(name), _shown_operands(state, naming, name)
        if shown is not None and operands is not None:
            required_at.setdefault(_broadcast(shown, operands), {})[state.symbols.broadcasts[name][2]] = None
    for said in naming.meanings.values():
        required_at.setdefault(said, {})
    # A requirement outside of bodies holds in every run.
    only = {plain: () if "" in bodies else tuple(bodies) for plain, bodies in branches.items()}
    return {plain.within(only.get(plain, ())): tuple(locations) for plain, locations in required_at.items()}


def shown_assumptions(state: WalkState) -> dict[Obligation, str]:
    """Return the assumptions that do not follow from others, each with the first node that needs it."""
    assumptions = tuple(state.symbols.assumptions)
    common = _named_twice(assumptions) if len(assumptions) <= _MOST_COMPARED else set[str]()
    return {
        plain: state.symbols.assumptions[assumption] for assumption, plain in _plainest(assumptions, Facts(), common)
    }


def _broadcast(shown: DimLike, operands: Sequence[DimLike]) -> Obligation:
    """State that a symbol is the broadcast of dimensions. Each of these is 1 or equal to the others, so that the
    broadcast is the largest, but 0 if one is 0.
    """
    value = product([*(dim_min(1, operand) for operand in operands), dim_max(*operands)])
    # The product would be unreadable if it were expanded.
    texts = [*map(spell_inside, operands)]
    factors = [*(f"min(1, {text})" for text in texts), f"max({', '.join(texts)})"]
    return Obligation(shown, "==", value, f"{spell_inside(shown)} == {'*'.join(factors)}")


def _known_broadcasts(state: WalkState) -> list[str]:
    """Return the generated symbols for broadcasts of dimensions that contain only declared symbols."""
    known: dict[str, None] = {}
    for name, (a, b, _) in state.symbols.broadcasts.items():
        if not (symbols_of(a) | symbols_of(b)) & state.symbols.generated - known.keys():
            known[name] = None
    return list(known)


def _shown_operands(state: WalkState, naming: ShownNames, name: str) -> list[DimLike] | None:
    """Return the operands of the broadcast that a generated symbol stands for. An operand that is not reported is
    replaced by its own operands. Return None if one has none, or if only one is left.
    """
    operands: dict[DimLike, None] = {}
    waiting = list(reversed(state.symbols.broadcasts[name][:2]))
    seen = set(waiting)
    while waiting:
        operand = waiting.pop()
        shown, inner = naming.dim(operand), state.symbols.broadcasts.get(str(operand))
        if shown is not None:
            operands[shown] = None
        elif inner is None:
            return None
        else:
            waiting += [dim for dim in reversed(inner[:2]) if dim not in seen]
            seen.update(inner[:2])
    return list(operands) if len(operands) > 1 else None
