"""Scatter, ScatterElements and ScatterND: Scatter was renamed (11), and reductions were added (16, 18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from splitgraph.conversion.operators.indexing import indices_from_front, offsets, tuple_length
from splitgraph.conversion.operators.predicates import value_is_one_of
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
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
def replace_by_scatter(node: NodeAtBoundary) -> None:
    """Replaces the node by Scatter, with indices counted from the front: Scatter does not define negative ones."""
    axis = node.known_value_or_default("axis")
    inputs = [node.inputs[0], indices_from_front(node, axis), node.inputs[2]]
    node.replace("Scatter", inputs, axis=axis)


@downward("ScatterND", 11)
def scatter_by_offsets(node: NodeAtBoundary) -> None:
    """Scatters into the rows of the data in two dimensions: those that the tuples of indices name, and the rest."""
    rank, depth = node.known_rank(0), tuple_length(node)
    shape = node.write("Shape", [node.inputs[0]], "shape")
    places = node.write("Reshape", [offsets(node, shape, depth), node.constant([-1, 1], "column")], "places")
    rest = (node.input_type(0).shape or ())[depth:]
    width = _product(node, shape, range(depth, rank))
    # Where the rows have elements, -1 can stand for the number of rows.
    dense = all(isinstance(dim, int) and dim > 0 for dim in rest)
    any_number = node.constant([-1], "rows")

    def in_rows(data: str, rows: str) -> str:
        row_shape = node.write("Concat", [any_number if dense else rows, width], "row_shape", axis=0)
        return reshape(node, data, row_shape, "in_rows", dense=dense)

    data = in_rows(node.inputs[0], _product(node, shape, range(depth)))
    count = node.write("Gather", [node.write("Shape", [places], "places_shape"), node.constant([0], "first")], "count")
    wide = node.write("Concat", [node.constant([1], "one"), width], "wide", axis=0)
    indices = node.write("Expand", [places, wide], "indices")
    scattered = node.write("Scatter", [data, indices, in_rows(node.inputs[2], count)], "scattered", axis=0)
    replace_by_reshape(node, scattered, shape, dense=has_no_zero(node, node.inputs[0]))


def _product(node: NodeAtBoundary, shape: str, axes: range, of: int = 0) -> str:
    """Gives the number of elements in some dimensions of an input, as int64[1]."""
    dims = (node.input_type(of).shape or ())[axes.start : axes.stop]
    known = _known_product(dims)
    if known is not None:
        return node.constant([known], "product")
    sizes = node.write("Gather", [shape, node.constant(axes, "axes")], "sizes")
    return node.write("ReduceProd", [sizes], "product", axes=[0], keepdims=1)


def _known_product(dims: Sequence[DimLike | None]) -> int | None:
    """Gives the product of dimensions, None where one of them is unknown."""
    known = [dim for dim in dims if isinstance(dim, int)]
    return math.prod(known) if len(known) == len(dims) else None


@downward("ScatterElements", 16, 18)
def reduce_slice_by_slice(node: NodeAtBoundary) -> None:
    """Reduces one slice of updates after the other, in the order of their indices: the updates of one slice along the
    axis go to different elements. Each slice is gathered, combined and scattered.
    """
    operator = _operator(node)
    axis, shape = node.known_value_or_default("axis"), node.input_type(1).shape
    if axis < 0:
        axis += node.known_rank(1)
    count = None if shape is None else _known_product([shape[axis]])

    def update(data: str, place: str) -> str:
        indices, updates = (node.write("Gather", [name, place], "slice", axis=axis) for name in node.inputs[1:])
        found = node.write("GatherElements", [data, indices], "found", axis=axis)
        combined = node.write(operator, [found, updates], "combined")
        return node.write("ScatterElements", [data, indices, combined], "scattered", axis=axis)

    _reduce_in_order(node, count, axis, update)


@downward("ScatterND", 16, 18)
def reduce_tuple_by_tuple(node: NodeAtBoundary) -> None:
    """Reduces one tuple of indices after the other: the update of one tuple goes to each element once."""
    operator = _operator(node)
    rank, shape = node.known_rank(1), node.input_type(1).shape or ()
    count = _known_product(shape[:-1])
    if rank != 2:
        _list_tuples(node)

    def update(data: str, place: str) -> str:
        indices, updates = (node.write("Gather", [name, place], "slice", axis=0) for name in node.inputs[1:])
        found = node.write("GatherND", [data, indices], "found")
        combined = node.write(operator, [found, updates], "combined")
        return node.write("ScatterND", [data, indices, combined], "scattered")

    _reduce_in_order(node, count, 0, update)


def _list_tuples(node: NodeAtBoundary) -> None:
    """Gives the tuples of indices, and their updates, one dimension in place of those before the tuple."""
    before = node.known_rank(1) - 1
    shapes = [node.write("Shape", [name], "shape") for name in node.inputs[1:]]
    count = _product(node, shapes[0], range(before), of=1)
    for index, shape in enumerate(shapes, 1):
        behind = node.constant(range(before, node.known_rank(index)), "behind")
        listed = node.write("Concat", [count, node.write("Gather", [shape, behind], "size")], "listed", axis=0)
        dense = has_no_zero(node, node.inputs[index])
        node.inputs[index] = reshape(node, node.inputs[index], listed, "listed", dense=dense)


def _operator(node: NodeAtBoundary) -> str:
    """Gives the operator that combines two elements. Raises Inexact where none does it on the other side."""
    node.require_types()
    reduction, dtype = node.known_value_or_default("reduction"), node.known_dtype(0)
    if reduction not in _OPERATORS or (reduction in ("add", "mul") and node.upper.since_version == 18):
        raise Inexact(f"reduction={reduction} does not exist {node.side}")
    if dtype in ("bool", "string", "complex64", "complex128") or dtype == "bfloat16":
        raise Inexact(f"{_OPERATORS[reduction]} does not take {dtype}")
    return _OPERATORS[reduction]


def _reduce_in_order(node: NodeAtBoundary, count: int | None, axis: int, update: Callable[[str, str], str]) -> None:
    """Applies the updates of each slice of the indices along the axis, in order: with nodes for each slice where they
    are known to be few, otherwise in a Loop.
    """
    data = node.inputs[0]
    if count is not None and count <= _MOST_SLICES:
        for place in range(count):
            data = update(data, node.constant([place], "place"))
        node.replace("Identity", [data])
        return
    sizes = node.write("Shape", [node.inputs[1]], "shape")
    trips, going = dimension(node, sizes, axis, "trips"), node.constant(True, "going", np.bool_)
    node.replace("Loop", [trips, going, data], body=_loop_body(node, update))


def _loop_body(node: NodeAtBoundary, update: Callable[[str, str], str]) -> GraphProto:
    """Makes the body of the Loop, which applies the updates of one slice."""
    number, going, data = (node.new_name(hint) for hint in ("number", "going_on", "data"))
    start = len(node.before)
    place = node.write("Reshape", [number, node.constant([1], "one")], "place")
    results = [node.write("Identity", [going], "still"), update(data, place)]
    # What was written since then belongs into the body, also the constants that are nodes.
    nodes = [form.message() for form in node.before[start:]]
    del node.before[start:]
    shape, dtype = node.input_type(0).shape, DTYPE_NUMBERS[node.known_dtype()]
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
def rename_to_scatter_elements(node: NodeAtBoundary) -> None:
    """Renames the node."""
    node.rename("ScatterElements")
