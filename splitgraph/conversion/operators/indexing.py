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
from splitgraph.conversion.writing.formula import Formula
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
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
def make_k_an_input(node: NodeAtBoundary) -> None:
    """Turns the attribute k into a constant of one element."""
    node.require_types()
    k = node.attribute_as_input("k")
    node.inputs.append(node.write("Reshape", [k, node.constant([1], "one")], "k_row"))


@downward("TopK", 10)
def make_k_an_attribute(node: NodeAtBoundary) -> None:
    """Turns a constant second input into the attribute k. With a k that is known only at run time, the node sorts all
    elements and Gather takes the first k.
    """
    node.require_types()
    found, axis = node.elements(1), node.known_value_or_default("axis")
    if found is not None:
        count = int(found.reshape(-1)[0])
        if count < 1:
            raise Inexact(f"k is {count}, and must be at least 1 {node.side}")
        del node.inputs[1:]
        node.set("k", count, f"it is an attribute {node.side}")
        return
    shape = node.input_type(0).shape
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int) or length < 1:
        raise Inexact("k is known only at run time, and so is how many elements there are", "declare the input's shape")
    first = counting(node, node.write("Reshape", [node.inputs[1], node.constant([1], "row")], "k_row"), "first")
    del node.inputs[1:]
    node.set("k", length, "all, of which the first are taken")
    for index in range(len(node.outputs)):
        if node.outputs[index]:
            old = node.redirect(index, "of_all")
            node.write_after("Gather", [node.outputs[index], first], old, axis=axis % len(shape or ()))


@downward("TopK", 11)
def negate_to_find_smallest(node: NodeAtBoundary) -> None:
    """Negates the data and the result to find the smallest: below 11, TopK gives the largest, in order. Any order will
    do with sorted=0. Equal elements come in the order of their indices on both sides.
    """
    if node.dtype(0) in ("int64", "uint64"):
        sort_long_integers(node)
        return
    node.require_types()
    largest, axis = node.known_value_or_default("largest"), node.known_value_or_default("axis")
    node.known_value_or_default("sorted")
    node.drop("largest", "sorted", why=f"it does not exist {node.side}")
    if axis < -1:
        node.set("axis", axis + node.known_rank(0), f"axes are counted from the front {node.side}")
    if largest:
        return
    node.inputs[0] = node.write("Neg", [node.inputs[0]], "negated")
    if node.outputs[0]:
        old = node.redirect(0, "negated_values")
        node.write_after("Neg", [node.outputs[0]], old)


# OneHot -------------------------------------------------------------------------------------------------------------

unchanged("OneHot", 28)
changed("OneHot", 11, "below it, negative indices give no hot value; from then on they count from the end")


@exact_upward("OneHot", 11)
def index_cannot_be_negative(node: NodeAtBoundary) -> bool:
    """True when the indices have an unsigned type."""
    return node.dtype(0) in _UNSIGNED


@edited_downward("OneHot", 11)
def index_and_axis_are_from_front(node: NodeAtBoundary) -> None:
    """Keep a node when the indices have an unsigned type, and the axis is -1 or can be counted from the front."""
    if not index_cannot_be_negative(node):
        raise Inexact
    # -1 is the default of the older version, so it has a meaning there.
    if node.value_or_default("axis") != -1:
        count_from_front(node, "axis", True)


@upward("OneHot", 11)
def move_negative_indices_beyond(node: NodeAtBoundary) -> None:
    """Replaces negative indices, which give no hot value below 11, by an index beyond every depth."""
    node.require_types()
    node.inputs[0] = _beyond_where_negative(node, as_int64(node, node.inputs[0], "index"))


def _beyond_where_negative(node: NodeAtBoundary, index: str) -> str:
    """Replaces negative indices by the greatest int64."""
    is_negative = node.write("Less", [index, node.constant(0, "zero")], "is_negative")
    return node.write("Where", [is_negative, node.constant(GREATEST_INT64, "beyond"), index], "indices")


@downward("OneHot", 11)
def count_indices_from_front(node: NodeAtBoundary) -> None:
    """Adds the depth to indices from -depth to -1. Lesser indices give no hot value, as an index beyond every depth
    does. (So does a negative index, but onnxruntime counts it from the end.)
    """
    node.require_types()
    axis = node.known_value_or_default("axis")
    if axis < -1:
        node.set("axis", axis + node.known_rank(0) + 1, f"axes are counted from the front {node.side}")
    found = node.elements(0)
    if found is None or np.any(found < 0):
        depth = scalar(node, as_int64(node, node.inputs[1], "depth_as_integer"), "depth")
        index = counted_from_front(node, as_int64(node, node.inputs[0], "index"), depth, "index_from_front")
        node.inputs[0] = _beyond_where_negative(node, index)


# Compress -----------------------------------------------------------------------------------------------------------

unchanged("Compress", 28)


@downward("Compress", 9)
def gather_where_true(node: NodeAtBoundary) -> None:
    """Gathers the elements for which a constant condition is true."""
    condition = node.elements(1)
    if condition is None:
        raise Inexact("its condition is known only at run time")
    axis = node.known_value("axis")
    data = node.inputs[0] if axis is not None else flat(node, node.inputs[0], "elements")
    places = node.constant(np.flatnonzero(condition).tolist(), "places")
    node.replace("Gather", [data, places], axis=axis or 0)


changed("Compress", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)

# ReverseSequence ----------------------------------------------------------------------------------------------------

unchanged("ReverseSequence", 28)


@downward("ReverseSequence", 10)
def reverse_by_gather(node: NodeAtBoundary) -> None:
    """Merges time and batch into one dimension and gathers its elements: backwards up to the length of each sequence,
    unchanged behind it.
    """
    rank, formula = node.known_rank(), Formula(node)
    time, batch = node.known_value_or_default("time_axis"), node.known_value_or_default("batch_axis")
    if {time, batch} != {0, 1}:
        raise Inexact("its axes are not the first two")
    sizes = formula.sizes(node.inputs[0], rank)
    behind = (node.input_type(0).shape or ())[3:]
    if not all(isinstance(dim, int) and dim for dim in behind):
        raise Inexact("a dimension behind the third may be 0", "declare the shape of the input")
    length = formula.given(node.inputs[1], "int64").reshape(*((1, -1) if batch else (-1, 1)))
    place, sequence = (formula.counting(sizes[axis]).reshape(*((1, -1) if axis else (-1, 1))) for axis in (time, batch))
    source = formula.where(place < length, length - place - 1, place)
    whole = sequence * sizes[time] + source if time else source * sizes[batch] + sequence
    data = node.write("Flatten", [node.inputs[0]], "flat", axis=2)
    if rank == 3:
        node.replace("Gather", [data, whole.name], axis=0)
        return
    found = node.write("Gather", [data, whole.name], "reversed", axis=0)
    if rank == 2:
        node.replace("Squeeze", [found], axes=[2])
    else:
        node.replace("Reshape", [found, formula.vector([0, 0, *sizes[2:]]).name])


# NonZero ------------------------------------------------------------------------------------------------------------

unchanged("NonZero", 13)


@downward("NonZero", 9)
def write_places_as_constant(node: NodeAtBoundary) -> None:
    """Writes the places as a constant where the elements are known."""
    elements = node.elements(0)
    if elements is None:
        raise Inexact("its input is known only at run time")
    node.replace("Identity", [node.constant(np.stack(np.nonzero(elements)), "places")])


# GatherElements -----------------------------------------------------------------------------------------------------

unchanged("GatherElements", 13)


@downward("GatherElements", 11)
def gather_from_flat_data(node: NodeAtBoundary) -> None:
    """Gathers each element from the flat data. Its coordinates are those of its index, except along the axis, where the
    index gives the coordinate; multiplied by the strides of the data they add up to its place.
    """
    rank, axis = node.known_rank(0), node.known_value_or_default("axis")
    axis %= rank
    shape, index_shape = (node.write("Shape", [name], "shape") for name in node.inputs[:2])
    indices = flat(node, indices_from_front(node, axis), "flat_indices")
    places = as_int64(node, indices, "along_axis")
    where = node.write("NonZero", [filled(node, index_shape, 1, "ones")], "coordinates")
    strides = [node.constant(1, "stride")]
    for place in range(rank - 1, 0, -1):
        strides.append(node.write("Mul", [strides[-1], dimension(node, shape, place, "length")], "stride"))
    total = None
    for place, stride in enumerate(reversed(strides)):
        row = places if place == axis else dimension(node, where, place, "row")
        part = node.write("Mul", [row, stride], "offset")
        total = part if total is None else node.write("Add", [total, part], "place")
    assert total is not None
    _gather_flat(node, flat(node, node.inputs[0], "flat_data"), total, index_shape)


def indices_from_front(node: NodeAtBoundary, axis: int) -> str:
    """Gives the indices, the second input, with negative ones counted from the front."""
    found = node.elements(1)
    if found is not None and np.all(found >= 0):
        return node.inputs[1]
    if axis < 0:
        axis += node.known_rank(0)
    length = dimension(node, node.write("Shape", [node.inputs[0]], "shape"), axis, "length")
    return counted_from_front(node, as_int64(node, node.inputs[1], "given_indices"), length, "indices")


def _gather_flat(node: NodeAtBoundary, data: str, places: str, shape: str) -> None:
    """Gathers from flat data and gives the result a shape."""
    taken = node.write("Gather", [data, places], "taken", axis=0)
    dense = has_no_zero(node, node.inputs[1])
    replace_by_reshape(node, taken, shape, dense=dense)


# GatherND -----------------------------------------------------------------------------------------------------------

unchanged("GatherND", 12, 13)


@downward("GatherND", 11)
def gather_by_offsets(node: NodeAtBoundary) -> None:
    """Gathers from data whose first dimensions are merged into one: the last dimension of the indices counts into
    these.
    """
    rank, depth = node.known_rank(0), tuple_length(node)
    shape = node.write("Shape", [node.inputs[0]], "shape")
    data = _merge_first_dimensions(node, shape, depth, rank)
    node.replace("Gather", [data, offsets(node, shape, depth)], axis=0)


def tuple_length(node: NodeAtBoundary) -> int:
    """Gives the number of data dimensions that one tuple of indices names."""
    shape = node.input_type(1).shape
    depth = shape[-1] if shape else None
    if not isinstance(depth, int) or depth == 0 or node.known_value("batch_dims", 0):
        raise Inexact("into how many dimensions its indices count is not known", "declare the shape of the indices")
    if depth > node.known_rank(0):
        raise Inexact(f"its indices count into {depth:,} dimensions, and there are {node.known_rank(0)}")
    return depth


def _merge_first_dimensions(node: NodeAtBoundary, shape: str, depth: int, rank: int) -> str:
    """Merges the first dimensions of the data into one."""
    rest = [node.write("Gather", [shape, node.constant(range(depth, rank), "rest")], "rest")] if depth < rank else []
    # The -1 becomes 0 where one of the first dimensions is 0. Where one of the others is 0, the -1 could be anything.
    dense = all(isinstance(dim, int) and dim > 0 for dim in (node.input_type(0).shape or ())[depth:])
    first = node.constant([-1], "merged")
    if not dense:
        sizes = node.write("Gather", [shape, node.constant(range(depth), "first")], "first")
        first = node.write("ReduceProd", [sizes], "merged", axes=[0], keepdims=1)
    merged = node.write("Concat", [first, *rest], "merged_shape", axis=0)
    return reshape(node, node.inputs[0], merged, "merged_data", dense=dense)


def offsets(node: NodeAtBoundary, shape: str, depth: int) -> str:
    """Computes one index from each tuple of indices: into the named dimensions, merged into one."""
    last = len(node.input_type(1).shape or ()) - 1
    total = ""
    for place in range(depth):
        length = dimension(node, shape, place, "length")
        index = node.write("Gather", [node.inputs[1], node.constant(place, "place")], "index", axis=last)
        index = counted_from_front(node, index, length, "indices")
        scaled = node.write("Mul", [total, length], "scaled") if total else ""
        total = node.write("Add", [scaled, index], "offset") if total else index
    return total


@downward("GatherND", 12)
def index_batch_too(node: NodeAtBoundary) -> None:
    """Puts indices into the batch dimensions before the other indices. The batch of an element is the batch of its
    index.
    """
    node.require_types()
    batch, rank, formula = node.known_value_or_default("batch_dims"), node.known_rank(1), Formula(node)
    node.drop("batch_dims", why=f"it does not exist {node.side}")
    sizes = formula.sizes(node.inputs[1], rank)
    shape = formula.vector([*sizes[:-1], 1])
    parts = [node.inputs[1]]
    for axis in reversed(range(batch)):
        places = formula.counting(sizes[axis]).reshape(*[1] * axis, -1, *[1] * (rank - axis - 1))
        parts.insert(0, node.write("Expand", [places.name, shape.name], "batch_index"))
    node.inputs[1] = node.write("Concat", parts, "indices", axis=rank - 1)
