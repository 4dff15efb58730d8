"""NonMaxSuppression below opset 10."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import Array, operators


def boxes_of(batches: int, count: int, seed: int = 0) -> Array:
    """Corners in any order, on a grid, so that shares are often exactly those of a threshold."""
    return np.random.default_rng(seed).integers(0, 6, (batches, count, 4)).astype(np.float32)


def scores_of(batches: int, classes: int, count: int) -> Array:
    """Few different ones, so that many are equal."""
    return np.random.default_rng(1).integers(0, 5, (batches, classes, count)).astype(np.float32) / 8


def suppression(given: dict[str, Any], held: dict[str, Any], target: int = 9, **attributes: Any) -> Crossing:
    names = [name if name in given or name in held else "" for name in ("boxes", "scores", "most", "iou", "score")]
    while not names[-1]:
        names.pop()
    return Crossing("", "NonMaxSuppression", 11, target, given, held, attributes, tuple(names))


def test_refusal_of_a_count_that_is_not_known() -> None:
    case = suppression({"boxes": boxes_of(1, 4), "scores": scores_of(1, 1, 4)}, {})
    assert "how many elements there are" in replace(case, shapes="symbolic").refused()


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(("batches", "classes", "count"), [(1, 1, 1), (1, 2, 12), (3, 2, 20)])
@pytest.mark.parametrize(("most", "iou", "score"), [(3, 0.5, 0.0), (100, 0.25, None), (2, None, 0.25), (0, 0.5, None)])
def test_selected_boxes(
    batches: int, classes: int, count: int, most: int, iou: float | None, score: float | None, center: int
) -> None:
    given: dict[str, Any] = {"boxes": boxes_of(batches, count), "scores": scores_of(batches, classes, count)}
    held: dict[str, Any] = {"most": np.array([most])}
    for name, value in (("iou", iou), ("score", score)):
        if value is not None:
            held[name] = np.array([value], np.float32)
    case = suppression(given, held, center_point_box=center)
    assert "NonMaxSuppression" not in operators(case.check())
    replace(case, given={**given, **held}, constants={}).check()


def test_nothing_is_selected_without_a_number() -> None:
    suppression({"boxes": boxes_of(1, 4), "scores": scores_of(1, 1, 4)}, {}).check()
