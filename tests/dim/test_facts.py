"""Facts: a proof is never contradicted by evaluation, and what a person would call obvious is proved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.dim import DimLike, Facts, Obligation, evaluate, parse_expression, symbol

NAMES = ("A", "B", "N")
A, B, N = (symbol(name) for name in NAMES)


def obligation(text: str) -> Obligation:
    """The obligation that the text says, with == or >=."""
    relation: Literal["==", ">="] = "==" if "==" in text else ">="
    left, right = text.split(relation)
    return Obligation(parse_expression(left), relation, parse_expression(right))


def facts_of(*texts: str) -> Facts:
    """Facts under which the texts, none of which contradicts another, hold."""
    facts = Facts()
    for text in texts:
        assert facts.require(obligation(text)) == "assumed", text
    return facts


# What must not be proved, and must not be called a contradiction ------------------------------------------------

UNPROVED = [
    (">=", "N", "1", ()), (">=", "N", "A", ()), (">=", "N//2", "N", ()), (">=", "min(N, 3)", "1", ()),
    (">=", "N - 2", "0", ("A >= 2",)), (">=", "A*N", "N", ()), (">=", "N//A", "1", ("N >= A",)),
    (">=", "N", "A", ("N + B >= A",)), (">=", "0", "N % 2", ("N >= 2",)), ("==", "N", "A", ()),
    ("==", "2*(N//2)", "N", ("N % 3 == 0",)), ("==", "N", "6", ("N >= 6",)), ("==", "(A*B)//2", "A*(B//2)", ()),
    ("!=", "N", "0", ()), ("!=", "N", "A", ("N >= A",)), ("!=", "2*N", "A", ("A % 2 == 0",)),
    ("!=", "N % 2", "1", ("N % 3 == 0",)), (">=", "(N//4)*(A//4)", "1", ("N//2 >= 2", "A//2 >= 1")),
    (">=", "(N//4)*(A//4)", "2", ("N//2 >= 2", "A//2 >= 2")), (">=", "4", "(N//4)*(A//4)", ("6 >= N//2", "5 >= A//2")),
    (">=", "(N//4)*A", "1", ("N//2 >= 1", "A >= 1")),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "left", "right", "given_"), UNPROVED)
def test_what_does_not_follow_is_not_proved(relation: str, left: str, right: str, given_: tuple[str, ...]) -> None:
    facts = facts_of(*given_)
    prove = {">=": facts.prove_ge, "==": facts.prove_eq, "!=": facts.prove_ne}[relation]
    assert not prove(parse_expression(left), parse_expression(right))


@pytest.mark.parametrize(
    ("dim", "divisor", "given_"),
    [("N", 2, ()), ("N", 6, ("N % 3 == 0",)), ("N//2", 2, ("N % 2 == 0",)), ("3*N", 2, ())],
)
def test_what_need_not_divide_is_not_proved(dim: str, divisor: int, given_: tuple[str, ...]) -> None:
    assert not facts_of(*given_).prove_divisible(parse_expression(dim), divisor)


COMPATIBLE = [
    ("N % 3 == 0", "N == 6"), ("N % 4 == 2", "N % 3 == 1"), ("N >= 5", "A >= N", "A == 5"),
    ("A + B == 6", "A == 6", "B == 0"), ("A*B == 12", "A == 4"), ("N//4 == 2", "N % 4 == 3"),
    ("min(N, 4) == 4", "N == 9"), ("A == B", "B == N", "N >= A"),
]  # fmt: skip


@pytest.mark.parametrize("texts", COMPATIBLE)
def test_what_can_hold_is_no_contradiction(texts: tuple[str, ...]) -> None:
    facts = Facts()
    assert "contradiction" not in [facts.require(obligation(text)) for text in texts]


# Obligations -------------------------------------------------------------------------------------------------------

CONTRADICTIONS = [
    ("N + 1 == N",), ("N == 5", "N == 4"), ("N % 3 == 0", "N == 4"), ("N == 4", "N % 3 == 0"),
    ("A + B == 6", "A == 7"), ("2*N == 5",), ("N % 2 == 0", "N % 4 == 1"), ("N % 4 == 1", "N % 2 == 0"),
    ("2*N == A", "A % 4 == 1"), ("A >= B + 1", "B >= A"), ("A >= B + 1", "B >= N", "N >= A"), ("N//4 == 2", "N == 12"),
    ("min(N, 3) == 2", "N >= 3"), ("max(N, 3) == 2",), ("A + B == 6", "A >= 2", "B >= 5"), ("0 >= N + 1",),
    ("3 == 4",), ("A == 3", "B == A", "B == 4"), ("N >= 4", "5 >= N", "N % 3 == 0"), ("N % 5 == 7",),
    ("A*B + 1 == 0",), ("6*A + 4*B == 9",),
]  # fmt: skip


@pytest.mark.parametrize("texts", CONTRADICTIONS)
def test_the_last_contradicts_what_was_required_before(texts: tuple[str, ...]) -> None:
    facts = facts_of(*texts[:-1])
    before = facts.obligations, dict(facts.bounds)
    assert facts.require(obligation(texts[-1])) == "contradiction"
    assert (facts.obligations, dict(facts.bounds)) == before


@pytest.mark.parametrize(
    "texts",
    [
        ("A*A == 4", "A >= 3"),
        ("A*A == N", "A >= 3", "8 >= N"),
        ("A >= 2*N", "N >= 4", "B >= 3", "20 >= A*B"),
        ("A*N == 6", "N % 4 == 0"),
    ],
)
def test_a_contradiction_is_found_in_whatever_order_the_facts_come(texts: tuple[str, ...]) -> None:
    for told in itertools.permutations(texts):
        facts = Facts()
        assert [facts.require(obligation(text)) for text in told][-1] == "contradiction", told


@pytest.mark.parametrize(
    ("dim", "given_", "expected"),
    [
        ("A//4", ("A % 8 == 5", "A >= 6"), (3, None)),
        ("2*A - N", ("A % 3 == 2", "N % 3 == 0", "8 >= A", "N >= A", "12 >= N"), (-8, 7)),
        ("max(A, N)", ("A % 4 == 1", "3 >= N", "11 >= A"), (1, 9)),
    ],
)
def test_the_ends_of_a_range_are_reached(
    dim: str, given_: tuple[str, ...], expected: tuple[int | None, int | None]
) -> None:
    assert facts_of(*given_).range_of(parse_expression(dim)) == expected


def test_bounds_can_contradict() -> None:
    facts = Facts({"N": (0, 4)})
    assert facts.require(obligation("N >= 5")) == "contradiction"
    assert facts.require(obligation("N % 5 == 4")) == "assumed"
    assert facts.bounds == {"N": (4, 4)}


BOUNDS = [
    ("N >= 2", {"N": (2, None)}), ("2*N >= 5", {"N": (3, None)}), ("2*N == 6", {"N": (3, 3)}),
    ("N//4 == 2", {"N": (8, 11)}), ("7 >= 2*N", {"N": (0, 3)}), ("(N + 1)//3 >= 2", {"N": (5, None)}),
    ("A + B == 6", {"A": (0, 6), "B": (0, 6)}), ("A >= N + 2", {"A": (2, None)}), ("min(N, 8) == 3", {"N": (3, 3)}),
    ("max(N, 3) == 8", {"N": (8, 8)}), ("4 >= max(A, B, N)", {"A": (0, 4), "B": (0, 4), "N": (0, 4)}),
    ("N % 3 == 2", {"N": (2, None)}), ("A*B >= 3", {}), ("5 >= N//3", {"N": (0, 17)}), ("N//2//2 == 1", {"N": (4, 7)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "bounds"), BOUNDS)
def test_obligations_tighten_bounds(text: str, bounds: dict[str, tuple[int, int | None]]) -> None:
    assert facts_of(text).bounds == bounds


def test_a_solution_with_a_divisor_that_turns_out_to_be_0_is_forgotten() -> None:
    """So many facts speak of B and of N that nobody notices that they contradict each other."""
    many = [text for place in range(9) for text in (f"x{place} >= B", f"y{place} >= N")]
    facts = facts_of("A == N//B", *many, "B == 0", "N == Z")
    assert facts.solution(N) is symbol("Z")
    assert facts.solution(A) is A


STRINGS = [
    ("N - 6 == 0", "N == 6"), ("6 == N", "N == 6"), ("N % 3 == 0", "N % 3 == 0"), ("N - 2 >= 0", "N >= 2"),
    ("2*N - 5 >= 0", "N >= 3"), ("A + B == N", "A + B == N"), ("N == A + B", "A + B == N"),
    ("N >= A + 2", "N >= A + 2"), ("2*N == 6", "N == 3"), ("4 >= N", "4 >= N"),
    ("N - 2*((N + 2)//3) >= 0", "N >= 2*((N + 2)//3)"), ("min(N, 3) == 3", "min(N, 3) == 3"), ("2*N == 5", "2*N == 5"),
    ("N + 1 == N", "N + 1 == N"), ("N*A == 12", "A*N == 12"), ("unk0 == [batch-size]//2", "unk0 == [batch-size]//2"),
    ("[batch-size] == 4", "[batch-size] == 4"), ("N//2 == 3", "N//2 == 3"), ("(N + 1) % 4 == 0", "(N + 1) % 4 == 0"),
    ("A >= N % 4", "A >= N % 4"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "spelling"), STRINGS)
def test_obligations_are_solved_for_reading(text: str, spelling: str) -> None:
    assert str(obligation(text)) in (spelling, "1 == 0")
    if spelling != "N + 1 == N":
        assert str(obligation(spelling)) == spelling


def test_what_follows_is_proved_and_not_recorded() -> None:
    facts = facts_of("N >= 4", "A % 6 == 0")
    for text in ("N >= 3", "N + A >= 4", "A % 3 == 0", "A % 2 == 0", "N >= N//2", "2*(A//2) == A"):
        assert facts.require(obligation(text)) == "proved"
    assert [str(one) for one in facts.obligations] == ["N >= 4", "A % 6 == 0"]


def test_a_child_sees_its_parent_and_keeps_its_own_to_itself() -> None:
    facts = facts_of("N >= 2")
    child = facts.child()
    assert child.require(obligation("N == 4")) == "assumed"
    assert facts.require(obligation("A >= 3")) == "assumed"
    assert (dict(facts.bounds), dict(child.bounds)) == ({"A": (3, None), "N": (2, None)}, {"A": (3, None), "N": (4, 4)})
    assert child.prove_ge(A + N, 7) and not facts.prove_ge(A + N, 7)
    assert len(facts.obligations) == 2 and len(child.obligations) == 3
    assert facts.child().require(obligation("N == 5")) == "assumed"


# Proofs ------------------------------------------------------------------------------------------------------------

PROVED = [
    (">=", "N", "0", ()), (">=", "N + 2", "2", ()), (">=", "N", "N//2", ()), (">=", "(N + 1)//2", "N//2", ()),
    (">=", "N", "min(N, 3)", ()), (">=", "A*B", "0", ()), (">=", "max(0, N - 4)", "N - 4", ()),
    (">=", "N", "(N + 2)//3", ()), (">=", "N//2", "N//3", ()), (">=", "3", "min(N, 3)", ()),
    (">=", "N % 4", "0", ()), (">=", "3", "N % 4", ()), (">=", "A", "A//B", ()), (">=", "N", "A*(N//A)", ()),
    (">=", "2*N", "A", ("N >= A",)), (">=", "N", "A", ("N >= B", "B >= A")), (">=", "N//2", "A", ("N >= 2*A",)),
    (">=", "A*N", "A*B", ("A*N >= A*B + 3",)), (">=", "N", "4", ("N == A + 4",)), (">=", "max(A, B)", "min(A, B)", ()),
    (">=", "A + B", "max(A, B)", ()), (">=", "N", "3", ("N//4 == 1",)), ("==", "N", "6", ("N == 6",)),
    ("==", "A", "B", ("A == N", "N == B")), ("==", "2*(N//2)", "N", ("N % 2 == 0",)),
    ("==", "N % 2", "0", ("N % 6 == 0",)), ("==", "min(N, 3)", "3", ("N >= 3",)),
    ("==", "(N + 1)//2", "N//2", ("N % 2 == 0",)), ("==", "N - A", "B", ("A + B == N",)),
    ("==", "N", "0", ("0 >= N",)), ("!=", "N + 1", "0", ()), ("!=", "N", "0", ("N >= 1",)), ("!=", "2*N", "5", ()),
    ("!=", "N", "5", ("N % 2 == 0",)), ("!=", "A", "B", ("A >= B + 1",)),
    (">=", "(N//4)*(A//4)", "1", ("N//2 >= 2", "A//2 >= 2")), (">=", "4", "(N//4)*(A//4)", ("5 >= N//2", "4 >= A//2")),
    (">=", "(N//4)*(A//4)*B", "B", ("N//2 >= 2", "(A - 1)//2 >= 2")), (">=", "A*(N//8)", "A", ("max(N//3, 1) >= 3",)),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "left", "right", "given_"), PROVED)
def test_what_follows_is_proved(relation: str, left: str, right: str, given_: tuple[str, ...]) -> None:
    facts = facts_of(*given_)
    prove = {">=": facts.prove_ge, "==": facts.prove_eq, "!=": facts.prove_ne}[relation]
    assert prove(parse_expression(left), parse_expression(right))


@pytest.mark.parametrize(
    ("dim", "divisor", "given_"),
    [
        ("6*N", 3, ()),
        ("0", 5, ()),
        ("N", 3, ("N % 6 == 0",)),
        ("N + 3", 3, ("N % 3 == 0",)),
        ("A*N", 2, ("N % 2 == 0",)),
        ("N", 4, ("N == 8",)),
        ("N + A", 3, ("(N + A) % 3 == 0",)),
        ("2*N + 2*A", 4, ("N % 2 == 0", "A % 2 == 0")),
        ("2*(N//2)", 2, ()),
    ],
)
def test_what_divides_is_proved(dim: str, divisor: int, given_: tuple[str, ...]) -> None:
    assert facts_of(*given_).prove_divisible(parse_expression(dim), divisor)


SIMPLER = [
    ("2*(N//2)", "N", ("N % 2 == 0",)), ("(N + 1)//2", "N//2", ("N % 2 == 0",)), ("N % 2", "0", ("N % 2 == 0",)),
    ("N//2//2", "N//4", ("N % 2 == 0",)), ("N - N//2", "N//2", ("N % 2 == 0",)),
    ("(A*N)//2", "A*(N//2)", ("N % 2 == 0",)), ("3*(N//2)", "N + N//2", ("N % 2 == 0",)),
    ("N % 4", "1", ("N % 4 == 1",)), ("4*(N//4)", "N - 1", ("N % 4 == 1",)), ("(N + 1)//4", "N//4", ("N % 2 == 0",)),
    ("max(0, N - 4)", "N - 4", ("N >= 4",)), ("min(A, B)", "B", ("A >= B + 2", "8 >= B", "A >= 8")),
    ("N", "N", ("N == 6",)), ("N//2", "3", ("N == 6",)), ("A + N", "A + N", ("N == 6",)), ("A*B", "A*B", ("N == 6",)),
    ("(A + N)//2", "A//2 + N//2", ("N % 2 == 0",)),
]  # fmt: skip


@pytest.mark.parametrize(("dim", "simpler", "given_"), SIMPLER)
def test_simplify(dim: str, simpler: str, given_: tuple[str, ...]) -> None:
    assert str(facts_of(*given_).simplify(parse_expression(dim))) == simpler


@pytest.mark.parametrize("told", ["(A*N) % 8 == 0", "(3*A*N) % 8 == 0", "(A*N) % 24 == 0"])
@pytest.mark.parametrize(
    ("dim", "simpler"),
    [
        ("(3*A*N)//8", "3*((A*N)//8)"),
        ("(3*A*N)//8 + (A*N)//8", "(A*N)//2"),
        ("A*N - (3*A*N)//8", "A*N - 3*((A*N)//8)"),
        ("(A*N)//4 + (5*A*N)//8", "A*N - (A*N)//8"),
    ],
)
def test_a_quotient_is_written_alike_whichever_multiple_the_facts_speak_of(told: str, dim: str, simpler: str) -> None:
    assert str(facts_of(told).simplify(parse_expression(dim))) == simpler


def test_a_quotient_is_written_alike_in_whichever_order_the_facts_are_told() -> None:
    told = ["A % 3 == 0", "B % 3 == 0", "N % 3 == 0"]
    found = {str(facts_of(*order).simplify(A * B * N // 3)) for order in itertools.permutations(told)}
    assert found == {"B*N*(A//3)"}


def test_a_fixed_symbol_keeps_its_name_unless_asked_otherwise() -> None:
    facts = facts_of("N == 6")
    assert facts.simplify(A * N) is A * N
    assert facts.simplify(A * N, fixed=True) is 6 * A
    assert facts.simplify(N, fixed=True) == 6


RANGES = [
    ("N", 2, 6), ("N - 2", 0, 4), ("N//2", 1, 3), ("A", 0, None), ("N - A", None, 6), ("N*N", 4, 36), ("N % 4", 0, 3),
    ("min(N, 4)", 2, 4), ("7", 7, 7), ("max(A, N)", 2, None), ("N - N//2", 1, 3), ("A//N", 0, None), ("12//N", 2, 6),
]  # fmt: skip


@pytest.mark.parametrize(("dim", "low", "high"), RANGES)
def test_range_of(dim: str, low: int | None, high: int | None) -> None:
    assert Facts({"N": (2, 6)}).range_of(parse_expression(dim)) == (low, high)


# Against brute force -----------------------------------------------------------------------------------------------

GRID = [dict(zip(NAMES, values, strict=True)) for values in itertools.product(range(9), repeat=3)]

SYMBOLS = st.sampled_from([A, B, N])
LINEAR = st.tuples(SYMBOLS, st.integers(1, 3), SYMBOLS, st.integers(-2, 2), st.integers(-4, 4)).map(
    lambda p: p[1] * p[0] + p[3] * p[2] + p[4]
)
MORE = ("min(A, N)", "max(B, 4)", "A*B", "A*B - N", "max(0, A - B)", "2*(N//2)")
SIDES = st.one_of(
    LINEAR,
    st.integers(0, 8),
    st.tuples(LINEAR, st.integers(2, 4)).map(lambda p: p[0] // p[1]),
    st.tuples(LINEAR, st.integers(2, 4)).map(lambda p: p[0] % p[1]),
    st.sampled_from([parse_expression(text) for text in MORE]),
)
OBLIGATIONS = st.builds(Obligation, SIDES, st.sampled_from(["==", ">="]), SIDES)
SMALL_BOUNDS = st.dictionaries(st.sampled_from(NAMES), st.tuples(st.integers(0, 4), st.none() | st.integers(4, 8)))


def _holds(one: Obligation, values: dict[str, int]) -> bool:
    left, right = evaluate(one.lhs, values), evaluate(one.rhs, values)
    return left == right if one.relation == "==" else left >= right


def _within(bounds: dict[str, tuple[int, int | None]], values: dict[str, int]) -> bool:
    return all(low <= values[name] and (high is None or values[name] <= high) for name, (low, high) in bounds.items())


Bounds = dict[str, tuple[int, int | None]]
QUESTIONS = given(SMALL_BOUNDS, st.lists(OBLIGATIONS, min_size=1, max_size=4), SIDES, SIDES)


@settings(derandomize=True, deadline=None, max_examples=examples(100))
@QUESTIONS
def test_no_answer_is_contradicted_by_evaluation(
    bounds: Bounds, obligations: list[Obligation], left: DimLike, right: DimLike
) -> None:
    _check_answers(bounds, obligations, left, right)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=examples(300))
@QUESTIONS
def test_no_answer_of_many_is_contradicted_by_evaluation(
    bounds: Bounds, obligations: list[Obligation], left: DimLike, right: DimLike
) -> None:
    _check_answers(bounds, obligations, left, right)


def _check_answers(bounds: Bounds, obligations: list[Obligation], left: DimLike, right: DimLike) -> None:
    facts = Facts(bounds)
    possible = [values for values in GRID if _within(bounds, values)]
    for one in obligations:
        answer = facts.require(one)
        satisfying = [values for values in possible if _holds(one, values)]
        assert answer != "contradiction" or not satisfying
        assert answer != "proved" or satisfying == possible
        possible = satisfying if answer == "assumed" else possible
    low, high = facts.range_of(left)
    proved = facts.prove_ge(left, right), facts.prove_eq(left, right), facts.prove_ne(left, right)
    simple, fixed, thirds = facts.simplify(left), facts.simplify(left, fixed=True), facts.prove_divisible(left, 3)
    for values in possible:
        assert _within(dict(facts.bounds), values)
        a, b = evaluate(left, values), evaluate(right, values)
        assert (low is None or low <= a) and (high is None or a <= high)
        assert (not proved[0] or a >= b) and (not proved[1] or a == b) and (not proved[2] or a != b)
        assert evaluate(simple, values) == evaluate(fixed, values) == a
        assert not thirds or a % 3 == 0


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(OBLIGATIONS)
def test_the_spelling_of_an_obligation_means_the_same(one: Obligation) -> None:
    left, right = str(one).split(f" {one.relation} ")
    spelled = Obligation(parse_expression(left), one.relation, parse_expression(right))
    assert all(_holds(one, values) == _holds(spelled, values) for values in GRID)


def test_many_obligations_are_kept_apart() -> None:
    facts = Facts()
    for index in range(400):
        name = symbol(f"d{index}")
        assert facts.require(Obligation(name % 3, "==", 0)) == "assumed"
        assert facts.require(Obligation(name, ">=", symbol(f"e{index}") + 1)) == "assumed"
    assert facts.prove_divisible(symbol("d7") * symbol("d8"), 9) is False
    assert facts.prove_divisible(symbol("d7"), 3) and facts.prove_ge(symbol("d399"), symbol("e399"))
    assert facts.range_of(symbol("d0")) == (3, None)


def test_deep_dims_can_be_asked_about() -> None:
    facts: Facts = facts_of("N >= 4")
    dim: DimLike = N
    for _ in range(1000):
        dim = (2 * dim + 1) // 5 + A
    assert facts.prove_ge(dim, 0)
    assert facts.range_of(dim)[0] is not None
    assert facts.require(Obligation(dim, ">=", 7)) == "assumed"


def test_what_has_no_value_has_no_proof() -> None:
    """A divisor that is 0 by what is known: inference of a model ended in a ZeroDivisionError."""
    facts = Facts()
    quotient = symbol("A") // symbol("C")
    assert facts.require(Obligation(symbol("C"), "==", 0)) == "assumed"
    assert not facts.prove_eq(quotient, 1)
    assert not facts.prove_ne(quotient, 1)
    assert not facts.prove_ge(quotient, 1)
    assert facts.simplify(quotient, fixed=True) == quotient
    assert facts.require(Obligation(quotient, "==", symbol("B"))) == "contradiction"
    assert facts.obligations == (Obligation(symbol("C"), "==", 0),)


def test_what_has_a_value_is_divided_by_no_0() -> None:
    facts = Facts()
    assert facts.require(Obligation(symbol("D"), "==", symbol("A") // symbol("C"))) == "assumed"
    assert facts.require(Obligation(symbol("C"), "==", 0)) == "contradiction"
    assert facts.prove_eq(symbol("D"), symbol("A") // symbol("C"))


# Answers that may be others once more is known: a visit that was given one is not repeated then -----------------


def assumed_by_a_child(facts: Facts) -> object:
    return facts.child().require(obligation("N >= 3"))


ASKED: dict[str, tuple[Callable[[Facts], object], bool]] = {
    "a proof": (lambda facts: facts.prove_ge(N, 0), False),
    "no proof": (lambda facts: facts.prove_ge(N, 2), True),
    "no proof of a child": (lambda facts: facts.child().prove_ne(N, 2), True),
    "a proof of a child": (lambda facts: facts.child().prove_eq(N, N), False),
    "what a child assumes": (assumed_by_a_child, True),
    "what a child knows to be so": (lambda facts: facts.child().require(obligation("N >= 0")), False),
    "a range": (lambda facts: facts.range_of(N), True),
    "a plainer dim": (lambda facts: facts.simplify(2 * (N // 2)), True),
    "a solution": (lambda facts: facts.solution(N), True),
    "a solution of a number": (lambda facts: facts.solution(3), False),
    "a child of a child": (lambda facts: facts.child().child().solution(N), True),
}


@pytest.mark.parametrize("asked", ASKED)
def test_answers_that_may_change_are_counted(asked: str) -> None:
    ask, is_open = ASKED[asked]
    facts = Facts()
    before = facts.open_questions
    ask(facts)
    assert (facts.open_questions > before) == is_open
