"""The requirements on symbols as they are shown: simplified, and without those that follow from others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from splitgraph.dim import Dim, DimLike, Facts, Obligation, dim_max, dim_min, product, symbol, symbols_of
from splitgraph.dim.conditions import plain_obligation
from splitgraph.dim.printing import spell_inside
from splitgraph.inference.shown_symbols import ShownNames, resolve
from splitgraph.inference.walk_results import FoundSplit
from splitgraph.inference.walk_state import WalkState

# Of more obligations none is left out, and each is shown as the node said it: to compare them takes the longer, the
# more there are.
_MOST_COMPARED = 200


class Requirements:
    """The obligations of a model under shown names.

    One that the others imply is not shown (of `N % 2 == 0` and `N % 4 == 0` the first), nor is one of a dimension that
    is not shown itself. Those of a branch or body are compared with those around it, but never the other way round: it
    may not run.
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
        """The obligation of a scope as it is shown; None when it is not."""
        shown = self._shown[obligation]
        return None if shown is None else self._plain.get((facts, shown))

    def _under_shown_names(self, obligation: Obligation) -> Obligation | None:
        """The obligation in shown names; None when it speaks of a dimension that is not shown at all, or goes without
        saying because it holds for all sizes, as it does where both sides are shown alike.
        """
        naming = self._naming
        lhs, rhs = resolve(obligation.lhs, naming.solved), resolve(obligation.rhs, naming.solved)
        known = Facts()
        if known.prove_eq(lhs, rhs) if obligation.relation == "==" else known.prove_ge(lhs, rhs):
            return None
        left, right = naming.named(lhs), naming.named(rhs)
        return None if left is None or right is None else plain_obligation(Obligation(left, obligation.relation, right))


def _names(obligation: Obligation) -> frozenset[str]:
    return symbols_of(obligation.lhs) | symbols_of(obligation.rhs)


def _named_twice(obligations: Iterable[Obligation]) -> set[str]:
    """The symbols of which several obligations speak: others neither follow from anything nor make anything plainer."""
    counts = Counter(name for obligation in set(obligations) for name in obligation.symbols)
    return {name for name, count in counts.items() if count > 1}


def _plainest(shown: Sequence[Obligation], known: Facts, common: set[str]) -> Iterable[tuple[Obligation, Obligation]]:
    """Each obligation of a scope that the others do not imply, and the plainest one that says the same beside them;
    `known` takes them in.
    """
    # What follows from earlier ones was never noted; what follows from later ones shows in the opposite order.
    later, kept = known.child(), list[Obligation]()
    for obligation in reversed(shown):
        if common.isdisjoint(obligation.symbols) or later.require(obligation) != "proved":
            kept.append(obligation)
    for obligation in reversed(kept):
        plain = obligation
        if not common.isdisjoint(obligation.symbols):
            plain = min(obligation, _by_what_is_known(obligation, known), key=lambda each: len(str(each)))
            known.require(obligation)
        yield obligation, plain.solved()


def shown_assumptions(state: WalkState) -> dict[Obligation, str]:
    """The assumptions that do not follow from others, as shown, each with the first node that needs it."""
    assumptions = tuple(state.symbols.assumptions)
    common = _named_twice(assumptions) if len(assumptions) <= _MOST_COMPARED else set[str]()
    return {plain: state.symbols.assumptions[each] for each, plain in _plainest(assumptions, Facts(), common)}


def _by_what_is_known(obligation: Obligation, known: Facts) -> Obligation:
    plain = known.simplify(obligation.lhs - obligation.rhs)
    return Obligation(plain, obligation.relation, 0) if isinstance(plain, Dim) else obligation


def shown_requirements(
    state: WalkState,
    naming: ShownNames,
    requirements: Requirements,
    splits: Iterable[tuple[FoundSplit, Sequence[Obligation]]],
) -> dict[Obligation, tuple[str, ...]]:
    """All requirements on symbols, as shown, with the locations of the nodes that require them. splits: the
    requirements of each split.
    """
    meanings = frozenset(naming.meanings.values())
    found: dict[Obligation, dict[str, None]] = {}
    branches: dict[Obligation, dict[str, None]] = {}
    for noted in state.record.requirements:
        plain = requirements.plain(noted.obligation, noted.facts)
        if plain is not None:
            found.setdefault(plain, {})[noted.location] = None
            branches.setdefault(plain, {})[noted.branch] = None
    for split, required in splits:
        for plain in required:
            # What a symbol stands for holds wherever it stands.
            found.setdefault(plain, {})[split.location] = None
            branches.setdefault(plain, {})["" if plain in meanings else split.branch] = None
    for name, definition in state.symbols.definitions.items():
        meaning = None if definition is None else naming.dim(definition[0])
        if definition is not None and isinstance(meaning, Dim) and meaning != symbol(name):
            found.setdefault(Obligation(symbol(name), "==", meaning).solved(), {})[definition[1]] = None
    for name in _known_broadcasts(state):
        shown, operands = naming.shown_name(name), _shown_operands(state, naming, name)
        if shown is not None and operands is not None:
            found.setdefault(_broadcast(shown, operands), {})[state.symbols.broadcasts[name][2]] = None
    for said in naming.meanings.values():
        found.setdefault(said, {})
    # What is required outside of bodies, too, is required in every run.
    only = {plain: () if "" in bodies else tuple(bodies) for plain, bodies in branches.items()}
    return {plain.within(only.get(plain, ())): tuple(locations) for plain, locations in found.items()}


def _broadcast(shown: DimLike, operands: Sequence[DimLike]) -> Obligation:
    """The text that a symbol is the broadcast of dimensions: they are equal or 1, so that it is the largest, but 0 if
    one is 0.
    """
    value = product([*(dim_min(1, each) for each in operands), dim_max(*operands)])
    # Multiplied out it would be unreadable.
    texts = [*map(spell_inside, operands)]
    factors = [*(f"min(1, {text})" for text in texts), f"max({', '.join(texts)})"]
    return Obligation(shown, "==", value, f"{spell_inside(shown)} == {'*'.join(factors)}")


def _known_broadcasts(state: WalkState) -> list[str]:
    """The generated symbols for broadcasts of dimensions that contain only declared symbols."""
    known: dict[str, None] = {}
    for name, (a, b, _) in state.symbols.broadcasts.items():
        if not (symbols_of(a) | symbols_of(b)) & state.symbols.generated - known.keys():
            known[name] = None
    return list(known)


def _shown_operands(state: WalkState, naming: ShownNames, name: str) -> list[DimLike] | None:
    """The operands of the broadcast that a generated symbol stands for, as shown; an operand that is not shown is
    replaced by its own operands. None where the text would be too long.
    """
    found: dict[DimLike, None] = {}
    waiting = list(reversed(state.symbols.broadcasts[name][:2]))
    seen = set(waiting)
    while waiting:
        operand = waiting.pop()
        shown, inner = naming.dim(operand), state.symbols.broadcasts.get(str(operand))
        if shown is not None:
            found[shown] = None
        elif inner is None:
            return None
        else:
            waiting += [each for each in reversed(inner[:2]) if each not in seen]
            seen.update(inner[:2])
    return list(found) if len(found) > 1 else None
