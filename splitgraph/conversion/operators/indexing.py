"""Operators that take or put elements at indices: TopK, OneHot, Compress, Gather*, Scatter*, ReverseSequence."""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front, count_from_front
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    exact_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.conversion.operators.sorting import topmost_of_long_integers
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.formula import Formula
from splitgraph.conversion.writing.reshaping import reshaped
from splitgraph.conversion.writing.shape_nodes import (
    as_int64,
    counted_from_front,
    counting,
    dimension,
    filled,
    flat,
    has_no_zero,
    scalar,
)
from splitgraph.deferred import np

_GREATEST = 2**63 - 1


unchanged("TopK", 11, 24)
changed("TopK", 10, "the attribute k became an input")


@upward("TopK", 10)
def k_as_input(step: Step) -> None:
    """The attribute k becomes a constant of one element."""
    step.require_types()
    k = step.attribute_as_input("k")
    step.inputs.append(step.emit("Reshape", [k, step.constant([1], "one")], "k_row"))


@downward("TopK", 10)
def k_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute k; of a k known only at run time, the first of all are taken."""
    step.require_types()
    found, axis = step.elements(1), step.known_value("axis", -1)
    if found is not None:
        count = int(found.reshape(-1)[0])
        if count < 1:
            raise Inexact(f"k is {count}, and must be at least 1 {step.side}")
        del step.inputs[1:]
        step.set("k", count, f"it is an attribute {step.side}")
        return
    shape = step.input_type(0).shape
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int) or length < 1:
        raise Inexact("k is known only at run time, and so is how many elements there are", "declare the input's shape")
    first = counting(step, step.emit("Reshape", [step.inputs[1], step.constant([1], "row")], "k_row"), "first")
    del step.inputs[1:]
    step.set("k", length, "all, of which the first are taken")
    for index in range(len(step.outputs)):
        if step.outputs[index]:
            old = step.redirect(index, "of_all")
            step.emit_after("Gather", [step.outputs[index], first], old, axis=axis % len(shape or ()))


@downward("TopK", 11)
def smallest_by_negation(step: Step) -> None:
    """Below 11 the largest are given, in order: the smallest are the largest of the negated. Any order will do where
    none is asked for. Equal elements come in the order of their indices on both sides.
    """
    if step.dtype(0) in ("int64", "uint64"):
        topmost_of_long_integers(step)
        return
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


unchanged("OneHot Compress ReverseSequence", 28)
changed("OneHot", 11, "below it, negative indices give no hot value; from then on they count from the end")
_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})


@exact_upward("OneHot", 11)
def index_cannot_be_negative(c: Crossing) -> bool:
    """OneHot 9|11: indices of an unsigned type."""
    return c.dtype(0) in _UNSIGNED


@exact_downward("OneHot", 11)
def one_hot_downward(c: Crossing) -> bool:
    """OneHot 9|11, downward: unsigned indices, and an axis that the older version knows."""
    # -1 is the default of the older version, so it has a meaning there.
    return index_cannot_be_negative(c) and (c.value("axis", -1) == -1 or count_from_front(c, "axis", True))


@upward("OneHot", 11)
def negative_indices_beyond(step: Step) -> None:
    """Below 11 negative indices give no hot value: they become an index that is beyond every depth."""
    step.require_types()
    step.inputs[0] = _beyond_where_negative(step, as_int64(step, step.inputs[0], "index"))


def _beyond_where_negative(step: Step, index: str) -> str:
    is_negative = step.emit("Less", [index, step.constant(0, "zero")], "is_negative")
    return step.emit("Where", [is_negative, step.constant(_GREATEST, "beyond"), index], "indices")


@downward("OneHot", 11)
def negative_indices_from_front(step: Step) -> None:
    """Below 11 indices are counted from the front: the depth is added to those from -depth to -1; what is less gives no
    hot value, as an index beyond every depth does (a negative one too, but onnxruntime counts it from the end).
    """
    step.require_types()
    axis = step.known_value("axis", -1)
    if axis < -1:
        step.set("axis", axis + step.known_rank(0) + 1, f"axes are counted from the front {step.side}")
    found = step.elements(0)
    if found is None or np.any(found < 0):
        depth = scalar(step, as_int64(step, step.inputs[1], "depth_as_integer"), "depth")
        index = counted_from_front(step, as_int64(step, step.inputs[0], "index"), depth, "index_from_front")
        step.inputs[0] = _beyond_where_negative(step, index)


@downward("Compress", 9)
def gathered_where_true(step: Step) -> None:
    """A condition that is constant says which elements are taken."""
    condition = step.elements(1)
    if condition is None:
        raise Inexact("its condition is known only at run time")
    axis = step.known_value("axis")
    data = step.inputs[0] if axis is not None else flat(step, step.inputs[0], "elements")
    places = step.constant(np.flatnonzero(condition).tolist(), "places")
    step.replace("Gather", [data, places], axis=axis or 0)


changed("Compress", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
unchanged("NonZero GatherElements", 13)


@downward("NonZero", 9)
def places_as_constant(step: Step) -> None:
    """Of elements that are known, as of the ones that are counted, the places are a constant."""
    elements = step.elements(0)
    if elements is None:
        raise Inexact("its input is known only at run time")
    step.replace("Identity", [step.constant(np.stack(np.nonzero(elements)), "places")])


def from_front(step: Step, axis: int) -> str:
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
    indices = flat(step, from_front(step, axis), "flat_indices")
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


unchanged("GatherND", 12, 13)


@downward("GatherND", 11)
def gathered_by_offsets(step: Step) -> None:
    """The last dimension of the indices counts into the first dimensions of the data, which are made one."""
    rank, depth = step.known_rank(0), tuple_length(step)
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    operator, inputs, attributes = _merged(step, shape, depth, rank)
    data = step.emit(operator, inputs, "merged_data", **attributes)
    step.replace("Gather", [data, offsets(step, shape, depth)], axis=0)


def _merged(step: Step, shape: str, depth: int, rank: int) -> tuple[str, list[str], dict[str, int]]:
    """The node that makes the first dimensions of the data one, by operator, inputs and attributes."""
    rest = [step.emit("Gather", [shape, step.constant(range(depth, rank), "rest")], "rest")] if depth < rank else []
    # What is left for -1 is 0 where one of the first dimensions is; where one of the others is, it could be anything.
    dense = all(isinstance(dim, int) and dim > 0 for dim in (step.input_type(0).shape or ())[depth:])
    first = step.constant([-1], "merged")
    if not dense:
        sizes = step.emit("Gather", [shape, step.constant(range(depth), "first")], "first")
        first = step.emit("ReduceProd", [sizes], "merged", axes=[0], keepdims=1)
    merged = step.emit("Concat", [first, *rest], "merged_shape", axis=0)
    return reshaped(step, step.inputs[0], merged, dense=dense)


@downward("GatherND", 12)
def gathered_without_batch(step: Step) -> None:
    """The indices into the dimensions of the batch, which are those of the indices themselves, go before the others."""
    step.require_types()
    batch, rank, formula = step.known_value("batch_dims", 0), step.known_rank(1), Formula(step)
    step.drop("batch_dims", why=f"it does not exist {step.side}")
    sizes = formula.sizes(step.inputs[1], rank)
    shape = formula.vector([*sizes[:-1], 1])
    parts = [step.inputs[1]]
    for axis in reversed(range(batch)):
        places = formula.counting(sizes[axis]).reshape(*[1] * axis, -1, *[1] * (rank - axis - 1))
        parts.insert(0, step.emit("Expand", [places.name, shape.name], "batch_index"))
    step.inputs[1] = step.emit("Concat", parts, "indices", axis=rank - 1)


@downward("ReverseSequence", 10)
def reversed_by_gather(step: Step) -> None:
    """Time and batch are made one dimension, of which the elements are gathered: backwards up to the length of each
    sequence, and as they are from there on. Flatten and what is copied by Reshape may be 0.
    """
    rank, formula = step.known_rank(), Formula(step)
    time, batch = step.known_value("time_axis", 0), step.known_value("batch_axis", 1)
    if {time, batch} != {0, 1}:
        raise Inexact("its axes are not the first two")
    sizes = formula.sizes(step.inputs[0], rank)
    behind = (step.input_type(0).shape or ())[3:]
    if not all(isinstance(dim, int) and dim for dim in behind):
        raise Inexact("a dimension behind the third may be 0", "declare the shape of the input")
    length = formula.given(step.inputs[1], "int64").reshape(*((1, -1) if batch else (-1, 1)))
    place, sequence = (formula.counting(sizes[axis]).reshape(*((1, -1) if axis else (-1, 1))) for axis in (time, batch))
    source = formula.where(place < length, length - place - 1, place)
    whole = sequence * sizes[time] + source if time else source * sizes[batch] + sequence
    data = step.emit("Flatten", [step.inputs[0]], "flat", axis=2)
    if rank == 3:
        step.replace("Gather", [data, whole.name], axis=0)
        return
    found = step.emit("Gather", [data, whole.name], "reversed", axis=0)
    if rank == 2:
        step.replace("Squeeze", [found], axes=[2])
    else:
        step.replace("Reshape", [found, formula.vector([0, 0, *sizes[2:]]).name])


def tuple_length(step: Step) -> int:
    """How many dimensions of the data an index into it counts."""
    shape = step.input_type(1).shape
    depth = shape[-1] if shape else None
    if not isinstance(depth, int) or depth == 0 or step.known_value("batch_dims", 0):
        raise Inexact("into how many dimensions its indices count is not known", "declare the shape of the indices")
    if depth > step.known_rank(0):
        raise Inexact(f"its indices count into {depth:,} dimensions, and there are {step.known_rank(0)}")
    return depth


def offsets(step: Step, shape: str, depth: int) -> str:
    """Tuples of indices as one index into as many dimensions made one."""
    last = len(step.input_type(1).shape or ()) - 1
    total = ""
    for place in range(depth):
        length = dimension(step, shape, place, "length")
        index = step.emit("Gather", [step.inputs[1], step.constant(place, "place")], "index", axis=last)
        index = counted_from_front(step, index, length, "indices")
        scaled = step.emit("Mul", [total, length], "scaled") if total else ""
        total = step.emit("Add", [scaled, index], "offset") if total else index
    return total


def _gather_flat(step: Step, data: str, places: str, shape: str) -> None:
    taken = step.emit("Gather", [data, places], "taken", axis=0)
    dense = has_no_zero(step, step.inputs[1])
    operator, inputs, attributes = reshaped(step, taken, shape, dense=dense)
    step.replace(operator, inputs, **attributes)


unchanged("Gather", 11, 13)
