"""OpenVINO's layers that cut regions out of images, and convert images."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.openvino.attributes import layer, listed, number, numbers, text
from splitgraph.inference.rules.openvino.convolution import AUTO_PADS
from splitgraph.inference.rules.operands import InvalidNode, dims_of, dims_of_rank, exact_quotient
from splitgraph.inference.rules.windows import Windows, window_counts
from splitgraph.value_type import ValueType, tensor


@layer("ROIPooling", "ROIAlign", "ROIAlignRotated")
def pooled_regions(ctx: NodeContext) -> Sequence[ValueType]:
    """Each region in sides of `pooled_h` and `pooled_w`."""
    data, regions = dims_of_rank(ctx, 0, 4), dims_of_rank(ctx, 1, 2)
    sides = (number(ctx, "pooled_h", 0) or None, number(ctx, "pooled_w", 0) or None)
    channels = None if data is None else data[1]
    return [tensor(ctx.input(0).dtype, (None if regions is None else regions[0], channels, *sides))]


@layer("PSROIPooling", "DeformablePSROIPooling")
def grouped_regions(ctx: NodeContext) -> Sequence[ValueType]:
    """Each region in `output_dim` channels and sides of `group_size`."""
    regions, side = dims_of_rank(ctx, 1, 2), number(ctx, "group_size", 1)
    count = None if regions is None else regions[0]
    return [tensor(ctx.input(0).dtype, (count, number(ctx, "output_dim", 0), side, side))]


@layer("Col2Im")
def col2im(ctx: NodeContext) -> Sequence[ValueType]:
    """Columns of blocks put back into images: the second input holds their sides, the third one those of a block."""
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
    return [tensor(dtype, (*dims[:-2], channels, *sides))]


@layer("ExtractImagePatches")
def patches(ctx: NodeContext) -> Sequence[ValueType]:
    """The elements of each patch as channels, at each place that a patch has."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    sizes, strides, rates = (numbers(ctx, name) for name in ("sizes", "strides", "rates"))
    auto_pad = AUTO_PADS.get(text(ctx, "auto_pad", "valid"))
    if dims is None or sizes is None or strides is None or rates is None or auto_pad is None:
        return [tensor(dtype, (None,) * 4)]
    counts = window_counts(ctx, dims[2:], sizes, Windows(2, strides, rates, (0, 0, 0, 0), auto_pad))
    return [tensor(dtype, (dims[0], dims[1] * product(sizes), *counts))]


@layer("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
def colors(ctx: NodeContext) -> Sequence[ValueType]:
    """Three colors for each pixel. In a single plane, the colors lie below the brightness, in half as many rows."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 4)
    if dims is None:
        return [tensor(dtype, (None, None, None, 3))]
    height = dims[1]
    if not ctx.has_input(1):
        height = 2 * exact_quotient(ctx, height, 3, "the rows of the single plane by 3")
    return [tensor(dtype, (dims[0], height, dims[2], 3))]
