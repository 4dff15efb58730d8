"""Reshape, Tile, Expand, Identity and Shape: inputs that were attributes, allowzero (14), sequences in Identity (14),
and parts of Shape (15); Size does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.operators.registry import changed, downward, unchanged, upward
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape_by_copying
from splitgraph.conversion.writing.shape_nodes import filled, has_no_zero, static_shape
from splitgraph.deferred import helper, np, numpy_helper
from splitgraph.dim import DimLike
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS, Shape

unchanged("Size", 13, 19, 21, 23, 24, 25)

# Reshape ------------------------------------------------------------------------------------------------------------

unchanged("Reshape", 13, 14, 19, 21, 23, 24, 25)
changed("Reshape", 5, "the attribute shape became an input")


@upward("Reshape", 5)
def make_shape_an_input(node: NodeAtBoundary) -> None:
    """Turns the attribute shape into a constant."""
    node.require_types()
    if not node.has("shape"):
        raise Inexact("the node has no attribute shape")
    node.drop("consumed_inputs", why="it has no effect")
    node.inputs.append(node.attribute_as_input("shape"))


@downward("Reshape", 5)
def make_shape_an_attribute(node: NodeAtBoundary) -> None:
    """Turns a constant second input into the attribute shape."""
    node.require_types()
    shape = node.constant_ints(1, "shape")
    del node.inputs[1:]
    if not shape:
        raise Inexact("the shape of a scalar is an empty list, which an attribute cannot be told from an absent one")
    node.set("shape", shape, f"it is an attribute {node.side}")


@downward("Reshape", 14)
def write_dimensions_of_zero(node: NodeAtBoundary) -> None:
    """Drops allowzero. Below 14, a 0 in the shape copies a dimension. Where that dimension is 0, or the shape has no 0,
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
        replace_by_reshape(node, *node.inputs, dense=dense)
    else:
        operator, inputs, attributes = written
        node.replace(operator, list(inputs), **attributes)


# Tile ---------------------------------------------------------------------------------------------------------------

unchanged("Tile", 13)
changed("Tile", 6, "the inputs tiles and axis became one input repeats")


@upward("Tile", 6)
def make_repeats_from_axis(node: NodeAtBoundary) -> None:
    """Computes repeats: tiles at the axis, 1 elsewhere."""
    node.require_types()
    rank = node.known_rank(0)
    data, tiles, axis = node.inputs
    as_number = node.write("Cast", [tiles], "tiles", to=TensorProto.INT64)
    ones = node.constant([1] * rank, "ones")
    found = node.elements(2)
    if found is not None:
        where = node.constant([int(place == int(found.reshape(-1)[0]) % rank) for place in range(rank)], "at_axis")
    else:
        place = node.write("Cast", [axis], "axis", to=TensorProto.INT64)
        row = node.write("Reshape", [place, node.constant([1], "row")], "axis_row")
        same = node.write("Equal", [node.constant(range(rank), "axes"), row], "is_axis", **_limited(node))
        where = node.write("Cast", [same], "at_axis", to=TensorProto.INT64)
    row = node.write("Reshape", [as_number, node.constant([1], "one")], "tiles_row")
    more = node.write("Sub", [row, node.constant([1], "one")], "more")
    added = node.write("Mul", [where, more], "added", **_limited(node))
    node.inputs[:] = [data, node.write("Add", [added, ones], "repeats")]


def _limited(node: NodeAtBoundary) -> dict[str, int]:
    """Gives the attribute that lets the second operand broadcast below opset 7."""
    return {"broadcast": 1} if node.opset < 7 else {}


@downward("Tile", 6)
def tile_axis_by_axis(node: NodeAtBoundary) -> None:
    """Turns constant repeats into a Tile for each axis that is repeated."""
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
    """Repeats the one element along each axis with Tile. Expand does not exist below 8."""
    sizes, lengths = node.input_type(0).shape, node.output_type(0).shape
    if sizes is None or lengths is None:
        raise Inexact("the rank of its input, or that of its result, is unknown", "declare the shape of the input")
    missing = len(lengths) - len(sizes)
    data, formula = node.inputs[0], Formula(node)
    if missing:
        data = node.write("Unsqueeze", [data], "of_full_rank", axes=list(range(missing)))
    repeats = _repeats(node, formula, [1] * missing + list(sizes), lengths)
    node.replace("Tile" if repeats else "Identity", [data, formula.vector(repeats).name] if repeats else [data])


def _repeats(
    node: NodeAtBoundary, formula: Formula, sizes: Sequence[DimLike | None], lengths: Shape
) -> list[Term | int]:
    """Gives the number of repeats along each axis."""
    asked, known = formula.given(node.inputs[1], "int64"), static_shape(node, node.inputs[1])
    repeats: list[Term | int] = []
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        if (size is not None and size == length) or (isinstance(size, int) and size != 1):
            repeats.append(1)
        elif size != 1:
            raise Inexact(f"whether dimension {axis} of its input is 1 is not known", "declare the shape of the input")
        elif known is not None:
            # The shape input counts: the author may have declared another length.
            place = axis - len(lengths) + known[0]
            repeats.append(1 if place < 0 else formula.element(asked, place))
        elif isinstance(length, int):
            repeats.append(length)
        else:
            raise Inexact("how many dimensions it asks for is not known", "declare the shape of its second input")
    return repeats


# Identity -----------------------------------------------------------------------------------------------------------

unchanged("Identity", 13, 14, 16, 19, 21, 23, 24, 25)


@downward("Identity", 14)
def copy_sequence(node: NodeAtBoundary) -> None:
    """Copies a sequence: inserts an element at its end and erases it. Identity takes tensors only below 14."""
    known = node.input_type(0)
    if known.kind != "sequence" or known.dtype is None or known.element is not None:
        node.require_types()
        raise Inexact("it copies tensors only")
    shape = node.constant(np.zeros(0), "scalar")
    if known.dtype == "string":
        element = node.tensor(numpy_helper.from_array(np.array("", dtype=object)), "element")
    else:
        element = filled(node, shape, 0, "element", known.dtype)
    longer = node.write("SequenceInsert", [node.inputs[0], element], "longer")
    node.replace("SequenceErase", [longer])


# Shape --------------------------------------------------------------------------------------------------------------

unchanged("Shape", 13, 15, 19, 21, 23, 24, 25)


@downward("Shape", 15)
def slice_shape(node: NodeAtBoundary) -> None:
    """Takes the part of the shape with Slice, which clamps its bounds as start and end do."""
    node.require_types()
    start, end = node.known_value_or_default("start"), node.known_value("end", 2**63 - 1)
    shape = node.write("Shape", [node.inputs[0]], "shape")
    node.replace("Slice", [shape, node.constant([start], "start"), node.constant([end], "end")])
