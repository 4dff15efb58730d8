"""Convolution and pooling of onnxruntime over tensors whose channels come last (domain com.microsoft), and in blocks of
channels (domain com.microsoft.nchwc), which its optimizer writes into the models that it saves, unless told not to.

Channels in blocks are filled up to whole blocks, whose size is that of the processor's registers: unless they fill
blocks of any size, the model does not say how many there are between ReorderInput and ReorderOutput. Source: the
schemas that onnxruntime registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.convolution import convolved, global_pool, pooled_dims, spread
from splitgraph.inference.rules.onnx.joining import padded, required_sum
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    int_attribute,
    ints_attribute,
    known_dtype,
    operator,
    ranked_dims,
)
from splitgraph.inference.rules.signatures import shapes
from splitgraph.inference.rules.windows import check_each, read_windows, window_counts
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"
# Two for each axis of the largest rank.
_MOST_PADS = 128


def _channels_first(dims: Dims | None) -> Dims | None:
    """Return the dimensions with the last one second. Raise InvalidNode without batch, side and channels."""
    if dims is None:
        return None
    if len(dims) < 3:
        raise InvalidNode(
            f"the input has rank {len(dims)}; it must have batch, at least one spatial dimension and channels"
        )
    return (dims[0], dims[-1], *dims[1:-1])


@operator("Pad", domain=DOMAIN)
def pad(ctx: NodeContext) -> Sequence[ValueType]:
    """Add elements at both ends of each axis. The pads are a list, or a matrix of one row."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    pads = _pads(ctx, 1)
    return [tensor(dtype, (None,) * len(dims) if pads is None else padded(ctx, dims, range(len(dims)), pads))]


@operator("ConvTransposeWithDynamicPads", domain=DOMAIN)
def conv_transpose_with_dynamic_pads(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the transpose of a convolution, and cut the pads of the third input off."""
    dtype, result = known_dtype(ctx, (0, 1, 3)), spread(ctx, 3)
    if result is None:
        return [tensor(dtype, None)]
    rank = len(result) - 2
    pads = _pads(ctx, 2) if ctx.has_input(2) and ctx.attribute("auto_pad", "NOTSET") == "NOTSET" else None
    if pads is None:
        return [tensor(dtype, (*result[:2], *(None,) * rank))]
    if len(pads) != 2 * rank:
        raise InvalidNode(f"{len(pads)} pads for {rank} spatial dimensions; two are required for each")
    spatial = [
        None if dim is None or before is None or after is None else required_sum(ctx, dim, -before, -after)
        for dim, before, after in zip(result[2:], pads[:rank], pads[rank:], strict=True)
    ]
    return [tensor(dtype, (*result[:2], *spatial))]


def _pads(ctx: NodeContext, index: int) -> tuple[DimLike | None, ...] | None:
    """Return the elements of a list or a matrix of one row; None if even their number is unknown. Raise InvalidNode for
    another shape.
    """
    contents, dims = ctx.contents(index), dims_of(ctx, index)
    if dims is not None and len(dims) != 1 and (len(dims) != 2 or (isinstance(dims[0], int) and dims[0] != 1)):
        raise InvalidNode(f"the pads have rank {len(dims)}; they must be a list, or a matrix of one row")
    if contents is not None:
        return contents.dims
    count = None if dims is None else dims[-1]
    return (None,) * count if isinstance(count, int) and count <= _MOST_PADS else None


@operator("MaxpoolWithMask", domain=DOMAIN)
def max_pool_with_mask(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the largest element of each window that a mask does not hide."""
    return [tensor(ctx.input(0).dtype, pooled_dims(ctx, dims_of(ctx, 0)))]


@operator("NhwcMaxPool", domain=DOMAIN)
def channels_last_max_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the largest element of each window."""
    pooled = pooled_dims(ctx, _channels_first(dims_of(ctx, 0)))
    return [tensor(ctx.input(0).dtype, None if pooled is None else (pooled[0], *pooled[2:], pooled[1]))]


@operator("NhwcConv", "NhwcFusedConv", domain=DOMAIN)
def channels_last_conv(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve. The filters are the weights' first dimension. The place of their sides varies, so only `kernel_shape`
    says how large a window is.
    """
    dtype, data, weights = known_dtype(ctx, (0, 1, 2)), _channels_first(dims_of(ctx, 0)), dims_of(ctx, 1)
    if data is None:
        return [tensor(dtype, None)]
    rank = len(data) - 2
    given = ints_attribute(ctx, "kernel_shape")
    if given is not None and len(given) != rank:
        raise InvalidNode(f"kernel_shape {list(given)} for {rank} spatial dimensions; one is required for each")
    check_each("kernel_shape", given or ())
    kernel: Sequence[DimLike | None] = (None,) * rank if given is None else given
    filters = weights[0] if weights else None
    return [tensor(dtype, (data[0], *window_counts(ctx, data[2:], kernel, read_windows(ctx, rank)), filters))]


BLOCKED = "com.microsoft.nchwc"
# The largest blocks of any processor; those of others divide it.
_LARGEST_BLOCK = 16

operator("GlobalAveragePool", "GlobalMaxPool", domain=BLOCKED)(global_pool)


@operator("ReorderInput", domain=BLOCKED)
def reorder_input(ctx: NodeContext) -> Sequence[ValueType]:
    """Put the input into blocks of channels; with channels_last, the channels were its last dimension."""
    dims = ranked_dims(ctx, 0, 4)
    channels, sides = (dims[-1], dims[1:-1]) if int_attribute(ctx, "channels_last", 0) else (dims[1], dims[2:])
    is_whole = isinstance(channels, int) and channels % _LARGEST_BLOCK == 0
    return [tensor(ctx.input(0).dtype, (dims[0], channels if is_whole else None, *sides))]


@operator("ReorderOutput", domain=BLOCKED)
def reorder_output(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the input out of blocks, with as many channels as the attribute says; last with channels_last."""
    channels = int_attribute(ctx, "channels", 0)
    if channels < 1:
        raise InvalidNode(f"channels is {channels}; it must be at least 1")
    shape = "N H W C" if int_attribute(ctx, "channels_last", 0) else "N C H W"
    return shapes(ctx, "X: N ? H W", sizes={"C": channels}, gives=f"0 {shape}")


@operator("Conv", domain=BLOCKED)
def blocked_conv(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve, perhaps add the last input, and perhaps activate. The filters are filled up like the channels."""
    shape = convolved(ctx, dims_of(ctx, 0), dims_of(ctx, 1), None, channels_fit=False)
    return [tensor(known_dtype(ctx, range(4)), shape)]


@operator("AveragePool", "MaxPool", domain=BLOCKED)
def blocked_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute one number for each window."""
    return [tensor(ctx.input(0).dtype, pooled_dims(ctx, dims_of(ctx, 0)))]


@operator("Upsample", domain=BLOCKED)
def blocked_upsample(ctx: NodeContext) -> Sequence[ValueType]:
    """Enlarge the image by a whole number along each dimension."""
    dims, scales = ranked_dims(ctx, 0, 4), ints_attribute(ctx, "scales")
    if scales is None or len(scales) != len(dims) or min(scales) < 1:
        raise InvalidNode(f"scales are {scales}; one of at least 1 is required for each of {len(dims)} dimensions")
    enlarged = [None if dim is None else dim * scale for dim, scale in zip(dims, scales, strict=True)]
    return [tensor(ctx.input(0).dtype, enlarged)]
