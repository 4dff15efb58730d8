"""QuantizeLinear, DequantizeLinear, QLinearMatMul and QLinearConv: one scale for the tensor, for each index of an axis
(13), or for each block (21); more element types.
"""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.conversion.operators.registry import always, changed, downward, edited_downward, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NAMES, DTYPE_NUMBERS, MAX_WRITTEN

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
def quantize_by_arithmetic(node: NodeAtBoundary) -> None:
    """Computes what the document says: x / scale in the precision of the scale, rounded to even, plus the zero point,
    saturated. float32 holds every sum that saturation leaves.

    The node stays where it has one scale, and where only output_dtype is in the way.
    """
    dtype = _quantized_dtype(node)
    if node.upper.since_version == 13 and _has_one_scale(node):
        return
    if node.upper.since_version == 21 and _zero_point_tells_type(node, dtype):
        return
    # Below 23 the data has the type of the scale.
    is_of_scale = node.known_dtype(0) == node.known_dtype(1)
    if node.upper.since_version == 23 and is_of_scale and _says_type_of_scale(node, "precision"):
        return
    precision = DTYPE_NAMES[node.known_value("precision", 0) or DTYPE_NUMBERS[node.known_dtype(1)]]
    if dtype.startswith("float8") and node.upper.since_version == 23 and precision in _DIVIDED_AT_21:
        for index in (0, 1):
            node.inputs[index] = _cast(node, node.inputs[index], node.known_dtype(index), precision)
        node.drop("precision", why="data and scale are of the type to divide in")
        return
    if dtype.startswith("float8") and node.upper.since_version == 21:
        # The zero point is 0, and Cast rounds and saturates as the operator does.
        steps = node.write("Div", [node.inputs[0], _alignment(node)(node.inputs[1])], "steps")
        node.replace("Cast", [steps], to=DTYPE_NUMBERS[dtype], saturate=node.known_value("saturate", 1))
        return
    if dtype not in _RANGES:
        raise Inexact(f"quantization to {dtype} is written with no other operators")
    if node.upper.since_version == 10:
        # Round, and Clip with inputs, are newer than opset 9.
        node.dialect = 11
    # Quotients of integers are rounded, not cut off: float64 holds them precisely enough.
    precision = "float64" if precision == "int32" else precision
    rounds_in = "float64" if precision == "float64" else "float32"
    aligned = _alignment(node)
    scale = _cast(node, aligned(node.inputs[1]), node.known_dtype(1), precision)
    data = _cast(node, node.inputs[0], node.known_dtype(0), precision)
    steps = _cast(node, node.write("Div", [data, scale], "steps"), precision, rounds_in)
    rounded = _cast(node, node.write("Round", [steps], "rounded"), rounds_in, "float32")
    if node.uses_input(2):
        zero = _cast(node, aligned(node.inputs[2]), dtype, "float32")
        rounded = node.write("Add", [rounded, zero], "shifted")
    low, high = (node.constant(bound, "bound", np.float32) for bound in _RANGES[dtype])
    node.replace("Cast", [node.write("Clip", [rounded, low, high], "saturated")], to=DTYPE_NUMBERS[dtype])


def _quantized_dtype(node: NodeAtBoundary) -> str:
    """Gives the element type of the result."""
    if node.uses_input(2):
        return node.known_dtype(2)
    return DTYPE_NAMES[node.known_value("output_dtype", 0) or TensorProto.UINT8]


def _has_one_scale(node: NodeAtBoundary) -> bool:
    """True when there is one scale. Makes the scale and the zero point scalars."""
    node.known_rank(1)
    shape = node.shape(1) or ()
    if any(size != 1 for size in shape):
        return False
    for index in (1, 2):
        if node.uses_input(index) and shape:
            node.inputs[index] = node.write("Reshape", [node.inputs[index], node.constant([], "scalar")], "one")
    node.drop("axis", why="with one scale the axis has no effect")
    return True


def _zero_point_tells_type(node: NodeAtBoundary, dtype: str) -> bool:
    """True when the only obstacle is output_dtype, which a zero point of that type can replace. Adds the zero point."""
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
    """True when the only obstacle is an attribute that names the type of the scale, the default. Drops the
    attribute.
    """
    if node.known_value(name, 0) != DTYPE_NUMBERS[node.known_dtype(1)]:
        return False
    node.require_types()
    node.drop(name, why="it is the type of the scale")
    return True


def _alignment(node: NodeAtBoundary) -> Callable[[str], str]:
    """Gives a function that lays out a scale or zero point so that it broadcasts to the input."""
    node.known_rank(1)
    shape, rank = node.shape(1) or (), node.known_rank(0)
    axis, block = node.known_value("axis", 1), node.known_value("block_size", 0)
    if block:
        indices = _block_indices(node, axis % rank, block)
        return lambda name: node.write("Gather", [name, indices], "repeated", axis=axis % rank)
    if not shape:
        return lambda name: name
    if len(shape) != 1 or (rank > 1 and not -rank <= axis < rank):
        raise Inexact(f"a scale of rank {len(shape)} does not fit axis {axis} of an input of rank {rank}")
    sizes = [-1] + [1] * (rank - 1 - axis % rank) if rank > 1 and shape != (1,) else [-1][: min(rank, 1)]
    layout = node.constant(sizes, "layout")
    return lambda name: node.write("Reshape", [name, layout], "aligned")


def _block_indices(node: NodeAtBoundary, axis: int, block: int) -> str:
    """Gives the number of the block in which each index of the axis lies."""
    size = (node.shape(0) or ())[axis]
    if isinstance(size, int) and size <= MAX_WRITTEN:
        return node.constant(np.arange(size) // block, "blocks")
    zero, one, length = (node.constant(value, "number") for value in (0, 1, block))
    end = node.write("Gather", [node.write("Shape", [node.inputs[0]], "shape"), node.constant(axis, "axis")], "size")
    return node.write("Div", [node.write("Range", [zero, end, one], "range"), length], "blocks")


@downward("DequantizeLinear", 10, 13, 19, 21, 23, 25)
def dequantize_by_arithmetic(node: NodeAtBoundary) -> None:
    """Computes what the document says: (x - zero point) * scale. float32 holds the difference of any two integers of 16
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
    aligned = _alignment(node)
    data = _cast(node, node.inputs[0], narrow, "float32")
    # The zero point of int32 and float8 is 0.
    if node.uses_input(2) and narrow in _RANGES:
        data = node.write("Sub", [data, _cast(node, aligned(node.inputs[2]), narrow, "float32")], "difference")
    factors = [data, _cast(node, aligned(node.inputs[1]), node.known_dtype(1), "float32")]
    if made == "float32":
        node.replace("Mul", factors)
    else:
        node.replace("Cast", [node.write("Mul", factors, "product")], to=DTYPE_NUMBERS[made])


def _widen_constants(node: NodeAtBoundary, narrow: str) -> None:
    """Casts constants of narrow integers to bytes."""
    for index in (0, 2):
        if not node.uses_input(index):
            continue
        found = node.elements(index)
        if found is None:
            raise Inexact(f"{narrow} does not exist below it, and here it is not a constant")
        node.inputs[index] = node.constant(found.astype(_BYTES[narrow]), "bytes", _BYTES[narrow])


changed(
    "QuantizeLinear DequantizeLinear",
    13,
    "below it, there is one scale for the whole tensor",
    up=always,
    hint="or declare the scale a scalar",
)


@edited_downward("QuantizeLinear DequantizeLinear", 13)
def scale_is_scalar(node: NodeAtBoundary) -> None:
    """Keep a node when the scale is a scalar, so that the axis does not matter. Drops the axis."""
    if node.rank(1) != 0:
        raise Inexact
    node.drop("axis", why="with a scalar scale the axis has no effect")


@upward("QuantizeLinear", 19)
def cast_data_to_type_of_scale(node: NodeAtBoundary) -> None:
    """Casts int32 data to float32. From 19 to 22 the data has the type of the scale; below, int32 comes with a scale of
    float32, whose precision the division has.
    """
    if node.known_dtype(0) != "int32" or node.known_dtype(1) != "float32":
        node.require_types()
        raise Inexact("its data and its scale are of types that it does not take together")
    node.inputs[0] = _cast(node, node.inputs[0], "int32", "float32")


# QLinearMatMul, QLinearConv -----------------------------------------------------------------------------------------

unchanged("QLinearMatMul", 21)


@downward("QLinearMatMul QLinearConv", 10)
def quantize_product(node: NodeAtBoundary) -> None:
    """Multiplies the integers in int32, scales the product as the document says, and quantizes it with a scale of 1."""
    node.dialect = 10
    is_matmul = node.op_type == "QLinearMatMul"
    behind = 0 if is_matmul else node.known_rank(0) - 2
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, *bias = node.inputs
    zeros = [_lay_out(node, 2, a_zero, None), _lay_out(node, 5, b_zero, None), _lay_out(node, 7, y_zero, None)]
    attributes = {name: node.known_value(name) for name in node.attributes}
    product = node.write("MatMulInteger" if is_matmul else "ConvInteger", [a, b, *zeros[:2]], "product", **attributes)
    columns = [-1, *[1] * behind]
    if bias and bias[0]:
        aligned = node.write("Reshape", [bias[0], node.constant(columns, "columns")], "bias")
        product = node.write("Add", [product, aligned], "biased")
    left = _lay_out(node, 1, a_scale, [-1, 1] if is_matmul else columns)
    right = _lay_out(node, 4, b_scale, None if is_matmul else columns)
    scale = node.write("Div", [node.write("Mul", [left, right], "scale"), _lay_out(node, 6, y_scale, None)], "scale")
    real = node.write("Mul", [_cast(node, product, "int32", "float32"), scale], "real")
    node.replace("QuantizeLinear", [real, node.constant(1, "one", np.float32), zeros[2]])


def _lay_out(node: NodeAtBoundary, index: int, name: str, layout: list[int] | None) -> str:
    """Gives a scale or zero point as a scalar where it is one; otherwise reshapes it for the axis that it
    belongs to.
    """
    node.known_rank(index)
    shape = node.shape(index) or ()
    if not shape:
        return name
    if shape == (1,):
        return node.write("Reshape", [name, node.constant([], "scalar")], "one")
    if len(shape) != 1 or index in (6, 7):
        raise Inexact("scales of more than one dimension are for more than rows and columns")
    return name if layout is None else node.write("Reshape", [name, node.constant(layout, "layout")], "aligned")


@downward("QLinearMatMul", 21)
def cast_scales_to_float32(node: NodeAtBoundary) -> None:
    """Casts the scales to float32, which holds every 16-bit float, because below 21 they are float32."""
    for index in (1, 4, 6):
        node.inputs[index] = _cast(node, node.inputs[index], node.known_dtype(index), "float32")
    others = {node.known_dtype(index) for index in (0, 2, 3, 5, 7)}
    if not others <= {"int8", "uint8"}:
        raise Inexact(f"{', '.join(sorted(others))} are not all allowed below it")


# Helpers of several operators ---------------------------------------------------------------------------------------


def _cast(node: NodeAtBoundary, name: str, dtype: str, to: str) -> str:
    """Casts a value unless it has the wanted type."""
    return name if dtype == to else node.write("Cast", [name], to, to=DTYPE_NUMBERS[to])
