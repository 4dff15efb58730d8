"""Mod of floating-point numbers below opset 10: the exact remainder."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, build, converted, operators, refusal, run, run_reference
from onnx import helper


def modulus(dtype: str, opset: int = 13, ranks: tuple[int | None, int] = (2, 1), **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("Mod", ["a", "b"], ["c"], **attributes)
    shapes = [None if rank is None else [None] * rank for rank in ranks]
    inputs: dict[str, Any] = {"a": (dtype, shapes[0]), "b": (dtype, shapes[1])}
    return build(node, opset, inputs, {"c": (dtype, [None] * max(rank or 0 for rank in ranks))})


def numbers(dtype: str) -> Array:
    """Limits of the type, special values, and random bits, which are numbers of every size."""
    limits = np.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, np.inf, -np.inf, np.nan, limits.max, limits.min]
    special += [limits.smallest_subnormal, -limits.smallest_normal, limits.eps, 1 + limits.eps]
    drawn = np.random.default_rng(0).integers(0, 256, 24 * np.dtype(dtype).itemsize, np.uint8).tobytes()
    return np.concatenate([np.array(special, dtype), np.frombuffer(drawn, dtype)])


def test_refusal_of_unknown_rank() -> None:
    assert "the rank of 'a' is unknown" in refusal(modulus("float32", ranks=(None, 1), fmod=1), 9)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_pair_of_numbers(dtype: str) -> None:
    data = numbers(dtype)
    with np.errstate(all="ignore"):
        expected = [np.fmod(data[:, None], data)]
    after = converted(modulus(dtype, fmod=1), 9)
    assert "Mod" not in operators(after)
    feeds = {"a": data[:, None], "b": data}
    assert_same(expected, run(after, feeds))


@pytest.mark.parametrize(("one", "other"), [((), ()), ((3,), ()), ((), (2,)), ((0, 2), (2,)), ((2, 1, 2), (3, 1))])
def test_shapes(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    feeds = {"a": np.resize(np.float32(7.7), one), "b": np.resize(np.float32(-0.3), other)}
    after = converted(modulus("float32", ranks=(len(one), len(other)), fmod=1), 9)
    assert_same([np.asarray(np.fmod(feeds["a"], feeds["b"]))], run(after, feeds))
    assert_same(run(after, feeds), run_reference(after, feeds))


def test_remainders_of_one_kind_have_divisors_of_their_own() -> None:
    """The body of the loop reads the divisor from outside; what one node became says nothing of the next."""
    nodes = [helper.make_node("Mod", ["a", name], [f"{name}_rest"], fmod=1) for name in "bc"]
    declared = ("float32", (3,))
    model = build(nodes, 13, dict.fromkeys("abc", declared), {"b_rest": declared, "c_rest": declared})
    a, b, c = np.array([[7.7, -8.5, 9.0], [2.0, 3.0, 2.5], [0.3, 5.0, 4.0]], np.float32)
    assert_same([np.fmod(a, b), np.fmod(a, c)], run(converted(model, 9), {"a": a, "b": b, "c": c}))
