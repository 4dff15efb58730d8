"""Copies of models with moved weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from splitgraph.verification.engines.weight_probe import MOVES, move_onnx, moved

from ..small_models import parsed

FUNCTION = '<domain: "local", opset_import: ["": 18]> F (a) => (b) { c = Constant<value_float = 2.0>() b = Mul(a, c) }'


W = np.ones((4, 4), np.float32) * 2
TWO = "float[N, 4] x, float[N, 4] z => float[N, 4] y, float[N, 4] v"


def test_weights_are_moved_in_one_direction_by_different_factors() -> None:
    for dtype in (np.float32, np.float64, np.float16):
        result = moved(np.full((5, 7), -3, dtype), "w", MOVES[0])
        assert result.dtype == dtype
        factors = result.astype(np.float64) / -3
        assert (factors.min() > 1.19, factors.max() < 1.41, len(np.unique(factors)) > 20) == (True, True, True)
    assert moved(np.float32(2), "s", MOVES[0]).shape == ()


def test_what_is_infinite_or_as_large_as_can_be_stays_so() -> None:
    largest = float(np.finfo(np.float16).max)
    held = np.array([np.inf, -np.inf, np.nan, largest, 0], np.float16)
    np.testing.assert_array_equal(moved(held, "w", MOVES[0]), held)


def test_a_copy_has_other_weights_wherever_they_are(tmp_path: Path) -> None:
    body = (
        "c = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() d = Add(x, c) f = local.F(d) m = MatMul(f, w)"
        " k = Mul(m, s) y = If(b) "
        "<then_branch = t () => (float[N, 4] a) { e = Constant<value_float = 5.0>() a = Mul(k, e) }, "
        "else_branch = e () => (float[N, 4] g) { g = Neg(k) }>"
    )
    held = {"w": W, "s": np.float32(3), "kept": np.float32(7)}
    model = parsed("float[N, 4] x, bool b => float[N, 4] y", body, FUNCTION, **held)
    onnx.save(model, tmp_path / "model.onnx")
    copy = onnx.load(move_onnx(tmp_path / "model.onnx", None, ["kept"], MOVES[0]))
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in copy.graph.initializer}
    assert (arrays["w"] > W).all()
    assert (arrays["s"] > 3, arrays["kept"] == 7) == (True, True)
    constants = [copy.graph.node[0], copy.graph.node[-1].attribute[0].g.node[0], copy.functions[0].node[0]]
    numbers = [
        [*node.attribute[0].floats, *([node.attribute[0].f] if node.attribute[0].f else [])] for node in constants
    ]
    assert [
        all(new > old for new, old in zip(*each, strict=True))
        for each in zip(numbers, ([1, 2, 3, 4], [5], [2]), strict=True)
    ] == [True] * 3
    assert onnx.load(tmp_path / "model.onnx") == model
