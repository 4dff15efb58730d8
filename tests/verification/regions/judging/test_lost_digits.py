"""Which side of a difference that is rounding loses digits: measured against float64, and said beside the verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph import verify
from splitgraph.verification.regions.judging.lost_digits import lost_digits

from ...small_models import parsed

F = np.float32
EXACT = np.linspace(1, 2, 16).reshape(4, 4)
CUT = (EXACT * 64).round() / 64
FAR = EXACT.astype(F).copy()
FAR[2, 3] += F(1e-3)

# Both sides, and which loses how many digits; None where neither does.
SIDES: dict[str, tuple[Any, Any, tuple[int, int] | None]] = {
    "the same": (EXACT.astype(F), EXACT.astype(F), None),
    "a last bit": (EXACT.astype(F), np.nextafter(EXACT.astype(F), F(3)), None),
    "both as far": (CUT.astype(F), CUT.astype(F), None),
    "one digit": (EXACT.astype(F), (EXACT * (1 + 1e-6)).astype(F), None),
    "the second": (EXACT.astype(F), CUT.astype(F), (1, 4)),
    "the first": (CUT.astype(F), EXACT.astype(F), (0, 4)),
    "one element": (EXACT.astype(F), FAR, (1, 3)),
    "float16 has no more": (CUT.astype(np.float16), EXACT.astype(np.float16), None),
    "float64": (EXACT, EXACT.astype(F).astype(np.float64), (1, 8)),
    "not a number": (EXACT.astype(F), np.full((4, 4), np.nan, F), None),
    "whole numbers": (np.ones(3, np.int64), np.ones(3, np.int64), None),
    "nothing": (np.empty((0, 4), F), np.empty((0, 4), F), None),
}


@pytest.mark.parametrize("name", SIDES)
def test_the_side_that_loses_digits(name: str) -> None:
    before, after, expected = SIDES[name]
    exact = EXACT if before.shape == EXACT.shape else before.astype(np.float64 if before.dtype == F else before.dtype)
    found = lost_digits([[before], [after]], [exact])
    assert (None if found is None else (found.side, found.digits)) == expected


def test_zeros_have_no_digits() -> None:
    zeros = np.zeros(4)
    assert lost_digits([[zeros.astype(F)], [np.full(4, 1e-9, F)]], [zeros]) is None


def test_a_loss_says_where_and_what() -> None:
    found = lost_digits([[EXACT.astype(F)], [FAR]], [EXACT])
    assert str(found) == "the second model loses 3 of 7 digits: at [2, 3] it gives 1.7343334, and float64 1.7333333"


LINE = "float[N, 8] x => float[N, 8] y"
PLAIN = parsed(LINE, "y = Mul(x, one)", one=F(1))
OFFSET = F(2**17)


def shifted(*ways: str) -> onnx.ModelProto:
    return parsed(LINE, f"{ways[0]} = {ways[0]}(x, c) y = {ways[1]}({ways[0]}, c)", c=OFFSET)


# Two models that are equal up to rounding, and the severity of what is said, which depends on the side that loses.
PAIRS: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, str]] = {
    "a sum and back": (PLAIN, shifted("Add", "Sub"), "warning"),
    "a difference and back": (PLAIN, shifted("Sub", "Add"), "warning"),
    "the other way round": (shifted("Add", "Sub"), PLAIN, "info"),
    "both lose": (shifted("Add", "Sub"), shifted("Sub", "Add"), ""),
    "another order": (
        parsed(LINE, "a = Add(x, p) y = Add(a, q)", p=F(0.1), q=F(0.3)),
        parsed(LINE, "a = Add(x, q) y = Add(a, p)", p=F(0.1), q=F(0.3)),
        "",
    ),
    "a product and back": (
        parsed(LINE, "a = Mul(x, p) y = Div(a, p)", p=F(3)),
        PLAIN,
        "",
    ),
    "a square by other squares": (
        parsed(LINE, "y = Mul(x, x)"),
        parsed(LINE, "p = Add(x, c) q = Sub(x, c) r = Mul(p, q) y = Add(r, k)", c=F(2**6), k=F(2**12)),
        "warning",
    ),
}


ROWS = "float[N, 16] x => float[N, 1] y"
SQUARES = "a = ReduceMean(x, k) s = Mul(x, x) b = ReduceMean(s, k) c = Mul(a, a) "
CENTRED = "a = ReduceMean(x, k) d = Sub(x, a) s = Mul(d, d) "
AXIS = np.int64([1])
VARIANCES: dict[str, tuple[onnx.ModelProto, onnx.ModelProto]] = {
    "alone": (
        parsed(ROWS, CENTRED + "y = ReduceMean(s, k)", k=AXIS),
        parsed(ROWS, SQUARES + "y = Sub(b, c)", k=AXIS),
    ),
    "in a normalization": (
        parsed(
            "float[N, 16] x => float[N, 16] y",
            CENTRED + "v = ReduceMean(s, k) p = Add(v, e) r = Sqrt(p) y = Div(d, r)",
            k=AXIS,
            e=F(1),
        ),
        parsed(
            "float[N, 16] x => float[N, 16] y",
            SQUARES + "v = Sub(b, c) p = Add(v, e) r = Sqrt(p) d = Sub(x, a) y = Div(d, r)",
            k=AXIS,
            e=F(1),
        ),
    ),
    "of a sum of squares": (
        parsed(ROWS, CENTRED + "y = ReduceSum(s, k)", k=AXIS),
        parsed(
            ROWS,
            "a = ReduceMean(x, k) s = Mul(x, x) b = ReduceSum(s, k) c = Mul(a, a) m = Mul(c, n) y = Sub(b, m)",
            k=AXIS,
            n=F(16),
        ),
    ),
}
NEAR = np.random.default_rng(1).standard_normal((5, 16))


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("way", ["the second", "the first"])
@pytest.mark.parametrize("name", VARIANCES)
def test_a_variance_that_loses_digits_is_equal_up_to_rounding(name: str, way: str) -> None:
    before, after = VARIANCES[name] if way == "the second" else reversed(VARIANCES[name])
    found = verify(before, after, inputs={"x": (1e4 + 100 * NEAR).astype(F)})
    assert found.verdict == "equal", found.first_difference
    (note,) = (each for each in found.diagnostics if each.code == "SG514")
    assert f"{way} model loses 4 of 7 digits" in note.message
    assert note.severity == ("warning" if way == "the second" else "info")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("way", ["the second", "the first"])
@pytest.mark.parametrize("name", VARIANCES)
def test_a_variance_without_any_digit_is_different(name: str, way: str) -> None:
    before, after = VARIANCES[name] if way == "the second" else reversed(VARIANCES[name])
    found = verify(before, after, inputs={"x": (1e4 + NEAR).astype(F)})
    assert found.verdict == "different"
    assert f"in float64, both are equal, but no digit is left: {way} model loses 7 of 7 digits" in found.difference_text


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("factor", [1 + 1e-3, 16 / 15])
def test_a_wrong_factor_does_not_vanish_in_float64(factor: float) -> None:
    before, _ = VARIANCES["alone"]
    after = parsed(ROWS, SQUARES + "v = Sub(b, c) y = Mul(v, f)", k=AXIS, f=F(factor))
    found = verify(before, after, inputs={"x": (1e4 + 100 * NEAR).astype(F)})
    assert found.verdict == "different"
    assert "float64" not in found.difference_text


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", PAIRS)
def test_lost_digits_are_said_beside_the_verdict(name: str) -> None:
    before, after, severity = PAIRS[name]
    found = verify(before, after)
    assert found.verdict == "equal"
    assert [note.severity for note in found.diagnostics if note.code == "SG514"] == [severity] * bool(severity)
    assert all("equal up to rounding: main/" in note.message for note in found.diagnostics if note.code == "SG514")
