"""Reshape, Tile, Expand, Identity, Shape, Squeeze, Unsqueeze, Flatten, Concat and Transpose: inputs that were
attributes, allowzero (14), sequences in Identity (14), parts of Shape (15), and negative axes (11); Size does not
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero, static_shape
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.notation.reshaping import reshape_by_copying
from splitgraph.conversion.operators.registry import (
    MINUS_AXIS,
    RANK_HINT,
    always,
    axes_counted_from_front,
    changed,
    count_from_front,
    downward,
    edited_downward,
    edited_upward,
    exact,
    unchanged,
    upward,
)
from splitgraph.dim import DimLike
from splitgraph.model.deferred import helper
from splitgraph.model.value_type import DTYPE_NUMBERS, Shape

unchanged("Size", 13, 19, 21, 23, 24, 25)

# Reshape ------------------------------------------------------------------------------------------------------------

unchanged("Reshape", 13, 14, 19, 21, 23, 24, 25)
changed("Reshape", 5, "the attribute shape became an input")


@upward("Reshape", 5)
def make_shape_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute shape into a constant."""
    node.require_types()
    if not node.has("shape"):
        raise Inexact("the node has no attribute shape")
    node.drop("consumed_inputs", why="it has no effect")
    node.inputs.append(node.attribute_as_input("shape"))


@downward("Reshape", 5)
def make_shape_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant second input into the attribute shape."""
    node.require_types()
    shape = node.constant_ints(1, "shape")
    del node.inputs[1:]
    if not shape:
        raise Inexact("the shape of a scalar is an empty list, and as an attribute an empty list means none")
    node.set("shape", shape, f"it is an attribute {node.side}")


@downward("Reshape", 14)
def write_dimensions_of_zero(node: NodeAtBoundary) -> None:
    """Drop allowzero. Below 14, a 0 in the shape copies a dimension. Where that dimension is 0, or the shape has no 0,
    the node stays; otherwise other nodes make the empty tensor.
    """
    node.require_types()
    if 0 in (node.integers(1) or (0,)):
        # Without a 0 in the shape, allowzero has no effect, whatever each call of a function says.
        node.known_is_set("allowzero")
    node.drop("allowzero", why=f"it does not exist {node.side}")
    # Data without a dimension of 0 only fits shapes without one.
    dense = has_no_zero(node, node.inputs[0])
    if dense and 0 in (node.integers(1) or ()):
        raise Inexact("it makes no elements of some")
    written = None if dense else reshape_by_copying(node)
    if written is None:
        f = Formula(node)
        f.give(f.input(0).with_shape(f.input(1, "int64"), dense=dense))
    else:
        operator, inputs, attributes = written
        node.replace(operator, list(inputs), **attributes)


# Tile ---------------------------------------------------------------------------------------------------------------

unchanged("Tile", 13)
changed("Tile", 6, "the inputs tiles and axis became one input repeats")


@upward("Tile", 6)
def make_repeats_from_axis(node: NodeAtBoundary) -> None:
    """Compute repeats: tiles at the axis, 1 elsewhere."""
    node.require_types()
    rank, f = node.known_rank(0), Formula(node)
    tiles, known = f.input(1).cast("int64").reshape(1), node.elements(2)
    if known is not None:
        is_axis = f.counting(rank).equals(int(known.reshape(-1)[0]) % rank)
    else:
        is_axis = f.apply("Equal", f.counting(rank), f.input(2).cast("int64").reshape(1), **_limited(node))
    added = f.apply("Mul", is_axis.cast("int64"), tiles - f.number([1]), **_limited(node))
    node.inputs[:] = [node.inputs[0], (added + f.number([1] * rank)).name]


def _limited(node: NodeAtBoundary) -> dict[str, Any]:
    """Return the attribute that lets the second operand broadcast below opset 7."""
    return {"broadcast": 1} if node.opset < 7 else {}


@downward("Tile", 6)
def tile_axis_by_axis(node: NodeAtBoundary) -> None:
    """Turn constant repeats into a Tile for each axis that is repeated."""
    node.require_types()
    dtype = node.known_dtype(0)
    repeats = node.constant_ints(1, "repeats")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype])
    data = node.inputs[0]
    places = [axis for axis, count in enumerate(repeats) if count != 1]
    for axis in places:
        inputs = [data, node.constant(repeats[axis], "tiles", kind), node.constant(axis, "axis", kind)]
        if axis == places[-1]:
            node.replace("Tile", inputs)
        else:
            data = node.write("Tile", inputs, "tiled")
    if not places:
        node.replace("Identity", [data])


# Expand -------------------------------------------------------------------------------------------------------------

unchanged("Expand", 13)


@downward("Expand", 8)
def expand_by_tile(node: NodeAtBoundary) -> None:
    """Repeat the one element along each axis with Tile. Expand does not exist below 8."""
    sizes, lengths = node.input_type(0).shape, node.output_type(0).shape
    if sizes is None or lengths is None:
        raise Inexact("the rank of its input, or that of its result, is unknown", "declare the shape of the input")
    missing, f = len(lengths) - len(sizes), Formula(node)
    data = f.input(0).unsqueezed(*range(missing)) if missing else f.input(0)
    repeats = _repeats(node, f, [1] * missing + list(sizes), lengths)
    f.give(f.apply("Tile", data, f.vector(repeats)) if repeats else data)


def _repeats(node: NodeAtBoundary, f: Formula, sizes: Sequence[DimLike | None], lengths: Shape) -> list[Term | int]:
    """Return the number of repeats along each axis."""
    asked, known = f.given(1, "int64"), static_shape(node, node.inputs[1])
    repeats: list[Term | int] = []
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        if (size is not None and size == length) or (isinstance(size, int) and size != 1):
            repeats.append(1)
        elif size != 1:
            raise Inexact(f"whether dimension {axis} of its input is 1 is not known", "declare the shape of the input")
        elif known is not None:
            # The shape input counts: the author may have declared another length.
            place = axis - len(lengths) + known[0]
            repeats.append(1 if place < 0 else asked.take(place))
        elif isinstance(length, int):
            repeats.append(length)
        else:
            raise Inexact("how many dimensions it asks for is not known", "declare the shape of its second input")
    return repeats


# Identity -----------------------------------------------------------------------------------------------------------

unchanged("Identity", 13, 14, 16, 19, 21, 23, 24, 25)


@downward("Identity", 14)
def copy_sequence(node: NodeAtBoundary) -> None:
    """Copy a sequence: insert an element at its end and erase it. Identity takes tensors only below 14."""
    known = node.input_type(0)
    if known.kind != "sequence" or known.dtype is None or known.element is not None:
        node.require_types()
        raise Inexact("it copies tensors only")
    f = Formula(node)
    # ConstantOfShape makes the element, because Constant does not make every element type here.
    element = f.number(0, "string") if known.dtype == "string" else f.filled(f.number([]), 0, known.dtype)
    f.give(f.apply("SequenceErase", f.apply("SequenceInsert", f.input(0), element)))


# Shape --------------------------------------------------------------------------------------------------------------

unchanged("Shape", 13, 15, 19, 21, 23, 24, 25)


@downward("Shape", 15)
def slice_shape(node: NodeAtBoundary) -> None:
    """Take the part of the shape with Slice, which clamps its bounds as start and end do."""
    node.require_types()
    start, end = node.known_value_or_default("start"), node.known_value("end", 2**63 - 1)
    f = Formula(node)
    f.give(f.input(0).shape().sliced(start, end))


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
    """Return True when the node has no axes: every dimension of size 1 goes, on both sides."""
    return not node.has("axes") if node.upward else not node.uses_input(1)


changed("Unsqueeze", 13, "the attribute axes became an input")


@upward("Squeeze Unsqueeze", 13)
def make_axes_an_input(node: NodeAtBoundary) -> None:
    """Turn the attribute axes into a constant, the second input."""
    node.require_types()
    if node.has("axes"):
        node.inputs.append(node.attribute_as_input("axes"))


@downward("Squeeze Unsqueeze", 13)
def make_axes_an_attribute(node: NodeAtBoundary) -> None:
    """Turn a constant second input into the attribute axes. Axes that are known only at run time turn the node into a
    Reshape.
    """
    node.require_types()
    axes = node.integers(1)
    if node.uses_input(1) and axes is None:
        f, data = Formula(node), node.inputs[0]
        compute = _squeezed_shape if node.op_type == "Squeeze" else _unsqueezed_shape
        # Engines and onnx's own function bodies take one axis without a dimension, too.
        indices = f.input(1, "int64").reshape(-1) if node.rank(1) == 0 else f.input(1, "int64")
        f.give(f.input(0).with_shape(compute(f, f.shape(data), indices), dense=has_no_zero(node, data)))
        return
    del node.inputs[1:]
    if axes:
        node.set("axes", axes, f"it is an attribute {node.side}")
    elif axes is not None:
        if node.op_type == "Squeeze":
            raise Inexact("an empty list of axes squeezes nothing or everything, depending on who reads it")
        node.replace("Identity", node.inputs)


def _squeezed_shape(f: Formula, shape: Term, axes: Term) -> Term:
    """Compute the shape without the dimensions that the axes name."""
    is_squeezed = f.mask_of_axes(axes, f.shape(shape.name))
    return shape.take(f.positions(~is_squeezed))


def _unsqueezed_shape(f: Formula, shape: Term, axes: Term) -> Term:
    """Compute the shape with dimensions of 1 at the axes; the other dimensions stay in order."""
    is_new = f.mask_of_axes(axes, f.shape(shape.name) + f.shape(axes.name))
    return f.put(is_new.cast("int64"), f.positions(~is_new), shape)


# Flatten ------------------------------------------------------------------------------------------------------------

unchanged("Flatten", 9, 13, 21, 23, 24, 25)


@downward("Flatten", 9)
def flatten_by_reshape(node: NodeAtBoundary) -> None:
    """Write Flatten as Reshape, which takes every element type from opset 5 on; below 9, Flatten takes floating-point
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
    f = Formula(node)
    matrix = f.joined([_product(f, data, 0, axis, shape), _product(f, data, axis, None, shape)])
    f.give(f.input(0).with_shape(matrix, dense=False))


def _sides(shape: Shape, axis: int) -> tuple[int | None, int | None]:
    """Return the number of rows and the number of columns, each None where it is unknown."""
    axis = axis + len(shape) if axis < 0 else axis
    products: list[int | None] = []
    for dims in (shape[:axis], shape[axis:]):
        known = [dim for dim in dims if isinstance(dim, int)]
        products.append(0 if 0 in known else prod(known) if len(known) == len(dims) else None)
    return products[0], products[1]


def _product(f: Formula, data: str, start: int, end: int | None, shape: Shape | None) -> Term:
    """Compute the product of some dimensions of a tensor as int64[1]; without dimensions the product is 1."""
    rank = None if shape is None else len(shape)
    first, last = start + (rank or 0) * (start < 0), (2**31 - 1) if end is None else end + (rank or 0) * (end < 0)
    if last <= first or (rank is not None and first >= rank):
        return f.number([1])
    dims = f.apply("Slice", f.value(data, "int64").shape(), starts=[first], ends=[last])
    return f.joined([dims, f.number([1])]).reduced("ReduceProd", [0], keepdims=True)


changed("Flatten", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)

# Concat, Transpose ---------------------------------------------------------------------------------------------------

unchanged("Transpose", 13, 21, 23, 24, 25)

unchanged("Concat", 13)
changed("Concat", 4, "below it, the default axis is 1; from then on the axis must be given", down=always)


@edited_upward("Concat", 4)
def write_default_axis(node: NodeAtBoundary) -> None:
    """Keep every node. Write out the default axis of Concat-1, which is 1; from opset 4 on the axis is required."""
    if not node.has("axis"):
        node.set("axis", 1, "the default of Concat-1, which from opset 4 on must be written")


changed("Concat", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
