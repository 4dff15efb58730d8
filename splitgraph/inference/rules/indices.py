"""What constant indices require of the dimensions that they select from.

No runtime sees such a fault before it runs the node: in a branch that may not run, it is no error of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import Dims, FailsWhenRun, label, tolerate


def require_indices(
    ctx: NodeContext, index: int, dims: Dims, axis: int, *, ignored: int | None = None, from_end: bool = True
) -> None:
    """Require that each known element of an input is a position on an axis of dimensions. Raise FailsWhenRun if one is
    not. Nothing is required where no element is selected. ignored: an element that is no position. from_end: a negative
    one counts from the end.
    """
    indices = [item for item in _integers(ctx, index) if item != ignored]
    if indices and not from_end and min(indices) < 0:
        raise FailsWhenRun(f"index {min(indices)} is out of range on axis {axis}; it must be at least 0")
    if not _selects_nothing(dims, (axis,)):
        _require_in_range(ctx, indices, dims[axis], axis)


def require_index_tuples(ctx: NodeContext, index: int, dims: Dims, first: int = 0) -> None:
    """Do the same for tuples along the last axis of the input, whose entries are positions on the axes from `first`
    on.
    """
    contents = ctx.contents(index)
    depth = contents.shape[-1] if contents is not None and contents.shape else 0
    axes = range(first, min(first + depth, len(dims)))
    if contents is None or _selects_nothing(dims, axes):
        return
    for entry, axis in enumerate(axes):
        items = contents.items[entry::depth]
        _require_in_range(ctx, [item for item in items if isinstance(item, int)], dims[axis], axis)


def integer_range(ctx: NodeContext, index: int) -> tuple[int, int] | None:
    """Return the smallest and the largest known integer of an input; None if there is none."""
    known = _integers(ctx, index)
    return (min(known), max(known)) if known else None


def require_lengths(ctx: NodeContext, index: int, most: DimLike | None, what: str, run_by: str) -> None:
    """Require that the dimension `most` is at least as large as constant lengths. Report those that are below 0, or
    above a number. run_by: who runs them all the same.
    """
    known = integer_range(ctx, index)
    if known is None:
        return
    if known[0] < 0:
        tolerate(ctx, f"{what} has the length {known[0]}; no length is below 0", run_by=run_by)
        return
    fits = most is None or (
        known[1] <= most if isinstance(most, int) else ctx.require_if_possible(most, ">=", known[1])
    )
    if not fits:
        tolerate(ctx, f"{what} has the length {known[1]}; it must be at most {most}", run_by=run_by)


def require_reach(ctx: NodeContext, dim: DimLike, least: DimLike, fault: str) -> None:
    """Require that a dimension is at least so large when the node runs. Raise FailsWhenRun if it is a smaller
    number.
    """
    if isinstance(dim, int) and isinstance(least, int):
        if dim < least:
            raise FailsWhenRun(fault)
        return
    ctx.require(dim, ">=", least, message=f"{label(ctx)}: {fault}", when_run=True)


def _integers(ctx: NodeContext, index: int) -> list[int]:
    contents = ctx.contents(index)
    return [] if contents is None else [item for item in contents.items if isinstance(item, int)]


def _selects_nothing(dims: Dims, axes: Sequence[int]) -> bool:
    """Return True if a dimension off the axes is 0: engines differ in whether they look at the indices then."""
    return any(dim == 0 for axis, dim in enumerate(dims) if axis not in axes)


def _require_in_range(ctx: NodeContext, indices: Sequence[int], dim: DimLike, axis: int) -> None:
    if not indices:
        return
    for index, least in ((max(indices), max(indices) + 1), (min(indices), -min(indices))):
        allowed = f"[{-dim}, {dim - 1}]" if isinstance(dim, int) else f"the range of the dimension {dim}"
        require_reach(ctx, dim, least, f"index {index} is out of range on axis {axis}; it must be in {allowed}")
