"""Run Resize and Upsample, axis by axis.

onnx's evaluator places the one element of pytorch_half_pixel wrongly, has no Resize-10 and no Upsample, and computes
sizes in float64, where runtimes round to float32. These kernels are written from the text of the operators.

Decisions where the specification leaves something open:

- Sizes and coordinates are computed in float32, as onnx's shape inference and onnxruntime do.
- Resize-10 and Upsample divide coordinates by the scale. The nearest element is rounded down where an axis grows and up
  where it shrinks, as in onnx's own test of Resize-10 and in onnxruntime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from splitgraph.verification.reference.kernels import Array, KernelError, filled

RESIZE_VERSIONS: Mapping[str, Sequence[int]] = {"Resize": (10, 11, 13, 18, 19), "Upsample": (1, 7, 9)}

# A scale that was computed from sizes gives a length that is so near to the size.
_SAME_LENGTH = 1e-3
_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True, slots=True)
class _ScaledAxis:
    """One axis: its length before and after, the scale, and which part of it tf_crop_and_resize reads."""

    number: int
    before: int
    after: int
    scale: np.float32
    start: float = 0.0
    end: float = 1.0


@dataclass(frozen=True, slots=True)
class _Way:
    """How to interpolate. rounding: of the nearest element; "" as Resize-10 does."""

    mode: str = "nearest"
    transformation: str = "asymmetric"
    rounding: str = ""
    cubic: float = -0.75
    is_outside_excluded: bool = False
    extrapolation: float = 0.0
    is_antialiased: bool = False
    outside: list[tuple[int, Array]] = field(default_factory=list)


def run_resize(
    op_type: str, since_version: int, inputs: Sequence[Array | None], attributes: Mapping[str, Any], _: int
) -> tuple[Array]:
    """Run Resize or Upsample. inputs: None for an omitted one. Raises KernelError for a node that is not allowed."""
    given = {name: value for name, value in attributes.items() if value is not None}
    data = inputs[0]
    if data is None:
        raise KernelError(f"{op_type} needs the tensor to resize")
    if op_type == "Upsample" or since_version == 10:
        scales = _old_scales(since_version, inputs, given)
        way = _Way(mode="linear" if given.get("mode") == "bilinear" else str(given.get("mode", "nearest")))
        axes = [_scaled(data, number, scale) for number, scale in enumerate(scales)]
    else:
        roi, scales_input, sizes = filled(inputs, 4)[1:]
        way, axes = _way(given), _axes(data, roi, scales_input, sizes, given)
    made: Array = data if way.mode == "nearest" else np.asarray(data, np.float64)
    for axis in axes:
        made = _along(made, axis, way)
    for number, is_outside in way.outside:
        shape = [-1 if place == number else 1 for place in range(made.ndim)]
        made = np.where(is_outside.reshape(shape), np.asarray(way.extrapolation, made.dtype), made)
    return (np.ascontiguousarray(made.astype(data.dtype)),)


def _old_scales(since_version: int, inputs: Sequence[Array | None], given: Mapping[str, Any]) -> Iterable[float]:
    if since_version == 1:
        return 1.0, 1.0, float(given["height_scale"]), float(given["width_scale"])
    if since_version == 7:
        return map(float, given["scales"])
    scales = inputs[1]
    if scales is None:
        raise KernelError("the scales are missing")
    return map(float, scales)


def _way(given: Mapping[str, Any]) -> _Way:
    return _Way(
        str(given.get("mode", "nearest")),
        str(given.get("coordinate_transformation_mode", "half_pixel")),
        str(given.get("nearest_mode", "round_prefer_floor")),
        float(given.get("cubic_coeff_a", -0.75)),
        bool(given.get("exclude_outside", 0)),
        float(given.get("extrapolation_value", 0.0)),
        bool(given.get("antialias", 0)),
    )


def _axes(
    data: Array, roi: Array | None, scales: Array | None, sizes: Array | None, given: Mapping[str, Any]
) -> list[_ScaledAxis]:
    """Return what happens to each axis that is resized."""
    has_scales, has_sizes = (value is not None and value.size > 0 for value in (scales, sizes))
    if has_scales == has_sizes:
        raise KernelError("Resize takes either scales or sizes")
    numbers = [axis % data.ndim for axis in given.get("axes", ())] or list(range(data.ndim))
    if sizes is not None and has_sizes:
        axes = _sized(
            data, numbers, [int(size) for size in sizes], str(given.get("keep_aspect_ratio_policy", "stretch"))
        )
    else:
        assert scales is not None
        axes = [_scaled(data, number, float(scale)) for number, scale in zip(numbers, scales, strict=True)]
    if given.get("coordinate_transformation_mode") != "tf_crop_and_resize":
        return axes
    if roi is None or len(roi) != 2 * len(axes):
        raise KernelError("tf_crop_and_resize needs a region with a start and an end for each axis")
    ends = zip(roi[: len(axes)].tolist(), roi[len(axes) :].tolist(), strict=True)
    return [
        _ScaledAxis(axis.number, axis.before, axis.after, axis.scale, start, end)
        for axis, (start, end) in zip(axes, ends, strict=True)
    ]


def _scaled(data: Array, number: int, scale: float) -> _ScaledAxis:
    factor, before = np.float32(scale), data.shape[number]
    return _ScaledAxis(number, before, math.floor(np.float32(before) * factor), factor)


def _sized(data: Array, numbers: Sequence[int], sizes: Sequence[int], policy: str) -> list[_ScaledAxis]:
    ratios = [np.float32(size) / np.float32(data.shape[number]) for number, size in zip(numbers, sizes, strict=True)]
    if policy == "stretch":
        return [
            _ScaledAxis(number, data.shape[number], size, ratio)
            for number, size, ratio in zip(numbers, sizes, ratios, strict=True)
        ]
    shared = min(ratios) if policy == "not_larger" else max(ratios)
    after = [math.floor(shared * np.float32(data.shape[number]) + _HALF) for number in numbers]
    return [_ScaledAxis(number, data.shape[number], size, shared) for number, size in zip(numbers, after, strict=True)]


def _along(data: Array, axis: _ScaledAxis, way: _Way) -> Array:
    """Return the data with one axis resized."""
    # Nothing is read elsewhere on an axis that stays, unless a part of it is cut out.
    if axis.before == axis.after and axis.scale == _ONE and way.transformation != "tf_crop_and_resize":
        return data
    places = _coordinates(axis, way.transformation)
    if way.transformation == "tf_crop_and_resize":
        way.outside.append((axis.number, (places < 0) | (places > axis.before - 1)))
    if way.mode == "nearest":
        nearest = _rounded(places, way.rounding or ("ceil" if axis.scale < 1 else "floor"))
        return np.asarray(np.take(data, np.clip(nearest, 0, axis.before - 1), axis=axis.number))
    weights = _weights(places.astype(np.float64), axis, way)
    return np.moveaxis(np.tensordot(weights, data, axes=(1, axis.number)), 0, axis.number)


def _coordinates(axis: _ScaledAxis, transformation: str) -> Array:
    """Return where the elements of the result lie among those of the data."""
    x, after, before = np.arange(axis.after, dtype=np.float32), np.float32(axis.after), np.float32(axis.before)
    centre = np.asarray((x + _HALF) / axis.scale - _HALF)
    if transformation == "half_pixel":
        return centre
    if transformation == "half_pixel_symmetric":
        return np.asarray(before / 2 * (_ONE - after / (axis.scale * before)) + centre)
    if transformation == "pytorch_half_pixel":
        return centre if axis.after > 1 else np.zeros_like(x)
    if transformation == "align_corners":
        # onnx's own tests take the length before it is rounded down, and onnxruntime takes the one after that.
        exact = axis.scale * before
        length = after if abs(exact - after) < _SAME_LENGTH else exact
        return np.asarray(x * (before - 1) / (length - 1)) if axis.after > 1 else np.zeros_like(x)
    if transformation == "asymmetric":
        return np.asarray(x / axis.scale)
    if transformation == "tf_half_pixel_for_nn":
        return np.asarray((x + _HALF) / axis.scale)
    if transformation == "tf_crop_and_resize":
        start, end = np.float32(axis.start), np.float32(axis.end)
        if axis.after > 1:
            return np.asarray(start * (before - 1) + x * (end - start) * (before - 1) / (after - 1))
        return np.full_like(x, _HALF * (start + end) * (before - 1))
    raise KernelError(f"Resize knows no coordinate_transformation_mode {transformation!r}")


_ROUNDED: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda places: np.ceil(places - _HALF),
    "round_prefer_ceil": lambda places: np.floor(places + _HALF),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _rounded(places: Array, rounding: str) -> Array:
    if rounding not in _ROUNDED:
        raise KernelError(f"Resize knows no nearest_mode {rounding!r}")
    return _ROUNDED[rounding](places).astype(np.int64)


def _weights(places: Array, axis: _ScaledAxis, way: _Way) -> Array:
    """Return how much of each element of the data goes into each element of the result, as [after, before]."""
    if way.mode not in ("linear", "cubic"):
        raise KernelError(f"Resize knows no mode {way.mode!r}")
    # Where an axis shrinks, antialiasing reads so many times the elements.
    spread = min(float(axis.scale), 1.0) if way.is_antialiased else 1.0
    reach = (1 if way.mode == "linear" else 2) / spread
    steps = np.arange(-math.ceil(reach), math.ceil(reach) + 1)
    taken = np.floor(places).astype(np.int64)[:, None] + steps
    gaps = np.abs(taken - places[:, None]) * spread
    shares = np.maximum(1 - gaps, 0) if way.mode == "linear" else _cubic(gaps, way.cubic)
    if way.is_outside_excluded:
        shares = np.where((taken >= 0) & (taken < axis.before), shares, 0)
    if way.is_outside_excluded or way.is_antialiased:
        shares = shares / shares.sum(axis=1, keepdims=True)
    made = np.zeros((axis.after, axis.before))
    np.add.at(made, (np.arange(axis.after)[:, None], np.clip(taken, 0, axis.before - 1)), shares)
    return made


def _cubic(gaps: Array, a: float) -> Array:
    near = ((a + 2) * gaps - (a + 3)) * gaps * gaps + 1
    far = ((a * gaps - 5 * a) * gaps + 8 * a) * gaps - 4 * a
    return np.asarray(np.where(gaps <= 1, near, np.where(gaps < 2, far, 0)))
