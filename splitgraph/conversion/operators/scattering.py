"""Scatter, ScatterElements and ScatterND: Scatter was renamed (11), and reductions were added (16, 18)."""

from __future__ import annotations

import math
from collections.abc import Callable

from splitgraph.conversion.operators.indexing import indices_from_front, offsets, tuple_length
from splitgraph.conversion.operators.predicates import value_is_one_of
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape
from splitgraph.conversion.writing.shape_nodes import has_no_zero
from splitgraph.dim import DimLike

# More slices would make the model too long to read.
_MOST_SLICES = 32
_OPERATORS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}

# ScatterElements, ScatterND -----------------------------------------------------------------------------------------

unchanged("ScatterElements ScatterND", 13, 16)


@downward("ScatterElements", 11)
def replace_by_scatter(context: AdapterContext) -> None:
    """Replaces the node by Scatter, with indices counted from the front: Scatter does not define negative ones."""
    axis = context.known_value_or_default("axis")
    inputs = [context.inputs[0], indices_from_front(context, axis), context.inputs[2]]
    context.replace("Scatter", inputs, axis=axis)


@downward("ScatterND", 11)
def scatter_by_offsets(context: AdapterContext) -> None:
    """Scatters into the rows of the data in two dimensions: those that the tuples of indices name, and the rest."""
    rank, depth = context.known_rank(0), tuple_length(context)
    shape = context.emit("Shape", [context.inputs[0]], "shape")
    places = context.emit("Reshape", [offsets(context, shape, depth), context.constant([-1, 1], "column")], "places")
    rest = (context.input_type(0).shape or ())[depth:]
    width = _product(context, shape, range(depth, rank))
    # Where the rows have elements, -1 can stand for the number of rows.
    dense = all(isinstance(dim, int) and dim > 0 for dim in rest)
    any_number = context.constant([-1], "rows")

    def in_rows(data: str, rows: str) -> str:
        row_shape = context.emit("Concat", [any_number if dense else rows, width], "row_shape", axis=0)
        return reshape(context, data, row_shape, "in_rows", dense=dense)

    data = in_rows(context.inputs[0], _product(context, shape, range(depth)))
    count = context.emit(
        "Gather", [context.emit("Shape", [places], "places_shape"), context.constant([0], "first")], "count"
    )
    wide = context.emit("Concat", [context.constant([1], "one"), width], "wide", axis=0)
    indices = context.emit("Expand", [places, wide], "indices")
    scattered = context.emit("Scatter", [data, indices, in_rows(context.inputs[2], count)], "scattered", axis=0)
    replace_by_reshape(context, scattered, shape, dense=has_no_zero(context, context.inputs[0]))


def _product(context: AdapterContext, shape: str, axes: range) -> str:
    """Gives the number of elements in some dimensions of the first input, as int64[1]."""
    dims = (context.input_type(0).shape or ())[axes.start : axes.stop]
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims):
        return context.constant([math.prod(known)], "product")
    sizes = context.emit("Gather", [shape, context.constant(axes, "axes")], "sizes")
    return context.emit("ReduceProd", [sizes], "product", axes=[0], keepdims=1)


@downward("ScatterElements", 16, 18)
def reduce_slice_by_slice(context: AdapterContext) -> None:
    """Reduces one slice of updates after the other, in the order of their indices: the updates of one slice along the
    axis go to different elements. Each slice is gathered, combined and scattered.
    """
    axis, shape = context.known_value_or_default("axis"), context.input_type(1).shape
    count = shape[axis] if shape else None

    def update(data: str, place: str, operator: str) -> str:
        indices, updates = (context.emit("Gather", [name, place], "slice", axis=axis) for name in context.inputs[1:])
        found = context.emit("GatherElements", [data, indices], "found", axis=axis)
        combined = context.emit(operator, [found, updates], "combined")
        return context.emit("ScatterElements", [data, indices, combined], "scattered", axis=axis)

    _reduce_in_order(context, count, update)


def _reduce_in_order(context: AdapterContext, count: DimLike | None, update: Callable[[str, str, str], str]) -> None:
    """Applies the updates of slices 0 to count - 1, in order."""
    context.require_types()
    reduction, dtype = context.known_value_or_default("reduction"), context.known_dtype(0)
    if reduction not in _OPERATORS or (reduction in ("add", "mul") and context.upper.since_version == 18):
        raise Inexact(f"reduction={reduction} does not exist {context.side}")
    if dtype in ("bool", "string", "complex64", "complex128") or dtype == "bfloat16":
        raise Inexact(f"{_OPERATORS[reduction]} does not take {dtype}")
    if not isinstance(count, int) or count > _MOST_SLICES:
        allowed = f"at most {_MOST_SLICES}" if isinstance(count, int) else "a fixed number of"
        found = f"has {count}" if isinstance(count, int) else "has a dynamic number"
        raise Inexact(f"reduction={reduction} needs {allowed} slices of updates; this node {found}")
    data = context.inputs[0]
    for place in range(count):
        data = update(data, context.constant([place], "place"), _OPERATORS[reduction])
    context.replace("Identity", [data])


@downward("ScatterND", 16, 18)
def reduce_tuple_by_tuple(context: AdapterContext) -> None:
    """Reduces one tuple of indices after the other: the update of one tuple goes to each element once."""
    shape = context.input_type(1).shape
    if shape is None or len(shape) != 2:
        raise Inexact(
            "a reduction needs a fixed number of index tuples in one dimension; here the number is dynamic, or indices "
            "have more dimensions"
        )

    def update(data: str, place: str, operator: str) -> str:
        indices, updates = (context.emit("Gather", [name, place], "slice", axis=0) for name in context.inputs[1:])
        found = context.emit("GatherND", [data, indices], "found")
        combined = context.emit(operator, [found, updates], "combined")
        return context.emit("ScatterND", [data, indices, combined], "scattered")

    _reduce_in_order(context, shape[0], update)


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
def rename_to_scatter_elements(context: AdapterContext) -> None:
    """Renames the node."""
    context.rename("ScatterElements")
