"""What has to be taken for granted for a broadcast to be the larger of its two dimensions.

In a valid model two dimensions that broadcast are equal, or one of them is 1. The result is the larger one, unless one
is 1 and the other is 0: then it is 0. So the larger one is right where, if one side is 1, the other is not empty.

What is assumed holds for everything that the walk says from there on: it is right at all sizes at which the model is
valid and the assumptions hold. So a requirement that comes later says nothing of an assumption: it may rest on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from splitgraph.dim import Dim, DimLike, Facts, Obligation, dim_max
from splitgraph.dim.conditions import plain_conditions
from splitgraph.inference.walk_state import WalkState

# Of more symbols a maximum, and what is assumed for it, are nothing that somebody reads.
_MOST_SYMBOLS = 8

_REMEMBERED = 4096


@lru_cache(_REMEMBERED)
def fit_only_if_equal(a: Dim, b: Dim) -> bool:
    """True for dimensions of which each is 1 only where the other is, so that they broadcast only where they are equal:
    `min(1024, N)` and N.
    """
    for one, other in ((a, b), (b, a)):
        known = _where_one(one)
        if known is not None and not known.prove_eq(other, 1):
            return False
    return True


def larger_of(state: WalkState, facts: Facts, a: Dim, b: Dim, location: str) -> DimLike | None:
    """The larger of two dimensions that broadcast in a node, with a note of what is assumed for that, if anything is;
    None where it may be another and that cannot be assumed away.
    """
    conditions = _conditions(a, b)
    if conditions is None:
        return None
    missing = [each for each in conditions if not facts.prove_ge(each, 0)]
    if not missing:
        return dim_max(a, b)
    if not state.assumes_nonempty or not all(each.symbols <= state.named_dimensions for each in missing):
        return None
    known = _with_assumptions(state, facts, missing)
    missing = [each for each in missing if not known.prove_ge(each, 0)]
    if any(known.prove_ge(-1, each) for each in missing):
        return None
    return _note(state, a, b, [Obligation(each, ">=", 0) for each in missing], location)


def settle_assumptions(state: WalkState, facts: Facts) -> None:
    """Leave out what is assumed for nothing, by what is known after a walk that assumed nothing."""
    before, pairs = state.assumptions, state.assumed_pairs
    state.assumptions, state.assumptions_on, state.assumed_pairs = {}, {}, {}
    for (a, b), location in pairs.items():
        if not facts.prove_eq(a, b) and larger_of(state, facts, a, b, location) is None:
            # What a branch knows makes less to assume there.
            state.assumptions = before
            return


def may_be_settled(state: WalkState, facts: Facts) -> bool:
    """True where something is assumed that follows from what is known, or for dimensions that are known to be equal."""
    return any(facts.prove_ge(each.lhs, each.rhs) for each in state.assumptions) or any(
        facts.prove_eq(a, b) for a, b in state.assumed_pairs
    )


def _note(state: WalkState, a: Dim, b: Dim, assumptions: Sequence[Obligation], location: str) -> DimLike:
    larger = dim_max(a, b)
    is_new = bool(assumptions) or (a, b) not in state.assumed_pairs
    # What a quiet walk finds, a later one finds again; a node that never runs needs nothing.
    if not is_new or state.quiet or state.muted:
        return larger
    state.effects += 1
    state.assumed_pairs[a, b] = location
    state.larger_ones.setdefault(larger, (a, b))
    for assumption in assumptions:
        state.assumptions[assumption] = location
        for name in assumption.symbols:
            state.assumptions_on.setdefault(name, []).append(assumption)
    return larger


def _with_assumptions(state: WalkState, facts: Facts, dims: Iterable[Dim]) -> Facts:
    """What is known, and beside it what was assumed of the symbols in the dimensions."""
    names = {name for dim in dims for name in dim.symbols}
    known = facts.child()
    for assumption in {each: None for name in sorted(names) for each in state.assumptions_on.get(name, ())}:
        known.require(assumption)
    return known


@lru_cache(_REMEMBERED)
def _conditions(a: Dim, b: Dim) -> tuple[Dim, ...] | None:
    """What has to be >= 0 for the larger one to be right, whatever is known; None where nothing makes it so, or more
    than anybody reads.
    """
    if len(a.symbols | b.symbols) > _MOST_SYMBOLS:
        return None
    found: dict[Dim, None] = {}
    for one, other in ((a, b), (b, a)):
        conditions = _not_empty_beside(one, other)
        if conditions is None:
            return None
        found.update(dict.fromkeys(conditions))
    return tuple(_beside_each_other(list(found)))


def _beside_each_other(conditions: list[Dim]) -> list[Dim]:
    """The conditions, each as plain as the others make it: where P is 3 at most, `T + max(0, P - 4)` is T."""
    for place, each in enumerate(conditions):
        others = Facts()
        for other in conditions[:place] + conditions[place + 1 :]:
            others.require(Obligation(other, ">=", 0))
        plain = others.simplify(each)
        conditions[place] = plain if isinstance(plain, Dim) else each
    return conditions


def _where_one(dim: Dim) -> Facts | None:
    """What is known where a dimension is 1; None where it never is."""
    known = Facts()
    for value in (dim - 1, 1 - dim):
        conditions = plain_conditions(value, lambda each: known.prove_ge(each, 0))
        if conditions is None or "contradiction" in [known.require(Obligation(each, ">=", 0)) for each in conditions]:
            return None
    return known


def _not_empty_beside(one: Dim, other: Dim) -> Sequence[Dim] | None:
    """What keeps one dimension from being 0 where the other is 1, as dims that are >= 0; None where nothing does."""
    beside = _where_one(other)
    if beside is None:
        return ()
    if beside.child().require(Obligation(one, "==", 0)) == "contradiction":
        return ()
    return plain_conditions(one - 1, lambda value: beside.prove_ge(value, 0))
