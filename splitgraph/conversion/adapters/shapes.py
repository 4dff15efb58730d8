"""Operators that change shapes, and those that make tensors from shapes: Reshape, Tile, Expand, Range, Constant and so
on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.adapters.reshaping import copying, reshaped
from splitgraph.conversion.formula import Formula, Term
from splitgraph.conversion.left_out import INLINE_FIRST
from splitgraph.conversion.shape_nodes import counting, filled, has_no_zero, static_shape
from splitgraph.conversion.step import Inexact, Step, elements_of
from splitgraph.deferred import helper, np, numpy_helper
from splitgraph.dim import DimLike
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS, Shape

_FLOATS = ("float16", "float32", "float64")
# That are written out, however many there are.
_ZEROS_FOR_A_VALUE = 64


@upward("Reshape", 5)
def shape_as_input(step: Step) -> None:
    """The attribute shape becomes a constant."""
    step.require_types()
    if not step.has("shape"):
        raise Inexact("the node has no attribute shape")
    step.drop("consumed_inputs", why="it has no effect")
    step.inputs.append(step.attribute_as_input("shape"))


@downward("Reshape", 5)
def shape_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute shape."""
    step.require_types()
    shape = step.constant_ints(1, "shape")
    del step.inputs[1:]
    if not shape:
        raise Inexact("the shape of a scalar is an empty list, which an attribute cannot be told from an absent one")
    step.set("shape", shape, f"it is an attribute {step.side}")


@downward("Reshape", 14)
def dimensions_of_zero(step: Step) -> None:
    """Below 14, a 0 in the shape copies a dimension: where none is 0 unless that dimension is, it makes no difference;
    elsewhere a tensor without elements is made by other means.
    """
    step.require_types()
    if 0 in (step.integers(1) or (0,)):
        # Without a 0 it makes no difference what each call of a function says.
        step.known_is_set("allowzero")
    step.drop("allowzero", why=f"it does not exist {step.side}")
    # Data without a dimension of 0 can only take on shapes without one.
    dense = has_no_zero(step, step.inputs[0])
    if dense and 0 in (step.integers(1) or ()):
        raise Inexact("it makes no elements of some")
    written = None if dense else copying(step)
    operator, inputs, attributes = written or reshaped(step, *step.inputs, dense=dense)
    step.replace(operator, list(inputs), **attributes)


@upward("Tile", 6)
def repeats_from_axis(step: Step) -> None:
    """tiles, along axis, is an element of repeats, all others of which are 1."""
    step.require_types()
    rank = step.known_rank(0)
    data, tiles, axis = step.inputs
    as_number = step.emit("Cast", [tiles], "tiles", to=TensorProto.INT64)
    ones = step.constant([1] * rank, "ones")
    found = step.elements(2)
    if found is not None:
        where = step.constant([int(place == int(found.reshape(-1)[0]) % rank) for place in range(rank)], "at_axis")
    else:
        place = step.emit("Cast", [axis], "axis", to=TensorProto.INT64)
        row = step.emit("Reshape", [place, step.constant([1], "row")], "axis_row")
        same = step.emit("Equal", [step.constant(range(rank), "axes"), row], "is_axis", **_limited(step))
        where = step.emit("Cast", [same], "at_axis", to=TensorProto.INT64)
    row = step.emit("Reshape", [as_number, step.constant([1], "one")], "tiles_row")
    more = step.emit("Sub", [row, step.constant([1], "one")], "more")
    added = step.emit("Mul", [where, more], "added", **_limited(step))
    step.inputs[:] = [data, step.emit("Add", [added, ones], "repeats")]


def _limited(step: Step) -> dict[str, int]:
    """What lets the second operand broadcast below opset 7."""
    return {"broadcast": 1} if step.opset < 7 else {}


@downward("Tile", 6)
def one_axis_at_a_time(step: Step) -> None:
    """A constant repeats becomes a Tile for each axis along which anything is repeated."""
    step.require_types()
    dtype = step.known_dtype(0)
    repeats = step.constant_ints(1, "repeats")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype])
    data = step.inputs[0]
    places = [axis for axis, count in enumerate(repeats) if count != 1]
    for axis in places:
        inputs = [data, step.constant(repeats[axis], "tiles", kind), step.constant(axis, "axis", kind)]
        if axis == places[-1]:
            step.replace("Tile", inputs)
        else:
            data = step.emit("Tile", inputs, "tiled")
    if not places:
        step.replace("Identity", [data])


@downward("Expand", 8)
def repeated_instead(step: Step) -> None:
    """Along each axis the one element is repeated as often as the result is long, or nothing is."""
    sizes, lengths = step.input_type(0).shape, step.output_type(0).shape
    if sizes is None or lengths is None:
        raise Inexact("the rank of its input, or that of its result, is unknown", "declare the shape of the input")
    missing = len(lengths) - len(sizes)
    data, formula = step.inputs[0], Formula(step)
    if missing:
        data = step.emit("Unsqueeze", [data], "of_full_rank", axes=list(range(missing)))
    repeats = _repeats(step, formula, [1] * missing + list(sizes), lengths)
    step.replace("Tile" if repeats else "Identity", [data, formula.vector(repeats).name] if repeats else [data])


def _repeats(step: Step, formula: Formula, sizes: Sequence[DimLike | None], lengths: Shape) -> list[Term | int]:
    asked, known = formula.given(step.inputs[1], "int64"), static_shape(step, step.inputs[1])
    repeats: list[Term | int] = []
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        if (size is not None and size == length) or (isinstance(size, int) and size != 1):
            repeats.append(1)
        elif size != 1:
            raise Inexact(f"whether dimension {axis} of its input is 1 is not known", "declare the shape of the input")
        elif known is not None:
            # As it is asked for, which may be another length than the author declared.
            place = axis - len(lengths) + known[0]
            repeats.append(1 if place < 0 else formula.element(asked, place))
        elif isinstance(length, int):
            repeats.append(length)
        else:
            raise Inexact("how many dimensions it asks for is not known", "declare the shape of its second input")
    return repeats


@downward("Range", 11)
def range_by_counting(step: Step) -> None:
    """start + i * delta for i below ceil((limit - start) / delta), where i counts the ones of a tensor of ones."""
    dtype = step.known_dtype(0)
    integer = dtype.startswith("int")
    kind = DTYPE_NUMBERS["int64"] if integer else DTYPE_NUMBERS[dtype]
    start, limit, delta = (
        step.emit("Cast", [name], hint, to=kind) if dtype == "int16" or dtype == "int32" else name
        for name, hint in zip(step.inputs, ("start", "limit", "delta"), strict=True)
    )
    distance = step.emit("Sub", [limit, start], "distance")
    if integer:
        # Rounded up by adding all but one of the step, of the sign of the step.
        step_but_one = step.emit("Sub", [delta, step.emit("Sign", [delta], "sign")], "all_but_one")
        count = step.emit("Div", [step.emit("Add", [distance, step_but_one], "raised"), delta], "count")
    else:
        ratio = step.emit("Ceil", [step.emit("Div", [distance, delta], "ratio")], "rounded_up")
        count = step.emit("Cast", [ratio], "count", to=TensorProto.INT64)
    zero = step.constant(0, "zero")
    count = step.emit("Where", [step.emit("Less", [count, zero], "is_none"), zero, count], "at_least_none")
    count = step.emit("Reshape", [count, step.constant([1], "row")], "count_row")
    numbers = counting(step, count, "numbers")
    if not integer:
        numbers = step.emit("Cast", [numbers], "as_floats", to=kind)
    scaled = step.emit("Mul", [numbers, delta], "scaled")
    if dtype in ("int16", "int32"):
        step.replace("Cast", [step.emit("Add", [scaled, start], "range")], to=DTYPE_NUMBERS[dtype])
    else:
        step.replace("Add", [scaled, start])


@downward("Constant", 11)
def dense_constant(step: Step) -> None:
    """A sparse tensor is written with its zeros."""
    sparse = step.attributes.get("sparse_value")
    if sparse is None or sparse.ref_attr_name:
        raise Inexact("its value is an attribute of the enclosing function", INLINE_FIRST)
    held = sparse.sparse_tensor
    values, indices = elements_of(held.values), elements_of(held.indices)
    count = math.prod(held.dims)
    if count > max(MAX_WRITTEN, _ZEROS_FOR_A_VALUE * values.size):
        raise Inexact(f"of its {count:,} elements only {values.size:,} are no zeros, which are not written out")
    dense = np.zeros(tuple(held.dims), dtype=values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    step.drop("sparse_value", why=f"it does not exist {step.side}")
    step.set("value", numpy_helper.from_array(dense), "what the sparse tensor means")


@downward("Constant", 9)
def constant_of_floats(step: Step) -> None:
    """Below 9, Constant gives floating-point numbers only: integers and booleans are cast from them where they are
    exact, what is left becomes an initializer.
    """
    if not step.has("value") or step.attributes["value"].ref_attr_name:
        raise Inexact("its value is an attribute of the enclosing function", INLINE_FIRST)
    held = step.attributes["value"].t
    if held.data_type in (TensorProto.STRING,) or held.data_type > TensorProto.UINT64:
        step.replace("Identity", [_initializer(step, held)])
        return
    elements = elements_of(held)
    floats = elements.astype(np.float64)
    if np.any(np.abs(floats) > 2**53):
        step.replace("Identity", [_initializer(step, held)])
        return
    number = step.emit("Constant", [], "number", value=numpy_helper.from_array(floats))
    step.replace("Cast", [number], to=held.data_type)


def _initializer(step: Step, held: TensorProto) -> str:
    if step.emission.in_function:
        raise Inexact("its elements are not floating-point numbers, and no initializer can hold them here")
    return step.tensor(held, "value")


@downward("Identity", 14)
def sequence_with_one_more(step: Step) -> None:
    """A sequence is copied by an insertion at its end that is taken back."""
    known = step.input_type(0)
    if known.kind != "sequence" or known.dtype is None or known.element is not None:
        step.require_types()
        raise Inexact("it copies tensors only")
    shape = step.constant(np.zeros(0), "scalar")
    if known.dtype == "string":
        element = step.tensor(numpy_helper.from_array(np.array("", dtype=object)), "element")
    else:
        element = filled(step, shape, 0, "element", known.dtype)
    longer = step.emit("SequenceInsert", [step.inputs[0], element], "longer")
    step.replace("SequenceErase", [longer])


@downward("OptionalHasElement", 18)
def has_what_it_is_given(step: Step) -> None:
    """Below 18 there is always an input, and it is an optional: a tensor or a sequence is always there, an input that
    is left out never.
    """
    if step.uses_input(0) and step.input_type(0).kind not in ("tensor", "sequence"):
        step.require_types()
        raise Inexact("whether its input is an optional is unknown")
    has = step.uses_input(0)
    step.replace("Constant", [], value=numpy_helper.from_array(np.array(has)))


@downward("OptionalGetElement", 18)
def element_that_is_given(step: Step) -> None:
    """A tensor or sequence that is no optional is itself what it gives."""
    if step.input_type(0).kind not in ("tensor", "sequence"):
        step.require_types()
        raise Inexact("whether its input is an optional is unknown")
    step.replace("Identity", step.inputs)
