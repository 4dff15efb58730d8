"""Operators that take or put elements at indices: TopK, OneHot, Gather*, Scatter*."""

from __future__ import annotations

import numpy as np

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.shape_nodes import (
    as_int64,
    counted_from_front,
    dimension,
    filled,
    flat,
    has_no_zero,
    reshaped,
    scalar,
)
from splitgraph.conversion.step import Inexact, Step

_GREATEST = int(np.iinfo(np.int64).max)


@upward("TopK", 10)
def k_as_input(step: Step) -> None:
    """The attribute k becomes a constant of one element."""
    step.require_types()
    k = step.attribute_as_input("k")
    step.inputs.append(step.emit("Reshape", [k, step.constant([1], "one")], "k_row"))


@downward("TopK", 10)
def k_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute k."""
    step.require_types()
    (k,) = step.constant_ints(1, "k")
    del step.inputs[1:]
    step.set("k", k, f"it is an attribute {step.side}")


@downward("TopK", 11)
def smallest_by_negation(step: Step) -> None:
    """Below 11 the largest are given, in order: the smallest are the largest of the negated. Any order will do where
    none is asked for. Equal elements come in the order of their indices on both sides.
    """
    step.require_types()
    largest, axis = step.known_value("largest", 1), step.known_value("axis", -1)
    step.known_value("sorted", 1)
    step.drop("largest", "sorted", why=f"it does not exist {step.side}")
    if axis < -1:
        step.set("axis", axis + step.known_rank(0), f"axes are counted from the front {step.side}")
    if largest:
        return
    step.inputs[0] = step.emit("Neg", [step.inputs[0]], "negated")
    if step.outputs[0]:
        old = step.redirect(0, "negated_values")
        step.emit_after("Neg", [step.outputs[0]], old)


@upward("OneHot", 11)
def negative_indices_beyond(step: Step) -> None:
    """Below 11 negative indices give no hot value: they become an index that is beyond every depth."""
    step.require_types()
    index = as_int64(step, step.inputs[0], "index")
    is_negative = step.emit("Less", [index, step.constant(0, "zero")], "is_negative")
    step.inputs[0] = step.emit("Where", [is_negative, step.constant(_GREATEST, "beyond"), index], "indices")


@downward("OneHot", 11)
def negative_indices_from_front(step: Step) -> None:
    """Below 11 indices are counted from the front: the depth is added to those from -depth to -1; what is less stays
    negative, which gives no hot value.
    """
    step.require_types()
    axis = step.known_value("axis", -1)
    if axis < -1:
        step.set("axis", axis + step.known_rank(0) + 1, f"axes are counted from the front {step.side}")
    found = step.elements(0)
    if found is None or np.any(found < 0):
        depth = scalar(step, as_int64(step, step.inputs[1], "depth_as_integer"), "depth")
        step.inputs[0] = counted_from_front(step, as_int64(step, step.inputs[0], "index"), depth, "indices")


@upward("Scatter", 11)
def scatter_elements_instead(step: Step) -> None:
    """The operator was renamed."""
    axis = step.attributes.get("axis")
    step.replace("ScatterElements", step.inputs)
    if axis is not None:
        step.attributes["axis"] = axis


@downward("ScatterElements", 11)
def scatter_instead(step: Step) -> None:
    """Scatter, below 11, says nothing of negative indices, which are counted from the front."""
    axis = step.known_value("axis", 0)
    inputs = [step.inputs[0], _from_front(step, axis), step.inputs[2]]
    step.replace("Scatter", inputs, axis=axis)


def _from_front(step: Step, axis: int) -> str:
    """The node's indices, its second input, without negative ones."""
    found = step.elements(1)
    if found is not None and np.all(found >= 0):
        return step.inputs[1]
    if axis < 0:
        axis += step.known_rank(0)
    length = dimension(step, step.emit("Shape", [step.inputs[0]], "shape"), axis, "length")
    return counted_from_front(step, as_int64(step, step.inputs[1], "given_indices"), length, "indices")


@downward("GatherElements", 11)
def gathered_from_flat_data(step: Step) -> None:
    """Each element is found in the flat data: its coordinates are those of its index, but along the axis, where the
    index says it; multiplied by the strides of the data they add up to its place.
    """
    rank, axis = step.known_rank(0), step.known_value("axis", 0)
    axis %= rank
    shape, index_shape = (step.emit("Shape", [name], "shape") for name in step.inputs[:2])
    indices = flat(step, _from_front(step, axis), "flat_indices")
    places = as_int64(step, indices, "along_axis")
    where = step.emit("NonZero", [filled(step, index_shape, 1, "ones")], "coordinates")
    strides = [step.constant(1, "stride")]
    for place in range(rank - 1, 0, -1):
        strides.append(step.emit("Mul", [strides[-1], dimension(step, shape, place, "length")], "stride"))
    total = None
    for place, stride in enumerate(reversed(strides)):
        row = places if place == axis else dimension(step, where, place, "row")
        part = step.emit("Mul", [row, stride], "offset")
        total = part if total is None else step.emit("Add", [total, part], "place")
    assert total is not None
    _gather_flat(step, flat(step, step.inputs[0], "flat_data"), total, index_shape)


@downward("GatherND", 11)
def gathered_by_offsets(step: Step) -> None:
    """The last dimension of the indices counts into the first dimensions of the data, which are made one."""
    rank = step.known_rank(0)
    last = step.input_type(1).shape
    depth = last[-1] if last else None
    if not isinstance(depth, int) or step.known_value("batch_dims", 0):
        raise Inexact("how many dimensions it gathers from is not known")
    shape, index_shape = (step.emit("Shape", [name], "shape") for name in step.inputs)
    lengths = [dimension(step, shape, place, "length") for place in range(depth)]
    total = None
    for place, length in enumerate(lengths):
        row = step.emit("Gather", [step.inputs[1], step.constant(place, "place")], "row", axis=len(last or ()) - 1)
        row = counted_from_front(step, row, length, "indices")
        scaled = row if total is None else step.emit("Mul", [total, length], "scaled")
        total = row if total is None else step.emit("Add", [scaled, row], "place")
    if total is None or not has_no_zero(step, step.inputs[0]):
        raise Inexact("a dimension of the data may be 0", "declare the shape of the input")
    rest = step.emit("Gather", [shape, step.constant(range(depth, rank), "rest")], "rest_shape")
    merged = step.emit("Concat", [step.constant([-1], "merged"), rest], "merged_shape", axis=0)
    del index_shape
    step.replace("Gather", [step.emit("Reshape", [step.inputs[0], merged], "merged_data"), total], axis=0)


def _gather_flat(step: Step, data: str, places: str, shape: str) -> None:
    taken = step.emit("Gather", [data, places], "taken", axis=0)
    dense = has_no_zero(step, step.inputs[1])
    operator, inputs, attributes = reshaped(step, taken, shape, dtype=step.input_type(0).dtype, dense=dense)
    step.replace(operator, inputs, **attributes)
