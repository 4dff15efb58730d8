"""Det below opset 11, where it does not exist."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import (
    downward,
    unchanged,
)
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.value_type import DTYPE_NUMBERS

# Of a matrix of 4 rows there are 40 products, and each further row has as many times more as it is long.
_MOST_ROWS = 3


unchanged("Det", 22)


@downward("Det", 11)
def determinant_by_minors(step: Step) -> None:
    """The sum of the products of the elements of the first row and the determinants of what the others leave, with
    alternating signs.
    """
    dtype, shape = step.known_dtype(), step.input_type(0).shape or ()
    rows = shape[-1] if shape and isinstance(shape[-1], int) else shape[-2] if len(shape) > 1 else None
    if not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise Inexact(f"only a matrix of at most {_MOST_ROWS} rows is written out", "declare the shape of the input")
    rank, data = len(shape), step.inputs[0]
    if dtype == "float16":
        data = step.emit("Cast", [data], "wide", to=DTYPE_NUMBERS["float32"])
    places = [step.constant(place, "place") for place in range(rows)]
    lines = [step.emit("Gather", [data, place], "row", axis=rank - 2) for place in places]
    matrix = [[step.emit("Gather", [line, place], "element", axis=rank - 2) for place in places] for line in lines]
    result = _determinant(step, matrix)
    step.replace("Cast", [result], to=DTYPE_NUMBERS[dtype]) if data != step.inputs[0] else step.replace(
        "Identity", [result]
    )


def _determinant(step: Step, matrix: list[list[str]]) -> str:
    first, *others = matrix
    if not others:
        return first[0]
    total = ""
    for column, element in enumerate(first):
        minor = _determinant(step, [row[:column] + row[column + 1 :] for row in others])
        product = step.emit("Mul", [element, minor], "product")
        total = step.emit("Sub" if column % 2 else "Add", [total, product], "sum") if total else product
    return total
