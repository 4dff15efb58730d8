"""Abs, Exp, Sin, Relu, the losses and other functions of numbers, most of which do not change. Celu is written with Elu
below its first opset. Pow: broadcasting is limited below 7, and below 12 both operands have one type of floats.
"""

from __future__ import annotations

from splitgraph.conversion.operators.broadcasting import align_at_axis, limit_broadcast
from splitgraph.conversion.operators.predicates import (
    SHAPES_HINT,
    limited_broadcast_is_numpy,
    numpy_broadcast_is_limited,
)
from splitgraph.conversion.operators.registry import changed, downward, unchanged, upward
from splitgraph.conversion.writing.formula import INTEGER_BITS, Formula, Term
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary

_NARROW = ("float16", "bfloat16", "float32", "int32")

# An even exponent for which every power of a base of at most 32 bits is 0, 1 or infinite.
_FAR = 2**52

unchanged("Abs Ceil Exp Floor Log Neg Reciprocal Sqrt", 6, 13)
unchanged("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Sin Sinh Tan", 22)
unchanged("Elu HardSigmoid Selu", 6, 22)
unchanged("Erf", 13)
unchanged("HardSwish Mish Softplus Softsign ThresholdedRelu", 22)
unchanged("LeakyRelu", 6, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Sigmoid Tanh", 6, 13)
unchanged("NegativeLogLikelihoodLoss", 13, 22)
unchanged("SoftmaxCrossEntropyLoss", 13)

# Celu ---------------------------------------------------------------------------------------------------------------

unchanged("Celu", 28)


@downward("Celu", 12)
def write_celu_with_elu(node: NodeAtBoundary) -> None:
    """Writes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): for a positive alpha this is alpha times the Elu of x /
    alpha.

    The function body of the specification does this with an alpha of one dimension, so that the result of a scalar
    would have one dimension too.
    """
    dtype, f, alpha = node.known_dtype(), Formula(node), node.known_value_or_default("alpha")
    data = f.value(node.inputs[0], dtype)
    if alpha > 0:
        f.give(f.node("Elu", data / alpha) * alpha)
        return
    curve = (f.node("Exp", data / alpha) - 1.0) * alpha
    # min(0, curve) is -max(0, -curve).
    f.give(f.node("Relu", data) - f.node("Relu", -curve))


# Pow ----------------------------------------------------------------------------------------------------------------

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
    base, exponent, f = node.known_dtype(0), node.known_dtype(1), Formula(node)
    if base == "int64" and exponent in INTEGER_BITS:
        f.give(_power_of_long_integers(f, is_signed=exponent.startswith("i")))
        return
    if exponent in ("int64", "uint64") and base not in _NARROW:
        raise Inexact(f"float64 does not hold every exponent of {exponent}")
    power = f.input(1).cast("float64")
    if exponent in ("int64", "uint64"):
        power = _with_parity(power, f.input(1).cast("int64"))
    result = f.node("Pow", f.input(0).cast("float64"), power)
    if base == "int32" and exponent in INTEGER_BITS:
        # The result is an integer within 2**31, or a fraction that becomes 0: the factor corrects an error of the last
        # bit.
        result = result * (1 + 2.0**-33)
    f.give(result.cast(base))


def _power_of_long_integers(f: Formula, *, is_signed: bool) -> Term:
    """Squares the base again and again and multiplies where the exponent has that bit.

    A power beyond int64 is undefined. 1, 0 and -1 have the same power for all even exponents and for all odd ones. A
    power with a negative exponent is 1 over another power, rounded to 0.
    """
    base, exponent = f.input(0), f.input(1).cast("int64")
    odd, is_negative = _parity(exponent), exponent < 0
    # As int64, the upper half of the unsigned exponents is negative.
    is_far = exponent > 63 if is_signed else (exponent > 63) | is_negative
    rest = f.where(is_far, odd + 62, exponent)
    if is_signed:
        rest = f.where(is_negative, odd, rest)
    power, result = base, f.number(1)
    for _ in range(6):
        half = rest / 2
        result = result * f.where((half * 2).equals(rest), 1, power)
        power, rest = power * power, half
    return f.where(is_negative & (abs(base) > 1), 0, result) if is_signed else result


def _parity(number: Term) -> Term:
    """Gives 1 for odd int64 numbers, of either sign, and 0 for even ones."""
    return abs(number - number / 2 * 2)


def _with_parity(rounded: Term, exponent: Term) -> Term:
    """Rounds a 64-bit exponent so that float64 keeps its last bit. For exponents as large only this bit matters: it
    tells the sign for a base of -1.
    """
    f, odd = rounded.formula, _parity(exponent).cast("float64")
    bounded = f.where(rounded < -float(_FAR), -float(_FAR), rounded.at_most(float(_FAR)))
    return f.where(abs(rounded) > float(_FAR), bounded + odd, rounded)
