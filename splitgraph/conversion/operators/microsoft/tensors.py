"""Operators of com.microsoft that arrange, count and choose elements; ai.onnx has most of them under the same name."""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.operators.standard import standard, without_form

without_form("Inverse", "no operator of ai.onnx inverts a matrix, or solves equations")
without_form(
    "GatherPacked", "its rows are blocks of GGUF, in which scales of 16 bits lie among the bytes of the weights"
)
without_form("DynamicTimeWarping", "its path is found cell by cell, and its length depends on all elements")


@standard("ExpandDims")
def write_expand_dims(node: NodeAtBoundary) -> None:
    """Write Unsqueeze along one axis."""
    f = Formula(node)
    node.replace("Unsqueeze", [node.inputs[0], f.given(1).cast("int64").reshape(1).name])


@standard("Range")
def write_range(node: NodeAtBoundary) -> None:
    """Keep the node; the step is 1 where it is left out."""
    f = Formula(node)
    steps = f.given(2) if node.uses_input(2) else f.number(1, node.known_dtype(0))
    node.inputs[:] = [term.reshape().name for term in (f.given(0), f.given(1), steps)]


@standard("GatherND")
def write_gather_nd(node: NodeAtBoundary) -> None:
    """Keep the node, with indices of int64."""
    node.inputs[1] = Formula(node).given(1).cast("int64").name


@standard("Unique")
def write_unique(node: NodeAtBoundary) -> None:
    """Keep the node: elements in the order in which they come, where each went, and how often each occurs."""
    unique, *others = node.outputs
    node.outputs[:] = [unique, "", *others] if others else [unique]
    node.set("sorted", 0, "elements stay in the order in which they come")


@standard("Trilu", opset=14)
def write_trilu(node: NodeAtBoundary) -> None:
    """Keep the node."""


@standard("Pad")
def write_pad(node: NodeAtBoundary) -> None:
    """Keep the node, with the pads as a list and the value as a scalar."""
    f = Formula(node)
    node.inputs[1] = f.given(1).reshape(-1).name
    if node.uses_input(2):
        node.inputs[2] = f.given(2).reshape().name


@standard("UnfoldTensor", dim=-1, step=1)
def write_unfold(node: NodeAtBoundary) -> None:
    """Gather the windows along an axis, and move the places in a window behind all axes."""
    f, rank = Formula(node), node.known_rank(0)
    axis, size = node.known_value_or_default("dim") % rank, node.known_value("size")
    stride = node.known_value_or_default("step")
    count = (f.size(0, axis) - size) / stride + 1
    places = f.counting(count).reshape(-1, 1) * stride + f.counting(size)
    order = [place for place in range(rank + 1) if place != axis + 1]
    f.give(f.input(0).take(places, axis).transposed(*order, axis + 1))


@standard("SampleOp")
def write_sample(node: NodeAtBoundary) -> None:
    """Write Identity."""
    node.rename("Identity")


@standard("CDist", metric="sqeuclidean")
def write_distances(node: NodeAtBoundary) -> None:
    """Sum the squares of the differences of all pairs of rows. The kernel expands the squares, which loses the digits
    of small distances.
    """
    f = Formula(node)
    metric = node.known_value_or_default("metric")
    differences = f.input(0).unsqueezed(1) - f.input(1).unsqueezed(0)
    squares = differences.reduced("ReduceSumSquare", [2])
    f.give(squares.sqrt() if metric == "euclidean" else squares)
