"""Pad, CenterCropPad and Clip: attributes that became inputs, axes, and padding by wrapping around."""

from __future__ import annotations

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import value_in
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import Inexact, Step
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

unchanged("Pad", 13, 18, 21, 23, 24, 25)
changed("Pad", 2, "paddings was renamed to pads, and Pad-1's document contradicts its own example on their order")


@upward("Pad", 2)
def pads_from_paddings(step: Step) -> None:
    """The attribute was renamed. Both documents of it say that all beginnings come before all ends; the example of
    Pad-1, with the two of an axis together, is older than opset 1 (onnx/onnx#261, #268).
    """
    step.require_types()
    paddings = step.known_value("paddings")
    step.drop("paddings", why=f"it is called pads {step.side}")
    step.set("pads", list(paddings), "the new name of paddings")


@downward("Pad", 2)
def paddings_from_pads(step: Step) -> None:
    """The attribute was renamed; Pad-1 does not say that negative pads remove elements."""
    step.require_types()
    pads = step.known_value("pads")
    if min(pads, default=0) < 0:
        raise Inexact("only from it on negative pads remove elements")
    step.drop("pads", why=f"it is called paddings {step.side}")
    step.set("paddings", list(pads), "the new name of pads")


changed("Pad", 11, "the attributes pads and value became inputs")


@upward("Pad", 11)
def pads_as_input(step: Step) -> None:
    """pads becomes a constant; value, where it is not 0, another one of the type of the data."""
    step.require_types()
    value = step.known_value("value", 0.0)
    step.inputs.append(step.attribute_as_input("pads"))
    step.drop("value", why=f"it is an input {step.side}")
    if value != 0 or np.signbit(value):
        step.inputs.append(step.like_data(value, "value"))


@downward("Pad", 11)
def pads_as_attribute(step: Step) -> None:
    """A constant pads becomes an attribute; so does a constant value that a float32 holds. What is known only at run
    time, and what is no floating-point number, is padded by gathering.
    """
    pads, value = step.elements(1), step.elements(2) if step.uses_input(2) else np.zeros(1)
    mode = step.known_value("mode", "constant")
    number = 0.0 if mode != "constant" else _as_float32(value)
    if step.known_dtype(0) not in FLOATS or pads is None or number is None:
        _pad_by_gathering(step, mode)
        return
    del step.inputs[1:]
    step.set("pads", [int(count) for count in pads], f"it is an attribute {step.side}")
    step.set("value", number, f"it is an attribute {step.side}")


def _as_float32(value: Array | None) -> float | None:
    if value is None or value.dtype.kind not in "fV":
        return None
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return number if np.isnan(number) or float(np.float32(number)) == number else None


@downward("Pad", 18)
def pads_of_all_axes(step: Step) -> None:
    """Below 18 there are pads for all axes: none for those that are left out."""
    step.require_types()
    rank = step.known_rank(0)
    none = step.constant([0] * 2 * rank, "no_pads")
    axes, pads = step.elements(3), step.elements(1)
    if axes is None:
        size = step.constant(rank, "rank")
        begins = counted_from_front(step, as_int64(step, step.inputs[3], "given_axes"), size, "axes")
        both = [begins, step.emit("Add", [begins, size], "ends")]
        places = step.emit("Concat", both, "places", axis=0)
        step.inputs[1] = step.emit("ScatterElements", [none, places, step.inputs[1]], "pads")
    elif pads is None:
        found = step.constant([*(axes % rank), *(axes % rank + rank)], "places")
        step.inputs[1] = step.emit("ScatterElements", [none, found, step.inputs[1]], "pads")
    else:
        whole = np.zeros(2 * rank, np.int64)
        whole[[*(axes % rank), *(axes % rank + rank)]] = pads
        step.inputs[1] = step.constant(whole, "pads")
    del step.inputs[3:]


changed("Pad", 19, "mode=wrap was added", up=always, down=value_in("mode", "constant", "constant", "reflect", "edge"))


@downward("Pad", 19)
def wrapped_by_gathering(step: Step) -> None:
    """Each axis is gathered at the indices from -begin to length + end, modulo its length.

    The document does not say whether what negative pads remove still comes back round the other end; as in onnxruntime,
    it does not.
    """
    if step.known_value("mode", "constant") != "wrap":
        step.require_types()
        raise Inexact("its mode is unknown")
    _pad_by_gathering(step, "wrap")


def _pad_by_gathering(step: Step, mode: str) -> None:
    """Take the elements of the padded tensor axis by axis; an element that is none of the data comes from a slice of
    the constant value that is appended to it. Needs opset 9, and opset 10 to wrap.
    """
    rank = step.known_rank(0)
    given = step.constant_ints(3, "axes") if step.uses_input(3) else list(range(rank))
    data, pads = step.inputs[0], step.elements(1)
    value = _padding_value(step) if mode == "constant" else ""
    sizes = static_shape(step, data)
    axes = [axis % rank for axis in given]
    for place, axis in enumerate(axes):
        begin, end = (None, None) if pads is None else (int(pads[place]), int(pads[place + len(axes)]))
        if begin == 0 and end == 0:
            continue
        shape = step.emit("Shape", [data], "shape")
        if value:
            one = step.emit("Concat", _with_one(step, shape, axis, rank), "slice_shape", axis=0)
            beyond = step.emit("Expand", [value, one], "slice_beyond")
        size = 0 if sizes is None else sizes[axis]
        if begin is not None and end is not None and size > 0 and max(size, size + begin + end) <= MAX_WRITTEN:
            indices = step.constant(_padded(size, begin, end, mode), "indices")
        else:
            length = dimension(step, shape, axis, "length")
            first, past = (dimension(step, step.inputs[1], at, "pad") for at in (place, place + len(axes)))
            indices = _padded_at_run_time(step, length, first, past, mode)
        source = step.emit("Concat", [data, beyond], "with_slice", axis=axis) if value else data
        data = step.emit("Gather", [source, indices], "padded", axis=axis)
    step.replace("Identity", [data])


def _padding_value(step: Step) -> str:
    if step.uses_input(2):
        return scalar(step, step.inputs[2], "value")
    dtype = step.known_dtype(0)
    if dtype == "string":
        return step.tensor(numpy_helper.from_array(np.array("", dtype=object)), "value")
    return step.tensor(typed([0], dtype), "value")


def _with_one(step: Step, shape: str, axis: int, rank: int) -> list[str]:
    """The parts of a shape of which one dimension is 1."""
    before = [step.emit("Gather", [shape, step.constant(range(axis), "before")], "before")] if axis else []
    after = range(axis + 1, rank)
    behind = [step.emit("Gather", [shape, step.constant(after, "behind")], "behind")] if after else []
    return [*before, step.constant([1], "one"), *behind]


def _padded(length: int, begin: int, end: int, mode: str) -> Array:
    """Where the elements along a padded axis come from; `length` is the slice that was appended."""
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
        # Backwards and forwards again is a period; a single element is its own reflection.
        period = max(2 * (length - 1), 1)
        return np.minimum(places % period, -places % period)
    return np.where((places < 0) | (places >= length), length, places)


def _padded_at_run_time(step: Step, length: str, begin: str, end: str, mode: str) -> str:
    zero, one = step.constant(0, "zero"), step.constant(1, "one")
    total = step.emit("Add", [step.emit("Add", [length, begin], "longer"), end], "count")
    none = step.emit("Less", [total, zero], "is_none")
    row = step.emit(
        "Reshape", [step.emit("Where", [none, zero, total], "at_least_none"), step.constant([1], "row")], "row"
    )
    numbers = counting(step, row, "numbers")
    if mode == "wrap":
        return _wrapped_at_run_time(step, length, begin, end, numbers)
    places = step.emit("Sub", [numbers, begin], "places")
    too_low = step.emit("Less", [places, zero], "is_before")
    last = step.emit("Sub", [length, one], "last")
    too_high = step.emit("Greater", [places, last], "is_behind")
    if mode == "edge":
        low = step.emit("Where", [too_low, zero, places], "not_before")
        return step.emit("Where", [too_high, last, low], "indices")
    if mode == "reflect":
        mirrored = step.emit("Where", [too_low, step.emit("Neg", [places], "mirrored"), places], "from_front")
        distance = step.emit("Sub", [mirrored, last], "beyond_last")
        is_beyond = step.emit("Greater", [distance, zero], "is_beyond")
        return step.emit("Where", [is_beyond, step.emit("Sub", [last, distance], "from_end"), mirrored], "indices")
    low = step.emit("Where", [too_low, length, places], "not_before")
    return step.emit("Where", [too_high, length, low], "indices")


def _wrapped_at_run_time(step: Step, length: str, begin: str, end: str, numbers: str) -> str:
    """Round and round what negative pads leave of the axis."""
    zero, one = step.constant(0, "zero"), step.constant(1, "one")
    parts = []
    for pad in (begin, end):
        removes = step.emit("Less", [pad, zero], "removes")
        parts.append(step.emit("Where", [removes, pad, zero], "minus_removed"))
    added = step.emit("Sub", [begin, parts[0]], "added_before")
    kept = step.emit("Add", [step.emit("Add", [length, parts[0]], "without_front"), parts[1]], "kept")
    # Of nothing that is left there are no numbers, but engines look at the divisor all the same.
    divisor = step.emit("Where", [step.emit("Less", [zero, kept], "is_left"), kept, one], "divisor")
    around = step.emit("Mod", [step.emit("Sub", [numbers, added], "places"), divisor], "around")
    return step.emit("Sub", [around, parts[0]], "indices")


@downward("CenterCropPad", 18)
def sizes_as_int64(step: Step) -> None:
    """Its function body computes with the sizes and the shape of the data, which is int64: sizes of int32 are cast."""
    if step.known_dtype(1) == "int64":
        expand(step)
        return
    step.dialect = step.upper.since_version
    step.inputs[1] = as_int64(step, step.inputs[1], "sizes")
