"""Obligations divided by what both sides have in common, where that is known to be at least 1."""

from __future__ import annotations

import pytest

from splitgraph.dim import Facts, Obligation, evaluate, parse_expression
from splitgraph.dim.conditions import without_factors

# Both sides and what is known; what remains, as text. What stays comes first.
CASES: dict[str, tuple[str, str, str, list[str], str]] = {
    "a factor that may be 0": ("N*M", "==", "7*N", [], "M*N == 7*N"),
    "a factor of one side": ("N*M", "==", "7", ["N"], "M*N == 7"),
    "a factor of one term": ("N*M + M", "==", "7*N", ["N"], "M*N + M == 7*N"),
    "another one is known": ("N*M", "==", "7*N", ["M"], "M*N == 7*N"),
    "a sum of which one part is known": ("N*M - M", "==", "7*N - 7", ["N"], "M*N + 7 == M + 7*N"),
    "a remainder of a product": ("(N*M) % 7", "==", "0", ["N"], "(M*N) % 7 == 0"),
    "a product": ("N*M", "==", "7*N", ["N"], "M == 7"),
    "numbers on both sides": ("2*N*M", "==", "14*N", ["N"], "M == 7"),
    "factored": ("N*(M - 7)", "==", "0", ["N"], "M == 7"),
    "two factors": ("N*M*K", "==", "12*N*K", ["N", "K"], "M == 12"),
    "two factors, one of which is known": ("N*M*K", "==", "12*N*K", ["K"], "M*N == 12*N"),
    "a square": ("N*N*M", "==", "5*N*N", ["N"], "M == 5"),
    "at least": ("N*M", ">=", "4*N", ["N"], "M >= 4"),
    "products on both sides": ("N*M", "==", "N*K", ["N"], "K == M"),
    "a remainder with the factor": ("(N*M) % (7*N)", "==", "0", ["N"], "M % 7 == 0"),
    "a shared sum": ("N*M + M", "==", "7*N + 7", ["N"], "M == 7"),
    "a shared sum beside a factor": ("N*M*K + M*K", "==", "7*N*K + 7*K", ["K"], "M*N + M == 7*N + 7"),
    "a remainder of a multiple": ("(7*N) % 16", "==", "0", [], "N % 16 == 0"),
    "a remainder of a multiple of a product": ("(7*N*M) % 16", "==", "0", [], "(M*N) % 16 == 0"),
    "a remainder of a multiple that shares a factor": ("(6*N) % 4", "==", "0", [], "N % 2 == 0"),
    "of nothing": ("N*M", "==", "0", ["N"], "M == 0"),
}


@pytest.mark.parametrize("name", CASES)
def test_without_factors(name: str) -> None:
    lhs, relation, rhs, positive, expected = CASES[name]
    facts = Facts(dict.fromkeys(positive, (1, None)))
    obligation = Obligation(parse_expression(lhs), "==" if relation == "==" else ">=", parse_expression(rhs))
    divided = without_factors(obligation, lambda factor: facts.prove_ge(factor, 1))
    assert str(divided) == expected
    for values in ({"N": n, "M": m, "K": k} for n in range(4) for m in (0, 4, 5, 7, 12, 14) for k in range(3)):
        if all(values[each] for each in positive):
            assert _holds(divided, values) == _holds(obligation, values)


def _holds(obligation: Obligation, values: dict[str, int]) -> bool:
    try:
        left, right = evaluate(obligation.lhs, values), evaluate(obligation.rhs, values)
    except ZeroDivisionError:
        return False
    return left == right if obligation.relation == "==" else left >= right
