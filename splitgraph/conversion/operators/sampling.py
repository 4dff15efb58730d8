"""GridSample, AffineGrid, DeformConv and RoiAlign sample images at places that are known only at run time, or make such
places. DepthToSpace and Col2Im rearrange blocks of images; SpaceToDepth does not change.
"""

from __future__ import annotations

from functools import reduce
from math import prod

from splitgraph.conversion.notation.formula import FLOATS, Formula, Term, static_shape, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, require_few
from splitgraph.conversion.notation.resampling import Images
from splitgraph.conversion.operators.registry import RANK_HINT, changed, downward, edited, unchanged
from splitgraph.model.deferred import np

# From the names of opset 16 to those of opset 20; other modes kept their names.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}

# The most bins of RoiAlign along an axis that a constant holds.
_MOST_BINS = 2**16

# The types that ReduceSum takes at all opsets.
_SUMMED = ("int32", "int64", "uint32", "uint64", *FLOATS, "bfloat16")

# GridSample ---------------------------------------------------------------------------------------------------------

unchanged("GridSample", 22)


@downward("GridSample", 16, 20)
def sample_by_gathering(node: NodeAtBoundary) -> None:
    """Gather the elements around each place from the images in one row, weight them and add them up. Below 20,
    GridSample takes images of two axes only; below 16, it does not exist.
    """
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    mode = node.known_value("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.known_value_or_default("padding_mode")
    aligned = bool(node.known_value_or_default("align_corners"))
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise Inexact(f"GridSample knows no mode {mode} with padding {padding}")
    if mode != "nearest" and dtype not in (*FLOATS, "bfloat16"):
        raise Inexact(f"how {mode} sampling rounds {dtype} is not specified")
    if (mode, padding) == ("cubic", "border"):
        raise Inexact("whether the place or the elements around it are moved to the border is not specified")
    f = Formula(node)
    batch, _, *sizes = f.sizes(node.inputs[0], rank)
    data = f.input(0) if mode == "nearest" else f.input(0).cast(wide_float(dtype))
    pixels = f.product(sizes)
    images = Images(f, _rows(data, rank, batch * pixels), sizes, mode, padding, aligned)
    grid = f.input(1).cast(wide_float(node.known_dtype(1)))
    places = []
    for axis, size in enumerate(sizes):
        # The coordinate of the last axis comes first.
        place = grid.take(rank - 3 - axis, rank - 1) + 1
        length = size.cast(place.dtype)
        places.append(place / 2 * (length - 1) if aligned else (place * length - 1) / 2)
    first = (f.counting(batch) * pixels).reshape(0, *[1] * (rank - 2))
    f.give(images.sample(first, places, rank - 1).transposed(1, 0, *range(2, rank)).cast(dtype))


changed("GridSample", 20, "modes were renamed, and inputs that are not images were added", hint=RANK_HINT)


@edited("GridSample", 20)
def mode_can_be_respelled(node: NodeAtBoundary) -> None:
    """Keep only images of two axes whose mode is known. Respells the mode: "linear" and "cubic" are "bilinear" and
    "bicubic" below 20.
    """
    if not node.upward and node.rank(0) != 4:
        raise Inexact
    new_names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    names = new_names if node.upward else {new: old for old, new in new_names.items()}
    node.accept_default("mode")
    mode = node.value("mode")
    if mode is None:
        return
    if mode not in names:
        raise Inexact
    if names[mode] != mode:
        node.set("mode", names[mode], "the mode was renamed at opset 20")


# DeformConv ---------------------------------------------------------------------------------------------------------

unchanged("DeformConv", 22)


@downward("DeformConv", 19)
def deform_by_gathering(node: NodeAtBoundary) -> None:
    """Sample the elements under the kernel between those of the image, 0 beyond it. A convolution with a kernel of 1
    weights and adds up the samples of all places in the kernel.
    """
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    kernel, group = _kernel(node, rank - 2), node.known_value_or_default("offset_group")
    wide, f = wide_float(dtype), Formula(node)
    data, weight, offset = (f.input(index).cast(wide) for index in range(3))
    bias, mask = (f.input(index).cast(wide) if node.uses_input(index) else None for index in (3, 4))
    batch, channels, *sizes = f.sizes(node.inputs[0], rank)
    results = f.sizes(node.inputs[2], rank)[2:]
    spots, axes = prod(kernel), len(kernel)
    apart = data.shaped([0, group, channels / group, *sizes]).transposed(2, 0, 1, *range(3, rank + 1))
    pixels = f.product(sizes)
    flat = apart.shaped([0, batch * group * pixels])
    offset = offset.shaped([0, group, spots, axes, *results])
    places = []
    for axis in range(axes):
        moved = offset.take(axis, 3)
        places.append(moved + _undeformed_places(node, f, kernel, axis, results[axis]).cast(wide))
    groups = f.number(np.arange(group)).reshape(1, -1, 1, *[1] * axes)
    first = (f.counting(batch).reshape(0, 1, 1, *[1] * axes) * group + groups) * pixels
    sampled = Images(f, flat, sizes, "linear").sample(first, places, axes + 3)
    if mask is not None:
        sampled = sampled * mask.shaped([0, group, spots, *results])
    sampled = sampled.transposed(1, 2, 0, *range(3, axes + 4))
    columns = sampled.shaped([0, channels * spots, *results])
    inputs = [columns, weight.reshape(0, -1, *[1] * axes), *([] if bias is None else [bias])]
    f.give(f.apply("Conv", *inputs, group=node.known_value_or_default("group")).cast(dtype))


def _kernel(node: NodeAtBoundary, axes: int) -> list[int]:
    """Return the shape of the kernel."""
    given = node.known_value("kernel_shape") or (node.shape(1) or ())[2:]
    kernel = [size for size in given if isinstance(size, int)]
    if len(kernel) != axes or len(given) != axes:
        raise Inexact("the shape of the kernel is unknown", "give kernel_shape")
    require_few(*kernel)
    return kernel


def _undeformed_places(node: NodeAtBoundary, f: Formula, kernel: list[int], axis: int, count: Term) -> Term:
    """Return the place of each kernel element along an axis, int64[1, 1, places, 1, ..., results, ..., 1]."""
    ones = [1] * len(kernel)
    pads, strides = node.known_value("pads", [0, 0] * len(kernel)), node.known_value("strides", ones)
    stride: int = strides[axis]
    dilation = node.known_value("dilations", ones)[axis]
    spots = np.indices(tuple(kernel))[axis].reshape(1, 1, -1, *ones) * dilation - pads[axis]
    starts = f.counting(count) * stride
    return f.number(spots) + starts.reshape(*[1] * (3 + axis), -1, *ones[axis + 1 :])


# RoiAlign -----------------------------------------------------------------------------------------------------------

unchanged("RoiAlign", 22)


@downward("RoiAlign", 10, 16)
def align_by_gathering(node: NodeAtBoundary) -> None:
    """Interpolate several samples in each bin of a region and average them: sampling_ratio along an axis or, for 0, as
    many as the bin has elements. Samples more than one element beyond the image are 0. The shift by half an element
    came with opset 16.
    """
    if node.known_value_or_default("mode") != "avg":
        raise Inexact("runtimes and the document disagree about mode=max")
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    f, wide = Formula(node), wide_float(dtype)
    default = "half_pixel" if node.old.since_version >= 16 else "output_half_pixel"
    shifted = node.known_value("coordinate_transformation_mode", default) == "half_pixel"
    batch, _, *sizes = f.sizes(node.inputs[0], rank)
    regions = f.input(1).cast(wide) * node.known_value_or_default("spatial_scale")
    places, counts, kept = [], [], []
    for axis, name in enumerate(("output_height", "output_width")):
        # Dimensions: regions, bins along each axis, samples of a bin along each axis.
        start, end = (regions.take(corner - axis, 1) for corner in (1, 3))
        start, end = (bound.reshape(0, 1, 1, 1, 1) - (0.5 if shifted else 0) for bound in (start, end))
        length = end - start if shifted else (end - start).at_least(1)
        bins = node.known_value(name, 1)
        if bins > _MOST_BINS:
            raise Inexact(f"more than {_MOST_BINS:,} bins along an axis are not written out")
        width = length / bins
        count, samples = _samples(node, f, width)
        samples = samples.cast(wide).reshape(*((1, 1, 1, -1, 1) if axis == 0 else (1, 1, 1, 1, -1)))
        steps = np.arange(bins).reshape((1, -1, 1, 1, 1) if axis == 0 else (1, 1, -1, 1, 1))
        place = start + f.number(steps, wide) * width + (samples + 0.5) * width / count
        places.append(place)
        kept.append(~(place < -1) & ~(place > sizes[axis].cast(wide)) & (samples < count))
        counts.append(count.at_least(0).reshape(0, 1, 1))
    pixels = f.product(sizes)
    flat = _rows(f.input(0).cast(wide), rank, batch * pixels)
    first = (f.given(2, "int64") * pixels).reshape(0, 1, 1, 1, 1)
    sampled = Images(f, flat, sizes, "linear", "border").sample(first, places, 5)
    sampled = f.where(kept[0] & kept[1], sampled, 0)
    mean = sampled.reduced("ReduceSum", [4, 5]) / (counts[0] * counts[1]).at_least(1)
    f.give(mean.transposed(1, 0, *range(2, rank)).cast(dtype))


def _samples(node: NodeAtBoundary, f: Formula, width: Term) -> tuple[Term, Term]:
    """Return the number of samples in a bin along an axis, for each region or for all, and their indices, int64."""
    ratio = node.known_value_or_default("sampling_ratio")
    if ratio > 0:
        require_few(ratio)
        return f.number(np.full((1, 1, 1, 1, 1), ratio), width.dtype), f.number(np.arange(ratio))
    count = width.ceil()
    some = f.joined([count.reshape(-1), f.number([1], count.dtype)])
    most = f.apply("ReduceMax", some, keepdims=0)
    return count, f.counting(most.cast("int64"))


changed("RoiAlign", 16, "the default shift by half a pixel was added, and runtimes changed what mode=max computes")


@edited("RoiAlign", 16)
def has_no_pixel_shift(node: NodeAtBoundary) -> None:
    """Keep only average pooling without the shift by half a pixel, the default from 16 on. Sets or drops the
    attribute.
    """
    if node.value_or_default("mode") != "avg":
        raise Inexact
    name = "coordinate_transformation_mode"
    if node.upward:
        node.set(name, "output_half_pixel", "RoiAlign-10 does not shift by half a pixel")
        return
    if node.value(name) != "output_half_pixel":
        raise Inexact
    node.drop(name, why="RoiAlign-10 does not shift by half a pixel")


# AffineGrid ---------------------------------------------------------------------------------------------------------


@downward("AffineGrid", 20)
def multiply_positions(node: NodeAtBoundary) -> None:
    """Multiply positions from -1 to 1 along each axis, and 1, with the matrices. The function body confuses a batch of
    one with no batch.
    """
    dtype, shape, sizes = node.known_dtype(0), node.shape(0) or (), static_shape(node, node.inputs[1])
    axes = sizes[0] - 2 if sizes else shape[1] if len(shape) == 3 else None
    if not isinstance(axes, int):
        raise Inexact("how many axes the grid has is unknown", "declare the shape of theta")
    if axes > 3:
        raise Inexact(f"the grid has {axes:,} axes, and AffineGrid knows grids of 2 and 3")
    f, wide = Formula(node), wide_float(dtype)
    size, aligned = f.given(1, "int64"), node.known_value_or_default("align_corners")
    positions = []
    for axis in range(axes):
        count = size.take(2 + axis)
        if aligned and count.elements is not None and count.elements == 1:
            raise Inexact("runtimes and the document disagree about an axis of one element with align_corners")
        numbers = f.counting(count).cast(wide).reshape(1, *[1] * axis, -1, *[1] * (axes - axis))
        length = count.cast(wide)
        gap = 2 / (length - 1 if aligned else length)
        gap = f.where(length > 1, gap, 0) if aligned else gap
        positions.append(numbers * gap - 1 if aligned else numbers * gap + (gap / 2 - 1))
    blank = reduce(Term.__add__, [position * 0 for position in positions])
    listed = [*(position + blank for position in positions[::-1]), blank + 1]
    matrix = f.input(0).cast(wide).transposed(0, 2, 1).reshape(0, *[1] * (axes - 1), axes + 1, axes)
    f.give((f.joined(listed, axes + 1) @ matrix).cast(dtype))


# SpaceToDepth, DepthToSpace ----------------------------------------------------------------------------------------

unchanged("SpaceToDepth", 13, 28)

unchanged("DepthToSpace", 11, 13, 28)


@downward("DepthToSpace", 11)
def reorder_channels_of_crd(node: NodeAtBoundary) -> None:
    """Reorder the channels of mode=CRD. Below 11 there is no mode: the position in the block comes first, as in
    mode=DCR; in mode=CRD the channel comes first.
    """
    node.require_types()
    if node.known_value_or_default("mode") == "CRD":
        f, places = Formula(node), node.known_value("blocksize") ** 2
        count = f.sizes(node.inputs[0], 4)[1]
        order = f.counting(count).shaped([count / places, places]).transposed(1, 0).reshape(-1)
        node.inputs[0] = f.input(0).take(order, 1).name
    node.drop("mode", why=f"it does not exist {node.side}")


# Col2Im -------------------------------------------------------------------------------------------------------------


@downward("Col2Im", 18)
def add_up_blocks(node: NodeAtBoundary) -> None:
    """Sum, axis by axis, the elements of all blocks that overlap at each element of the image. For each position in a
    block at most one block does.
    """
    dtype = node.known_dtype(0)
    lengths = static_shape(node, node.inputs[1]) or static_shape(node, node.inputs[2])
    if dtype not in _SUMMED or lengths is None:
        raise Inexact(f"sums of {dtype} do not exist" if lengths else "how many axes the image has is unknown")
    f, axes = Formula(node), lengths[0]
    defaults = {"strides": [1] * axes, "dilations": [1] * axes, "pads": [0] * 2 * axes}
    if any(len(node.known_value(name, values)) != len(values) for name, values in defaults.items()):
        raise Inexact(f"its attributes are not for {axes} axes")
    sizes, spans = ([f.given(index, "int64").take(axis) for axis in range(axes)] for index in (1, 2))
    counts = [_block_count(node, axis, size, span) for axis, (size, span) in enumerate(zip(sizes, spans, strict=True))]
    channels = f.sizes(node.inputs[0], 3)[1] / f.product(spans)
    data = f.input(0).cast("float32" if dtype in ("float16", "bfloat16") else dtype)
    data = data.shaped([0, channels, *spans, *counts])
    pairs = [place for axis in range(axes) for place in (2 + axis, 2 + axes + axis)]
    merged = [span * count for span, count in zip(spans, counts, strict=True)]
    data = data.transposed(0, 1, *pairs).shaped([0, channels, *merged])
    for axis, (size, span, count) in enumerate(zip(sizes, spans, counts, strict=True)):
        index, exists = _sources(node, axis, f, size, span, count)
        parts = data.take(index, 2 + axis)
        exists = exists.reshape(0, 0, *[1] * (axes - 1 - axis))
        data = f.where(exists, parts, 0).reduced("ReduceSum", [2 + axis])
    f.give(data.cast(dtype))


def _block_count(node: NodeAtBoundary, axis: int, size: Term, span: Term) -> Term:
    """Compute the number of blocks along an axis."""
    stride, dilation, begin, end = _along(node, axis)
    return (size + (begin + end - 1) - (span - 1) * dilation) / stride + 1


def _along(node: NodeAtBoundary, axis: int) -> tuple[int, int, int, int]:
    """Return the stride, the dilation, and the padding at the beginning and the end of one axis."""
    pads = node.known_value("pads")
    begin, end = (pads[axis], pads[axis + len(pads) // 2]) if pads else (0, 0)
    stride, dilation = (node.known_value(name, None) for name in ("strides", "dilations"))
    return stride[axis] if stride else 1, dilation[axis] if dilation else 1, begin, end


def _sources(node: NodeAtBoundary, axis: int, f: Formula, size: Term, span: Term, count: Term) -> tuple[Term, Term]:
    """Compute, for each position in a block and each element of the image along an axis, the index of the element that
    lies there among those of all blocks, and whether there is one: both [span, size].
    """
    stride, dilation, begin, _ = _along(node, axis)
    place = f.counting(span).reshape(0, 1)
    start = f.counting(size).reshape(1, -1) + begin - place * dilation
    which = start.at_least(0) / stride
    exists = (which * stride).equals(start) & (which < count)
    return place * count + which.at_most(count - 1), exists


# Helpers of several operators ---------------------------------------------------------------------------------------


def _rows(data: Term, rank: int, length: Term) -> Term:
    """Put the images of a batch, [batch, channels, ...], into one row for each channel."""
    return data.transposed(1, 0, *range(2, rank)).shaped([0, length])
