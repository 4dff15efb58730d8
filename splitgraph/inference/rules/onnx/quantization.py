"""Quantisation: to and from integers with scales, and convolution of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import ceildiv
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.convolution import convolved
from splitgraph.inference.rules.operands import (
    InvalidNode,
    differ,
    dims_of,
    dtype_attribute,
    int_attribute,
    known_dtype,
    merged_dim,
    normal_axis,
    operator,
    spelled_dims,
    tolerate,
)
from splitgraph.inference.rules.signatures import ONE, expect_shapes, shaped
from splitgraph.model.value_type import Shape, ValueType, tensor

# The element type of what DequantizeLinear gives is that of its scale from here on, float32 before.
_SCALE_TYPE_SINCE = 19
# There may be a scale for each element of an axis from here on.
_AXIS_SINCE = 13


@operator("QuantizeLinear", gives=(2,))
def quantize_linear(ctx: NodeContext) -> Sequence[ValueType]:
    """Round to integers in the type of the zero point, or of the attribute, or uint8."""
    by_default = ctx.input(2).dtype if ctx.has_input(2) else "uint8"
    given = dtype_attribute(ctx, "output_dtype", by_default)
    if ctx.has_input(2) and by_default is not None and given != by_default:
        raise InvalidNode(f"output_dtype is {given} and the zero point {by_default}; the types must be equal")
    dtype_attribute(ctx, "precision", None)
    check_scale(ctx)
    return [tensor(given, dims_of(ctx, 0))]


@operator("DequantizeLinear", gives=(None,))
def dequantize_linear(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute floats in the type of the scale, or of the attribute."""
    known_dtype(ctx, (0, 2) if ctx.has_input(2) else (0,))
    by_default = ctx.input(1).dtype if ctx.since_version >= _SCALE_TYPE_SINCE else "float32"
    check_scale(ctx)
    return [tensor(dtype_attribute(ctx, "output_dtype", by_default), dims_of(ctx, 0))]


def check_scale(ctx: NodeContext) -> None:
    """Require one scale, one for each element of the axis, or with block_size one for each block of the axis."""
    dims, scale = dims_of(ctx, 0), dims_of(ctx, 1)
    if ctx.since_version == 10 and scale is not None and len(scale) == 1 and isinstance(scale[0], int) and scale[0] > 1:
        raise InvalidNode(
            f"the scale has {scale[0]} elements; before version 13 one scale for the whole tensor is required"
        )
    block = int_attribute(ctx, "block_size", 0)
    if scale is None or not isinstance(block, int):
        return
    _check_zero_point(ctx, scale, block)
    if block > 0:
        _check_blocks(ctx, dims, scale, block)
        return
    if len(scale) > 1:
        raise InvalidNode(f"the scale has rank {len(scale)}; without block_size it must be a scalar or have rank 1")
    if not dims or len(scale) != 1:
        return
    if isinstance(scale[0], int) and scale[0] > 1:
        axis = normal_axis(int_attribute(ctx, "axis", 1), len(dims)) if len(dims) > 1 else 0
        merged_dim(ctx, dims[axis], scale[0], f"the number of scales and the dimension on axis {axis}")


def _check_zero_point(ctx: NodeContext, scale: Shape, block: int) -> None:
    """Require a zero point of the shape of the scale. A vector of one element counts as a scalar."""
    zero = dims_of(ctx, 2) if ctx.has_input(2) else None
    if zero is None or (_may_be_one(scale) and _may_be_one(zero)):
        return
    if len(zero) == len(scale) and not any(differ(a, b) for a, b in zip(zero, scale, strict=True)):
        return
    shapes = f"the zero point has the shape {spelled_dims(zero)} and the scale {spelled_dims(scale)}"
    text = f"{shapes}; the shapes must be equal"
    if zero or len(scale) != 1 or block or ctx.since_version < _AXIS_SINCE:
        raise InvalidNode(text)
    tolerate(ctx, text, "with one zero point for all scales")


def _may_be_one(shape: Shape) -> bool:
    """Return True for a scalar, and for a vector that may have one element."""
    return not shape or (len(shape) == 1 and (shape[0] == 1 or not isinstance(shape[0], int)))


def _check_blocks(ctx: NodeContext, dims: Shape | None, scale: Shape, block: int) -> None:
    if not scale or (dims is not None and len(dims) != len(scale)):
        rank = "the rank of the input" if dims is None else f"rank {len(dims)}, like the input"
        raise InvalidNode(f"the scale has rank {len(scale)}; with block_size {block} it must have {rank}")
    if dims is None:
        return
    axis = normal_axis(int_attribute(ctx, "axis", 1), len(dims))
    for place, (dim, size) in enumerate(zip(dims, scale, strict=True)):
        if isinstance(dim, int) and isinstance(size, int):
            wanted = ceildiv(dim, block) if place == axis else dim
            if size != wanted:
                what = f"blocks of {block}" if place == axis else "elements"
                raise InvalidNode(f"the scale has {size} elements on axis {place}, but the input has {wanted} {what}")


# The input in 8 bits, and the scale and the zero point that were used.
shaped("DynamicQuantizeLinear", "x: ...", gives=("uint8 ...", "float32", "uint8"))


@operator("QLinearConv", gives=(7,))
def conv_quantized(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve quantised tensors, in the type of the output's zero point."""
    check_quantized_conv(ctx)
    return [tensor(ctx.input(7).dtype, convolved(ctx, dims_of(ctx, 0), dims_of(ctx, 3), 8))]


def check_quantized_conv(ctx: NodeContext) -> None:
    """Require one scale and zero point for input and output. The weights may have one for each filter."""
    weights, per_filter = dims_of(ctx, 3), f"{ONE} | M"
    expect_shapes(
        ctx,
        *("", f"x_scale: {ONE}", f"x_zero_point: {ONE}", "", f"w_scale: {per_filter}", f"w_zero_point: {per_filter}"),
        *(f"y_scale: {ONE}", f"y_zero_point: {ONE}"),
        sizes={"M": weights[0] if weights else None},
    )
