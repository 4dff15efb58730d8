"""Assumptions about empty dimensions: without them, a broadcast is not always the larger dimension.

In a valid model two dimensions that broadcast are equal, or one of them is 1. The result is the larger one, unless one
is 1 and the other is 0: then it is 0. So the larger one is right where, if one side is 1, the other is not empty. A
slice `x[-n:]` is all of x where n is 0.

Everything that the walk infers after an assumption may depend on it: the results are right at all sizes at which the
model is valid and the assumptions hold. So a later requirement does not prove an assumption: it may depend on the
assumption itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from splitgraph.dim import Dim, DimLike, Facts, Obligation, dim_max
from splitgraph.dim.conditions import plain_conditions
from splitgraph.inference.walk_state import WalkState

# Nobody reads a maximum, or an assumption, with more symbols.
_MOST_SYMBOLS = 8

_REMEMBERED = 4096


@lru_cache(_REMEMBERED)
def fit_only_if_equal(a: Dim, b: Dim) -> bool:
    """Return True if each of two dimensions is 1 only where the other one is 1, such as `min(1024, N)` and N. They
    broadcast only where they are equal.
    """
    for dim, partner in ((a, b), (b, a)):
        known = _where_one(dim)
        if known is not None and not known.prove_eq(partner, 1):
            return False
    return True


def larger_of(state: WalkState, facts: Facts, a: Dim, b: Dim, location: str) -> DimLike | None:
    """Return the larger of two broadcast dimensions, and record the assumptions for it. Return None if the broadcast
    may be another dimension and no assumption helps.
    """
    conditions = _conditions(a, b)
    if conditions is None:
        return None
    missing = [condition for condition in conditions if not facts.prove_ge(condition, 0)]
    if not missing:
        return dim_max(a, b)
    if not state.task.assumes_nonempty or not all(
        condition.symbols <= state.symbols.named_dimensions for condition in missing
    ):
        return None
    known = _with_assumptions(state, facts, missing)
    missing = [condition for condition in missing if not known.prove_ge(condition, 0)]
    if any(known.prove_ge(-1, condition) for condition in missing):
        return None
    return _note(state, a, b, [Obligation(condition, ">=", 0) for condition in missing], location)


def is_nonempty(state: WalkState, facts: Facts, dim: Dim, location: str) -> bool:
    """Return True if a dimension is at least 1. Where the walk may assume so, record the assumption."""
    if facts.prove_ge(dim, 1):
        return True
    if not state.task.assumes_nonempty or not dim.symbols <= state.symbols.named_dimensions or facts.prove_ge(0, dim):
        return False
    if not (_with_assumptions(state, facts, [dim]).prove_ge(dim, 1) or state.record.quiet or state.record.muted):
        state.record.effects += 1
        state.symbols.assumed_sizes.setdefault(dim, location)
        _keep(state, Obligation(dim, ">=", 1), location)
    return True


def settle_assumptions(state: WalkState, facts: Facts) -> None:
    """Drop the assumptions that the facts of a walk without assumptions prove."""
    before, pairs, sizes = state.symbols.assumptions, state.symbols.assumed_pairs, state.symbols.assumed_sizes
    (
        state.symbols.assumptions,
        state.symbols.assumptions_on,
        state.symbols.assumed_pairs,
        state.symbols.assumed_sizes,
    ) = {}, {}, {}, {}
    for dim, location in sizes.items():
        is_nonempty(state, facts, dim, location)
    for (a, b), location in pairs.items():
        if not facts.prove_eq(a, b) and larger_of(state, facts, a, b, location) is None:
            # What a branch knows makes less to assume there.
            state.symbols.assumptions = before
            return


def may_be_settled(state: WalkState, facts: Facts) -> bool:
    """Return True if an assumption follows from the facts, or concerns dimensions that are known to be equal."""
    return any(facts.prove_ge(assumption.lhs, assumption.rhs) for assumption in state.symbols.assumptions) or any(
        facts.prove_eq(a, b) for a, b in state.symbols.assumed_pairs
    )


def _note(state: WalkState, a: Dim, b: Dim, assumptions: Sequence[Obligation], location: str) -> DimLike:
    larger = dim_max(a, b)
    is_new = bool(assumptions) or (a, b) not in state.symbols.assumed_pairs
    # The walk after a quiet walk finds the same again, and a node that never runs needs no assumption.
    if not is_new or state.record.quiet or state.record.muted:
        return larger
    state.record.effects += 1
    state.symbols.assumed_pairs[a, b] = location
    state.symbols.larger_ones.setdefault(larger, (a, b))
    for assumption in assumptions:
        _keep(state, assumption, location)
    return larger


def _keep(state: WalkState, assumption: Obligation, location: str) -> None:
    state.symbols.assumptions[assumption] = location
    for name in assumption.symbols:
        state.symbols.assumptions_on.setdefault(name, []).append(assumption)


def _with_assumptions(state: WalkState, facts: Facts, dims: Iterable[Dim]) -> Facts:
    """Return the facts together with the assumptions about the symbols in these dimensions."""
    names = {name for dim in dims for name in dim.symbols}
    known = facts.child()
    for assumption in {
        assumption: None for name in sorted(names) for assumption in state.symbols.assumptions_on.get(name, ())
    }:
        known.require(assumption)
    return known


@lru_cache(_REMEMBERED)
def _conditions(a: Dim, b: Dim) -> tuple[Dim, ...] | None:
    """Return the values that must be >= 0 for the larger dimension to be the broadcast. Return None if there is no such
    condition, or if there are too many symbols.
    """
    if len(a.symbols | b.symbols) > _MOST_SYMBOLS:
        return None
    needed: dict[Dim, None] = {}
    for dim, partner in ((a, b), (b, a)):
        conditions = _not_empty_beside(dim, partner)
        if conditions is None:
            return None
        needed.update(dict.fromkeys(conditions))
    return tuple(_beside_each_other(list(needed)))


def _beside_each_other(conditions: list[Dim]) -> list[Dim]:
    """Simplify each condition by the others: if P is at most 3, `T + max(0, P - 4)` is T."""
    for place, condition in enumerate(conditions):
        others = Facts()
        for remaining in conditions[:place] + conditions[place + 1 :]:
            others.require(Obligation(remaining, ">=", 0))
        plain = others.simplify(condition)
        conditions[place] = plain if isinstance(plain, Dim) else condition
    return conditions


def _where_one(dim: Dim) -> Facts | None:
    """Return the facts that hold where a dimension is 1; None if it is never 1."""
    known = Facts()
    for value in (dim - 1, 1 - dim):
        conditions = plain_conditions(value, lambda condition: known.prove_ge(condition, 0))
        if conditions is None or "contradiction" in [
            known.require(Obligation(condition, ">=", 0)) for condition in conditions
        ]:
            return None
    return known


def _not_empty_beside(dim: Dim, partner: Dim) -> Sequence[Dim] | None:
    """Return conditions (dims >= 0) under which one dimension is not 0 where its partner is 1; None if
    there are none.
    """
    beside = _where_one(partner)
    if beside is None:
        return ()
    if beside.child().require(Obligation(dim, "==", 0)) == "contradiction":
        return ()
    return plain_conditions(dim - 1, lambda value: beside.prove_ge(value, 0))
