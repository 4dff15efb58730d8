"""What counts as a difference, of values and of interfaces."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from splitgraph.verification.comparison import _NARROW_FLOATS, Comparison


def difference_of(before: Any, after: Any, rtol: float = 1e-5, atol: float = 1e-6) -> str:
    """The reason why two values differ, "" when they do not."""
    found = Comparison(rtol, atol).compare_outputs(["y"], [before], [after], 2)
    if found is None:
        return ""
    assert (found.name, found.case) == ("y", 2)
    return found.reason


F = np.float32
NORMAL = np.random.default_rng(0).standard_normal(50).astype(F)

DIFFERENT = [
    (F([1, 2]), F([1, 2.001]), r"at \[1\] the first model gives 2.0, the second 2.001 \(1 of 2 elements differ\)"),
    (NORMAL, NORMAL * F(1 + 5e-4), "elements differ"),
    (NORMAL.astype(np.float64), NORMAL.astype(np.float64) * (1 + 5e-4), "elements differ"),
    (F([1, 2]), np.float64([1, 2]), "type float32, the second float64"),
    (F([1, 2]), F([[1, 2]]), r"shape \[2\], the second \[1, 2\]"),
    (F([[1], [2]]), F([[1]]), r"shape \[2, 1\], the second \[1, 1\]"),
    (np.zeros((0, 2), F), np.zeros((0, 3), F), "shape"),
    (F([np.nan]), F([0]), "the first model gives nan, the second 0.0"),
    (F([0]), F([np.nan]), "the second nan"),
    (F([np.inf]), F([-np.inf]), "the first model gives inf, the second -inf"),
    (F([np.inf]), F([3e38]), "the second 3e"),
    (F(1).reshape(()), F(2).reshape(()), "^the first model gives 1.0, the second 2.0$"),
    (np.int64([2**53]), np.int64([2**53 + 1]), "9007199254740993"),
    (np.uint64([2**64 - 1]), np.uint64([2**64 - 2]), "the first model gives 18446744073709551615"),
    (np.int32([1]), np.int64([1]), "type int32, the second int64"),
    (np.array([True]), np.array([False]), "the first model gives True, the second False"),
    (np.array(["a", "b"], object), np.array(["a", "B"], object), "the first model gives 'b', the second 'B'"),
    (np.array(["1"], object), np.int64([1]), "type string, the second int64"),
    (np.complex64([1 + 1j]), np.complex64([1 + 1.001j]), "elements|the first model gives"),
    (np.float16([1]), np.float16([1.004]), "the first model gives 1.0"),
    (np.array([1], ml_dtypes.bfloat16), np.array([1.04], ml_dtypes.bfloat16), "the first model gives 1"),
    (np.array([1], ml_dtypes.float8_e4m3fn), np.array([1.5], ml_dtypes.float8_e4m3fn), "the first model gives 1"),
    (np.array([1], ml_dtypes.float8_e8m0fnu), np.array([2], ml_dtypes.float8_e8m0fnu), "the first model gives 1"),
    (np.array([1], ml_dtypes.float4_e2m1fn), np.array([1.5], ml_dtypes.float4_e2m1fn), "the first model gives 1"),
    (np.array([1], ml_dtypes.int4), np.array([2], ml_dtypes.int4), "the first model gives 1, the second 2"),
    (None, F([1]), "an empty optional, the second a tensor"),
    ([F([1])], F([1]), "a sequence, the second a tensor"),
    ([F([1])], [], "a sequence of 1, the second of 0"),
    ([F([1]), F([2])], [F([1]), F([3])], r"element 1: at \[0\] the first model gives 2.0"),
    ([F([1]), F([2])], [F([2]), F([1])], "element 0"),
    ([None], [F([1])], "element 0"),
    ({"a": F([1])}, {"b": F([1])}, "keys"),
    ({"a": F([1])}, {"a": F([2])}, "at key 'a'"),
]


@pytest.mark.parametrize(("before", "after", "reason"), DIFFERENT)
def test_values_that_differ(before: Any, after: Any, reason: str) -> None:
    import re

    assert re.search(reason, difference_of(before, after))


EQUAL = [
    (F([np.nan, np.nan, np.inf, -np.inf]), F([np.inf, -np.inf, np.nan, np.nan])),
    (np.float16([np.nan]), np.float16([np.inf])),
    (np.complex64([complex(np.nan, 1)]), np.complex64([complex(np.inf, 1)])),
    (F([np.nan, np.inf, -np.inf, 0.0]), F([np.nan, np.inf, -np.inf, -0.0])),
    (NORMAL, NORMAL * F(1 + 2e-6)),
    (F([1e-9]), F([-1e-9])),
    (np.float16([1]), np.float16([1.001])),
    (np.array([1], ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16)),
    (np.array([1], ml_dtypes.float8_e5m2), np.array([1.25], ml_dtypes.float8_e5m2)),
    (np.complex64([complex(np.nan, 1)]), np.complex64([complex(np.nan, 1)])),
    (np.zeros((0, 2), F), np.zeros((0, 2), F)),
    (np.array(["a"], object), np.array(["a"], object)),
    (None, None),
    ([], []),
    ([F([1]), F([[2]])], [F([1]), F([[2]])]),
    ({"a": F([1])}, {"a": F([1])}),
]


@pytest.mark.parametrize(("before", "after"), EQUAL)
def test_values_that_are_equal(before: Any, after: Any) -> None:
    assert difference_of(before, after) == ""


@pytest.mark.parametrize(("before", "after"), EQUAL[:3])
def test_what_does_not_overflow_is_no_nan(before: Any, after: Any) -> None:
    found = Comparison(1e-5, 1e-6, may_overflow=False).compare_outputs(["y"], [before], [after], 0)
    assert found is not None
    assert Comparison(1e-5, 1e-6, may_overflow=False).compare_outputs(["y"], [before], [before], 0) is None


@pytest.mark.parametrize(("rtol", "atol", "equal"), [(1e-5, 0.0, False), (1e-2, 0.0, True), (0.0, 1e-2, True)])
def test_the_tolerances_are_the_callers(rtol: float, atol: float, equal: bool) -> None:
    assert (difference_of(F([1]), F([1.005]), rtol, atol) == "") is equal


def test_tolerances_of_narrow_types_come_from_the_types() -> None:
    for name, (eps, least) in _NARROW_FLOATS.items():
        info = ml_dtypes.finfo(np.dtype(getattr(ml_dtypes, name, name)))
        assert eps == float(info.eps)
        assert least == (float(info.smallest_subnormal) if name.startswith("float8") else eps)


def test_the_largest_differences_are_kept() -> None:
    comparison = Comparison(1e-2, 1e-2)
    assert comparison.max_abs_diff is None
    assert comparison.compare_outputs(["y"], [F([0, 2, 4])], [F([0.001, 2.002, 4])], 0) is None
    assert comparison.compare_outputs(["y"], [F([np.inf, 10])], [F([np.inf, 10])], 1) is None
    assert comparison.max_abs_diff == pytest.approx(0.002, rel=1e-3)
    assert comparison.max_rel_diff == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize(("before", "after"), [(1, np.inf), (np.inf, 1), (0, np.nan), (np.nan, 2), (np.inf, -np.inf)])
def test_nothing_is_further_from_a_number_than_what_is_none(before: float, after: float) -> None:
    comparison = Comparison(1e-5, 1e-6)
    assert comparison.compare_outputs(["y"], [F([3, before])], [F([3, after])], 0) is not None
    assert (comparison.max_abs_diff, comparison.max_rel_diff) == (np.inf, np.inf)


def test_integers_alone_leave_the_differences_at_nothing() -> None:
    comparison = Comparison(1e-5, 1e-6)
    assert comparison.compare_outputs(["y"], [np.int64([1])], [np.int64([1])], 0) is None
    assert (comparison.max_abs_diff, comparison.max_rel_diff) == (0.0, 0.0)


def test_another_number_of_outputs() -> None:
    found = Comparison(1e-5, 1e-6).compare_outputs(["y"], [F([1])], [F([1]), F([2])], 0)
    assert found is not None
    assert "1 outputs, the second 2" in found.reason


BETWEEN_ENGINES = [
    (F([np.nan, 1]), F([0, 1]), ""),
    (F([0, 1]), F([np.inf, 1]), ""),
    (F([np.inf]), F([-np.inf]), ""),
    (np.float16([np.inf]), np.float16([65504]), ""),
    (F([np.nan, 1]), F([0, 2]), r"at \[1\]"),
    (np.array([True]), np.array([False]), "True"),
    (np.int64([1]), np.int64([2]), "1"),
]


@pytest.mark.parametrize(("before", "after", "reason"), BETWEEN_ENGINES)
def test_between_engines_only_finite_numbers_count(before: Any, after: Any, reason: str) -> None:
    import re

    found = Comparison(1e-3, 1e-4, only_finite=True).compare_outputs(["y"], [before], [after], 0)
    assert (found is None) == (not reason)
    assert found is None or re.search(reason, found.reason)


STEP = np.finfo(F).smallest_subnormal


@pytest.mark.parametrize(
    ("steps", "is_exact", "is_equal"),
    [(1, False, True), (8, False, True), (9, False, False), (1000, False, False), (1, True, False)],
)
def test_the_smallest_numbers_are_rounded_to_whole_steps(steps: int, is_exact: bool, is_equal: bool) -> None:
    local = Comparison(1e-5, 1e-6, is_local=True, is_exact=is_exact)
    assert (local.compare_outputs(["y"], [F([0, STEP])], [F([steps * STEP, STEP])], 0) is None) is is_equal
