"""Remainders that are known: what they make of other dimensions holds at every size, and of products of them too."""

from __future__ import annotations

import random
from itertools import product

import pytest

from splitgraph.dim import DimLike, Facts, Obligation, evaluate, parse_expression, symbol

N, X = symbol("N"), symbol("X")

# The modulus and the remainder of N, and an expression that must keep its value.
TABLE = [
    (4, 1, "(N*X)//8", "(N*X)//8"),
    (4, 1, "(N*X + 2)//8", "(N*X + 2)//8"),
    (4, 1, "(N*X + 5)//6", "(N*X + 5)//6"),
    (4, 2, "(N*X + 1)//8", "(N*X)//8"),
    (3, 2, "(N*N + 1)//6", "(N*N)//6"),
    (2, 1, "(N*X*X + 3)//4", "(N*X*X + 3)//4"),
    # What is known is used all the same.
    (4, 0, "(N*X + 2)//8", "(N*X)//8"),
    (4, 1, "(N + 3)//8", "(N + 3)//8"),
    (4, 1, "(N + 6)//8", "(N + 3)//8"),
    (4, 1, "(N*X)//4", "X*(N//4) + X//4"),
    (2, 0, "2*(N//2)", "N"),
    (4, 0, "2*(N//4)", "N//2"),
    (4, 0, "N//2 + 2*(N//4)", "N"),
    (4, 0, "3*(N//4)", "3*(N//4)"),
    (4, 3, "N//2 + 2*(N//4)", "N - 2"),
    (4, 3, "X*(N//2) + 2*X*(N//4)", "N*X - 2*X"),
    (6, 0, "N//2 + N//3 + N//6", "N"),
    (6, 4, "N//2 - N//3", "N//6 + 1"),
    (2, 0, "2*(N//4)", "2*(N//4)"),
]


@pytest.mark.parametrize(("modulus", "remainder", "text", "expected"), TABLE)
def test_by_a_remainder_of_a_symbol(modulus: int, remainder: int, text: str, expected: str) -> None:
    facts = Facts()
    assert facts.require(Obligation(N % modulus, "==", remainder)) == "assumed"
    simple = facts.simplify(parse_expression(text))
    assert simple == facts.simplify(parse_expression(expected))
    if text == expected:
        assert str(simple) == text
    for times, x in product(range(8), range(8)):
        values = {"N": modulus * times + remainder, "X": x}
        assert evaluate(simple, values) == evaluate(parse_expression(text), values)


def test_a_remainder_of_a_quotient_is_one_of_the_numerator() -> None:
    facts = Facts()
    facts.require(Obligation(N % 2, "==", 0))
    facts.require(Obligation((N // 2) % 3, "==", 1))
    assert facts.prove_eq(N % 6, 2)
    assert not facts.prove_eq(N % 12, 2)


def _random_dim(rng: random.Random) -> DimLike:
    total: DimLike = rng.randint(-3, 3)
    for _ in range(rng.randint(1, 4)):
        base = rng.choice((N, X, N * X, N + X, N * N)) * rng.randint(1, 3) + rng.randint(-4, 4)
        divisor = rng.choice((1, 2, 3, 4, 6, 8, 12))
        total = total + rng.randint(-4, 4) * rng.choice((1, 1, N, X)) * (base // divisor)
    return total


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 20))])
def test_what_is_simplified_keeps_its_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        facts = Facts()
        for _ in range(rng.randint(1, 3)):
            known = rng.choice((N, X, N * X, N + X, 2 * N + X, N // 2, (N * X) // 2)) + rng.randint(0, 3)
            modulus = rng.choice((2, 3, 4, 6, 8))
            facts.require(Obligation(known % modulus, "==", rng.randrange(modulus)))
        points = [dict(zip("NX", point, strict=True)) for point in product(range(26), repeat=2)]
        met = [
            values
            for values in points
            if all(evaluate(each.lhs, values) == evaluate(each.rhs, values) for each in facts.obligations)
        ]
        for _ in range(5):
            dim = _random_dim(rng)
            simple = facts.simplify(dim)
            given = [evaluate(dim, values) for values in met]
            assert [evaluate(simple, values) for values in met] == given, (str(dim), str(simple), facts.obligations)
            proved = facts.prove_divisible(dim, 2)
            assert not proved or all(value % 2 == 0 for value in given)
            if not isinstance(dim, int):
                answer = facts.require(Obligation(dim % 4, "==", 1))
                holds = [values for values, value in zip(met, given, strict=True) if value % 4 == 1]
                assert answer != "contradiction" or not holds
                assert answer != "proved" or holds == met
                met = holds if answer == "assumed" else met
