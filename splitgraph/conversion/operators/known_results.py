"""Cast, CastLike and DequantizeLinear of constants whose element type the target does not have: the result is known.

The constant may be an initializer, a Constant node, or what nodes move from one (`KnownValues.elements`).
"""

from __future__ import annotations

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.formula import Formula
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.quantization import alignment
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.schemas.fit import YOUNG_TYPES
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS

KNOWN_RESULTS = frozenset({"Cast", "CastLike", "DequantizeLinear"})
_FLOATS = frozenset({"float16", "float32", "float64"})


def write_known_result(node: NodeAtBoundary) -> None:
    """Write what the node gives as a constant; of DequantizeLinear with a scale that only the run tells, the product.

    Raises Inexact for other inputs, and for results that runtimes give in different ways.
    """
    elements = node.elements(0)
    if node.known_dtype(0) not in YOUNG_TYPES or elements is None:
        raise Inexact(f"{node.known_dtype(0)} does not exist {node.side}, and here it is not a constant")
    # float32 holds every number of the new types.
    numbers = elements.astype(np.float32)
    if node.op_type == "DequantizeLinear":
        _write_dequantized(node, numbers)
        return
    target = node.known_dtype(1) if node.op_type == "CastLike" else DTYPE_NAMES[node.known_value("to")]
    _write(node, _cast(numbers, target))


def _write(node: NodeAtBoundary, result: Array) -> None:
    node.reasons["value"] = f"{node.known_dtype(0)} does not exist {node.side}, and the constant is known"
    node.replace("Identity", [node.tensor(numpy_helper.from_array(np.ascontiguousarray(result)), "known")])


def _cast(numbers: Array, target: str) -> Array:
    """Cast numbers as every runtime does; raise Inexact where the target type does not hold them."""
    if target == "string":
        raise Inexact("runtimes write numbers as text in different ways")
    kind = helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[target])
    with np.errstate(all="ignore"):
        made: Array = numbers.astype(kind)
        if target in _FLOATS:
            return made
        if target == "bool":
            is_held = np.isfinite(numbers)
        elif target in YOUNG_TYPES:
            is_held = (made.astype(np.float32) == numbers) | np.isnan(numbers)
        else:
            is_held = np.isfinite(numbers) & (made.astype(np.float64) == np.trunc(numbers.astype(np.float64)))
    if not is_held.all():
        raise Inexact(f"{target} does not hold each of its elements")
    return made


def _write_dequantized(node: NodeAtBoundary, numbers: Array) -> None:
    """Compute (x - zero point) * scale in float32, which holds every difference; round to the type of the result."""
    scale, zero = node.elements(1), node.elements(2)
    made = DTYPE_NAMES[node.known_value("output_dtype", 0) or DTYPE_NUMBERS[node.known_dtype(1)]]
    if scale is None or (zero is None and node.uses_input(2)):
        f = Formula(node)
        aligned, data = alignment(node, f), f.term(numbers)
        if node.uses_input(2):
            data = data - aligned(f.input(2)).cast("float32")
        f.give((data * aligned(f.input(1)).cast("float32")).cast(made))
        return
    if zero is not None:
        numbers = numbers - _laid_out(node, zero.astype(np.float32), numbers.shape)
    with np.errstate(all="ignore"):
        result = numbers * _laid_out(node, scale.astype(np.float32), numbers.shape)
    _write(node, result.astype(helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[made])))


def _laid_out(node: NodeAtBoundary, parameter: Array, shape: tuple[int, ...]) -> Array:
    """Return a scale or zero point so that it broadcasts to the input: one for all, for each index of the axis, or for
    each block of it.
    """
    axis, block, rank = node.known_value("axis", 1), node.known_value("block_size", 0), len(shape)
    if block:
        return np.repeat(parameter, block, axis % rank).take(range(shape[axis]), axis % rank)
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1 or (rank > 1 and not -rank <= axis < rank):
        raise Inexact(f"a scale of rank {parameter.ndim} does not fit axis {axis} of an input of rank {rank}")
    return parameter.reshape([-1] + [1] * (rank - 1 - axis % rank if rank > 1 else 0))
