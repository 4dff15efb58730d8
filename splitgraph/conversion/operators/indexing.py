"""TopK, OneHot, Compress, ReverseSequence, NonZero, GatherElements and GatherND: inputs that were attributes, negative
indices, and what to write below their first opsets.
"""

from __future__ import annotations

from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front, count_from_front
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.conversion.operators.sorting import sort_long_integers
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.formula import Formula
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape
from splitgraph.conversion.writing.shape_nodes import (
    GREATEST_INT64,
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

_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})

unchanged("Gather", 11, 13)

# TopK ---------------------------------------------------------------------------------------------------------------

unchanged("TopK", 11, 24)
changed("TopK", 10, "the attribute k became an input")


@upward("TopK", 10)
def make_k_an_input(context: AdapterContext) -> None:
    """Turns the attribute k into a constant of one element."""
    context.require_types()
    k = context.attribute_as_input("k")
    context.inputs.append(context.emit("Reshape", [k, context.constant([1], "one")], "k_row"))


@downward("TopK", 10)
def make_k_an_attribute(context: AdapterContext) -> None:
    """Turns a constant second input into the attribute k. With a k that is known only at run time, the node sorts all
    elements and Gather takes the first k.
    """
    context.require_types()
    found, axis = context.elements(1), context.known_value_or_default("axis")
    if found is not None:
        count = int(found.reshape(-1)[0])
        if count < 1:
            raise Inexact(f"k is {count}, and must be at least 1 {context.side}")
        del context.inputs[1:]
        context.set("k", count, f"it is an attribute {context.side}")
        return
    shape = context.input_type(0).shape
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int) or length < 1:
        raise Inexact("k is known only at run time, and so is how many elements there are", "declare the input's shape")
    first = counting(
        context, context.emit("Reshape", [context.inputs[1], context.constant([1], "row")], "k_row"), "first"
    )
    del context.inputs[1:]
    context.set("k", length, "all, of which the first are taken")
    for index in range(len(context.outputs)):
        if context.outputs[index]:
            old = context.redirect(index, "of_all")
            context.emit_after("Gather", [context.outputs[index], first], old, axis=axis % len(shape or ()))


@downward("TopK", 11)
def negate_to_find_smallest(context: AdapterContext) -> None:
    """Negates the data and the result to find the smallest: below 11, TopK gives the largest, in order. Any order will
    do with sorted=0. Equal elements come in the order of their indices on both sides.
    """
    if context.dtype(0) in ("int64", "uint64"):
        sort_long_integers(context)
        return
    context.require_types()
    largest, axis = context.known_value_or_default("largest"), context.known_value_or_default("axis")
    context.known_value_or_default("sorted")
    context.drop("largest", "sorted", why=f"it does not exist {context.side}")
    if axis < -1:
        context.set("axis", axis + context.known_rank(0), f"axes are counted from the front {context.side}")
    if largest:
        return
    context.inputs[0] = context.emit("Neg", [context.inputs[0]], "negated")
    if context.outputs[0]:
        old = context.redirect(0, "negated_values")
        context.emit_after("Neg", [context.outputs[0]], old)


# OneHot -------------------------------------------------------------------------------------------------------------

unchanged("OneHot", 28)
changed("OneHot", 11, "below it, negative indices give no hot value; from then on they count from the end")


@exact_upward("OneHot", 11)
def index_cannot_be_negative(crossing: AdapterContext) -> bool:
    """True when the indices have an unsigned type."""
    return crossing.dtype(0) in _UNSIGNED


@edited_downward("OneHot", 11)
def index_and_axis_are_from_front(crossing: AdapterContext) -> None:
    """Keep a node when the indices have an unsigned type, and the axis is -1 or can be counted from the front."""
    if not index_cannot_be_negative(crossing):
        raise Inexact
    # -1 is the default of the older version, so it has a meaning there.
    if crossing.value_or_default("axis") != -1:
        count_from_front(crossing, "axis", True)


@upward("OneHot", 11)
def move_negative_indices_beyond(context: AdapterContext) -> None:
    """Replaces negative indices, which give no hot value below 11, by an index beyond every depth."""
    context.require_types()
    context.inputs[0] = _beyond_where_negative(context, as_int64(context, context.inputs[0], "index"))


def _beyond_where_negative(context: AdapterContext, index: str) -> str:
    """Replaces negative indices by the greatest int64."""
    is_negative = context.emit("Less", [index, context.constant(0, "zero")], "is_negative")
    return context.emit("Where", [is_negative, context.constant(GREATEST_INT64, "beyond"), index], "indices")


@downward("OneHot", 11)
def count_indices_from_front(context: AdapterContext) -> None:
    """Adds the depth to indices from -depth to -1. Lesser indices give no hot value, as an index beyond every depth
    does. (So does a negative index, but onnxruntime counts it from the end.)
    """
    context.require_types()
    axis = context.known_value_or_default("axis")
    if axis < -1:
        context.set("axis", axis + context.known_rank(0) + 1, f"axes are counted from the front {context.side}")
    found = context.elements(0)
    if found is None or np.any(found < 0):
        depth = scalar(context, as_int64(context, context.inputs[1], "depth_as_integer"), "depth")
        index = counted_from_front(context, as_int64(context, context.inputs[0], "index"), depth, "index_from_front")
        context.inputs[0] = _beyond_where_negative(context, index)


# Compress -----------------------------------------------------------------------------------------------------------

unchanged("Compress", 28)


@downward("Compress", 9)
def gather_where_true(context: AdapterContext) -> None:
    """Gathers the elements for which a constant condition is true."""
    condition = context.elements(1)
    if condition is None:
        raise Inexact("its condition is known only at run time")
    axis = context.known_value("axis")
    data = context.inputs[0] if axis is not None else flat(context, context.inputs[0], "elements")
    places = context.constant(np.flatnonzero(condition).tolist(), "places")
    context.replace("Gather", [data, places], axis=axis or 0)


changed("Compress", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)

# ReverseSequence ----------------------------------------------------------------------------------------------------

unchanged("ReverseSequence", 28)


@downward("ReverseSequence", 10)
def reverse_by_gather(context: AdapterContext) -> None:
    """Merges time and batch into one dimension and gathers its elements: backwards up to the length of each sequence,
    unchanged behind it.
    """
    rank, formula = context.known_rank(), Formula(context)
    time, batch = context.known_value_or_default("time_axis"), context.known_value_or_default("batch_axis")
    if {time, batch} != {0, 1}:
        raise Inexact("its axes are not the first two")
    sizes = formula.sizes(context.inputs[0], rank)
    behind = (context.input_type(0).shape or ())[3:]
    if not all(isinstance(dim, int) and dim for dim in behind):
        raise Inexact("a dimension behind the third may be 0", "declare the shape of the input")
    length = formula.given(context.inputs[1], "int64").reshape(*((1, -1) if batch else (-1, 1)))
    place, sequence = (formula.counting(sizes[axis]).reshape(*((1, -1) if axis else (-1, 1))) for axis in (time, batch))
    source = formula.where(place < length, length - place - 1, place)
    whole = sequence * sizes[time] + source if time else source * sizes[batch] + sequence
    data = context.emit("Flatten", [context.inputs[0]], "flat", axis=2)
    if rank == 3:
        context.replace("Gather", [data, whole.name], axis=0)
        return
    found = context.emit("Gather", [data, whole.name], "reversed", axis=0)
    if rank == 2:
        context.replace("Squeeze", [found], axes=[2])
    else:
        context.replace("Reshape", [found, formula.vector([0, 0, *sizes[2:]]).name])


# NonZero ------------------------------------------------------------------------------------------------------------

unchanged("NonZero", 13)


@downward("NonZero", 9)
def write_places_as_constant(context: AdapterContext) -> None:
    """Writes the places as a constant where the elements are known."""
    elements = context.elements(0)
    if elements is None:
        raise Inexact("its input is known only at run time")
    context.replace("Identity", [context.constant(np.stack(np.nonzero(elements)), "places")])


# GatherElements -----------------------------------------------------------------------------------------------------

unchanged("GatherElements", 13)


@downward("GatherElements", 11)
def gather_from_flat_data(context: AdapterContext) -> None:
    """Gathers each element from the flat data. Its coordinates are those of its index, except along the axis, where the
    index gives the coordinate; multiplied by the strides of the data they add up to its place.
    """
    rank, axis = context.known_rank(0), context.known_value_or_default("axis")
    axis %= rank
    shape, index_shape = (context.emit("Shape", [name], "shape") for name in context.inputs[:2])
    indices = flat(context, indices_from_front(context, axis), "flat_indices")
    places = as_int64(context, indices, "along_axis")
    where = context.emit("NonZero", [filled(context, index_shape, 1, "ones")], "coordinates")
    strides = [context.constant(1, "stride")]
    for place in range(rank - 1, 0, -1):
        strides.append(context.emit("Mul", [strides[-1], dimension(context, shape, place, "length")], "stride"))
    total = None
    for place, stride in enumerate(reversed(strides)):
        row = places if place == axis else dimension(context, where, place, "row")
        part = context.emit("Mul", [row, stride], "offset")
        total = part if total is None else context.emit("Add", [total, part], "place")
    assert total is not None
    _gather_flat(context, flat(context, context.inputs[0], "flat_data"), total, index_shape)


def indices_from_front(context: AdapterContext, axis: int) -> str:
    """Gives the indices, the second input, with negative ones counted from the front."""
    found = context.elements(1)
    if found is not None and np.all(found >= 0):
        return context.inputs[1]
    if axis < 0:
        axis += context.known_rank(0)
    length = dimension(context, context.emit("Shape", [context.inputs[0]], "shape"), axis, "length")
    return counted_from_front(context, as_int64(context, context.inputs[1], "given_indices"), length, "indices")


def _gather_flat(context: AdapterContext, data: str, places: str, shape: str) -> None:
    """Gathers from flat data and gives the result a shape."""
    taken = context.emit("Gather", [data, places], "taken", axis=0)
    dense = has_no_zero(context, context.inputs[1])
    replace_by_reshape(context, taken, shape, dense=dense)


# GatherND -----------------------------------------------------------------------------------------------------------

unchanged("GatherND", 12, 13)


@downward("GatherND", 11)
def gather_by_offsets(context: AdapterContext) -> None:
    """Gathers from data whose first dimensions are merged into one: the last dimension of the indices counts into
    these.
    """
    rank, depth = context.known_rank(0), tuple_length(context)
    shape = context.emit("Shape", [context.inputs[0]], "shape")
    data = _merge_first_dimensions(context, shape, depth, rank)
    context.replace("Gather", [data, offsets(context, shape, depth)], axis=0)


def tuple_length(context: AdapterContext) -> int:
    """Gives the number of data dimensions that one tuple of indices names."""
    shape = context.input_type(1).shape
    depth = shape[-1] if shape else None
    if not isinstance(depth, int) or depth == 0 or context.known_value("batch_dims", 0):
        raise Inexact("into how many dimensions its indices count is not known", "declare the shape of the indices")
    if depth > context.known_rank(0):
        raise Inexact(f"its indices count into {depth:,} dimensions, and there are {context.known_rank(0)}")
    return depth


def _merge_first_dimensions(context: AdapterContext, shape: str, depth: int, rank: int) -> str:
    """Merges the first dimensions of the data into one."""
    rest = (
        [context.emit("Gather", [shape, context.constant(range(depth, rank), "rest")], "rest")] if depth < rank else []
    )
    # The -1 becomes 0 where one of the first dimensions is 0. Where one of the others is 0, the -1 could be anything.
    dense = all(isinstance(dim, int) and dim > 0 for dim in (context.input_type(0).shape or ())[depth:])
    first = context.constant([-1], "merged")
    if not dense:
        sizes = context.emit("Gather", [shape, context.constant(range(depth), "first")], "first")
        first = context.emit("ReduceProd", [sizes], "merged", axes=[0], keepdims=1)
    merged = context.emit("Concat", [first, *rest], "merged_shape", axis=0)
    return reshape(context, context.inputs[0], merged, "merged_data", dense=dense)


def offsets(context: AdapterContext, shape: str, depth: int) -> str:
    """Computes one index from each tuple of indices: into the named dimensions, merged into one."""
    last = len(context.input_type(1).shape or ()) - 1
    total = ""
    for place in range(depth):
        length = dimension(context, shape, place, "length")
        index = context.emit("Gather", [context.inputs[1], context.constant(place, "place")], "index", axis=last)
        index = counted_from_front(context, index, length, "indices")
        scaled = context.emit("Mul", [total, length], "scaled") if total else ""
        total = context.emit("Add", [scaled, index], "offset") if total else index
    return total


@downward("GatherND", 12)
def index_batch_too(context: AdapterContext) -> None:
    """Puts indices into the batch dimensions before the other indices. The batch of an element is the batch of its
    index.
    """
    context.require_types()
    batch, rank, formula = context.known_value_or_default("batch_dims"), context.known_rank(1), Formula(context)
    context.drop("batch_dims", why=f"it does not exist {context.side}")
    sizes = formula.sizes(context.inputs[1], rank)
    shape = formula.vector([*sizes[:-1], 1])
    parts = [context.inputs[1]]
    for axis in reversed(range(batch)):
        places = formula.counting(sizes[axis]).reshape(*[1] * axis, -1, *[1] * (rank - axis - 1))
        parts.insert(0, context.emit("Expand", [places.name, shape.name], "batch_index"))
    context.inputs[1] = context.emit("Concat", parts, "indices", axis=rank - 1)
