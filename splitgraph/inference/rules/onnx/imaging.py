"""Operators on images: sampling grids, regions of interest, columns and crops; Resize and Upsample.

ImageScaler, Crop and Affine are experimental operators that onnx had below opset 10; onnxruntime runs them there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from splitgraph.dim import Dim, DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.arithmetic import as_fraction, round_to
from splitgraph.inference.rules.indices import integer_range
from splitgraph.inference.rules.onnx.constants import required_dim, target_shape
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    contents_or_unknown,
    dims_of,
    dims_of_rank,
    dtype_attribute,
    exact_quotient,
    expect,
    input_of,
    int_attribute,
    ints_attribute,
    merged_dim,
    normal_axes,
    normal_axis,
    operator,
    ranked_dims,
    scalar_dim,
    tolerate,
    vector_dims,
)
from splitgraph.inference.rules.signatures import expect_shapes, shapes
from splitgraph.inference.rules.windows import check_each
from splitgraph.model.value_type import Item, ValueType, tensor


@operator("AffineGrid")
def affine_grid(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the coordinates of each pixel of an image after a transform. The second input holds the size of the
    image.
    """
    dims_of_rank(ctx, 0, 3)
    size = vector_dims(ctx, 1)
    if size is None:
        return [tensor(ctx.input(0).dtype, None)]
    if len(size) not in (4, 5):
        raise InvalidNode(
            f"the size has {len(size)} elements; it must give batch, channels and 2 or 3 spatial dimensions"
        )
    rank, sides = len(size) - 2, "DHW"[-(len(size) - 2) :]
    sizes = {letter: required_dim(ctx, dim) for letter, dim in zip(f"NC{sides}", size, strict=True)}
    return shapes(ctx, f"theta: N {rank} {rank + 1}", sizes=sizes, gives=f"0 N {' '.join(sides)} {rank}")


@operator("GridSample")
def grid_sample(ctx: NodeContext) -> Sequence[ValueType]:
    """Sample the channels of the image at each point of the grid."""
    rank = next((len(dims) - 2 for index in (0, 1) if (dims := dims_of(ctx, index)) is not None), None)
    if rank is None:
        return [tensor(ctx.input(0).dtype, None)]
    if rank < 1:
        raise InvalidNode("image and grid must have the same rank, at least 3")
    given = (f"X: N C {'? ' * rank}", f"grid: N ... {rank}")
    return shapes(ctx, *given, sizes={"...": rank}, gives="0 N C ...")


@operator("RoiAlign")
def roi_align(ctx: NodeContext) -> Sequence[ValueType]:
    """Resize each region of interest to the size of the attributes."""
    dims = ranked_dims(ctx, 0, 4)
    sides = (int_attribute(ctx, "output_height", 1), int_attribute(ctx, "output_width", 1))
    if min(sides) < 0:
        raise InvalidNode(f"output_height and output_width are {sides[0]} and {sides[1]}; both must be at least 0")
    given = ("X: ? C ? ?", "rois: R 4", "batch_indices: R")
    result = shapes(ctx, *given, sizes=dict(zip("HW", sides, strict=True)), gives="0,1 R C H W")
    first, last = integer_range(ctx, 2) or (0, 0)
    if first < 0 or (isinstance(dims[0], int) and last >= dims[0]):
        text = f"batch_indices (input 2) has {first if first < 0 else last}; it must be in the batch of {dims[0]}"
        tolerate(ctx, text, run_by="the reference evaluator")
    return result


@operator("MaxRoiPool")
def max_roi_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the largest elements of the parts of each region of interest."""
    sides = ints_attribute(ctx, "pooled_shape") or ()
    if len(sides) != 2:
        raise InvalidNode(f"pooled_shape {list(sides)} must have 2 elements")
    check_each("pooled_shape", sides)
    return shapes(ctx, "X: ? C ? ?", "rois: R 5", sizes=dict(zip("HW", sides, strict=True)), gives="0,1 R C H W")


@operator("Col2Im")
def col2im(ctx: NodeContext) -> Sequence[ValueType]:
    """Put columns of blocks back into an image."""
    dtype, dims = ctx.input(0).dtype, ranked_dims(ctx, 0, 3)
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
    if dims[1] is not None and known is not None and len(known) == len(image):
        elements = product(known)
        if isinstance(elements, int):
            channels = exact_quotient(ctx, dims[1], elements, "the rows by the number of elements in a block")
        _check_positions(ctx, dims[2], image, known, pads)
    return [tensor(dtype, (dims[0], channels, *image))]


def _check_positions(
    ctx: NodeContext,
    columns: DimLike | None,
    image: Sequence[DimLike | None],
    block: Sequence[DimLike],
    pads: Sequence[int],
) -> None:
    """Require a column for each position of the block in the image."""
    rank = len(image)
    ones, zeros = (1,) * rank, (0,) * 2 * rank
    strides, dilations = (ints_attribute(ctx, name) or ones for name in ("strides", "dilations"))
    pads = pads or zeros
    if columns is None or None in image or min(strides) < 1:
        return
    counts = [
        (side + pads[axis] + pads[rank + axis] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis, side in enumerate(image)
        if side is not None
    ]
    total = product(counts)
    fault = partial("the input has {} columns; the block has {} positions in the image".format, columns, total)
    expect(ctx, columns, "==", total, fault)


@operator("CenterCropPad")
def center_crop_pad(ctx: NodeContext) -> Sequence[ValueType]:
    """Cut or pad the input around its centre, to the sizes that the second input holds."""
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
    """Decode an image to height, width and channels."""
    dims_of_rank(ctx, 0, 1)
    return [tensor("uint8", (None, None, 1 if ctx.attribute("pixel_format", "RGB") == "Grayscale" else 3))]


@operator("Upsample")
def upsample(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply each dimension by its scale, and round down. Before version 9 the scales are attributes."""
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
    """Multiply each dimension by its scale and round down, or use the sizes that are given."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    scaled, sized = _is_given(ctx, 1 if ctx.since_version < 11 else 2), _is_given(ctx, 3)
    if dims is None:
        return [tensor(dtype, None)]
    if ctx.since_version < 11:
        return [tensor(dtype, _scaled(dims, _scale_items(ctx, 1), range(len(dims))))]
    given = ints_attribute(ctx, "axes")
    axes: Sequence[int] = range(len(dims)) if not given else normal_axes(given, len(dims))
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
    """Return True if scales or sizes are given and not empty; None if only a run can tell."""
    if not ctx.has_input(index):
        return False
    dims = dims_of_rank(ctx, index, 1)
    return None if dims is None or not isinstance(dims[0], int) else dims[0] > 0


def _keep_aspect_ratio(
    dims: Dims, sizes: Sequence[DimLike | None], axes: Sequence[int], policy: str, result: list[DimLike | None]
) -> None:
    """Scale all the axes by one factor, so that no axis is larger, or none smaller, than its size; only for static
    dimensions.
    """
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
    scales = ctx.contents(index, needed=True) or contents_or_unknown(ctx, index)
    return None if scales is None else scales.items


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
    return dim * numerator // denominator if denominator <= 2**8 and numerator <= 2**16 else None


def _rounded_down(dim: int, scale: float) -> int | None:
    """Return the size of a static dimension; None if it depends on the precision of the runtime's multiplication."""
    size = math.floor(dim * scale)
    length, factor = round_to("float32", dim), round_to("float32", scale)
    single = None if length is None or factor is None else round_to("float32", length * factor)
    return size if single is not None and size == math.floor(single) else None


@operator("ImageScaler")
def image_scaler(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply each element of an image by scale, and add the bias of its channel."""
    dims, bias = dims_of_rank(ctx, 0, 4), ctx.attribute("bias")
    if dims is not None and isinstance(bias, tuple):
        told = partial("bias has {} elements for {} channels; one is required for each".format, len(bias), dims[1])
        expect(ctx, dims[1], "==", len(bias), told)
    return [tensor(ctx.input(0).dtype, dims)]


@operator("Crop")
def crop(ctx: NodeContext) -> Sequence[ValueType]:
    """Remove the border (left, top, right, bottom) of an image, or cut it to the height and width in scale."""
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
            expect(
                ctx,
                dim,
                ">=",
                least,
                partial("the dimension is {}; border and scale need at least {}".format, dim, least),
            )
        sizes.append(wanted if wanted is not None else None if dim is None else dim - least)
    return [tensor(ctx.input(0).dtype, (*dims[:2], *sizes))]


# Fourier transforms, their windows and filters ------------------------------------------------------------------------


@operator("BlackmanWindow", "HammingWindow", "HannWindow", gives=(None,))
def window(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a window of as many elements as the input says."""
    expect_shapes(ctx, "size: scalar")
    return [tensor(dtype_attribute(ctx, "output_datatype", "float32"), (required_dim(ctx, scalar_dim(ctx, 0)),))]


@operator("MelWeightMatrix", gives=(None,))
def mel_weight_matrix(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a row for each frequency of a transform of `dft_length`, and a column for each band."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    expect_shapes(ctx, *(f"{name}: scalar" for name in names))
    bands, length = scalar_dim(ctx, 0), scalar_dim(ctx, 1)
    rows = None if length is None else required_dim(ctx, length) // 2 + 1
    return [tensor(dtype_attribute(ctx, "output_datatype", "float32"), (rows, required_dim(ctx, bands)))]


@operator("DFT")
def dft(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform along one axis; the last axis holds real and imaginary part."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    expect_shapes(ctx, "", "dft_length: scalar", "axis: scalar")
    inverse, half = bool(int_attribute(ctx, "inverse", 0)), bool(int_attribute(ctx, "onesided", 0))
    if dims is None:
        return [tensor(dtype, None)]
    if len(dims) < 2:
        raise InvalidNode(
            f"the input has rank {len(dims)}; it must have an axis before the one of real and imaginary parts"
        )
    if isinstance(dims[-1], int) and dims[-1] not in (1, 2):
        raise InvalidNode(f"the last dimension is {dims[-1]}; it must be 1 for real and 2 for complex numbers")
    if half and not inverse and dims[-1] == 2:
        raise InvalidNode("the input is complex; onesided requires real input")
    if half and inverse and dims[-1] == 1:
        raise InvalidNode("the input is real; a onesided inverse transform requires complex input")
    parts = 1 if inverse and half else 2
    axis = _dft_axis(ctx, len(dims))
    if axis is None and not half and not ctx.has_input(1):
        # Whichever axis it is, it keeps its length.
        return [tensor(dtype, (*dims[:-1], parts))]
    if axis is None:
        return [tensor(dtype, (*(None,) * (len(dims) - 1), parts))]
    length = _dft_length(ctx, dims[axis], inverse and half)
    result: list[DimLike | None] = [*dims[:-1], parts]
    result[axis] = length // 2 + 1 if half and not inverse and length is not None else length
    return [tensor(dtype, result)]


def _dft_axis(ctx: NodeContext, rank: int) -> int | None:
    if input_of(ctx, "axis") is None:
        axis: DimLike | None = int_attribute(ctx, "axis", 1)
    else:
        axis = scalar_dim(ctx, 2) if ctx.has_input(2) else -2
    if not isinstance(axis, int):
        return None
    normal = normal_axis(axis, rank)
    if normal == rank - 1:
        raise InvalidNode(f"axis {axis} holds the real and imaginary parts and cannot be transformed")
    return normal


def _dft_length(ctx: NodeContext, dim: DimLike, doubled: bool) -> DimLike | None:
    if ctx.has_input(1):
        given = scalar_dim(ctx, 1)
        return None if given is None else required_dim(ctx, given)
    return required_dim(ctx, 2 * (dim - 1)) if doubled else dim


@operator("STFT")
def stft(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform the frames that move along the signal.

    The document has signals of rank 3. onnx's own inference and onnxruntime take rank 2 for real signals, without the
    last dimension, and exported models rely on it.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    dims_of_rank(ctx, 2, 1)
    expect_shapes(ctx, "", "frame_step: scalar", "", "frame_length: scalar")
    if dims is not None and len(dims) not in (2, 3):
        raise InvalidNode(f"input 0 has rank {len(dims)}; it must have rank 3, or rank 2 for a real signal")
    step, length = scalar_dim(ctx, 1), _frame_length(ctx, dims)
    bins = length // 2 + 1 if length is not None and int_attribute(ctx, "onesided", 1) else length
    batch = None if dims is None else dims[0]
    if dims is None or length is None or not isinstance(step, int):
        return [tensor(dtype, (batch, None, bins, 2))]
    if step < 1:
        raise InvalidNode(f"frame_step is {step}; it must be at least 1")
    room = dims[1] - length
    expect(ctx, room, ">=", 0, partial("a frame of {} does not fit a signal of {}".format, length, dims[1]))
    return [tensor(dtype, (batch, room // step + 1, bins, 2))]


def _frame_length(ctx: NodeContext, dims: Dims | None) -> DimLike | None:
    given = required_dim(ctx, scalar_dim(ctx, 3)) if ctx.has_input(3) and scalar_dim(ctx, 3) is not None else None
    if ctx.has_input(2):
        return merged_dim(ctx, given, ranked_dims(ctx, 2, 1)[0], "frame_length and the length of the window")
    if ctx.has_input(3):
        return given
    return None if dims is None else dims[1]
