"""Reshape in all its versions."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import Dim, DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    int_attribute,
    ints_attribute,
    operator,
    vector_dims,
)
from splitgraph.inference.rules.shape import keep_contents
from splitgraph.value_type import ValueType, tensor

Target = tuple["DimLike | None", ...]

_SHAPE_INPUT_SINCE = 5


@operator("Reshape")
def reshape(ctx: NodeContext) -> Sequence[ValueType]:
    """The input's elements in the shape that the second input (before version 5 an attribute) holds."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    target: Target | None
    if ctx.since_version < _SHAPE_INPUT_SINCE:
        target = ints_attribute(ctx, "shape")
        if target is None:
            raise InvalidNode("attribute 'shape' is required")
    else:
        target = vector_dims(ctx, 1)
    if target is None:
        return [tensor(dtype, None)]
    result = reshaped(ctx, dims, target, bool(int_attribute(ctx, "allowzero", 0)))
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


def reshaped(ctx: NodeContext, dims: Dims | None, target: Target, allow_zero: bool) -> Dims:
    """The dimensions of the result. Raises InvalidNode when no input has as many elements as the target."""
    _check(target, allow_zero)
    copied = _copy_zeros(ctx, dims, target, allow_zero)
    rest = [position for position, dim in enumerate(copied) if dim is None or dim == -1]
    if not rest:
        result = tuple(dim for dim in copied if dim is not None)
        if dims is not None:
            _require_equal_count(ctx, dims, result)
        return result
    if len(rest) > 1 or dims is None:
        return tuple(ctx.fresh() if dim is None or dim == -1 else dim for dim in copied)
    others = tuple(dim for dim in copied if dim is not None and dim != -1)
    remaining = _quotient(ctx, dims, others)
    return tuple(remaining if dim is None or dim == -1 else dim for dim in copied)


def _check(target: Target, allow_zero: bool) -> None:
    numbers = [dim for dim in target if isinstance(dim, int)]
    if any(dim < -1 for dim in numbers):
        raise InvalidNode(f"the target shape has a dimension {min(numbers)}; only -1 is allowed below 0")
    if numbers.count(-1) > 1:
        raise InvalidNode("the target shape has more than one -1")
    if allow_zero and 0 in numbers and -1 in numbers:
        raise InvalidNode("with allowzero the target shape cannot have both 0 and -1")


def _copy_zeros(ctx: NodeContext, dims: Dims | None, target: Target, allow_zero: bool) -> Target:
    if allow_zero:
        return tuple(_checked_sign(ctx, dim) for dim in target)
    result: list[DimLike | None] = []
    for position, dim in enumerate(target):
        if isinstance(dim, Dim):
            result.append(_computed(ctx, dims, target, position))
        elif dim != 0:
            result.append(dim)
        elif dims is None:
            result.append(ctx.fresh())
        elif position >= len(dims):
            raise InvalidNode(
                f"0 at position {position} copies a dimension that the input of rank {len(dims)} does not have"
            )
        else:
            result.append(dims[position])
    return tuple(result)


def _computed(ctx: NodeContext, dims: Dims | None, target: Target, position: int) -> DimLike | None:
    """A symbolic element of the target as a dimension.

    Where it happens to be 0 the operator copies the input's dimension instead. That is the same thing when the input
    has this very dimension there, and otherwise leaves an empty tensor empty or makes the element counts disagree; only
    beside a -1 (which then takes up what is left) can a target that has nothing to do with the input be valid with
    another result. The author of such a target means a dimension, so that it is at least 1 is an obligation there.
    """
    facts, dim = ctx.facts, target[position]
    if dim is None or facts.prove_ge(dim, 1) or (dims is not None and position < len(dims) and dims[position] == dim):
        return dim
    if not facts.prove_ge(dim, 0):
        # It may be -1, in an obscure way to say so: then it is the rest.
        return _checked_sign(ctx, dim)
    open_ends = sum(1 for other in target if other is None or other == -1)
    if open_ends and (dims is None or not _divides(dim, product(dims))):
        ctx.require(dim, ">=", 1, message=f"{ctx.node.op_type}-{ctx.since_version}: the target dimension {dim} is 0")
    return dim


def _checked_sign(ctx: NodeContext, dim: DimLike | None) -> DimLike | None:
    return dim if not isinstance(dim, Dim) or ctx.facts.prove_ge(dim, 0) else None


def _divides(divisor: DimLike, dividend: DimLike) -> bool:
    return (dividend // divisor) * divisor == dividend


def _require_equal_count(ctx: NodeContext, dims: Dims, result: Dims) -> None:
    before, after = product(dims), product(result)
    if before == after or ctx.facts.prove_eq(before, after):
        return
    found = f"{before} elements cannot be reshaped to {_text(result)}, which has {after}"
    if isinstance(before, int) and isinstance(after, int):
        raise InvalidNode(found)
    ctx.require(before, "==", after, message=f"{ctx.node.op_type}-{ctx.since_version}: {found}")


def _quotient(ctx: NodeContext, dims: Dims, others: Dims) -> DimLike:
    """The dimension that is left for -1, or for the only element that is unknown."""
    total, rest = product(dims), product(others)
    if rest == 0:
        # 0 elements in whatever number of rows: only the total being 0, too, is certain.
        return ctx.fresh()
    found = f"{total} elements cannot be reshaped to a multiple of {rest}"
    if isinstance(total, int) and isinstance(rest, int):
        if total % rest:
            raise InvalidNode(found)
        return total // rest
    quotient = total // rest
    if quotient * rest == total:
        return quotient
    if isinstance(rest, int) and ctx.facts.prove_divisible(total, rest):
        return ctx.facts.simplify(quotient)
    ctx.require(total % rest, "==", 0, message=f"{ctx.node.op_type}-{ctx.since_version}: {found}")
    return quotient


def _text(dims: Dims) -> str:
    return f"[{', '.join(str(dim) for dim in dims)}]"
