"""Cast and CastLike: target types became numbers (6), saturate (19) and round_mode (24) matter for few types, and
infinity saturates differently (24).

QuantizeLinear, DequantizeLinear, QLinearMatMul and QLinearConv: one scale for the tensor, for each index of an axis
(13), or for each block (21); more element types.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited,
    edited_downward,
    exact,
    unchanged,
    upward,
)
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS

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


@edited("Cast", 6)
def target_can_be_respelled(node: NodeAtBoundary) -> None:
    """Keep a node when the target type is known. Write the type as a name below opset 6 and as a number from 6 on."""
    to = node.value("to")
    types = TensorProto.DataType
    if node.upward and to in list(types.keys()):
        node.set("to", types.Value(to), "from opset 6 on the type is a number")
        return
    if not node.upward and isinstance(to, int) and to in types.values():
        node.set("to", types.Name(to), "below opset 6 the type is a name")
        return
    raise Inexact


@downward("Cast CastLike", 19)
def drop_saturate(node: NodeAtBoundary) -> None:
    """Drop saturate, which only float8 uses and which does not exist below 19."""
    if _target(node) in _EIGHT_BITS:
        raise Inexact(f"{_target(node)} does not exist below it")
    node.drop("saturate", why="it is about float8 only")


def _target(node: NodeAtBoundary) -> str:
    """Return the target type of the node."""
    if node.op_type == "CastLike":
        return node.known_dtype(1)
    return DTYPE_NAMES[node.known_value("to")]


changed(
    "Cast CastLike", 24, "saturating infinity to float8 FNUZ types gives NaN below it, the greatest value from then on"
)


@exact("Cast CastLike", 24)
def has_no_saturating_fnuz(node: NodeAtBoundary) -> bool:
    """Return True when the target type is known and no FNUZ type, or when saturation is off."""
    if node.value_or_default("saturate") == 0:
        return True
    to = node.value("to")
    fnuz = (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if isinstance(to, int):
        return to not in fnuz
    dtype = node.dtype(1)
    return node.lower.op == "CastLike" and dtype is not None and not dtype.endswith("fnuz")


@upward("Cast CastLike", 24)
def replace_infinity_by_nan(node: NodeAtBoundary) -> None:
    """Replace infinity by NaN first: below 24, infinity saturates to NaN in the float8 FNUZ types, from 24 on to the
    greatest number.
    """
    if _target(node) in _GREATEST:
        _replace_infinity(node, float("nan"), signed=False)


def _replace_infinity(node: NodeAtBoundary, number: float, *, signed: bool) -> None:
    """Replace infinities by a number. signed: the number gets the sign of the infinity. Does nothing where saturation
    is off.
    """
    if node.known_value_or_default("saturate") == 0:
        return
    dtype = node.known_dtype(0)
    if dtype == "string":
        raise Inexact("a string may mean infinity")
    if dtype not in _REAL | _EIGHT_BITS:
        return
    wide = dtype if dtype in _REAL else "float32"
    f = Formula(node)
    data, replacement = f.input(0).cast(wide), f.number(number, wide)
    if signed:
        replacement = f.apply("Sign", data) * replacement
    node.inputs[0] = f.where(f.apply("IsInf", data), replacement, data).name


@downward("Cast CastLike", 24)
def replace_infinity_by_greatest(node: NodeAtBoundary) -> None:
    """Replace infinity by the greatest number first: below 24, infinity saturates to NaN in the float8 FNUZ types. Drop
    round_mode, which only float8e8m0 uses.
    """
    dtype = _target(node)
    if dtype == "float8e8m0":
        raise Inexact("float8e8m0 does not exist below it")
    node.drop("round_mode", why="it is about float8e8m0 only")
    if dtype in _GREATEST and node.known_value_or_default("saturate") != 0:
        _replace_infinity(node, _GREATEST[dtype], signed=True)


# QuantizeLinear, DequantizeLinear -----------------------------------------------------------------------------------

unchanged("QuantizeLinear DequantizeLinear", 19, 21, 23, 24, 25, 28)


@downward("QuantizeLinear", 10, 13, 19, 21, 23)
def quantize_by_arithmetic(node: NodeAtBoundary) -> None:
    """Compute what the document says: x / scale in the precision of the scale, rounded to even, plus the zero point,
    saturated. float32 holds every sum that saturation leaves.
    """
    dtype, version = _quantized_dtype(node), node.upper.since_version
    if _stays_quantization(node, dtype):
        return
    f, precision = Formula(node), _division_dtype(node)
    if dtype.startswith("float8") and version == 21:
        # The zero point is 0, and Cast rounds and saturates as the operator does.
        steps, saturate = f.input(0) / alignment(node, f)(f.input(1)), node.known_value("saturate", 1)
        f.give(f.apply("Cast", steps, gives=dtype, to=DTYPE_NUMBERS[dtype], saturate=saturate))
        return
    if dtype not in _RANGES:
        raise Inexact(f"quantization to {dtype} is written with no other operators")
    if version == 10:
        # Round, and Clip with inputs, are newer than opset 9.
        node.dialect = 11
    # Quotients of integers are rounded, not cut off: float64 holds them precisely enough.
    precision = "float64" if precision == "int32" else precision
    rounds_in = "float64" if precision == "float64" else "float32"
    aligned = alignment(node, f)
    scale = aligned(f.input(1)).cast(precision)
    steps = (f.input(0).cast(precision) / scale).cast(rounds_in)
    rounded = f.apply("Round", steps).cast("float32")
    if node.uses_input(2):
        rounded = rounded + aligned(f.input(2, dtype)).cast("float32")
    low, high = (f.number(bound, "float32") for bound in _RANGES[dtype])
    f.give(f.apply("Clip", rounded, low, high).cast(dtype))


def _stays_quantization(node: NodeAtBoundary, dtype: str) -> bool:
    """Return True where the node stays a QuantizeLinear, with other attributes and inputs: below 13 with one scale,
    below 21 where only output_dtype is in the way, below 23 where only precision is. dtype: of the result.
    """
    version = node.upper.since_version
    if version == 13:
        return _has_one_scale(node)
    if version == 21:
        return _zero_point_tells_type(node, dtype)
    if version != 23:
        return False
    # Below 23 the data has the type of the scale.
    if node.known_dtype(0) == node.known_dtype(1) and _says_type_of_scale(node, "precision"):
        return True
    precision = _division_dtype(node)
    if not dtype.startswith("float8") or precision not in _DIVIDED_AT_21:
        return False
    f = Formula(node)
    for index in (0, 1):
        node.inputs[index] = f.input(index).cast(precision).name
    node.drop("precision", why="data and scale are of the type to divide in")
    return True


def _division_dtype(node: NodeAtBoundary) -> str:
    """Return the element type in which the data is divided by the scale."""
    node.known_dtype(0)  # is cast to it, which needs a known type
    return DTYPE_NAMES[node.known_value("precision", 0) or DTYPE_NUMBERS[node.known_dtype(1)]]


@downward("DynamicQuantizeLinear", 11)
def quantize_by_own_range(node: NodeAtBoundary) -> None:
    """Compute the range of the data, with 0 in it, and quantize by it. The document divides 0 by 0 where all elements
    are 0; there the scale is 1, as onnxruntime has it.
    """
    # Round, and Clip with inputs, are newer than opset 10.
    node.dialect = 11
    f = Formula(node)
    data, (low, high) = f.input(0), _RANGES["uint8"]
    greatest = f.apply("ReduceMax", data, keepdims=0).at_least(0)
    least = f.apply("ReduceMin", data, keepdims=0).at_most(0)
    span = greatest - least
    # Below 9 there is no Where.
    is_empty = (span > 0).cast("float32") < 0.5
    scale = span / (high - low) + is_empty.cast("float32")
    zero_point = f.apply("Round", (low - least / scale).clipped(low, high))
    quantized = (f.apply("Round", data / scale) + zero_point).clipped(low, high)
    f.give(quantized.cast("uint8"), scale, zero_point.cast("uint8"))


def _quantized_dtype(node: NodeAtBoundary) -> str:
    """Return the element type of the result."""
    if node.uses_input(2):
        return node.known_dtype(2)
    return DTYPE_NAMES[node.known_value("output_dtype", 0) or TensorProto.UINT8]


def _has_one_scale(node: NodeAtBoundary) -> bool:
    """Return True when there is one scale. Make the scale and the zero point scalars."""
    node.known_rank(1)
    shape = node.shape(1) or ()
    if any(size != 1 for size in shape):
        return False
    for index in (1, 2):
        if node.uses_input(index) and shape:
            node.inputs[index] = Formula(node).input(index).reshape().name
    node.drop("axis", why="with one scale the axis has no effect")
    return True


def _zero_point_tells_type(node: NodeAtBoundary, dtype: str) -> bool:
    """Return True when the only obstacle is output_dtype, which a zero point of that type can replace. Add the zero
    point.
    """
    fits = node.known_dtype(0) == node.known_dtype(1)
    if node.known_is_set("block_size") or dtype not in _QUANTIZED_AT_19 or not fits:
        return False
    node.drop("output_dtype", "block_size", why="the zero point tells the type")
    if not node.uses_input(2):
        zero = TensorProto(dims=[1], data_type=DTYPE_NUMBERS[dtype], raw_data=b"\0")
        shape = node.write("Shape", [node.inputs[1]], "shape")
        node.inputs[2:] = [node.write("ConstantOfShape", [shape], "zero_point", value=zero)]
    return True


def _says_type_of_scale(node: NodeAtBoundary, name: str) -> bool:
    """Return True when the only obstacle is an attribute that names the type of the scale, the default. Drop the
    attribute.
    """
    if node.known_value(name, 0) != DTYPE_NUMBERS[node.known_dtype(1)]:
        return False
    node.require_types()
    node.drop(name, why="it is the type of the scale")
    return True


def alignment(node: NodeAtBoundary, f: Formula) -> Callable[[Term], Term]:
    """Return a function that lays out a scale or zero point so that it broadcasts to the input."""
    node.known_rank(1)
    shape, rank = node.shape(1) or (), node.known_rank(0)
    axis, block = node.known_value("axis", 1), node.known_value("block_size", 0)
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
def dequantize_by_arithmetic(node: NodeAtBoundary) -> None:
    """Compute what the document says: (x - zero point) * scale. float32 holds the difference of any two integers of 16
    bits.

    The node stays where it has one scale. Constants of narrow integers become bytes.
    """
    if node.upper.since_version == 13 and _has_one_scale(node):
        return
    narrow = node.known_dtype(0)
    if narrow in _BYTES and node.upper.since_version in (21, 25):
        _widen_constants(node, narrow)
        if node.upper.since_version == 25 or not node.known_is_set("block_size"):
            return
        narrow = _BYTES[narrow]
    if node.upper.since_version == 23 and _says_type_of_scale(node, "output_dtype"):
        return
    if narrow not in _DEQUANTIZED and not (narrow.startswith("float8") and node.upper.since_version in (21, 23)):
        raise Inexact(f"dequantization of {narrow} is written with no other operators")
    made = DTYPE_NAMES[node.known_value("output_dtype", 0) or DTYPE_NUMBERS[node.known_dtype(1)]]
    f = Formula(node)
    aligned, data = alignment(node, f), f.input(0).cast("float32")
    # The zero point of int32 and float8 is 0.
    if node.uses_input(2) and narrow in _RANGES:
        data = data - aligned(f.input(2, narrow)).cast("float32")
    f.give((data * aligned(f.input(1)).cast("float32")).cast(made))


def _widen_constants(node: NodeAtBoundary, narrow: str) -> None:
    """Cast constants of narrow integers to bytes."""
    for index in (0, 2):
        if not node.uses_input(index):
            continue
        elements = node.elements(index)
        if elements is None:
            raise Inexact(f"{narrow} does not exist below it, and here it is not a constant")
        node.inputs[index] = node.constant(elements.astype(_BYTES[narrow]), "bytes", _BYTES[narrow])


changed(
    "QuantizeLinear DequantizeLinear",
    13,
    "below it, there is one scale for the whole tensor",
    up=always,
    hint="or declare the scale a scalar",
)


@edited_downward("QuantizeLinear DequantizeLinear", 13)
def scale_is_scalar(node: NodeAtBoundary) -> None:
    """Keep a node when the scale is a scalar, so that the axis does not matter. Drop the axis."""
    if node.rank(1) != 0:
        raise Inexact
    node.drop("axis", why="with a scalar scale the axis has no effect")


@upward("QuantizeLinear", 19)
def cast_data_to_type_of_scale(node: NodeAtBoundary) -> None:
    """Cast int32 data to float32. From 19 to 22 the data has the type of the scale; below, int32 comes with a scale of
    float32, whose precision the division has.
    """
    if node.known_dtype(0) != "int32" or node.known_dtype(1) != "float32":
        node.require_types()
        raise Inexact("its data and its scale are of types that it does not take together")
    node.inputs[0] = Formula(node).input(0).cast("float32").name


# QLinearMatMul, QLinearConv -----------------------------------------------------------------------------------------

unchanged("QLinearMatMul", 21)


@downward("QLinearMatMul QLinearConv", 10)
def quantize_product(node: NodeAtBoundary) -> None:
    """Multiply the integers in int32, scale the product as the document says, and quantize it with a scale of 1."""
    node.dialect = 10
    is_matmul = node.op_type == "QLinearMatMul"
    behind = 0 if is_matmul else node.known_rank(0) - 2
    f = Formula(node)
    a_zero, b_zero, y_zero = (_laid_out(node, f, index) for index in (2, 5, 7))
    columns = [-1, *[1] * behind]
    attributes = {name: node.known_value(name) for name in node.attributes}
    operands = [f.input(0), f.input(3), a_zero, b_zero]
    product = f.apply("MatMulInteger" if is_matmul else "ConvInteger", *operands, gives="int32", **attributes)
    if node.uses_input(8):
        product = product + f.input(8).reshape(*columns)
    left = _laid_out(node, f, 1, [-1, 1] if is_matmul else columns)
    right = _laid_out(node, f, 4, None if is_matmul else columns)
    scale = left * right / _laid_out(node, f, 6)
    f.give(f.apply("QuantizeLinear", product.cast("float32") * scale, f.number(1, "float32"), y_zero))


def _laid_out(node: NodeAtBoundary, f: Formula, index: int, layout: list[int] | None = None) -> Term:
    """Return a scale or zero point as a scalar where it is one; otherwise reshapes it for the axis that it belongs
    to.
    """
    node.known_rank(index)
    shape, term = node.shape(index) or (), f.input(index)
    if not shape:
        return term
    if shape == (1,):
        return term.reshape()
    if len(shape) != 1 or index in (6, 7):
        raise Inexact("scales of more than one dimension are for more than rows and columns")
    return term if layout is None else term.reshape(*layout)


@downward("QLinearMatMul", 21)
def cast_scales_to_float32(node: NodeAtBoundary) -> None:
    """Cast the scales to float32, which holds every 16-bit float, because below 21 they are float32."""
    for index in (1, 4, 6):
        node.known_dtype(index)
        node.inputs[index] = Formula(node).input(index).cast("float32").name
    others = {node.known_dtype(index) for index in (0, 2, 3, 5, 7)}
    if not others <= {"int8", "uint8"}:
        raise Inexact(f"{', '.join(sorted(others))} are not all allowed below it")
