"""BitwiseAnd, BitwiseOr and BitwiseXor: below their first opset, a table of four bits at a time."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, as_int64
from splitgraph.deferred import np
from splitgraph.value_type import DTYPE_NUMBERS

# For each two numbers of four bits: the bits that are set in both.
_IN_BOTH = [one & other for one in range(16) for other in range(16)]


@downward("BitwiseAnd BitwiseOr BitwiseXor", 18)
def combine_bits_by_fours(context: AdapterContext) -> None:
    """Looks up four bits of both numbers at a time in a table of the bits that are set in both.

    The sum of two numbers counts these bits twice: the sum less these bits is Or, the sum less twice these bits is Xor.
    Everything is computed in int64, whose sums and products keep the low 64 bits.
    """
    dtype = context.known_dtype()
    if dtype not in INTEGER_BITS:
        raise Inexact(f"{dtype} has no bits to combine")
    if context.form.op_type == "BitwiseAnd" and _masks_low_bits(context, dtype):
        return
    weights = [16**place for place in range(INTEGER_BITS[dtype] // 4)]
    powers, sixteen, last = (
        context.constant(values, hint) for values, hint in ((weights, "powers"), (16, "sixteen"), ([-1], "last"))
    )
    one, other = (as_int64(context, name, "number") for name in context.inputs)
    columns = [context.emit("Unsqueeze", [name, last], "column") for name in (one, other)]
    first, second = (_fours(context, column, powers, sixteen) for column in columns)
    place = context.emit("Add", [context.emit("Mul", [first, sixteen], "row"), second], "place")
    fours = context.emit("Gather", [context.constant(_IN_BOTH, "set_in_both"), place], "fours", axis=0)
    # ReduceSum of onnxruntime loses the low bits of large int64, and its MatMul with a vector takes no empty tensor.
    weighted = context.emit(
        "MatMul", [fours, context.constant([[weight] for weight in weights], "weights")], "weighted"
    )
    result = both = context.emit("Squeeze", [weighted, last], "in_both")
    if context.form.op_type != "BitwiseAnd":
        result = context.emit("Sub", [context.emit("Add", [one, other], "sum"), both], "in_either")
    if context.form.op_type == "BitwiseXor":
        result = context.emit("Sub", [result, both], "in_one")
    context.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _masks_low_bits(context: AdapterContext, dtype: str) -> bool:
    """Writes the node as a remainder where one operand is a known mask of low bits; True where this was possible."""
    for index in range(2):
        mask = context.elements(index)
        if mask is None:
            continue
        divisors = [int(number) + 1 for number in mask.reshape(-1)]
        if all(0 < number <= np.iinfo(dtype).max and number & (number - 1) == 0 for number in divisors):
            divisor = context.constant(np.reshape(divisors, mask.shape), "divisor", dtype)
            context.replace("Mod", [context.inputs[1 - index], divisor])
            return True
    return False


def _fours(context: AdapterContext, numbers: str, powers: str, sixteen: str) -> str:
    """Splits a column of int64 numbers into groups of four bits, the lowest first. Mod counts up from the next lower
    multiple, so that negative numbers give the bits of their two's complement.
    """
    multiple = context.emit("Sub", [numbers, context.emit("Mod", [numbers, powers], "below")], "multiple")
    return context.emit("Mod", [context.emit("Div", [multiple, powers], "shifted"), sixteen], "fours")
