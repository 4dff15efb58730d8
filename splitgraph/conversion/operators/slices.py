"""Slice and Trilu: starts, ends and axes became inputs (10), steps were added (10), and negative axes were allowed
(11); Trilu is written with Where below its first opset.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import input_is_omitted
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary, require_few, require_few_axes
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
def make_bounds_inputs(node: NodeAtBoundary) -> None:
    """Turns starts, ends and axes into constants. A bound beyond a dimension means its end on both sides."""
    node.require_types()
    names = ["starts", "ends"] + (["axes"] if node.has("axes") else [])
    node.inputs.extend([node.attribute_as_input(name) for name in names])


@downward("Slice", 10)
def make_bounds_attributes(node: NodeAtBoundary) -> None:
    """Turns constant starts, ends and axes into attributes. Where they are known only at run time, or a step is not 1,
    the indices of the slice are computed and gathered, axis after axis.
    """
    node.require_types()
    starts, ends, axes = node.elements(1), node.elements(2), node.elements(3)
    steps = node.elements(4) if node.uses_input(4) else np.ones(1, np.int64)
    if not node.uses_input(3):
        axes = np.arange(_sliced_axis_count(node))
    if ends is not None and steps is not None and any(map(is_end_disputed, _ints(ends), _ints(steps))):
        raise Inexact(
            "onnxruntime takes the largest integer as the end of a backward slice for its beginning, and the "
            "specification for the last element",
            "give the smallest integer as its end",
        )
    if starts is None or ends is None or axes is None or steps is None or np.any(steps != 1):
        _slice_by_gathering(node, axes)
        return
    del node.inputs[1:]
    node.set("starts", _ints(starts), f"it is an attribute {node.side}")
    node.set("ends", _ints(ends), f"it is an attribute {node.side}")
    node.set("axes", _from_front(node, axes), f"it is an attribute {node.side}")


def _sliced_axis_count(node: NodeAtBoundary) -> int:
    """Gives the number of axes that the node slices."""
    for index in (1, 2, 3, 4):
        shape = node.input_type(index).shape
        if shape and isinstance(shape[0], int):
            require_few(shape[0])
            return shape[0]
    raise Inexact("how many axes it slices is known only at run time")


def _ints(found: Array) -> list[int]:
    """Gives the elements of an array as Python integers."""
    return [int(item) for item in found.reshape(-1)]


def _slice_by_gathering(node: NodeAtBoundary, given: Array | None) -> None:
    """Gathers the slice axis after axis. given: the axes, None where they are known only at run time."""
    bounds = _bounds(node, given)
    if given is None:
        axes = list(range(node.known_rank(0)))
        bounds = _spread(node, bounds, len(axes))
    else:
        axes = _from_front(node, given)
    require_few_axes(len(axes))
    data, known = node.inputs[0], node.input_type(0).shape
    held = [node.values.elements(name) for name in bounds]
    for position, axis in enumerate(axes):
        length = known[axis] if known is not None and axis < len(known) else None
        bound = [int(found.reshape(-1)[position]) for found in held if found is not None]
        taken = _slice_indices(length, *bound) if isinstance(length, int) and len(bound) == len(held) else None
        if taken is not None and len(taken) <= MAX_WRITTEN:
            indices = node.constant(taken, "indices")
        else:
            # Other axes are sliced by now; this axis still has the length that it has in the input.
            shape = node.write("Shape", [node.inputs[0]], "shape")
            single = [dimension(node, name, position, "bound") for name in bounds]
            indices = _slice_indices_at_run_time(node, dimension(node, shape, axis, "length"), *single)
        data = node.write("Gather", [data, indices], "sliced", axis=axis)
    node.replace("Identity", [data])


def _bounds(node: NodeAtBoundary, given: Array | None) -> list[str]:
    """Gives starts, ends and steps as int64."""
    names = []
    for index, hint in ((1, "starts"), (2, "ends"), (4, "steps")):
        if not node.uses_input(index):
            count = node.write("Shape", [node.inputs[1]], "count")
            names.append(filled(node, count, 1, hint) if given is None else node.constant([1] * given.size, hint))
            continue
        found = node.elements(index)
        name = node.inputs[index]
        names.append(as_int64(node, name, hint) if found is None else node.constant(found, hint))
    return names


def _spread(node: NodeAtBoundary, bounds: Sequence[str], rank: int) -> list[str]:
    """Gives the bounds of all axes, where only the run tells the axes of the given ones."""
    axes = as_int64(node, node.inputs[3], "axes")
    whole = ([0], [GREATEST_INT64], [1])
    return [
        node.write("Scatter", [node.constant(held * rank, "whole"), axes, name], "of_all_axes", axis=0)
        for held, name in zip(whole, bounds, strict=True)
    ]


def _from_front(node: NodeAtBoundary, axes: Array) -> list[int]:
    """Counts axes from the front."""
    if np.any(axes < 0):
        axes = axes % node.known_rank(0)
    return _ints(axes)


def _slice_indices(length: int, start: int, end: int, context: int) -> Sequence[int]:
    """Gives the indices of a slice as the document of Slice-13 says, which clamps in one case in another way than
    Python.
    """
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if context > 0:
        return range(min(max(start, 0), length), min(max(end, 0), length), context)
    return range(min(max(start, 0), length - 1), min(max(end, -1), length - 1), context)


def _slice_indices_at_run_time(node: NodeAtBoundary, length: str, start: str, end: str, size: str) -> str:
    """Computes the indices of a slice at run time."""
    zero = node.constant(0, "zero")
    # Backwards, both bounds are one less: from the last element to the one before the first.
    is_back = node.write("Less", [size, zero], "is_backwards")
    one_less = node.write("Where", [is_back, node.constant(-1, "one_less"), zero], "one_less_backwards")
    last = node.write("Add", [length, one_less], "last")
    first = _between(node, counted_from_front(node, start, length, "start"), zero, last, "first")
    final = _between(node, counted_from_front(node, end, length, "end"), one_less, last, "final")
    distance = node.write("Sub", [final, first], "distance")
    all_but_one = node.write("Sub", [size, node.write("Sign", [size], "direction")], "all_but_one")
    raised = node.write("Add", [distance, all_but_one], "raised")
    count = node.write("Div", [raised, size], "steps_taken")
    count = node.write("Where", [node.write("Less", [count, zero], "is_none"), zero, count], "count")
    count = node.write("Reshape", [count, node.constant([1], "one_element")], "count_row")
    scaled = node.write("Mul", [counting(node, count, "numbers"), size], "offsets")
    return node.write("Add", [scaled, first], "indices")


def _between(node: NodeAtBoundary, value: str, low: str, high: str, hint: str) -> str:
    """Brings a value between two bounds."""
    at_least = node.write(
        "Where", [node.write("Less", [value, low], f"{hint}_too_low"), low, value], f"{hint}_at_least"
    )
    return node.write("Where", [node.write("Less", [high, at_least], f"{hint}_too_high"), high, at_least], hint)


changed(
    "Slice",
    11,
    "below it, the axes must not be negative, and here they are an input",
    up=always,
    down=input_is_omitted(3),
)


@downward("Slice", 11)
def count_slice_axes_from_front(node: NodeAtBoundary) -> None:
    """Counts negative axes from the front, as below 11: constants now, others at run time."""
    node.require_types()
    axes = node.elements(3)
    if axes is not None and np.all(axes >= 0):
        return
    rank = node.input_type(0).rank
    if axes is not None and rank is not None:
        node.inputs[3] = node.constant(axes % rank, "axes", axes.dtype)
        return
    dtype = node.known_dtype(3)
    count = node.write("Shape", [node.write("Shape", [node.inputs[0]], "shape")], "rank")
    found = counted_from_front(node, as_int64(node, node.inputs[3], "given_axes"), count, "axes")
    node.inputs[3] = found if dtype == "int64" else node.write("Cast", [found], "axes_as_given", to=6)


# Trilu --------------------------------------------------------------------------------------------------------------


@downward("Trilu", 14)
def mask_triangle(node: NodeAtBoundary) -> None:
    """Keeps the elements where column - row is at least (upper) or at most (lower) k; the others become 0."""
    dtype = node.known_dtype(0)
    if dtype == "string":
        raise Inexact("what is no part of a triangle of strings is not said")
    shape = node.write("Shape", [node.inputs[0]], "shape")
    rank = node.input_type(0).rank
    places = [-2, -1] if rank is None else [rank - 2, rank - 1]
    sizes = [node.write("Gather", [shape, node.constant([place], "axis")], "size") for place in places]
    rows = node.write("Reshape", [counting(node, sizes[0], "rows"), node.constant([-1, 1], "as_column")], "row_column")
    offsets = node.write("Sub", [counting(node, sizes[1], "columns"), rows], "offsets")
    k = scalar(node, node.inputs[1], "k") if node.uses_input(1) else node.constant(0, "k")
    beyond = "Less" if node.known_value_or_default("upper") else "Greater"
    if dtype == "bool":
        # Where of some engines does not take booleans.
        inside = node.write("Not", [node.write(beyond, [offsets, k], "is_outside")], "is_inside")
        node.replace("And", [node.inputs[0], inside])
        return
    outside = node.write(beyond, [offsets, k], "is_outside")
    node.replace("Where", [outside, node.tensor(typed([0], dtype), "zero"), node.inputs[0]])
