"""Operators on images: sampling grids, regions of interest, columns and crops."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim, target_shape
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of,
    dims_of_rank,
    exact_quotient,
    expect_dims,
    int_attribute,
    ints_attribute,
    known_dtype,
    merged_dim,
    normal_axes,
    operator,
    vector_dims,
)
from splitgraph.inference.rules.windows import check_each
from splitgraph.value_type import ValueType, tensor


@operator("AffineGrid")
def affine_grid(ctx: NodeContext) -> Sequence[ValueType]:
    """The coordinates of each pixel of an image of the size that the second input holds, after a transform."""
    dtype, theta, size = ctx.input(0).dtype, dims_of_rank(ctx, 0, 3), vector_dims(ctx, 1)
    if size is None:
        return [tensor(dtype, None)]
    if len(size) not in (4, 5):
        raise InvalidNode(
            f"the size has {len(size)} elements; it must give batch, channels and 2 or 3 spatial dimensions"
        )
    sides = tuple(required_dim(ctx, dim) for dim in size[2:])
    batch = required_dim(ctx, size[0])
    if theta is not None:
        batch = merged_dim(ctx, theta[0], batch, "the batch sizes in size and in theta")
        merged_dim(ctx, theta[1], len(sides), "the rows of theta and the number of spatial dimensions")
        merged_dim(ctx, theta[2], len(sides) + 1, "the columns of theta and the number of spatial dimensions plus 1")
    return [tensor(dtype, (batch, *sides, len(sides)))]


@operator("GridSample")
def grid_sample(ctx: NodeContext) -> Sequence[ValueType]:
    """The channels of the image at each point of the grid."""
    dtype, dims, grid = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    known = dims if dims is not None else grid
    if known is None:
        return [tensor(dtype, None)]
    if len(known) < 3 or (dims is not None and grid is not None and len(dims) != len(grid)):
        raise InvalidNode("image and grid must have the same rank, at least 3")
    if dims is None or grid is None:
        points = (None,) * (len(known) - 2) if grid is None else grid[1:-1]
        return [tensor(dtype, (known[0], None if dims is None else dims[1], *points))]
    merged_dim(ctx, grid[-1], len(dims) - 2, "the coordinates of a point and the number of spatial dimensions")
    return [tensor(dtype, (merged_dim(ctx, dims[0], grid[0], "the batch sizes"), dims[1], *grid[1:-1]))]


@operator("RoiAlign")
def roi_align(ctx: NodeContext) -> Sequence[ValueType]:
    """Each region of interest in the size of the attributes."""
    dtype = known_dtype(ctx, (0, 1))
    dims, rois, batches = dims_of_rank(ctx, 0, 4), dims_of_rank(ctx, 1, 2), dims_of_rank(ctx, 2, 1)
    sides = (int_attribute(ctx, "output_height", 1), int_attribute(ctx, "output_width", 1))
    if min(sides) < 0:
        raise InvalidNode(f"output_height and output_width are {sides[0]} and {sides[1]}; both must be at least 0")
    count = rois[0] if rois is not None else (batches[0] if batches is not None else None)
    if rois is not None:
        merged_dim(ctx, rois[1], 4, "the coordinates of a region and 4")
    if rois is not None and batches is not None:
        count = merged_dim(ctx, rois[0], batches[0], "the numbers of regions and of batch indices")
    return [tensor(dtype, (count, None if dims is None else dims[1], *sides))]


@operator("MaxRoiPool")
def max_roi_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """The largest elements of the parts of each region of interest."""
    dtype = known_dtype(ctx, (0, 1))
    dims, rois, sides = dims_of_rank(ctx, 0, 4), dims_of_rank(ctx, 1, 2), ints_attribute(ctx, "pooled_shape") or ()
    if len(sides) != 2:
        raise InvalidNode(f"pooled_shape {list(sides)} must have 2 elements")
    check_each("pooled_shape", sides)
    expect_dims(ctx, 1, (None, 5), "rois")
    return [tensor(dtype, (None if rois is None else rois[0], None if dims is None else dims[1], *sides))]


@operator("Col2Im")
def col2im(ctx: NodeContext) -> Sequence[ValueType]:
    """Columns of blocks put back into an image."""
    dtype, dims = ctx.input(0).dtype, dims_of_rank(ctx, 0, 3)
    image, block = target_shape(ctx, 1), vector_dims(ctx, 2)
    given = [sides for name in ("strides", "dilations") if (sides := ints_attribute(ctx, name)) is not None]
    pads = ints_attribute(ctx, "pads") or ()
    counts = {len(sides) for sides in (image, block, *given) if sides is not None} | (
        {len(pads) / 2} if pads else set()
    )
    if len(counts) > 1:
        raise InvalidNode("image, block, strides, dilations and pads must have the same number of spatial dimensions")
    if image is None:
        return [tensor(dtype, (None,) * (int(counts.pop()) + 2) if counts else None)]
    channels: DimLike | None = None
    known = None if block is None else [side for side in block if side is not None]
    if dims is not None and known is not None and len(known) == len(image):
        elements = product(known)
        if isinstance(elements, int):
            channels = exact_quotient(ctx, dims[1], elements, "the rows by the number of elements in a block")
    return [tensor(dtype, (None if dims is None else dims[0], channels, *image))]


@operator("CenterCropPad")
def center_crop_pad(ctx: NodeContext) -> Sequence[ValueType]:
    """The input cut or padded around its centre to the sizes that the second input holds."""
    dtype, dims, sizes = ctx.input(0).dtype, dims_of(ctx, 0), vector_dims(ctx, 1)
    given = ints_attribute(ctx, "axes")
    if dims is None:
        return [tensor(dtype, None)]
    axes = tuple(range(len(dims))) if given is None else normal_axes(given, len(dims))
    if sizes is not None and len(sizes) != len(axes):
        raise InvalidNode(f"{len(sizes)} sizes for {len(axes)} axes; one is required for each")
    result: list[DimLike | None] = list(dims)
    for position, axis in enumerate(axes):
        result[axis] = None if sizes is None else required_dim(ctx, sizes[position])
    return [tensor(dtype, result)]


@operator("ImageDecoder", gives=("uint8",))
def image_decoder(ctx: NodeContext) -> Sequence[ValueType]:
    """The pixels of an encoded image: height, width and channels."""
    dims_of_rank(ctx, 0, 1)
    return [tensor("uint8", (None, None, 1 if ctx.attribute("pixel_format", "RGB") == "Grayscale" else 3))]
