"""Matrix products: MatMul, Gemm, Einsum, and Det."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import broadcast_dim, broadcast_dims
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    int_attribute,
    known_dtype,
    merged_dim,
    operator,
    ranked_dims,
)
from splitgraph.inference.rules.signatures import PER_COLUMN, PER_ROW, expect_shapes, shaped
from splitgraph.model.value_type import ValueType, tensor


@operator("MatMul")
def matmul(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply matrices in the last two axes and broadcast the others; a vector is a row or column."""
    return product_of(ctx, False, False)


def product_of(ctx: NodeContext, transpose_a: bool, transpose_b: bool) -> Sequence[ValueType]:
    """Multiply the first two inputs after the transposes that are asked for."""
    dtype = known_dtype(ctx, (0, 1))
    a, b = transposed(dims_of(ctx, 0), transpose_a), transposed(dims_of(ctx, 1), transpose_b)
    return [tensor(dtype, product_dims(ctx, a, b))]


def transposed(dims: Dims | None, matrix: bool, batch: bool = False) -> Dims | None:
    """Return the dimensions with the last two swapped, and with `batch` the first one behind the other batch
    dimensions. A vector stays.
    """
    if dims is None or len(dims) < 2:
        return dims
    if batch and len(dims) > 2:
        dims = (*dims[1:-1], dims[0], dims[-1])
    return (*dims[:-2], dims[-1], dims[-2]) if matrix else dims


@operator("MatMulInteger", gives=("int32",))
def matmul_integer(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply matrices of 8-bit integers in 32 bits."""
    zeros = (f"a_zero_point: {PER_ROW}", f"b_zero_point: {PER_COLUMN}")
    expect_shapes(ctx, "", "", *zeros, sizes=_rows_and_columns(ctx, 0, 1))
    return [tensor("int32", product_dims(ctx, dims_of(ctx, 0), dims_of(ctx, 1)))]


def product_dims(ctx: NodeContext, a: Dims | None, b: Dims | None) -> Dims | None:
    """Return the dimensions of a matrix product. Raise InvalidNode if the operands do not fit."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise InvalidNode("an operand is a scalar; both must have at least one axis")
    inner_b = b[0] if len(b) == 1 else b[-2]
    merged_dim(ctx, a[-1], inner_b, "the inner dimensions")
    batches = broadcast_dims(ctx, (a[:-2], b[:-2])) or ()
    return batches + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def _rows_and_columns(ctx: NodeContext, a: int, b: int) -> dict[str, DimLike | None]:
    """Return the rows (M) of one input and the columns (N) of another, for scales and zero points of each."""
    left, right = dims_of(ctx, a), dims_of(ctx, b)
    return {
        "M": left[-2] if left is not None and len(left) > 1 else None,
        "N": right[-1] if right is not None and len(right) > 1 else None,
    }


@operator("QLinearMatMul", gives=(7,))
def matmul_quantized(ctx: NodeContext) -> Sequence[ValueType]:
    """Multiply quantised matrices, in the type of the output's zero point."""
    rows, columns = (
        (f"a_scale: {PER_ROW}", f"a_zero_point: {PER_ROW}"),
        (f"b_scale: {PER_COLUMN}", f"b_zero_point: {PER_COLUMN}"),
    )
    # Engines read one number for each row of the output, or for each column.
    results = (f"y_scale: {PER_ROW} | N", f"y_zero_point: {PER_ROW} | N")
    expect_shapes(ctx, "", *rows, "", *columns, *results, sizes=_rows_and_columns(ctx, 0, 3))
    return [tensor(ctx.input(7).dtype, product_dims(ctx, dims_of(ctx, 0), dims_of(ctx, 3)))]


@operator("Gemm")
def gemm(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute A @ B + C of matrices, either of which may be transposed first."""
    dtype = known_dtype(ctx, (0, 1, 2))
    result = product_of_matrices(ctx, 0, 1)
    added = dims_of(ctx, 2)
    if added is not None and len(added) > 2:
        raise InvalidNode(f"C has rank {len(added)}; it must broadcast to a matrix")
    for position, dim in enumerate(reversed(added or ())):
        _check_added(ctx, result[1 - position], dim)
    return [tensor(dtype, result)]


def product_of_matrices(ctx: NodeContext, a_index: int, b_index: int) -> tuple[DimLike | None, DimLike | None]:
    """Return the rows and columns of the product of two matrices, which transA and transB may transpose first."""
    a, b = ranked_dims(ctx, a_index, 2), ranked_dims(ctx, b_index, 2)
    if None not in a and int_attribute(ctx, "transA", 0):
        a = a[::-1]
    if None not in b and int_attribute(ctx, "transB", 0):
        b = b[::-1]
    merged_dim(ctx, a[1], b[0], "the inner dimensions")
    return a[0], b[1]


def _check_added(ctx: NodeContext, dim: DimLike | None, added: DimLike) -> None:
    # C is fitted to the product, never the other way round.
    if dim is None or added == 1 or dim == added:
        return
    if isinstance(dim, int) and isinstance(added, int):
        raise InvalidNode(f"C has the dimension {added} where the product has {dim}; C must broadcast to the product")
    if ctx.facts.prove_ne(added, 1):
        merged_dim(ctx, dim, added, "the dimensions of C and of the product")


# Of each of the square matrices in the last two axes.
shaped("Det", "X: ... N N", gives="0 ...")


@operator("Einsum")
def einsum(ctx: NodeContext) -> Sequence[ValueType]:
    """Sum products as the equation describes: letters name dimensions, an ellipsis stands for dimensions that
    broadcast.
    """
    dtype = known_dtype(ctx, range(len(ctx.node.input)))
    equation = "".join(str(ctx.attribute("equation", "")).split())
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ctx.node.input):
        raise InvalidNode(f"the equation {equation!r} has {len(terms)} terms for {len(ctx.node.input)} inputs")
    shapes = [dims_of(ctx, index) for index in range(len(terms))]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    named: dict[str, DimLike] = {}
    wide: list[Dims | None] = []
    for term, dims in zip(terms, shapes, strict=True):
        _bind_letters(ctx, term, dims, named, wide)
    ranks = {len(dims) for dims in wide if dims is not None}
    if len(ranks) > 1:
        raise InvalidNode(
            f"the ellipsis stands for {' and '.join(map(str, sorted(ranks)))} dimensions; the numbers must be equal"
        )
    return [tensor(dtype, _einsum_result(ctx, right, named, wide))]


def _bind_letters(
    ctx: NodeContext, term: str, dims: Dims | None, named: dict[str, DimLike], wide: list[Dims | None]
) -> None:
    head, ellipsis, tail = term.partition("...")
    if dims is None:
        if ellipsis:
            wide.append(None)
        return
    if len(dims) < len(head) + len(tail) or (not ellipsis and len(dims) != len(head)):
        raise InvalidNode(f"the term {term!r} does not fit an input of rank {len(dims)}")
    last = len(dims) - len(tail)
    if ellipsis:
        wide.append(dims[len(head) : last])
    # A letter that stands twice in one term takes a diagonal, for which nothing broadcasts.
    inside: dict[str, DimLike] = {}
    for letter, dim in (*zip(head, dims, strict=False), *zip(tail, dims[last:], strict=True)):
        inside[letter] = (
            merged_dim(ctx, inside[letter], dim, f"the dimensions of the letter {letter!r}")
            if letter in inside
            else dim
        )
    for letter, dim in inside.items():
        named[letter] = broadcast_dim(ctx, named[letter], dim) if letter in named else dim


def _einsum_result(
    ctx: NodeContext, right: str, named: dict[str, DimLike], wide: list[Dims | None]
) -> tuple[DimLike | None, ...] | None:
    head, ellipsis, tail = right.partition("...")
    middle = broadcast_dims(ctx, wide) if ellipsis and wide else ()
    if middle is None:
        return None
    return (*(named.get(letter) for letter in head), *middle, *(named.get(letter) for letter in tail))
