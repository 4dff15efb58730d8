"""Parts of tensors: Slice in all its forms, the parts of Shape, triangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.shape_nodes import (
    as_int64,
    counted_from_front,
    counting,
    dimension,
    scalar,
    typed,
)
from splitgraph.conversion.step import Inexact, Step

_GREATEST = int(np.iinfo(np.int64).max)


@upward("Slice", 10)
def slice_by_inputs(step: Step) -> None:
    """starts, ends and axes become constants; what is beyond a dimension means its end on both sides."""
    step.require_types()
    names = ["starts", "ends"] + (["axes"] if step.has("axes") else [])
    step.inputs.extend([step.attribute_as_input(name) for name in names])


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
    for index, name in enumerate(step.inputs):
        if name and index in (1, 2, 4) and dtype == "int32" and step.known_dtype(index) != dtype:
            raise Inexact("its starts, ends, axes and steps are of different element types")


@downward("Slice", 10)
def slice_by_attributes(step: Step) -> None:
    """Constant starts, ends and axes become attributes. Where they are known only at run time, or a step is not 1, the
    indices that the slice takes are worked out and gathered, axis after axis.
    """
    step.require_types()
    starts, ends, steps = step.elements(1), step.elements(2), _steps(step)
    axes = _axes(step)
    if starts is not None and ends is not None and all(size == 1 for size in steps):
        del step.inputs[1:]
        step.set("starts", _ints(starts), f"it is an attribute {step.side}")
        step.set("ends", _ints(ends), f"it is an attribute {step.side}")
        step.set("axes", axes, f"it is an attribute {step.side}")
        return
    data = step.inputs[0]
    bounds = [as_int64(step, step.inputs[index], hint) for index, hint in ((1, "starts"), (2, "ends"))]
    known = step.input_type(0).shape
    for position, (axis, size) in enumerate(zip(axes, steps, strict=True)):
        length = known[axis] if known is not None and axis < len(known) else None
        if starts is not None and ends is not None and isinstance(length, int):
            indices = step.constant(_taken(length, _ints(starts)[position], _ints(ends)[position], size), "indices")
        else:
            # Other axes were sliced before, but this one is as long as it was.
            shape = step.emit("Shape", [step.inputs[0]], "shape")
            pair = [dimension(step, name, position, "bound") for name in bounds]
            indices = _taken_at_run_time(step, dimension(step, shape, axis, "length"), pair[0], pair[1], size)
        if position == len(axes) - 1:
            step.replace("Gather", [data, indices], axis=axis)
        else:
            data = step.emit("Gather", [data, indices], "sliced", axis=axis)


def _ints(found: np.ndarray) -> list[int]:
    return [int(item) for item in found.reshape(-1)]


def _steps(step: Step) -> list[int]:
    if step.uses_input(4):
        return step.constant_ints(4, "steps")
    return [1] * _count(step)


def _axes(step: Step) -> list[int]:
    axes = step.constant_ints(3, "axes") if step.uses_input(3) else list(range(_count(step)))
    if not axes:
        raise Inexact("it slices along no axis")
    if min(axes) < 0:
        rank = step.known_rank(0)
        axes = [axis % rank for axis in axes]
    return axes


def _count(step: Step) -> int:
    for index in (1, 2, 3, 4):
        shape = step.input_type(index).shape
        if shape and isinstance(shape[0], int):
            return shape[0]
    raise Inexact("how many axes it slices is known only at run time")


def _taken(length: int, start: int, end: int, step: int) -> Sequence[int]:
    """The indices of a slice, as the document of Slice-13 says: how it clamps differs from Python's in one case."""
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), length), min(max(end, 0), length), step)
    return range(min(max(start, 0), length - 1), min(max(end, -1), length - 1), step)


def _taken_at_run_time(step: Step, length: str, start: str, end: str, size: int) -> str:
    zero, one = step.constant(0, "zero"), step.constant(1, "one")
    last = length if size > 0 else step.emit("Sub", [length, one], "last")
    lowest_end = zero if size > 0 else step.constant(-1, "before_first")
    first = _between(step, counted_from_front(step, start, length, "start"), zero, last, "first")
    final = _between(step, counted_from_front(step, end, length, "end"), lowest_end, last, "final")
    distance = step.emit("Sub", [final, first], "distance")
    rounded_up = step.emit("Add", [distance, step.constant(size - (1 if size > 0 else -1), "but_one")], "rounded_up")
    steps = step.constant(size, "step")
    count = _between(step, step.emit("Div", [rounded_up, steps], "steps_taken"), zero, None, "count")
    count = step.emit("Reshape", [count, step.constant([1], "one_element")], "count_row")
    scaled = step.emit("Mul", [counting(step, count, "numbers"), steps], "offsets")
    return step.emit("Add", [scaled, first], "indices")


def _between(step: Step, value: str, low: str, high: str | None, hint: str) -> str:
    at_least = step.emit("Where", [step.emit("Less", [value, low], f"{hint}_too_low"), low, value], f"{hint}_at_least")
    if high is None:
        return at_least
    return step.emit("Where", [step.emit("Less", [high, at_least], f"{hint}_too_high"), high, at_least], hint)


@downward("Shape", 15)
def part_of_shape_by_slice(step: Step) -> None:
    """start and end clamp as the bounds of a Slice do, which takes the part of the whole shape below 15."""
    step.require_types()
    start, end = step.known_value("start", 0), step.known_value("end", _GREATEST)
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    step.replace("Slice", [shape, step.constant([start], "start"), step.constant([end], "end")])


@downward("Trilu", 14)
def triangle_by_mask(step: Step) -> None:
    """The triangle is where column - row is at least (upper) or at most (lower) k; elsewhere there are zeros."""
    dtype = step.known_dtype(0)
    if dtype in ("bfloat16", "string"):
        raise Inexact(f"Where does not take {dtype} {step.side}")
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    rank = step.input_type(0).rank
    places = [-2, -1] if rank is None else [rank - 2, rank - 1]
    sizes = [step.emit("Gather", [shape, step.constant([place], "axis")], "size") for place in places]
    rows = step.emit("Reshape", [counting(step, sizes[0], "rows"), step.constant([-1, 1], "as_column")], "row_column")
    offsets = step.emit("Sub", [counting(step, sizes[1], "columns"), rows], "offsets")
    k = scalar(step, step.inputs[1], "k") if step.uses_input(1) else step.constant(0, "k")
    beyond = "Less" if step.known_value("upper", 1) else "Greater"
    outside = step.emit(beyond, [offsets, k], "is_outside")
    step.replace("Where", [outside, step.tensor(typed([0], dtype), "zero"), step.inputs[0]])


@downward("ArgMax ArgMin", 12)
def last_index_in_reverse(step: Step) -> None:
    """The last of several equal elements is the first of them in the reversed tensor."""
    step.require_types()
    axis = step.known_value("axis", 0)
    if axis < 0 and step.input_type(0).rank is not None:
        axis += step.known_rank(0)
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    bounds = [[-1], [np.iinfo(np.int64).min], [axis], [-1]]
    names = [step.constant(held, hint) for held, hint in zip(bounds, ("start", "end", "axis", "step"), strict=True)]
    step.inputs[0] = step.emit("Slice", [step.inputs[0], *names], "reversed")
    last = step.emit("Sub", [dimension(step, shape, axis, "length"), step.constant(1, "one")], "last")
    step.drop("select_last_index", why=f"it does not exist {step.side}")
    old = step.redirect(0, "in_reverse")
    step.emit_after("Sub", [last, step.outputs[0]], old)
