"""Flatten of element types that an older version does not take."""

from __future__ import annotations

from math import prod

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.adapters.reshaping import reshaped
from splitgraph.conversion.step import Inexact, Step
from splitgraph.value_type import Shape


@downward("Flatten", 9)
def flattened_by_reshape(step: Step) -> None:
    """Below 9 Flatten takes floating-point numbers only; Reshape takes every type from 5 on, and gives the same."""
    shape, axis = step.input_type(0).shape, step.known_value("axis", 1)
    sides = None if shape is None else _sides(shape, axis)
    data = step.inputs[0]
    if sides is not None and (sides[0] or sides[1]):
        # -1 stands for the side that is not known, 0 included, as long as the other is not 0.
        rows, columns = (-1 if side is None else side for side in sides)
        if rows and columns:
            step.replace("Reshape", [data, step.constant([rows, columns], "shape")])
            return
    if shape is None and axis < 0:
        raise Inexact("the rank of its input is unknown", "declare the shape of the input")
    made = step.emit(
        "Concat", [_product(step, data, 0, axis, shape), _product(step, data, axis, None, shape)], "sides", axis=0
    )
    op_type, inputs, attributes = reshaped(step, data, made, dense=False)
    step.replace(op_type, inputs, **attributes)


def _sides(shape: Shape, axis: int) -> tuple[int | None, int | None]:
    """The rows and the columns, as far as they are known."""
    axis = axis + len(shape) if axis < 0 else axis
    found: list[int | None] = []
    for dims in (shape[:axis], shape[axis:]):
        known = [dim for dim in dims if isinstance(dim, int)]
        found.append(0 if 0 in known else prod(known) if len(known) == len(dims) else None)
    return found[0], found[1]


def _product(step: Step, data: str, start: int, end: int | None, shape: Shape | None) -> str:
    """The product of some dimensions of a tensor, 1 where there are none, as int64[1]."""
    rank = None if shape is None else len(shape)
    first, last = start + (rank or 0) * (start < 0), (2**31 - 1) if end is None else end + (rank or 0) * (end < 0)
    if last <= first or (rank is not None and first >= rank):
        return step.constant([1], "one")
    dims = step.emit("Slice", [step.emit("Shape", [data], "shape")], "dims", starts=[first], ends=[last])
    more = step.emit("Concat", [dims, step.constant([1], "one")], "dims_and_one", axis=0)
    return step.emit("ReduceProd", [more], "product", keepdims=1, axes=[0])
