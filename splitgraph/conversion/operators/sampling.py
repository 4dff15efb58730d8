"""GridSample, AffineGrid, DeformConv and RoiAlign: they sample images at places that are known only at run time, or
make such places.
"""

from __future__ import annotations

from functools import reduce
from math import prod

from splitgraph.conversion.operators.predicates import RANK_HINT
from splitgraph.conversion.operators.registry import changed, downward, edited, unchanged
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.interpolation import Images
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary, require_few
from splitgraph.conversion.writing.shape_nodes import FLOATS, static_shape, wide_float
from splitgraph.deferred import np

# From the names of opset 16 to those of opset 20; other modes kept their names.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}

# The most bins of RoiAlign along an axis that a constant holds.
_MOST_BINS = 2**16

# GridSample ---------------------------------------------------------------------------------------------------------

unchanged("GridSample", 22)


@downward("GridSample", 16, 20)
def sample_by_gathering(node: NodeAtBoundary) -> None:
    """Gathers the elements around each place from the images in one row, weights them and adds them up. Below 20,
    GridSample takes images of two axes only; below 16, it does not exist.
    """
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    mode = node.known_value("mode", "linear")
    mode, padding = _MODES.get(mode, mode), node.known_value_or_default("padding_mode")
    aligned = bool(node.known_value_or_default("align_corners"))
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise Inexact(f"GridSample knows no mode {mode} with padding {padding}")
    if mode != "nearest" and dtype not in (*FLOATS, "bfloat16"):
        raise Inexact(f"how {mode} sampling rounds {dtype} is not said")
    if (mode, padding) == ("cubic", "border"):
        raise Inexact("whether the place or the elements around it are moved to the border is not said")
    formula = Formula(node)
    batch, _, *sizes = formula.sizes(node.inputs[0], rank)
    data = formula.held(node.inputs[0], dtype)
    if mode != "nearest":
        data = data.cast(wide_float(dtype))
    pixels = formula.product(sizes)
    images = Images(formula, _rows(formula, data, rank, batch * pixels), sizes, mode, padding, aligned)
    grid = formula.held(node.inputs[1], node.known_dtype(1)).cast(wide_float(node.known_dtype(1)))
    places = []
    for axis, size in enumerate(sizes):
        # The coordinate of the last axis comes first.
        place = formula.gather(grid, formula.number(rank - 3 - axis), rank - 1) + 1
        length = size.cast(place.dtype)
        places.append(place / 2 * (length - 1) if aligned else (place * length - 1) / 2)
    first = (formula.counting(batch) * pixels).reshape(0, *[1] * (rank - 2))
    formula.give(_channels_behind(formula, images.sample(first, places, rank - 1), rank).cast(dtype))


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
    """Samples the elements under the kernel between those of the image, 0 beyond it. A convolution with a kernel of 1
    weights and adds up the samples of all places in the kernel.
    """
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    kernel, group = _kernel(node, rank - 2), node.known_value_or_default("offset_group")
    wide, formula = wide_float(dtype), Formula(node)
    data, weight, offset = (formula.held(name, dtype).cast(wide) for name in node.inputs[:3])
    bias, mask = (
        formula.held(node.inputs[index], dtype).cast(wide) if node.uses_input(index) else None for index in (3, 4)
    )
    batch, channels, *sizes = formula.sizes(node.inputs[0], rank)
    results = formula.sizes(node.inputs[2], rank)[2:]
    spots, axes = prod(kernel), len(kernel)
    split = [formula.number(0), formula.number(group)]
    apart = formula.shaped(data, [*split, channels // group, *sizes])
    apart = formula.transposed(apart, [2, 0, 1, *range(3, rank + 1)])
    pixels = formula.product(sizes)
    flat = formula.shaped(apart, [formula.number(0), batch * group * pixels])
    offset = formula.shaped(offset, [*split, formula.number(spots), formula.number(axes), *results])
    places = []
    for axis in range(axes):
        moved = formula.gather(offset, formula.number(axis), 3)
        places.append(moved + _undeformed_places(node, formula, kernel, axis, results[axis]).cast(wide))
    groups = formula.number(np.arange(group)).reshape(1, -1, 1, *[1] * axes)
    first = (formula.counting(batch).reshape(0, 1, 1, *[1] * axes) * group + groups) * pixels
    found = Images(formula, flat, sizes, "linear").sample(first, places, axes + 3)
    if mask is not None:
        found = found * formula.shaped(mask, [*split, formula.number(spots), *results])
    found = formula.transposed(found, [1, 2, 0, *range(3, axes + 4)])
    columns = formula.shaped(found, [formula.number(0), channels * spots, *results])
    inputs = [columns, weight.reshape(0, -1, *[1] * axes), *([] if bias is None else [bias])]
    result = node.write("Conv", [term.name for term in inputs], "convolved", group=node.known_value_or_default("group"))
    formula.give(formula.held(result, wide).cast(dtype))


def _kernel(node: NodeAtBoundary, axes: int) -> list[int]:
    """Gives the shape of the kernel."""
    given = node.known_value("kernel_shape") or (node.shape(1) or ())[2:]
    kernel = [size for size in given if isinstance(size, int)]
    if len(kernel) != axes or len(given) != axes:
        raise Inexact("the shape of the kernel is unknown", "give kernel_shape")
    require_few(*kernel)
    return kernel


def _undeformed_places(node: NodeAtBoundary, formula: Formula, kernel: list[int], axis: int, count: Term) -> Term:
    """Gives the place of each kernel element along an axis, int64[1, 1, places, 1, ..., results, ..., 1]."""
    ones = [1] * len(kernel)
    pads, strides = node.known_value("pads", [0, 0] * len(kernel)), node.known_value("strides", ones)
    stride: int = strides[axis]
    dilation = node.known_value("dilations", ones)[axis]
    spots = np.indices(tuple(kernel))[axis].reshape(1, 1, -1, *ones) * dilation - pads[axis]
    starts = formula.counting(count) * stride
    return formula.number(spots) + starts.reshape(*[1] * (3 + axis), -1, *ones[axis + 1 :])


# RoiAlign -----------------------------------------------------------------------------------------------------------

unchanged("RoiAlign", 22)


@downward("RoiAlign", 10, 16)
def align_by_gathering(node: NodeAtBoundary) -> None:
    """Interpolates several samples in each bin of a region and averages them: sampling_ratio along an axis or, for 0,
    as many as the bin has elements. Samples more than one element beyond the image are 0. The shift by half an element
    came with opset 16.
    """
    if node.known_value_or_default("mode") != "avg":
        raise Inexact("runtimes and the document disagree about mode=max")
    dtype, rank = node.known_dtype(0), node.known_rank(0)
    formula, wide = Formula(node), wide_float(dtype)
    default = "half_pixel" if node.old.since_version >= 16 else "output_half_pixel"
    shifted = node.known_value("coordinate_transformation_mode", default) == "half_pixel"
    batch, _, *sizes = formula.sizes(node.inputs[0], rank)
    regions = formula.held(node.inputs[1], dtype).cast(wide) * node.known_value_or_default("spatial_scale")
    places, counts, kept = [], [], []
    for axis, name in enumerate(("output_height", "output_width")):
        # Dimensions: regions, bins along each axis, samples of a bin along each axis.
        start, end = (formula.gather(regions, formula.number(corner - axis), 1) for corner in (1, 3))
        start, end = (bound.reshape(0, 1, 1, 1, 1) - (0.5 if shifted else 0) for bound in (start, end))
        length = end - start if shifted else (end - start).at_least(1)
        bins = node.known_value(name, 1)
        if bins > _MOST_BINS:
            raise Inexact(f"more than {_MOST_BINS:,} bins along an axis are not written out")
        width = length / bins
        count, samples = _samples(node, formula, width)
        samples = samples.cast(wide).reshape(*((1, 1, 1, -1, 1) if axis == 0 else (1, 1, 1, 1, -1)))
        steps = np.arange(bins).reshape((1, -1, 1, 1, 1) if axis == 0 else (1, 1, -1, 1, 1))
        place = start + formula.number(steps, wide) * width + (samples + 0.5) * width / count
        places.append(place)
        kept.append(~(place < -1) & ~(place > sizes[axis].cast(wide)) & (samples < count))
        counts.append(count.at_least(0).reshape(0, 1, 1))
    pixels = formula.product(sizes)
    flat = _rows(formula, formula.held(node.inputs[0], dtype).cast(wide), rank, batch * pixels)
    first = (formula.given(node.inputs[2], "int64") * pixels).reshape(0, 1, 1, 1, 1)
    found = Images(formula, flat, sizes, "linear", "border").sample(first, places, 5)
    found = formula.where(kept[0] & kept[1], found, formula.number(0, wide))
    mean = formula.total(found, [4, 5], "all_samples") / (counts[0] * counts[1]).at_least(1)
    formula.give(_channels_behind(formula, mean, rank).cast(dtype))


def _samples(node: NodeAtBoundary, formula: Formula, width: Term) -> tuple[Term, Term]:
    """Gives the number of samples in a bin along an axis, for each region or for all, and their indices, int64."""
    ratio = node.known_value_or_default("sampling_ratio")
    if ratio > 0:
        require_few(ratio)
        return formula.number(np.full((1, 1, 1, 1, 1), ratio), width.dtype), formula.number(np.arange(ratio))
    count = width.ceil()
    some = node.write("Concat", [count.reshape(-1).name, formula.number([1], count.dtype).name], "counts", axis=0)
    most = formula.held(node.write("ReduceMax", [some], "most_samples", keepdims=0), count.dtype)
    return count, formula.counting(most.cast("int64"))


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
    """Multiplies positions from -1 to 1 along each axis, and 1, with the matrices. The function body confuses a batch
    of one with no batch.
    """
    dtype, shape, sizes = node.known_dtype(0), node.shape(0) or (), static_shape(node, node.inputs[1])
    axes = sizes[0] - 2 if sizes else shape[1] if len(shape) == 3 else None
    if not isinstance(axes, int):
        raise Inexact("how many axes the grid has is unknown", "declare the shape of theta")
    if axes > 3:
        raise Inexact(f"the grid has {axes:,} axes, and AffineGrid knows grids of 2 and 3")
    formula, wide = Formula(node), wide_float(dtype)
    size, aligned = formula.given(node.inputs[1], "int64"), node.known_value_or_default("align_corners")
    positions = []
    for axis in range(axes):
        count = formula.element(size, 2 + axis)
        if aligned and count.elements is not None and count.elements == 1:
            raise Inexact("runtimes and the document disagree about an axis of one element with align_corners")
        numbers = formula.counting(count).cast(wide).reshape(1, *[1] * axis, -1, *[1] * (axes - axis))
        length = count.cast(wide)
        gap = formula.number(2, wide) / (length - 1 if aligned else length)
        gap = formula.where(length > 1, gap, formula.number(0, wide)) if aligned else gap
        positions.append(numbers * gap - 1 if aligned else numbers * gap + (gap / 2 - 1))
    blank = reduce(Term.__add__, [position * 0 for position in positions])
    listed = [*(position + blank for position in positions[::-1]), blank + 1]
    whole = formula.apply("Concat", lambda *held: np.concatenate(held, axis=-1), listed, axis=axes + 1)
    matrix = formula.transposed(formula.held(node.inputs[0], dtype).cast(wide), [0, 2, 1])
    matrix = matrix.reshape(0, *[1] * (axes - 1), axes + 1, axes)
    grid = formula.held(node.write("MatMul", [whole.name, matrix.name], "grid"), wide)
    formula.give(grid.cast(dtype))


# Helpers of several operators ---------------------------------------------------------------------------------------


def _rows(formula: Formula, data: Term, rank: int, length: Term) -> Term:
    """Puts the images of a batch, [batch, channels, ...], into one row for each channel."""
    return formula.shaped(formula.transposed(data, [1, 0, *range(2, rank)]), [formula.number(0), length])


def _channels_behind(formula: Formula, found: Term, rank: int) -> Term:
    """Moves the channels behind the batch."""
    return formula.transposed(found, [1, 0, *range(2, rank)])
