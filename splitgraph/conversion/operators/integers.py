"""Mod, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitCast, MatMulInteger and ConvInteger: integer
arithmetic and bits below their first opsets; floor remainders of floats and long shifts below 28.
"""

from __future__ import annotations

import math
from math import inf, ldexp, nan

from splitgraph.conversion.notation.formula import INTEGER_BITS, Formula, Term, static_shape, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.model.deferred import np
from splitgraph.model.value_type import DTYPE_NAMES

# float32 holds integers exactly up to this number.
_FLOAT_LIMIT = 2**24

# A number of 8 bits, less a zero point, is split into two parts: this number times the high part, plus the low part.
_PART = 16

# The number of times that the smallest number of each type is doubled to exceed the greatest one.
_DOUBLINGS = {"float16": 40, "float32": 277, "float64": 2098}
# The largest power of 2 to multiply by at once.
_MOST = 700

# For each two numbers of four bits: the bits that are set in both.
_IN_BOTH = [left & right for left in range(16) for right in range(16)]

# The number of exponent bits and of fraction bits.
_FLOATS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}

# Mod ----------------------------------------------------------------------------------------------------------------

unchanged("Mod", 13)


@downward("Mod", 10)
def subtract_multiple(node: NodeAtBoundary) -> None:
    """Subtract the divisor times the quotient, which Div rounds to 0; with fmod=0 the result gets the sign of the
    divisor. Floats take another way: their quotients are rounded.
    """
    dtype = node.known_dtype()
    if dtype not in INTEGER_BITS:
        _divide_by_long_division(node)
        return
    f, computed = Formula(node), dtype if dtype in ("int64", "uint64") else "int64" if dtype == "uint32" else "int32"
    dividend, divisor = (f.input(index, dtype).cast(computed) for index in range(2))
    rest = dividend - dividend / divisor * divisor
    if not node.known_value_or_default("fmod") and not dtype.startswith("u"):
        is_wrong = ((rest < 0) ^ (divisor < 0)) & ~rest.equals(0)
        rest = rest + is_wrong.cast(computed) * divisor
    f.give(rest.cast(dtype))


def _divide_by_long_division(node: NodeAtBoundary) -> None:
    """Compute the remainder in a Loop. Each step subtracts the divisor, doubled ever fewer times, from what is left of
    the dividend, where that is not less. The doubled divisor is then at least half of it, so that the difference is
    exact.

    float64 holds the doubled divisors of narrower types; those of float64 become infinite, and are never subtracted.
    """
    dtype = node.known_dtype()
    ranks = [node.known_rank(index) for index in range(2)]
    if dtype not in _DOUBLINGS or not node.known_value_or_default("fmod"):
        raise Inexact(f"there is no remainder of {dtype}")
    f = Formula(node)
    number, signed = (f.input(index, dtype).cast("float64") for index in range(2))
    size, divisor = abs(number), abs(signed)
    doublings = range(_DOUBLINGS[dtype], -1, -1)
    powers = [
        f.number([2.0 ** min(max(count - below, 0), _MOST) for count in doublings], "float64")
        for below in range(0, _DOUBLINGS[dtype], _MOST)
    ]

    def step(count: Term, left: Term) -> list[Term]:
        doubled = divisor
        for table in powers:
            doubled = doubled * table.take(count)
        return [f.where(left < doubled, left, left - doubled)]

    # This Where gives the dividend the shape of the result.
    dividend = f.where(number < signed, size, size)
    (rest,) = f.loop(f.number(len(doublings)), [dividend], step, [[None] * max(ranks)])
    # The sign is a factor: onnxruntime's Where gives 0 for -0.
    sign = f.where(1.0 / number < 0, f.number(-1.0, "float64"), 1.0)
    sign = f.where(divisor > 0, f.where(size < inf, sign, nan), nan)
    f.give((rest * sign).cast(dtype))


changed("Mod", 28, "fmod=0 on floats was added", up=always)


@exact_downward("Mod", 28)
def is_fmod_or_of_integers(node: NodeAtBoundary) -> bool:
    """Return True when fmod is 1 or the operands are integers. Below 28, the remainder of floats has the sign of the
    dividend and needs fmod=1.
    """
    return node.value_or_default("fmod") == 1 or node.dtype(0) in INTEGER_BITS


@downward("Mod", 28)
def add_divisor_to_remainder(node: NodeAtBoundary) -> None:
    """Add the divisor to the remainder of fmod=1 where their signs differ, which gives fmod=0 on floats. float32 holds
    two 16-bit floats exactly, and their sum with more than twice the precision.
    """
    dtype = node.known_dtype()
    if dtype in INTEGER_BITS or node.known_is_set("fmod"):
        raise Inexact(f"the remainder of {dtype} is another one")
    f, wide = Formula(node), wide_float(dtype)
    dividend, divisor = (f.input(index, dtype).cast(wide) for index in range(2))
    rest = f.apply("Mod", dividend, divisor, fmod=1)
    signed = f.where((rest < 0) ^ (divisor < 0), rest + divisor, rest)
    # A remainder of 0 has the sign of the divisor.
    none = f.where(divisor < 0, f.number(-0.0, wide), 0.0)
    f.give(f.where(rest.equals(0), none, signed).cast(dtype))


# BitShift -----------------------------------------------------------------------------------------------------------


@downward("BitShift", 11)
def shift_by_powers(node: NodeAtBoundary) -> None:
    """Shift to the left by a product with a power of 2, whose low bits stay, and to the right by a quotient. Shifts by
    all bits or more give 0.
    """
    dtype, f = node.known_dtype(), Formula(node)
    bits, right = INTEGER_BITS[dtype], node.known_value("direction") == "RIGHT"
    data, amount = (f.input(index, dtype).cast("int64") for index in range(2))
    amount = amount.at_most(bits)
    # Division by the last two gives 0.
    powers = [2**index for index in range(min(bits, 63))] + [-(2**63)] * (1 + bits // 64)
    table = f.number([*powers[:bits], powers[-1] if right else 0])
    if not right:
        result = data * table.take(amount)
    else:
        result = data / table.take(amount)
        if bits == 64:
            # With the highest bit set, the first shift is separate: half of the number, which is negative as int64,
            # plus 2**63.
            half, is_none = data / 2, amount.equals(0)
            shifted = half + (data - half * 2) + 2**62 + 2**62
            rest = shifted / table.take(f.where(is_none, 0, amount - 1))
            result = f.where(data < 0, f.where(is_none, data, rest), result)
    f.give(result.cast(dtype))


changed("BitShift", 28, "below it, shifts by as many bits as the type has, or more, are undefined", up=always)


@downward("BitShift", 28)
def shift_beyond_width(node: NodeAtBoundary) -> None:
    """Give 0 for shifts that leave no bit, which are undefined below 28, and shift the bits of the others as an
    unsigned number.

    A negative number that goes to the right is shifted as its complement, -1 - x, so that the vacated bits are the
    complement of the sign.
    """
    dtype, f = node.known_dtype(), Formula(node)
    amounts = node.elements(1)
    if dtype.startswith("u") and amounts is not None and bool((amounts < INTEGER_BITS[dtype]).all()):
        return
    direction = node.known_value("direction")
    unsigned = "uint64" if INTEGER_BITS[dtype] == 64 else "uint32"
    data, amount = (f.input(index, dtype).cast("int64") for index in range(2))
    is_beyond = ~(amount < INTEGER_BITS[dtype]) | (amount < 0)
    amount = f.where(is_beyond, 0, amount).cast(unsigned)
    is_negative = data < 0 if direction == "RIGHT" and not dtype.startswith("u") else None
    if is_negative is not None:
        data = f.where(is_negative, -1 - data, data)
    shifted = f.apply("BitShift", data.cast(unsigned), amount, direction=direction)
    result = f.where(is_beyond, 0, shifted.cast("int64"))
    if is_negative is not None:
        result = f.where(is_negative, -1 - result, result)
    f.give(result.cast(dtype))


# BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot ----------------------------------------------------------------------


@downward("BitwiseAnd BitwiseOr BitwiseXor", 18)
def combine_bits_by_fours(node: NodeAtBoundary) -> None:
    """Look up four bits of both numbers at a time in a table of the bits that are set in both.

    The sum of two numbers counts these bits twice: the sum less these bits is Or, the sum less twice these bits is Xor.
    Everything is computed in int64, whose sums and products keep the low 64 bits.
    """
    dtype, f, op_type = node.known_dtype(), Formula(node), node.op_type
    if dtype not in INTEGER_BITS:
        raise Inexact(f"{dtype} has no bits to combine")
    if op_type == "BitwiseAnd" and _mask_low_bits(node, f, dtype):
        return
    weights = [16**place for place in range(INTEGER_BITS[dtype] // 4)]
    left, right = (f.input(index, dtype).cast("int64") for index in range(2))
    first, second = (_fours(number.unsqueezed(-1), f.number(weights)) for number in (left, right))
    fours = f.number(_IN_BOTH).take(first * 16 + second)
    # ReduceSum of onnxruntime loses the low bits of large int64, and its MatMul with a vector takes no empty tensor.
    both = (fours @ f.number([[weight] for weight in weights])).squeezed(-1)
    result = both if op_type == "BitwiseAnd" else left + right - both
    f.give((result - both if op_type == "BitwiseXor" else result).cast(dtype))


def _mask_low_bits(node: NodeAtBoundary, f: Formula, dtype: str) -> bool:
    """Write the node as a remainder where one operand is a known mask of low bits; True where this was possible."""
    for index in range(2):
        mask = node.elements(index)
        if mask is None:
            continue
        divisors = [int(number) + 1 for number in mask.reshape(-1)]
        if all(0 < number <= np.iinfo(dtype).max and number & (number - 1) == 0 for number in divisors):
            f.give(f.input(1 - index, dtype) % f.number(np.reshape(divisors, mask.shape), dtype))
            return True
    return False


def _fours(numbers: Term, powers: Term) -> Term:
    """Split a column of int64 numbers into groups of four bits, the lowest first. Mod counts up from the next lower
    multiple, so that negative numbers give the bits of their two's complement.
    """
    return (numbers - numbers % powers) / powers % 16


@downward("BitwiseNot", 18)
def write_complement(node: NodeAtBoundary) -> None:
    """Subtract the number from -1, or an unsigned number from the greatest one."""
    dtype, f = node.known_dtype(), Formula(node)
    f.give((-1 if dtype.startswith("i") else int(np.iinfo(dtype).max)) - f.input(0))


# BitCast ------------------------------------------------------------------------------------------------------------


@downward("BitCast", 26)
def reinterpret_bits(node: NodeAtBoundary) -> None:
    """Write BitCast with Cast between integers of one width, which keeps the bits, or compute a float from the integer
    that holds its bits.

    Nothing older computes the bits of a float: NaN has many.
    """
    dtype, f = node.known_dtype(), Formula(node)
    wanted = DTYPE_NAMES.get(node.known_value("to"), "")
    width = INTEGER_BITS.get(dtype)
    is_same_width = (dtype, wanted) in (("bool", "uint8"), ("bool", "int8")) or INTEGER_BITS.get(wanted, 0) == width
    if dtype == wanted or is_same_width:
        f.give(f.input(0).cast(wanted))
    elif width and 1 + sum(_FLOATS.get(wanted, ())) == width:
        f.give(_float_of_bits(f, dtype, wanted).cast(wanted))
    else:
        raise Inexact(f"no older operator gives the bits of {dtype} as {wanted or 'another type'}")


def _float_of_bits(f: Formula, dtype: str, wanted: str) -> Term:
    """Compute (-1)**sign * significand * 2**exponent in float64, which holds significands of 53 bits exactly. All NaN
    become one.
    """
    (exponent_bits, fraction_bits), top = _FLOATS[wanted], 2 ** (INTEGER_BITS[dtype] - 1)
    data, unit = f.input(0).cast("int64"), 2**fraction_bits
    # int64 has the sign as its highest bit; unsigned numbers of fewer bits have it further down.
    is_below = dtype.startswith("u") and dtype != "uint64"
    is_negative = ~(data < top) if is_below else data < 0
    magnitude = f.where(is_negative, data - (top if is_below else -top), data)
    exponent = magnitude / unit
    fraction = magnitude - exponent * unit
    # Subnormal numbers have no leading one, and the exponent of the smallest normal numbers.
    significand = f.where(exponent > 0, fraction + unit, fraction).cast("float64")
    lowest = 2 - 2 ** (exponent_bits - 1) - fraction_bits
    scales = [ldexp(1.0, lowest + max(power, 1) - 1) for power in range(2**exponent_bits - 1)]
    # The last exponent stands for infinity and NaN.
    number = significand * f.number([*scales, 1.0], "float64").take(exponent)
    special = f.where(fraction.equals(0), f.number(inf, "float64"), nan)
    number = f.where(exponent < 2**exponent_bits - 1, number, special)
    # The sign is a factor, because Where of onnxruntime turns -0 into 0.
    return number * f.where(is_negative, f.number(-1.0, "float64"), 1.0)


# MatMulInteger, ConvInteger -----------------------------------------------------------------------------------------


@downward("MatMulInteger", 10)
def multiply_integers(node: NodeAtBoundary) -> None:
    """Subtract the zero points from both operands and multiply them as int32."""
    f = Formula(node)
    operands = [_without_zero_point(node, f, index, "int32", last=index == 1) for index in range(2)]
    f.give(f.apply("MatMul", *operands))


@downward("ConvInteger", 10)
def convolve_integers(node: NodeAtBoundary) -> None:
    """Subtract the zero points from both operands and convolve them as floats that hold every sum: float32 where
    windows are small or, with the data in two parts, of middling size. Engines have no convolution of float64.
    """
    f, shape = Formula(node), static_shape(node, node.inputs[1])
    terms = math.prod(shape[1:]) if shape else math.inf
    wide = "float32" if terms * _PART * 255 < _FLOAT_LIMIT else "float64"
    data, weights = (_without_zero_point(node, f, index, wide, last=False) for index in range(2))

    def convolve(part: Term) -> Term:
        sums = f.apply("Conv", part, weights)
        node.before[-1].attributes |= node.attributes
        return sums.cast("int32")

    if wide == "float64" or terms * 255**2 < _FLOAT_LIMIT:
        f.give(convolve(data))
        return
    high = (data / _PART).floor()
    f.give(convolve(high) * _PART + convolve(data - high * _PART))


def _without_zero_point(node: NodeAtBoundary, f: Formula, index: int, dtype: str, *, last: bool) -> Term:
    """Subtract the zero point from an operand, in a wider type. last: a zero point of one dimension is for each
    column.
    """
    number = f.input(index).cast(dtype)
    if not node.uses_input(index + 2):
        return number
    shape = static_shape(node, node.inputs[index + 2])
    if shape is None:
        raise Inexact("the shape of a zero point is unknown", "declare it")
    zero = f.input(index + 2).cast(dtype)
    if math.prod(shape) == 1:
        zero = zero.reshape()
    elif len(shape) == 1 and not last:
        # There is one zero point for each row, or for each filter.
        rank = node.known_rank(index)
        zero = zero.reshape(-1, *[1] * (rank - 1 if node.op_type == "ConvInteger" else 1))
    return number - zero
