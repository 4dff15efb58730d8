"""Upsample and Resize: five sets of inputs, and coordinates that were implicit below opset 11."""

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
from splitgraph.conversion.writing.resampling import is_sized, resize_by_gathering
from splitgraph.conversion.writing.shape_nodes import static_shape
from splitgraph.deferred import np

_TO_NEW_MODES = {"nearest": "nearest", "bilinear": "linear"}

# Rounding modes for which a scale that is a whole number repeats each element, from the middle of a pixel on.
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil")

# How a coordinate is rounded, by how one that is less by a half is rounded to the same.
_HALF_LESS = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}

# Upsample -----------------------------------------------------------------------------------------------------------

changed("Upsample", 7, "the attributes height_scale and width_scale became scales")


@upward("Upsample", 7)
def scales_of_all_axes(context: AdapterContext) -> None:
    """height_scale and width_scale are two of four scales, the others are 1; "bilinear" became "linear"."""
    context.require_types()
    mode = context.known_value("mode", "nearest")
    scales = [1.0, 1.0, context.known_value("height_scale"), context.known_value("width_scale")]
    if mode not in _TO_NEW_MODES or None in scales:
        raise Inexact(f"mode {mode} with scales {scales[2:]} has no meaning")
    context.drop("height_scale", "width_scale", why="all scales are one attribute")
    context.set("scales", scales, "the scales of all axes")
    context.set("mode", _TO_NEW_MODES[mode], "the mode was renamed")


@downward("Upsample", 7)
def scales_of_an_image(context: AdapterContext) -> None:
    """Four scales of which the first two are 1 are height_scale and width_scale."""
    context.require_types()
    scales, mode = context.known_value("scales"), context.known_value("mode", "nearest")
    old_modes = {new: old for old, new in _TO_NEW_MODES.items()}
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1 or mode not in old_modes:
        raise Inexact("below it, only height and width of images are resized")
    context.drop("scales", why=f"it does not exist {context.side}")
    context.set("height_scale", scales[2], "the scale of the third axis")
    context.set("width_scale", scales[3], "the scale of the fourth axis")
    context.set("mode", old_modes[mode], "the mode was renamed")


changed("Upsample", 9, "the attribute scales became an input")


@upward("Upsample", 9)
def scales_as_input(context: AdapterContext) -> None:
    """The attribute scales becomes a constant."""
    context.require_types()
    context.inputs.append(context.attribute_as_input("scales", np.float32))


@downward("Upsample", 9)
def scales_as_attribute(context: AdapterContext) -> None:
    """A constant second input becomes the attribute scales."""
    context.require_types()
    scales = context.elements(1)
    if scales is None:
        raise Inexact(f"scales is an attribute {context.side}, and here it is known only at run time")
    del context.inputs[1:]
    context.set("scales", [float(scale) for scale in scales], f"it is an attribute {context.side}")


changed("Upsample", 10, "it is deprecated from then on; Resize replaces it")


@upward("Upsample", 10)
def resize_instead(context: AdapterContext) -> None:
    """Resize-10 does what Upsample-9 does, for scales below 1 too."""
    context.rename("Resize")


# Resize -------------------------------------------------------------------------------------------------------------

unchanged("Resize", 18)


@downward("Resize", 10)
def upsample_instead(context: AdapterContext) -> None:
    """Upsample-9 takes scales of 1 and more; with others, elements are gathered."""
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
def asymmetric_coordinates(context: AdapterContext) -> None:
    """Below 11 coordinates are divided by the scale; the nearest element is rounded down where the tensor grows and up
    where it shrinks (as onnx's own test of Resize-10 and onnxruntime have it), axis by axis: two nodes, one for the
    axes that grow and one for those that shrink, where the scales are of both kinds or not known.
    """
    context.require_types()
    data, scales = context.inputs
    mode = context.known_value("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise Inexact(f"Resize knows no mode {mode} {context.opset - 1}")
    roi = context.constant(np.zeros(0), "roi", np.float32)
    context.set("coordinate_transformation_mode", "asymmetric", "what Resize did before it had a choice")
    found = context.elements(1)
    if mode == "nearest":
        shrinks = found is not None and bool(np.any(found < 1))
        if found is None or (shrinks and np.any(found > 1)):
            one = context.constant([1], "one", np.float32)
            up = context.emit("Max", [scales, one], "scales_up")
            least = None if found is not None else context.emit("ReduceMin", [scales], "least", keepdims=1)
            data, shrinks = _grown(context, data, roi, up, least, is_larger=_is_larger(context, found)), True
            scales = context.emit("Min", [scales, one], "scales_down")
        context.set("nearest_mode", "ceil" if shrinks else "floor", "what Resize did before it had a choice")
    context.inputs[:] = [data, roi, scales]


def _grown(context: AdapterContext, data: str, roi: str, scales: str, least: str | None, *, is_larger: bool) -> str:
    """What the axes that grow give. onnxruntime copies a tensor that keeps its size, whatever the scales are, which
    the one node did not do where it shrank other axes: a further axis, of which there are two where the least scale is
    below 1, keeps the size from being the same. least: that scale, None where it is below 1.
    """
    chosen = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": "nearest"}
    if is_larger:
        return context.emit("Resize", [data, roi, scales], "grown", **chosen)
    copies = context.constant([2], "two", np.float32)
    if least is not None:
        one = context.constant([1], "one", np.float32)
        lacking = context.emit("Ceil", [context.emit("Sub", [one, least], "lacking")], "lacking")
        copies = context.emit(
            "Add", [one, context.emit("Max", [lacking, context.constant([0], "zero", np.float32)], "more")], "copies"
        )
    twice = context.emit("Concat", [copies, scales], "scales_of_more", axis=0)
    more = context.emit("Unsqueeze", [data], "one_more_axis", axes=[0])
    grown = context.emit("Resize", [more, roi, twice], "grown_twice", **chosen)
    return context.emit("Gather", [grown, context.constant(0, "first")], "grown", axis=0)


def _is_larger(context: AdapterContext, scales: Array | None) -> bool:
    """True when it is certain that some axis has more elements than before."""
    shape = context.input_type(0).shape
    if scales is None or shape is None:
        return False
    known = zip(shape, scales, strict=True)
    return any(scale >= 2 or (isinstance(dim, int) and math.floor(dim * float(scale)) > dim) for dim, scale in known)


@downward("Resize", 11)
def implicit_coordinates(context: AdapterContext) -> None:
    """Below 11 only asymmetric coordinates exist, rounded down where the tensor grows and up where it shrinks. Scales
    that are whole numbers repeat each element also from the middle of a pixel on. All else is gathered.
    """
    context.require_types()
    scales = _scales(context)
    mode = context.known_value("mode", "nearest")
    coordinates = context.known_value("coordinate_transformation_mode", "half_pixel")
    rounding = context.known_value("nearest_mode", "round_prefer_floor")
    if mode == "linear":
        scaled = scales is not None or not is_sized(context)
        fits = coordinates == "asymmetric" and scaled and not context.known_value("exclude_outside", 0)
    else:
        before = scales is not None and coordinates == "asymmetric" and _as_before(rounding, scales)
        fits = mode == "nearest" and (before or (scales is not None and _repeats(coordinates, rounding, scales)))
    if not fits:
        resize_by_gathering(context)
        return
    given = context.inputs[2] if scales is None else context.constant(scales, "scales", np.float32)
    context.replace("Resize", [context.inputs[0], given], mode=mode)


def _scales(context: AdapterContext) -> Array | None:
    """The scales, those that the sizes mean included, each giving exactly the size that is asked for; None where they
    are not known.
    """
    scales = context.elements(2)
    if scales is not None and scales.size:
        return scales
    sizes, shape = context.elements(3), static_shape(context, context.inputs[0])
    if sizes is None or shape is None or 0 in shape:
        return None
    found = np.asarray(sizes, dtype=np.float32) / np.asarray(shape, dtype=np.float32)
    given = zip(shape, found, sizes, strict=True)
    # Some multiply in float32, and some in float64.
    exact = all(
        math.floor(dim * float(scale)) == math.floor(np.float32(dim) * scale) == size for dim, scale, size in given
    )
    return found if exact else None


def _as_before(rounding: str, scales: Array) -> bool:
    """True when the rounding is the one that Resize-10 chooses, or no scale but 1 is there to make a difference."""
    grows, shrinks = bool(np.any(scales > 1)), bool(np.any(scales < 1))
    return (rounding == "floor" and not shrinks) or (rounding == "ceil" and not grows)


def _repeats(coordinates: str, rounding: str, scales: Array) -> bool:
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
def resize_mode_survives(crossing: Crossing) -> bool:
    """Resize 11|13, upward: the coordinate mode still exists, and scales (not sizes) tell the output's size."""
    mode = crossing.value("coordinate_transformation_mode", "half_pixel")
    return mode not in (UNRESOLVED, "tf_half_pixel_for_nn") and not crossing.uses_input(3)


@upward("Resize", 13)
def one_of_scales_and_sizes(context: AdapterContext) -> None:
    """With sizes, the scales, empty below 13, are left out. tf_half_pixel_for_nn is half_pixel without the subtraction
    of a half: to round it down is to round half_pixel to the nearest, the nearest of it is half_pixel rounded up.
    """
    context.require_types()
    if context.uses_input(3):
        context.inputs[2] = ""
    if context.known_value("coordinate_transformation_mode", "half_pixel") != "tf_half_pixel_for_nn":
        return
    rounding = context.known_value("nearest_mode", "round_prefer_floor")
    if context.known_value("mode", "nearest") != "nearest" or rounding not in _HALF_LESS:
        raise Inexact("tf_half_pixel_for_nn was removed, and without it only some ways of rounding are expressible")
    context.set("coordinate_transformation_mode", "half_pixel", "tf_half_pixel_for_nn was removed")
    context.set("nearest_mode", _HALF_LESS[rounding], f"what {rounding} was of a coordinate greater by a half")


@downward("Resize", 13)
def roi_and_scales_are_there(context: AdapterContext) -> None:
    """Below 13 roi and scales must be there, and may be empty."""
    context.require_types()
    context.inputs.extend([""] * (3 - len(context.inputs)))
    for index, hint in ((1, "roi"), (2, "scales")):
        if not context.inputs[index]:
            context.inputs[index] = context.constant(np.zeros(0), hint, np.float32)


@downward("Resize", 18)
def all_axes(context: AdapterContext) -> None:
    """Below 18, roi, scales and sizes are for all axes: 0 to 1, 1 and the size of the data for those left out. Sizes
    that keep the aspect ratio are worked out for a known shape. What shrinks with antialiasing is gathered, and so is
    what has a policy and sizes that are known only at run time, or rounded.
    """
    context.require_types()
    policy = context.known_value("keep_aspect_ratio_policy", "stretch")
    axes, rank = context.known_value("axes"), context.rank(0)
    if axes is not None:
        rank = context.known_rank(0)
        axes = [axis % rank for axis in axes]
    sizes = _sizes_of_policy(context, policy, axes) if policy != "stretch" and context.uses_input(3) else []
    if sizes is None or _smooths(context):
        resize_by_gathering(context)
        return
    if axes is not None:
        _spread(context, axes, context.known_rank(0))
    if sizes:
        context.inputs[3] = context.constant(sizes, "sizes")
    context.drop("axes", "antialias", "keep_aspect_ratio_policy", why=f"it does not exist {context.side}")


def _sizes_of_policy(context: AdapterContext, policy: str, axes: list[int] | None) -> list[int] | None:
    """The sizes of all axes; None where they are not known, or are rounded: below 18 the scale of an axis is that of
    its sizes, the policy's one scale for all where nothing was rounded.
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


def _smooths(context: AdapterContext) -> bool:
    """True where antialiasing may make a difference: where the tensor may shrink; and where exclude_outside comes with
    it, which runtimes take for linear resizing only then.
    """
    if not context.known_value("antialias", 0) or context.known_value("mode", "nearest") == "nearest":
        return False
    if context.known_value("exclude_outside", 0):
        return True
    scales, sizes, shape = context.elements(2), context.elements(3), static_shape(context, context.inputs[0])
    if scales is not None:
        return bool(np.any(scales < 1))
    if sizes is None or shape is None or context.known_value("keep_aspect_ratio_policy", "stretch") != "stretch":
        return True
    axes = context.known_value("axes")
    chosen = shape if axes is None else [shape[axis] for axis in axes]
    return any(size < dim for size, dim in zip(sizes, chosen, strict=True))


def _spread(context: AdapterContext, axes: list[int], rank: int) -> None:
    """Put what is given for some axes among what means no change for the others."""
    where = context.constant(axes, "axes")
    if context.uses_input(1):
        rest = context.constant([0] * rank + [1] * rank, "no_roi", np.float32)
        both = context.constant([*axes, *(axis + rank for axis in axes)], "roi_axes")
        dtype = context.known_dtype(1)
        if dtype != "float32":
            rest = context.emit("Cast", [rest], "no_roi_typed", to={"float16": 10, "float64": 11}[dtype])
        context.inputs[1] = _put(context, rest, both, context.inputs[1], "roi")
    if context.uses_input(2):
        rest = context.constant([1] * rank, "no_scales", np.float32)
        context.inputs[2] = _put(context, rest, where, context.inputs[2], "scales")
    if context.uses_input(3):
        context.inputs[3] = _put(
            context, context.emit("Shape", [context.inputs[0]], "shape"), where, context.inputs[3], "sizes"
        )


def _put(context: AdapterContext, rest: str, where: str, given: str, hint: str) -> str:
    before, places, updates = (context.values.elements(name) for name in (rest, where, given))
    if before is None or places is None or updates is None:
        return context.emit("ScatterElements", [rest, where, given], hint, axis=0)
    whole = before.copy()
    whole[places] = updates
    return context.constant(whole, hint, whole.dtype)


changed("Resize", 19, "half_pixel_symmetric was added", up=always)


@exact_downward("Resize", 19)
def resize_mode_existed(crossing: Crossing) -> bool:
    """Resize 18|19, downward: the coordinate mode is not the one that opset 19 added."""
    return crossing.value("coordinate_transformation_mode", "half_pixel") not in (UNRESOLVED, "half_pixel_symmetric")


@downward("Resize", 19)
def symmetric_without_rounding(context: AdapterContext) -> None:
    """half_pixel_symmetric is half_pixel where no size was rounded; else the coordinates are worked out."""
    context.require_types()
    if context.known_value("coordinate_transformation_mode") != "half_pixel_symmetric":
        raise Inexact("half_pixel_symmetric was added")
    shape, scales, axes = static_shape(context, context.inputs[0]), context.elements(2), context.known_value("axes")
    exact = context.uses_input(3) and context.known_value("keep_aspect_ratio_policy", "stretch") == "stretch"
    if not exact and shape is not None and scales is not None:
        chosen = shape if axes is None else [shape[axis] for axis in axes]
        exact = all((float(scale) * dim).is_integer() for scale, dim in zip(scales, chosen, strict=True))
    if exact:
        context.set("coordinate_transformation_mode", "half_pixel", "the same for sizes that are not rounded")
    else:
        resize_by_gathering(context)
