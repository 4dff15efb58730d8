"""TensorScatter: below its first opset, written as ScatterElements."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.adapter_context import AdapterContext
from splitgraph.conversion.writing.shape_nodes import counting, dimension


@downward("TensorScatter", 24)
def scatter_into_cache(context: AdapterContext) -> None:
    """Writes TensorScatter as ScatterElements. The index along the axis is the position where the sample begins to
    write, plus the position in the update; modulo the size of a circular cache.
    """
    rank = context.known_rank(0)
    axis = context.known_value_or_default("axis") % rank
    past, update = context.inputs[:2]
    shape = context.emit("Shape", [update], "update_shape")
    count = context.emit("Gather", [shape, context.constant([axis], "axis")], "count", axis=0)
    sizes = [1] * rank
    sizes[axis] = -1
    along = context.emit(
        "Reshape", [counting(context, count, "counting"), context.constant(sizes, "along")], "positions"
    )
    if context.uses_input(2):
        column = context.constant([-1] + [1] * (rank - 1), "by_sample")
        along = context.emit("Add", [along, context.emit("Reshape", [context.inputs[2], column], "begins")], "indices")
    if context.known_value_or_default("mode") == "circular":
        size = dimension(context, context.emit("Shape", [past], "cache_shape"), axis, "size")
        along = context.emit("Mod", [along, size], "wrapped")
    indices = context.emit("Expand", [along, shape], "expanded")
    context.replace("ScatterElements", [past, indices, update], axis=axis)
