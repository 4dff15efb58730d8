"""Det below opset 11."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import operators, random_array


@pytest.mark.parametrize(
    ("shape", "shapes"), [((4, 4), "static"), ((2, 2), "symbolic"), ((2, 2), "unknown"), ((0, 0), "static")]
)
def test_refusals(shape: tuple[int, ...], shapes: Any) -> None:
    case = Crossing("", "Det", 11, 10, {"x": random_array(shape)}, shapes=shapes, expected=[np.zeros(())])
    assert "at most 3 rows" in case.refused()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (4, 2, 2), (2, 3, 3, 3), (0, 2, 2)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3)])
@pytest.mark.parametrize("target", [10, 9])
def test_determinants(shape: tuple[int, ...], dtype: str, tolerance: float, target: int) -> None:
    data = random_array(shape, dtype)
    expected = [np.asarray(np.linalg.det(data.astype(np.float64))).astype(dtype)]
    after = Crossing("", "Det", 11, target, {"x": data}, expected=expected, tolerance=tolerance).check()
    assert "Det" not in operators(after)
