"""Many obligations, and wide ones: nothing untrue is said of them, and each costs no more than the one before."""

from __future__ import annotations

import cProfile
import itertools
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.dim import (
    Dim,
    DimLike,
    Facts,
    Obligation,
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    is_spellable,
    sum_dims,
    symbol,
)
from splitgraph.dim.simplification import known_remainder

N = symbol("N")

# Refusals first: what one obligation leaves open --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 1), (4, 0)), ((6, 1), (10, 2)), ((12, 5), (18, 4)), ((300, 7), (7, 3))],
)
def test_remainders_that_share_no_number_contradict_each_other(first: tuple[int, int], second: tuple[int, int]) -> None:
    facts = Facts()
    assert facts.require(Obligation(N % first[0], "==", first[1])) == "assumed"
    possible = any(n % first[0] == first[1] and n % second[0] == second[1] for n in range(first[0] * second[0]))
    answer = facts.require(Obligation(N % second[0], "==", second[1]))
    assert answer == ("assumed" if possible else "contradiction")


def test_a_wide_obligation_proves_itself_and_what_is_weaker_but_not_what_is_stronger() -> None:
    parts = [symbol(f"s{index}") for index in range(200)]
    whole = sum_dims(parts)
    facts = Facts()
    assert not facts.prove_ge(N, whole)
    assert facts.require(Obligation(N, ">=", whole)) == "assumed"
    assert facts.require(Obligation(N, ">=", whole)) == "proved"
    assert facts.prove_ge(N, whole - 3)
    assert not facts.prove_ge(N, whole + 1)
    assert not facts.prove_ge(whole, N)


def test_a_wide_obligation_is_carried_to_the_bounds_of_its_symbols() -> None:
    parts = [symbol(f"s{index}") for index in range(100)]
    facts = Facts({"N": (0, 7)})
    assert facts.require(Obligation(N, "==", sum_dims(parts) + 2)) == "assumed"
    assert facts.bound("N") == (2, 7)
    assert {facts.bound(f"s{index}") for index in range(100)} == {(0, 5)}
    assert facts.require(Obligation(parts[3], ">=", 6)) == "contradiction"


# Against brute force ------------------------------------------------------------------------------------------------

RESIDUES = st.integers(1, 24).flatmap(lambda modulus: st.tuples(st.just(modulus), st.integers(0, modulus - 1)))


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(RESIDUES, RESIDUES)
def test_merged_remainders_are_exactly_those_of_both(one: tuple[int, int], other: tuple[int, int]) -> None:
    # Variable 0 is the number, each of the others how often a modulus goes into it.
    equalities = [({0: 1, place: -modulus}, -remainder) for place, (modulus, remainder) in enumerate((one, other), 1)]
    modulus, remainder = known_remainder(({0: 1}, 0), equalities)
    numbers = [n for n in range(2 * 24 * 24) if n % one[0] == one[1] and n % other[0] == other[1]]
    assert numbers in ([], list(range(remainder, 2 * 24 * 24, modulus)))


@settings(derandomize=True, deadline=None, max_examples=examples(150))
@given(st.lists(RESIDUES, min_size=1, max_size=5), RESIDUES)
def test_what_is_said_of_many_remainders_is_true_of_every_number(
    known: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    facts, numbers = Facts(), set(range(5000))
    for modulus, remainder in known:
        answer = facts.require(Obligation(N % modulus, "==", remainder))
        left = {n for n in numbers if n % modulus == remainder}
        assert answer != "contradiction" or not left
        assert answer != "proved" or left == numbers
        numbers = left if answer == "assumed" else numbers
    low, high = facts.bound("N")
    wanted = Obligation(N % asked[0], "==", asked[1])
    proved = facts.prove_eq(wanted.lhs, wanted.rhs), facts.prove_ne(wanted.lhs, wanted.rhs)
    for n in numbers:
        assert low <= n and (high is None or n <= high)
        assert not proved[0] or n % asked[0] == asked[1]
        assert not proved[1] or n % asked[0] != asked[1]


@pytest.mark.parametrize(("seed", "width"), [(1, 3), (2, 20), (3, 20), (4, 70)])
def test_many_obligations_that_can_hold_together_do(seed: int, width: int) -> None:
    _check_together(seed, width)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([3, 20, 70]))
def test_more_obligations_that_can_hold_together_do(seed: int, width: int) -> None:
    _check_together(seed, width)


def _check_together(seed: int, width: int) -> None:
    """Obligations are made true of several assignments: nothing may be answered that is false of one of them."""
    random = Random(seed)
    names = [f"s{index}" for index in range(width)]
    worlds = [{name: random.randrange(6) for name in names} for _ in range(3)]
    facts = Facts()
    for _ in range(40):
        one = _true_of_all(random, names, worlds)
        assert facts.require(one) != "contradiction"
    for name, world in itertools.product(names, worlds):
        low, high = facts.bound(name)
        assert low <= world[name] and (high is None or world[name] <= high)
    for _ in range(20):
        left, right = _polynomial(random, names), random.randrange(-4, 30)
        answers = facts.prove_ge(left, right), facts.prove_eq(left, right), facts.prove_ne(left, right)
        low, high = facts.range_of(left)
        for world in worlds:
            value = evaluate(left, world)
            assert (low is None or low <= value) and (high is None or value <= high)
            assert evaluate(facts.simplify(left, fixed=True), world) == value
            assert not answers[0] or value >= right
            assert not answers[1] or value == right
            assert not answers[2] or value != right


def _polynomial(random: Random, names: list[str]) -> DimLike:
    some = random.sample(names, random.choice([1, 2, len(names)]))
    whole = sum_dims([random.choice([-2, -1, 1, 1, 2]) * symbol(name) for name in some])
    kind = random.randrange(4)
    return whole if kind < 2 else whole // random.randrange(2, 5) if kind == 2 else whole % random.randrange(2, 5)


def _true_of_all(random: Random, names: list[str], worlds: list[dict[str, int]]) -> Obligation:
    left = _polynomial(random, names)
    values = [evaluate(left, world) for world in worlds]
    if len(set(values)) == 1:
        return Obligation(left, "==", values[0])
    return Obligation(left, ">=", min(values))


# What it costs ------------------------------------------------------------------------------------------------------


def _symbol(index: int) -> Dim:
    return symbol(f"s{index}")


KINDS: dict[str, Callable[[int], Obligation]] = {
    "bounds": lambda index: Obligation(N, ">=", index + 1),
    "remainders": lambda index: Obligation(N % (index + 2), "==", 0),
    "chunks": lambda index: Obligation(N - (index + 1) * ((N + index + 1) // (index + 2)), ">=", 0),
    "below one": lambda index: Obligation(N, ">=", _symbol(index) + index),
    "remainders of sums": lambda index: Obligation((N + _symbol(index)) % 3, "==", 0),
    "a chain": lambda index: Obligation(_symbol(index), ">=", _symbol(index + 1)),
    "equal pairs": lambda index: Obligation(_symbol(2 * index), "==", _symbol(2 * index + 1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(3)
def test_many_obligations_take_linear_time(kind: str) -> None:
    make = KINDS[kind]
    few, many = (_calls(partial(_require, make, count)) for count in (100, 300))
    assert many < 4.5 * few


def test_wide_obligations_take_linear_time() -> None:
    few, many = (_calls(partial(_require_wide, width)) for width in (500, 1500))
    assert many < 4.5 * few


@pytest.mark.parametrize(("seed", "most"), [(10, 350_000), (4, 1_000_000), (11, 1_300_000)])
def test_obligations_of_nested_extremes_are_not_searched_beyond_the_answer(seed: int, most: int) -> None:
    """Nothing is sought that can change no answer; it was three to thirteen times as many calls."""
    assert _calls(partial(_require_extremes, seed)) < most


def _require(make: Callable[[int], Obligation], count: int) -> None:
    facts = Facts()
    for index in range(count):
        facts.require(make(index))


def _require_wide(width: int) -> None:
    facts = Facts()
    parts = [_symbol(index) - index for index in range(width)]
    for part in parts:
        facts.require(Obligation(part, ">=", 0))
    facts.require(Obligation(N, "==", sum_dims(parts)))
    for part in parts:
        facts.require(Obligation(part, ">=", 1))


def _require_extremes(seed: int) -> None:
    random = Random(seed)
    made: list[DimLike] = [symbol("M"), N]
    for _ in range(40):
        # Rather a late one, so that they are nested.
        one = made[max(random.randrange(len(made)), random.randrange(len(made)))]
        other = random.choice(made) if random.random() < 0.5 else random.choice([1, 2, 3, 4, 5, 7, -1, -2])
        made.append(random.choice([dim_min, dim_max])(one, other))
    facts, last = Facts(), [dim for dim in made if isinstance(dim, Dim)][-9:]
    whole = sum_dims(last[3:])
    for before, after in itertools.pairwise(last):
        facts.require(Obligation(after + whole, ">=", before))
    for name in "NM":
        facts.require(Obligation(symbol(name), ">=", 1))


def _calls(work: Callable[[], None]) -> int:
    """How many calls of Python functions the work makes: a measure of time that is the same on every machine."""
    profile = cProfile.Profile(builtins=False)
    profile.runcall(work)
    entries: Any = profile.getstats()
    return sum(entry.callcount for entry in entries)


def test_a_value_that_is_built_of_itself_again_and_again_stays_short() -> None:
    """Each level more than doubles the text; 60 levels of it would fill any memory."""
    value: DimLike = symbol("M")
    spelled = []
    for _ in range(60):
        value = sum_dims([ceildiv(value, 2), ceildiv(value, 2), value // 2, 1])
        spelled.append(str(value))
    assert len(set(spelled)) == len(spelled)
    assert max(map(len, spelled)) < 20_000
    assert "[large, " in spelled[-1]
    assert not is_spellable(value)
    assert "[large, " in str(Obligation(value, "==", symbol("M")))
    assert evaluate(value, {"M": 0}) == _built_of_itself(0, 60)
    assert evaluate(value, {"M": 7}) == _built_of_itself(7, 60)


def _built_of_itself(number: int, times: int) -> int:
    for _ in range(times):
        number = 2 * ((number + 1) // 2) + number // 2 + 1
    return number
