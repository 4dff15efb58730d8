"""Mod, BitShift, BitwiseNot, MatMulInteger and ConvInteger: integer arithmetic below their first opsets; floor
remainders of floats and long shifts below 28.
"""

from __future__ import annotations

import math

from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
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
def subtract_multiple(node: NodeAtBoundary) -> None:
    """Subtracts the divisor times the quotient, which Div rounds to 0; with fmod=0 the result gets the sign of the
    divisor. Floats take another way: their quotients are rounded.
    """
    dtype = node.known_dtype()
    if dtype not in INTEGER_BITS:
        divide_by_long_division(node)
        return
    computed = dtype if dtype in ("int64", "uint64") else "int64" if dtype == "uint32" else "int32"
    one, other = (_cast(node, name, dtype, computed) for name in node.inputs)
    whole = node.write("Mul", [node.write("Div", [one, other], "quotient"), other], "multiple")
    rest = node.write("Sub", [one, whole], "rest")
    if not node.known_value_or_default("fmod") and not dtype.startswith("u"):
        zero = node.constant(0, "zero", computed)
        differs = node.write("Xor", [_less(node, rest, zero), _less(node, other, zero)], "signs_differ")
        some = node.write("Not", [node.write("Equal", [rest, zero], "is_whole")], "is_rest")
        wrong = node.write("And", [differs, some], "is_wrong")
        rest = node.write(
            "Add", [rest, node.write("Mul", [_number(node, wrong, computed), other], "correction")], "result"
        )
    node.replace("Cast", [rest], to=DTYPE_NUMBERS[dtype])


def _number(node: NodeAtBoundary, truth: str, dtype: str) -> str:
    """Casts a truth value to 0 or 1."""
    return node.write("Cast", [truth], "number", to=DTYPE_NUMBERS[dtype])


changed("Mod", 28, "fmod=0 on floats was added", up=always)


@exact_downward("Mod", 28)
def is_fmod_or_of_integers(node: NodeAtBoundary) -> bool:
    """True when fmod is 1 or the operands are integers. Below 28, the remainder of floats has the sign of the dividend
    and needs fmod=1.
    """
    return node.value_or_default("fmod") == 1 or node.dtype(0) in INTEGER_BITS


@downward("Mod", 28)
def add_divisor_to_remainder(node: NodeAtBoundary) -> None:
    """Adds the divisor to the remainder of fmod=1 where their signs differ, which gives fmod=0 on floats. float32 holds
    two 16-bit floats exactly, and their sum with more than twice the precision.
    """
    dtype = node.known_dtype()
    if dtype in INTEGER_BITS or node.known_is_set("fmod"):
        raise Inexact(f"the remainder of {dtype} is another one")
    wide = wide_float(dtype)
    one, other = (_cast(node, name, dtype, wide) for name in node.inputs)
    zero, minus_zero = node.constant(0.0, "zero", wide), node.constant(-0.0, "minus_zero", wide)
    rest = node.write("Mod", [one, other], "rest", fmod=1)
    differs = node.write("Xor", [_less(node, rest, zero), _less(node, other, zero)], "signs_differ")
    signed = node.write("Where", [differs, node.write("Add", [rest, other], "added"), rest], "signed")
    # A remainder of 0 has the sign of the divisor.
    none = node.write("Where", [_less(node, other, zero), minus_zero, zero], "no_rest")
    result = node.write("Where", [node.write("Equal", [rest, zero], "is_none"), none, signed], "result")
    node.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


# BitShift -----------------------------------------------------------------------------------------------------------


@downward("BitShift", 11)
def shift_by_powers(node: NodeAtBoundary) -> None:
    """Shifts to the left by a product with a power of 2, whose low bits stay, and to the right by a quotient. Shifts by
    all bits or more give 0.
    """
    dtype = node.known_dtype()
    bits, right = INTEGER_BITS[dtype], node.known_value("direction") == "RIGHT"
    data, amount = (_cast(node, name, dtype, "int64") for name in node.inputs)
    width = node.constant(bits, "bits")
    amount = node.write("Where", [_less(node, amount, width), amount, width], "amount")
    # Division by the last two gives 0.
    powers = [2**index for index in range(min(bits, 63))] + [-(2**63)] * (1 + bits // 64)
    table = node.constant([*powers[:bits], powers[-1] if right else 0], "powers")
    if right:
        result = _quotient(node, data, table, amount, is_wide=bits == 64)
    else:
        result = node.write("Mul", [data, node.write("Gather", [table, amount], "factor", axis=0)], "shifted")
    node.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _quotient(node: NodeAtBoundary, data: str, powers: str, amount: str, *, is_wide: bool) -> str:
    """Shifts unsigned numbers, held as int64, to the right."""
    quotient = node.write("Div", [data, node.write("Gather", [powers, amount], "divisor", axis=0)], "shifted")
    if not is_wide:
        return quotient
    # With the highest bit set, the first shift is separate: half of the number, which is negative as int64, plus 2**63.
    zero, one, two = node.constant(0, "zero"), node.constant(1, "one"), node.constant(2, "two")
    half = node.write("Div", [data, two], "half")
    odd = node.write("Sub", [data, node.write("Mul", [half, two], "even")], "odd")
    top = node.constant(2**62, "top")
    lifted = node.write("Add", [node.write("Add", [half, odd], "floor"), top], "lifted")
    shifted = node.write("Add", [lifted, top], "shifted_once")
    is_none = node.write("Equal", [amount, zero], "is_none")
    left = node.write("Where", [is_none, zero, node.write("Sub", [amount, one], "one_less")], "amount_left")
    rest = node.write("Div", [shifted, node.write("Gather", [powers, left], "divisor_left", axis=0)], "shifted_on")
    high = node.write("Where", [is_none, data, rest], "of_high")
    return node.write("Where", [_less(node, data, zero), high, quotient], "shifted")


changed("BitShift", 28, "below it, shifts by as many bits as the type has, or more, are undefined", up=always)


@downward("BitShift", 28)
def shift_beyond_width(node: NodeAtBoundary) -> None:
    """Gives 0 for shifts that leave no bit, which are undefined below 28, and shifts the bits of the others as an
    unsigned number.

    A negative number that goes to the right is shifted as its complement, -1 - x, so that the vacated bits are the
    complement of the sign.
    """
    dtype = node.known_dtype()
    amounts = node.elements(1)
    if dtype.startswith("u") and amounts is not None and bool((amounts < INTEGER_BITS[dtype]).all()):
        return
    direction = node.known_value("direction")
    unsigned = "uint64" if INTEGER_BITS[dtype] == 64 else "uint32"
    data, amount = (_cast(node, name, dtype, "int64") for name in node.inputs)
    zero, minus_one = node.constant(0, "zero"), node.constant(-1, "minus_one")
    too_far = node.write("Not", [_less(node, amount, node.constant(INTEGER_BITS[dtype], "bits"))], "is_too_far")
    beyond = node.write("Or", [too_far, _less(node, amount, zero)], "is_beyond")
    amount = _cast(node, node.write("Where", [beyond, zero, amount], "amount"), "int64", unsigned)
    is_negative = _less(node, data, zero) if direction == "RIGHT" and not dtype.startswith("u") else ""
    if is_negative:
        data = node.write("Where", [is_negative, node.write("Sub", [minus_one, data], "complement"), data], "positive")
    shifted = node.write("BitShift", [_cast(node, data, "int64", unsigned), amount], "shifted", direction=direction)
    result = node.write("Where", [beyond, zero, _cast(node, shifted, unsigned, "int64")], "held")
    if is_negative:
        result = node.write(
            "Where", [is_negative, node.write("Sub", [minus_one, result], "restored"), result], "result"
        )
    node.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


# BitwiseNot ---------------------------------------------------------------------------------------------------------


@downward("BitwiseNot", 18)
def write_complement(node: NodeAtBoundary) -> None:
    """Subtracts the number from -1, or an unsigned number from the greatest one."""
    dtype = node.known_dtype()
    ones = -1 if dtype.startswith("i") else np.iinfo(dtype).max
    node.replace("Sub", [node.constant(ones, "ones", dtype), node.inputs[0]])


# MatMulInteger ------------------------------------------------------------------------------------------------------


@downward("MatMulInteger", 10)
def multiply_integers(node: NodeAtBoundary) -> None:
    """Subtracts the zero points from both operands and multiplies them as int32."""
    node.replace(
        "MatMul",
        [_without_zero_point(node, 0, "int32", last=False), _without_zero_point(node, 1, "int32", last=True)],
    )


# ConvInteger --------------------------------------------------------------------------------------------------------


@downward("ConvInteger", 10)
def convolve_integers(node: NodeAtBoundary) -> None:
    """Subtracts the zero points from both operands and convolves them as floats that hold every sum: float32 where
    windows are small or, with the data in two parts, of middling size. Engines have no convolution of float64.
    """
    shape = static_shape(node, node.inputs[1])
    terms = math.prod(shape[1:]) if shape else math.inf
    wide = "float32" if terms * _PART * 255 < _FLOAT_LIMIT else "float64"
    data, weights = _without_zero_point(node, 0, wide, last=False), _without_zero_point(node, 1, wide, last=False)
    if wide == "float64" or terms * 255**2 < _FLOAT_LIMIT:
        node.replace("Cast", [_convolve(node, data, weights)], to=TensorProto.INT32)
        return
    part = node.constant(_PART, "part", wide)
    high = node.write("Floor", [node.write("Div", [data, part], "quotient")], "high")
    low = node.write("Sub", [data, node.write("Mul", [high, part], "of_high")], "low")
    sums = [_cast(node, _convolve(node, each, weights), wide, "int32") for each in (high, low)]
    raised = node.write("Mul", [sums[0], node.constant(_PART, "part", "int32")], "raised")
    node.replace("Add", [raised, sums[1]])


def _convolve(node: NodeAtBoundary, data: str, weights: str) -> str:
    """Emits a Conv with the attributes of the node."""
    found = node.write("Conv", [data, weights], "sums")
    node.before[-1].attributes |= node.attributes
    return found


# Helpers of several operators ---------------------------------------------------------------------------------------


def _without_zero_point(node: NodeAtBoundary, index: int, dtype: str, *, last: bool) -> str:
    """Subtracts the zero point from an operand, in a wider type. last: a zero point of one dimension is for each
    column.
    """
    found = _cast(node, node.inputs[index], "", dtype)
    if not node.uses_input(index + 2):
        return found
    shape = static_shape(node, node.inputs[index + 2])
    zero = _cast(node, node.inputs[index + 2], "", dtype)
    if shape is None:
        raise Inexact("the shape of a zero point is unknown", "declare it")
    if math.prod(shape) == 1:
        zero = node.write("Reshape", [zero, node.constant(np.zeros(0), "scalar_shape")], "zero_point")
    elif len(shape) == 1 and not last:
        # There is one zero point for each row, or for each filter.
        rank = node.known_rank(index)
        sizes = [-1] + [1] * (rank - 1 if node.op_type == "ConvInteger" else 1)
        zero = node.write("Reshape", [zero, node.constant(sizes, "column")], "zero_point")
    return node.write("Sub", [found, zero], "centred")


def _cast(node: NodeAtBoundary, name: str, dtype: str, wanted: str) -> str:
    """Casts a value unless it has the wanted type."""
    return name if dtype == wanted else node.write("Cast", [name], f"as_{wanted}", to=DTYPE_NUMBERS[wanted])


def _less(node: NodeAtBoundary, one: str, other: str) -> str:
    """Emits Less."""
    return node.write("Less", [one, other], "less")
