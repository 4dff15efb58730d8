"""OpenVINO's convolution and pooling, Interpolate, regions of images, and conversions of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import DimLike, ceildiv, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.openvino.attributes import (
    element_type,
    layer,
    listed,
    listed_axes,
    number,
    numbers,
    operator_set,
    text,
)
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dims_of_rank,
    exact_quotient,
    expect,
    known_dtype,
    merged_dim,
    normal_axis,
)
from splitgraph.inference.rules.signatures import shapes
from splitgraph.inference.rules.windows import Windows, nonnegative, one_per_axis, spread_dim, window_counts
from splitgraph.model.value_type import ValueType, tensor

AUTO_PADS = {
    "explicit": "NOTSET",
    "notset": "NOTSET",
    "valid": "VALID",
    "same_upper": "SAME_UPPER",
    "same_lower": "SAME_LOWER",
}

# A product with a multiple of a 64th is exact in the float types that scales have.
_FINEST_SCALE = 64


def _windows(ctx: NodeContext, rank: int) -> Windows:
    """Return strides, dilations and pads. Raise InvalidNode if they do not fit the spatial dimensions."""
    auto_pad = AUTO_PADS.get(text(ctx, "auto_pad", "explicit"))
    if auto_pad is None:
        raise InvalidNode(f"auto_pad is {text(ctx, 'auto_pad')!r}; it must be one of {', '.join(AUTO_PADS)}")
    strides, dilations = (one_per_axis(numbers(ctx, name) or None, name, rank, 1) for name in ("strides", "dilations"))
    if min((*strides, *dilations)) < 1:
        raise InvalidNode("strides and dilations must be at least 1")
    before, after = (one_per_axis(numbers(ctx, name) or None, name, rank, 0) for name in ("pads_begin", "pads_end"))
    return Windows(rank, strides, dilations, before + after, auto_pad)


def _spatial_rank(data: Dims | None, filters: Dims | None, more: int) -> int | None:
    """Return the number of spatial dimensions; None if it is unknown. more: how many axes the filters have more than
    the data.
    """
    ranks = {len(dims) - 2 for dims in (data, None if filters is None else filters[more:]) if dims is not None}
    if len(ranks) > 1:
        raise InvalidNode(
            f"data and filters have {' and '.join(map(str, sorted(ranks)))} spatial dimensions; both must be equal"
        )
    rank = next(iter(ranks), None)
    if rank is not None and rank < 1:
        raise InvalidNode("the data must have batch, channels and at least one spatial dimension")
    return rank


def _outputs(
    ctx: NodeContext, data: Dims | None, filters: Dims | None, more: int, *, inputs_first: bool
) -> DimLike | None:
    """Return the number of output channels of filters; None if it is unknown. The data must have the channels that the
    filters take.
    """
    if filters is None:
        return None
    groups = filters[0] if more else 1
    first, second = filters[more] * groups, filters[more + 1] * groups
    inputs, outputs = (first, second) if inputs_first else (second, first)
    if ctx.node.op_type == "DeformableConvolution":
        inputs *= number(ctx, "group", 1)
    if data is not None:
        merged_dim(ctx, data[1], inputs, "the channels of the data and the input channels of the filters")
    return outputs


@layer("Convolution", "GroupConvolution", "BinaryConvolution", "DeformableConvolution")
def convolution(ctx: NodeContext) -> Sequence[ValueType]:
    """Move filters [outputs, inputs, ...] over the spatial dimensions. GroupConvolution has a first axis of groups;
    DeformableConvolution has the filters after the offsets, for as many channels in each group.
    """
    place = 2 if ctx.node.op_type == "DeformableConvolution" else 1
    dtype = ctx.input(0).dtype if ctx.node.op_type == "BinaryConvolution" else known_dtype(ctx, (0, place))
    data, filters = dims_of(ctx, 0), dims_of(ctx, place)
    more = 1 if ctx.node.op_type == "GroupConvolution" else 0
    rank = _spatial_rank(data, filters, more)
    if rank is None:
        return [tensor(dtype, None)]
    outputs = _outputs(ctx, data, filters, more, inputs_first=False)
    if data is None:
        return [tensor(dtype, (None, outputs, *(None,) * rank))]
    kernel: Sequence[DimLike | None] = (None,) * rank if filters is None else filters[more + 2 :]
    return [tensor(dtype, (data[0], outputs, *window_counts(ctx, data[2:], kernel, _windows(ctx, rank))))]


@layer("ConvolutionBackpropData", "GroupConvolutionBackpropData")
def backprop(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the transpose of a convolution with filters [inputs, outputs, ...]. A third input holds the sides."""
    dtype = known_dtype(ctx, (0, 1))
    data, filters = dims_of(ctx, 0), dims_of(ctx, 1)
    more = 1 if ctx.node.op_type == "GroupConvolutionBackpropData" else 0
    rank = _spatial_rank(data, filters, more)
    if rank is None:
        return [tensor(dtype, None)]
    outputs = _outputs(ctx, data, filters, more, inputs_first=True)
    batch = None if data is None else data[0]
    return [tensor(dtype, (batch, outputs, *_spread(ctx, data, filters, rank, more)))]


def _spread(
    ctx: NodeContext, data: Dims | None, filters: Dims | None, rank: int, more: int
) -> Sequence[DimLike | None]:
    """Return the sides to which the strides spread the data out."""
    if ctx.has_input(2):
        sides = listed(ctx, 2)
        if sides is not None and len(sides) != rank:
            raise InvalidNode(f"{len(sides)} output sides for {rank} spatial dimensions; one is required for each")
        return (None,) * rank if sides is None else tuple(required_dim(ctx, side) for side in sides)
    windows = _windows(ctx, rank)
    extra = one_per_axis(numbers(ctx, "output_padding") or None, "output_padding", rank, 0)
    if data is None or filters is None:
        return (None,) * rank
    # Without sides to reach, nothing is known that padding should make the same.
    pairs = enumerate(zip(data[2:], filters[more + 2 :], strict=True))
    return [spread_dim(windows, axis, dim, size, extra[axis]) for axis, (dim, size) in pairs]


@layer("MaxPool", "AvgPool", gives=(0, None))
def pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute one number for each window, and from version 8 of MaxPool on its position."""
    dtype, dims, kernel = ctx.input(0).dtype, dims_of(ctx, 0), numbers(ctx, "kernel")
    if kernel is None:
        raise InvalidNode("attribute 'kernel' is required")
    shape: tuple[DimLike | None, ...] = (None,) * (len(kernel) + 2)
    if dims is not None:
        if len(kernel) != len(dims) - 2:
            raise InvalidNode(f"kernel {list(kernel)} does not fit rank {len(dims)}; it must have 2 elements fewer")
        shape = (*dims[:2], *_pooled(ctx, dims[2:], kernel))
    positions = tensor(element_type(ctx, "index_element_type", "int64"), shape)
    return [tensor(dtype, shape), positions][: len(ctx.node.output)]


def _pooled(ctx: NodeContext, dims: Dims, kernel: tuple[int, ...]) -> Sequence[DimLike | None]:
    windows, rounding = _windows(ctx, len(dims)), text(ctx, "rounding_type", "floor")
    if rounding == "floor" or windows.auto_pad.startswith("SAME"):
        return window_counts(ctx, dims, kernel, windows)
    if rounding == "ceil_torch":
        return window_counts(ctx, dims, kernel, windows, round_up=True)
    return [_rounded_up(windows, axis, dim, kernel[axis]) for axis, dim in enumerate(dims)]


def _rounded_up(windows: Windows, axis: int, dim: DimLike, size: int) -> DimLike:
    """Return the number of windows if the last one may begin anywhere, even in the padding after the data."""
    pads = windows.pads_before[axis] + windows.pads_after[axis] if windows.auto_pad == "NOTSET" else 0
    room = dim + pads - ((size - 1) * windows.dilations[axis] + 1)
    return nonnegative(ceildiv(room, windows.strides[axis]) + 1)


@layer("AdaptiveAvgPool", "AdaptiveMaxPool", gives=(0, None))
def adaptive_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Divide the data into as many windows as the second input says."""
    dtype, dims, sides = ctx.input(0).dtype, dims_of(ctx, 0), listed(ctx, 1)
    shape: tuple[DimLike | None, ...] | None = None
    if dims is not None and sides is not None:
        if len(sides) != len(dims) - 2:
            raise InvalidNode(
                f"{len(sides)} sides for an input of rank {len(dims)}; there must be 2 fewer than the rank"
            )
        shape = (*dims[:2], *(required_dim(ctx, side) for side in sides))
    positions = tensor(element_type(ctx, "index_element_type", "int64"), shape)
    return [tensor(dtype, shape), positions][: len(ctx.node.output)]


@layer("Interpolate")
def interpolate(ctx: NodeContext) -> Sequence[ValueType]:
    """Resize some axes to the sides that an input holds, or multiply the padded sides by scales."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    axes = _resized_axes(ctx, len(dims))
    if axes is None:
        return [tensor(dtype, (None,) * len(dims))]
    result: list[DimLike | None] = list(dims)
    where = [normal_axis(axis, len(dims)) for axis in axes]
    by_sizes = operator_set(ctx) < 4 or text(ctx, "shape_calculation_mode") == "sizes"
    sides = listed(ctx, 1) if by_sizes else _scaled(ctx, [dims[axis] + _pads(ctx, axis) for axis in where])
    for position, axis in enumerate(where):
        side = None if sides is None or position >= len(sides) else sides[position]
        result[axis] = None if side is None else required_dim(ctx, side)
    return [tensor(dtype, result)]


def _resized_axes(ctx: NodeContext, rank: int) -> Sequence[int] | None:
    """Return the axes that an Interpolate resizes, as written; None if they are unknown."""
    version = operator_set(ctx)
    if version < 4:
        return numbers(ctx, "axes")
    # The inputs of version 4 are data, sizes, scales, axes; those of version 11 are data, sizes or scales, axes.
    position = 3 if version < 11 else 2
    return listed_axes(ctx, position) if ctx.has_input(position) else range(rank)


def _pads(ctx: NodeContext, axis: int) -> int:
    return sum(pads[axis] for name in ("pads_begin", "pads_end") if (pads := numbers(ctx, name)) and axis < len(pads))


def _scaled(ctx: NodeContext, dims: Sequence[DimLike]) -> list[DimLike | None] | None:
    """Return each dimension times its scale, rounded down; None if it depends on the precision of OpenVINO's
    multiplication.
    """
    contents = ctx.contents(2 if operator_set(ctx) < 11 else 1)
    if contents is None or len(contents.items) != len(dims):
        return None
    result: list[DimLike | None] = []
    for dim, scale in zip(dims, contents.items, strict=True):
        numerator, denominator = scale.as_integer_ratio() if isinstance(scale, float) and scale > 0 else (0, 0)
        result.append(dim * numerator // denominator if 0 < denominator <= _FINEST_SCALE else None)
    return result


@layer("ROIPooling", "ROIAlign", "ROIAlignRotated")
def pooled_regions(ctx: NodeContext) -> Sequence[ValueType]:
    """Resize each region to sides of `pooled_h` and `pooled_w`."""
    sides = {letter: number(ctx, f"pooled_{letter.lower()}", 0) or None for letter in "HW"}
    return shapes(ctx, "data: ? C ? ?", "rois: R ?", sizes=sides, gives="0 R C H W")


@layer("PSROIPooling", "DeformablePSROIPooling")
def grouped_regions(ctx: NodeContext) -> Sequence[ValueType]:
    """Resize each region to `output_dim` channels and sides of `group_size`."""
    sizes = {"C": number(ctx, "output_dim", 0), "S": number(ctx, "group_size", 1)}
    return shapes(ctx, "", "rois: R ?", sizes=sizes, gives="0 R C S S")


@layer("Col2Im")
def col2im(ctx: NodeContext) -> Sequence[ValueType]:
    """Put columns of blocks back into images. The second input holds the images' sides, the third the block's."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    image, block = listed(ctx, 1), listed(ctx, 2)
    if dims is None:
        return [tensor(dtype, None)]
    if len(dims) not in (2, 3):
        raise InvalidNode(f"the data has rank {len(dims)}; it must be 2 or 3")
    sides = [None if side is None else required_dim(ctx, side) for side in image or (None, None)]
    elements = None if block is None or None in block else product([side for side in block if side is not None])
    channels: DimLike | None = None
    if isinstance(elements, int):
        channels = exact_quotient(ctx, dims[-2], elements, "the rows by the number of elements in a block")
    if image is not None and None not in image and block is not None and len(image) == len(block) == 2:
        _check_columns(ctx, dims[-1], [side for side in sides if side is not None], block)
    return [tensor(dtype, (*dims[:-2], channels, *sides))]


def _check_columns(
    ctx: NodeContext, columns: DimLike, image: Sequence[DimLike], block: Sequence[DimLike | None]
) -> None:
    """Require a column for each position of the block in the image."""
    counts = window_counts(ctx, image, block, _windows(ctx, 2))
    total = product([count for count in counts if count is not None])
    if None not in counts:
        fault = "the input has {} columns; the block has {} positions in the image".format
        expect(ctx, columns, "==", total, partial(fault, columns, total))


@layer("ExtractImagePatches")
def patches(ctx: NodeContext) -> Sequence[ValueType]:
    """Turn the elements of each patch into channels, at each place of a patch."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    sizes, strides, rates = (numbers(ctx, name) for name in ("sizes", "strides", "rates"))
    auto_pad = AUTO_PADS.get(text(ctx, "auto_pad", "valid"))
    if dims is None or sizes is None or strides is None or rates is None or auto_pad is None:
        return [tensor(dtype, (None,) * 4)]
    counts = window_counts(ctx, dims[2:], sizes, Windows(2, strides, rates, (0, 0, 0, 0), auto_pad))
    return [tensor(dtype, (dims[0], dims[1] * product(sizes), *counts))]


@layer("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
def colors(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute three colors for each pixel. In a single plane, the colors lie below the brightness, in half as many
    rows.
    """
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    if dims is None:
        return [tensor(dtype, (None, None, None, 3))]
    height = dims[1]
    if not ctx.has_input(1):
        height = 2 * exact_quotient(ctx, height, 3, "the rows of the single plane by 3")
    return [tensor(dtype, (dims[0], height, dims[2], 3))]
