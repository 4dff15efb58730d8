"""Pad and CenterCropPad: paddings became pads (2) and an input (11), axes (18) and mode=wrap (19) were added; sizes of
CenterCropPad may be int32.
"""

from __future__ import annotations

from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import value_is_one_of
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact, require_few_axes
from splitgraph.conversion.writing.function_bodies import expand
from splitgraph.conversion.writing.shape_nodes import (
    FLOATS,
    as_int64,
    counted_from_front,
    counting,
    dimension,
    scalar,
    static_shape,
    typed,
)
from splitgraph.deferred import np, numpy_helper
from splitgraph.value_type import MAX_WRITTEN

# Pad ----------------------------------------------------------------------------------------------------------------

unchanged("Pad", 13, 18, 21, 23, 24, 25)
changed("Pad", 2, "paddings was renamed to pads, and Pad-1's document contradicts its own example on their order")


@upward("Pad", 2)
def rename_paddings(context: AdapterContext) -> None:
    """Renames paddings to pads. Both documents say that all beginnings come before all ends. The example of Pad-1, with
    both pads of an axis together, is older than opset 1 (onnx/onnx#261, #268).
    """
    context.require_types()
    paddings = context.known_value("paddings")
    context.drop("paddings", why=f"it is called pads {context.side}")
    context.set("pads", list(paddings), "the new name of paddings")


@downward("Pad", 2)
def rename_pads(context: AdapterContext) -> None:
    """Renames pads to paddings. Pad-1 does not say that negative pads remove elements."""
    context.require_types()
    pads = context.known_value("pads")
    if min(pads, default=0) < 0:
        raise Inexact("only from it on negative pads remove elements")
    context.drop("pads", why=f"it is called paddings {context.side}")
    context.set("paddings", list(pads), "the new name of pads")


changed("Pad", 11, "the attributes pads and value became inputs")


@upward("Pad", 11)
def make_pads_an_input(context: AdapterContext) -> None:
    """Turns pads into a constant, and a value that is not 0 into another constant of the type of the data."""
    context.require_types()
    value = context.known_value_or_default("value")
    context.inputs.append(context.attribute_as_input("pads"))
    context.drop("value", why=f"it is an input {context.side}")
    if value != 0 or np.signbit(value):
        context.inputs.append(context.like_data(value, "value"))


@downward("Pad", 11)
def make_pads_an_attribute(context: AdapterContext) -> None:
    """Turns constant pads into an attribute, and a constant value that float32 holds. Gathers the padded tensor where
    they are known only at run time, and for other types than floats.
    """
    pads, value = context.elements(1), context.elements(2) if context.uses_input(2) else np.zeros(1)
    mode = context.known_value_or_default("mode")
    number = 0.0 if mode != "constant" else _as_float32(value)
    if context.known_dtype(0) not in FLOATS or pads is None or number is None:
        _pad_by_gathering(context, mode)
        return
    del context.inputs[1:]
    context.set("pads", [int(count) for count in pads], f"it is an attribute {context.side}")
    context.set("value", number, f"it is an attribute {context.side}")


def _as_float32(value: Array | None) -> float | None:
    """Gives the number that a value holds, None unless float32 holds it."""
    if value is None or value.dtype.kind not in "fV":
        return None
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return number if np.isnan(number) or float(np.float32(number)) == number else None


def _pad_by_gathering(context: AdapterContext, mode: str) -> None:
    """Gathers the padded tensor axis by axis. Elements that are not from the data come from a slice of the constant
    value, appended to the data. Needs opset 9, and opset 10 to wrap.
    """
    rank = context.known_rank(0)
    given = context.constant_ints(3, "axes") if context.uses_input(3) else list(range(rank))
    data, pads = context.inputs[0], context.elements(1)
    value = _padding_value(context) if mode == "constant" else ""
    sizes = static_shape(context, data)
    axes = [axis % rank for axis in given]
    require_few_axes(len(axes))
    for place, axis in enumerate(axes):
        begin, end = (None, None) if pads is None else (int(pads[place]), int(pads[place + len(axes)]))
        if begin == 0 and end == 0:
            continue
        shape = context.emit("Shape", [data], "shape")
        if value:
            one = context.emit("Concat", _with_one(context, shape, axis, rank), "slice_shape", axis=0)
            beyond = context.emit("Expand", [value, one], "slice_beyond")
        size = 0 if sizes is None else sizes[axis]
        if begin is not None and end is not None and size > 0 and max(size, size + begin + end) <= MAX_WRITTEN:
            indices = context.constant(_source_indices(size, begin, end, mode), "indices")
        else:
            length = dimension(context, shape, axis, "length")
            first, past = (dimension(context, context.inputs[1], at, "pad") for at in (place, place + len(axes)))
            indices = _source_indices_at_run_time(context, length, first, past, mode)
        source = context.emit("Concat", [data, beyond], "with_slice", axis=axis) if value else data
        data = context.emit("Gather", [source, indices], "padded", axis=axis)
    context.replace("Identity", [data])


def _padding_value(context: AdapterContext) -> str:
    """Gives the value to pad with, as a scalar."""
    if context.uses_input(2):
        return scalar(context, context.inputs[2], "value")
    dtype = context.known_dtype(0)
    if dtype == "string":
        return context.tensor(numpy_helper.from_array(np.array("", dtype=object)), "value")
    return context.tensor(typed([0], dtype), "value")


def _with_one(context: AdapterContext, shape: str, axis: int, rank: int) -> list[str]:
    """Gives the parts of a shape in which one dimension is 1."""
    before = [context.emit("Gather", [shape, context.constant(range(axis), "before")], "before")] if axis else []
    after = range(axis + 1, rank)
    behind = [context.emit("Gather", [shape, context.constant(after, "behind")], "behind")] if after else []
    return [*before, context.constant([1], "one"), *behind]


def _source_indices(length: int, begin: int, end: int, mode: str) -> Array:
    """Gives the index from which each element along a padded axis comes; `length` is the index of the
    appended slice.
    """
    places = np.arange(-begin, length + end)
    if mode == "edge":
        return np.clip(places, 0, length - 1)
    if mode == "wrap":
        kept = np.arange(max(-begin, 0), length - max(-end, 0))
        if len(kept):
            return kept[np.arange(-max(begin, 0), len(kept) + max(end, 0)) % len(kept)]
        if max(begin, end) > 0:
            raise Inexact("negative pads remove all, and nothing is left that could be wrapped around")
        return kept
    if mode == "reflect":
        # The period is once forwards and once backwards; a single element is its own reflection.
        period = max(2 * (length - 1), 1)
        return np.minimum(places % period, -places % period)
    return np.where((places < 0) | (places >= length), length, places)


def _source_indices_at_run_time(context: AdapterContext, length: str, begin: str, end: str, mode: str) -> str:
    """Computes at run time the index from which each element along a padded axis comes."""
    zero, one = context.constant(0, "zero"), context.constant(1, "one")
    total = context.emit("Add", [context.emit("Add", [length, begin], "longer"), end], "count")
    none = context.emit("Less", [total, zero], "is_none")
    row = context.emit(
        "Reshape", [context.emit("Where", [none, zero, total], "at_least_none"), context.constant([1], "row")], "row"
    )
    numbers = counting(context, row, "numbers")
    if mode == "wrap":
        return _wrapped_at_run_time(context, length, begin, end, numbers)
    places = context.emit("Sub", [numbers, begin], "places")
    too_low = context.emit("Less", [places, zero], "is_before")
    last = context.emit("Sub", [length, one], "last")
    too_high = context.emit("Greater", [places, last], "is_behind")
    if mode == "edge":
        low = context.emit("Where", [too_low, zero, places], "not_before")
        return context.emit("Where", [too_high, last, low], "indices")
    if mode == "reflect":
        mirrored = context.emit("Where", [too_low, context.emit("Neg", [places], "mirrored"), places], "from_front")
        distance = context.emit("Sub", [mirrored, last], "beyond_last")
        is_beyond = context.emit("Greater", [distance, zero], "is_beyond")
        return context.emit(
            "Where", [is_beyond, context.emit("Sub", [last, distance], "from_end"), mirrored], "indices"
        )
    low = context.emit("Where", [too_low, length, places], "not_before")
    return context.emit("Where", [too_high, length, low], "indices")


def _wrapped_at_run_time(context: AdapterContext, length: str, begin: str, end: str, numbers: str) -> str:
    """Computes at run time the indices of mode=wrap. Negative pads shorten the axis first."""
    zero, one = context.constant(0, "zero"), context.constant(1, "one")
    parts = []
    for pad in (begin, end):
        removes = context.emit("Less", [pad, zero], "removes")
        parts.append(context.emit("Where", [removes, pad, zero], "minus_removed"))
    added = context.emit("Sub", [begin, parts[0]], "added_before")
    kept = context.emit("Add", [context.emit("Add", [length, parts[0]], "without_front"), parts[1]], "kept")
    # Where nothing is left there is nothing to divide, but engines check the divisor.
    divisor = context.emit("Where", [context.emit("Less", [zero, kept], "is_left"), kept, one], "divisor")
    around = context.emit("Mod", [context.emit("Sub", [numbers, added], "places"), divisor], "around")
    return context.emit("Sub", [around, parts[0]], "indices")


@downward("Pad", 18)
def pad_all_axes(context: AdapterContext) -> None:
    """Adds pads of 0 for the axes that the node does not name. Below 18 there are pads for all axes."""
    context.require_types()
    rank = context.known_rank(0)
    none = context.constant([0] * 2 * rank, "no_pads")
    axes, pads = context.elements(3), context.elements(1)
    if axes is None:
        size = context.constant(rank, "rank")
        begins = counted_from_front(context, as_int64(context, context.inputs[3], "given_axes"), size, "axes")
        both = [begins, context.emit("Add", [begins, size], "ends")]
        places = context.emit("Concat", both, "places", axis=0)
        context.inputs[1] = context.emit("ScatterElements", [none, places, context.inputs[1]], "pads")
    elif pads is None:
        found = context.constant([*(axes % rank), *(axes % rank + rank)], "places")
        context.inputs[1] = context.emit("ScatterElements", [none, found, context.inputs[1]], "pads")
    else:
        whole = np.zeros(2 * rank, np.int64)
        whole[[*(axes % rank), *(axes % rank + rank)]] = pads
        context.inputs[1] = context.constant(whole, "pads")
    del context.inputs[3:]


changed("Pad", 19, "mode=wrap was added", up=always, down=value_is_one_of("mode", "constant", "reflect", "edge"))


@downward("Pad", 19)
def wrap_by_gathering(context: AdapterContext) -> None:
    """Gathers each axis at the indices from -begin to length + end, modulo its length.

    The document does not say whether elements that negative pads remove come back at the other end. In onnxruntime they
    do not, and here neither.
    """
    if context.known_value_or_default("mode") != "wrap":
        context.require_types()
        raise Inexact("its mode is unknown")
    _pad_by_gathering(context, "wrap")


# CenterCropPad ------------------------------------------------------------------------------------------------------


@downward("CenterCropPad", 18)
def cast_sizes_to_int64(context: AdapterContext) -> None:
    """Casts sizes of int32: the function body computes with the sizes and the shape of the data, which is int64."""
    if context.known_dtype(1) == "int64":
        expand(context)
        return
    context.dialect = context.upper.since_version
    context.inputs[1] = as_int64(context, context.inputs[1], "sizes")
