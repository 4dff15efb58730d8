"""Operators that join or enlarge tensors: Concat, Tile and Pad; and Range."""

from __future__ import annotations

import math
from collections.abc import Sequence

from splitgraph.dim import Dim, DimLike, ceildiv, dim_max, sum_dims
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.arithmetic import fit, is_integer_type, round_to
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    argument,
    contents_or_unknown,
    dims_of,
    expect,
    expect_one_element,
    int_attribute,
    known_dtype,
    merged_dim,
    normal_axes,
    normal_axis,
    operator,
    positions,
    rearranged,
    static_count,
    tolerate,
    vector_dims,
)
from splitgraph.model.deferred import np
from splitgraph.model.scopes import plain_domain
from splitgraph.model.value_type import MAX_ITEMS, Contents, Item, ValueType, tensor, vector


@operator("Concat")
def concat(ctx: NodeContext) -> Sequence[ValueType]:
    """Join the inputs along the axis; their other dimensions must agree."""
    # Version 1 has an axis of 1 where none is given; later versions always give one.
    return concatenated(ctx, int_attribute(ctx, "axis", 1))


def concatenated(ctx: NodeContext, axis: int) -> Sequence[ValueType]:
    """Join all inputs along the axis, and state the elements. Raise InvalidNode if the inputs do not fit."""
    indices = range(len(ctx.node.input))
    dtype = known_dtype(ctx, indices)
    shapes = [dims_of(ctx, index) for index in indices]
    known = [dims for dims in shapes if dims is not None]
    if not known:
        return [tensor(dtype, None)]
    rank = len(known[0])
    if any(len(dims) != rank for dims in known):
        raise InvalidNode(f"the inputs must have the same rank, not the ranks {sorted({len(dims) for dims in known})}")
    if rank == 0:
        raise InvalidNode("scalars cannot be concatenated")
    axis = normal_axis(axis, rank)
    result = joined_dims(ctx, shapes, axis)
    _concat_contents(ctx, result, axis)
    return [tensor(dtype, result)]


def joined_dims(ctx: NodeContext, shapes: Sequence[Dims | None], axis: int) -> Dims:
    """Return the dimensions of tensors of one rank, joined along an axis. If one shape is unknown, so is the dimension
    of the axis.
    """
    first = next(dims for dims in shapes if dims is not None)
    result = list(first)
    for dims in shapes:
        if dims is None or dims is first:
            continue
        for other, dim in enumerate(dims):
            if other != axis and result[other] != dim:
                result[other] = merged_dim(ctx, result[other], dim, f"the dimensions on axis {other}")
    lengths = [dims[axis] for dims in shapes if dims is not None]
    result[axis] = sum_dims(lengths) if len(lengths) == len(shapes) else ctx.fresh()
    return tuple(result)


def _concat_contents(ctx: NodeContext, dims: Dims, axis: int) -> None:
    if static_count(dims) is None:
        return
    known = [ctx.contents(index) for index in range(len(ctx.node.input))]
    if all(contents is None for contents in known):
        return
    parts = [contents or contents_or_unknown(ctx, index) for index, contents in enumerate(known)]
    whole = [part for part in parts if part is not None]
    if len(whole) != len(parts):
        return
    items = tuple([item for part in whole for item in part.items])
    if len(dims) == 1:
        ctx.set_contents(0, Contents((len(items),), items))
        return
    first, order = 0, []
    for part in whole:
        order.append(positions(part) + first)
        first += len(part.items)
    ctx.set_contents(0, rearranged(Contents((len(items),), items), np.concatenate(order, axis=axis)))


@operator("Tile")
def tile(ctx: NodeContext) -> Sequence[ValueType]:
    """Repeat the input along each axis, as often as the second input says."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if ctx.since_version < 6:
        return _tile_one_axis(ctx, dims)
    repeats = vector_dims(ctx, 1)
    if dims is None:
        return [tensor(dtype, None if repeats is None else (None,) * len(repeats))]
    if repeats is None:
        return [tensor(dtype, (None,) * len(dims))]
    if len(repeats) != len(dims):
        raise InvalidNode(f"{len(repeats)} repeats for an input of rank {len(dims)}; one is required for each axis")
    return [tensor(dtype, tiled(ctx, dims, repeats))]


def tiled(ctx: NodeContext, dims: Dims, repeats: Sequence[DimLike | None]) -> list[DimLike | None]:
    """Return the dimensions, each times its repeat, and state the elements. Raise InvalidNode for a negative repeat."""
    result = [_times(dim, repeat) for dim, repeat in zip(dims, repeats, strict=True)]
    counts = [repeat for repeat in repeats if isinstance(repeat, int)]
    contents = ctx.contents(0) if static_count(result) is not None and len(counts) == len(dims) else None
    if contents is not None:
        order = positions(contents).reshape([dim for dim in dims if isinstance(dim, int)])
        ctx.set_contents(0, rearranged(contents, np.tile(order, counts)))
    return result


def _times(dim: DimLike, repeat: DimLike | None) -> DimLike | None:
    if isinstance(repeat, int) and repeat < 0:
        raise InvalidNode(f"a repeat is {repeat}; it must be at least 0")
    if dim == 0:
        return 0
    return None if repeat is None else dim * repeat


def _tile_one_axis(ctx: NodeContext, dims: Dims | None) -> Sequence[ValueType]:
    # Version 1 takes the number of tiles and the axis as scalars of the input's own type.
    tiles, axis = ctx.contents(1), ctx.contents(2)
    count, where = (None if contents is None else contents.scalar for contents in (tiles, axis))
    if dims is None:
        return [tensor(ctx.input(0).dtype, None)]
    result: list[DimLike | None] = list(dims)
    if not isinstance(where, (int, float)) or where != int(where):
        result = [None] * len(dims)
    else:
        position = normal_axis(int(where), len(dims))
        known = isinstance(count, (int, float)) and count == int(count)
        result[position] = _times(dims[position], int(count) if known and isinstance(count, (int, float)) else None)
    return [tensor(ctx.input(0).dtype, result)]


@operator("Pad")
def pad(ctx: NodeContext) -> Sequence[ValueType]:
    """Add elements at both ends of each axis, or remove elements for negative pads."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    expect_one_element(ctx, 2, "constant_value")
    if ctx.since_version >= 18 and ctx.has_input(3):
        _expect_two_pads_an_axis(ctx)
    pads = argument(ctx, "paddings" if ctx.since_version < 2 else "pads")
    if dims is None:
        return [tensor(dtype, None)]
    rank = len(dims)
    axes = _pad_axes(ctx, rank)
    if pads is None or axes is None:
        return [tensor(dtype, (None,) * rank)]
    result = padded(ctx, dims, axes, pads)
    if ctx.attribute("mode", "constant") == "constant" and ctx.since_version >= 11 and static_count(result) is not None:
        _pad_contents(ctx, axes, pads)
    return [tensor(dtype, result)]


def padded(ctx: NodeContext, dims: Dims, axes: Sequence[int], pads: Sequence[DimLike | None]) -> list[DimLike]:
    """Return the dimensions with pads at the start of each of these axes, and then at the end of each. Raise
    InvalidNode for another number of pads.
    """
    if len(pads) != 2 * len(axes):
        raise InvalidNode(f"{len(pads)} pads for {len(axes)} axes; two are required for each")
    result: list[DimLike] = list(dims)
    for position, axis in enumerate(axes):
        before, after = pads[position], pads[position + len(axes)]
        result[axis] = ctx.fresh() if before is None or after is None else required_sum(ctx, dims[axis], before, after)
    return result


def _pad_contents(ctx: NodeContext, axes: tuple[int, ...], pads: Sequence[DimLike | None]) -> None:
    contents = ctx.contents(0)
    if contents is None or not all(isinstance(pad, int) and pad >= 0 for pad in pads):
        return
    added: Item = 0 if is_integer_type(ctx.input(0).dtype) else None
    if ctx.has_input(2):
        value = ctx.contents(2)
        added = None if value is None else value.scalar
    widths = [(0, 0)] * len(contents.shape)
    counts = [pad for pad in pads if isinstance(pad, int)]
    for position, axis in enumerate(axes):
        widths[axis] = (counts[position], counts[position + len(axes)])
    # NumPy pads no scalar.
    order = np.pad(positions(contents), widths, constant_values=len(contents.items)) if widths else positions(contents)
    ctx.set_contents(0, rearranged(Contents(contents.shape, (*contents.items, added)), order))


def _expect_two_pads_an_axis(ctx: NodeContext) -> None:
    """Check the lengths of pads and axes, which are known before their elements."""
    pads, axes = dims_of(ctx, 1), dims_of(ctx, 3)
    if pads is None or axes is None or len(pads) != 1 or len(axes) != 1:
        return
    (count,), (of_axes,) = pads, axes
    if isinstance(count, int) and isinstance(of_axes, int) and count != 2 * of_axes:
        raise InvalidNode(f"{count} pads for {of_axes} axes; two are required for each")


def _pad_axes(ctx: NodeContext, rank: int) -> tuple[int, ...] | None:
    if ctx.since_version < 18 or not ctx.has_input(3):
        return tuple(range(rank))
    contents = ctx.contents(3)
    if contents is not None and len(contents.shape) != 1:
        raise InvalidNode(f"the axes must be a 1-D tensor, not of rank {len(contents.shape)}")
    axes = None if contents is None else contents.integers
    return None if axes is None else normal_axes(axes, rank)


def required_sum(ctx: NodeContext, dim: DimLike, before: DimLike, after: DimLike) -> DimLike:
    """Return a dimension with pads. Raise InvalidNode if it is negative."""
    total = dim + before + after
    expect(ctx, total, ">=", 0, lambda: f"pads {before} and {after} remove more than the dimension {dim}")
    return total


@operator("Range")
def range_(ctx: NodeContext) -> Sequence[ValueType]:
    """Count from start up to limit in steps of delta."""
    return [counted_out(ctx, known_dtype(ctx, (0, 1, 2)))]


def counted_out(ctx: NodeContext, dtype: str | None) -> ValueType:
    """Return the type of the numbers from the first input up to the second in steps of the third, or of 1 without one.
    Raise InvalidNode for a step of 0.
    """
    bounds: list[Item] = []
    for index in range(3):
        dims = dims_of(ctx, index)
        if dims not in (None, (), (1,)) and not (dims is not None and len(dims) == 1 and isinstance(dims[0], Dim)):
            raise InvalidNode(f"input {index} must be a scalar")
        if dims == (1,) and ctx.node.op_type == "Range" and plain_domain(ctx.node.domain) == "":
            tolerate(ctx, f"input {index} has the shape [1]; it must be a scalar")
        contents = ctx.contents(index, needed=True)
        bounds.append(None if contents is None else contents.scalar)
    start, limit, delta = bounds
    if not ctx.has_input(2):
        delta = 1
    if delta == 0:
        raise InvalidNode("delta is 0; it must not be 0")
    count = _range_count(ctx, start, limit, delta)
    if not isinstance(count, int) or count > MAX_ITEMS:
        return tensor(dtype, (count,))
    if isinstance(start, (int, Dim)) and isinstance(delta, (int, Dim)):
        numbers = [start + index * delta for index in range(count)]
        ctx.set_contents(0, vector(numbers if dtype is None else [fit(ctx.facts, dtype, each) for each in numbers]))
    return tensor(dtype, (count,))


def _range_count(ctx: NodeContext, start: Item, limit: Item, delta: Item) -> DimLike | None:
    first, last, step = _whole(start), _whole(limit), _whole(delta)
    if first is None or last is None or step is None:
        return _float_count(start, limit, delta)
    if isinstance(step, int):
        distance = last - first if step > 0 else first - last
        step = abs(step)
    elif ctx.facts.prove_ge(step, 1):
        distance = last - first
    else:
        return None
    if not ctx.facts.prove_ge(distance, 0):
        distance = dim_max(0, distance)
    return distance if step == 1 else ceildiv(distance, step)


def _whole(item: Item) -> DimLike | None:
    if isinstance(item, float) and item.is_integer() and abs(item) < 2**24:
        return int(item)
    return item if isinstance(item, (int, Dim)) else None


def _float_count(start: Item, limit: Item, delta: Item) -> int | None:
    """Return the length of a range of constants; None if it depends on the precision of the runtime's division."""
    if (
        not isinstance(start, (int, float))
        or not isinstance(limit, (int, float))
        or not isinstance(delta, (int, float))
    ):
        return None
    quotient = (limit - start) / delta
    single = _single_quotient(start, limit, delta)
    if single is None or not math.isfinite(quotient) or math.ceil(quotient) != math.ceil(single):
        return None
    return max(math.ceil(quotient), 0)


def _single_quotient(start: float, limit: float, delta: float) -> float | None:
    """Return the quotient of a runtime that rounds to float32 after each step; None if it is infinite."""
    first, last, step = (round_to("float32", float(item)) for item in (start, limit, delta))
    if first is None or last is None or not step:
        return None
    distance = round_to("float32", last - first)
    return None if distance is None else round_to("float32", distance / step)
