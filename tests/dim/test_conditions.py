"""Plain conditions for a dimension to be at least 0."""

from __future__ import annotations

from itertools import product

import pytest

from splitgraph.dim import Dim, DimLike, Facts, Obligation, evaluate, parse_expression, symbols_of
from splitgraph.dim.conditions import plain_conditions

CASES = {
    "a sum": ("P + T - 1", ["P + T >= 1"]),
    "a maximum that is subtracted": ("5 - max(a, b)", ["5 >= a", "5 >= b"]),
    "a minimum": ("min(a, b) - 1", ["a >= 1", "b >= 1"]),
    "a minimum with a number": ("min(4, N) - 1", ["N >= 1"]),
    "a minimum that is too small": ("min(4, N) - 5", None),
    "a maximum of which one will do": ("max(3, N) - 4", ["N >= 4"]),
    "a maximum of two": ("max(a, b) - 1", ["max(a, b) >= 1"]),
    "what a slice leaves": ("min(4, P + T) - min(4, P) - 1", ["3 >= P", "T + max(0, P - 4) >= 1"]),
    "a quotient": ("N//2 - 1", ["N >= 2"]),
    "several quotients": ("3*(N//2) - 4", ["N >= 4"]),
    "a quotient that is subtracted": ("3 - N//2", ["7 >= N"]),
    "a product": ("2*N*M - 1", ["M >= 1", "N >= 1"]),
    "a product of more": ("N*M - 2", ["M*N >= 2"]),
    "a product of what may be negative": ("(N//2 - 1)*M - 1", ["M*(N//2) >= M + 1"]),
    "a number": ("3", []),
    "no number": ("0 - 3", None),
    "always": ("N", []),
    "never": ("0 - N - 1", None),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_conditions(text: str, expected: list[str] | None) -> None:
    value = parse_expression(text)
    found = _conditions(value)
    texts = None if found is None else sorted(str(Obligation(each, ">=", 0)) for each in found)
    assert texts == expected
    names = sorted(symbols_of(value))
    for sizes in product(range(9), repeat=len(names)):
        at = dict(zip(names, sizes, strict=True))
        holds = found is not None and all(evaluate(each, at) >= 0 for each in found)
        assert holds == (evaluate(value, at) >= 0), at


def test_what_is_known_is_left_out() -> None:
    known = Facts()
    known.require(Obligation(parse_expression("b"), ">=", 1))
    found = plain_conditions(parse_expression("min(a, b) - 1"), lambda value: known.prove_ge(value, 0))
    assert [str(each) for each in found or ()] == ["a - 1"]


def _conditions(value: DimLike) -> list[Dim] | None:
    return plain_conditions(value, lambda each: Facts().prove_ge(each, 0))
