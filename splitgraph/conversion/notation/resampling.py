"""Resize by gathering: a weighted sum of elements along each axis; the specification gives their places and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from splitgraph.conversion.notation.formula import FLOATS, Formula, Term, static_shape, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.model.deferred import np

_CROP = "tf_crop_and_resize"
# Rounding may move a coordinate away from halfway: onnxruntime accepts this distance.
_HALF_WITHIN = 1e-6


@dataclass(slots=True)
class _Axis:
    """An axis that is resized. length, size: before and after, int64 scalars; scale, start, end: float32 scalars."""

    place: int
    length: Term
    size: Term
    scale: Term
    start: Term
    end: Term

    @property
    def last(self) -> Term:
        """The place of the last element, float32."""
        return self.length.cast("float32") - 1


def resize_by_gathering(node: NodeAtBoundary) -> None:
    """Write a Resize of any version as arithmetic, axis by axis. Coordinates are float32, as scales are.

    Raises Inexact where the document leaves open how integers are rounded, or contradicts its own tests.
    """
    dtype, mode = node.known_dtype(0), node.known_value_or_default("mode")
    if mode not in ("nearest", *REACH):
        raise Inexact(f"Resize knows no mode {mode}")
    if mode != "nearest" and dtype not in (*FLOATS, "bfloat16"):
        raise Inexact(f"how {mode} resizing rounds {dtype} is not specified")
    formula = Formula(node)
    data = formula.input(0)
    if mode != "nearest":
        data = data.cast(wide_float(dtype))
    outside = []
    for axis in _resized_axes(node, formula):
        places = _coordinates(node, formula, axis)
        if _coordinate_mode(node) == _CROP:
            beyond = (places < 0) | (places > axis.last)
            outside.append(beyond.reshape(0, *_ones_behind(node, axis)))
        take = _nearest if mode == "nearest" else _interpolate
        data = take(node, formula, data, axis, places)
    for beyond in outside:
        data = formula.where(beyond, _extrapolation(node, formula, data.dtype), data)
    formula.give(data.cast(dtype))


def _resized_axes(node: NodeAtBoundary, formula: Formula) -> list[_Axis]:
    """Return the axes that may change."""
    rank = node.known_rank(0)
    places = [axis % rank for axis in node.known_value("axes") or range(rank)]
    coordinates, by_sizes = _coordinate_mode(node), is_sized(node)
    stretched = by_sizes and node.known_value("keep_aspect_ratio_policy", "stretch") == "stretch"
    lengths = [formula.sizes(node.inputs[0], rank)[place] for place in places]
    sizes, scales = (_by_sizes if by_sizes else _by_scales)(node, formula, lengths)
    axes = []
    for index, (place, length, size, scale) in enumerate(zip(places, lengths, sizes, scales, strict=True)):
        axis = _Axis(place, length, size, scale, *_region(node, formula, index, len(places)))
        kept = stretched and _keeps_size(node, place)
        kept = kept or (scale.elements is not None and bool(scale.elements == 1))
        whole = _is_whole(axis)
        if coordinates == _CROP and not stretched and not whole:
            raise Inexact("runtimes and the document disagree about what scales mean for a region of interest")
        if kept and (coordinates != _CROP or whole):
            continue
        if coordinates == "align_corners" and not stretched:
            _check_whole_size(axis)
        axes.append(axis)
    return axes


def _by_sizes(node: NodeAtBoundary, formula: Formula, lengths: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Return the new sizes and their scales, for each axis."""
    given = formula.given(3, "int64")
    sizes = [given.take(index) for index in range(len(lengths))]
    scales = [size.cast("float32") / length.cast("float32") for size, length in zip(sizes, lengths, strict=True)]
    policy = node.known_value("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return sizes, scales
    scale = reduce(Term.at_most if policy == "not_larger" else Term.at_least, scales)
    sizes = [(length.cast("float32") * scale + 0.5).floor().cast("int64") for length in lengths]
    return sizes, [scale] * len(lengths)


def _by_scales(node: NodeAtBoundary, formula: Formula, lengths: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """Return the sizes that the scales mean, and the scales, for each axis."""
    # Below opset 11 the scales are the second input.
    given = formula.given(1 if len(node.inputs) == 2 else 2, "float32")
    scales = [given.take(index) for index in range(len(lengths))]
    scaled = [length.cast("float32") * scale for length, scale in zip(lengths, scales, strict=True)]
    return [size.floor().cast("int64") for size in scaled], scales


def is_sized(node: NodeAtBoundary) -> bool:
    """Return True where the node has sizes, not scales; below 13 it may have both, one of them empty."""
    if not node.uses_input(3) or not node.uses_input(2):
        return node.uses_input(3)
    for index, if_empty in ((2, True), (3, False)):
        shape = static_shape(node, node.inputs[index])
        if shape is not None:
            return if_empty if shape == (0,) else not if_empty
    raise Inexact("whether scales or sizes are given is known only at run time")


def _region(node: NodeAtBoundary, formula: Formula, index: int, count: int) -> tuple[Term, Term]:
    """Return the start and the end of the region of interest along an axis, 0 and 1 without a region."""
    if _coordinate_mode(node) != _CROP:
        return formula.number(0, "float32"), formula.number(1, "float32")
    if not node.uses_input(1) or static_shape(node, node.inputs[1]) == (0,):
        raise Inexact(f"{_CROP} without a region of interest has no meaning")
    roi = formula.given(1).cast("float32")
    return roi.take(index), roi.take(count + index)


def _is_whole(axis: _Axis) -> bool:
    """Return True when the region of interest is the whole axis."""
    start, end = axis.start.elements, axis.end.elements
    return start is not None and end is not None and bool(start == 0 and end == 1)


def _keeps_size(node: NodeAtBoundary, place: int) -> bool:
    """Return True where inference knows that an axis keeps its size."""
    before, after = node.input_type(0).shape, node.output_type(0).shape
    if before is None or after is None or len(before) != len(after):
        return False
    return before[place] is not None and before[place] == after[place]


def _check_whole_size(axis: _Axis) -> None:
    """Raise Inexact where the size is rounded: the document divides by the size, its own tests by the product of length
    and scale before it is rounded.
    """
    scale, length = axis.scale.elements, axis.length.elements
    if scale is not None and (scale == np.floor(scale) or (length is not None and float(scale * length).is_integer())):
        return
    raise Inexact("with align_corners, the meaning of a rounded size is not clear", "give sizes")


def _coordinates(node: NodeAtBoundary, formula: Formula, axis: _Axis) -> Term:
    """Return the place of each new element on the old axis, float32."""
    places, size = formula.counting(axis.size).cast("float32"), axis.size.cast("float32")
    coordinates = _coordinate_mode(node)
    centred, nothing = (places + 0.5) / axis.scale, places * 0
    if coordinates == "asymmetric":
        return places / axis.scale
    if coordinates == "half_pixel":
        return centred - 0.5
    if coordinates == "tf_half_pixel_for_nn":
        if node.value_or_default("mode") != "nearest" or "ceil" in node.known_value("nearest_mode", "prefer_floor"):
            raise Inexact(f"runtimes and the specification disagree about {coordinates} unless it is rounded down")
        return centred
    if coordinates == "pytorch_half_pixel":
        return formula.where(size > 1, centred - 0.5, nothing)
    if coordinates == "align_corners":
        return formula.where(size > 1, places * axis.last / (size - 1), nothing)
    if coordinates == "half_pixel_symmetric":
        # The terms of the document say: the middle goes to the middle.
        return (places - (size - 1) / 2) / axis.scale + axis.last / 2
    if coordinates == _CROP:
        among = axis.start * axis.last + places * (axis.end - axis.start) * axis.last / (size - 1)
        return formula.where(size > 1, among, nothing + (axis.start + axis.end) * 0.5 * axis.last)
    raise Inexact(f"Resize knows no coordinates {coordinates}")


def _coordinate_mode(node: NodeAtBoundary) -> str:
    """Return the coordinate mode. Resize-10 has none: it divides by the scale, and rounds up where the tensor
    shrinks.
    """
    default = "half_pixel" if node.old.since_version > 10 else "asymmetric"
    return str(node.known_value("coordinate_transformation_mode", default))


def _nearest(node: NodeAtBoundary, formula: Formula, data: Term, axis: _Axis, places: Term) -> Term:
    """Gather the nearest elements."""
    whole = places.floor()
    rest = places - whole
    rounding = node.known_value(
        "nearest_mode", "round_prefer_floor" if node.old.since_version > 10 else "as_it_shrinks"
    )
    ways = {
        "floor": rest > 1,
        "ceil": rest > 0,
        "as_it_shrinks": (rest > 0) & (axis.scale < 1),
        "round_prefer_floor": rest > 0.5 + _HALF_WITHIN,
        "round_prefer_ceil": ~(rest < 0.5 - _HALF_WITHIN),
    }
    if rounding not in ways:
        raise Inexact(f"Resize knows no nearest_mode {rounding}")
    nearest = (whole + ways[rounding].cast("float32")).cast("int64")
    return data.take(nearest.clipped(0, axis.length - 1), axis.place)


def _interpolate(node: NodeAtBoundary, formula: Formula, data: Term, axis: _Axis, places: Term) -> Term:
    """Sum the elements in reach with their weights. Before the first element the first one continues, behind the last
    the last one.
    """
    mode, antialias = node.known_value("mode"), bool(node.known_value("antialias", 0))
    behind = _ones_behind(node, axis)
    places = places.reshape(0, *behind)
    whole = places.floor()
    stretch = axis.scale.at_most(1) if antialias else formula.number(1, "float32")
    reach = (REACH[mode] / stretch).ceil().cast("int64")
    offsets = (formula.counting(reach * 2) - (reach - 1)).cast("float32").reshape(-1, 1, *behind)
    shares = weights(formula, mode, (offsets - (places - whole)) * stretch, node.known_value("cubic_coeff_a", -0.75))
    taken = (whole + offsets).cast("int64")
    is_outside = (taken < 0) | (taken > axis.length - 1)
    exclude = bool(node.known_value("exclude_outside", 0))
    if exclude:
        shares = formula.where(is_outside, 0, shares)
    if exclude or antialias:
        shares = shares / shares.reduced("ReduceSum", [0])
    taken = taken.clipped(0, axis.length - 1).reshape(0, 0)
    weighted = data.take(taken, axis.place) * shares.cast(data.dtype)
    is_none = ~((shares < 0) | (shares > 0))
    is_none = is_none if antialias or exclude else is_none & is_outside
    beyond_reach = antialias or exclude or mode == "linear"
    if beyond_reach and (is_none.elements is None or is_none.elements.any()):
        # An element beyond reach adds nothing; infinity times 0 would give NaN.
        weighted = formula.where(is_none, 0, weighted)
    return weighted.reduced("ReduceSum", [axis.place])


def _ones_behind(node: NodeAtBoundary, axis: _Axis) -> Sequence[int]:
    """Return a 1 for each dimension behind an axis."""
    return [1] * (node.known_rank(0) - 1 - axis.place)


def _extrapolation(node: NodeAtBoundary, formula: Formula, dtype: str) -> Term:
    """Return the value beyond the region of interest."""
    value = float(node.known_value("extrapolation_value", 0.0))
    if dtype not in FLOATS and (not dtype.startswith(("int", "uint")) or not value.is_integer()):
        raise Inexact(f"the meaning of {value} as {dtype} is not specified")
    return formula.number(value if dtype in FLOATS else int(value), dtype)


# Interpolation --------------------------------------------------------------------------------------------------------


# How far a kernel reaches, in elements.
REACH = {"linear": 1, "cubic": 2}


def weights(formula: Formula, mode: str, distance: Term, cubic_coeff_a: float = -0.75) -> Term:
    """Return the weights of elements at a distance: by the triangular kernel, or by the cubic one of Keys. Beyond the
    kernel's reach they are 0.
    """
    distance = abs(distance)
    if mode == "linear":
        return (1 - distance).at_least(0)
    a = formula.number(cubic_coeff_a, distance.dtype)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * a
    return formula.where(distance < 1, near, formula.where(distance < 2, far, 0))


@dataclass(slots=True)
class Images:
    """Images of several channels, and how they continue beyond their borders.

    elements: [channels, images x elements of one]. sizes: of the axes of one image, int64 scalars. mode: "nearest",
    "linear" or "cubic". padding: "zeros", "border" or "reflection". aligned: the borders of an image are the centres of
    its outermost elements, and reflect there.
    """

    formula: Formula
    elements: Term
    sizes: Sequence[Term]
    mode: str
    padding: str = "zeros"
    aligned: bool = False

    def sample(self, first: Term, places: Sequence[Term], rank: int) -> Term:
        """Sample the images at places: [channels, ...].

        first: the index of the first element of the image in which each place lies, int64. places: the coordinate along
        each axis of an image, floating-point. All have `rank` dimensions and broadcast to those of the result.
        """
        if any(size.elements is not None and size.elements == 0 for size in self.sizes):
            raise Inexact("an image without elements has nothing to sample")
        inside, shares = [], []
        index, stride = first, self.formula.number(1)
        for axis in range(len(self.sizes))[::-1]:
            taken, share = self._taken(places[axis], axis, rank)
            if self.padding == "zeros":
                inside.append((taken > -1) & (taken < self.sizes[axis].cast(taken.dtype)))
            if self.padding == "reflection":
                taken = self._reflected(taken, axis)
            # The index must be within the image also where the place is NaN.
            index = index + taken.cast("int64").clipped(0, self.sizes[axis] - 1) * stride
            stride = stride * self.sizes[axis]
            shares += [] if share is None else [share]
        sampled = self.elements.take(index, 1)
        if shares:
            sampled = sampled * reduce(Term.__mul__, shares).cast(sampled.dtype)
        if inside:
            sampled = self.formula.where(reduce(Term.__and__, inside), sampled, 0)
        return sampled.reduced("ReduceSum", range(1, len(self.sizes) + 1)) if shares else sampled

    def _taken(self, place: Term, axis: int, rank: int) -> tuple[Term, Term | None]:
        """Return the elements in reach along an axis, as whole numbers, and their weights. Each axis of an image adds
        an axis in front of the result. The nearest element (half to even) has no weight.
        """
        last = self.sizes[axis].cast(place.dtype) - 1
        if self.mode == "nearest":
            nearest = self.formula.apply("Round", place)
            return (nearest.clipped(0, last) if self.padding == "border" else nearest), None
        if self.padding == "border":
            place = place.clipped(0, last)
        reach, axes = REACH[self.mode], [1] * len(self.sizes)
        axes[axis] = 2 * reach
        offsets = self.formula.number(np.arange(1 - reach, 1 + reach), place.dtype).reshape(*axes, *[1] * rank)
        whole = place.floor()
        return whole + offsets, weights(self.formula, self.mode, offsets - (place - whole))

    def _reflected(self, taken: Term, axis: int) -> Term:
        """Reflect whole numbers at the borders until they are within them."""
        low = self.formula.number(0 if self.aligned else -0.5, taken.dtype)
        span = self.sizes[axis].cast(taken.dtype) - (1 if self.aligned else 0)
        past = taken - low
        past = past - (past / (span * 2)).floor() * (span * 2)
        return self.formula.where(past > span, span * 2 - past, past) + low
