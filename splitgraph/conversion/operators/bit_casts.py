"""BitCast: below its first opset, casts between integers, and arithmetic that builds floats from their bits."""

from __future__ import annotations

from math import inf, ldexp, nan

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, as_int64
from splitgraph.value_type import DTYPE_NUMBERS

# The number of exponent bits and of fraction bits.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


@downward("BitCast", 26)
def reinterpret_bits(node: NodeAtBoundary) -> None:
    """Writes BitCast with Cast between integers of one width, which keeps the bits, or computes a float from the
    integer that holds its bits.

    Nothing older computes the bits of a float: NaN has many.
    """
    dtype = node.known_dtype()
    wanted = {number: name for name, number in DTYPE_NUMBERS.items()}.get(node.known_value("to"), "")
    width = INTEGER_BITS.get(dtype)
    if dtype == wanted:
        node.replace("Identity", node.inputs)
    elif (dtype, wanted) in (("bool", "uint8"), ("bool", "int8")) or (width and INTEGER_BITS.get(wanted) == width):
        node.replace("Cast", node.inputs, to=DTYPE_NUMBERS[wanted])
    elif width and 1 + sum(_FLOATS.get(wanted, ())) == width:
        _compute_float(node, dtype, wanted)
    else:
        raise Inexact(f"no older operator gives the bits of {dtype} as {wanted or 'another type'}")


def _compute_float(node: NodeAtBoundary, dtype: str, wanted: str) -> None:
    """Computes (-1)**sign * significand * 2**exponent in float64, which holds significands of 53 bits exactly. All NaN
    become one.
    """
    (exponent_bits, fraction_bits), top = _FLOATS[wanted], 2 ** (INTEGER_BITS[dtype] - 1)
    zero, unit = node.constant(0, "zero"), node.constant(2**fraction_bits, "unit")
    last = node.constant(2**exponent_bits - 1, "last_exponent")
    data = as_int64(node, node.inputs[0], "bits")
    # int64 has the sign as its highest bit; unsigned numbers of fewer bits have it further down.
    if dtype.startswith("u") and dtype != "uint64":
        sign_bit = node.constant(top, "sign_bit")
        is_negative = node.write("Not", [node.write("Less", [data, sign_bit], "is_positive")], "is_negative")
    else:
        sign_bit = node.constant(-top, "sign_bit")
        is_negative = node.write("Less", [data, zero], "is_negative")
    magnitude = node.write("Where", [is_negative, node.write("Sub", [data, sign_bit], "rest"), data], "magnitude")
    exponent = node.write("Div", [magnitude, unit], "exponent")
    fraction = node.write("Sub", [magnitude, node.write("Mul", [exponent, unit], "of_exponent")], "fraction")
    # Subnormal numbers have no leading one, and the exponent of the smallest normal numbers.
    is_normal = node.write("Less", [zero, exponent], "is_normal")
    whole = node.write("Where", [is_normal, node.write("Add", [fraction, unit], "with_one"), fraction], "significand")
    lowest = 2 - 2 ** (exponent_bits - 1) - fraction_bits
    scales = [ldexp(1.0, lowest + max(each, 1) - 1) for each in range(2**exponent_bits - 1)]
    # The last exponent stands for infinity and NaN.
    scale = node.write("Gather", [node.constant([*scales, 1.0], "scales", "float64"), exponent], "scale", axis=0)
    number = node.write("Mul", [node.write("Cast", [whole], "number", to=DTYPE_NUMBERS["float64"]), scale], "scaled")
    no_numbers = [node.constant(each, hint, "float64") for each, hint in ((inf, "infinity"), (nan, "not_a_number"))]
    special = node.write("Where", [node.write("Equal", [fraction, zero], "is_infinite"), *no_numbers], "special")
    is_finite = node.write("Less", [exponent, last], "is_finite")
    number = node.write("Where", [is_finite, number, special], "unsigned")
    # The sign is a factor, because Where of onnxruntime turns -0 into 0.
    signs = [node.constant(each, hint, "float64") for each, hint in ((-1.0, "minus_one"), (1.0, "one"))]
    signed = node.write("Mul", [number, node.write("Where", [is_negative, *signs], "sign")], "signed")
    node.replace("Cast", [signed], to=DTYPE_NUMBERS[wanted])
