"""Reshape, Tile, Expand, Identity and Shape: inputs that were attributes, allowzero (14), sequences in Identity (14),
and parts of Shape (15); Size does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.operators.registry import changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.formula import Formula, Term
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
def make_shape_an_input(context: AdapterContext) -> None:
    """Turns the attribute shape into a constant."""
    context.require_types()
    if not context.has("shape"):
        raise Inexact("the node has no attribute shape")
    context.drop("consumed_inputs", why="it has no effect")
    context.inputs.append(context.attribute_as_input("shape"))


@downward("Reshape", 5)
def make_shape_an_attribute(context: AdapterContext) -> None:
    """Turns a constant second input into the attribute shape."""
    context.require_types()
    shape = context.constant_ints(1, "shape")
    del context.inputs[1:]
    if not shape:
        raise Inexact("the shape of a scalar is an empty list, which an attribute cannot be told from an absent one")
    context.set("shape", shape, f"it is an attribute {context.side}")


@downward("Reshape", 14)
def write_dimensions_of_zero(context: AdapterContext) -> None:
    """Drops allowzero. Below 14, a 0 in the shape copies a dimension. Where that dimension is 0, or the shape has no 0,
    the node stays; otherwise other nodes make the empty tensor.
    """
    context.require_types()
    if 0 in (context.integers(1) or (0,)):
        # Without a 0 in the shape, allowzero has no effect, whatever each call of a function says.
        context.known_is_set("allowzero")
    context.drop("allowzero", why=f"it does not exist {context.side}")
    # Data without a dimension of 0 only fits shapes without one.
    dense = has_no_zero(context, context.inputs[0])
    if dense and 0 in (context.integers(1) or ()):
        raise Inexact("it makes no elements of some")
    written = None if dense else reshape_by_copying(context)
    if written is None:
        replace_by_reshape(context, *context.inputs, dense=dense)
    else:
        operator, inputs, attributes = written
        context.replace(operator, list(inputs), **attributes)


# Tile ---------------------------------------------------------------------------------------------------------------

unchanged("Tile", 13)
changed("Tile", 6, "the inputs tiles and axis became one input repeats")


@upward("Tile", 6)
def make_repeats_from_axis(context: AdapterContext) -> None:
    """Computes repeats: tiles at the axis, 1 elsewhere."""
    context.require_types()
    rank = context.known_rank(0)
    data, tiles, axis = context.inputs
    as_number = context.emit("Cast", [tiles], "tiles", to=TensorProto.INT64)
    ones = context.constant([1] * rank, "ones")
    found = context.elements(2)
    if found is not None:
        where = context.constant([int(place == int(found.reshape(-1)[0]) % rank) for place in range(rank)], "at_axis")
    else:
        place = context.emit("Cast", [axis], "axis", to=TensorProto.INT64)
        row = context.emit("Reshape", [place, context.constant([1], "row")], "axis_row")
        same = context.emit("Equal", [context.constant(range(rank), "axes"), row], "is_axis", **_limited(context))
        where = context.emit("Cast", [same], "at_axis", to=TensorProto.INT64)
    row = context.emit("Reshape", [as_number, context.constant([1], "one")], "tiles_row")
    more = context.emit("Sub", [row, context.constant([1], "one")], "more")
    added = context.emit("Mul", [where, more], "added", **_limited(context))
    context.inputs[:] = [data, context.emit("Add", [added, ones], "repeats")]


def _limited(context: AdapterContext) -> dict[str, int]:
    """Gives the attribute that lets the second operand broadcast below opset 7."""
    return {"broadcast": 1} if context.opset < 7 else {}


@downward("Tile", 6)
def tile_axis_by_axis(context: AdapterContext) -> None:
    """Turns constant repeats into a Tile for each axis that is repeated."""
    context.require_types()
    dtype = context.known_dtype(0)
    repeats = context.constant_ints(1, "repeats")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype])
    data = context.inputs[0]
    places = [axis for axis, count in enumerate(repeats) if count != 1]
    for axis in places:
        inputs = [data, context.constant(repeats[axis], "tiles", kind), context.constant(axis, "axis", kind)]
        if axis == places[-1]:
            context.replace("Tile", inputs)
        else:
            data = context.emit("Tile", inputs, "tiled")
    if not places:
        context.replace("Identity", [data])


# Expand -------------------------------------------------------------------------------------------------------------

unchanged("Expand", 13)


@downward("Expand", 8)
def expand_by_tile(context: AdapterContext) -> None:
    """Repeats the one element along each axis with Tile. Expand does not exist below 8."""
    sizes, lengths = context.input_type(0).shape, context.output_type(0).shape
    if sizes is None or lengths is None:
        raise Inexact("the rank of its input, or that of its result, is unknown", "declare the shape of the input")
    missing = len(lengths) - len(sizes)
    data, formula = context.inputs[0], Formula(context)
    if missing:
        data = context.emit("Unsqueeze", [data], "of_full_rank", axes=list(range(missing)))
    repeats = _repeats(context, formula, [1] * missing + list(sizes), lengths)
    context.replace("Tile" if repeats else "Identity", [data, formula.vector(repeats).name] if repeats else [data])


def _repeats(
    context: AdapterContext, formula: Formula, sizes: Sequence[DimLike | None], lengths: Shape
) -> list[Term | int]:
    """Gives the number of repeats along each axis."""
    asked, known = formula.given(context.inputs[1], "int64"), static_shape(context, context.inputs[1])
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
def copy_sequence(context: AdapterContext) -> None:
    """Copies a sequence: inserts an element at its end and erases it. Identity takes tensors only below 14."""
    known = context.input_type(0)
    if known.kind != "sequence" or known.dtype is None or known.element is not None:
        context.require_types()
        raise Inexact("it copies tensors only")
    shape = context.constant(np.zeros(0), "scalar")
    if known.dtype == "string":
        element = context.tensor(numpy_helper.from_array(np.array("", dtype=object)), "element")
    else:
        element = filled(context, shape, 0, "element", known.dtype)
    longer = context.emit("SequenceInsert", [context.inputs[0], element], "longer")
    context.replace("SequenceErase", [longer])


# Shape --------------------------------------------------------------------------------------------------------------

unchanged("Shape", 13, 15, 19, 21, 23, 24, 25)


@downward("Shape", 15)
def slice_shape(context: AdapterContext) -> None:
    """Takes the part of the shape with Slice, which clamps its bounds as start and end do."""
    context.require_types()
    start, end = context.known_value_or_default("start"), context.known_value("end", 2**63 - 1)
    shape = context.emit("Shape", [context.inputs[0]], "shape")
    context.replace("Slice", [shape, context.constant([start], "start"), context.constant([end], "end")])
