"""Convolution and pooling: Conv, ConvTranspose, MaxPool, AveragePool, LpPool, and the global pools."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import target_shape
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    exact_quotient,
    expect_dims,
    int_attribute,
    ints_attribute,
    known_dtype,
    merged_dim,
    operator,
    ranked_dims,
    tolerate,
)
from splitgraph.inference.rules.signatures import ONE, expect_shapes
from splitgraph.inference.rules.windows import Windows, check_each, read_windows, spread_dim, window_counts
from splitgraph.model.value_type import ValueType, tensor


@operator("Conv")
def conv(ctx: NodeContext) -> Sequence[ValueType]:
    """Move filters over the spatial dimensions; there are as many output channels as filters."""
    dtype = known_dtype(ctx, (0, 1, 2))
    return [tensor(dtype, convolved(ctx, dims_of(ctx, 0), dims_of(ctx, 1), 2))]


operator("FusedConv", domain="com.microsoft")(conv)


@operator("DeformConv")
def deform_conv(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve with samples at positions that have offsets."""
    dtype = known_dtype(ctx, range(5))
    data, weights = dims_of(ctx, 0), dims_of(ctx, 1)
    result = convolved(ctx, data, weights, 3)
    if data is not None and result is not None:
        kernel = product([1 if size is None else size for size in _kernel(ctx, weights, len(data) - 2)])
        points = None if weights is None and not ctx.has_attribute("kernel_shape") else kernel
        groups = int_attribute(ctx, "offset_group", 1)
        for index, name, per_point in ((2, "the offset", len(data) - 2), (4, "the mask", 1)):
            channels = None if points is None else points * groups * per_point
            expect_dims(ctx, index, (data[0], channels, *result[2:]), name)
    return [tensor(dtype, result)]


@operator("ConvInteger", gives=("int32",))
def conv_integer(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve 8-bit integers in 32 bits."""
    weights = dims_of(ctx, 1)
    filters = {"M": weights[0] if weights else None}
    expect_shapes(ctx, "", "", f"x_zero_point: {ONE}", f"w_zero_point: {ONE} | M", sizes=filters)
    return [tensor("int32", convolved(ctx, dims_of(ctx, 0), dims_of(ctx, 1), None))]


def convolved(
    ctx: NodeContext, data: Dims | None, weights: Dims | None, bias: int | None, *, channels_fit: bool = True
) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions of a convolution. bias: the number of that input, None if there is none. channels_fit: the
    data's channels must be those of the weights, times the groups. Raise InvalidNode if the inputs do not fit.
    """
    rank = _spatial_rank(data, weights)
    if rank is None:
        return None
    kernel = _kernel(ctx, weights, rank)
    windows = read_windows(ctx, rank)
    filters: DimLike | None = None
    if weights is not None:
        filters = weights[0]
        if channels_fit:
            _check_groups(ctx, data, weights)
        if bias is not None:
            length = ranked_dims(ctx, bias, 1)[0]
            merged_dim(ctx, length, filters, "the length of the bias and the number of filters")
    if data is None:
        return (None, filters, *(None,) * rank)
    return (data[0], filters, *window_counts(ctx, data[2:], kernel, windows))


def _spatial_rank(data: Dims | None, weights: Dims | None) -> int | None:
    known = data if data is not None else weights
    if known is None:
        return None
    if len(known) < 3:
        raise InvalidNode(
            f"an input has rank {len(known)}; it must have batch, channels and at least one spatial dimension"
        )
    if data is not None and weights is not None and len(data) != len(weights):
        raise InvalidNode(f"the data has rank {len(data)} and the weights rank {len(weights)}; the ranks must be equal")
    return len(known) - 2


def _kernel(ctx: NodeContext, weights: Dims | None, rank: int) -> Sequence[DimLike | None]:
    given = ints_attribute(ctx, "kernel_shape")
    if given is None:
        if weights is None:
            return (None,) * rank
        check_each("the spatial dimensions of the weights", [size for size in weights[2:] if isinstance(size, int)])
        return weights[2:]
    if len(given) != rank:
        raise InvalidNode(f"kernel_shape {list(given)} for {rank} spatial dimensions; one is required for each")
    check_each("kernel_shape", given)
    for axis, size in enumerate(given if weights is not None else ()):
        merged_dim(ctx, size, (weights or ())[2 + axis], "kernel_shape and the spatial dimensions of the weights")
    return given


def _check_groups(ctx: NodeContext, data: Dims | None, weights: Dims) -> None:
    groups = int_attribute(ctx, "group", 1)
    if groups < 1:
        raise InvalidNode(f"group is {groups}; it must be at least 1")
    if isinstance(weights[0], int) and weights[0] % groups:
        raise InvalidNode(f"{weights[0]} filters cannot be divided into {groups} groups")
    if data is not None:
        merged_dim(
            ctx, data[1], weights[1] * groups, "the channels of the data and the channels of the weights times group"
        )


@operator("ConvTranspose")
def conv_transpose(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the transpose of a convolution: the strides spread each spatial dimension out."""
    return [tensor(known_dtype(ctx, (0, 1, 2)), spread(ctx, 2))]


def spread(ctx: NodeContext, bias: int) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions of a transposed convolution. bias: the number of that input. Raise InvalidNode if the
    inputs do not fit.
    """
    data, weights = dims_of(ctx, 0), dims_of(ctx, 1)
    rank = _spatial_rank(data, weights)
    if rank is None:
        return None
    kernel, windows = _kernel(ctx, weights, rank), read_windows(ctx, rank)
    groups = int_attribute(ctx, "group", 1)
    if groups < 1 or (weights is not None and isinstance(weights[0], int) and weights[0] % groups):
        raise InvalidNode(f"the input channels cannot be divided into {groups} groups")
    filters = None if weights is None else weights[1] * groups
    if data is not None and weights is not None:
        merged_dim(ctx, data[1], weights[0], "the channels of the data and the first dimension of the weights")
    expect_dims(ctx, bias, (filters,), "the bias")
    if data is None:
        return (None, filters, *(None,) * rank)
    return (data[0], filters, *_transposed_dims(ctx, data[2:], kernel, windows))


def _transposed_dims(
    ctx: NodeContext, dims: Dims, kernel: Sequence[DimLike | None], windows: Windows
) -> list[DimLike | None]:
    rank = len(dims)
    extra = ints_attribute(ctx, "output_padding") or (0,) * rank
    shape = ints_attribute(ctx, "output_shape")
    if len(extra) != rank:
        raise InvalidNode(
            f"{len(extra)} values of output_padding for {rank} spatial dimensions; one is required for each"
        )
    check_each("output_padding", extra, least=0)
    if shape:
        # Some exporters write batch and channels, too.
        if len(shape) not in (rank, rank + 2):
            raise InvalidNode(f"output_shape {list(shape)} for {rank} spatial dimensions; one is required for each")
        check_each("output_shape", shape[-rank:], least=0)
        if len(shape) > rank:
            text = (
                f"output_shape {list(shape)} has {len(shape)} elements; it must have {rank}, without batch and channels"
            )
            tolerate(ctx, text, f"as {list(shape[-rank:])}", run_by="OpenVINO")
        return list(shape[-rank:])
    result: list[DimLike | None] = []
    for axis, (dim, size) in enumerate(zip(dims, kernel, strict=True)):
        if size is None:
            result.append(None)
        elif windows.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            # The specification says input times stride; runtimes agree only where the window covers the stride and
            # nothing is added.
            stride, extent = windows.strides[axis], (size - 1) * windows.dilations[axis] + 1
            covers = isinstance(extent, int) and extent >= stride and extra[axis] == 0
            result.append(dim * stride if covers else None)
        else:
            result.append(spread_dim(windows, axis, dim, size, extra[axis]))
    return result


@operator("MaxPool", gives=(0, "int64"))
def max_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the largest element of each window, and its position."""
    shape = pooled_dims(ctx, dims_of(ctx, 0))
    return [tensor(ctx.input(0).dtype, shape), tensor("int64", shape)]


@operator("AveragePool", "LpPool")
def pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute one number for each window."""
    return [tensor(ctx.input(0).dtype, pooled_dims(ctx, dims_of(ctx, 0)))]


@operator("MaxUnpool")
def max_unpool(ctx: NodeContext) -> Sequence[ValueType]:
    """Undo a MaxPool: all elements but the largest are 0. The third input, if given, holds the shape."""
    dtype, dims, indices = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    if dims is not None:
        expect_dims(ctx, 1, dims, "the indices")
    kernel = ints_attribute(ctx, "kernel_shape") or ()
    check_each("kernel_shape", kernel)
    for known in (dims, indices):
        if known is not None and len(kernel) != len(known) - 2:
            raise InvalidNode(
                f"kernel_shape {list(kernel)} does not fit rank {len(known)}; it must have 2 elements fewer"
            )
    windows = read_windows(ctx, len(kernel))
    shape = target_shape(ctx, 2) if ctx.has_input(2) else None
    if shape is not None and len(shape) != len(kernel) + 2:
        raise InvalidNode(f"output_shape has {len(shape)} elements for an output of rank {len(kernel) + 2}")
    if ctx.has_input(2) or dims is None:
        return [tensor(dtype, (None,) * (len(kernel) + 2) if shape is None else shape)]
    pairs = enumerate(zip(dims[2:], kernel, strict=True))
    spatial = [spread_dim(windows, axis, dim, size) for axis, (dim, size) in pairs]
    return [tensor(dtype, (*dims[:2], *spatial))]


def pooled_dims(ctx: NodeContext, dims: Dims | None) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions of an input of batch, channels and sides after pooling. Raise InvalidNode if the window
    does not fit.
    """
    kernel = ints_attribute(ctx, "kernel_shape")
    if kernel is None:
        raise InvalidNode("attribute 'kernel_shape' is required")
    check_each("kernel_shape", kernel)
    if dims is None:
        return (None,) * (len(kernel) + 2)
    rank = len(dims) - 2
    if rank < 1 or len(kernel) != rank:
        raise InvalidNode(f"kernel_shape {list(kernel)} does not fit rank {len(dims)}; it must have 2 elements fewer")
    round_up = bool(int_attribute(ctx, "ceil_mode", 0))
    return (*dims[:2], *window_counts(ctx, dims[2:], kernel, read_windows(ctx, rank), round_up=round_up))


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute one number for each channel."""
    dims = dims_of(ctx, 0)
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    if len(dims) < 2:
        raise InvalidNode(f"the input has rank {len(dims)}; it must have batch and channels")
    return [tensor(ctx.input(0).dtype, (*dims[:2], *(1,) * (len(dims) - 2)))]


@operator("DepthToSpace", "SpaceToDepth")
def blocks(ctx: NodeContext) -> Sequence[ValueType]:
    """Lay blocks of channels out in space, or stack blocks of space into channels."""
    dims = ranked_dims(ctx, 0, 4)
    to_space = ctx.node.op_type == "DepthToSpace"
    return moved_blocks(ctx, dims, "blocksize", int_attribute(ctx, "blocksize", 0), to_space=to_space)


def moved_blocks(
    ctx: NodeContext, dims: Sequence[DimLike | None] | None, name: str, size: int, *, to_space: bool
) -> Sequence[ValueType]:
    """Return the type of the output in which each block of channels becomes a block of spatial positions (`to_space`),
    or the other way round. Raise InvalidNode if the blocks do not fit.

    dims: those of the first input. size: the side of a block. name: the attribute that gives the size.
    """
    if size < 1:
        raise InvalidNode(f"{name} is {size}; it must be at least 1")
    known = [dim for dim in dims or () if dim is not None]
    if dims is None or len(known) < len(dims):
        return [tensor(ctx.input(0).dtype, dims)]
    if len(known) < 3:
        raise InvalidNode(f"the input has rank {len(known)}; it must have batch, channels and spatial dimensions")
    batch, channels, *sides = known
    elements = size ** len(sides)
    if to_space:
        channels = exact_quotient(ctx, channels, elements, "the channels by the number of elements in a block")
        sides = [side * size for side in sides]
    else:
        channels = channels * elements
        sides = [exact_quotient(ctx, side, size, "a spatial dimension by the block size") for side in sides]
    return [tensor(ctx.input(0).dtype, (batch, channels, *sides))]
