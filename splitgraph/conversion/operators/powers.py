"""Pow: broadcasting is limited below 7, and below 12 both operands have one type of floats."""

from __future__ import annotations

from splitgraph.conversion.operators.broadcasting import align_at_axis, limit_broadcast
from splitgraph.conversion.operators.predicates import (
    SHAPES_HINT,
    limited_broadcast_is_numpy,
    numpy_broadcast_is_limited,
)
from splitgraph.conversion.operators.registry import changed, downward, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, as_int64
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_NARROW = ("float16", "bfloat16", "float32", "int32")

# An even exponent for which every power of a base of at most 32 bits is 0, 1 or infinite.
_FAR = 2**52

unchanged("Pow", 12, 13, 15)
changed(
    "Pow",
    7,
    "below it, the second input broadcasts only with broadcast=1, along `axis`; from then on as in NumPy",
    up=limited_broadcast_is_numpy,
    down=numpy_broadcast_is_limited,
    hint=SHAPES_HINT,
)
upward("Pow", 7)(align_at_axis)
downward("Pow", 7)(limit_broadcast)


@downward("Pow", 12, 13, 15)
def compute_in_float64(node: NodeAtBoundary) -> None:
    """Computes in float64, because below 12 both operands have one floating-point type; runtimes compute powers of
    integers in float64 too. float64 holds the operands exactly, except for powers of int64 with an integer exponent,
    which are multiplied out.
    """
    base, exponent = node.known_dtype(0), node.known_dtype(1)
    if base == "int64" and exponent in INTEGER_BITS:
        _power_of_long_integers(node, is_signed=exponent.startswith("i"))
        return
    if exponent in ("int64", "uint64") and base not in _NARROW:
        raise Inexact(f"float64 does not hold every exponent of {exponent}")
    one = node.write("Cast", [node.inputs[0]], "base", to=TensorProto.DOUBLE)
    other = node.write("Cast", [node.inputs[1]], "exponent", to=TensorProto.DOUBLE)
    if exponent in ("int64", "uint64"):
        other = _exponent_with_parity(node, other)
    result = node.write("Pow", [one, other], "power")
    if base == "int32" and exponent in INTEGER_BITS:
        # The result is an integer within 2**31, or a fraction that becomes 0: the factor corrects an error of the last
        # bit.
        result = node.write("Mul", [result, node.constant(1 + 2.0**-33, "last_bits", np.float64)], "made_good")
    node.replace("Cast", [result], to=DTYPE_NUMBERS[base])


def _power_of_long_integers(node: NodeAtBoundary, *, is_signed: bool) -> None:
    """Squares the base again and again and multiplies where the exponent has that bit.

    A power beyond int64 is undefined. 1, 0 and -1 have the same power for all even exponents and for all odd ones. A
    power with a negative exponent is 1 over another power, rounded to 0.
    """
    base, exponent = node.inputs[0], as_int64(node, node.inputs[1], "exponent")
    zero, one, two = (node.constant(number, "number") for number in (0, 1, 2))
    odd = _parity(node, exponent)
    below_zero = node.write("Less", [exponent, zero], "is_negative")
    far = node.write("Greater", [exponent, node.constant(63, "most")], "is_far")
    if not is_signed:
        # As int64, the upper half of the unsigned exponents is negative.
        far = node.write("Or", [far, below_zero], "is_far")
    rest = node.write("Where", [far, node.write("Add", [odd, node.constant(62, "even")], "far"), exponent], "bounded")
    if is_signed:
        rest = node.write("Where", [below_zero, odd, rest], "counted")
    power, result = base, one
    for _ in range(6):
        half = node.write("Div", [rest, two], "half")
        bit = node.write("Equal", [node.write("Mul", [half, two], "even"), rest], "is_even")
        result = node.write("Mul", [result, node.write("Where", [bit, one, power], "factor")], "product")
        power, rest = node.write("Mul", [power, power], "square"), half
    if is_signed:
        size = node.write("Abs", [base], "size")
        vanishes = node.write("And", [below_zero, node.write("Greater", [size, one], "is_large")], "vanishes")
        result = node.write("Where", [vanishes, zero, result], "power")
    node.replace("Identity", [result])


def _parity(node: NodeAtBoundary, number: str) -> str:
    """Gives 1 for odd int64 numbers, of either sign, and 0 for even ones."""
    two = node.constant(2, "two")
    even = node.write("Mul", [node.write("Div", [number, two], "half"), two], "even")
    return node.write("Abs", [node.write("Sub", [number, even], "rest")], "parity")


def _exponent_with_parity(node: NodeAtBoundary, rounded: str) -> str:
    """Rounds a 64-bit exponent so that float64 keeps its last bit. For exponents as large only this bit matters: it
    tells the sign for a base of -1.
    """
    given = as_int64(node, node.inputs[1], "signed")
    odd = node.write("Cast", [_parity(node, given)], "odd", to=TensorProto.DOUBLE)
    high = node.constant(float(_FAR), "far", np.float64)
    low = node.constant(-float(_FAR), "far_below", np.float64)
    above = node.write("Where", [node.write("Greater", [rounded, high], "is_far"), high, rounded], "not_above")
    bounded = node.write("Where", [node.write("Less", [rounded, low], "is_far_below"), low, above], "bounded")
    size = node.write("Abs", [rounded], "size")
    return node.write(
        "Where",
        [node.write("Greater", [size, high], "is_beyond"), node.write("Add", [bounded, odd], "as_odd"), rounded],
        "exponent",
    )
