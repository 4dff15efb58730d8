"""Pad and CenterCropPad: paddings became pads (2) and an input (11), axes (18) and mode=wrap (19) were added; sizes of
CenterCropPad may be int32.
"""

from __future__ import annotations

from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import value_is_one_of
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.function_bodies import expand
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary, require_few_axes
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
def rename_paddings(node: NodeAtBoundary) -> None:
    """Renames paddings to pads. Both documents say that all beginnings come before all ends. The example of Pad-1, with
    both pads of an axis together, is older than opset 1 (onnx/onnx#261, #268).
    """
    node.require_types()
    paddings = node.known_value("paddings")
    node.drop("paddings", why=f"it is called pads {node.side}")
    node.set("pads", list(paddings), "the new name of paddings")


@downward("Pad", 2)
def rename_pads(node: NodeAtBoundary) -> None:
    """Renames pads to paddings. Pad-1 does not say that negative pads remove elements."""
    node.require_types()
    pads = node.known_value("pads")
    if min(pads, default=0) < 0:
        raise Inexact("only from it on negative pads remove elements")
    node.drop("pads", why=f"it is called paddings {node.side}")
    node.set("paddings", list(pads), "the new name of pads")


changed("Pad", 11, "the attributes pads and value became inputs")


@upward("Pad", 11)
def make_pads_an_input(node: NodeAtBoundary) -> None:
    """Turns pads into a constant, and a value that is not 0 into another constant of the type of the data."""
    node.require_types()
    value = node.known_value_or_default("value")
    node.inputs.append(node.attribute_as_input("pads"))
    node.drop("value", why=f"it is an input {node.side}")
    if value != 0 or np.signbit(value):
        node.inputs.append(node.like_data(value, "value"))


@downward("Pad", 11)
def make_pads_an_attribute(node: NodeAtBoundary) -> None:
    """Turns constant pads into an attribute, and a constant value that float32 holds. Gathers the padded tensor where
    they are known only at run time, and for other types than floats.
    """
    pads, value = node.elements(1), node.elements(2) if node.uses_input(2) else np.zeros(1)
    mode = node.known_value_or_default("mode")
    number = 0.0 if mode != "constant" else _as_float32(value)
    if node.known_dtype(0) not in FLOATS or pads is None or number is None:
        _pad_by_gathering(node, mode)
        return
    del node.inputs[1:]
    node.set("pads", [int(count) for count in pads], f"it is an attribute {node.side}")
    node.set("value", number, f"it is an attribute {node.side}")


def _as_float32(value: Array | None) -> float | None:
    """Gives the number that a value holds, None unless float32 holds it."""
    if value is None or value.dtype.kind not in "fV":
        return None
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        return number if np.isnan(number) or float(np.float32(number)) == number else None


def _pad_by_gathering(node: NodeAtBoundary, mode: str) -> None:
    """Gathers the padded tensor axis by axis. Elements that are not from the data come from a slice of the constant
    value, appended to the data. Needs opset 9, and opset 10 to wrap.
    """
    rank = node.known_rank(0)
    given = node.constant_ints(3, "axes") if node.uses_input(3) else list(range(rank))
    data, pads = node.inputs[0], node.elements(1)
    value = _padding_value(node) if mode == "constant" else ""
    sizes = static_shape(node, data)
    axes = [axis % rank for axis in given]
    require_few_axes(len(axes))
    for place, axis in enumerate(axes):
        begin, end = (None, None) if pads is None else (int(pads[place]), int(pads[place + len(axes)]))
        if begin == 0 and end == 0:
            continue
        shape = node.write("Shape", [data], "shape")
        if value:
            one = node.write("Concat", _with_one(node, shape, axis, rank), "slice_shape", axis=0)
            beyond = node.write("Expand", [value, one], "slice_beyond")
        size = 0 if sizes is None else sizes[axis]
        if begin is not None and end is not None and size > 0 and max(size, size + begin + end) <= MAX_WRITTEN:
            indices = node.constant(_source_indices(size, begin, end, mode), "indices")
        else:
            length = dimension(node, shape, axis, "length")
            first, past = (dimension(node, node.inputs[1], at, "pad") for at in (place, place + len(axes)))
            indices = _source_indices_at_run_time(node, length, first, past, mode)
        source = node.write("Concat", [data, beyond], "with_slice", axis=axis) if value else data
        data = node.write("Gather", [source, indices], "padded", axis=axis)
    node.replace("Identity", [data])


def _padding_value(node: NodeAtBoundary) -> str:
    """Gives the value to pad with, as a scalar."""
    if node.uses_input(2):
        return scalar(node, node.inputs[2], "value")
    dtype = node.known_dtype(0)
    if dtype == "string":
        return node.tensor(numpy_helper.from_array(np.array("", dtype=object)), "value")
    return node.tensor(typed([0], dtype), "value")


def _with_one(node: NodeAtBoundary, shape: str, axis: int, rank: int) -> list[str]:
    """Gives the parts of a shape in which one dimension is 1."""
    before = [node.write("Gather", [shape, node.constant(range(axis), "before")], "before")] if axis else []
    after = range(axis + 1, rank)
    behind = [node.write("Gather", [shape, node.constant(after, "behind")], "behind")] if after else []
    return [*before, node.constant([1], "one"), *behind]


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


def _source_indices_at_run_time(node: NodeAtBoundary, length: str, begin: str, end: str, mode: str) -> str:
    """Computes at run time the index from which each element along a padded axis comes."""
    zero, one = node.constant(0, "zero"), node.constant(1, "one")
    total = node.write("Add", [node.write("Add", [length, begin], "longer"), end], "count")
    none = node.write("Less", [total, zero], "is_none")
    row = node.write(
        "Reshape", [node.write("Where", [none, zero, total], "at_least_none"), node.constant([1], "row")], "row"
    )
    numbers = counting(node, row, "numbers")
    if mode == "wrap":
        return _wrapped_at_run_time(node, length, begin, end, numbers)
    places = node.write("Sub", [numbers, begin], "places")
    too_low = node.write("Less", [places, zero], "is_before")
    last = node.write("Sub", [length, one], "last")
    too_high = node.write("Greater", [places, last], "is_behind")
    if mode == "edge":
        low = node.write("Where", [too_low, zero, places], "not_before")
        return node.write("Where", [too_high, last, low], "indices")
    if mode == "reflect":
        mirrored = node.write("Where", [too_low, node.write("Neg", [places], "mirrored"), places], "from_front")
        distance = node.write("Sub", [mirrored, last], "beyond_last")
        is_beyond = node.write("Greater", [distance, zero], "is_beyond")
        return node.write("Where", [is_beyond, node.write("Sub", [last, distance], "from_end"), mirrored], "indices")
    low = node.write("Where", [too_low, length, places], "not_before")
    return node.write("Where", [too_high, length, low], "indices")


def _wrapped_at_run_time(node: NodeAtBoundary, length: str, begin: str, end: str, numbers: str) -> str:
    """Computes at run time the indices of mode=wrap. Negative pads shorten the axis first."""
    zero, one = node.constant(0, "zero"), node.constant(1, "one")
    parts = []
    for pad in (begin, end):
        removes = node.write("Less", [pad, zero], "removes")
        parts.append(node.write("Where", [removes, pad, zero], "minus_removed"))
    added = node.write("Sub", [begin, parts[0]], "added_before")
    kept = node.write("Add", [node.write("Add", [length, parts[0]], "without_front"), parts[1]], "kept")
    # Where nothing is left there is nothing to divide, but engines check the divisor.
    divisor = node.write("Where", [node.write("Less", [zero, kept], "is_left"), kept, one], "divisor")
    around = node.write("Mod", [node.write("Sub", [numbers, added], "places"), divisor], "around")
    return node.write("Sub", [around, parts[0]], "indices")


@downward("Pad", 18)
def pad_all_axes(node: NodeAtBoundary) -> None:
    """Adds pads of 0 for the axes that the node does not name. Below 18 there are pads for all axes."""
    node.require_types()
    rank = node.known_rank(0)
    none = node.constant([0] * 2 * rank, "no_pads")
    axes, pads = node.elements(3), node.elements(1)
    if axes is None:
        size = node.constant(rank, "rank")
        begins = counted_from_front(node, as_int64(node, node.inputs[3], "given_axes"), size, "axes")
        both = [begins, node.write("Add", [begins, size], "ends")]
        places = node.write("Concat", both, "places", axis=0)
        node.inputs[1] = node.write("ScatterElements", [none, places, node.inputs[1]], "pads")
    elif pads is None:
        found = node.constant([*(axes % rank), *(axes % rank + rank)], "places")
        node.inputs[1] = node.write("ScatterElements", [none, found, node.inputs[1]], "pads")
    else:
        whole = np.zeros(2 * rank, np.int64)
        whole[[*(axes % rank), *(axes % rank + rank)]] = pads
        node.inputs[1] = node.constant(whole, "pads")
    del node.inputs[3:]


changed("Pad", 19, "mode=wrap was added", up=always, down=value_is_one_of("mode", "constant", "reflect", "edge"))


@downward("Pad", 19)
def wrap_by_gathering(node: NodeAtBoundary) -> None:
    """Gathers each axis at the indices from -begin to length + end, modulo its length.

    The document does not say whether elements that negative pads remove come back at the other end. In onnxruntime they
    do not, and here neither.
    """
    if node.known_value_or_default("mode") != "wrap":
        node.require_types()
        raise Inexact("its mode is unknown")
    _pad_by_gathering(node, "wrap")


# CenterCropPad ------------------------------------------------------------------------------------------------------


@downward("CenterCropPad", 18)
def cast_sizes_to_int64(node: NodeAtBoundary) -> None:
    """Casts sizes of int32: the function body computes with the sizes and the shape of the data, which is int64."""
    if node.known_dtype(1) == "int64":
        expand(node)
        return
    node.dialect = node.upper.since_version
    node.inputs[1] = as_int64(node, node.inputs[1], "sizes")
