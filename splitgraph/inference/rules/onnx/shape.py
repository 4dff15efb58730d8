"""Operators that read or rewrite a shape: Shape, Size, Flatten, Squeeze, Unsqueeze, Expand, Transpose."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import broadcast_dims, broadcast_items
from splitgraph.inference.rules.onnx.constants import target_shape
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    expect,
    int_attribute,
    ints_attribute,
    normal_axes,
    normal_axis,
    operator,
    positions,
    rearranged,
    static_count,
    vector_length,
)
from splitgraph.value_type import Contents, ValueType, scalar, tensor, vector

_AXES_INPUT_SINCE = 13


@operator("Shape", gives=("int64",))
def shape(ctx: NodeContext) -> Sequence[ValueType]:
    """The dimensions of the input, or those from `start` to `end` (version 15 on)."""
    dims = dims_of(ctx, 0)
    if dims is None:
        return [tensor("int64", (None,))]
    if ctx.since_version >= 15:
        rank = len(dims)
        start, end = int_attribute(ctx, "start", 0), int_attribute(ctx, "end", rank)
        low = min(max(start + rank if start < 0 else start, 0), rank)
        high = min(max(end + rank if end < 0 else end, 0), rank)
        dims = dims[low:high]
    ctx.set_contents(0, vector(dims))
    return [tensor("int64", (len(dims),))]


@operator("Size", gives=("int64",))
def size(ctx: NodeContext) -> Sequence[ValueType]:
    """The number of elements."""
    dims = dims_of(ctx, 0)
    if dims is not None:
        ctx.set_contents(0, scalar(product(dims)))
    return [tensor("int64", ())]


@operator("Flatten")
def flatten(ctx: NodeContext) -> Sequence[ValueType]:
    """A matrix of the dimensions before the axis by those from it on."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, (None, None))]
    axis = normal_axis(int_attribute(ctx, "axis", 1), len(dims), end_allowed=True)
    result = (product(dims[:axis]), product(dims[axis:]))
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


@operator("Squeeze")
def squeeze(ctx: NodeContext) -> Sequence[ValueType]:
    """The input without the axes that are named, each of which must be 1, or without all that are 1."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    given, axes, _ = _axes(ctx)
    if dims is None or (given and axes is None):
        return [tensor(dtype, None)]
    # The peers disagree on an empty list of axes: nothing, or everything that is 1.
    result = squeeze_ones(ctx, dims) if not axes else squeeze_axes(ctx, dims, normal_axes(axes, len(dims)))
    if result is None or (axes == () and len(result) != len(dims)):
        return [tensor(dtype, None)]
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


def squeeze_ones(ctx: NodeContext, dims: Dims) -> Dims | None:
    """The dimensions without those that are 1, None where one may be."""
    kept = []
    for dim in dims:
        if dim == 1:
            continue
        if not isinstance(dim, int) and not ctx.facts.prove_ne(dim, 1):
            return None
        kept.append(dim)
    return tuple(kept)


def squeeze_axes(ctx: NodeContext, dims: Dims, axes: Sequence[int]) -> Dims:
    """The dimensions without these axes, each of which must be 1. Raises InvalidNode when one is not."""
    for axis in axes:
        found = partial("axis {} has the dimension {}; only a dimension of 1 can be squeezed".format, axis, dims[axis])
        expect(ctx, dims[axis], "==", 1, found)
    gone = frozenset(axes)
    return tuple(dim for axis, dim in enumerate(dims) if axis not in gone)


@operator("Unsqueeze")
def unsqueeze(ctx: NodeContext) -> Sequence[ValueType]:
    """The input with a dimension of 1 at each axis, counted in the output."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    _, axes, count = _axes(ctx)
    if dims is None or count is None:
        return [tensor(dtype, None)]
    rank = len(dims) + count
    if axes is None:
        return [tensor(dtype, (None,) * rank)]
    result = unsqueezed(dims, normal_axes(axes, rank))
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


def unsqueezed(dims: Dims, axes: Sequence[int]) -> Dims:
    """The dimensions with a 1 at each axis, counted in the result."""
    rest, new = iter(dims), frozenset(axes)
    return tuple(1 if axis in new else next(rest) for axis in range(len(dims) + len(axes)))


def _axes(ctx: NodeContext) -> tuple[bool, tuple[int, ...] | None, int | None]:
    """Whether axes are given, which, and how many; None for what is unknown, and for very many that are."""
    if ctx.since_version < _AXES_INPUT_SINCE:
        axes = ints_attribute(ctx, "axes")
        return axes is not None, axes, None if axes is None else len(axes)
    if not ctx.has_input(1):
        return False, None, None
    contents = ctx.contents(1)
    axes = None if contents is None else contents.integers
    if axes is not None:
        return True, axes, len(axes)
    # onnx's own inference takes a scalar for one axis, too.
    held = dims_of(ctx, 1)
    return True, None, 1 if held == () else vector_length(ctx, 1)


@operator("Expand")
def expand(ctx: NodeContext) -> Sequence[ValueType]:
    """The input broadcast with the shape that the second input holds."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    target = target_shape(ctx, 1)
    result = broadcast_dims(ctx, (dims, target))
    count = static_count(result)
    contents = None if count is None else ctx.contents(0)
    if contents is not None and count is not None and result is not None:
        static = tuple(dim for dim in result if isinstance(dim, int))
        ctx.set_contents(0, Contents(static, broadcast_items(contents, static, count)))
    return [tensor(dtype, result)]


@operator("Transpose")
def transpose(ctx: NodeContext) -> Sequence[ValueType]:
    """The input with its axes in the order of `perm`; reversed without."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    perm = ints_attribute(ctx, "perm")
    if perm is not None and sorted(perm) != list(range(len(perm))):
        raise InvalidNode(f"perm {list(perm)} is not a permutation of the axes")
    if dims is None:
        return [tensor(dtype, None if perm is None else (None,) * len(perm))]
    return [tensor(dtype, transposed(ctx, dims, perm))]


def transposed(ctx: NodeContext, dims: Dims, order: Sequence[int] | None) -> Dims:
    """The dimensions of the first input, whose axes the output has in this order, or reversed; what it holds follows.

    Raises InvalidNode for an order of another rank.
    """
    if order is None:
        order = tuple(range(len(dims) - 1, -1, -1))
    if len(order) != len(dims):
        raise InvalidNode(f"perm has {len(order)} axes, but the input has {len(dims)}")
    result = tuple([dims[axis] for axis in order])
    contents = ctx.contents(0) if static_count(result) is not None else None
    if contents is not None:
        ctx.set_contents(0, rearranged(contents, positions(contents).transpose(order)))
    return result


def keep_contents(ctx: NodeContext, dims: Dims) -> None:
    """The first output holds the elements of the first input, in the same order."""
    if static_count(dims) is None:
        return
    contents = ctx.contents(0)
    if contents is not None:
        ctx.set_contents(0, Contents(tuple(dim for dim in dims if isinstance(dim, int)), contents.items))
