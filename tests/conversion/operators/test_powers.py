"""Pow of types that it does not take below opset 12."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, refusal, run, run_reference
from onnx import helper

LIMITS = np.iinfo(np.int64)


def power(base: str, exponent: str, opset: int = 15) -> onnx.ModelProto:
    node = helper.make_node("Pow", ["a", "b"], ["c"])
    return build(node, opset, {"a": (base, ("n", 1)), "b": (exponent, ("m",))}, {"c": (base, ("n", "m"))})


def powers(base: Array, exponent: Array, model: onnx.ModelProto, target: int = 11) -> Array:
    feeds: dict[str, Any] = {"a": base[:, None], "b": exponent}
    after = converted(model, target)
    found = run(after, feeds)
    assert_same(found, run_reference(after, feeds), 1e-6 if base.dtype.kind == "f" else 0.0)
    return found[0]


@pytest.mark.parametrize("exponent", ["int64", "uint64"])
def test_refusals(exponent: str) -> None:
    assert f"Pow does not take {exponent}" in refusal(power("float64", exponent), 11)


@pytest.mark.parametrize("exponent", ["int32", "uint8", "int64", "uint64", "float64", "float32"])
@pytest.mark.parametrize("base", ["float32", "float64", "int32", "int64", "float16"])
@pytest.mark.parametrize("target", [11, 9])
def test_powers_below_12(base: str, exponent: str, target: int) -> None:
    if base == "float64" and exponent in ("int64", "uint64"):
        assert refusal(power(base, exponent), target)
        return
    a, b = np.array([0, 1, -1, 2, -3, 5, 10], base), np.array([0, 1, 2, 3, 4], exponent)
    expected = np.array([[int(x) ** int(y) for y in b] for x in a], base)
    assert_same([expected], [powers(a, b, power(base, exponent), target)], 1e-6 if base.startswith("float") else 0.0)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_negative_powers_of_integers_are_rounded_to_zero(dtype: str) -> None:
    a, b = np.array([1, -1, 2, -2, 3], dtype), np.array([-1, -2, -3], dtype)
    expected = np.trunc(a.astype(float)[:, None] ** b).astype(dtype)
    assert_same([expected], [powers(a, b, power(dtype, dtype, 12))])


def test_roots_of_integers_are_rounded_to_zero() -> None:
    for dtype in ("int32", "int64"):
        a, b = np.array([0, 1, 2, 4, 8, 99, 100], dtype), np.array([0.5, 1.5], np.float32)
        expected = np.trunc(a.astype(float)[:, None] ** b.astype(float)).astype(dtype)
        assert_same([expected], [powers(a, b, power(dtype, "float32", 12))])


def test_long_integers_are_multiplied_out() -> None:
    a = np.array([3, -3, 2, -2, 7, LIMITS.max, LIMITS.min, 3037000499])
    b = np.array([39, 62, 63, 22, 1, 0, 2])
    found = powers(a, b, power("int64", "int64"))
    for place in np.ndindex(found.shape):
        exact = int(a[place[0]]) ** int(b[place[1]])
        if LIMITS.min <= exact <= LIMITS.max:
            assert found[place] == exact
    assert found[0, 0] == 3**39 and found[3, 2] == LIMITS.min


@pytest.mark.parametrize(
    ("base", "exponent"), [("int64", "int64"), ("int64", "uint64"), ("float32", "int64"), ("float32", "uint64")]
)
def test_large_exponents_are_odd_or_even(base: str, exponent: str) -> None:
    a = np.array([1, -1, 0], base)
    b = np.array([64, 65, 2**53, 2**53 + 1, LIMITS.max, LIMITS.max - 1], exponent)
    if exponent == "uint64":
        b = np.concatenate([b, np.array([2**63, 2**63 + 1, 2**64 - 1], np.uint64)])
    signs = np.where(b % 2 == 1, -1, 1)
    expected = np.stack([np.ones(len(b)), signs, np.zeros(len(b))]).astype(base)
    assert_same([expected], [powers(a, b, power(base, exponent))])


def test_large_negative_exponents() -> None:
    b = np.array([-64, -65, -(2**53) - 1, LIMITS.min, LIMITS.min + 1])
    signs = np.where(b % 2 == 1, -1, 1)
    for base in ("int64", "float32"):
        a = np.array([1, -1, 2, -2], base)
        zeros = np.zeros(len(b))
        found = powers(a, b, power(base, "int64"))
        expected = np.stack([np.ones(len(b)), signs, zeros, zeros]).astype(base)
        assert_same([expected], [found], 1e-12 if base == "float32" else 0.0)


def test_growth_beyond_every_float() -> None:
    a, b = np.array([2, -2, 1 + 2.0**-23, 1 - 2.0**-24], np.float32), np.array([2**60, 2**60 + 1])
    expected = np.array([[np.inf, np.inf], [np.inf, -np.inf], [np.inf, np.inf], [0, 0]], np.float32)
    assert_same([expected], [powers(a, b, power("float32", "int64"))])
