"""Squeeze, Unsqueeze and Flatten: axes became an input, and negative axes were allowed."""

from __future__ import annotations

from math import prod

from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front, count_from_front
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited_downward,
    exact,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import replace_by_reshape
from splitgraph.conversion.writing.shape_nodes import has_no_zero, kept_dimensions, mask_of_axes, positions
from splitgraph.value_type import Shape

# Squeeze, Unsqueeze -------------------------------------------------------------------------------------------------

unchanged("Squeeze Unsqueeze", 21, 23, 24, 25)
changed("Squeeze", 11, MINUS_AXIS, up=always, hint=RANK_HINT)


@edited_downward("Squeeze", 11)
def axes_can_be_in_order(node: NodeAtBoundary) -> None:
    """Count the axes from the front, and sort them: onnx's shape inference of Squeeze-1, which runtimes use, finds
    ascending axes only.
    """
    count_from_front(node, "axes", rank_of_output=False)
    axes = node.value("axes") or ()
    if list(axes) != sorted(axes):
        node.set("axes", sorted(axes), "onnx infers the shape of a Squeeze below opset 11 from axes in ascending order")


changed(
    "Unsqueeze", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axes", rank_of_output=True), hint=RANK_HINT
)
changed("Squeeze", 13, "the attribute axes became an input")


@exact("Squeeze", 13)
def squeezes_all_ones(node: NodeAtBoundary) -> bool:
    """True when the node has no axes: every dimension of size 1 goes, on both sides."""
    return not node.has("axes") if node.upward else not node.uses_input(1)


changed("Unsqueeze", 13, "the attribute axes became an input")


@upward("Squeeze Unsqueeze", 13)
def make_axes_an_input(node: NodeAtBoundary) -> None:
    """Turns the attribute axes into a constant, the second input."""
    node.require_types()
    if node.has("axes"):
        node.inputs.append(node.attribute_as_input("axes"))


@downward("Squeeze Unsqueeze", 13)
def make_axes_an_attribute(node: NodeAtBoundary) -> None:
    """Turns a constant second input into the attribute axes. Axes that are known only at run time turn the node into a
    Reshape.
    """
    node.require_types()
    found = node.integers(1)
    if node.uses_input(1) and found is None:
        data, axes = node.inputs
        shape = node.write("Shape", [data], "shape")
        new = _squeezed_shape(node, shape, axes) if node.op_type == "Squeeze" else _unsqueezed_shape(node, shape, axes)
        dense = has_no_zero(node, data)
        replace_by_reshape(node, data, new, dense=dense)
        return
    del node.inputs[1:]
    if found:
        node.set("axes", found, f"it is an attribute {node.side}")
    elif found is not None:
        if node.op_type == "Squeeze":
            raise Inexact("an empty list of axes squeezes nothing or everything, depending on who reads it")
        node.replace("Identity", node.inputs)


def _squeezed_shape(node: NodeAtBoundary, shape: str, axes: str) -> str:
    """Computes the shape without the dimensions that the axes name."""
    mask = mask_of_axes(node, axes, node.write("Shape", [shape], "rank"), "is_squeezed")
    return kept_dimensions(node, shape, mask)


def _unsqueezed_shape(node: NodeAtBoundary, shape: str, axes: str) -> str:
    """Computes the shape with dimensions of 1 at the axes; the other dimensions stay in order."""
    sizes = [node.write("Shape", [value], "count") for value in (shape, axes)]
    mask = mask_of_axes(node, axes, node.write("Add", sizes, "rank"), "is_new")
    kept = positions(node, node.write("Not", [mask], "is_old"), "old_axes")
    as_ones = node.write("Cast", [mask], "ones", to=7)
    return node.write("ScatterElements", [as_ones, kept, shape], "unsqueezed_shape", axis=0)


# Flatten ------------------------------------------------------------------------------------------------------------

unchanged("Flatten", 9, 13, 21, 23, 24, 25)


@downward("Flatten", 9)
def flatten_by_reshape(node: NodeAtBoundary) -> None:
    """Writes Flatten as Reshape, which takes every element type from opset 5 on; below 9, Flatten takes floating-point
    types only.
    """
    shape, axis = node.input_type(0).shape, node.known_value_or_default("axis")
    sides = None if shape is None else _sides(shape, axis)
    data = node.inputs[0]
    if sides is not None and (sides[0] or sides[1]):
        # -1 stands for the unknown side, which may be 0 as long as the other side is not 0.
        rows, columns = (-1 if side is None else side for side in sides)
        if rows and columns:
            node.replace("Reshape", [data, node.constant([rows, columns], "shape")])
            return
    if shape is None and axis < 0:
        raise Inexact("the rank of its input is unknown", "declare the shape of the input")
    made = node.write(
        "Concat", [_product(node, data, 0, axis, shape), _product(node, data, axis, None, shape)], "sides", axis=0
    )
    replace_by_reshape(node, data, made, dense=False)


def _sides(shape: Shape, axis: int) -> tuple[int | None, int | None]:
    """Gives the number of rows and the number of columns, each None where it is unknown."""
    axis = axis + len(shape) if axis < 0 else axis
    found: list[int | None] = []
    for dims in (shape[:axis], shape[axis:]):
        known = [dim for dim in dims if isinstance(dim, int)]
        found.append(0 if 0 in known else prod(known) if len(known) == len(dims) else None)
    return found[0], found[1]


def _product(node: NodeAtBoundary, data: str, start: int, end: int | None, shape: Shape | None) -> str:
    """Computes the product of some dimensions of a tensor as int64[1]; without dimensions the product is 1."""
    rank = None if shape is None else len(shape)
    first, last = start + (rank or 0) * (start < 0), (2**31 - 1) if end is None else end + (rank or 0) * (end < 0)
    if last <= first or (rank is not None and first >= rank):
        return node.constant([1], "one")
    dims = node.write("Slice", [node.write("Shape", [data], "shape")], "dims", starts=[first], ends=[last])
    more = node.write("Concat", [dims, node.constant([1], "one")], "dims_and_one", axis=0)
    return node.write("ReduceProd", [more], "product", keepdims=1, axes=[0])


changed("Flatten", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
