"""Det: below its first opset, written out for small matrices."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import replace_by_cast, widened

# A matrix of 4 rows takes 40 products, and one of n rows n times as many as one of n - 1 rows.
_MOST_ROWS = 3

unchanged("Det", 22)


@downward("Det", 11)
def expand_by_minors(node: NodeAtBoundary) -> None:
    """Sums the products of each element in the first row and the determinant of the matrix without its row and column,
    with alternating signs.
    """
    dtype, shape = node.known_dtype(), node.input_type(0).shape or ()
    rows = shape[-1] if shape and isinstance(shape[-1], int) else shape[-2] if len(shape) > 1 else None
    if not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        raise Inexact(f"only a matrix of at most {_MOST_ROWS} rows is written out", "declare the shape of the input")
    rank, data = len(shape), node.inputs[0]
    wide = "float32" if dtype == "float16" else dtype
    data = widened(node, data, dtype, wide)
    places = [node.constant(place, "place") for place in range(rows)]
    lines = [node.write("Gather", [data, place], "row", axis=rank - 2) for place in places]
    matrix = [[node.write("Gather", [line, place], "element", axis=rank - 2) for place in places] for line in lines]
    result = _determinant(node, matrix)
    replace_by_cast(node, result, wide, dtype)


def _determinant(node: NodeAtBoundary, matrix: list[list[str]]) -> str:
    """Emits the determinant of a matrix of names."""
    first, *others = matrix
    if not others:
        return first[0]
    total = ""
    for column, element in enumerate(first):
        minor = _determinant(node, [row[:column] + row[column + 1 :] for row in others])
        product = node.write("Mul", [element, minor], "product")
        total = node.write("Sub" if column % 2 else "Add", [total, product], "sum") if total else product
    return total
