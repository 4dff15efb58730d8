"""ImageScaler, Crop and Affine: experimental operators that onnx had below opset 10. onnxruntime runs them there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import InvalidNode, dims_of, dims_of_rank, expect, ints_attribute, operator
from splitgraph.value_type import ValueType, tensor


@operator("Affine")
def affine(ctx: NodeContext) -> Sequence[ValueType]:
    """Each element times alpha plus beta."""
    return [tensor(ctx.input(0).dtype, dims_of(ctx, 0))]


@operator("ImageScaler")
def image_scaler(ctx: NodeContext) -> Sequence[ValueType]:
    """Each element of an image times scale, plus the bias of its channel."""
    dims, bias = dims_of_rank(ctx, 0, 4), ctx.attribute("bias")
    if dims is not None and isinstance(bias, tuple):
        told = partial("bias has {} elements for {} channels; one is required for each".format, len(bias), dims[1])
        expect(ctx, dims[1], "==", len(bias), told)
    return [tensor(ctx.input(0).dtype, dims)]


@operator("Crop")
def crop(ctx: NodeContext) -> Sequence[ValueType]:
    """An image without its border (left, top, right, bottom), or of the height and width in scale."""
    dims, border, scale = dims_of_rank(ctx, 0, 4), ints_attribute(ctx, "border"), ints_attribute(ctx, "scale")
    if border is None or len(border) != 4:
        raise InvalidNode("border must be four integers: left, top, right, bottom")
    if scale is not None and len(scale) != 2:
        raise InvalidNode("scale must be two integers: height and width")
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    left, top, right, bottom = border
    sizes = []
    for axis, (before, behind) in ((2, (top, bottom)), (3, (left, right))):
        dim, wanted = dims[axis], None if scale is None else scale[axis - 2]
        least = before + (behind if wanted is None else wanted)
        if dim is not None:
            expect(ctx, dim, ">=", least, partial(_too_small, dim, least))
        sizes.append(wanted if wanted is not None else None if dim is None else dim - least)
    return [tensor(ctx.input(0).dtype, (*dims[:2], *sizes))]


def _too_small(dim: DimLike, least: int) -> str:
    """The text of an error about a dimension that is smaller than what is cut off."""
    return f"the dimension is {dim}; border and scale need at least {least}"
