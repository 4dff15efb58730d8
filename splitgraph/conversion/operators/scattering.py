"""Scatter, ScatterElements, ScatterND and TensorScatter: Scatter was renamed (11), and reductions were added (16, 18);
TensorScatter is written as ScatterElements below its first opset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.indexing import indices_from_front, offsets, tuple_length
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward, value_is_one_of
from splitgraph.dim import DimLike

# More slices would make the model too long to read: a Loop takes them.
_MOST_SLICES = 32
_OPERATORS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}

# ScatterElements, ScatterND -----------------------------------------------------------------------------------------

unchanged("ScatterElements ScatterND", 13, 16)


@downward("ScatterElements", 11)
def replace_by_scatter(node: NodeAtBoundary) -> None:
    """Replace the node by Scatter, with indices counted from the front: Scatter does not define negative ones."""
    axis, f = node.known_value_or_default("axis"), Formula(node)
    f.give(f.apply("Scatter", f.input(0), indices_from_front(node, f, axis), f.input(2), axis=axis))


@downward("ScatterND", 11)
def scatter_by_offsets(node: NodeAtBoundary) -> None:
    """Scatter into the rows of the data in two dimensions: those that the tuples of indices name, and the rest."""
    rank, depth, f = node.known_rank(0), tuple_length(node), Formula(node)
    shape, places = f.shape(node.inputs[0]), offsets(node, f, depth).reshape(-1, 1)
    rest = (node.input_type(0).shape or ())[depth:]
    width = _product(shape, range(depth, rank), rest)
    # Where the rows have elements, -1 can stand for the number of rows.
    dense = all(isinstance(dim, int) and dim > 0 for dim in rest)

    def in_rows(data: Term, rows: Term) -> Term:
        return data.with_shape(f.joined([f.number([-1]) if dense else rows, width]), dense=dense)

    data = in_rows(f.input(0), _product(shape, range(depth), (node.input_type(0).shape or ())[:depth]))
    updates = in_rows(f.input(2), f.shape(places.name).take([0]))
    scattered = f.apply("Scatter", data, places.expanded(f.joined([f.number([1]), width])), updates, axis=0)
    f.give(scattered.with_shape(shape, dense=has_no_zero(node, node.inputs[0])))


def _product(shape: Term, axes: range, dims: Sequence[DimLike | None]) -> Term:
    """Return the number of elements in some dimensions, int64[1]. dims: what is known of these dimensions."""
    count = _known_product(dims)
    if count is not None:
        return shape.formula.number([count])
    return shape.take(axes).reduced("ReduceProd", [0], keepdims=True)


def _known_product(dims: Sequence[DimLike | None]) -> int | None:
    """Return the product of dimensions, None where one of them is unknown."""
    known = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(known) if len(known) == len(dims) else None


@downward("ScatterElements", 16, 18)
def reduce_slice_by_slice(node: NodeAtBoundary) -> None:
    """Reduce one slice of updates after the other, in the order of their indices: the updates of one slice along the
    axis go to different elements. Each slice is gathered, combined and scattered.
    """
    operator, f = _operator(node), Formula(node)
    axis, shape = node.known_value_or_default("axis"), node.input_type(1).shape
    axis += node.known_rank(1) if axis < 0 else 0

    def update(data: Term, place: Term) -> Term:
        indices, updates = (f.input(index).take(place, axis) for index in (1, 2))
        old = f.apply("GatherElements", data, indices, axis=axis)
        return f.apply("ScatterElements", data, indices, f.apply(operator, old, updates), axis=axis)

    _reduce_in_order(node, f, None if shape is None else _known_product([shape[axis]]), axis, update)


@downward("ScatterND", 16, 18)
def reduce_tuple_by_tuple(node: NodeAtBoundary) -> None:
    """Reduce one tuple of indices after the other: the update of one tuple goes to each element once."""
    operator, f = _operator(node), Formula(node)
    before, shape = node.known_rank(1) - 1, node.input_type(1).shape or ()
    if before != 1:
        # The tuples of indices, and their updates, get one dimension in place of those before the tuple.
        count = _product(f.shape(node.inputs[1]), range(before), shape[:-1])
        for index in (1, 2):
            size = f.shape(node.inputs[index]).take(range(before, node.known_rank(index)))
            dense = has_no_zero(node, node.inputs[index])
            node.inputs[index] = f.input(index).with_shape(f.joined([count, size]), dense=dense).name

    def update(data: Term, place: Term) -> Term:
        indices, updates = (f.input(index).take(place) for index in (1, 2))
        combined = f.apply(operator, f.apply("GatherND", data, indices), updates)
        return f.apply("ScatterND", data, indices, combined)

    _reduce_in_order(node, f, _known_product(shape[:-1]), 0, update)


def _operator(node: NodeAtBoundary) -> str:
    """Return the operator that combines two elements. Raises Inexact where none does it on the other side."""
    node.require_types()
    reduction, dtype = node.known_value_or_default("reduction"), node.known_dtype(0)
    if reduction not in _OPERATORS or (reduction in ("add", "mul") and node.upper.since_version == 18):
        raise Inexact(f"reduction={reduction} does not exist {node.side}")
    if dtype in ("bool", "string", "complex64", "complex128") or dtype == "bfloat16":
        raise Inexact(f"{_OPERATORS[reduction]} does not take {dtype}")
    return _OPERATORS[reduction]


def _reduce_in_order(
    node: NodeAtBoundary, f: Formula, count: int | None, axis: int, update: Callable[[Term, Term], Term]
) -> None:
    """Apply the updates of each slice of the indices along the axis, in order: with nodes for each slice where they are
    known to be few, otherwise in a Loop.
    """
    data, shape = f.value(node.inputs[0], node.known_dtype()), node.input_type(0).shape
    if count is not None and count <= _MOST_SLICES:
        for place in range(count):
            data = update(data, f.number([place]))
        f.give(data)
        return
    dims = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]
    trips = f.shape(node.inputs[1]).take(axis)
    f.give(*f.loop(trips, [data], lambda place, data: [update(data, place.reshape(1))], [dims]))


changed(
    "ScatterElements ScatterND",
    18,
    "reduction=max and min were added",
    up=always,
    down=value_is_one_of("reduction", "none", "add", "mul"),
)

# Scatter ------------------------------------------------------------------------------------------------------------

changed("Scatter", 11, "it is deprecated from then on; ScatterElements replaces it")


@upward("Scatter", 11)
def rename_to_scatter_elements(node: NodeAtBoundary) -> None:
    """Rename the node."""
    node.rename("ScatterElements")


# TensorScatter ------------------------------------------------------------------------------------------------------


@downward("TensorScatter", 24)
def scatter_into_cache(node: NodeAtBoundary) -> None:
    """Write TensorScatter as ScatterElements. The index along the axis is the position where the sample begins to
    write, plus the position in the update; modulo the size of a circular cache.
    """
    rank, f = node.known_rank(0), Formula(node)
    axis = node.known_value_or_default("axis") % rank
    past, update, shape = f.input(0), f.input(1), f.shape(node.inputs[1])
    indices = f.counting(shape.take([axis]), is_row=True).reshape(
        *(-1 if place == axis else 1 for place in range(rank))
    )
    if node.uses_input(2):
        indices = indices + f.given(2, "int64").reshape(-1, *[1] * (rank - 1))
    if node.known_value_or_default("mode") == "circular":
        indices = indices % f.size(0, axis)
    f.give(f.apply("ScatterElements", past, indices.expanded(shape), update, axis=axis))
