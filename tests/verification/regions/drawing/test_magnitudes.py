"""Small numbers that are drawn beside large ones are drawn without them, too: large ones hide small differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.verification.regions.drawing.draw import draw
from splitgraph.verification.regions.drawing.magnitudes import apart

from ...small_models import parsed

F, I64 = np.float32, np.int64

ONE_MAGNITUDE: dict[str, Any] = {
    "nothing": {},
    "no elements": {"x": F([])},
    "zeros": {"x": F([0, -0.0])},
    "near numbers": {"x": F([0.25, -6, 2500])},
    "one number": {"x": F([1e9])},
    "gaps beside near numbers": {"x": F([np.nan, np.inf, 1, 0])},
    "conditions": {"x": np.array([True, False])},
    "texts": {"x": np.array(["a"], dtype=object)},
    "a sequence": {"x": [F([1]), F([1e9])]},
}


@pytest.mark.parametrize("name", ONE_MAGNITUDE)
def test_numbers_of_one_magnitude_stay_together(name: str) -> None:
    assert list(apart(ONE_MAGNITUDE[name])) == []


def test_each_magnitude_has_values_of_its_own() -> None:
    made = list(apart({"x": F([0.5, 1e9, 2.5, np.inf, 0])}))
    assert [values["x"].tolist() for values in made] == [  # type: ignore[union-attr]
        [0.5, 0.5, 2.5, np.inf, 0],
    ]


def test_an_input_without_numbers_of_a_magnitude_stays() -> None:
    made = list(apart({"x": F([1, 2]), "k": I64([2**40, 2**41])}))
    assert [np.asarray(values["k"]).tolist() for values in made] == [[2**40, 2**41]]
    assert [np.asarray(values["x"]).tolist() for values in made] == [[1, 2]]


def steps(model: onnx.ModelProto, x: Any) -> list[Any]:
    found = draw(((model, Path()), (model, Path())), {"x": x}, (), 0)
    return [values["x"] for kind, values in found if kind == "steps"]


@pytest.mark.parametrize("number", [I64(2), I64([2, 128]), np.int32(5)])
def test_a_whole_number_is_no_scale(number: Any) -> None:
    made = steps(parsed("float[N] x => float[N] y", "k = Cast<to = 1>(c) y = Mul(x, k)", c=number), np.ones(200, F))
    assert max(np.abs(values).max() for values in made[:1]) < 200


def test_a_scale_has_its_multiples() -> None:
    made = steps(parsed("float[N] x => float[N] y", "y = Mul(x, c)", c=F(0.25)), np.ones(200, F))
    assert {31.875, -32.0, 0.625} <= set(np.ravel(made[0]).tolist())


LARGE_CONSTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a limit": ("y = Min(x, lim)", {"lim": F(1e12)}),
    "a negative limit": ("y = Max(x, lim)", {"lim": F(-1e9)}),
    "an attribute": ("y = ThresholdedRelu<alpha = 1000000000.0>(x)", {}),
    "a whole number": ("k = Cast<to = 1>(n) y = Min(x, k)", {"n": I64(2**40)}),
    "a list of limits": ("m = Min(x, lims) y = ReduceMin<keepdims = 0>(m, axes)", {"lims": F([[1e11], [1e12]])}),
    "a large scale": ("y = Div(x, s)", {"s": F(1000)}),
}


@pytest.mark.parametrize("name", LARGE_CONSTANTS)
def test_ties_are_drawn_without_large_numbers(name: str) -> None:
    text, constants = LARGE_CONSTANTS[name]
    constants = constants | ({"axes": I64([0])} if "axes" in text else {})
    made = steps(parsed("float[N] x => float[N] y", text, **constants), np.ones(200, F))
    assert any(0.5 in values and 2.5 in values and np.abs(values).max() <= 2500 for values in made)
