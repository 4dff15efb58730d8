"""Pow: broadcasting is limited below 7, and below 12 both operands have one type of floats."""

from __future__ import annotations

from splitgraph.conversion.operators.broadcasting import align_at_axis, limit_broadcast
from splitgraph.conversion.operators.predicates import (
    SHAPES_HINT,
    limited_broadcast_is_numpy,
    numpy_broadcast_is_limited,
)
from splitgraph.conversion.operators.registry import changed, downward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
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
def compute_in_float64(context: AdapterContext) -> None:
    """Computes in float64, because below 12 both operands have one floating-point type; runtimes compute powers of
    integers in float64 too. float64 holds the operands exactly, except for powers of int64 with an integer exponent,
    which are multiplied out.
    """
    base, exponent = context.known_dtype(0), context.known_dtype(1)
    if base == "int64" and exponent in INTEGER_BITS:
        _power_of_long_integers(context, is_signed=exponent.startswith("i"))
        return
    if exponent in ("int64", "uint64") and base not in _NARROW:
        raise Inexact(f"float64 does not hold every exponent of {exponent}")
    one = context.emit("Cast", [context.inputs[0]], "base", to=TensorProto.DOUBLE)
    other = context.emit("Cast", [context.inputs[1]], "exponent", to=TensorProto.DOUBLE)
    if exponent in ("int64", "uint64"):
        other = _exponent_with_parity(context, other)
    result = context.emit("Pow", [one, other], "power")
    if base == "int32" and exponent in INTEGER_BITS:
        # The result is an integer within 2**31, or a fraction that becomes 0: the factor corrects an error of the last
        # bit.
        result = context.emit("Mul", [result, context.constant(1 + 2.0**-33, "last_bits", np.float64)], "made_good")
    context.replace("Cast", [result], to=DTYPE_NUMBERS[base])


def _power_of_long_integers(context: AdapterContext, *, is_signed: bool) -> None:
    """Squares the base again and again and multiplies where the exponent has that bit.

    A power beyond int64 is undefined. 1, 0 and -1 have the same power for all even exponents and for all odd ones. A
    power with a negative exponent is 1 over another power, rounded to 0.
    """
    base, exponent = context.inputs[0], as_int64(context, context.inputs[1], "exponent")
    zero, one, two = (context.constant(number, "number") for number in (0, 1, 2))
    odd = _parity(context, exponent)
    below_zero = context.emit("Less", [exponent, zero], "is_negative")
    far = context.emit("Greater", [exponent, context.constant(63, "most")], "is_far")
    if not is_signed:
        # As int64, the upper half of the unsigned exponents is negative.
        far = context.emit("Or", [far, below_zero], "is_far")
    rest = context.emit(
        "Where", [far, context.emit("Add", [odd, context.constant(62, "even")], "far"), exponent], "bounded"
    )
    if is_signed:
        rest = context.emit("Where", [below_zero, odd, rest], "counted")
    power, result = base, one
    for _ in range(6):
        half = context.emit("Div", [rest, two], "half")
        bit = context.emit("Equal", [context.emit("Mul", [half, two], "even"), rest], "is_even")
        result = context.emit("Mul", [result, context.emit("Where", [bit, one, power], "factor")], "product")
        power, rest = context.emit("Mul", [power, power], "square"), half
    if is_signed:
        size = context.emit("Abs", [base], "size")
        vanishes = context.emit("And", [below_zero, context.emit("Greater", [size, one], "is_large")], "vanishes")
        result = context.emit("Where", [vanishes, zero, result], "power")
    context.replace("Identity", [result])


def _parity(context: AdapterContext, number: str) -> str:
    """Gives 1 for odd int64 numbers, of either sign, and 0 for even ones."""
    two = context.constant(2, "two")
    even = context.emit("Mul", [context.emit("Div", [number, two], "half"), two], "even")
    return context.emit("Abs", [context.emit("Sub", [number, even], "rest")], "parity")


def _exponent_with_parity(context: AdapterContext, rounded: str) -> str:
    """Rounds a 64-bit exponent so that float64 keeps its last bit. For exponents as large only this bit matters: it
    tells the sign for a base of -1.
    """
    given = as_int64(context, context.inputs[1], "signed")
    odd = context.emit("Cast", [_parity(context, given)], "odd", to=TensorProto.DOUBLE)
    high = context.constant(float(_FAR), "far", np.float64)
    low = context.constant(-float(_FAR), "far_below", np.float64)
    above = context.emit("Where", [context.emit("Greater", [rounded, high], "is_far"), high, rounded], "not_above")
    bounded = context.emit("Where", [context.emit("Less", [rounded, low], "is_far_below"), low, above], "bounded")
    size = context.emit("Abs", [rounded], "size")
    return context.emit(
        "Where",
        [context.emit("Greater", [size, high], "is_beyond"), context.emit("Add", [bounded, odd], "as_odd"), rounded],
        "exponent",
    )
