"""Upsample and Resize: scales became an input (Upsample 9), Resize replaced Upsample (10), and coordinates became an
attribute (11) with more and more modes.
"""

from __future__ import annotations

import math

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    exact_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.formula import Formula, Term, static_shape
from splitgraph.conversion.writing.resampling import is_sized, resize_by_gathering
from splitgraph.deferred import np

_TO_NEW_MODES = {"nearest": "nearest", "bilinear": "linear"}

# With these rounding modes and half_pixel, a scale that is a whole number repeats each element.
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil")

# From the rounding of a coordinate to the rounding that gives the same for a coordinate less a half.
_HALF_LESS = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}

# Upsample -----------------------------------------------------------------------------------------------------------

changed("Upsample", 7, "the attributes height_scale and width_scale became scales")


@upward("Upsample", 7)
def join_scales(context: AdapterContext) -> None:
    """Joins height_scale and width_scale to four scales, the first two of which are 1. Renames "bilinear" to
    "linear".
    """
    context.require_types()
    mode = context.known_value_or_default("mode")
    scales = [1.0, 1.0, context.known_value("height_scale"), context.known_value("width_scale")]
    if mode not in _TO_NEW_MODES or None in scales:
        raise Inexact(f"mode {mode} with scales {scales[2:]} has no meaning")
    context.drop("height_scale", "width_scale", why="all scales are one attribute")
    context.set("scales", scales, "the scales of all axes")
    context.set("mode", _TO_NEW_MODES[mode], "the mode was renamed")


@downward("Upsample", 7)
def split_scales(context: AdapterContext) -> None:
    """Splits four scales, the first two of which are 1, into height_scale and width_scale."""
    context.require_types()
    scales, mode = context.known_value("scales"), context.known_value_or_default("mode")
    old_modes = {new: old for old, new in _TO_NEW_MODES.items()}
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1 or mode not in old_modes:
        raise Inexact("below it, only height and width of images are resized")
    context.drop("scales", why=f"it does not exist {context.side}")
    context.set("height_scale", scales[2], "the scale of the third axis")
    context.set("width_scale", scales[3], "the scale of the fourth axis")
    context.set("mode", old_modes[mode], "the mode was renamed")


changed("Upsample", 9, "the attribute scales became an input")


@upward("Upsample", 9)
def make_scales_an_input(context: AdapterContext) -> None:
    """Turns the attribute scales into a constant."""
    context.require_types()
    context.inputs.append(context.attribute_as_input("scales", np.float32))


@downward("Upsample", 9)
def make_scales_an_attribute(context: AdapterContext) -> None:
    """Turns a constant second input into the attribute scales."""
    context.require_types()
    scales = context.elements(1)
    if scales is None:
        raise Inexact(f"scales is an attribute {context.side}, and here it is known only at run time")
    del context.inputs[1:]
    context.set("scales", [float(scale) for scale in scales], f"it is an attribute {context.side}")


changed("Upsample", 10, "it is deprecated from then on; Resize replaces it")


@upward("Upsample", 10)
def replace_by_resize(context: AdapterContext) -> None:
    """Renames the node: Resize-10 does what Upsample-9 does, also for scales below 1."""
    context.rename("Resize")


# Resize -------------------------------------------------------------------------------------------------------------

unchanged("Resize", 18)


@downward("Resize", 10)
def replace_by_upsample(context: AdapterContext) -> None:
    """Renames the node where all scales are at least 1, which Upsample-9 needs; gathers elements otherwise."""
    scales = context.elements(1)
    if scales is None or np.any(scales < 1):
        resize_by_gathering(context)
        return
    mode = context.attributes.get("mode")
    context.replace("Upsample", context.inputs)
    if mode is not None:
        context.attributes["mode"] = mode


changed(
    "Resize", 11, "the inputs changed, and the way coordinates are transformed, implicit below it, became an attribute"
)


@upward("Resize", 11)
def set_asymmetric_coordinates(context: AdapterContext) -> None:
    """Sets the attributes that mean what Resize-10 does: coordinates are divided by the scale, and the nearest element
    is rounded down where an axis grows and up where it shrinks (as in onnx's own test of Resize-10 and in onnxruntime).

    Where axes of both kinds exist, or the scales are unknown, the node becomes two nodes: one for the axes that grow
    and one for those that shrink.
    """
    context.require_types()
    mode, f = context.known_value_or_default("mode"), Formula(context)
    if mode not in ("nearest", "linear"):
        raise Inexact(f"Resize-10 knows no mode {mode}")
    data, scales, roi = f.input(0), f.input(1, "float32"), f.number([], "float32")
    context.set("coordinate_transformation_mode", "asymmetric", "what Resize did before it had a choice")
    known = context.elements(1)
    if mode == "nearest":
        shrinks = known is not None and bool(np.any(known < 1))
        if known is None or (shrinks and np.any(known > 1)):
            data = _grow(f, data, roi, scales, is_known=known is not None, is_larger=_is_larger(context, known))
            scales, shrinks = f.node("Min", scales, f.number([1], "float32")), True
        context.set("nearest_mode", "ceil" if shrinks else "floor", "what Resize did before it had a choice")
    context.inputs[:] = [data.name, roi.name, scales.name]


def _grow(f: Formula, data: Term, roi: Term, scales: Term, *, is_known: bool, is_larger: bool) -> Term:
    """Resizes the axes that grow.

    onnxruntime copies a tensor that keeps its size, whatever the scales are; the one node did not do so where other
    axes shrank. So the tensor gets a further axis, which changes the size: two copies where the least scale is below 1.
    is_known: the scales are known, and the least is below 1. is_larger: some axis certainly gets more elements.
    """
    chosen = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    up, copies = f.node("Max", scales, f.number([1], "float32")), f.number([2], "float32")
    if is_larger:
        return f.node("Resize", data, roi, up, **chosen)
    if not is_known:
        lacking = (1 - f.node("ReduceMin", scales, keepdims=1)).ceil()
        copies = f.number([1], "float32") + f.node("Max", lacking, f.number([0], "float32"))
    return f.node("Resize", data.unsqueezed(0), roi, f.joined([copies, up]), **chosen).take(0)


def _is_larger(context: AdapterContext, scales: Array | None) -> bool:
    """True when some axis certainly gets more elements."""
    shape = context.input_type(0).shape
    if scales is None or shape is None:
        return False
    known = zip(shape, scales, strict=True)
    return any(scale >= 2 or (isinstance(dim, int) and math.floor(dim * float(scale)) > dim) for dim, scale in known)


@downward("Resize", 11)
def leave_out_coordinates(context: AdapterContext) -> None:
    """Leaves out asymmetric coordinates that are rounded down where the tensor grows and up where it shrinks, the only
    ones below 11. Scales that are whole numbers repeat each element also with half_pixel. Everything else is gathered.
    """
    context.require_types()
    scales = _exact_scales(context)
    mode = context.known_value_or_default("mode")
    coordinates = context.known_value_or_default("coordinate_transformation_mode")
    rounding = context.known_value_or_default("nearest_mode")
    if mode == "linear":
        scaled = scales is not None or not is_sized(context)
        fits = coordinates == "asymmetric" and scaled and not context.known_value_or_default("exclude_outside")
    else:
        before = scales is not None and coordinates == "asymmetric" and _rounds_as_resize_10(rounding, scales)
        fits = mode == "nearest" and (
            before or (scales is not None and _repeats_elements(coordinates, rounding, scales))
        )
    if not fits:
        resize_by_gathering(context)
        return
    given = context.inputs[2] if scales is None else context.constant(scales, "scales", np.float32)
    context.replace("Resize", [context.inputs[0], given], mode=mode)


def _exact_scales(context: AdapterContext) -> Array | None:
    """Gives the scales, also those that sizes mean, if each gives exactly the wanted size; None where they
    are unknown.
    """
    scales = context.elements(2)
    if scales is not None and scales.size:
        return scales
    sizes, shape = context.elements(3), static_shape(context, context.inputs[0])
    if sizes is None or shape is None or 0 in shape:
        return None
    found = np.asarray(sizes, dtype=np.float32) / np.asarray(shape, dtype=np.float32)
    given = zip(shape, found, sizes, strict=True)
    # Some engines multiply in float32, others in float64.
    exact = all(
        math.floor(dim * float(scale)) == math.floor(np.float32(dim) * scale) == size for dim, scale, size in given
    )
    return found if exact else None


def _rounds_as_resize_10(rounding: str, scales: Array) -> bool:
    """True when the rounding is that of Resize-10, or the scales are 1 where it could differ."""
    grows, shrinks = bool(np.any(scales > 1)), bool(np.any(scales < 1))
    return (rounding == "floor" and not shrinks) or (rounding == "ceil" and not grows)


def _repeats_elements(coordinates: str, rounding: str, scales: Array) -> bool:
    """True when the scales are whole numbers and each element is repeated."""
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
def mode_exists_at_13(crossing: Crossing) -> bool:
    """True when the coordinate mode exists from 13 on, and scales (not sizes) tell the size of the output."""
    mode = crossing.value_or_default("coordinate_transformation_mode")
    return mode not in (UNRESOLVED, "tf_half_pixel_for_nn") and not crossing.uses_input(3)


@upward("Resize", 13)
def keep_scales_or_sizes(context: AdapterContext) -> None:
    """Omits the scales where sizes are given.

    tf_half_pixel_for_nn is half_pixel without the subtraction of a half: rounded down it is half_pixel rounded to the
    nearest, and rounded to the nearest it is half_pixel rounded up.
    """
    context.require_types()
    if context.uses_input(3):
        context.inputs[2] = ""
    if context.known_value_or_default("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return
    rounding = context.known_value_or_default("nearest_mode")
    if context.known_value_or_default("mode") != "nearest" or rounding not in _HALF_LESS:
        raise Inexact("tf_half_pixel_for_nn was removed, and without it only some ways of rounding are expressible")
    context.set("coordinate_transformation_mode", "half_pixel", "tf_half_pixel_for_nn was removed")
    context.set("nearest_mode", _HALF_LESS[rounding], f"what {rounding} was of a coordinate greater by a half")


@downward("Resize", 13)
def add_empty_roi_and_scales(context: AdapterContext) -> None:
    """Adds empty constants: below 13 roi and scales are required, and may be empty."""
    context.require_types()
    context.inputs.extend([""] * (3 - len(context.inputs)))
    for index, hint in ((1, "roi"), (2, "scales")):
        if not context.inputs[index]:
            context.inputs[index] = context.constant(np.zeros(0), hint, np.float32)


@downward("Resize", 18)
def resize_all_axes(context: AdapterContext) -> None:
    """Adds roi, scales and sizes that change nothing for the axes that the node does not name. Below 18 they are for
    all axes.

    Sizes that keep the aspect ratio are computed for a known shape. Gathers where antialiasing shrinks, and where a
    policy comes with sizes that are rounded or known only at run time.
    """
    context.require_types()
    policy = context.known_value_or_default("keep_aspect_ratio_policy")
    axes, rank = context.known_value("axes"), context.rank(0)
    if axes is not None:
        rank = context.known_rank(0)
        axes = [axis % rank for axis in axes]
    sizes = _sizes_of_policy(context, policy, axes) if policy != "stretch" and context.uses_input(3) else []
    if sizes is None or _is_antialiased(context):
        resize_by_gathering(context)
        return
    if axes is not None:
        _spread(context, axes, context.known_rank(0))
    if sizes:
        context.inputs[3] = context.constant(sizes, "sizes")
    context.drop("axes", "antialias", "keep_aspect_ratio_policy", why=f"it does not exist {context.side}")


def _sizes_of_policy(context: AdapterContext, policy: str, axes: list[int] | None) -> list[int] | None:
    """Gives the sizes of all axes; None where they are unknown or rounded. Below 18 each axis has the scale of its
    sizes, which equals the one scale of the policy where nothing was rounded.
    """
    sizes, shape = context.elements(3), static_shape(context, context.inputs[0])
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


def _is_antialiased(context: AdapterContext) -> bool:
    """True where antialiasing may make a difference: where the tensor may shrink, and with exclude_outside, which
    runtimes accept for linear resizing only then.
    """
    if not context.known_value_or_default("antialias") or context.known_value_or_default("mode") == "nearest":
        return False
    if context.known_value_or_default("exclude_outside"):
        return True
    scales, sizes, shape = context.elements(2), context.elements(3), static_shape(context, context.inputs[0])
    if scales is not None:
        return bool(np.any(scales < 1))
    if sizes is None or shape is None or context.known_value_or_default("keep_aspect_ratio_policy") != "stretch":
        return True
    axes = context.known_value("axes")
    chosen = shape if axes is None else [shape[axis] for axis in axes]
    return any(size < dim for size, dim in zip(sizes, chosen, strict=True))


def _spread(context: AdapterContext, axes: list[int], rank: int) -> None:
    """Puts the values for some axes among values that change nothing for the others."""
    f = Formula(context)
    places = f.number(axes)
    if context.uses_input(1):
        rest = f.number([0] * rank + [1] * rank, "float32").cast(context.known_dtype(1))
        context.inputs[1] = f.put(rest, f.joined([places, places + rank]), f.given(1)).name
    if context.uses_input(2):
        context.inputs[2] = f.put(f.number([1] * rank, "float32"), places, f.given(2, "float32")).name
    if context.uses_input(3):
        context.inputs[3] = f.put(f.shape(context.inputs[0]), places, f.given(3, "int64")).name


changed("Resize", 19, "half_pixel_symmetric was added", up=always)


@exact_downward("Resize", 19)
def mode_exists_below_19(crossing: Crossing) -> bool:
    """True when the coordinate mode is not half_pixel_symmetric, which 19 added."""
    return crossing.value_or_default("coordinate_transformation_mode") not in (UNRESOLVED, "half_pixel_symmetric")


@downward("Resize", 19)
def replace_half_pixel_symmetric(context: AdapterContext) -> None:
    """Replaces half_pixel_symmetric by half_pixel where no size was rounded; computes the coordinates otherwise."""
    context.require_types()
    if context.known_value("coordinate_transformation_mode") != "half_pixel_symmetric":
        raise Inexact("half_pixel_symmetric was added")
    shape, scales, axes = static_shape(context, context.inputs[0]), context.elements(2), context.known_value("axes")
    exact = context.uses_input(3) and context.known_value_or_default("keep_aspect_ratio_policy") == "stretch"
    if not exact and shape is not None and scales is not None:
        chosen = shape if axes is None else [shape[axis] for axis in axes]
        exact = all((float(scale) * dim).is_integer() for scale, dim in zip(scales, chosen, strict=True))
    if exact:
        context.set("coordinate_transformation_mode", "half_pixel", "the same for sizes that are not rounded")
    else:
        resize_by_gathering(context)
