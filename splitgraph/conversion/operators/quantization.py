"""Cast and CastLike: target types became numbers (6), saturate (19) and round_mode (24) matter for few types, and
infinity saturates differently (24).

QuantizeLinear, DequantizeLinear, QLinearMatMul and QLinearConv: one scale for the tensor, for each index of an axis
(13), or for each block (21); more element types.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import always, changed, downward, exact, exact_downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.formula import Formula, Term
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

_GREATEST = {"float8e4m3fnuz": 240.0, "float8e5m2fnuz": 57344.0}
_REAL = frozenset({"float16", "bfloat16", "float32", "float64"})
_EIGHT_BITS = frozenset({"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})

# Cast, CastLike -----------------------------------------------------------------------------------------------------

unchanged("Cast", 9, 13, 19, 21, 23, 25, 28)
unchanged("CastLike", 19, 21, 23, 25)
changed("Cast", 6, "the target type changed from a name to a number")


@exact("Cast", 6)
def target_can_be_respelled(crossing: Crossing) -> bool:
    """True when the target type is known. Writes the type as a name below opset 6 and as a number from 6 on."""
    to = crossing.value("to")
    types = TensorProto.DataType
    if crossing.upward and to in list(types.keys()):
        crossing.set("to", types.Value(to), "from opset 6 on the type is a number")
        return True
    if not crossing.upward and isinstance(to, int) and to in types.values():
        crossing.set("to", types.Name(to), "below opset 6 the type is a name")
        return True
    return False


@downward("Cast CastLike", 19)
def drop_saturate(context: AdapterContext) -> None:
    """Drops saturate, which only float8 uses and which does not exist below 19."""
    if _target(context) in _EIGHT_BITS:
        raise Inexact(f"{_target(context)} does not exist below it")
    context.drop("saturate", why="it is about float8 only")


def _target(context: AdapterContext) -> str:
    """Gives the target type of the node."""
    if context.form.op_type == "CastLike":
        return context.known_dtype(1)
    return DTYPE_NAMES[context.known_value("to")]


changed(
    "Cast CastLike", 24, "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on"
)


@exact("Cast CastLike", 24)
def has_no_saturating_fnuz(crossing: Crossing) -> bool:
    """True when the target type is known and no FNUZ type, or when saturation is off."""
    if crossing.value_or_default("saturate") == 0:
        return True
    to = crossing.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = crossing.dtype(1)
    return crossing.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


@upward("Cast CastLike", 24)
def replace_infinity_by_nan(context: AdapterContext) -> None:
    """Replaces infinity by NaN first: below 24, infinity saturates to NaN in the float8 FNUZ types, from 24 on to the
    greatest number.
    """
    if _target(context) in _GREATEST:
        _replace_infinity(context, float("nan"), signed=False)


def _replace_infinity(context: AdapterContext, number: float, *, signed: bool) -> None:
    """Replaces infinities by a number. signed: the number gets the sign of the infinity. Does nothing where saturation
    is off.
    """
    if context.known_value_or_default("saturate") == 0:
        return
    dtype = context.known_dtype(0)
    if dtype == "string":
        raise Inexact("a string may be that of infinity")
    if dtype not in _REAL | _EIGHT_BITS:
        return
    wide = dtype if dtype in _REAL else "float32"
    f = Formula(context)
    data, replacement = f.input(0).cast(wide), f.number(number, wide)
    if signed:
        replacement = f.node("Sign", data) * replacement
    context.inputs[0] = f.where(f.node("IsInf", data), replacement, data).name


@downward("Cast CastLike", 24)
def replace_infinity_by_greatest(context: AdapterContext) -> None:
    """Replaces infinity by the greatest number first: below 24, infinity saturates to NaN in the float8 FNUZ types.
    Drops round_mode, which only float8e8m0 uses.
    """
    target = _target(context)
    if target == "float8e8m0":
        raise Inexact("float8e8m0 does not exist below it")
    context.drop("round_mode", why="it is about float8e8m0 only")
    if target in _GREATEST and context.known_value_or_default("saturate") != 0:
        _replace_infinity(context, _GREATEST[target], signed=True)


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
    f = Formula(context)
    if dtype.startswith("float8") and context.upper.since_version == 23 and precision in _DIVIDED_AT_21:
        for index in (0, 1):
            context.known_dtype(index)
            context.inputs[index] = f.input(index).cast(precision).name
        context.drop("precision", why="data and scale are of the type to divide in")
        return
    if dtype.startswith("float8") and context.upper.since_version == 21:
        # The zero point is 0, and Cast rounds and saturates as the operator does.
        steps, saturate = f.input(0) / _alignment(context, f)(f.input(1)), context.known_value("saturate", 1)
        f.give(f.node("Cast", steps, gives=dtype, to=DTYPE_NUMBERS[dtype], saturate=saturate))
        return
    if dtype not in _RANGES:
        raise Inexact(f"quantization to {dtype} is written with no other operators")
    if context.upper.since_version == 10:
        # Round, and Clip with inputs, are newer than opset 9.
        context.dialect = 11
    # Quotients of integers are rounded, not cut off: float64 holds them precisely enough.
    precision = "float64" if precision == "int32" else precision
    rounds_in = "float64" if precision == "float64" else "float32"
    aligned = _alignment(context, f)
    scale = aligned(f.input(1)).cast(precision)
    steps = (f.input(0).cast(precision) / scale).cast(rounds_in)
    rounded = f.node("Round", steps).cast("float32")
    if context.uses_input(2):
        rounded = rounded + aligned(f.input(2, dtype)).cast("float32")
    low, high = (f.number(bound, "float32") for bound in _RANGES[dtype])
    f.give(f.node("Clip", rounded, low, high).cast(dtype))


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
            context.inputs[index] = Formula(context).input(index).reshape().name
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


def _alignment(context: AdapterContext, f: Formula) -> Callable[[Term], Term]:
    """Gives a function that lays out a scale or zero point so that it broadcasts to the input."""
    context.known_rank(1)
    shape, rank = context.shape(1) or (), context.known_rank(0)
    axis, block = context.known_value("axis", 1), context.known_value("block_size", 0)
    if block:
        axis %= rank
        blocks = f.counting(f.size(0, axis)) / block
        return lambda term: term.take(blocks, axis)
    if not shape:
        return lambda term: term
    if len(shape) != 1 or (rank > 1 and not -rank <= axis < rank):
        raise Inexact(f"a scale of rank {len(shape)} does not fit axis {axis} of an input of rank {rank}")
    sizes = [-1] + [1] * (rank - 1 - axis % rank) if rank > 1 and shape != (1,) else [-1][: min(rank, 1)]
    return lambda term: term.reshape(*sizes)


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
    f = Formula(context)
    aligned, data = _alignment(context, f), f.input(0).cast("float32")
    # The zero point of int32 and float8 is 0.
    if context.uses_input(2) and narrow in _RANGES:
        data = data - aligned(f.input(2, narrow)).cast("float32")
    f.give((data * aligned(f.input(1)).cast("float32")).cast(made))


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


@exact_downward("QuantizeLinear DequantizeLinear", 13)
def scale_is_scalar(crossing: Crossing) -> bool:
    """True when the scale is a scalar, so that the axis does not matter. Drops the axis."""
    if crossing.rank(1) != 0:
        return False
    crossing.drop("axis", why="with a scalar scale the axis has no effect")
    return True


@upward("QuantizeLinear", 19)
def cast_data_to_type_of_scale(context: AdapterContext) -> None:
    """Casts int32 data to float32. From 19 to 22 the data has the type of the scale; below, int32 comes with a scale of
    float32, whose precision the division has.
    """
    if context.known_dtype(0) != "int32" or context.known_dtype(1) != "float32":
        context.require_types()
        raise Inexact("its data and its scale are of types that it does not take together")
    context.inputs[0] = Formula(context).input(0).cast("float32").name


# QLinearMatMul, QLinearConv -----------------------------------------------------------------------------------------

unchanged("QLinearMatMul", 21)


@downward("QLinearMatMul QLinearConv", 10)
def quantize_product(context: AdapterContext) -> None:
    """Multiplies the integers in int32, scales the product as the document says, and quantizes it with a scale of 1."""
    context.dialect = 10
    is_matmul = context.form.op_type == "QLinearMatMul"
    behind = 0 if is_matmul else context.known_rank(0) - 2
    f = Formula(context)
    a_zero, b_zero, y_zero = (_laid_out(context, f, index) for index in (2, 5, 7))
    columns = [-1, *[1] * behind]
    attributes = {name: context.known_value(name) for name in context.attributes}
    operands = [f.input(0), f.input(3), a_zero, b_zero]
    product = f.node("MatMulInteger" if is_matmul else "ConvInteger", *operands, gives="int32", **attributes)
    if context.uses_input(8):
        product = product + f.input(8).reshape(*columns)
    left = _laid_out(context, f, 1, [-1, 1] if is_matmul else columns)
    right = _laid_out(context, f, 4, None if is_matmul else columns)
    scale = left * right / _laid_out(context, f, 6)
    f.give(f.node("QuantizeLinear", product.cast("float32") * scale, f.number(1, "float32"), y_zero))


def _laid_out(context: AdapterContext, f: Formula, index: int, layout: list[int] | None = None) -> Term:
    """Gives a scale or zero point as a scalar where it is one; otherwise reshapes it for the axis that it
    belongs to.
    """
    context.known_rank(index)
    shape, term = context.shape(index) or (), f.input(index)
    if not shape:
        return term
    if shape == (1,):
        return term.reshape()
    if len(shape) != 1 or index in (6, 7):
        raise Inexact("scales of more than one dimension are for more than rows and columns")
    return term if layout is None else term.reshape(*layout)


@downward("QLinearMatMul", 21)
def cast_scales_to_float32(context: AdapterContext) -> None:
    """Casts the scales to float32, which holds every 16-bit float, because below 21 they are float32."""
    for index in (1, 4, 6):
        context.known_dtype(index)
        context.inputs[index] = Formula(context).input(index).cast("float32").name
    others = {context.known_dtype(index) for index in (0, 2, 3, 5, 7)}
    if not others <= {"int8", "uint8"}:
        raise Inexact(f"{', '.join(sorted(others))} are not all allowed below it")
