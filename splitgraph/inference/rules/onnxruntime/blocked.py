"""Convolution and pooling of onnxruntime in blocks of channels (domain com.microsoft.nchwc), which its optimizer writes
into the models that it saves, unless it is told not to.

The channels are filled up to whole blocks, whose size is that of the processor's registers: unless they fill blocks of
any size, how many there are between ReorderInput and ReorderOutput is not known from the model. Source: onnxruntime's
registered schemas.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.convolution import convolved, global_pool, pooled_dims
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of,
    dims_of_rank,
    int_attribute,
    ints_attribute,
    known_dtype,
    operator,
)
from splitgraph.value_type import ValueType, tensor

DOMAIN = "com.microsoft.nchwc"
# The largest blocks of any processor; those of others divide it.
_LARGEST_BLOCK = 16

operator("GlobalAveragePool", "GlobalMaxPool", domain=DOMAIN)(global_pool)


@operator("ReorderInput", domain=DOMAIN)
def reorder_input(ctx: NodeContext) -> Sequence[ValueType]:
    """The input in blocks of channels; with channels_last those were its last dimension."""
    dims = _image(ctx)
    channels, sides = (dims[-1], dims[1:-1]) if int_attribute(ctx, "channels_last", 0) else (dims[1], dims[2:])
    is_whole = isinstance(channels, int) and channels % _LARGEST_BLOCK == 0
    return [tensor(ctx.input(0).dtype, (dims[0], channels if is_whole else None, *sides))]


@operator("ReorderOutput", domain=DOMAIN)
def reorder_output(ctx: NodeContext) -> Sequence[ValueType]:
    """The input without what filled it up, in as many channels as the attribute says; last with channels_last."""
    batch, _, *sides = _image(ctx)
    channels = int_attribute(ctx, "channels", 0)
    if channels < 1:
        raise InvalidNode(f"channels is {channels}; it must be at least 1")
    shape = (batch, *sides, channels) if int_attribute(ctx, "channels_last", 0) else (batch, channels, *sides)
    return [tensor(ctx.input(0).dtype, shape)]


@operator("Conv", domain=DOMAIN)
def conv(ctx: NodeContext) -> Sequence[ValueType]:
    """A convolution, perhaps added to the last input and activated. The filters are filled up as the channels are."""
    shape = convolved(ctx, dims_of(ctx, 0), dims_of(ctx, 1), None, channels_fit=False)
    return [tensor(known_dtype(ctx, range(4)), shape)]


@operator("AveragePool", "MaxPool", domain=DOMAIN)
def pool(ctx: NodeContext) -> Sequence[ValueType]:
    """One number for each window."""
    return [tensor(ctx.input(0).dtype, pooled_dims(ctx, dims_of(ctx, 0)))]


@operator("Upsample", domain=DOMAIN)
def upsample(ctx: NodeContext) -> Sequence[ValueType]:
    """The image enlarged by a whole number along each dimension."""
    dims, scales = _image(ctx), ints_attribute(ctx, "scales")
    if scales is None or len(scales) != len(dims) or min(scales) < 1:
        raise InvalidNode(f"scales are {scales}; one of at least 1 is required for each of {len(dims)} dimensions")
    enlarged = [None if dim is None else dim * scale for dim, scale in zip(dims, scales, strict=True)]
    return [tensor(ctx.input(0).dtype, enlarged)]


def _image(ctx: NodeContext) -> tuple[DimLike | None, ...]:
    """The dimensions of the first input: batch, channels, height and width in this or another order."""
    return dims_of_rank(ctx, 0, 4) or (None,) * 4
