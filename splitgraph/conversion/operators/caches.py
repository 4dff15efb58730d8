"""TensorScatter: below its first opset, written as ScatterElements."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import counting, dimension


@downward("TensorScatter", 24)
def scatter_into_cache(node: NodeAtBoundary) -> None:
    """Writes TensorScatter as ScatterElements. The index along the axis is the position where the sample begins to
    write, plus the position in the update; modulo the size of a circular cache.
    """
    rank = node.known_rank(0)
    axis = node.known_value_or_default("axis") % rank
    past, update = node.inputs[:2]
    shape = node.write("Shape", [update], "update_shape")
    count = node.write("Gather", [shape, node.constant([axis], "axis")], "count", axis=0)
    sizes = [1] * rank
    sizes[axis] = -1
    along = node.write("Reshape", [counting(node, count, "counting"), node.constant(sizes, "along")], "positions")
    if node.uses_input(2):
        column = node.constant([-1] + [1] * (rank - 1), "by_sample")
        along = node.write("Add", [along, node.write("Reshape", [node.inputs[2], column], "begins")], "indices")
    if node.known_value_or_default("mode") == "circular":
        size = dimension(node, node.write("Shape", [past], "cache_shape"), axis, "size")
        along = node.write("Mod", [along, size], "wrapped")
    indices = node.write("Expand", [along, shape], "expanded")
    node.replace("ScatterElements", [past, indices, update], axis=axis)
