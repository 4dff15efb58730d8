"""Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Sequence

from splitgraph.dim import Dim, DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.arithmetic import as_fraction, round_to
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    contents_or_unknown,
    dims_of,
    dims_of_rank,
    ints_attribute,
    normal_axes,
    operator,
    vector_dims,
)
from splitgraph.value_type import Item, ValueType, tensor


@operator("Upsample")
def upsample(ctx: NodeContext) -> Sequence[ValueType]:
    """Each dimension times its scale, rounded down; the scales are attributes before version 9."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    scales: Sequence[Item] | None
    if ctx.since_version >= 9:
        scales = _scale_items(ctx, 1)
    elif ctx.since_version >= 7:
        scales = ctx.attribute("scales")
    else:
        scales = (1.0, 1.0, ctx.attribute("height_scale"), ctx.attribute("width_scale"))
    return [tensor(dtype, _scaled(dims, scales, range(len(dims))))]


@operator("Resize")
def resize(ctx: NodeContext) -> Sequence[ValueType]:
    """Each dimension times its scale, rounded down, or the sizes that are given."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    if ctx.since_version < 11:
        return [tensor(dtype, _scaled(dims, _scale_items(ctx, 1), range(len(dims))))]
    given = ints_attribute(ctx, "axes")
    axes: Sequence[int] = range(len(dims)) if not given else normal_axes(given, len(dims))
    scaled, sized = _is_given(ctx, 2), _is_given(ctx, 3)
    if scaled is not None and scaled == sized:
        raise InvalidNode("exactly one of scales and sizes must be given")
    if sized is False:
        if ctx.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
            # The region of interest changes the size in some runtimes and not in others.
            return [tensor(dtype, (None,) * len(dims))]
        return [tensor(dtype, _scaled(dims, _scale_items(ctx, 2), axes))]
    sizes = vector_dims(ctx, 3)
    if sizes is None:
        return [tensor(dtype, [None if axis in axes else dim for axis, dim in enumerate(dims)])]
    if len(sizes) != len(axes):
        raise InvalidNode(f"{len(sizes)} sizes for {len(axes)} axes; one is required for each")
    result: list[DimLike | None] = list(dims)
    policy = ctx.attribute("keep_aspect_ratio_policy", "stretch")
    for axis, size in zip(axes, sizes, strict=True):
        wanted = required_dim(ctx, size)
        result[axis] = wanted if policy == "stretch" else None
    if policy != "stretch":
        _keep_aspect_ratio(dims, sizes, axes, policy, result)
    return [tensor(dtype, result)]


def _is_given(ctx: NodeContext, index: int) -> bool | None:
    """Whether scales or sizes are given and not empty; None when only a run can tell."""
    if not ctx.has_input(index):
        return False
    dims = dims_of_rank(ctx, index, 1)
    return None if dims is None or not isinstance(dims[0], int) else dims[0] > 0


def _keep_aspect_ratio(
    dims: Dims, sizes: Sequence[DimLike | None], axes: Sequence[int], policy: str, result: list[DimLike | None]
) -> None:
    """Scale all the axes alike, so that none is larger, or none smaller, than its size; only for static dimensions."""
    before = [dim for axis in axes if isinstance(dim := dims[axis], int) and dim > 0]
    after = [size for size in sizes if isinstance(size, int)]
    if not before or not len(before) == len(after) == len(axes) or policy not in ("not_larger", "not_smaller"):
        return
    from fractions import Fraction

    scales = [Fraction(size, dim) for size, dim in zip(after, before, strict=True)]
    scale = min(scales) if policy == "not_larger" else max(scales)
    for axis, dim in zip(axes, before, strict=True):
        scaled = scale * dim
        # Halves round up where floats are exact, and who knows how where they are not.
        result[axis] = None if scaled.denominator == 2 else math.floor(scaled + Fraction(1, 2))


def _scale_items(ctx: NodeContext, index: int) -> Sequence[Item] | None:
    held = ctx.contents(index, needed=True) or contents_or_unknown(ctx, index)
    return None if held is None else held.items


def _scaled(dims: Dims, scales: Sequence[Item] | None, axes: Sequence[int]) -> list[DimLike | None]:
    result: list[DimLike | None] = list(dims)
    if scales is None:
        return [None if axis in axes else dim for axis, dim in enumerate(dims)]
    if len(scales) != len(axes):
        raise InvalidNode(f"{len(scales)} scales for {len(axes)} axes; one is required for each")
    for axis, scale in zip(axes, scales, strict=True):
        result[axis] = _scaled_dim(dims[axis], scale)
    return result


def _scaled_dim(dim: DimLike, scale: Item) -> DimLike | None:
    if scale == 1:
        return dim
    if isinstance(scale, float) and (not math.isfinite(scale) or scale <= 0):
        raise InvalidNode(f"a scale is {scale}; it must be positive")
    fraction = as_fraction(scale)
    if isinstance(dim, int) and isinstance(scale, float):
        return _rounded_down(dim, scale)
    if fraction is None or isinstance(scale, Dim):
        return None
    # A scale that a float holds exactly, such as 2 or 0.5; the product of any other depends on the runtime's precision.
    numerator, denominator = fraction
    return dim * numerator // denominator if denominator <= 2**8 else None


def _rounded_down(dim: int, scale: float) -> int | None:
    """The size of a static dimension, None where it depends on the precision of the runtime's multiplication."""
    size = math.floor(dim * scale)
    length, factor = round_to("float32", dim), round_to("float32", scale)
    single = None if length is None or factor is None else round_to("float32", length * factor)
    return size if single is not None and size == math.floor(single) else None
