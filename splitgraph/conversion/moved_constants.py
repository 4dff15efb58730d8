"""The elements of a value of a new type that nodes make of constants by moving or casting elements.

Old opsets do not have the types, and so not these nodes. What a cast or DequantizeLinear behind them gives is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from splitgraph.model.attributes import attribute_value
from splitgraph.model.deferred import helper, np
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import kinds
from splitgraph.model.tensor_data import is_in_other_file
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.model.values import array_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
# Returns the elements of an input; None where they are unknown, or the node omits the input.
Operand = Callable[[int], "Array | None"]


def moved_elements(node: NodeProto, operand: Operand, shape: tuple[int, ...], dtype: str) -> Array | None:
    """Return the elements of the output of a node that moves or casts elements; None for another node, and where an
    input is unknown. shape, dtype: of the output.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    made: Array | None = None
    if node.op_type == "Constant" and "value" in attributes:
        tensor = attributes["value"].t
        made = None if is_in_other_file(tensor) else array_of(tensor)
    elif node.op_type == "ConstantOfShape" and "value" in attributes:
        made = np.broadcast_to(array_of(attributes["value"].t).reshape(()), shape)
    elif node.op_type == "Concat":
        parts = [operand(index) for index in range(len(node.input))]
        known = [part for part in parts if part is not None]
        made = np.concatenate(known, attributes["axis"].i) if len(known) == len(parts) else None
    elif (data := operand(0)) is None:
        return None
    elif node.op_type in ("Cast", "CastLike"):
        made = _rounded(data, dtype)
    else:
        values = {name: attribute_value(held) for name, held in attributes.items()}
        made = _of_one(node.op_type, values, data, operand, shape)
    return made if made is not None and made.shape == shape else None


def _of_one(
    op_type: str, attributes: dict[str, Any], data: Array, operand: Operand, shape: tuple[int, ...]
) -> Array | None:
    """Return the elements that an operator makes of one tensor."""
    if op_type in kinds.RESHAPES:
        # Inference knows the shape.
        return data.reshape(shape)
    if op_type == "Transpose":
        return np.transpose(data, attributes.get("perm"))
    if op_type == "Expand":
        return np.broadcast_to(data, shape)
    if op_type == "Gather":
        places = operand(1)
        return None if places is None else np.take(data, places, attributes.get("axis", 0))
    if op_type == "Slice":
        return _sliced(data, *(operand(index) for index in range(1, 5)))
    return None


def _rounded(data: Array, dtype: str) -> Array | None:
    """Return elements in another type; None where runtimes may round them in different ways. Every runtime rounds a
    float32 to the nearest bfloat16; casts to smaller types differ in what they make of numbers beyond the largest one.
    """
    if data.dtype == object:
        return None
    with np.errstate(all="ignore"):
        numbers = data.astype(np.float32)
        made: Array = numbers.astype(helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[dtype]))
        if data.dtype.kind in "iu" or data.dtype == np.float64:
            is_held = numbers.astype(np.float64) == data.astype(np.float64)
            if not (is_held | np.isnan(numbers)).all():
                return None
        if dtype == "bfloat16":
            return made
        is_exact = (made.astype(np.float32) == numbers) | np.isnan(numbers)
    return made if is_exact.all() else None


def _sliced(
    data: Array, starts: Array | None, ends: Array | None, axes: Array | None, steps: Array | None
) -> Array | None:
    """Return a slice as Slice-10 describes it, for positive steps of known bounds."""
    if starts is None or ends is None or (steps is not None and (steps < 1).any()):
        return None
    axes = np.arange(starts.size) if axes is None else axes
    steps = np.ones_like(starts) if steps is None else steps
    places = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places[int(axis)] = slice(int(start), int(end), int(step))
    taken: Array = data[tuple(places)]
    return taken
