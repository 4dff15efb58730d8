"""Dims of hundreds and thousands of levels: sizes, not seconds, so that no test reads the clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from splitgraph.dim import (
    Dim,
    DimLike,
    dim_max,
    dim_min,
    evaluate,
    is_spellable,
    parse_dim,
    parse_expression,
    substitute,
    symbol,
    symbols_of,
)
from splitgraph.dim.atoms import MOST_WRITTEN, size_of

A, N, K = (symbol(name) for name in ("A", "N", "k"))


def _nested(step: Callable[[DimLike, int], DimLike], times: int) -> DimLike:
    dim: DimLike = N
    for index in range(times):
        dim = step(dim, index)
    return dim


CHAINS: list[tuple[str, Callable[[DimLike, int], DimLike]]] = [
    ("halves", lambda d, i: d // 2),
    ("ceiling halves", lambda d, i: (d + 1) // 2),
    ("half plus itself", lambda d, i: ((d + 1) // 2 + N) // 3),
    ("two fifths", lambda d, i: (2 * d + 1) // 5),
    ("three fifths", lambda d, i: (3 * d + 1) // 5),
    ("three halves", lambda d, i: (3 * d + 1) // 2),
    ("clamps", lambda d, i: dim_min(dim_max(d, A + i), K + 2 * i)),
    ("maxima", lambda d, i: dim_max(d, symbol(f"x{i}"))),
    ("clamped halves", lambda d, i: dim_min((d + i) // 2, A + i)),
    ("remainders", lambda d, i: (d % (7 + i % 3) + A) % 5 + i),
    ("quotients by a symbol", lambda d, i: (d + 1) // K + A),
    ("remainders by a symbol", lambda d, i: (d + i) % K + A),
    ("sums", lambda d, i: d + symbol(f"x{i}")),
]


# These take seconds for a thousand levels.
SLOW_CHAINS = {"remainders", "clamps", "three halves", "clamped halves", "three fifths", "quotients by a symbol"}


@pytest.mark.parametrize(("name", "step"), CHAINS, ids=[name for name, _ in CHAINS])
@pytest.mark.sample(4)
def test_hundreds_of_levels(name: str, step: Callable[[DimLike, int], DimLike]) -> None:
    _check_levels(step, 250 if name in SLOW_CHAINS else 1000)


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(step, id=name) for name, step in CHAINS if name in SLOW_CHAINS])
def test_a_thousand_levels(step: Callable[[DimLike, int], DimLike]) -> None:
    _check_levels(step, 1000)


def _check_levels(step: Callable[[DimLike, int], DimLike], count: int) -> None:
    values = {"N": 10**9, "A": 3, "k": 9} | {f"x{i}": i for i in range(count)}
    dim, expected = _nested(step, count), 10**9
    for index in range(count):
        moved = step(symbol("d"), index)
        expected = evaluate(moved, values | {"d": expected})
    assert evaluate(dim, values) == expected
    assert size_of(dim) <= MOST_WRITTEN
    assert len(str(dim)) < 60 * MOST_WRITTEN
    assert is_spellable(dim) == (parse_expression(str(dim)) is dim)
    assert substitute(dim, {"absent": 1}) is dim
    assert "N" in symbols_of(dim)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1000 + "N" + ")" * 1000,
        "-" * 1000 + "N",
        "min(" * 1000 + "N" + ", 3)" * 1000,
        "(" * 1000 + "N" + " + 1)//2" * 1000,
        " + ".join(["N"] * 1000),
        "max(" * 1000 + "N" + ", A)" * 1000,
    ],
)
def test_a_thousand_levels_of_text(text: str) -> None:
    value = parse_expression(text)
    assert symbols_of(value) <= {"N", "A"}
    assert isinstance(parse_dim(text), Dim)


@pytest.mark.parametrize("shift", [0, 1])
def test_eighty_nested_halves_are_one_quotient(shift: int) -> None:
    assert _nested(lambda d, i: (d + shift) // 2, 80) is (N + shift * (2**80 - 1)) // 2**80
