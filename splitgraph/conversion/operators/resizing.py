"""Upsample and Resize: scales became an input (Upsample 9), Resize replaced Upsample (10), and coordinates became an
attribute (11) with more and more modes.
"""

from __future__ import annotations

import math

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.formula import Formula, Term, static_shape
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.notation.resampling import is_sized, resize_by_gathering
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    exact_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.deferred import np

_TO_NEW_MODES = {"nearest": "nearest", "bilinear": "linear"}

# With these rounding modes and half_pixel, a scale that is a whole number repeats each element.
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil")

# From the rounding of a coordinate to the rounding that gives the same for a coordinate less a half.
_HALF_LESS = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}

# Upsample -----------------------------------------------------------------------------------------------------------

changed("Upsample", 7, "the attributes height_scale and width_scale became scales")


@upward("Upsample", 7)
def join_scales(node: NodeAtBoundary) -> None:
    """Join height_scale and width_scale to four scales, the first two of which are 1. Rename "bilinear" to "linear"."""
    node.require_types()
    mode = node.known_value_or_default("mode")
    scales = [1.0, 1.0, node.known_value("height_scale"), node.known_value("width_scale")]
    if mode not in _TO_NEW_MODES or None in scales:
        raise Inexact(f"mode {mode} with scales {scales[2:]} has no meaning")
    node.drop("height_scale", "width_scale", why="all scales are one attribute")
    node.set("scales", scales, "the scales of all axes")
    node.set("mode", _TO_NEW_MODES[mode], "the mode was renamed")


@downward("Upsample", 7)
def split_scales(node: NodeAtBoundary) -> None:
    """Split four scales, the first two of which are 1, into height_scale and width_scale."""
    node.require_types()
    scales, mode = node.known_value("scales"), node.known_value_or_default("mode")
    old_modes = {new: old for old, new in _TO_NEW_MODES.items()}
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1 or mode not in old_modes:
        raise Inexact("below it, only height and width of images are resized")
    node.drop("scales", why=f"it does not exist {node.side}")
    node.set("height_scale", scales[2], "the scale of the third axis")
    node.set("width_scale", scales[3], "the scale of the fourth axis")
    node.set("mode", old_modes[mode], "the mode was renamed")


changed("Upsample", 9, "the attribute scales became an input")


@upward("Upsample", 9)
def make_scales_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute scales into a constant."""
    node.require_types()
    node.inputs.append(node.attribute_as_input("scales", np.float32))


@downward("Upsample", 9)
def make_scales_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant second input into the attribute scales."""
    node.require_types()
    scales = node.elements(1)
    if scales is None:
        raise Inexact(f"scales is an attribute {node.side}, and here it is known only at run time")
    del node.inputs[1:]
    node.set("scales", [float(scale) for scale in scales], f"it is an attribute {node.side}")


changed("Upsample", 10, "it is deprecated from then on; Resize replaces it")


@upward("Upsample", 10)
def replace_by_resize(node: NodeAtBoundary) -> None:
    """Rename the node: Resize-10 does what Upsample-9 does, also for scales below 1."""
    node.rename("Resize")


# Resize -------------------------------------------------------------------------------------------------------------

unchanged("Resize", 18)


@downward("Resize", 10)
def replace_by_upsample(node: NodeAtBoundary) -> None:
    """Rename the node where all scales are at least 1, which Upsample-9 needs; gather elements otherwise."""
    scales = node.elements(1)
    if scales is None or np.any(scales < 1):
        resize_by_gathering(node)
        return
    mode = node.attributes.get("mode")
    node.replace("Upsample", node.inputs)
    if mode is not None:
        node.attributes["mode"] = mode


changed(
    "Resize", 11, "the inputs changed, and the way coordinates are transformed, implicit below it, became an attribute"
)


@upward("Resize", 11)
def set_asymmetric_coordinates(node: NodeAtBoundary) -> None:
    """Set the attributes that mean what Resize-10 does: coordinates are divided by the scale, and the nearest element
    is rounded down where an axis grows and up where it shrinks (as in onnx's own test of Resize-10 and in onnxruntime).

    Where axes of both kinds exist, or the scales are unknown, the node becomes two nodes: one for the axes that grow
    and one for those that shrink.
    """
    node.require_types()
    mode, f = node.known_value_or_default("mode"), Formula(node)
    if mode not in ("nearest", "linear"):
        raise Inexact(f"Resize-10 knows no mode {mode}")
    data, scales, roi = f.input(0), f.input(1, "float32"), f.number([], "float32")
    node.set("coordinate_transformation_mode", "asymmetric", "what Resize did before it had a choice")
    known = node.elements(1)
    if mode == "nearest":
        shrinks = known is not None and bool(np.any(known < 1))
        if known is None or (shrinks and np.any(known > 1)):
            data = _grow(f, data, roi, scales, is_known=known is not None, is_larger=_is_larger(node, known))
            scales, shrinks = f.apply("Min", scales, f.number([1], "float32")), True
        node.set("nearest_mode", "ceil" if shrinks else "floor", "what Resize did before it had a choice")
    node.inputs[:] = [data.name, roi.name, scales.name]


def _grow(f: Formula, data: Term, roi: Term, scales: Term, *, is_known: bool, is_larger: bool) -> Term:
    """Resize the axes that grow.

    onnxruntime copies a tensor that keeps its size, whatever the scales are; the one node did not do so where other
    axes shrank. So the tensor gets a further axis, which changes the size: two copies where the least scale is below 1.
    is_known: the scales are known, and the least is below 1. is_larger: some axis certainly gets more elements.
    """
    chosen = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    up, copies = f.apply("Max", scales, f.number([1], "float32")), f.number([2], "float32")
    if is_larger:
        return f.apply("Resize", data, roi, up, **chosen)
    if not is_known:
        lacking = (1 - f.apply("ReduceMin", scales, keepdims=1)).ceil()
        copies = f.number([1], "float32") + f.apply("Max", lacking, f.number([0], "float32"))
    return f.apply("Resize", data.unsqueezed(0), roi, f.joined([copies, up]), **chosen).take(0)


def _is_larger(node: NodeAtBoundary, scales: Array | None) -> bool:
    """Return True when some axis certainly gets more elements."""
    shape = node.input_type(0).shape
    if scales is None or shape is None:
        return False
    known = zip(shape, scales, strict=True)
    return any(scale >= 2 or (isinstance(dim, int) and math.floor(dim * float(scale)) > dim) for dim, scale in known)


@downward("Resize", 11)
def leave_out_coordinates(node: NodeAtBoundary) -> None:
    """Leave out asymmetric coordinates that are rounded down where the tensor grows and up where it shrinks, the only
    ones below 11. Scales that are whole numbers repeat each element also with half_pixel. Everything else is gathered.
    """
    node.require_types()
    scales = _exact_scales(node)
    mode = node.known_value_or_default("mode")
    coordinates = node.known_value_or_default("coordinate_transformation_mode")
    rounding = node.known_value_or_default("nearest_mode")
    if mode == "linear":
        scaled = scales is not None or not is_sized(node)
        fits = coordinates == "asymmetric" and scaled and not node.known_value_or_default("exclude_outside")
    else:
        before = scales is not None and coordinates == "asymmetric" and _rounds_as_resize_10(rounding, scales)
        fits = mode == "nearest" and (
            before or (scales is not None and _repeats_elements(coordinates, rounding, scales))
        )
    if not fits:
        resize_by_gathering(node)
        return
    given = node.inputs[2] if scales is None else node.constant(scales, "scales", np.float32)
    node.replace("Resize", [node.inputs[0], given], mode=mode)


def _exact_scales(node: NodeAtBoundary) -> Array | None:
    """Return the scales, also those that sizes mean, if each gives exactly the wanted size; None where they are
    unknown.
    """
    scales = node.elements(2)
    if scales is not None and scales.size:
        return scales
    sizes, shape = node.elements(3), static_shape(node, node.inputs[0])
    if sizes is None or shape is None or 0 in shape:
        return None
    quotients = np.asarray(sizes, dtype=np.float32) / np.asarray(shape, dtype=np.float32)
    given = zip(shape, quotients, sizes, strict=True)
    # Some engines multiply in float32, others in float64.
    exact = all(
        math.floor(dim * float(scale)) == math.floor(np.float32(dim) * scale) == size for dim, scale, size in given
    )
    return quotients if exact else None


def _rounds_as_resize_10(rounding: str, scales: Array) -> bool:
    """Return True when the rounding is that of Resize-10, or the scales are 1 where it could differ."""
    grows, shrinks = bool(np.any(scales > 1)), bool(np.any(scales < 1))
    return (rounding == "floor" and not shrinks) or (rounding == "ceil" and not grows)


def _repeats_elements(coordinates: str, rounding: str, scales: Array) -> bool:
    """Return True when the scales are whole numbers and each element is repeated."""
    whole = bool(np.all((scales >= 1) & (scales == np.floor(scales))))
    centred = coordinates in ("half_pixel", "pytorch_half_pixel") and rounding in _ROUNDING
    return whole and (centred or (coordinates == "tf_half_pixel_for_nn" and rounding == "floor"))


changed(
    "Resize",
    13,
    "tf_half_pixel_for_nn was removed, and sizes may no longer come together with (empty) scales",
    down=always,
)


@exact_upward("Resize", 13)
def mode_exists_at_13(node: NodeAtBoundary) -> bool:
    """Return True when the coordinate mode exists from 13 on, and scales (not sizes) tell the size of the output."""
    mode = node.value_or_default("coordinate_transformation_mode")
    return mode not in (UNRESOLVED, "tf_half_pixel_for_nn") and not node.uses_input(3)


@upward("Resize", 13)
def keep_scales_or_sizes(node: NodeAtBoundary) -> None:
    """Omit the scales where sizes are given.

    tf_half_pixel_for_nn is half_pixel without the subtraction of a half: rounded down it is half_pixel rounded to the
    nearest, and rounded to the nearest it is half_pixel rounded up.
    """
    node.require_types()
    if node.uses_input(3):
        node.inputs[2] = ""
    if node.known_value_or_default("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return
    rounding = node.known_value_or_default("nearest_mode")
    if node.known_value_or_default("mode") != "nearest" or rounding not in _HALF_LESS:
        raise Inexact("tf_half_pixel_for_nn was removed, and without it only some ways of rounding are expressible")
    node.set("coordinate_transformation_mode", "half_pixel", "tf_half_pixel_for_nn was removed")
    node.set("nearest_mode", _HALF_LESS[rounding], f"what {rounding} was of a coordinate greater by a half")


@downward("Resize", 13)
def add_empty_roi_and_scales(node: NodeAtBoundary) -> None:
    """Add empty constants: below 13 roi and scales are required, and may be empty."""
    node.require_types()
    node.inputs.extend([""] * (3 - len(node.inputs)))
    for index, hint in ((1, "roi"), (2, "scales")):
        if not node.inputs[index]:
            node.inputs[index] = node.constant(np.zeros(0), hint, np.float32)


@downward("Resize", 18)
def resize_all_axes(node: NodeAtBoundary) -> None:
    """Add roi, scales and sizes that change nothing for the axes that the node does not name. Below 18 they are for all
    axes.

    Sizes that keep the aspect ratio are computed for a known shape. Gather where antialiasing shrinks, and where a
    policy comes with sizes that are rounded or known only at run time.
    """
    node.require_types()
    policy = node.known_value_or_default("keep_aspect_ratio_policy")
    axes, rank = node.known_value("axes"), node.rank(0)
    if axes is not None:
        rank = node.known_rank(0)
        axes = [axis % rank for axis in axes]
    sizes = _sizes_of_policy(node, policy, axes) if policy != "stretch" and node.uses_input(3) else []
    if sizes is None or _is_antialiased(node):
        resize_by_gathering(node)
        return
    if axes is not None:
        _spread(node, axes, node.known_rank(0))
    if sizes:
        node.inputs[3] = node.constant(sizes, "sizes")
    node.drop("axes", "antialias", "keep_aspect_ratio_policy", why=f"it does not exist {node.side}")


def _sizes_of_policy(node: NodeAtBoundary, policy: str, axes: list[int] | None) -> list[int] | None:
    """Return the sizes of all axes; None where they are unknown or rounded. Below 18 each axis has the scale of its
    sizes, which equals the one scale of the policy where nothing was rounded.
    """
    sizes, shape = node.elements(3), static_shape(node, node.inputs[0])
    if sizes is None or shape is None or 0 in shape:
        return None
    chosen = range(len(shape)) if axes is None else axes
    ratios = [int(size) / shape[axis] for size, axis in zip(sizes, chosen, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    new = list(shape)
    for axis in chosen:
        new[axis] = math.floor(scale * shape[axis] + 0.5)
        if not math.isclose(new[axis], scale * shape[axis], rel_tol=1e-12):
            return None
    return new


def _is_antialiased(node: NodeAtBoundary) -> bool:
    """Return True where antialiasing may make a difference: where the tensor may shrink, and with exclude_outside,
    which runtimes accept for linear resizing only then.
    """
    if not node.known_value_or_default("antialias") or node.known_value_or_default("mode") == "nearest":
        return False
    if node.known_value_or_default("exclude_outside"):
        return True
    scales, sizes, shape = node.elements(2), node.elements(3), static_shape(node, node.inputs[0])
    if scales is not None:
        return bool(np.any(scales < 1))
    if sizes is None or shape is None or node.known_value_or_default("keep_aspect_ratio_policy") != "stretch":
        return True
    axes = node.known_value("axes")
    chosen = shape if axes is None else [shape[axis] for axis in axes]
    return any(size < dim for size, dim in zip(sizes, chosen, strict=True))


def _spread(node: NodeAtBoundary, axes: list[int], rank: int) -> None:
    """Put the values for some axes among values that change nothing for the others."""
    f = Formula(node)
    places = f.number(axes)
    if node.uses_input(1):
        rest = f.number([0] * rank + [1] * rank, "float32").cast(node.known_dtype(1))
        node.inputs[1] = f.put(rest, f.joined([places, places + rank]), f.given(1)).name
    if node.uses_input(2):
        node.inputs[2] = f.put(f.number([1] * rank, "float32"), places, f.given(2, "float32")).name
    if node.uses_input(3):
        node.inputs[3] = f.put(f.shape(node.inputs[0]), places, f.given(3, "int64")).name


changed("Resize", 19, "half_pixel_symmetric was added", up=always)


@exact_downward("Resize", 19)
def mode_exists_below_19(node: NodeAtBoundary) -> bool:
    """Return True when the coordinate mode is not half_pixel_symmetric, which 19 added."""
    return node.value_or_default("coordinate_transformation_mode") not in (UNRESOLVED, "half_pixel_symmetric")


@downward("Resize", 19)
def replace_half_pixel_symmetric(node: NodeAtBoundary) -> None:
    """Replace half_pixel_symmetric by half_pixel where no size was rounded; compute the coordinates otherwise."""
    node.require_types()
    if node.known_value("coordinate_transformation_mode") != "half_pixel_symmetric":
        raise Inexact("half_pixel_symmetric was added")
    shape, scales, axes = static_shape(node, node.inputs[0]), node.elements(2), node.known_value("axes")
    exact = node.uses_input(3) and node.known_value_or_default("keep_aspect_ratio_policy") == "stretch"
    if not exact and shape is not None and scales is not None:
        chosen = shape if axes is None else [shape[axis] for axis in axes]
        exact = all((float(scale) * dim).is_integer() for scale, dim in zip(scales, chosen, strict=True))
    if exact:
        node.set("coordinate_transformation_mode", "half_pixel", "the same for sizes that are not rounded")
    else:
        resize_by_gathering(node)
