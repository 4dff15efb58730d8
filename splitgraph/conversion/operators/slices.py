"""Slice and Trilu: starts, ends and axes became inputs (10), steps were added (10), and negative axes were allowed
(11); Trilu is written with Where below its first opset.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import input_is_omitted
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact, require_few, require_few_axes
from splitgraph.conversion.writing.shape_nodes import (
    GREATEST_INT64,
    as_int64,
    counted_from_front,
    counting,
    dimension,
    filled,
    scalar,
    typed,
)
from splitgraph.deferred import np
from splitgraph.inference.rules.onnx.slicing import is_end_disputed
from splitgraph.value_type import MAX_WRITTEN

# Slice --------------------------------------------------------------------------------------------------------------

unchanged("Slice", 13)
changed("Slice", 10, "the attributes starts, ends and axes became inputs")


@upward("Slice", 10)
def make_bounds_inputs(context: AdapterContext) -> None:
    """Turns starts, ends and axes into constants. A bound beyond a dimension means its end on both sides."""
    context.require_types()
    names = ["starts", "ends"] + (["axes"] if context.has("axes") else [])
    context.inputs.extend([context.attribute_as_input(name) for name in names])


@downward("Slice", 10)
def make_bounds_attributes(context: AdapterContext) -> None:
    """Turns constant starts, ends and axes into attributes. Where they are known only at run time, or a step is not 1,
    the indices of the slice are computed and gathered, axis after axis.
    """
    context.require_types()
    starts, ends, axes = context.elements(1), context.elements(2), context.elements(3)
    steps = context.elements(4) if context.uses_input(4) else np.ones(1, np.int64)
    if not context.uses_input(3):
        axes = np.arange(_sliced_axis_count(context))
    if ends is not None and steps is not None and any(map(is_end_disputed, _ints(ends), _ints(steps))):
        raise Inexact(
            "onnxruntime takes the largest integer as the end of a backward slice for its beginning, and the "
            "specification for the last element",
            "give the smallest integer as its end",
        )
    if starts is None or ends is None or axes is None or steps is None or np.any(steps != 1):
        _slice_by_gathering(context, axes)
        return
    del context.inputs[1:]
    context.set("starts", _ints(starts), f"it is an attribute {context.side}")
    context.set("ends", _ints(ends), f"it is an attribute {context.side}")
    context.set("axes", _from_front(context, axes), f"it is an attribute {context.side}")


def _sliced_axis_count(context: AdapterContext) -> int:
    """Gives the number of axes that the node slices."""
    for index in (1, 2, 3, 4):
        shape = context.input_type(index).shape
        if shape and isinstance(shape[0], int):
            require_few(shape[0])
            return shape[0]
    raise Inexact("how many axes it slices is known only at run time")


def _ints(found: Array) -> list[int]:
    """Gives the elements of an array as Python integers."""
    return [int(item) for item in found.reshape(-1)]


def _slice_by_gathering(context: AdapterContext, given: Array | None) -> None:
    """Gathers the slice axis after axis. given: the axes, None where they are known only at run time."""
    bounds = _bounds(context, given)
    if given is None:
        axes = list(range(context.known_rank(0)))
        bounds = _spread(context, bounds, len(axes))
    else:
        axes = _from_front(context, given)
    require_few_axes(len(axes))
    data, known = context.inputs[0], context.input_type(0).shape
    held = [context.values.elements(name) for name in bounds]
    for position, axis in enumerate(axes):
        length = known[axis] if known is not None and axis < len(known) else None
        bound = [int(found.reshape(-1)[position]) for found in held if found is not None]
        taken = _slice_indices(length, *bound) if isinstance(length, int) and len(bound) == len(held) else None
        if taken is not None and len(taken) <= MAX_WRITTEN:
            indices = context.constant(taken, "indices")
        else:
            # Other axes are sliced by now; this axis still has the length that it has in the input.
            shape = context.emit("Shape", [context.inputs[0]], "shape")
            single = [dimension(context, name, position, "bound") for name in bounds]
            indices = _slice_indices_at_run_time(context, dimension(context, shape, axis, "length"), *single)
        data = context.emit("Gather", [data, indices], "sliced", axis=axis)
    context.replace("Identity", [data])


def _bounds(context: AdapterContext, given: Array | None) -> list[str]:
    """Gives starts, ends and steps as int64."""
    names = []
    for index, hint in ((1, "starts"), (2, "ends"), (4, "steps")):
        if not context.uses_input(index):
            count = context.emit("Shape", [context.inputs[1]], "count")
            names.append(filled(context, count, 1, hint) if given is None else context.constant([1] * given.size, hint))
            continue
        found = context.elements(index)
        name = context.inputs[index]
        names.append(as_int64(context, name, hint) if found is None else context.constant(found, hint))
    return names


def _spread(context: AdapterContext, bounds: Sequence[str], rank: int) -> list[str]:
    """Gives the bounds of all axes, where only the run tells the axes of the given ones."""
    axes = as_int64(context, context.inputs[3], "axes")
    whole = ([0], [GREATEST_INT64], [1])
    return [
        context.emit("Scatter", [context.constant(held * rank, "whole"), axes, name], "of_all_axes", axis=0)
        for held, name in zip(whole, bounds, strict=True)
    ]


def _from_front(context: AdapterContext, axes: Array) -> list[int]:
    """Counts axes from the front."""
    if np.any(axes < 0):
        axes = axes % context.known_rank(0)
    return _ints(axes)


def _slice_indices(length: int, start: int, end: int, context: int) -> Sequence[int]:
    """Gives the indices of a slice as the document of Slice-13 says, which clamps in one case in another way than
    Python.
    """
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if context > 0:
        return range(min(max(start, 0), length), min(max(end, 0), length), context)
    return range(min(max(start, 0), length - 1), min(max(end, -1), length - 1), context)


def _slice_indices_at_run_time(context: AdapterContext, length: str, start: str, end: str, size: str) -> str:
    """Computes the indices of a slice at run time."""
    zero = context.constant(0, "zero")
    # Backwards, both bounds are one less: from the last element to the one before the first.
    is_back = context.emit("Less", [size, zero], "is_backwards")
    one_less = context.emit("Where", [is_back, context.constant(-1, "one_less"), zero], "one_less_backwards")
    last = context.emit("Add", [length, one_less], "last")
    first = _between(context, counted_from_front(context, start, length, "start"), zero, last, "first")
    final = _between(context, counted_from_front(context, end, length, "end"), one_less, last, "final")
    distance = context.emit("Sub", [final, first], "distance")
    all_but_one = context.emit("Sub", [size, context.emit("Sign", [size], "direction")], "all_but_one")
    raised = context.emit("Add", [distance, all_but_one], "raised")
    count = context.emit("Div", [raised, size], "steps_taken")
    count = context.emit("Where", [context.emit("Less", [count, zero], "is_none"), zero, count], "count")
    count = context.emit("Reshape", [count, context.constant([1], "one_element")], "count_row")
    scaled = context.emit("Mul", [counting(context, count, "numbers"), size], "offsets")
    return context.emit("Add", [scaled, first], "indices")


def _between(context: AdapterContext, value: str, low: str, high: str, hint: str) -> str:
    """Brings a value between two bounds."""
    at_least = context.emit(
        "Where", [context.emit("Less", [value, low], f"{hint}_too_low"), low, value], f"{hint}_at_least"
    )
    return context.emit("Where", [context.emit("Less", [high, at_least], f"{hint}_too_high"), high, at_least], hint)


changed(
    "Slice",
    11,
    "below it, the axes must not be negative, and here they are an input",
    up=always,
    down=input_is_omitted(3),
)


@downward("Slice", 11)
def count_slice_axes_from_front(context: AdapterContext) -> None:
    """Counts negative axes from the front, as below 11: constants now, others at run time."""
    context.require_types()
    axes = context.elements(3)
    if axes is not None and np.all(axes >= 0):
        return
    rank = context.input_type(0).rank
    if axes is not None and rank is not None:
        context.inputs[3] = context.constant(axes % rank, "axes", axes.dtype)
        return
    dtype = context.known_dtype(3)
    count = context.emit("Shape", [context.emit("Shape", [context.inputs[0]], "shape")], "rank")
    found = counted_from_front(context, as_int64(context, context.inputs[3], "given_axes"), count, "axes")
    context.inputs[3] = found if dtype == "int64" else context.emit("Cast", [found], "axes_as_given", to=6)


# Trilu --------------------------------------------------------------------------------------------------------------


@downward("Trilu", 14)
def mask_triangle(context: AdapterContext) -> None:
    """Keeps the elements where column - row is at least (upper) or at most (lower) k; the others become 0."""
    dtype = context.known_dtype(0)
    if dtype == "string":
        raise Inexact("what is no part of a triangle of strings is not said")
    shape = context.emit("Shape", [context.inputs[0]], "shape")
    rank = context.input_type(0).rank
    places = [-2, -1] if rank is None else [rank - 2, rank - 1]
    sizes = [context.emit("Gather", [shape, context.constant([place], "axis")], "size") for place in places]
    rows = context.emit(
        "Reshape", [counting(context, sizes[0], "rows"), context.constant([-1, 1], "as_column")], "row_column"
    )
    offsets = context.emit("Sub", [counting(context, sizes[1], "columns"), rows], "offsets")
    k = scalar(context, context.inputs[1], "k") if context.uses_input(1) else context.constant(0, "k")
    beyond = "Less" if context.known_value_or_default("upper") else "Greater"
    if dtype == "bool":
        # Where of some engines does not take booleans.
        inside = context.emit("Not", [context.emit(beyond, [offsets, k], "is_outside")], "is_inside")
        context.replace("And", [context.inputs[0], inside])
        return
    outside = context.emit(beyond, [offsets, k], "is_outside")
    context.replace("Where", [outside, context.tensor(typed([0], dtype), "zero"), context.inputs[0]])
