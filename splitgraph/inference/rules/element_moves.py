"""Operators that pick or replace single elements of small tensors."""

from __future__ import annotations

from collections import Counter

from splitgraph.deferred import np
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import Positions, dims_of, int_attribute, positions, rearranged, static_count
from splitgraph.value_type import Contents, Item


def _data(ctx: NodeContext) -> Contents | None:
    return ctx.contents(0) if static_count(dims_of(ctx, 0)) is not None else None


def _indices(ctx: NodeContext) -> Positions | None:
    """The second input as an array, None when one of its elements is not known."""
    contents = ctx.contents(1)
    held = None if contents is None else contents.integers
    if contents is None or held is None:
        return None
    return np.array(held, dtype=np.int64).reshape(contents.shape)


def _along_axis(ctx: NodeContext, data: Contents, indices: Positions) -> Positions | None:
    """The position in the data that each index means; None when one is out of range or the shapes do not fit."""
    rank = len(data.shape)
    axis = int_attribute(ctx, "axis", 0) % rank if rank else 0
    if (
        indices.ndim != rank
        or not rank
        or any(
            size > dim for other, (size, dim) in enumerate(zip(indices.shape, data.shape, strict=True)) if other != axis
        )
    ):
        return None
    where: list[Positions] = [*np.indices(indices.shape, dtype=np.int64)]
    where[axis] = indices
    return _at(data, where)


def _by_tuples(data: Contents, indices: Positions) -> Positions | None:
    """The positions in the data that index tuples on the last axis mean."""
    if not indices.ndim or not 1 <= indices.shape[-1] <= len(data.shape):
        return None
    return _at(data, list(np.moveaxis(indices, -1, 0)))


def _at(data: Contents, where: list[Positions]) -> Positions | None:
    for coordinates, dim in zip(where, data.shape, strict=False):
        if coordinates.size and not (-dim <= coordinates.min() and coordinates.max() < dim):
            return None
    found: Positions = positions(data)[tuple(where)]
    return found


def gather_element_contents(ctx: NodeContext) -> None:
    """Say what GatherElements gives of a small tensor."""
    data = _data(ctx)
    indices = None if data is None else _indices(ctx)
    order = None if data is None or indices is None else _along_axis(ctx, data, indices)
    if data is not None and order is not None:
        ctx.set_contents(0, rearranged(data, order))


def gather_tuple_contents(ctx: NodeContext) -> None:
    """Say what GatherND without batch dimensions gives of a small tensor."""
    data = _data(ctx)
    indices = None if data is None else _indices(ctx)
    order = None if data is None or indices is None else _by_tuples(data, indices)
    if data is not None and order is not None:
        ctx.set_contents(0, rearranged(data, order))


def scatter_contents(ctx: NodeContext) -> None:
    """Say what Scatter, ScatterElements and ScatterND give of a small tensor where they only replace elements."""
    data = _data(ctx)
    if data is None or ctx.attribute("reduction", "none") != "none" or ctx.node.op_type == "TensorScatter":
        return
    indices, updates = _indices(ctx), ctx.contents(2)
    if indices is None or updates is None:
        return
    order = _by_tuples(data, indices) if ctx.node.op_type == "ScatterND" else _along_axis(ctx, data, indices)
    if order is None or order.shape != updates.shape:
        return
    items = list(data.items)
    targets = order.reshape(-1).tolist()
    times = Counter(targets)
    for target, item in zip(targets, updates.items, strict=True):
        # Of two updates for one element, any may be the last.
        replaced: Item = item if times[target] == 1 else None
        items[target] = replaced
    ctx.set_contents(0, Contents(data.shape, tuple(items)))


def compress_contents(ctx: NodeContext, holds: tuple[int, ...]) -> None:
    """Say what Compress gives of a small tensor; holds: its condition."""
    data = _data(ctx)
    if data is None:
        return
    axis = int_attribute(ctx, "axis", 0) if ctx.has_attribute("axis") else None
    if axis is not None and not -len(data.shape) <= axis < len(data.shape):
        return
    length = len(data.items) if axis is None else data.shape[axis]
    if len(holds) <= length:
        ctx.set_contents(0, rearranged(data, np.compress([held != 0 for held in holds], positions(data), axis=axis)))
