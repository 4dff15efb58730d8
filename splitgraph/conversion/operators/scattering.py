"""Scatter, ScatterElements and ScatterND: Scatter was renamed (11), and reductions were added (16, 18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from splitgraph.conversion.operators.indexing import indices_from_front, offsets, tuple_length
from splitgraph.conversion.operators.predicates import value_is_one_of
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape
from splitgraph.conversion.writing.shape_nodes import dimension, has_no_zero
from splitgraph.deferred import helper, np
from splitgraph.dim import DimLike
from splitgraph.onnx_proto import GraphProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# More slices would make the model too long to read: a Loop takes them.
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


def _product(context: AdapterContext, shape: str, axes: range, of: int = 0) -> str:
    """Gives the number of elements in some dimensions of an input, as int64[1]."""
    dims = (context.input_type(of).shape or ())[axes.start : axes.stop]
    known = _known_product(dims)
    if known is not None:
        return context.constant([known], "product")
    sizes = context.emit("Gather", [shape, context.constant(axes, "axes")], "sizes")
    return context.emit("ReduceProd", [sizes], "product", axes=[0], keepdims=1)


def _known_product(dims: Sequence[DimLike | None]) -> int | None:
    """Gives the product of dimensions, None where one of them is unknown."""
    known = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(known) if len(known) == len(dims) else None


@downward("ScatterElements", 16, 18)
def reduce_slice_by_slice(context: AdapterContext) -> None:
    """Reduces one slice of updates after the other, in the order of their indices: the updates of one slice along the
    axis go to different elements. Each slice is gathered, combined and scattered.
    """
    operator = _operator(context)
    axis, shape = context.known_value_or_default("axis"), context.input_type(1).shape
    if axis < 0:
        axis += context.known_rank(1)
    count = None if shape is None else _known_product([shape[axis]])

    def update(data: str, place: str) -> str:
        indices, updates = (context.emit("Gather", [name, place], "slice", axis=axis) for name in context.inputs[1:])
        found = context.emit("GatherElements", [data, indices], "found", axis=axis)
        combined = context.emit(operator, [found, updates], "combined")
        return context.emit("ScatterElements", [data, indices, combined], "scattered", axis=axis)

    _reduce_in_order(context, count, axis, update)


@downward("ScatterND", 16, 18)
def reduce_tuple_by_tuple(context: AdapterContext) -> None:
    """Reduces one tuple of indices after the other: the update of one tuple goes to each element once."""
    operator = _operator(context)
    rank, shape = context.known_rank(1), context.input_type(1).shape or ()
    count = _known_product(shape[:-1])
    if rank != 2:
        _list_tuples(context)

    def update(data: str, place: str) -> str:
        indices, updates = (context.emit("Gather", [name, place], "slice", axis=0) for name in context.inputs[1:])
        found = context.emit("GatherND", [data, indices], "found")
        combined = context.emit(operator, [found, updates], "combined")
        return context.emit("ScatterND", [data, indices, combined], "scattered")

    _reduce_in_order(context, count, 0, update)


def _list_tuples(context: AdapterContext) -> None:
    """Gives the tuples of indices, and their updates, one dimension in place of those before the tuple."""
    before = context.known_rank(1) - 1
    shapes = [context.emit("Shape", [name], "shape") for name in context.inputs[1:]]
    count = _product(context, shapes[0], range(before), of=1)
    for index, shape in enumerate(shapes, 1):
        behind = context.constant(range(before, context.known_rank(index)), "behind")
        listed = context.emit("Concat", [count, context.emit("Gather", [shape, behind], "size")], "listed", axis=0)
        dense = has_no_zero(context, context.inputs[index])
        context.inputs[index] = reshape(context, context.inputs[index], listed, "listed", dense=dense)


def _operator(context: AdapterContext) -> str:
    """Gives the operator that combines two elements. Raises Inexact where none does it on the other side."""
    context.require_types()
    reduction, dtype = context.known_value_or_default("reduction"), context.known_dtype(0)
    if reduction not in _OPERATORS or (reduction in ("add", "mul") and context.upper.since_version == 18):
        raise Inexact(f"reduction={reduction} does not exist {context.side}")
    if dtype in ("bool", "string", "complex64", "complex128") or dtype == "bfloat16":
        raise Inexact(f"{_OPERATORS[reduction]} does not take {dtype}")
    return _OPERATORS[reduction]


def _reduce_in_order(context: AdapterContext, count: int | None, axis: int, update: Callable[[str, str], str]) -> None:
    """Applies the updates of each slice of the indices along the axis, in order: with nodes for each slice where they
    are known to be few, otherwise in a Loop.
    """
    data = context.inputs[0]
    if count is not None and count <= _MOST_SLICES:
        for place in range(count):
            data = update(data, context.constant([place], "place"))
        context.replace("Identity", [data])
        return
    sizes = context.emit("Shape", [context.inputs[1]], "shape")
    trips, going = dimension(context, sizes, axis, "trips"), context.constant(True, "going", np.bool_)
    context.replace("Loop", [trips, going, data], body=_loop_body(context, update))


def _loop_body(context: AdapterContext, update: Callable[[str, str], str]) -> GraphProto:
    """Makes the body of the Loop, which applies the updates of one slice."""
    number, going, data = (context.new_name(hint) for hint in ("number", "going_on", "data"))
    start = len(context.before)
    place = context.emit("Reshape", [number, context.constant([1], "one")], "place")
    results = [context.emit("Identity", [going], "still"), update(data, place)]
    # What was written since then belongs into the body, also the constants that are nodes.
    nodes = [form.message() for form in context.before[start:]]
    del context.before[start:]
    shape, dtype = context.input_type(0).shape, DTYPE_NUMBERS[context.known_dtype()]
    dims = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]
    declared = [
        *(helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in (going, results[0])),
        *(helper.make_tensor_value_info(name, dtype, dims) for name in (data, results[1])),
    ]
    inputs = [helper.make_tensor_value_info(number, TensorProto.INT64, []), declared[0], declared[2]]
    return helper.make_graph(nodes, "reduction", inputs, [declared[1], declared[3]])


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
