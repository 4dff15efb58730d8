"""Activation functions below the opset of their operator, against their documents' formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing

X = np.array([[-2.0, -0.25, 0.0], [0.75, 3.0, np.nan]], np.float32)


def celu(x: Any, alpha: float) -> Any:
    return np.asarray(np.maximum(0, x) + np.minimum(0, alpha * (np.exp(x / np.float32(alpha)) - 1)), x.dtype)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 2.0, -0.5])
@pytest.mark.parametrize("target", [11, 8])
@pytest.mark.parametrize("x", [X, X[0], X[0, 1]], ids=["matrix", "row", "scalar"])
def test_celu_is_its_formula_of_any_rank(x: Any, target: int, alpha: float) -> None:
    given = {"x": np.asarray(x)}
    expected = [celu(given["x"], alpha)]
    Crossing("", "Celu", 12, target, given, {}, {"alpha": alpha}, expected=expected, tolerance=1e-5).check()
