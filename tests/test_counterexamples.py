"""Points at which all that is known holds, which spare the search for proofs that do not exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitgraph.dim import Dim, DimLike, Facts, Obligation, ceildiv, dim_max, evaluate, symbol
from splitgraph.dim.counterexamples import _CHOICES, Counterexamples, _meeting, _Point

A, B, C, D = map(symbol, "abcd")
NAMES = "abcd"


def facts_of(*obligations: Obligation) -> Facts:
    facts = Facts()
    for obligation in obligations:
        assert facts.require(obligation) == "assumed"
    return facts


def points(facts: Facts) -> list[dict[str, int]]:
    required = [(each, each.lhs - each.rhs) for each in facts.obligations]
    met = [(each, difference) for each, difference in required if isinstance(difference, Dim)]
    found = [_meeting(_Point(facts, choice), met) for choice in _CHOICES]
    return [{name: point.value(symbol(name)) for name in NAMES} for point in found if point is not None]


def holds(obligation: Obligation, values: dict[str, int]) -> bool:
    left, right = (evaluate(each, values) for each in (obligation.lhs, obligation.rhs))
    return left == right if obligation.relation == "==" else left >= right


def _nested(levels: int) -> DimLike:
    """A value that is built of as many maxima, each of the one before."""
    value: DimLike = A
    for level in range(levels):
        value = dim_max(value * B, C + level) // 2
    return value


# What is known, a claim, and at how many points the claim can be looked at.
KNOWN: dict[str, tuple[list[Obligation], DimLike, int]] = {
    "nothing": ([], A - B, 7),
    "a bound": ([Obligation(A, ">=", 3)], A - B, 7),
    "a solution": ([Obligation(A, "==", B + C)], A - B, 7),
    "a product, by a value for one of its symbols": ([Obligation(A * B, "==", A * C)], B - C, 7),
    "an even number": ([Obligation(A % 2, "==", 0)], A - 1, 3),
    "a quotient that has no value at 0": ([], C // B, 5),
    "values nested too deep to look at": ([], _nested(6), 0),
}


@pytest.mark.parametrize(("known", "claim", "count"), KNOWN.values(), ids=KNOWN)
def test_points_meet_what_is_known(known: list[Obligation], claim: Dim, count: int) -> None:
    facts = facts_of(*known)
    found = points(facts)
    assert all(holds(each, values) for each in known for values in found)
    met = [(each, each.lhs - each.rhs) for each in known]
    assert len(list(Counterexamples(facts, met).values(claim))) == count  # type: ignore[arg-type]


def test_of_many_obligations_none_is_looked_at() -> None:
    known = [(Obligation(A, ">=", 0), A)] * 65
    assert list(Counterexamples(Facts(), known).values(A)) == []
    assert len(list(Counterexamples(Facts(), known[:64]).values(A))) == 7


def test_what_is_learnt_later_counts() -> None:
    facts = Facts()
    assert not facts.prove_ge(A, 1)
    facts.require(Obligation(A, ">=", 1))
    assert facts.prove_ge(A, 1)
    child = facts.child()
    child.require(Obligation(A, "==", B))
    assert child.prove_eq(A, B)
    assert not facts.prove_eq(A, B)
    facts.tighten("c", 2, 2)
    assert facts.prove_eq(C, 2)
    assert child.prove_eq(C, 2)


@st.composite
def dims(draw: st.DrawFn) -> DimLike:
    terms = draw(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([A, B, C, D, A * B, B * C])), max_size=3))
    plain: DimLike = sum((factor * each for factor, each in terms), draw(st.integers(-4, 4)))
    return draw(st.sampled_from([plain, plain, ceildiv(plain, 2), plain // 3, dim_max(plain, A)]))


@given(st.lists(st.tuples(dims(), st.sampled_from(["==", ">="]), dims()), max_size=4), dims(), dims())
def test_every_point_meets_every_obligation_and_no_proof_fails_at_one(
    required: list[tuple[DimLike, str, DimLike]], left: DimLike, right: DimLike
) -> None:
    facts = Facts()
    for lhs, relation, rhs in required:
        facts.require(Obligation(lhs, "==" if relation == "==" else ">=", rhs))
    found = points(facts)
    assert all(holds(each, values) for each in facts.obligations for values in found)
    proofs = {"==": facts.prove_eq(left, right), ">=": facts.prove_ge(left, right), "!=": facts.prove_ne(left, right)}
    for values in found:
        one, other = evaluate(left, values), evaluate(right, values)
        held = {"==": one == other, ">=": one >= other, "!=": one != other}
        assert all(held[each] for each, is_proved in proofs.items() if is_proved)
