"""Slice in all its versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splitgraph.dim import Dim, DimLike, Facts, Obligation, ceildiv, dim_max, dim_min
from splitgraph.inference.computed_values import OPEN_END, is_slice_disputed
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    Positions,
    argument,
    at_most,
    dims_of,
    has_argument,
    normal_axes,
    operator,
    positions,
    rearranged,
    static_count,
)
from splitgraph.model.value_type import Contents, ValueType, tensor

Bounds = tuple["DimLike | None", ...]
IsNonempty = Callable[[Dim], bool]


@operator("Slice", "DynamicSlice")
def slice_(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the elements from starts to ends in steps, clamped to the input. The experimental DynamicSlice became
    Slice-10.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    lists = [argument(ctx, name) for name in ("starts", "ends", "axes", "steps")]
    axes = lists[2]
    bounds = filled_bounds(*lists)
    if bounds is None or (has_argument(ctx, "axes") and (axes is None or None in axes)):
        return [tensor(dtype, None if dims is None else (None,) * len(dims))]
    starts, ends, _, steps = bounds
    listed = None if axes is None else tuple(axis for axis in axes if isinstance(axis, int))
    return sliced(ctx, dtype, dims, starts, ends, listed, steps if has_argument(ctx, "steps") else None)


def filled_bounds(*lists: Bounds | None) -> list[Bounds] | None:
    """Return the lists, each unknown one with as many unknown elements as another has; None if all are unknown."""
    count = next((len(bounds) for bounds in lists if bounds is not None), None)
    return None if count is None else [bounds or (None,) * count for bounds in lists]


def sliced(
    ctx: NodeContext,
    dtype: str | None,
    dims: Dims | None,
    starts: Bounds,
    ends: Bounds,
    axes: tuple[int, ...] | None,
    steps: Bounds | None,
) -> Sequence[ValueType]:
    """Take the elements of the first input from starts to ends in steps along these axes (by default the first ones),
    and state them. Raise InvalidNode for bounds that do not belong together.
    """
    if axes is None:
        axes = tuple(range(len(starts)))
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise InvalidNode(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, {len(steps)} steps; the numbers must be equal"
        )
    if 0 in steps:
        raise InvalidNode("a step is 0; steps must not be 0")
    if dims is None:
        return [tensor(dtype, None)]
    result = list(dims)
    normal = normal_axes(axes, len(dims))
    for axis, start, end, step in zip(normal, starts, ends, steps, strict=True):
        _require_a_direction(ctx, step)
        length = slice_length(ctx.facts, dims[axis], start, end, step, ctx.is_nonempty)
        if length is None:
            length = 0 if ctx.facts.prove_eq(dims[axis], 0) else at_most(ctx, dims[axis])
        result[axis] = length
    ctx.set_contents(0, slice_contents(ctx, dims, normal, starts, ends, steps))
    return [tensor(dtype, result)]


def _require_a_direction(ctx: NodeContext, step: DimLike | None) -> None:
    """Require that a symbolic step of known sign is at least 1, or at most -1."""
    if not isinstance(step, Dim):
        return
    if ctx.facts.prove_ge(step, 0):
        ctx.require(step, ">=", 1, message="a step is 0; steps must not be 0")
    elif ctx.facts.prove_ge(0, step):
        ctx.require(-1, ">=", step, message="a step is 0; steps must not be 0")


def slice_contents(
    ctx: NodeContext, dims: Dims, axes: Sequence[int], starts: Bounds, ends: Bounds, steps: Bounds
) -> Contents | None:
    """Return the elements of a slice of the first input, which has these dimensions."""
    whole: list[slice] = [slice(None)] * len(dims)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dim = dims[axis]
        if dim == 0:
            continue
        if not isinstance(start, int) or not isinstance(end, int) or not isinstance(step, int):
            return None
        if not isinstance(dim, int) or is_slice_disputed(dim, start, end, step):
            return None
        # Below the first element there is no index for a backward slice to end at; None says it.
        stop = None if step < 0 and end < -dim else end
        whole[axis] = slice(start, stop, step)
    # Asked for last: the elements of weights are read when somebody wants them.
    contents = ctx.contents(0) if static_count(dims) is not None else None
    if contents is None:
        return None
    if len(dims) == 1:
        kept = contents.items[whole[0]]
        return Contents((len(kept),), kept)
    order: Positions = positions(contents)[tuple(whole)]
    return rearranged(contents, order)


def slice_length(
    facts: Facts,
    dim: DimLike,
    start: DimLike | None,
    end: DimLike | None,
    step: DimLike | None,
    is_nonempty: IsNonempty | None = None,
) -> DimLike | None:
    """Return the length of a slice of a dimension; None if it is unknown. is_nonempty: True for a dimension that may be
    assumed to be at least 1; without it, only proofs count.
    """
    if dim == 0:
        return 0
    if start is None or end is None or step is None:
        return None
    if facts.prove_ge(-1, step):
        return _backward_length(facts, dim, start, end, -step, is_nonempty)
    if not facts.prove_ge(step, 1):
        return None
    low, high = clamped_position(facts, dim, start, is_nonempty), clamped_position(facts, dim, end, is_nonempty)
    if low is None or high is None:
        return None
    in_order = _in_order(facts, start, end) or facts.prove_ge(high, low)
    length = high - low if in_order else dim_max(0, high - low)
    return length if step == 1 else ceildiv(length, step)


def _in_order(facts: Facts, start: DimLike, end: DimLike) -> bool:
    # Two positions counted from the same side stay in order when both are clamped.
    same_side = (facts.prove_ge(start, 0) and facts.prove_ge(end, 0)) or (
        facts.prove_ge(-1, start) and facts.prove_ge(-1, end)
    )
    return same_side and facts.prove_ge(end, start)


def clamped_position(
    facts: Facts, dim: DimLike, position: DimLike, is_nonempty: IsNonempty | None = None
) -> DimLike | None:
    """Return a start or end of a forward slice as a position between 0 and the dimension; None if its sign is unknown.
    is_nonempty: as for `slice_length`.
    """
    if isinstance(position, int) and isinstance(dim, int):
        return min(max(position + dim if position < 0 else position, 0), dim)
    if isinstance(position, int) and position >= OPEN_END and isinstance(dim, Dim):
        return dim
    if facts.prove_ge(position, 0):
        if facts.prove_ge(dim, position):
            return position
        return dim if facts.prove_ge(position, dim) else dim_min(position, dim)
    if facts.prove_ge(-1, position) or _counts_from_end(facts, dim, position, is_nonempty):
        return dim + position if facts.prove_ge(dim + position, 0) else dim_max(0, dim + position)
    # The last: where there is not even one it is -1, which counts from the end of nothing.
    return dim_max(0, position) if position == dim - 1 else None


def _counts_from_end(facts: Facts, dim: DimLike, position: DimLike, is_nonempty: IsNonempty | None) -> bool:
    """Return True for a position that is below 0, or is 0 only if the dimension is 0, too: -N or -2*N of N."""
    if not isinstance(position, Dim) or not facts.prove_ge(0, position):
        return False
    at_start = facts.child()
    if at_start.require(Obligation(position, "==", 0)) == "contradiction" or at_start.prove_eq(dim, 0):
        return True
    size = -position
    return is_nonempty is not None and isinstance(size, Dim) and is_nonempty(size)


def _backward_length(
    facts: Facts, dim: DimLike, start: DimLike, end: DimLike, step: DimLike, is_nonempty: IsNonempty | None
) -> DimLike | None:
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        if is_slice_disputed(dim, start, end, -step):
            return None
        return len(range(dim)[slice(start, None if end < -dim else end, -step)])
    first, last = _first_backward(facts, dim, start, is_nonempty), _last_backward(facts, dim, end)
    return None if first is None or last is None else dim_max(0, ceildiv(first - last, step))


def _first_backward(facts: Facts, dim: DimLike, start: DimLike, is_nonempty: IsNonempty | None) -> DimLike | None:
    """Return the first position of a backward slice, at least -1; None if it is unknown, or runtimes disagree: they do
    where there is no such position from the end. is_nonempty: as for `slice_length`.
    """
    if start == -1 or (isinstance(start, int) and start >= OPEN_END and isinstance(dim, Dim)):
        return dim - 1
    if facts.prove_ge(start, 0):
        return dim_min(start, dim - 1)
    if not facts.prove_ge(-1, start):
        return None
    positions_from_it = dim + start + 1
    exists = facts.prove_ge(positions_from_it, 1) or (
        is_nonempty is not None and isinstance(positions_from_it, Dim) and is_nonempty(positions_from_it)
    )
    return dim + start if exists else None


def _last_backward(facts: Facts, dim: DimLike, end: DimLike) -> DimLike | None:
    """Return the position before which a backward slice ends; -1 is past the first element."""
    if isinstance(end, int) and end <= -OPEN_END and isinstance(dim, Dim):
        return -1
    if isinstance(end, int) and end >= OPEN_END:
        return None
    if facts.prove_ge(end, 0):
        return end
    return dim_max(-1, dim + end) if facts.prove_ge(-1, end) else None
