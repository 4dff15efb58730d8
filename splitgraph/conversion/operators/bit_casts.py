"""BitCast: below its first opset, casts between integers, and arithmetic that builds floats from their bits."""

from __future__ import annotations

from math import inf, ldexp, nan

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, as_int64
from splitgraph.value_type import DTYPE_NUMBERS

# The number of exponent bits and of fraction bits.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


@downward("BitCast", 26)
def reinterpret_bits(context: AdapterContext) -> None:
    """Writes BitCast with Cast between integers of one width, which keeps the bits, or computes a float from the
    integer that holds its bits.

    Nothing older computes the bits of a float: NaN has many.
    """
    dtype = context.known_dtype()
    wanted = {number: name for name, number in DTYPE_NUMBERS.items()}.get(context.known_value("to"), "")
    width = INTEGER_BITS.get(dtype)
    if dtype == wanted:
        context.replace("Identity", context.inputs)
    elif (dtype, wanted) in (("bool", "uint8"), ("bool", "int8")) or (width and INTEGER_BITS.get(wanted) == width):
        context.replace("Cast", context.inputs, to=DTYPE_NUMBERS[wanted])
    elif width and 1 + sum(_FLOATS.get(wanted, ())) == width:
        _compute_float(context, dtype, wanted)
    else:
        raise Inexact(f"no older operator gives the bits of {dtype} as {wanted or 'another type'}")


def _compute_float(context: AdapterContext, dtype: str, wanted: str) -> None:
    """Computes (-1)**sign * significand * 2**exponent in float64, which holds significands of 53 bits exactly. All NaN
    become one.
    """
    (exponent_bits, fraction_bits), top = _FLOATS[wanted], 2 ** (INTEGER_BITS[dtype] - 1)
    zero, unit = context.constant(0, "zero"), context.constant(2**fraction_bits, "unit")
    last = context.constant(2**exponent_bits - 1, "last_exponent")
    data = as_int64(context, context.inputs[0], "bits")
    # int64 has the sign as its highest bit; unsigned numbers of fewer bits have it further down.
    if dtype.startswith("u") and dtype != "uint64":
        sign_bit = context.constant(top, "sign_bit")
        is_negative = context.emit("Not", [context.emit("Less", [data, sign_bit], "is_positive")], "is_negative")
    else:
        sign_bit = context.constant(-top, "sign_bit")
        is_negative = context.emit("Less", [data, zero], "is_negative")
    magnitude = context.emit("Where", [is_negative, context.emit("Sub", [data, sign_bit], "rest"), data], "magnitude")
    exponent = context.emit("Div", [magnitude, unit], "exponent")
    fraction = context.emit("Sub", [magnitude, context.emit("Mul", [exponent, unit], "of_exponent")], "fraction")
    # Subnormal numbers have no leading one, and the exponent of the smallest normal numbers.
    is_normal = context.emit("Less", [zero, exponent], "is_normal")
    whole = context.emit(
        "Where", [is_normal, context.emit("Add", [fraction, unit], "with_one"), fraction], "significand"
    )
    lowest = 2 - 2 ** (exponent_bits - 1) - fraction_bits
    scales = [ldexp(1.0, lowest + max(each, 1) - 1) for each in range(2**exponent_bits - 1)]
    # The last exponent stands for infinity and NaN.
    scale = context.emit("Gather", [context.constant([*scales, 1.0], "scales", "float64"), exponent], "scale", axis=0)
    number = context.emit(
        "Mul", [context.emit("Cast", [whole], "number", to=DTYPE_NUMBERS["float64"]), scale], "scaled"
    )
    no_numbers = [context.constant(each, hint, "float64") for each, hint in ((inf, "infinity"), (nan, "not_a_number"))]
    special = context.emit("Where", [context.emit("Equal", [fraction, zero], "is_infinite"), *no_numbers], "special")
    is_finite = context.emit("Less", [exponent, last], "is_finite")
    number = context.emit("Where", [is_finite, number, special], "unsigned")
    # The sign is a factor, because Where of onnxruntime turns -0 into 0.
    signs = [context.constant(each, hint, "float64") for each, hint in ((-1.0, "minus_one"), (1.0, "one"))]
    signed = context.emit("Mul", [number, context.emit("Where", [is_negative, *signs], "sign")], "signed")
    context.replace("Cast", [signed], to=DTYPE_NUMBERS[wanted])
