"""Operators of com.microsoft that sample images in operators of ai.onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal

_RNG = np.random.default_rng(7)
_NEW_AND_OLD = (24, 13)


def _floats(*shape: int, dtype: str = "float32") -> Array:
    return _RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", [None, "zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", [None, "bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str | None, padding: str | None, corners: int) -> None:
    given = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    attributes = {name: value for name, value in given.items() if value is not None}
    grid = _RNG.uniform(-1.5, 1.5, (2, 3, 3, 2)).astype(np.float32)
    opsets = (24, 17) if mode == "bicubic" else (24, 17, 13)
    check(Case("GridSample", [_floats(2, 2, 4, 5), grid], attributes, rtol=1e-4, atol=1e-4), opsets)


def _crop(size: Any, **more: Any) -> Case:
    image = _floats(2, 3, *more.pop("image", (5, 6)))
    boxes = _RNG.uniform(-0.3, 1.3, (4, 4)).astype(np.float32)
    inputs = [image, boxes, _RNG.integers(0, 2, 4).astype(np.int32), np.array(size, np.int32)]
    return Case("CropAndResize", inputs, more.pop("attributes", {}), **more)


@pytest.mark.parametrize("constants", [frozenset(), frozenset({3})])
@pytest.mark.parametrize("size", [(3, 4), (1, 3), (3, 1), (1, 1)])
@pytest.mark.parametrize("attributes", [{}, {"mode": "nearest"}, {"extrapolation_value": -7.0}])
def test_crop_and_resize(attributes: dict[str, Any], size: tuple[int, int], constants: frozenset[int]) -> None:
    case = _crop(size, attributes=attributes, constants=constants, free=not constants)
    check(case, _NEW_AND_OLD if attributes else (17,), computed=not constants)


@pytest.mark.parametrize("image", [(2, 2), (1, 7), (8, 3)])
def test_crop_images_of_other_sizes(image: tuple[int, int]) -> None:
    for mode in ("bilinear", "nearest"):
        check(_crop((4, 3), image=image, attributes={"mode": mode}, constants=frozenset({3})), (17,))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_boxes_on_whole_pixels(mode: str) -> None:
    image, sides = _floats(1, 1, 5, 5), [0, 0.25, 0.5, 1]
    boxes = np.array([[a, b, c, d] for a in sides for b in (0, 1) for c in sides for d in (0, 0.5)], np.float32)
    inputs = [image, boxes, np.zeros(len(boxes), np.int32), np.array([3, 3], np.int32)]
    check(Case("CropAndResize", inputs, {"mode": mode}), (17,), computed=True)


def test_other_modes_are_refused() -> None:
    assert "none that onnxruntime runs" in refusal(_crop((2, 2), attributes={"mode": "bicubic"}))
