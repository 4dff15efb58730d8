"""RoiAlign."""

from __future__ import annotations

import numpy as np
from conversion.adapters.crossings import Crossing
from conversion.adapters.execute import random_array


def test_refusal_of_regions() -> None:
    given = {"x": random_array((2, 6, 5, 2)), "r": np.ones((1, 4), np.float32)}
    case = Crossing("", "RoiAlign", 16, 15, given, {"b": np.array([0])})
    assert "a region be smaller than a pixel" in case.refused()
