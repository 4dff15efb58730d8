"""BitwiseAnd, BitwiseOr and BitwiseXor: below their first opset, a table of four bits at a time."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import INTEGER_BITS, as_int64
from splitgraph.deferred import np
from splitgraph.value_type import DTYPE_NUMBERS

# For each two numbers of four bits: the bits that are set in both.
_IN_BOTH = [one & other for one in range(16) for other in range(16)]


@downward("BitwiseAnd BitwiseOr BitwiseXor", 18)
def combine_bits_by_fours(node: NodeAtBoundary) -> None:
    """Looks up four bits of both numbers at a time in a table of the bits that are set in both.

    The sum of two numbers counts these bits twice: the sum less these bits is Or, the sum less twice these bits is Xor.
    Everything is computed in int64, whose sums and products keep the low 64 bits.
    """
    dtype = node.known_dtype()
    if dtype not in INTEGER_BITS:
        raise Inexact(f"{dtype} has no bits to combine")
    if node.op_type == "BitwiseAnd" and _masks_low_bits(node, dtype):
        return
    weights = [16**place for place in range(INTEGER_BITS[dtype] // 4)]
    powers, sixteen, last = (
        node.constant(values, hint) for values, hint in ((weights, "powers"), (16, "sixteen"), ([-1], "last"))
    )
    one, other = (as_int64(node, name, "number") for name in node.inputs)
    columns = [node.write("Unsqueeze", [name, last], "column") for name in (one, other)]
    first, second = (_fours(node, column, powers, sixteen) for column in columns)
    place = node.write("Add", [node.write("Mul", [first, sixteen], "row"), second], "place")
    fours = node.write("Gather", [node.constant(_IN_BOTH, "set_in_both"), place], "fours", axis=0)
    # ReduceSum of onnxruntime loses the low bits of large int64, and its MatMul with a vector takes no empty tensor.
    weighted = node.write("MatMul", [fours, node.constant([[weight] for weight in weights], "weights")], "weighted")
    result = both = node.write("Squeeze", [weighted, last], "in_both")
    if node.op_type != "BitwiseAnd":
        result = node.write("Sub", [node.write("Add", [one, other], "sum"), both], "in_either")
    if node.op_type == "BitwiseXor":
        result = node.write("Sub", [result, both], "in_one")
    node.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _masks_low_bits(node: NodeAtBoundary, dtype: str) -> bool:
    """Writes the node as a remainder where one operand is a known mask of low bits; True where this was possible."""
    for index in range(2):
        mask = node.elements(index)
        if mask is None:
            continue
        divisors = [int(number) + 1 for number in mask.reshape(-1)]
        if all(0 < number <= np.iinfo(dtype).max and number & (number - 1) == 0 for number in divisors):
            divisor = node.constant(np.reshape(divisors, mask.shape), "divisor", dtype)
            node.replace("Mod", [node.inputs[1 - index], divisor])
            return True
    return False


def _fours(node: NodeAtBoundary, numbers: str, powers: str, sixteen: str) -> str:
    """Splits a column of int64 numbers into groups of four bits, the lowest first. Mod counts up from the next lower
    multiple, so that negative numbers give the bits of their two's complement.
    """
    multiple = node.write("Sub", [numbers, node.write("Mod", [numbers, powers], "below")], "multiple")
    return node.write("Mod", [node.write("Div", [multiple, powers], "shifted"), sixteen], "fours")
