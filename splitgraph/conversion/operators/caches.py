"""TensorScatter below opset 24."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.adapter_context import Step
from splitgraph.conversion.writing.shape_nodes import counting, dimension


@downward("TensorScatter", 24)
def cache_by_scatter(step: Step) -> None:
    """ScatterElements with the index along the axis of each element of the update: where the sample's writing begins
    plus the position in the update, modulo the size of the cache where it is circular.
    """
    rank = step.known_rank(0)
    axis = step.known_value("axis", -2) % rank
    past, update = step.inputs[:2]
    shape = step.emit("Shape", [update], "update_shape")
    count = step.emit("Gather", [shape, step.constant([axis], "axis")], "count", axis=0)
    sizes = [1] * rank
    sizes[axis] = -1
    along = step.emit("Reshape", [counting(step, count, "counting"), step.constant(sizes, "along")], "positions")
    if step.uses_input(2):
        column = step.constant([-1] + [1] * (rank - 1), "by_sample")
        along = step.emit("Add", [along, step.emit("Reshape", [step.inputs[2], column], "begins")], "indices")
    if step.known_value("mode", "linear") == "circular":
        size = dimension(step, step.emit("Shape", [past], "cache_shape"), axis, "size")
        along = step.emit("Mod", [along, size], "wrapped")
    indices = step.emit("Expand", [along, shape], "expanded")
    step.replace("ScatterElements", [past, indices, update], axis=axis)
