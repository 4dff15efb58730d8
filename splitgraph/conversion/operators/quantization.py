"""QuantizeLinear and DequantizeLinear: one scale, one for each index of an axis, one for each block; element types."""

from __future__ import annotations

from collections.abc import Callable

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    exact_downward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import Inexact, Step
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

# Narrow integers as bytes.
_BYTES = {"uint4": "uint8", "int4": "int8", "uint2": "uint8", "int2": "int8"}

_QUANTIZED_AT_19 = frozenset({"int8", "uint8", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"})

_DIVIDED_AT_21 = frozenset({"float16", "float32", "bfloat16"})

_DEQUANTIZED = frozenset({*_RANGES, "int32"})


unchanged("QuantizeLinear DequantizeLinear", 19, 21, 23, 24, 25, 28)


@downward("QuantizeLinear", 10, 13, 19, 21, 23)
def quantized_by_arithmetic(step: Step) -> None:
    """What the document says: x / scale in the precision of the scale, rounded to even, plus the zero point, saturated.
    The sum is computed in float32, which holds every sum that saturation leaves. A scale of one element stays the
    operator's, as does a type that only output_dtype gives.
    """
    dtype = _quantized_dtype(step)
    if step.upper.since_version == 13 and _takes_one_scale(step):
        return
    if step.upper.since_version == 21 and _takes_zero_point(step, dtype):
        return
    # Below 23 the data is of the type of the scale.
    is_of_scale = step.known_dtype(0) == step.known_dtype(1)
    if step.upper.since_version == 23 and is_of_scale and _says_type_of_scale(step, "precision"):
        return
    precision = DTYPE_NAMES[step.known_value("precision", 0) or DTYPE_NUMBERS[step.known_dtype(1)]]
    if dtype.startswith("float8") and step.upper.since_version == 23 and precision in _DIVIDED_AT_21:
        for index in (0, 1):
            step.inputs[index] = _cast(step, step.inputs[index], step.known_dtype(index), precision)
        step.drop("precision", why="data and scale are of the type to divide in")
        return
    if dtype.startswith("float8") and step.upper.since_version == 21:
        # The zero point is 0, and Cast rounds and saturates as the operator does.
        steps = step.emit("Div", [step.inputs[0], _alignment(step)(step.inputs[1])], "steps")
        step.replace("Cast", [steps], to=DTYPE_NUMBERS[dtype], saturate=step.known_value("saturate", 1))
        return
    if dtype not in _RANGES:
        raise Inexact(f"quantization to {dtype} is written with no other operators")
    if step.upper.since_version == 10:
        # Round and Clip's bounds are younger than the operator.
        step.dialect = 11
    # Quotients of integers are rounded too, not cut off: float64 holds where each lies between two numbers.
    precision = "float64" if precision == "int32" else precision
    rounds_in = "float64" if precision == "float64" else "float32"
    aligned = _alignment(step)
    scale = _cast(step, aligned(step.inputs[1]), step.known_dtype(1), precision)
    data = _cast(step, step.inputs[0], step.known_dtype(0), precision)
    steps = _cast(step, step.emit("Div", [data, scale], "steps"), precision, rounds_in)
    rounded = _cast(step, step.emit("Round", [steps], "rounded"), rounds_in, "float32")
    if step.uses_input(2):
        zero = _cast(step, aligned(step.inputs[2]), dtype, "float32")
        rounded = step.emit("Add", [rounded, zero], "shifted")
    low, high = (step.constant(bound, "bound", np.float32) for bound in _RANGES[dtype])
    step.replace("Cast", [step.emit("Clip", [rounded, low, high], "saturated")], to=DTYPE_NUMBERS[dtype])


changed(
    "QuantizeLinear DequantizeLinear",
    13,
    "below it, there is one scale for the whole tensor",
    up=always,
    hint="or declare the scale a scalar",
)


@exact_downward("QuantizeLinear DequantizeLinear", 13)
def scale_is_scalar(c: Crossing) -> bool:
    """QuantizeLinear, DequantizeLinear at 13, downward: one scale for the whole tensor, so that no axis matters."""
    if c.rank(1) != 0:
        return False
    c.drop("axis", why="with a scalar scale the axis has no effect")
    return True


@upward("QuantizeLinear", 19)
def data_in_type_of_scale(step: Step) -> None:
    """From 19 to 22 the data is of the type of the scale; below, int32 comes with a scale of float32, and is divided in
    its precision.
    """
    if step.known_dtype(0) != "int32" or step.known_dtype(1) != "float32":
        step.require_types()
        raise Inexact("its data and its scale are of types that it does not take together")
    step.inputs[0] = _cast(step, step.inputs[0], "int32", "float32")


@downward("DequantizeLinear", 10, 13, 19, 21, 23, 25)
def dequantized_by_arithmetic(step: Step) -> None:
    """What the document says: (x - zero point) * scale, of which float32 holds the difference of any two integers of 16
    bits. A scale of one element stays the operator's; constants of narrow integers become bytes.
    """
    if step.upper.since_version == 13 and _takes_one_scale(step):
        return
    narrow = step.known_dtype(0)
    if narrow in _BYTES and step.upper.since_version in (21, 25):
        _widen_constants(step, narrow)
        if step.upper.since_version == 25 or not step.known_is_set("block_size"):
            return
        narrow = _BYTES[narrow]
    if step.upper.since_version == 23 and _says_type_of_scale(step, "output_dtype"):
        return
    if narrow not in _DEQUANTIZED and not (narrow.startswith("float8") and step.upper.since_version in (21, 23)):
        raise Inexact(f"dequantization of {narrow} is written with no other operators")
    made = DTYPE_NAMES[step.known_value("output_dtype", 0) or DTYPE_NUMBERS[step.known_dtype(1)]]
    aligned = _alignment(step)
    data = _cast(step, step.inputs[0], narrow, "float32")
    # The zero point of int32 is 0, and that of float8.
    if step.uses_input(2) and narrow in _RANGES:
        data = step.emit("Sub", [data, _cast(step, aligned(step.inputs[2]), narrow, "float32")], "difference")
    factors = [data, _cast(step, aligned(step.inputs[1]), step.known_dtype(1), "float32")]
    if made == "float32":
        step.replace("Mul", factors)
    else:
        step.replace("Cast", [step.emit("Mul", factors, "product")], to=DTYPE_NUMBERS[made])


unchanged("QLinearMatMul", 21)


@downward("QLinearMatMul QLinearConv", 10)
def quantized_product(step: Step) -> None:
    """The product of the integers, in int32, scaled as the document says and quantized with a scale of 1."""
    step.dialect = 10
    is_matmul = step.form.op_type == "QLinearMatMul"
    behind = 0 if is_matmul else step.known_rank(0) - 2
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, *bias = step.inputs
    zeros = [_per_row(step, 2, a_zero, None), _per_row(step, 5, b_zero, None), _per_row(step, 7, y_zero, None)]
    attributes = {name: step.known_value(name) for name in step.attributes}
    product = step.emit("MatMulInteger" if is_matmul else "ConvInteger", [a, b, *zeros[:2]], "product", **attributes)
    columns = [-1, *[1] * behind]
    if bias and bias[0]:
        aligned = step.emit("Reshape", [bias[0], step.constant(columns, "columns")], "bias")
        product = step.emit("Add", [product, aligned], "biased")
    left = _per_row(step, 1, a_scale, [-1, 1] if is_matmul else columns)
    right = _per_row(step, 4, b_scale, None if is_matmul else columns)
    scale = step.emit("Div", [step.emit("Mul", [left, right], "scale"), _per_row(step, 6, y_scale, None)], "scale")
    real = step.emit("Mul", [_cast(step, product, "int32", "float32"), scale], "real")
    step.replace("QuantizeLinear", [real, step.constant(1, "one", np.float32), zeros[2]])


def _per_row(step: Step, index: int, name: str, layout: list[int] | None) -> str:
    """A scale or zero point, as a scalar where it is one, else laid out along the axis that it is for."""
    step.known_rank(index)
    shape = step.shape(index) or ()
    if not shape:
        return name
    if shape == (1,):
        return step.emit("Reshape", [name, step.constant([], "scalar")], "one")
    if len(shape) != 1 or index in (6, 7):
        raise Inexact("scales of more than one dimension are for more than rows and columns")
    return name if layout is None else step.emit("Reshape", [name, step.constant(layout, "layout")], "aligned")


def _quantized_dtype(step: Step) -> str:
    if step.uses_input(2):
        return step.known_dtype(2)
    return DTYPE_NAMES[step.known_value("output_dtype", 0) or TensorProto.UINT8]


def _says_type_of_scale(step: Step, name: str) -> bool:
    """True when an attribute says what holds without it, which is all that is in the way."""
    if step.known_value(name, 0) != DTYPE_NUMBERS[step.known_dtype(1)]:
        return False
    step.require_types()
    step.drop(name, why="it is the type of the scale")
    return True


def _takes_one_scale(step: Step) -> bool:
    """True when there is one scale, which is made a scalar where it is a list of one."""
    step.known_rank(1)
    shape = step.shape(1) or ()
    if any(size != 1 for size in shape):
        return False
    for index in (1, 2):
        if step.uses_input(index) and shape:
            step.inputs[index] = step.emit("Reshape", [step.inputs[index], step.constant([], "scalar")], "one")
    step.drop("axis", why="with one scale the axis has no effect")
    return True


def _takes_zero_point(step: Step, dtype: str) -> bool:
    """True when only output_dtype is in the way, which a zero point of that type says as well."""
    fits = step.known_dtype(0) == step.known_dtype(1)
    if step.known_is_set("block_size") or dtype not in _QUANTIZED_AT_19 or not fits:
        return False
    step.drop("output_dtype", "block_size", why="the zero point tells the type")
    if not step.uses_input(2):
        zero = TensorProto(dims=[1], data_type=DTYPE_NUMBERS[dtype], raw_data=b"\0")
        shape = step.emit("Shape", [step.inputs[1]], "shape")
        step.inputs[2:] = [step.emit("ConstantOfShape", [shape], "zero_point", value=zero)]
    return True


def _widen_constants(step: Step, narrow: str) -> None:
    for index in (0, 2):
        if not step.uses_input(index):
            continue
        found = step.elements(index)
        if found is None:
            raise Inexact(f"{narrow} does not exist below it, and here it is not a constant")
        step.inputs[index] = step.constant(found.astype(_BYTES[narrow]), "bytes", _BYTES[narrow])


def _alignment(step: Step) -> Callable[[str], str]:
    """How a scale or zero point is laid out to broadcast to the input."""
    step.known_rank(1)
    shape, rank = step.shape(1) or (), step.known_rank(0)
    axis, block = step.known_value("axis", 1), step.known_value("block_size", 0)
    if block:
        indices = _block_indices(step, axis % rank, block)
        return lambda name: step.emit("Gather", [name, indices], "repeated", axis=axis % rank)
    if not shape:
        return lambda name: name
    if len(shape) != 1 or (rank > 1 and not -rank <= axis < rank):
        raise Inexact(f"a scale of rank {len(shape)} does not fit axis {axis} of an input of rank {rank}")
    sizes = [-1] + [1] * (rank - 1 - axis % rank) if rank > 1 and shape != (1,) else [-1][: min(rank, 1)]
    layout = step.constant(sizes, "layout")
    return lambda name: step.emit("Reshape", [name, layout], "aligned")


def _block_indices(step: Step, axis: int, block: int) -> str:
    """Which block each index of the axis lies in."""
    size = (step.shape(0) or ())[axis]
    if isinstance(size, int) and size <= MAX_WRITTEN:
        return step.constant(np.arange(size) // block, "blocks")
    zero, one, length = (step.constant(value, "number") for value in (0, 1, block))
    end = step.emit("Gather", [step.emit("Shape", [step.inputs[0]], "shape"), step.constant(axis, "axis")], "size")
    return step.emit("Div", [step.emit("Range", [zero, end, one], "range"), length], "blocks")


def _cast(step: Step, name: str, dtype: str, to: str) -> str:
    return name if dtype == to else step.emit("Cast", [name], to, to=DTYPE_NUMBERS[to])


@downward("QLinearMatMul", 21)
def scales_in_float32(step: Step) -> None:
    """Below 21, scales are float32, which holds every 16-bit float; the result is of integers."""
    for index in (1, 4, 6):
        step.inputs[index] = _cast(step, step.inputs[index], step.known_dtype(index), "float32")
    others = {step.known_dtype(index) for index in (0, 2, 3, 5, 7)}
    if not others <= {"int8", "uint8"}:
        raise Inexact(f"{', '.join(sorted(others))} are not all allowed below it")
