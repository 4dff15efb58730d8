"""Sizes that meet obligations: a table, and a property over random obligations."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obligation_texts import obligation_of

from splitgraph.dim import symbol
from splitgraph.verification.inputs.solver import Condition, Solver, SymbolSizes


def solver(texts: list[str], names: list[str], **facts: Any) -> Solver:
    return Solver(names, [constraint_of(text) for text in texts], **facts)


def constraint_of(text: str) -> Condition:
    said = obligation_of(text)
    return Condition(said.lhs, said.relation, said.rhs)


def choose(made: Solver, cases: int) -> list[SymbolSizes]:
    chosen: list[SymbolSizes] = []
    for _ in range(cases):
        sizes = made.solve(chosen)
        assert sizes is not None
        assert all(constraint.holds(sizes) for constraint in made.constraints)
        chosen.append(sizes)
    return chosen


@pytest.mark.parametrize(
    ("texts", "names"),
    [(["N % 3 == 0", "N >= M"], ["N", "M"]), (["N == a + b", "a % 2 == 0"], ["N", "a", "b"]), ([], ["N"])],
)
def test_a_solver_that_solved_before_finds_what_a_new_one_finds(texts: list[str], names: list[str]) -> None:
    kept = solver(texts, names, bounds={"N": (2, None)})
    choose(kept, 3)
    for scale in range(3):
        for earlier in ([], [dict.fromkeys(names, 6)]):
            new = solver(texts, names, bounds={"N": (2, None)})
            assert kept.solve(earlier, scale) == new.solve(earlier, scale)


OBLIGATIONS = [
    ("N % 3 == 0", {"N": 6}, {"N": 7}),
    ("N >= 4", {"N": 4}, {"N": 3}),
    ("N == a + b", {"N": 5, "a": 2, "b": 3}, {"N": 5, "a": 2, "b": 2}),
    ("[batch-size] == 6", {"batch-size": 6}, {"batch-size": 5}),
    ("unk0 == [batch-size]//2", {"unk0": 2, "batch-size": 5}, {"unk0": 3, "batch-size": 5}),
    ("[a b] + [a b]*[seq:0] >= 6", {"a b": 2, "seq:0": 2}, {"a b": 2, "seq:0": 1}),
    ("N - 3*((N + 3)//4) >= 0", {"N": 4}, {"N": 2}),
    ("M % N == 0", {"M": 4, "N": 2}, {"M": 4, "N": 0}),
]


@pytest.mark.parametrize(("text", "good", "bad"), OBLIGATIONS)
def test_an_obligation_holds_or_not(text: str, good: SymbolSizes, bad: SymbolSizes) -> None:
    constraint = constraint_of(text)
    assert constraint.symbols == good.keys()
    assert constraint.holds(good)
    assert not constraint.holds(bad)


IMPOSSIBLE = [
    ["N == 5", "N == 4"],
    ["N + 1 == N"],
    ["N % 3 == 0", "N == 4"],
    ["A == 2*B", "A % 2 == 1"],
    ["A >= B + 1", "B >= A + 1"],
]


@pytest.mark.parametrize("texts", IMPOSSIBLE)
def test_obligations_that_nothing_meets(texts: list[str]) -> None:
    assert solver(texts, ["A", "B", "N"]).solve() is None


SOLVABLE = [
    [],
    ["N % 3 == 0"],
    ["N == A + B"],
    ["N == A + B", "A >= 4"],
    ["N >= 4", "A == 2*N"],
    ["N % 2 == 0", "N % 3 == 0", "N % 5 == 0"],
    ["A*B == 24"],
    ["A*B == N*2"],
    ["N % 32 == 0", "A % 32 == 0"],
    ["A - 2*B >= 3", "B >= 3"],
    ["N//64 == 12"],
    ["N % 7 == 3", "N >= 100"],
    ["min(N, 8) == 8", "A == max(N, B)"],
    ["A % B == 0", "B >= 3"],
]


@pytest.mark.parametrize("texts", SOLVABLE)
def test_sizes_meet_the_obligations_and_differ_between_cases(texts: list[str]) -> None:
    cases = choose(solver(texts, ["N", "A", "B"]), 3)
    for name in ("N", "A", "B"):
        assert all(case[name] > 1 for case in cases)
        assert len({case[name] for case in cases}) >= 2


@pytest.mark.parametrize("texts", [[], ["N >= 4"], ["N == A + B"], ["N % 3 == 0", "A >= 5"], ["A == N + 2"]])
def test_three_cases_have_odd_and_even_sizes(texts: list[str]) -> None:
    cases = choose(solver(texts, ["N", "A", "B"]), 3)
    for name in ("N", "A", "B"):
        assert {case[name] % 2 for case in cases} == {0, 1}


def test_symbols_differ_from_each_other_and_from_what_is_taken() -> None:
    for case in choose(solver([], ["A", "B", "C", "D"], taken={2, 4}), 3):
        assert len({*case.values(), 2, 4}) == 6


def test_a_symbol_with_one_value_does_not_keep_others_from_varying() -> None:
    cases = choose(solver(["N == 6", "N == A + B"], ["N", "A", "B"]), 3)
    assert {case["N"] for case in cases} == {6}
    assert len({case["A"] for case in cases}) == 3


def test_fixed_values_and_bounds_are_kept() -> None:
    made = solver(["A == N + 1"], ["N", "A", "B"], fixed={"N": 9}, bounds={"B": (30, 31)})
    assert [(case["N"], case["A"]) for case in choose(made, 2)] == [(9, 10), (9, 10)]
    assert {case["B"] for case in choose(made, 2)} == {30, 31}


def test_a_fixed_value_that_breaks_an_obligation() -> None:
    assert solver(["N % 3 == 0"], ["N"], fixed={"N": 4}).solve() is None


@pytest.mark.parametrize(("scale", "least"), [(0, 2), (1, 7), (2, 32), (3, 64), (4, 224)])
def test_retries_prefer_larger_sizes(scale: int, least: int) -> None:
    sizes = solver([], ["N"]).solve((), scale)
    assert sizes is not None
    assert sizes["N"] == least


def test_a_symbol_may_have_to_be_nothing() -> None:
    assert solver(["A + B == 1", "A == 0"], ["A", "B"]).solve() == {"A": 0, "B": 1}


def linear(a: int, b: int, c: int, modulus: int, relation: str) -> str:
    return f"{a}*A + {b}*B {relation} {c}" if modulus == 1 else f"({a}*A + {b}*B) % {modulus} == {c % modulus}"


LINEAR = st.builds(
    linear, st.integers(0, 3), st.integers(0, 3), st.integers(0, 12), st.integers(1, 4), st.sampled_from(["==", ">="])
)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.lists(LINEAR, min_size=1, max_size=3))
def test_sizes_are_found_whenever_small_ones_exist(texts: list[str]) -> None:
    made = solver(texts, ["A", "B"])
    sizes = made.solve()

    def holds(values: dict[str, int]) -> bool:
        return all(constraint.holds(values) for constraint in made.constraints)

    if sizes is None:
        assert not any(holds({"A": a, "B": b}) for a, b in product(range(16), repeat=2))
    else:
        assert holds(sizes)


def test_many_symbols_in_one_group_do_not_recurse() -> None:
    names = [f"n{index}" for index in range(1200)]
    links = [Condition(symbol(right), "==", symbol(left)) for left, right in pairwise(names)]
    sizes = Solver(names, links).solve()
    assert sizes is not None
    assert set(sizes.values()) == {2}


def test_a_solution_of_an_equation_stays_in_bounds() -> None:
    assert solver(["B == 10*A"], ["A", "B"], bounds={"B": (0, 25)}).solve() == {"A": 2, "B": 20}
    assert solver(["B == 10*A", "A >= 3"], ["A", "B"], bounds={"B": (0, 25)}).solve() is None


def test_a_constraint_without_symbols() -> None:
    assert Condition(3, ">=", 2).holds({})
    assert not Condition(3, "==", 2).holds({})


@pytest.mark.parametrize("parts", [5, 40])
def test_a_sum_that_comes_first_is_chosen_last(parts: int) -> None:
    names = [f"part_{index}" for index in range(parts)]
    made = solver([f"{' + '.join(names)} == total"], ["total", *names])
    (sizes,) = choose(made, 1)
    assert min(sizes.values()) >= 1
