"""Mod, BitShift, BitwiseNot, MatMulInteger and ConvInteger: integer arithmetic below their first opsets; floor
remainders of floats and long shifts below 28.
"""

from __future__ import annotations

import math

from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.remainders import divide_by_long_division
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, static_shape, wide_float
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# float32 holds integers exactly up to this number.
_FLOAT_LIMIT = 2**24

# A number of 8 bits, less a zero point, is split into two parts: this number times the high part, plus the low part.
_PART = 16
# Mod ----------------------------------------------------------------------------------------------------------------

unchanged("Mod", 13)


@downward("Mod", 10)
def subtract_multiple(context: AdapterContext) -> None:
    """Subtracts the divisor times the quotient, which Div rounds to 0; with fmod=0 the result gets the sign of the
    divisor. Floats take another way: their quotients are rounded.
    """
    dtype = context.known_dtype()
    if dtype not in INTEGER_BITS:
        divide_by_long_division(context)
        return
    computed = dtype if dtype in ("int64", "uint64") else "int64" if dtype == "uint32" else "int32"
    one, other = (_cast(context, name, dtype, computed) for name in context.inputs)
    whole = context.emit("Mul", [context.emit("Div", [one, other], "quotient"), other], "multiple")
    rest = context.emit("Sub", [one, whole], "rest")
    if not context.known_value_or_default("fmod") and not dtype.startswith("u"):
        zero = context.constant(0, "zero", computed)
        differs = context.emit("Xor", [_less(context, rest, zero), _less(context, other, zero)], "signs_differ")
        some = context.emit("Not", [context.emit("Equal", [rest, zero], "is_whole")], "is_rest")
        wrong = context.emit("And", [differs, some], "is_wrong")
        rest = context.emit(
            "Add", [rest, context.emit("Mul", [_number(context, wrong, computed), other], "correction")], "result"
        )
    context.replace("Cast", [rest], to=DTYPE_NUMBERS[dtype])


def _number(context: AdapterContext, truth: str, dtype: str) -> str:
    """Casts a truth value to 0 or 1."""
    return context.emit("Cast", [truth], "number", to=DTYPE_NUMBERS[dtype])


changed("Mod", 28, "fmod=0 on floats was added", up=always)


@exact_downward("Mod", 28)
def is_fmod_or_of_integers(crossing: AdapterContext) -> bool:
    """True when fmod is 1 or the operands are integers. Below 28, the remainder of floats has the sign of the dividend
    and needs fmod=1.
    """
    return crossing.value_or_default("fmod") == 1 or crossing.dtype(0) in INTEGER_BITS


@downward("Mod", 28)
def add_divisor_to_remainder(context: AdapterContext) -> None:
    """Adds the divisor to the remainder of fmod=1 where their signs differ, which gives fmod=0 on floats. float32 holds
    two 16-bit floats exactly, and their sum with more than twice the precision.
    """
    dtype = context.known_dtype()
    if dtype in INTEGER_BITS or context.known_is_set("fmod"):
        raise Inexact(f"the remainder of {dtype} is another one")
    wide = wide_float(dtype)
    one, other = (_cast(context, name, dtype, wide) for name in context.inputs)
    zero, minus_zero = context.constant(0.0, "zero", wide), context.constant(-0.0, "minus_zero", wide)
    rest = context.emit("Mod", [one, other], "rest", fmod=1)
    differs = context.emit("Xor", [_less(context, rest, zero), _less(context, other, zero)], "signs_differ")
    signed = context.emit("Where", [differs, context.emit("Add", [rest, other], "added"), rest], "signed")
    # A remainder of 0 has the sign of the divisor.
    none = context.emit("Where", [_less(context, other, zero), minus_zero, zero], "no_rest")
    result = context.emit("Where", [context.emit("Equal", [rest, zero], "is_none"), none, signed], "result")
    context.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


# BitShift -----------------------------------------------------------------------------------------------------------


@downward("BitShift", 11)
def shift_by_powers(context: AdapterContext) -> None:
    """Shifts to the left by a product with a power of 2, whose low bits stay, and to the right by a quotient. Shifts by
    all bits or more give 0.
    """
    dtype = context.known_dtype()
    bits, right = INTEGER_BITS[dtype], context.known_value("direction") == "RIGHT"
    data, amount = (_cast(context, name, dtype, "int64") for name in context.inputs)
    width = context.constant(bits, "bits")
    amount = context.emit("Where", [_less(context, amount, width), amount, width], "amount")
    # Division by the last two gives 0.
    powers = [2**index for index in range(min(bits, 63))] + [-(2**63)] * (1 + bits // 64)
    table = context.constant([*powers[:bits], powers[-1] if right else 0], "powers")
    if right:
        result = _quotient(context, data, table, amount, is_wide=bits == 64)
    else:
        result = context.emit("Mul", [data, context.emit("Gather", [table, amount], "factor", axis=0)], "shifted")
    context.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _quotient(context: AdapterContext, data: str, powers: str, amount: str, *, is_wide: bool) -> str:
    """Shifts unsigned numbers, held as int64, to the right."""
    quotient = context.emit("Div", [data, context.emit("Gather", [powers, amount], "divisor", axis=0)], "shifted")
    if not is_wide:
        return quotient
    # With the highest bit set, the first shift is separate: half of the number, which is negative as int64, plus 2**63.
    zero, one, two = context.constant(0, "zero"), context.constant(1, "one"), context.constant(2, "two")
    half = context.emit("Div", [data, two], "half")
    odd = context.emit("Sub", [data, context.emit("Mul", [half, two], "even")], "odd")
    top = context.constant(2**62, "top")
    lifted = context.emit("Add", [context.emit("Add", [half, odd], "floor"), top], "lifted")
    shifted = context.emit("Add", [lifted, top], "shifted_once")
    is_none = context.emit("Equal", [amount, zero], "is_none")
    left = context.emit("Where", [is_none, zero, context.emit("Sub", [amount, one], "one_less")], "amount_left")
    rest = context.emit("Div", [shifted, context.emit("Gather", [powers, left], "divisor_left", axis=0)], "shifted_on")
    high = context.emit("Where", [is_none, data, rest], "of_high")
    return context.emit("Where", [_less(context, data, zero), high, quotient], "shifted")


changed("BitShift", 28, "below it, shifts by as many bits as the type has, or more, are undefined", up=always)


@downward("BitShift", 28)
def shift_beyond_width(context: AdapterContext) -> None:
    """Gives 0 for shifts that leave no bit, which are undefined below 28, and shifts the bits of the others as an
    unsigned number.

    A negative number that goes to the right is shifted as its complement, -1 - x, so that the vacated bits are the
    complement of the sign.
    """
    dtype = context.known_dtype()
    amounts = context.elements(1)
    if dtype.startswith("u") and amounts is not None and bool((amounts < INTEGER_BITS[dtype]).all()):
        return
    direction = context.known_value("direction")
    unsigned = "uint64" if INTEGER_BITS[dtype] == 64 else "uint32"
    data, amount = (_cast(context, name, dtype, "int64") for name in context.inputs)
    zero, minus_one = context.constant(0, "zero"), context.constant(-1, "minus_one")
    too_far = context.emit("Not", [_less(context, amount, context.constant(INTEGER_BITS[dtype], "bits"))], "is_too_far")
    beyond = context.emit("Or", [too_far, _less(context, amount, zero)], "is_beyond")
    amount = _cast(context, context.emit("Where", [beyond, zero, amount], "amount"), "int64", unsigned)
    is_negative = _less(context, data, zero) if direction == "RIGHT" and not dtype.startswith("u") else ""
    if is_negative:
        data = context.emit(
            "Where", [is_negative, context.emit("Sub", [minus_one, data], "complement"), data], "positive"
        )
    shifted = context.emit(
        "BitShift", [_cast(context, data, "int64", unsigned), amount], "shifted", direction=direction
    )
    result = context.emit("Where", [beyond, zero, _cast(context, shifted, unsigned, "int64")], "held")
    if is_negative:
        result = context.emit(
            "Where", [is_negative, context.emit("Sub", [minus_one, result], "restored"), result], "result"
        )
    context.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


# BitwiseNot ---------------------------------------------------------------------------------------------------------


@downward("BitwiseNot", 18)
def write_complement(context: AdapterContext) -> None:
    """Subtracts the number from -1, or an unsigned number from the greatest one."""
    dtype = context.known_dtype()
    ones = -1 if dtype.startswith("i") else np.iinfo(dtype).max
    context.replace("Sub", [context.constant(ones, "ones", dtype), context.inputs[0]])


# MatMulInteger ------------------------------------------------------------------------------------------------------


@downward("MatMulInteger", 10)
def multiply_integers(context: AdapterContext) -> None:
    """Subtracts the zero points from both operands and multiplies them as int32."""
    context.replace(
        "MatMul",
        [_without_zero_point(context, 0, "int32", last=False), _without_zero_point(context, 1, "int32", last=True)],
    )


# ConvInteger --------------------------------------------------------------------------------------------------------


@downward("ConvInteger", 10)
def convolve_integers(context: AdapterContext) -> None:
    """Subtracts the zero points from both operands and convolves them as floats that hold every sum: float32 where
    windows are small or, with the data in two parts, of middling size. Engines have no convolution of float64.
    """
    shape = static_shape(context, context.inputs[1])
    terms = math.prod(shape[1:]) if shape else math.inf
    wide = "float32" if terms * _PART * 255 < _FLOAT_LIMIT else "float64"
    data, weights = _without_zero_point(context, 0, wide, last=False), _without_zero_point(context, 1, wide, last=False)
    if wide == "float64" or terms * 255**2 < _FLOAT_LIMIT:
        context.replace("Cast", [_convolve(context, data, weights)], to=TensorProto.INT32)
        return
    part = context.constant(_PART, "part", wide)
    high = context.emit("Floor", [context.emit("Div", [data, part], "quotient")], "high")
    low = context.emit("Sub", [data, context.emit("Mul", [high, part], "of_high")], "low")
    sums = [_cast(context, _convolve(context, each, weights), wide, "int32") for each in (high, low)]
    raised = context.emit("Mul", [sums[0], context.constant(_PART, "part", "int32")], "raised")
    context.replace("Add", [raised, sums[1]])


def _convolve(context: AdapterContext, data: str, weights: str) -> str:
    """Emits a Conv with the attributes of the node."""
    found = context.emit("Conv", [data, weights], "sums")
    context.before[-1].attributes |= context.attributes
    return found


# Helpers of several operators ---------------------------------------------------------------------------------------


def _without_zero_point(context: AdapterContext, index: int, dtype: str, *, last: bool) -> str:
    """Subtracts the zero point from an operand, in a wider type. last: a zero point of one dimension is for each
    column.
    """
    found = _cast(context, context.inputs[index], "", dtype)
    if not context.uses_input(index + 2):
        return found
    shape = static_shape(context, context.inputs[index + 2])
    zero = _cast(context, context.inputs[index + 2], "", dtype)
    if shape is None:
        raise Inexact("the shape of a zero point is unknown", "declare it")
    if math.prod(shape) == 1:
        zero = context.emit("Reshape", [zero, context.constant(np.zeros(0), "scalar_shape")], "zero_point")
    elif len(shape) == 1 and not last:
        # There is one zero point for each row, or for each filter.
        rank = context.known_rank(index)
        sizes = [-1] + [1] * (rank - 1 if context.form.op_type == "ConvInteger" else 1)
        zero = context.emit("Reshape", [zero, context.constant(sizes, "column")], "zero_point")
    return context.emit("Sub", [found, zero], "centred")


def _cast(context: AdapterContext, name: str, dtype: str, wanted: str) -> str:
    """Casts a value unless it has the wanted type."""
    return name if dtype == wanted else context.emit("Cast", [name], f"as_{wanted}", to=DTYPE_NUMBERS[wanted])


def _less(context: AdapterContext, one: str, other: str) -> str:
    """Emits Less."""
    return context.emit("Less", [one, other], "less")
