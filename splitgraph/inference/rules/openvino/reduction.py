"""OpenVINO's reductions over axes, and its products of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.arithmetic import BinaryItem
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.matmul import einsum, product_dims
from splitgraph.inference.rules.onnx.reduction import reduced
from splitgraph.inference.rules.openvino.attributes import flag, layer, listed_axes
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    known_dtype,
    merged_dim,
    normal_axis,
)
from splitgraph.value_type import ValueType, tensor

_REDUCTIONS: dict[str, BinaryItem | None] = {
    "ReduceSum": exact.add,
    "ReduceProd": exact.multiply,
    "ReduceMax": exact.largest,
    "ReduceMin": exact.smallest,
    "ReduceMean": None,
    "ReduceL1": None,
    "ReduceL2": None,
    "ReduceLogicalAnd": None,
    "ReduceLogicalOr": None,
}

layer("Einsum")(einsum)


@layer(*_REDUCTIONS)
def reduce(ctx: NodeContext) -> Sequence[ValueType]:
    """The input reduced over the axes, which stay as 1 with `keep_dims`; over none without axes."""
    dtype, dims, axes = ctx.input(0).dtype, dims_of(ctx, 0), listed_axes(ctx, 1)
    keep = flag(ctx, "keep_dims", False)
    if dims is None:
        return [tensor(dtype, None)]
    if axes is None:
        return [tensor(dtype, tuple(1 if dim == 1 else None for dim in dims) if keep else None)]
    where = tuple(dict.fromkeys(normal_axis(axis, len(dims)) for axis in axes))
    return reduced(ctx, _REDUCTIONS[ctx.node.op_type], dims, where, keep)


@layer("MatMul")
def matmul(ctx: NodeContext) -> Sequence[ValueType]:
    """The product of matrices in the last two axes, either of which may be transposed first; a vector never is."""
    dtype = known_dtype(ctx, (0, 1))
    a = _transposed(dims_of(ctx, 0), flag(ctx, "transpose_a", False))
    b = _transposed(dims_of(ctx, 1), flag(ctx, "transpose_b", False))
    return [tensor(dtype, product_dims(ctx, a, b))]


def _transposed(dims: Dims | None, swap: bool) -> Dims | None:
    return (*dims[:-2], dims[-1], dims[-2]) if dims is not None and swap and len(dims) > 1 else dims


@layer("ScaledDotProductAttention")
def attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Values weighted by how much queries and keys agree: batches and length of the query, features of the value."""
    dtype = known_dtype(ctx, range(3))
    query, key, value = (dims_of(ctx, index) for index in range(3))
    if query is None or key is None or value is None:
        return [tensor(dtype, None)]
    if min(len(query), len(key), len(value)) < 2:
        raise InvalidNode("query, key and value must have at least two axes")
    merged_dim(ctx, query[-1], key[-1], "the features of query and key")
    merged_dim(ctx, key[-2], value[-2], "the lengths of key and value")
    batches = broadcast_dims(ctx, (query[:-2], key[:-2], value[:-2])) or ()
    return [tensor(dtype, (*batches, query[-2], value[-1]))]
