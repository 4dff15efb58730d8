"""TopK, OneHot, Compress, ReverseSequence, NonZero, GatherElements and GatherND: inputs that were attributes, negative
indices, and what to write below their first opsets.
"""

from __future__ import annotations

from functools import reduce

from splitgraph.conversion.notation.formula import GREATEST_INT64, Formula, Term, has_no_zero
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import (
    MINUS_AXIS,
    RANK_HINT,
    always,
    axes_counted_from_front,
    changed,
    count_from_front,
    downward,
    edited_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.conversion.operators.sorting import sort_long_integers
from splitgraph.model.deferred import np

_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})

unchanged("Gather", 11, 13)

# TopK ---------------------------------------------------------------------------------------------------------------

unchanged("TopK", 11, 24)
changed("TopK", 10, "the attribute k became an input")


@upward("TopK", 10)
def make_k_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute k into a constant of one element."""
    node.require_types()
    k = node.attribute_as_input("k")
    node.inputs.append(Formula(node).value(k, "int64").reshape(1).name)


@downward("TopK", 10)
def make_k_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant second input into the attribute k. With a k that is known only at run time, the node sorts all
    elements and Gather takes the first k.
    """
    node.require_types()
    k, axis = node.elements(1), node.known_value_or_default("axis")
    if k is not None:
        count = int(k.reshape(-1)[0])
        if count < 1:
            raise Inexact(f"k is {count}, and must be at least 1 {node.side}")
        del node.inputs[1:]
        node.set("k", count, f"it is an attribute {node.side}")
        return
    shape = node.input_type(0).shape
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int) or length < 1:
        raise Inexact("k is known only at run time, and so is how many elements there are", "declare the input's shape")
    f = Formula(node)
    first = f.counting(f.input(1))
    del node.inputs[1:]
    node.set("k", length, "all, of which the first are taken")
    for index in range(len(node.outputs)):
        if node.outputs[index]:
            f.follow(index, lambda all_sorted: all_sorted.take(first, axis % len(shape or ())))


@downward("TopK", 11)
def negate_to_find_smallest(node: NodeAtBoundary) -> None:
    """Negate the data and the result to find the smallest: below 11, TopK gives the largest, in order. Any order will
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
    f = Formula(node)
    node.inputs[0] = (-f.input(0)).name
    if node.outputs[0]:
        f.follow(0, lambda greatest: -greatest)


# OneHot -------------------------------------------------------------------------------------------------------------

unchanged("OneHot", 28)
changed("OneHot", 11, "below it, negative indices give no hot value; from then on they count from the end")


@exact_upward("OneHot", 11)
def index_cannot_be_negative(node: NodeAtBoundary) -> bool:
    """Return True when the indices have an unsigned type."""
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
    """Replace negative indices, which give no hot value below 11, by an index beyond every depth."""
    node.require_types()
    index = Formula(node).given(0).cast("int64")
    node.inputs[0] = index.formula.where(index < 0, GREATEST_INT64, index).name


@downward("OneHot", 11)
def count_indices_from_front(node: NodeAtBoundary) -> None:
    """Add the depth to indices from -depth to -1. Lesser indices give no hot value, as an index beyond every depth
    does. (So does a negative index, but onnxruntime counts it from the end.)
    """
    node.require_types()
    axis = node.known_value_or_default("axis")
    if axis < -1:
        node.set("axis", axis + node.known_rank(0) + 1, f"axes are counted from the front {node.side}")
    indices, f = node.elements(0), Formula(node)
    if indices is None or np.any(indices < 0):
        depth = f.given(1).cast("int64").reshape()
        index = f.given(0).cast("int64").from_front(depth)
        node.inputs[0] = f.where(index < 0, GREATEST_INT64, index).name


# Compress -----------------------------------------------------------------------------------------------------------

unchanged("Compress", 28)


@downward("Compress", 9)
def gather_where_true(node: NodeAtBoundary) -> None:
    """Gather the elements for which a constant condition is true."""
    condition = node.elements(1)
    if condition is None:
        raise Inexact("its condition is known only at run time")
    f, axis = Formula(node), node.known_value("axis")
    data = f.input(0).reshape(-1) if axis is None else f.input(0)
    f.give(data.take(f.number(np.flatnonzero(condition)), axis or 0))


changed("Compress", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)

# ReverseSequence ----------------------------------------------------------------------------------------------------

unchanged("ReverseSequence", 28)


@downward("ReverseSequence", 10)
def reverse_by_gather(node: NodeAtBoundary) -> None:
    """Merge time and batch into one dimension and gather its elements: backwards up to the length of each sequence,
    unchanged behind it.
    """
    rank, f = node.known_rank(), Formula(node)
    time, batch = node.known_value_or_default("time_axis"), node.known_value_or_default("batch_axis")
    if {time, batch} != {0, 1}:
        raise Inexact("its axes are not the first two")
    sizes = f.sizes(node.inputs[0], rank)
    behind = (node.input_type(0).shape or ())[3:]
    if not all(isinstance(dim, int) and dim for dim in behind):
        raise Inexact("a dimension behind the third may be 0", "declare the shape of the input")
    length = f.given(1, "int64").reshape(*((1, -1) if batch else (-1, 1)))
    place, sequence = (f.counting(sizes[axis]).reshape(*((1, -1) if axis else (-1, 1))) for axis in (time, batch))
    source = f.where(place < length, length - place - 1, place)
    whole = sequence * sizes[time] + source if time else source * sizes[batch] + sequence
    gathered = f.apply("Flatten", f.input(0), axis=2).take(whole)
    f.give(gathered if rank == 3 else gathered.squeezed(2) if rank == 2 else gathered.shaped([0, 0, *sizes[2:]]))


# NonZero ------------------------------------------------------------------------------------------------------------

unchanged("NonZero", 13)


@downward("NonZero", 9)
def write_places_as_constant(node: NodeAtBoundary) -> None:
    """Write the places as a constant where the elements are known."""
    elements = node.elements(0)
    if elements is None:
        raise Inexact("its input is known only at run time")
    node.replace("Identity", [node.constant(np.stack(np.nonzero(elements)), "places")])


# GatherElements -----------------------------------------------------------------------------------------------------

unchanged("GatherElements", 13)


@downward("GatherElements", 11)
def gather_from_flat_data(node: NodeAtBoundary) -> None:
    """Gather each element from the flat data. Its coordinates are those of its index, except along the axis, where the
    index gives the coordinate; multiplied by the strides of the data they add up to its place.
    """
    f, rank = Formula(node), node.known_rank(0)
    axis = node.known_value_or_default("axis") % rank
    shape, index_shape = (f.shape(name) for name in node.inputs[:2])
    along_axis = indices_from_front(node, f, axis).reshape(-1).cast("int64")
    where = f.apply("NonZero", f.filled(index_shape, 1))
    # The place of an element among all: the coordinates along each axis, multiplied by their strides.
    parts, stride = [], None
    for dimension in range(rank)[::-1]:
        along = along_axis if dimension == axis else where.take(dimension)
        parts.append(along if stride is None else along * stride)
        stride = shape.take(dimension) if stride is None else stride * shape.take(dimension)
    taken = f.input(0).reshape(-1).take(reduce(Term.__add__, parts))
    f.give(taken.with_shape(index_shape, dense=has_no_zero(node, node.inputs[1])))


def indices_from_front(node: NodeAtBoundary, f: Formula, axis: int) -> Term:
    """Return the indices, the second input, with negative ones counted from the front."""
    indices = node.elements(1)
    if indices is not None and np.all(indices >= 0):
        return f.input(1)
    axis += node.known_rank(0) if axis < 0 else 0
    return f.given(1).cast("int64").from_front(f.size(0, axis))


# GatherND -----------------------------------------------------------------------------------------------------------

unchanged("GatherND", 12, 13)


@downward("GatherND", 11)
def gather_by_offsets(node: NodeAtBoundary) -> None:
    """Gather from data whose first dimensions are merged into one: the last dimension of the indices counts into
    these.
    """
    f, depth = Formula(node), tuple_length(node)
    shape = f.shape(node.inputs[0])
    rest = [shape.take(range(depth, node.known_rank(0)))] if depth < node.known_rank(0) else []
    # The -1 becomes 0 where one of the first dimensions is 0. Where one of the others is 0, the -1 could be anything.
    dense = all(isinstance(dim, int) and dim > 0 for dim in (node.input_type(0).shape or ())[depth:])
    merged = f.number([-1]) if dense else shape.take(range(depth)).reduced("ReduceProd", [0], keepdims=True)
    data = f.input(0).with_shape(f.joined([merged, *rest]), dense=dense)
    f.give(data.take(offsets(node, f, depth)))


def tuple_length(node: NodeAtBoundary) -> int:
    """Return the number of data dimensions that one tuple of indices names."""
    shape = node.input_type(1).shape
    depth = shape[-1] if shape else None
    if not isinstance(depth, int) or depth == 0 or node.known_value("batch_dims", 0):
        raise Inexact("into how many dimensions its indices count is not known", "declare the shape of the indices")
    if depth > node.known_rank(0):
        raise Inexact(f"its indices count into {depth:,} dimensions, and there are {node.known_rank(0)}")
    return depth


def offsets(node: NodeAtBoundary, f: Formula, depth: int) -> Term:
    """Compute one index from each tuple of indices: into the named dimensions, merged into one."""
    last, lengths = len(node.input_type(1).shape or ()) - 1, f.shape(node.inputs[0])
    parts = [f.given(1, "int64").take(place, last).from_front(lengths.take(place)) for place in range(depth)]
    total = parts[0]
    for place, part in enumerate(parts[1:], 1):
        total = total * lengths.take(place) + part
    return total


@downward("GatherND", 12)
def index_batch_too(node: NodeAtBoundary) -> None:
    """Put indices into the batch dimensions before the other indices. The batch of an element is the batch of its
    index.
    """
    node.require_types()
    batch, rank, f = node.known_value_or_default("batch_dims"), node.known_rank(1), Formula(node)
    node.drop("batch_dims", why=f"it does not exist {node.side}")
    sizes = f.sizes(node.inputs[1], rank)
    shape = f.vector([*sizes[:-1], 1])
    places = [f.counting(sizes[axis]).reshape(*[1] * axis, -1, *[1] * (rank - axis - 1)) for axis in range(batch)]
    node.inputs[1] = f.joined([*(place.expanded(shape) for place in places), f.input(1)], rank - 1).name
