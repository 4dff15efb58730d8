"""Arithmetic of integers below the opset of its operator: Mod, BitShift, MatMulInteger and so on; and Mod of floats."""

from __future__ import annotations

import math

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.remainders import remainder_by_long_division
from splitgraph.conversion.writing.shape_nodes import static_shape
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_BITS = {f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (8, 16, 32, 64)}

# Exact sums of integers in float32.
_FLOAT_LIMIT = 2**24

# Numbers of 8 bits, less a zero point, are so many times a number of at most its size, and a smaller number.
_PART = 16


unchanged("Mod", 13)


@downward("Mod", 10)
def remainder_of_division(step: Step) -> None:
    """The dividend less the divisor times their quotient, which Div rounds to 0: with fmod=0 the sign becomes that of
    the divisor. Quotients of floats are rounded otherwise.
    """
    dtype = step.known_dtype()
    if dtype not in _BITS:
        remainder_by_long_division(step)
        return
    computed = dtype if dtype in ("int64", "uint64") else "int64" if dtype == "uint32" else "int32"
    one, other = (_cast(step, name, dtype, computed) for name in step.inputs)
    whole = step.emit("Mul", [step.emit("Div", [one, other], "quotient"), other], "multiple")
    rest = step.emit("Sub", [one, whole], "rest")
    if not step.known_value("fmod", 0) and not dtype.startswith("u"):
        zero = step.constant(0, "zero", computed)
        differs = step.emit("Xor", [_less(step, rest, zero), _less(step, other, zero)], "signs_differ")
        some = step.emit("Not", [step.emit("Equal", [rest, zero], "is_whole")], "is_rest")
        wrong = step.emit("And", [differs, some], "is_wrong")
        rest = step.emit(
            "Add", [rest, step.emit("Mul", [_number(step, wrong, computed), other], "correction")], "result"
        )
    step.replace("Cast", [rest], to=DTYPE_NUMBERS[dtype])


changed("Mod", 28, "fmod=0 on floats was added", up=always)
_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


@exact_downward("Mod", 28)
def modulus_of_integers(c: Crossing) -> bool:
    """Mod 13|28, downward: below 28 the remainder of floats has the sign of the dividend, and needs fmod=1."""
    return c.value("fmod", 0) == 1 or c.dtype(0) in _INTEGERS


@downward("Mod", 28)
def floor_remainder_of_floats(step: Step) -> None:
    """fmod=0 on floats: the remainder that fmod=1 gives, plus the divisor where their signs differ. Of 16-bit floats
    float32 holds both exactly, and their sum with more than twice the precision.
    """
    dtype = step.known_dtype()
    if dtype in _BITS or step.known_is_set("fmod"):
        raise Inexact(f"the remainder of {dtype} is another one")
    wide = "float64" if dtype == "float64" else "float32"
    one, other = (_cast(step, name, dtype, wide) for name in step.inputs)
    zero, minus_zero = step.constant(0.0, "zero", wide), step.constant(-0.0, "minus_zero", wide)
    rest = step.emit("Mod", [one, other], "rest", fmod=1)
    differs = step.emit("Xor", [_less(step, rest, zero), _less(step, other, zero)], "signs_differ")
    signed = step.emit("Where", [differs, step.emit("Add", [rest, other], "added"), rest], "signed")
    # No remainder at all has the sign of the divisor.
    none = step.emit("Where", [_less(step, other, zero), minus_zero, zero], "no_rest")
    result = step.emit("Where", [step.emit("Equal", [rest, zero], "is_none"), none, signed], "result")
    step.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


@downward("BitShift", 11)
def shift_by_powers(step: Step) -> None:
    """To the left a product with a power of 2, of which the low bits stay; to the right a quotient. Shifts by all bits
    or more give 0.
    """
    dtype = step.known_dtype()
    bits, right = _BITS[dtype], step.known_value("direction") == "RIGHT"
    data, amount = (_cast(step, name, dtype, "int64") for name in step.inputs)
    width = step.constant(bits, "bits")
    amount = step.emit("Where", [_less(step, amount, width), amount, width], "amount")
    # Nothing but 0 is left of what is divided by the last two.
    powers = [2**index for index in range(min(bits, 63))] + [-(2**63)] * (1 + bits // 64)
    table = step.constant([*powers[:bits], powers[-1] if right else 0], "powers")
    if right:
        result = _quotient(step, data, table, amount, is_wide=bits == 64)
    else:
        result = step.emit("Mul", [data, step.emit("Gather", [table, amount], "factor", axis=0)], "shifted")
    step.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _quotient(step: Step, data: str, powers: str, amount: str, *, is_wide: bool) -> str:
    """Bits of unsigned numbers, held as int64, shifted to the right."""
    quotient = step.emit("Div", [data, step.emit("Gather", [powers, amount], "divisor", axis=0)], "shifted")
    if not is_wide:
        return quotient
    # With the highest bit set the first shift is done apart: half the number, negative as int64, and 2**63.
    zero, one, two = step.constant(0, "zero"), step.constant(1, "one"), step.constant(2, "two")
    half = step.emit("Div", [data, two], "half")
    odd = step.emit("Sub", [data, step.emit("Mul", [half, two], "even")], "odd")
    top = step.constant(2**62, "top")
    lifted = step.emit("Add", [step.emit("Add", [half, odd], "floor"), top], "lifted")
    shifted = step.emit("Add", [lifted, top], "shifted_once")
    is_none = step.emit("Equal", [amount, zero], "is_none")
    left = step.emit("Where", [is_none, zero, step.emit("Sub", [amount, one], "one_less")], "amount_left")
    rest = step.emit("Div", [shifted, step.emit("Gather", [powers, left], "divisor_left", axis=0)], "shifted_on")
    high = step.emit("Where", [is_none, data, rest], "of_high")
    return step.emit("Where", [_less(step, data, zero), high, quotient], "shifted")


changed("BitShift", 28, "below it, shifts by as many bits as the type has, or more, are undefined", up=always)


@downward("BitShift", 28)
def shift_beyond_width(step: Step) -> None:
    """Shifts of the bits as those of an unsigned number. To the right, a negative number is shifted as its complement,
    -1 - x, whose vacated bits are the complement of the sign. Shifts that leave no bit, undefined below, are left out.
    """
    dtype = step.known_dtype()
    amounts = step.elements(1)
    if dtype.startswith("u") and amounts is not None and bool((amounts < _BITS[dtype]).all()):
        return
    direction = step.known_value("direction")
    unsigned = "uint64" if _BITS[dtype] == 64 else "uint32"
    data, amount = (_cast(step, name, dtype, "int64") for name in step.inputs)
    zero, minus_one = step.constant(0, "zero"), step.constant(-1, "minus_one")
    too_far = step.emit("Not", [_less(step, amount, step.constant(_BITS[dtype], "bits"))], "is_too_far")
    beyond = step.emit("Or", [too_far, _less(step, amount, zero)], "is_beyond")
    amount = _cast(step, step.emit("Where", [beyond, zero, amount], "amount"), "int64", unsigned)
    is_negative = _less(step, data, zero) if direction == "RIGHT" and not dtype.startswith("u") else ""
    if is_negative:
        data = step.emit("Where", [is_negative, step.emit("Sub", [minus_one, data], "complement"), data], "positive")
    shifted = step.emit("BitShift", [_cast(step, data, "int64", unsigned), amount], "shifted", direction=direction)
    result = step.emit("Where", [beyond, zero, _cast(step, shifted, unsigned, "int64")], "held")
    if is_negative:
        result = step.emit("Where", [is_negative, step.emit("Sub", [minus_one, result], "restored"), result], "result")
    step.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


@downward("BitwiseNot", 18)
def complement(step: Step) -> None:
    """-1 less the number, or the greatest number less an unsigned one."""
    dtype = step.known_dtype()
    ones = -1 if dtype.startswith("i") else np.iinfo(dtype).max
    step.replace("Sub", [step.constant(ones, "ones", dtype), step.inputs[0]])


@downward("MatMulInteger", 10)
def matmul_of_integers(step: Step) -> None:
    """Both operands less their zero points, multiplied as int32."""
    step.replace("MatMul", [_centred(step, 0, "int32", last=False), _centred(step, 1, "int32", last=True)])


@downward("ConvInteger", 10)
def convolution_of_integers(step: Step) -> None:
    """Both operands less their zero points, convolved as floats that hold every sum: as float32 where windows are small
    or, with the data in two parts, of middling size. Of float64 engines have no convolution.
    """
    shape = static_shape(step, step.inputs[1])
    terms = math.prod(shape[1:]) if shape else math.inf
    wide = "float32" if terms * _PART * 255 < _FLOAT_LIMIT else "float64"
    data, weights = _centred(step, 0, wide, last=False), _centred(step, 1, wide, last=False)
    if wide == "float64" or terms * 255**2 < _FLOAT_LIMIT:
        step.replace("Cast", [_convolved(step, data, weights)], to=TensorProto.INT32)
        return
    part = step.constant(_PART, "part", wide)
    high = step.emit("Floor", [step.emit("Div", [data, part], "quotient")], "high")
    low = step.emit("Sub", [data, step.emit("Mul", [high, part], "of_high")], "low")
    sums = [_cast(step, _convolved(step, each, weights), wide, "int32") for each in (high, low)]
    raised = step.emit("Mul", [sums[0], step.constant(_PART, "part", "int32")], "raised")
    step.replace("Add", [raised, sums[1]])


def _convolved(step: Step, data: str, weights: str) -> str:
    found = step.emit("Conv", [data, weights], "sums")
    step.before[-1].attributes |= step.attributes
    return found


def _centred(step: Step, index: int, dtype: str, *, last: bool) -> str:
    """An operand less its zero point, in a wider type. last: a zero point of one dimension is for each column."""
    found = _cast(step, step.inputs[index], "", dtype)
    if not step.uses_input(index + 2):
        return found
    shape = static_shape(step, step.inputs[index + 2])
    zero = _cast(step, step.inputs[index + 2], "", dtype)
    if shape is None:
        raise Inexact("the shape of a zero point is unknown", "declare it")
    if math.prod(shape) == 1:
        zero = step.emit("Reshape", [zero, step.constant(np.zeros(0), "scalar_shape")], "zero_point")
    elif len(shape) == 1 and not last:
        # One for each row, or for each filter.
        rank = step.known_rank(index)
        sizes = [-1] + [1] * (rank - 1 if step.form.op_type == "ConvInteger" else 1)
        zero = step.emit("Reshape", [zero, step.constant(sizes, "column")], "zero_point")
    return step.emit("Sub", [found, zero], "centred")


def _less(step: Step, one: str, other: str) -> str:
    return step.emit("Less", [one, other], "less")


def _number(step: Step, truth: str, dtype: str) -> str:
    return step.emit("Cast", [truth], "number", to=DTYPE_NUMBERS[dtype])


def _cast(step: Step, name: str, dtype: str, wanted: str) -> str:
    return name if dtype == wanted else step.emit("Cast", [name], f"as_{wanted}", to=DTYPE_NUMBERS[wanted])
