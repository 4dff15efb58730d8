"""ConstantFill, ConstantOfShape, EyeLike, Range and Constant: below the opset at which they began to exist, or to make
an element type.
"""

from __future__ import annotations

import math

from splitgraph.attribute_values import CONSTANT_DTYPES, UNRESOLVED
from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.nodes.omitted_arguments import INLINE_FIRST
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact, elements_of
from splitgraph.conversion.writing.formula import Formula, static_shape
from splitgraph.deferred import helper, np, numpy_helper
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS

# Up to this number of elements, the model holds them; beyond, nodes make them at run time.
_KEPT = 2**16

# The range of each type besides float32: the first value, and the first one beyond.
_BOUNDS = {
    TensorProto.BOOL: (0, 2),
    TensorProto.INT32: (-(2**31), 2**31),
    TensorProto.INT64: (-(2**63), 2**63),
}

# The number of zeros that may be written out for each other value.
_ZEROS_FOR_A_VALUE = 64

# ConstantFill -------------------------------------------------------------------------------------------------------

changed("ConstantFill", 9, "it was experimental, and is gone from then on; ConstantOfShape replaces it")


@upward("ConstantFill", 9)
def replace_by_constant_of_shape(context: AdapterContext) -> None:
    """Replaces the experimental ConstantFill by ConstantOfShape, which takes the value as a tensor and the shape as an
    input. The shape is the attribute shape, the shape of the input, or (with input_as_shape) the contents of the input,
    each followed by extra_shape.
    """
    dtype, value = context.known_value("dtype", TensorProto.FLOAT), context.known_value("value", 0.0)
    if dtype != TensorProto.FLOAT and dtype not in _BOUNDS:
        raise Inexact("ConstantFill gives float32, int32, int64 and bool only")
    if dtype in _BOUNDS and not (value.is_integer() and _BOUNDS[dtype][0] <= value < _BOUNDS[dtype][1]):
        raise Inexact(f"{value} is no element of its type, and ConstantFill does not say how it is rounded")
    held = helper.make_tensor("", dtype, [1], [value if dtype == TensorProto.FLOAT else int(value)])
    context.reasons["shape"] = "ConstantFill was experimental; ConstantOfShape replaces it"
    context.replace("ConstantOfShape", [_shape_to_fill(context)], value=held)


def _shape_to_fill(context: AdapterContext) -> str:
    """Gives the shape that ConstantFill means."""
    given, extra = context.known_value("shape"), [int(size) for size in context.known_value("extra_shape", ())]
    if not context.uses_input(0):
        if given is None or extra:
            raise Inexact("without an input its shape, and nothing else, must be an attribute")
        return context.constant(given, "shape")
    if given is not None:
        raise Inexact("it has an attribute shape beside an input that gives the shape")
    f = Formula(context)
    is_shape = context.known_value("input_as_shape", 0)
    shape = f.input(0).cast("int64") if is_shape else f.node("Shape", f.input(0), gives="int64")
    return f.joined([shape, f.number(extra)]).name if extra else shape.name


# ConstantOfShape ----------------------------------------------------------------------------------------------------

unchanged("ConstantOfShape", 20, 21, 23, 24, 25)


@downward("ConstantOfShape", 9)
def expand_value(context: AdapterContext) -> None:
    """Writes ConstantOfShape as a constant where the elements are few and their number is known; otherwise expands one
    element.
    """
    held = context.known_value("value")
    value = np.zeros(1, np.float32) if held is None else elements_of(held)
    shape = context.integers(0)
    if shape is not None and math.prod(shape) <= _KEPT:
        context.replace("Identity", [context.tensor(numpy_helper.from_array(np.full(shape, value[0])), "filled")])
        return
    f = Formula(context)
    f.give(f.term(value.reshape(())).expanded(f.input(0, "int64")))


@downward("ConstantOfShape", 20)
def fill_float32_and_cast(context: AdapterContext) -> None:
    """Fills with float32, which holds every bfloat16 and float8, and casts to these types."""
    value = context.known_value("value")
    dtype = "" if value is None else DTYPE_NAMES.get(value.data_type, "")
    if not dtype.startswith(("bfloat16", "float8e")):
        raise Inexact(f"it does not make {dtype or 'this type'} {context.side}")
    wide = numpy_helper.from_array(elements_of(value).astype(np.float32))
    context.set("value", wide, f"ConstantOfShape does not make {dtype} {context.side}")
    _cast_back(context, dtype)


# EyeLike ------------------------------------------------------------------------------------------------------------

unchanged("EyeLike", 22)


@downward("EyeLike", 9)
def write_diagonal_as_constant(context: AdapterContext) -> None:
    """Writes the ones and zeros as a constant where the shape is known."""
    shape = static_shape(context, context.inputs[0])
    if shape is None or math.prod(shape) > _KEPT:
        raise Inexact("the shape of its input is not known, or large", "declare the shape of the input")
    number = context.known_value("dtype")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[context.known_dtype()] if number is None else number)
    # NumPy makes ones of few types, so that they start as float32.
    rows, columns = shape
    ones = np.eye(rows, columns, context.known_value_or_default("k"), np.float32).astype(kind)
    context.replace("Identity", [context.tensor(numpy_helper.from_array(ones), "diagonal")])


@downward("EyeLike", 22)
def make_ones_and_cast(context: AdapterContext) -> None:
    """Makes ones and zeros in float32 and casts to bfloat16; of a bfloat16 input only the shape matters."""
    number = context.known_value("dtype")
    dtype = context.known_dtype() if number is None else DTYPE_NAMES.get(number, "")
    if "bfloat16" not in (dtype, context.known_dtype()):
        raise Inexact(f"it does not make {dtype} {context.side}")
    if context.known_dtype() == "bfloat16":
        context.inputs[0] = context.emit("Cast", [context.inputs[0]], "wide", to=TensorProto.FLOAT)
    if dtype == "bfloat16":
        context.set("dtype", TensorProto.FLOAT, f"EyeLike does not make {dtype} {context.side}")
        _cast_back(context, dtype)
    else:
        context.set("dtype", DTYPE_NUMBERS[dtype], "the input was cast")


# Range --------------------------------------------------------------------------------------------------------------

unchanged("Range", 27)


@downward("Range", 11)
def count_range(context: AdapterContext) -> None:
    """Writes start + i * delta for i below ceil((limit - start) / delta). i comes from the positions in a tensor of
    ones.
    """
    dtype, f = context.known_dtype(0), Formula(context)
    computed = "int64" if dtype.startswith("int") else dtype
    start, limit, delta = (f.input(index, dtype).cast(computed) for index in range(3))
    if computed == "int64":
        # Adding the step less one (with the sign of the step) rounds the quotient up.
        count = (limit - start + (delta - f.node("Sign", delta))) / delta
    else:
        count = ((limit - start) / delta).ceil().cast("int64")
    f.give((f.counting(count.at_least(0)).cast(computed) * delta + start).cast(dtype))


# Constant -----------------------------------------------------------------------------------------------------------

unchanged("Constant", 9, 11, 13, 19, 21, 23, 24, 25)


@downward("Constant", 9)
def write_constant_with_floats(context: AdapterContext) -> None:
    """Casts integers and booleans from floats where this is exact, and makes everything else an initializer. Below 9,
    Constant gives floats only.
    """
    if not context.has("value") or context.attributes["value"].ref_attr_name:
        raise Inexact("its value is an attribute of the enclosing function", INLINE_FIRST)
    held = context.attributes["value"].t
    if held.data_type in (TensorProto.STRING,) or held.data_type > TensorProto.UINT64:
        context.replace("Identity", [_initializer(context, held)])
        return
    elements = elements_of(held)
    floats = elements.astype(np.float64)
    if np.any(np.abs(floats) > 2**53):
        context.replace("Identity", [_initializer(context, held)])
        return
    number = context.emit("Constant", [], "number", value=numpy_helper.from_array(floats))
    context.replace("Cast", [number], to=held.data_type)


def _initializer(context: AdapterContext, held: TensorProto) -> str:
    """Makes an initializer of a tensor; raises Inexact in functions, which have none."""
    if context.emission.in_function:
        raise Inexact("its elements are not floating-point numbers, and no initializer can hold them here")
    return context.tensor(held, "value")


@downward("Constant", 11)
def write_zeros_of_sparse_tensor(context: AdapterContext) -> None:
    """Writes a sparse tensor with its zeros."""
    sparse = context.attributes.get("sparse_value")
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
    context.drop("sparse_value", why=f"it does not exist {context.side}")
    context.set("value", numpy_helper.from_array(dense), "what the sparse tensor means")


changed("Constant", 12, "constants given as value_int, value_floats and so on were added", up=always)


@exact_downward("Constant", 12)
def can_be_a_tensor(crossing: Crossing) -> bool:
    """True when the value is known. Writes numbers and strings (value_int and so on) as the tensor that they mean."""
    name = next((name for name in crossing.attributes if name.startswith("value_")), None)
    if name is None:
        return True
    if crossing.value(name) is UNRESOLVED:
        return False
    value = helper.get_attribute_value(crossing.attributes[name])
    elements = value if name.endswith("s") else [value]
    dims = [len(elements)] if name.endswith("s") else []
    crossing.drop(name, why="below opset 12 a constant is a tensor")
    held = helper.make_tensor("", DTYPE_NUMBERS[CONSTANT_DTYPES[name]], dims, elements)
    crossing.set("value", held, f"what {name} means")
    return True


# Helpers of several operators ---------------------------------------------------------------------------------------


def _cast_back(context: AdapterContext, dtype: str) -> None:
    """Casts the output of the node to the type that the model expects."""
    result = context.redirect(0, "wide")
    # Without saturation, infinities of float8 stay.
    saturate = 0 if dtype.startswith("float8") else None
    context.emit_after("Cast", [context.outputs[0]], result, to=DTYPE_NUMBERS[dtype], saturate=saturate)
