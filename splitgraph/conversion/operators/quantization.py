"""QuantizeLinear, DequantizeLinear, QLinearMatMul and QLinearConv: one scale for the tensor, for each index of an axis
(13), or for each block (21); more element types.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited_downward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS

_RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    "uint4": (0, 15),
    "int4": (-8, 7),
    "uint2": (0, 3),
    "int2": (-2, 1),
}

# The bytes that hold narrow integers.
_BYTES = {"uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8"}
_QUANTIZED_AT_19 = frozenset({"int8", "uint8", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})
_DIVIDED_AT_21 = frozenset({"float16", "float32", "bfloat16"})
_DEQUANTIZED = frozenset({*_RANGES, "int32"})

# QuantizeLinear, DequantizeLinear -----------------------------------------------------------------------------------

unchanged("QuantizeLinear DequantizeLinear", 19, 21, 23, 24, 25, 28)


@downward("QuantizeLinear", 10, 13, 19, 21, 23)
def quantize_by_arithmetic(context: AdapterContext) -> None:
    """Computes what the document says: x / scale in the precision of the scale, rounded to even, plus the zero point,
    saturated. float32 holds every sum that saturation leaves.

    The node stays where it has one scale, and where only output_dtype is in the way.
    """
    dtype = _quantized_dtype(context)
    if context.upper.since_version == 13 and _has_one_scale(context):
        return
    if context.upper.since_version == 21 and _zero_point_tells_type(context, dtype):
        return
    # Below 23 the data has the type of the scale.
    is_of_scale = context.known_dtype(0) == context.known_dtype(1)
    if context.upper.since_version == 23 and is_of_scale and _says_type_of_scale(context, "precision"):
        return
    precision = DTYPE_NAMES[context.known_value("precision", 0) or DTYPE_NUMBERS[context.known_dtype(1)]]
    if dtype.startswith("float8") and context.upper.since_version == 23 and precision in _DIVIDED_AT_21:
        for index in (0, 1):
            context.inputs[index] = _cast(context, context.inputs[index], context.known_dtype(index), precision)
        context.drop("precision", why="data and scale are of the type to divide in")
        return
    if dtype.startswith("float8") and context.upper.since_version == 21:
        # The zero point is 0, and Cast rounds and saturates as the operator does.
        steps = context.emit("Div", [context.inputs[0], _alignment(context)(context.inputs[1])], "steps")
        context.replace("Cast", [steps], to=DTYPE_NUMBERS[dtype], saturate=context.known_value("saturate", 1))
        return
    if dtype not in _RANGES:
        raise Inexact(f"quantization to {dtype} is written with no other operators")
    if context.upper.since_version == 10:
        # Round, and Clip with inputs, are newer than opset 9.
        context.dialect = 11
    # Quotients of integers are rounded, not cut off: float64 holds them precisely enough.
    precision = "float64" if precision == "int32" else precision
    rounds_in = "float64" if precision == "float64" else "float32"
    aligned = _alignment(context)
    scale = _cast(context, aligned(context.inputs[1]), context.known_dtype(1), precision)
    data = _cast(context, context.inputs[0], context.known_dtype(0), precision)
    steps = _cast(context, context.emit("Div", [data, scale], "steps"), precision, rounds_in)
    rounded = _cast(context, context.emit("Round", [steps], "rounded"), rounds_in, "float32")
    if context.uses_input(2):
        zero = _cast(context, aligned(context.inputs[2]), dtype, "float32")
        rounded = context.emit("Add", [rounded, zero], "shifted")
    low, high = (context.constant(bound, "bound", np.float32) for bound in _RANGES[dtype])
    context.replace("Cast", [context.emit("Clip", [rounded, low, high], "saturated")], to=DTYPE_NUMBERS[dtype])


def _quantized_dtype(context: AdapterContext) -> str:
    """Gives the element type of the result."""
    if context.uses_input(2):
        return context.known_dtype(2)
    return DTYPE_NAMES[context.known_value("output_dtype", 0) or TensorProto.UINT8]


def _has_one_scale(context: AdapterContext) -> bool:
    """True when there is one scale. Makes the scale and the zero point scalars."""
    context.known_rank(1)
    shape = context.shape(1) or ()
    if any(size != 1 for size in shape):
        return False
    for index in (1, 2):
        if context.uses_input(index) and shape:
            context.inputs[index] = context.emit(
                "Reshape", [context.inputs[index], context.constant([], "scalar")], "one"
            )
    context.drop("axis", why="with one scale the axis has no effect")
    return True


def _zero_point_tells_type(context: AdapterContext, dtype: str) -> bool:
    """True when the only obstacle is output_dtype, which a zero point of that type can replace. Adds the zero point."""
    fits = context.known_dtype(0) == context.known_dtype(1)
    if context.known_is_set("block_size") or dtype not in _QUANTIZED_AT_19 or not fits:
        return False
    context.drop("output_dtype", "block_size", why="the zero point tells the type")
    if not context.uses_input(2):
        zero = TensorProto(dims=[1], data_type=DTYPE_NUMBERS[dtype], raw_data=b"\0")
        shape = context.emit("Shape", [context.inputs[1]], "shape")
        context.inputs[2:] = [context.emit("ConstantOfShape", [shape], "zero_point", value=zero)]
    return True


def _says_type_of_scale(context: AdapterContext, name: str) -> bool:
    """True when the only obstacle is an attribute that names the type of the scale, the default. Drops the
    attribute.
    """
    if context.known_value(name, 0) != DTYPE_NUMBERS[context.known_dtype(1)]:
        return False
    context.require_types()
    context.drop(name, why="it is the type of the scale")
    return True


def _alignment(context: AdapterContext) -> Callable[[str], str]:
    """Gives a function that lays out a scale or zero point so that it broadcasts to the input."""
    context.known_rank(1)
    shape, rank = context.shape(1) or (), context.known_rank(0)
    axis, block = context.known_value("axis", 1), context.known_value("block_size", 0)
    if block:
        indices = _block_indices(context, axis % rank, block)
        return lambda name: context.emit("Gather", [name, indices], "repeated", axis=axis % rank)
    if not shape:
        return lambda name: name
    if len(shape) != 1 or (rank > 1 and not -rank <= axis < rank):
        raise Inexact(f"a scale of rank {len(shape)} does not fit axis {axis} of an input of rank {rank}")
    sizes = [-1] + [1] * (rank - 1 - axis % rank) if rank > 1 and shape != (1,) else [-1][: min(rank, 1)]
    layout = context.constant(sizes, "layout")
    return lambda name: context.emit("Reshape", [name, layout], "aligned")


def _block_indices(context: AdapterContext, axis: int, block: int) -> str:
    """Gives the number of the block in which each index of the axis lies."""
    size = (context.shape(0) or ())[axis]
    if isinstance(size, int) and size <= MAX_WRITTEN:
        return context.constant(np.arange(size) // block, "blocks")
    zero, one, length = (context.constant(value, "number") for value in (0, 1, block))
    end = context.emit(
        "Gather", [context.emit("Shape", [context.inputs[0]], "shape"), context.constant(axis, "axis")], "size"
    )
    return context.emit("Div", [context.emit("Range", [zero, end, one], "range"), length], "blocks")


@downward("DequantizeLinear", 10, 13, 19, 21, 23, 25)
def dequantize_by_arithmetic(context: AdapterContext) -> None:
    """Computes what the document says: (x - zero point) * scale. float32 holds the difference of any two integers of 16
    bits.

    The node stays where it has one scale. Constants of narrow integers become bytes.
    """
    if context.upper.since_version == 13 and _has_one_scale(context):
        return
    narrow = context.known_dtype(0)
    if narrow in _BYTES and context.upper.since_version in (21, 25):
        _widen_constants(context, narrow)
        if context.upper.since_version == 25 or not context.known_is_set("block_size"):
            return
        narrow = _BYTES[narrow]
    if context.upper.since_version == 23 and _says_type_of_scale(context, "output_dtype"):
        return
    if narrow not in _DEQUANTIZED and not (narrow.startswith("float8") and context.upper.since_version in (21, 23)):
        raise Inexact(f"dequantization of {narrow} is written with no other operators")
    made = DTYPE_NAMES[context.known_value("output_dtype", 0) or DTYPE_NUMBERS[context.known_dtype(1)]]
    aligned = _alignment(context)
    data = _cast(context, context.inputs[0], narrow, "float32")
    # The zero point of int32 and float8 is 0.
    if context.uses_input(2) and narrow in _RANGES:
        data = context.emit("Sub", [data, _cast(context, aligned(context.inputs[2]), narrow, "float32")], "difference")
    factors = [data, _cast(context, aligned(context.inputs[1]), context.known_dtype(1), "float32")]
    if made == "float32":
        context.replace("Mul", factors)
    else:
        context.replace("Cast", [context.emit("Mul", factors, "product")], to=DTYPE_NUMBERS[made])


def _widen_constants(context: AdapterContext, narrow: str) -> None:
    """Casts constants of narrow integers to bytes."""
    for index in (0, 2):
        if not context.uses_input(index):
            continue
        found = context.elements(index)
        if found is None:
            raise Inexact(f"{narrow} does not exist below it, and here it is not a constant")
        context.inputs[index] = context.constant(found.astype(_BYTES[narrow]), "bytes", _BYTES[narrow])


changed(
    "QuantizeLinear DequantizeLinear",
    13,
    "below it, there is one scale for the whole tensor",
    up=always,
    hint="or declare the scale a scalar",
)


@edited_downward("QuantizeLinear DequantizeLinear", 13)
def scale_is_scalar(crossing: AdapterContext) -> None:
    """Keep a node when the scale is a scalar, so that the axis does not matter. Drops the axis."""
    if crossing.rank(1) != 0:
        raise Inexact
    crossing.drop("axis", why="with a scalar scale the axis has no effect")


@upward("QuantizeLinear", 19)
def cast_data_to_type_of_scale(context: AdapterContext) -> None:
    """Casts int32 data to float32. From 19 to 22 the data has the type of the scale; below, int32 comes with a scale of
    float32, whose precision the division has.
    """
    if context.known_dtype(0) != "int32" or context.known_dtype(1) != "float32":
        context.require_types()
        raise Inexact("its data and its scale are of types that it does not take together")
    context.inputs[0] = _cast(context, context.inputs[0], "int32", "float32")


# QLinearMatMul, QLinearConv -----------------------------------------------------------------------------------------

unchanged("QLinearMatMul", 21)


@downward("QLinearMatMul QLinearConv", 10)
def quantize_product(context: AdapterContext) -> None:
    """Multiplies the integers in int32, scales the product as the document says, and quantizes it with a scale of 1."""
    context.dialect = 10
    is_matmul = context.form.op_type == "QLinearMatMul"
    behind = 0 if is_matmul else context.known_rank(0) - 2
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, *bias = context.inputs
    zeros = [_lay_out(context, 2, a_zero, None), _lay_out(context, 5, b_zero, None), _lay_out(context, 7, y_zero, None)]
    attributes = {name: context.known_value(name) for name in context.attributes}
    product = context.emit("MatMulInteger" if is_matmul else "ConvInteger", [a, b, *zeros[:2]], "product", **attributes)
    columns = [-1, *[1] * behind]
    if bias and bias[0]:
        aligned = context.emit("Reshape", [bias[0], context.constant(columns, "columns")], "bias")
        product = context.emit("Add", [product, aligned], "biased")
    left = _lay_out(context, 1, a_scale, [-1, 1] if is_matmul else columns)
    right = _lay_out(context, 4, b_scale, None if is_matmul else columns)
    scale = context.emit(
        "Div", [context.emit("Mul", [left, right], "scale"), _lay_out(context, 6, y_scale, None)], "scale"
    )
    real = context.emit("Mul", [_cast(context, product, "int32", "float32"), scale], "real")
    context.replace("QuantizeLinear", [real, context.constant(1, "one", np.float32), zeros[2]])


def _lay_out(context: AdapterContext, index: int, name: str, layout: list[int] | None) -> str:
    """Gives a scale or zero point as a scalar where it is one; otherwise reshapes it for the axis that it
    belongs to.
    """
    context.known_rank(index)
    shape = context.shape(index) or ()
    if not shape:
        return name
    if shape == (1,):
        return context.emit("Reshape", [name, context.constant([], "scalar")], "one")
    if len(shape) != 1 or index in (6, 7):
        raise Inexact("scales of more than one dimension are for more than rows and columns")
    return name if layout is None else context.emit("Reshape", [name, context.constant(layout, "layout")], "aligned")


@downward("QLinearMatMul", 21)
def cast_scales_to_float32(context: AdapterContext) -> None:
    """Casts the scales to float32, which holds every 16-bit float, because below 21 they are float32."""
    for index in (1, 4, 6):
        context.inputs[index] = _cast(context, context.inputs[index], context.known_dtype(index), "float32")
    others = {context.known_dtype(index) for index in (0, 2, 3, 5, 7)}
    if not others <= {"int8", "uint8"}:
        raise Inexact(f"{', '.join(sorted(others))} are not all allowed below it")


# Helpers of several operators ---------------------------------------------------------------------------------------


def _cast(context: AdapterContext, name: str, dtype: str, to: str) -> str:
    """Casts a value unless it has the wanted type."""
    return name if dtype == to else context.emit("Cast", [name], to, to=DTYPE_NUMBERS[to])
