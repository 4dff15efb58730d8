"""Parts of tensors: Slice in all its forms, the parts of Shape, triangles."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.operators.predicates import no_axes_input
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import Inexact, Step, require_few
from splitgraph.conversion.writing.shape_nodes import (
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

_GREATEST = 2**63 - 1


unchanged("Slice", 13)
changed("Slice", 10, "the attributes starts, ends and axes became inputs")


@upward("Slice", 10)
def slice_by_inputs(step: Step) -> None:
    """starts, ends and axes become constants; what is beyond a dimension means its end on both sides."""
    step.require_types()
    names = ["starts", "ends"] + (["axes"] if step.has("axes") else [])
    step.inputs.extend([step.attribute_as_input(name) for name in names])


@downward("Slice", 10)
def slice_by_attributes(step: Step) -> None:
    """Constant starts, ends and axes become attributes. Where they are known only at run time, or a step is not 1, the
    indices that the slice takes are worked out and gathered, axis after axis.
    """
    step.require_types()
    starts, ends, axes = step.elements(1), step.elements(2), step.elements(3)
    steps = step.elements(4) if step.uses_input(4) else np.ones(1, np.int64)
    if not step.uses_input(3):
        axes = np.arange(_count(step))
    if ends is not None and steps is not None and any(map(is_end_disputed, _ints(ends), _ints(steps))):
        raise Inexact(
            "onnxruntime takes the largest integer as the end of a backward slice for its beginning, and the "
            "specification for the last element",
            "give the smallest integer as its end",
        )
    if starts is None or ends is None or axes is None or steps is None or np.any(steps != 1):
        _slice_by_gathering(step, axes)
        return
    del step.inputs[1:]
    step.set("starts", _ints(starts), f"it is an attribute {step.side}")
    step.set("ends", _ints(ends), f"it is an attribute {step.side}")
    step.set("axes", _from_front(step, axes), f"it is an attribute {step.side}")


def _slice_by_gathering(step: Step, given: Array | None) -> None:
    bounds = _bounds(step, given)
    if given is None:
        axes = list(range(step.known_rank(0)))
        bounds = _spread(step, bounds, len(axes))
    else:
        axes = _from_front(step, given)
    data, known = step.inputs[0], step.input_type(0).shape
    held = [step.values.elements(name) for name in bounds]
    for position, axis in enumerate(axes):
        length = known[axis] if known is not None and axis < len(known) else None
        bound = [int(found.reshape(-1)[position]) for found in held if found is not None]
        taken = _taken(length, *bound) if isinstance(length, int) and len(bound) == len(held) else None
        if taken is not None and len(taken) <= MAX_WRITTEN:
            indices = step.constant(taken, "indices")
        else:
            # Other axes were sliced before, but this one is as long as it was.
            shape = step.emit("Shape", [step.inputs[0]], "shape")
            single = [dimension(step, name, position, "bound") for name in bounds]
            indices = _taken_at_run_time(step, dimension(step, shape, axis, "length"), *single)
        data = step.emit("Gather", [data, indices], "sliced", axis=axis)
    step.replace("Identity", [data])


def _bounds(step: Step, given: Array | None) -> list[str]:
    """starts, ends and steps as int64."""
    names = []
    for index, hint in ((1, "starts"), (2, "ends"), (4, "steps")):
        if not step.uses_input(index):
            count = step.emit("Shape", [step.inputs[1]], "count")
            names.append(filled(step, count, 1, hint) if given is None else step.constant([1] * given.size, hint))
            continue
        found = step.elements(index)
        name = step.inputs[index]
        names.append(as_int64(step, name, hint) if found is None else step.constant(found, hint))
    return names


def _spread(step: Step, bounds: Sequence[str], rank: int) -> list[str]:
    """The bounds of all axes, where which of them they are for is known only at run time."""
    axes = as_int64(step, step.inputs[3], "axes")
    whole = ([0], [_GREATEST], [1])
    return [
        step.emit("Scatter", [step.constant(held * rank, "whole"), axes, name], "of_all_axes", axis=0)
        for held, name in zip(whole, bounds, strict=True)
    ]


def _ints(found: Array) -> list[int]:
    return [int(item) for item in found.reshape(-1)]


def _from_front(step: Step, axes: Array) -> list[int]:
    if np.any(axes < 0):
        axes = axes % step.known_rank(0)
    return _ints(axes)


def _count(step: Step) -> int:
    for index in (1, 2, 3, 4):
        shape = step.input_type(index).shape
        if shape and isinstance(shape[0], int):
            require_few(shape[0])
            return shape[0]
    raise Inexact("how many axes it slices is known only at run time")


def _taken(length: int, start: int, end: int, step: int) -> Sequence[int]:
    """The indices of a slice, as the document of Slice-13 says: how it clamps differs from Python's in one case."""
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), length), min(max(end, 0), length), step)
    return range(min(max(start, 0), length - 1), min(max(end, -1), length - 1), step)


def _taken_at_run_time(step: Step, length: str, start: str, end: str, size: str) -> str:
    zero = step.constant(0, "zero")
    # Backwards, both bounds are one less: the last element and what is before the first.
    is_back = step.emit("Less", [size, zero], "is_backwards")
    one_less = step.emit("Where", [is_back, step.constant(-1, "one_less"), zero], "one_less_backwards")
    last = step.emit("Add", [length, one_less], "last")
    first = _between(step, counted_from_front(step, start, length, "start"), zero, last, "first")
    final = _between(step, counted_from_front(step, end, length, "end"), one_less, last, "final")
    distance = step.emit("Sub", [final, first], "distance")
    all_but_one = step.emit("Sub", [size, step.emit("Sign", [size], "direction")], "all_but_one")
    raised = step.emit("Add", [distance, all_but_one], "raised")
    count = step.emit("Div", [raised, size], "steps_taken")
    count = step.emit("Where", [step.emit("Less", [count, zero], "is_none"), zero, count], "count")
    count = step.emit("Reshape", [count, step.constant([1], "one_element")], "count_row")
    scaled = step.emit("Mul", [counting(step, count, "numbers"), size], "offsets")
    return step.emit("Add", [scaled, first], "indices")


def _between(step: Step, value: str, low: str, high: str, hint: str) -> str:
    at_least = step.emit("Where", [step.emit("Less", [value, low], f"{hint}_too_low"), low, value], f"{hint}_at_least")
    return step.emit("Where", [step.emit("Less", [high, at_least], f"{hint}_too_high"), high, at_least], hint)


changed(
    "Slice", 11, "below it, the axes must not be negative, and here they are an input", up=always, down=no_axes_input(3)
)


@downward("Slice", 11)
def slice_axes_from_front(step: Step) -> None:
    """Below 11, axes must not be negative: constants are written so, others counted from the front at run time."""
    step.require_types()
    axes = step.elements(3)
    if axes is not None and np.all(axes >= 0):
        return
    rank = step.input_type(0).rank
    if axes is not None and rank is not None:
        step.inputs[3] = step.constant(axes % rank, "axes", axes.dtype)
        return
    dtype = step.known_dtype(3)
    count = step.emit("Shape", [step.emit("Shape", [step.inputs[0]], "shape")], "rank")
    found = counted_from_front(step, as_int64(step, step.inputs[3], "given_axes"), count, "axes")
    step.inputs[3] = found if dtype == "int64" else step.emit("Cast", [found], "axes_as_given", to=6)


@downward("Trilu", 14)
def triangle_by_mask(step: Step) -> None:
    """The triangle is where column - row is at least (upper) or at most (lower) k; elsewhere there are zeros."""
    dtype = step.known_dtype(0)
    if dtype == "string":
        raise Inexact("what is no part of a triangle of strings is not said")
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    rank = step.input_type(0).rank
    places = [-2, -1] if rank is None else [rank - 2, rank - 1]
    sizes = [step.emit("Gather", [shape, step.constant([place], "axis")], "size") for place in places]
    rows = step.emit("Reshape", [counting(step, sizes[0], "rows"), step.constant([-1, 1], "as_column")], "row_column")
    offsets = step.emit("Sub", [counting(step, sizes[1], "columns"), rows], "offsets")
    k = scalar(step, step.inputs[1], "k") if step.uses_input(1) else step.constant(0, "k")
    beyond = "Less" if step.known_value("upper", 1) else "Greater"
    if dtype == "bool":
        # What engines do not choose between.
        inside = step.emit("Not", [step.emit(beyond, [offsets, k], "is_outside")], "is_inside")
        step.replace("And", [step.inputs[0], inside])
        return
    outside = step.emit(beyond, [offsets, k], "is_outside")
    step.replace("Where", [outside, step.tensor(typed([0], dtype), "zero"), step.inputs[0]])
