"""Operators that read or rewrite a shape: Shape, Size, Flatten, Squeeze, Unsqueeze, Expand, Transpose, Reshape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import Dim, DimLike, Obligation, product, substitute, symbol, symbols_of
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import broadcast_dims, broadcast_items
from splitgraph.inference.rules.onnx.constants import target_shape
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    argument,
    dims_of,
    expect,
    input_of,
    int_attribute,
    ints_attribute,
    normal_axes,
    normal_axis,
    operator,
    positions,
    rearranged,
    spelled_dims,
    static_count,
    tolerate,
    vector_length,
)
from splitgraph.model.value_type import Contents, ValueType, scalar, tensor, vector


@operator("Shape", gives=("int64",))
def shape(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the dimensions of the input as a value, or those from `start` to `end` (version 15 on)."""
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
    """Count the elements."""
    dims = dims_of(ctx, 0)
    if dims is not None:
        ctx.set_contents(0, scalar(product(dims)))
    return [tensor("int64", ())]


@operator("Flatten")
def flatten(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a matrix: the dimensions before the axis by those from the axis on."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, (None, None))]
    axis = normal_axis(int_attribute(ctx, "axis", 1), len(dims), end_allowed=True)
    result = (product(dims[:axis]), product(dims[axis:]))
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


@operator("Squeeze")
def squeeze(ctx: NodeContext) -> Sequence[ValueType]:
    """Remove the axes that are named, each of which must be 1, or all axes that are 1."""
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
    """Return the dimensions without those that are 1; None if one of the others may be 1."""
    kept = []
    for dim in dims:
        if dim == 1:
            continue
        if not isinstance(dim, int) and not ctx.facts.prove_ne(dim, 1):
            return None
        kept.append(dim)
    return tuple(kept)


def squeeze_axes(ctx: NodeContext, dims: Dims, axes: Sequence[int]) -> Dims:
    """Return the dimensions without these axes. Raise InvalidNode if one of them is not 1."""
    for axis in axes:
        fault = partial("axis {} has the dimension {}; only a dimension of 1 can be squeezed".format, axis, dims[axis])
        expect(ctx, dims[axis], "==", 1, fault)
    gone = frozenset(axes)
    return tuple(dim for axis, dim in enumerate(dims) if axis not in gone)


@operator("Unsqueeze")
def unsqueeze(ctx: NodeContext) -> Sequence[ValueType]:
    """Insert a dimension of 1 at each axis, counted in the output."""
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
    """Return the dimensions with a 1 at each axis, counted in the result."""
    rest, new = iter(dims), frozenset(axes)
    return tuple(1 if axis in new else next(rest) for axis in range(len(dims) + len(axes)))


def _axes(ctx: NodeContext) -> tuple[bool, tuple[int, ...] | None, int | None]:
    """Return True if axes are given, the axes, and their number; None for what is unknown, and for the axes if they are
    very many.
    """
    if input_of(ctx, "axes") is None:
        axes = ints_attribute(ctx, "axes")
        return axes is not None, axes, None if axes is None else len(axes)
    if not ctx.has_input(1):
        return False, None, None
    contents = ctx.contents(1)
    axes = None if contents is None else contents.integers
    if axes is not None:
        return True, axes, len(axes)
    # onnx's own inference takes a scalar for one axis, too.
    dims = dims_of(ctx, 1)
    return True, None, 1 if dims == () else vector_length(ctx, 1)


@operator("Expand")
def expand(ctx: NodeContext) -> Sequence[ValueType]:
    """Broadcast the input with the shape that the second input holds."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    target = target_shape(ctx, 1)
    result = broadcast_dims(ctx, (dims, target))
    follow_broadcast(ctx, result)
    return [tensor(dtype, result)]


def follow_broadcast(ctx: NodeContext, dims: Dims | None) -> None:
    """State the elements of the first input, broadcast to these dimensions, if they are static."""
    count = static_count(dims)
    contents = None if count is None else ctx.contents(0)
    if contents is not None and count is not None and dims is not None:
        static = tuple(dim for dim in dims if isinstance(dim, int))
        ctx.set_contents(0, Contents(static, broadcast_items(contents, static, count)))


@operator("Transpose")
def transpose(ctx: NodeContext) -> Sequence[ValueType]:
    """Put the axes into the order of `perm`; reverse them without it."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    perm = ints_attribute(ctx, "perm")
    if perm is not None and sorted(perm) != list(range(len(perm))):
        raise InvalidNode(f"perm {list(perm)} is not a permutation of the axes")
    if dims is None:
        return [tensor(dtype, None if perm is None else (None,) * len(perm))]
    return [tensor(dtype, transposed(ctx, dims, perm))]


def transposed(ctx: NodeContext, dims: Dims, order: Sequence[int] | None) -> Dims:
    """Return the dimensions of the first input in this order, or reversed, and state the elements. Raise InvalidNode
    for an order of another rank.
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
    """State that the output holds the elements of the first input in the same order."""
    if static_count(dims) is None:
        return
    contents = ctx.contents(0)
    if contents is not None:
        ctx.set_contents(0, Contents(tuple(dim for dim in dims if isinstance(dim, int)), contents.items))


Target = tuple["DimLike | None", ...]


@operator("Reshape")
def reshape(ctx: NodeContext) -> Sequence[ValueType]:
    """Give the input's elements the shape that the second input (before version 5 an attribute) holds."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    target = argument(ctx, "shape")
    if target is None:
        return [tensor(dtype, None)]
    result = reshaped(ctx, dims, target, bool(int_attribute(ctx, "allowzero", 0)))
    if -1 in target and any(dim == 0 for dim, wanted in zip(result, target, strict=True) if wanted != -1):
        text = (
            f"the target {spelled_dims(target)} has -1 beside a dimension of 0, from which no size follows; onnxruntime"
        )
        tolerate(ctx, f"{text} and the reference evaluator refuse it", f"as {spelled_dims(result)}", run_by="OpenVINO")
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


def reshaped(ctx: NodeContext, dims: Dims | None, target: Target, allow_zero: bool) -> Dims:
    """Return the dimensions of the result. Raise InvalidNode if no input has as many elements as the target."""
    _check(target, allow_zero)
    if allow_zero:
        return _resolved(ctx, dims, tuple(_with_known_sign(ctx, dim) for dim in target))
    result = list(_resolved(ctx, dims, _copy_zeros(ctx, dims, target)))
    for position, dim in enumerate(target):
        if not isinstance(dim, Dim) or result[position] != dim or _cannot_copy(ctx, dims, position, dim):
            continue
        # A computed element must be at least 1 where 0 would copy another dimension. A 0 leaves as many elements as the
        # input has only if the input is empty for another reason, or beside a -1 that takes up what is left; the author
        # of a computed target means a dimension, and not that.
        if not ctx.require_if_possible(dim, ">=", 1):
            # Only an empty tensor fits the target: then the dimension is copied.
            result[position] = ctx.fresh() if dims is None else dims[position]
    return tuple(result)


def _resolved(ctx: NodeContext, dims: Dims | None, target: Target) -> Dims:
    """Return the target with a size in place of each element that is -1 or unknown. If only one is, its size follows
    from the number of elements of the input.

    dims: those of the input.
    """
    known = tuple(dim for dim in target if dim is not None and dim != -1)
    missing = len(target) - len(known)
    if not missing:
        if dims is not None:
            _require_equal_count(ctx, dims, known)
        return known
    if -1 in target:
        # No size follows from an empty tensor, and runtimes refuse it. So each symbol is required to be at least 1. A
        # dimension that is always 0 is left alone: OpenVINO takes 0 for the -1.
        for dim in known:
            if isinstance(dim, Dim):
                ctx.require_if_possible(dim, ">=", 1)
    if missing > 1 or dims is None:
        return tuple(ctx.fresh() if dim is None or dim == -1 else dim for dim in target)
    if -1 in target:
        # Dimensions on both sides cancel out: in a valid model, none of them is 0.
        dims, known = _without_shared(dims, known)
    remaining = _quotient(ctx, dims, known)
    return tuple(remaining if dim is None or dim == -1 else dim for dim in target)


def _check(target: Target, allow_zero: bool) -> None:
    numbers = [dim for dim in target if isinstance(dim, int)]
    if any(dim < -1 for dim in numbers):
        raise InvalidNode(f"the target shape has a dimension {min(numbers)}; the only negative value allowed is -1")
    if numbers.count(-1) > 1:
        raise InvalidNode("the target shape has more than one -1")
    if allow_zero and 0 in numbers and -1 in numbers:
        raise InvalidNode("with allowzero the target shape cannot have both 0 and -1")


def _copy_zeros(ctx: NodeContext, dims: Dims | None, target: Target) -> Target:
    result: list[DimLike | None] = []
    for position, dim in enumerate(target):
        if isinstance(dim, Dim) and _may_copy(ctx, dims, position, dim):
            result.append(None)
        elif dim != 0:
            result.append(_with_known_sign(ctx, dim))
        elif dims is None:
            result.append(ctx.fresh())
        elif position >= len(dims):
            raise InvalidNode(f"the 0 at position {position} copies a dimension, but the input has rank {len(dims)}")
        else:
            result.append(dims[position])
    return tuple(result)


def _with_known_sign(ctx: NodeContext, dim: DimLike | None) -> DimLike | None:
    # A symbolic element that may be negative may be -1, in an obscure way to say so; then it is the rest.
    return dim if not isinstance(dim, Dim) or ctx.facts.prove_ge(dim, 0) else None


def _cannot_copy(ctx: NodeContext, dims: Dims | None, position: int, dim: Dim) -> bool:
    """Return True if 0 would be invalid, would mean 0 all the same, or is proved not to occur."""
    if dims is not None and (position >= len(dims) or dims[position] == dim):
        return True
    if ctx.facts.prove_ge(dim, 1):
        return True
    there = None if dims is None else dims[position]
    if there is None:
        return False
    return (there // dim) * dim == there or ctx.facts.prove_eq(there, dim) or _vanishes_with(ctx, there, dim)


def _vanishes_with(ctx: NodeContext, there: DimLike, dim: Dim) -> bool:
    """Return True for a dimension that is 0 if the symbol is 0. A broadcast dimension is 0 if one of its operands
    is.
    """
    if not _is_symbol(dim) or isinstance(there, int):
        return False
    operands = ctx.broadcast_operands(there)
    if operands is not None:
        return any(_vanishes_with(ctx, each, dim) for each in operands)
    try:
        return substitute(ctx.facts.solution(there), dict.fromkeys(dim.symbols, 0)) == 0
    except ArithmeticError:
        return False


def _may_copy(ctx: NodeContext, dims: Dims | None, position: int, dim: Dim) -> bool:
    """Return True for an element that can be 0 although no symbol in it is 0 (N % 2, N//3): then it copies a dimension
    of a non-empty input, and its own value does not count.
    """
    if _is_symbol(dim) or _cannot_copy(ctx, dims, position, dim):
        return False
    filled = ctx.facts.child()
    for name in symbols_of(dim):
        if filled.require(Obligation(symbol(name), ">=", 1)) == "contradiction":
            return False
    return not filled.prove_ge(dim, 1)


def _is_symbol(dim: Dim) -> bool:
    return len(dim.symbols) == 1 and dim is symbol(*dim.symbols)


def _require_equal_count(ctx: NodeContext, dims: Dims, result: Dims) -> None:
    # Most dimensions stay what they are, and what is left is a short product.
    gone, left = _without_shared(dims, result)
    if product(gone) == product(left):
        return
    before, after = product(dims), product(result)
    if before == after:
        return

    expect(
        ctx,
        before,
        "==",
        after,
        lambda: f"{before} elements cannot be reshaped to {spelled_dims(result)}, which has {after}",
    )


def _without_shared(dims: Dims, others: Dims) -> tuple[Dims, Dims]:
    left, gone = list(others), list[DimLike]()
    for dim in dims:
        if dim in left:
            left.remove(dim)
        else:
            gone.append(dim)
    return tuple(gone), tuple(left)


def _quotient(ctx: NodeContext, dims: Dims, others: Dims) -> DimLike:
    """Return the dimension that replaces -1, or the only unknown element."""
    total, rest = product(dims), product(others)
    if rest == 0:
        # 0 elements in whatever number of rows: only the total being 0, too, is certain.
        return ctx.fresh()

    quotient = total // rest
    if quotient * rest == total:
        return quotient
    if isinstance(rest, int) and ctx.facts.prove_divisible(total, rest):
        return ctx.facts.simplify(quotient)
    expect(ctx, total % rest, "==", 0, lambda: f"{total} elements cannot be reshaped to a multiple of {rest}")
    return quotient
