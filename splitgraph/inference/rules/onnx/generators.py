"""Operators that draw random numbers, and EyeLike."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of,
    dims_of_rank,
    dtype_attribute,
    int_attribute,
    ints_attribute,
    operator,
)
from splitgraph.value_type import ValueType, tensor


@operator("RandomNormal", "RandomUniform", gives=(None,))
def random(ctx: NodeContext) -> Sequence[ValueType]:
    """Random numbers in the shape of an attribute."""
    dtype, shape = dtype_attribute(ctx, "dtype", "float32"), ints_attribute(ctx, "shape")
    if shape is not None and any(dim < 0 for dim in shape):
        raise InvalidNode(f"shape {list(shape)} has a negative dimension")
    return [tensor(dtype, shape)]


@operator("RandomNormalLike", "RandomUniformLike", "Bernoulli")
def random_like(ctx: NodeContext) -> Sequence[ValueType]:
    """Random numbers in the shape of the input, and in its element type unless another is given."""
    return [tensor(dtype_attribute(ctx, "dtype", ctx.input(0).dtype), dims_of(ctx, 0))]


@operator("EyeLike")
def eye_like(ctx: NodeContext) -> Sequence[ValueType]:
    """A matrix with ones on a diagonal, in the shape of the input."""
    dims = dims_of_rank(ctx, 0, 2)
    dtype = dtype_attribute(ctx, "dtype", ctx.input(0).dtype)
    return [tensor(dtype, (None, None) if dims is None else dims)]


@operator("Multinomial", gives=(None,))
def multinomial(ctx: NodeContext) -> Sequence[ValueType]:
    """The classes of `sample_size` draws for each row of the input."""
    dims, count = dims_of_rank(ctx, 0, 2), int_attribute(ctx, "sample_size", 1)
    return [tensor(dtype_attribute(ctx, "dtype", "int32"), (None if dims is None else dims[0], count))]
