"""Operators that select elements by position: Gather*, Scatter*, Compress, NonZero, TopK, OneHot and Unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from splitgraph.dim import Dim, DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import integer_range, require_index_tuples, require_indices, require_reach
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    Positions,
    check_axis,
    dims_of,
    dims_of_rank,
    expect,
    expect_dims,
    input_of,
    int_attribute,
    merged_dim,
    normal_axis,
    operator,
    positions,
    ranked_dims,
    rearranged,
    static_count,
    tolerate,
)
from splitgraph.inference.rules.signatures import expect_shapes, shaped
from splitgraph.model.deferred import np
from splitgraph.model.value_type import MAX_ITEMS, Contents, Item, ValueType, tensor


@operator("Gather")
def gather(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the slices of the data along the axis that the indices name. The indices' dimensions replace the axis."""
    dtype, dims, indices = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    if dims is None:
        return [tensor(dtype, None)]
    if not dims:
        raise InvalidNode("the data is a scalar; it must have at least one axis")
    axis = normal_axis(int_attribute(ctx, "axis", 0), len(dims))
    if indices is None:
        return [tensor(dtype, None)]
    require_indices(ctx, 1, dims, axis)
    _gather_contents(ctx, dims, axis)
    return [tensor(dtype, dims[:axis] + indices + dims[axis + 1 :])]


def _gather_contents(ctx: NodeContext, dims: Dims, axis: int) -> None:
    data = ctx.contents(0) if static_count(dims) is not None else None
    if data is None:
        return
    chosen = ctx.contents(1)
    where = None if chosen is None else chosen.integers
    if chosen is None or where is None:
        return
    # Few elements, taken often, are many.
    if len(where) * len(data.items) <= data.shape[axis] * MAX_ITEMS:
        ctx.set_contents(0, gathered(data, where, chosen.shape, axis))


def gathered(data: Contents, where: Sequence[int], shape: tuple[int, ...], axis: int) -> Contents:
    """Return the slices of contents along an axis at indices, which are in range and have this shape."""
    if len(data.shape) == 1:
        return Contents(shape, tuple([data.items[index] for index in where]))
    return rearranged(data, np.take(positions(data), np.array(where, dtype=np.int64).reshape(shape), axis=axis))


@operator("GatherElements")
def gather_elements(ctx: NodeContext) -> Sequence[ValueType]:
    """Take one element of the data for each of the indices."""
    axis = None if ctx.is_unresolved("axis") else int_attribute(ctx, "axis", 0)
    known = gathered_elements(ctx, axis)
    if axis is not None:
        dims = dims_of(ctx, 0)
        if dims and dims_of(ctx, 1) is not None:
            require_indices(ctx, 1, dims, axis % len(dims))
        _follow_gather(ctx, axis)
    return known


def gathered_elements(ctx: NodeContext, axis: int | None) -> Sequence[ValueType]:
    """Return the type of one element of the data for each of the indices. axis: None if it is not known.
    Raise InvalidNode if the ranks differ.
    """
    dims, indices = dims_of(ctx, 0), dims_of(ctx, 1)
    if dims is not None and axis is not None:
        normal_axis(axis, len(dims))
    if dims is not None and indices is not None and len(dims) != len(indices):
        raise InvalidNode(f"the data has rank {len(dims)} and the indices rank {len(indices)}; the ranks must be equal")
    if dims and indices is not None and axis is not None:
        _require_fitting_indices(ctx, dims, indices, axis % len(dims))
    rank = None if dims is None else (None,) * len(dims)
    return [tensor(ctx.input(0).dtype, rank if indices is None else indices)]


def _require_fitting_indices(ctx: NodeContext, dims: Dims, indices: Dims, axis: int) -> None:
    """Require no more indices than the data has elements, off the axis."""
    # Without indices, the reference evaluator reads no data.
    for other, (dim, size) in enumerate(zip(dims, indices, strict=True) if 0 not in indices else ()):
        if other != axis:
            fault = "the indices have the dimension {} on axis {}; it must be at most that of the data, {}"
            expect(ctx, dim, ">=", size, partial(fault.format, size, other, dim))


@operator("GatherND")
def gather_nd(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the slices of the data that index tuples name, for each batch."""
    batch, indices = int_attribute(ctx, "batch_dims", 0), dims_of(ctx, 1)
    if indices and isinstance(indices[-1], Dim):
        return [tensor(ctx.input(0).dtype, None)]
    known, dims = gathered_tuples(ctx, batch), dims_of(ctx, 0)
    if dims is not None:
        require_index_tuples(ctx, 1, dims, batch)
    if batch == 0:
        _follow_gather(ctx, None)
    return known


def gathered_tuples(ctx: NodeContext, batch: int, *, one_batch: bool = False) -> Sequence[ValueType]:
    """Return the type of the slices of the data that index tuples name, for each batch. one_batch: all batch axes
    become one. Raise InvalidNode if the data has no such slices.
    """
    dtype, dims, indices = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    if dims is None or indices is None:
        return [tensor(dtype, None)]
    if not dims or not indices:
        raise InvalidNode("data and indices must have at least one axis")
    if not 0 <= batch < min(len(dims), len(indices)):
        raise InvalidNode(f"batch_dims {batch} must be less than the ranks {len(dims)} and {len(indices)}")
    depth = indices[-1]
    if not isinstance(depth, int):
        return [tensor(dtype, None)]
    if not 1 <= depth <= len(dims) - batch:
        raise InvalidNode(
            f"the index tuples have {depth} entries; data of rank {len(dims)} allows 1 to {len(dims) - batch}"
        )
    batches: Dims = tuple(
        merged_dim(ctx, dims[axis], indices[axis], f"the batch dimensions on axis {axis}") for axis in range(batch)
    )
    if one_batch and batch > 1:
        batches = (product(batches),)
    return [tensor(dtype, batches + indices[batch:-1] + dims[batch + depth :])]


@operator("Scatter", "ScatterElements", "ScatterND", "TensorScatter")
def scatter(ctx: NodeContext) -> Sequence[ValueType]:
    """Replace some elements of the data."""
    dims = dims_of(ctx, 0)
    if dims is not None and ctx.node.op_type in ("Scatter", "ScatterElements"):
        check_axis(ctx, 0, len(dims))
    if ctx.node.op_type == "TensorScatter":
        _check_update(ctx, dims)
    else:
        _check_updates(ctx, dims)
    _follow_scatter(ctx)
    return [tensor(ctx.input(0).dtype, dims)]


def _check_updates(ctx: NodeContext, dims: Dims | None) -> None:
    """Require one update for each index: an element of the data, or for an index into several axes a slice of it."""
    indices = dims_of(ctx, 1)
    if ctx.node.op_type == "ScatterND":
        _check_tuple_updates(ctx, dims, indices)
    elif indices is not None:
        if dims is not None and len(dims) != len(indices):
            text = f"the data has rank {len(dims)} and the indices rank {len(indices)}; the ranks must be equal"
            raise InvalidNode(text)
        if dims and not ctx.is_unresolved("axis"):
            axis = int_attribute(ctx, "axis", 0) % len(dims)
            _require_fitting_indices(ctx, dims, indices, axis)
            require_indices(ctx, 1, dims, axis)
        expect_dims(ctx, 2, indices, "updates")


def _check_tuple_updates(ctx: NodeContext, dims: Dims | None, indices: Dims | None) -> None:
    """Require index tuples that the data has axes for, and a slice of the data for each of them."""
    if () in (dims, indices):
        raise InvalidNode("data and indices must have at least one axis")
    if dims is None or indices is None:
        return
    depth, updates = indices[-1], dims_of(ctx, 2) if ctx.has_input(2) else None
    if isinstance(depth, Dim) and updates is not None:
        # Only tuples of this length have updates of this rank.
        needed = len(indices) - 1 + len(dims) - len(updates)
        if not 0 <= needed <= len(dims):
            least, most = len(indices) - 1, len(indices) - 1 + len(dims)
            raise InvalidNode(f"updates has rank {len(updates)}; its rank must be in [{least}, {most}]")
        fault = partial(
            "the index tuples have {} entries; updates of rank {} need {}".format, depth, len(updates), needed
        )
        expect(ctx, depth, "==", needed, fault)
        depth = needed
    if not isinstance(depth, int):
        return
    if depth > len(dims):
        raise InvalidNode(f"the index tuples have {depth} entries; data of rank {len(dims)} allows 0 to {len(dims)}")
    expect_dims(ctx, 2, (*indices[:-1], *dims[depth:]), "updates")
    require_index_tuples(ctx, 1, dims)


def _check_update(ctx: NodeContext, dims: Dims | None) -> None:
    """Require an update of the cache's dimensions on all axes but that of the sequence."""
    update = dims_of(ctx, 1)
    if dims is None or update is None:
        return
    if len(dims) != len(update):
        raise InvalidNode(f"the cache has rank {len(dims)} and the update rank {len(update)}; the ranks must be equal")
    starts = ranked_dims(ctx, 2, 1)
    if dims:
        merged_dim(ctx, dims[0], starts[0], "the batch size and the number of write indices")
    sequence = normal_axis(int_attribute(ctx, "axis", -2), len(dims))
    for axis, (cached, new) in enumerate(zip(dims, update, strict=True)):
        if axis != sequence:
            merged_dim(ctx, cached, new, f"the dimensions on axis {axis}")
    fault = f"the update has {update[sequence]} positions, and the cache has {dims[sequence]}"
    expect(ctx, dims[sequence], ">=", update[sequence], lambda: fault)
    if ctx.is_unresolved("mode") or ctx.attribute("mode", "linear") != "linear":
        return
    first, last = integer_range(ctx, 2) or (0, 0)
    if first < 0:
        tolerate(ctx, f"write_indices has {first}; it must be at least 0", run_by="the reference evaluator")
    fault = f"the update of {update[sequence]} from {last} on ends outside of the cache of {dims[sequence]}"
    require_reach(ctx, dims[sequence], last + update[sequence], fault)


@operator("Compress")
def compress(ctx: NodeContext) -> Sequence[ValueType]:
    """Keep the slices along the axis, or the elements of the flattened data, for which the condition holds."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    dims_of_rank(ctx, 1, 1)
    if dims == ():
        raise InvalidNode("the input is a scalar; it must have at least one axis")
    condition = ctx.contents(1)
    holds = None if condition is None else condition.integers
    if holds is not None:
        _follow_compress(ctx, holds)
    if not ctx.has_attribute("axis"):
        return [tensor(dtype, (_kept(ctx, None if dims is None else product(dims), holds),))]
    if dims is None:
        return [tensor(dtype, None)]
    axis = normal_axis(int_attribute(ctx, "axis", 0), len(dims))
    return [tensor(dtype, (*dims[:axis], _kept(ctx, dims[axis], holds), *dims[axis + 1 :]))]


def _kept(ctx: NodeContext, size: DimLike | None, holds: Sequence[int] | None) -> DimLike | None:
    """Return how many of `size` elements a condition keeps; None if that is not certain."""
    if holds is None or size is None:
        return None
    kept = [position for position, chosen in enumerate(holds) if chosen]
    # What lies beyond the last element onnxruntime passes over and numpy refuses; the specification is silent.
    return len(kept) if not kept or ctx.facts.prove_ge(size, kept[-1] + 1) else None


@operator("NonZero", gives=("int64",))
def non_zero(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the coordinates of the elements that are not 0, one column for each."""
    dims = dims_of(ctx, 0)
    contents = ctx.contents(0) if static_count(dims) is not None else None
    truths = None if contents is None else contents.integers
    # A scalar has no row by the specification, and one in onnxruntime.
    rank: DimLike | None = len(dims) if dims else None
    if contents is None or truths is None or not contents.shape:
        return [tensor("int64", (rank, None))]
    where = np.nonzero(np.array([truth != 0 for truth in truths]).reshape(contents.shape))
    coordinates = tuple(int(coordinate) for row in where for coordinate in row)
    ctx.set_contents(0, Contents((len(where), len(where[0])), coordinates))
    return [tensor("int64", (len(where), len(where[0])))]


@operator("TopK", gives=(0, "int64"))
def top_k(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the k largest or smallest elements along the axis, and their positions."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    count: DimLike | None
    if input_of(ctx, "k") is None:
        count = int_attribute(ctx, "k", -1)
    else:
        expect_shapes(ctx, "", "K: 1")
        contents = ctx.contents(1)
        count = None if contents is None or len(contents.items) != 1 else contents.dims[0]
    if dims is None:
        return [tensor(dtype, None), tensor("int64", None)]
    axis = normal_axis(int_attribute(ctx, "axis", -1), len(dims))
    if count is not None:
        fault = partial("k is {}, more than the {} elements on axis {}".format, count, dims[axis], axis)
        expect(ctx, dims[axis], ">=", count, fault)
    result = (*dims[:axis], required_dim(ctx, count), *dims[axis + 1 :])
    return [tensor(dtype, result), tensor("int64", result)]


@operator("OneHot", gives=(2,))
def one_hot(ctx: NodeContext) -> Sequence[ValueType]:
    """Give each index a new axis of `depth` elements, of which one is on."""
    dtype, indices = ctx.input(2).dtype, dims_of(ctx, 0)
    merged_dim(ctx, ranked_dims(ctx, 2, 1)[0], 2, "the values, off and on, and 2")
    _require_one_element(ctx, 1, "depth")
    if indices is None:
        return [tensor(dtype, None)]
    if not indices:
        raise InvalidNode("the indices are a scalar; they must have at least one axis")
    axis = normal_axis(int_attribute(ctx, "axis", -1), len(indices) + 1)
    _refuse_negative_indices(ctx)
    contents = ctx.contents(1)
    depth = None if contents is None else contents.scalar
    whole = int(depth) if isinstance(depth, float) and depth.is_integer() else depth
    count = required_dim(ctx, whole if isinstance(whole, (int, Dim)) else None)
    return [tensor(dtype, (*indices[:axis], count, *indices[axis:]))]


def _refuse_negative_indices(ctx: NodeContext) -> None:
    """Raise InvalidNode for a negative index before version 11. From version 11 on it counts from the end."""
    contents = ctx.contents(0) if ctx.since_version < 11 else None
    least = min(
        (item for item in (() if contents is None else contents.items) if isinstance(item, (int, float))), default=0
    )
    if least < 0:
        raise InvalidNode(f"an index is {least}; before version 11 indices must be at least 0")


def _require_one_element(ctx: NodeContext, index: int, what: str) -> None:
    dims = dims_of(ctx, index)
    if dims is not None and len(dims) > 1:
        raise InvalidNode(f"{what} has rank {len(dims)}; it must be a scalar or have one element")
    if dims:
        merged_dim(ctx, dims[0], 1, f"the elements of {what} and 1")


@operator("Unique", gives=(0, "int64", "int64", "int64"))
def unique(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the distinct elements, or slices along the axis; the first position of each, where each element went, and
    how often each occurs.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    count = ctx.fresh()
    vector = tensor("int64", (count,))
    if not ctx.has_attribute("axis"):
        inverse = None if dims is None else product(dims)
        return [tensor(dtype, (count,)), vector, tensor("int64", (inverse,)), vector]
    if dims is None:
        return [tensor(dtype, None), vector, tensor("int64", (None,)), vector]
    axis = normal_axis(int_attribute(ctx, "axis", 0), len(dims))
    result = (*dims[:axis], count, *dims[axis + 1 :])
    return [tensor(dtype, result), vector, tensor("int64", (dims[axis],)), vector]


# A row of batch, class and box for each box that is kept.
shaped("NonMaxSuppression", "boxes: B N 4", "scores: B C N", gives="int64 K 3")


def _data(ctx: NodeContext) -> Contents | None:
    return ctx.contents(0) if static_count(dims_of(ctx, 0)) is not None else None


def _indices(ctx: NodeContext) -> Positions | None:
    """Return the second input as an array; None if one of its elements is unknown."""
    contents = ctx.contents(1)
    integers = None if contents is None else contents.integers
    if contents is None or integers is None:
        return None
    return np.array(integers, dtype=np.int64).reshape(contents.shape)


def _located(data: Contents, indices: Positions, axis: int | None) -> Positions | None:
    """Return the positions in the data for indices along an axis, or without axis for index tuples on the last axis of
    the indices; None if one is out of range or the shapes do not fit.
    """
    rank = len(data.shape)
    if axis is None:
        if not indices.ndim or not 1 <= indices.shape[-1] <= rank:
            return None
        where: list[Positions] = list(np.moveaxis(indices, -1, 0))
    else:
        if indices.ndim != rank or not rank:
            return None
        sizes = enumerate(zip(indices.shape, data.shape, strict=True))
        if any(size > dim for other, (size, dim) in sizes if other != axis % rank):
            return None
        where = [*np.indices(indices.shape, dtype=np.int64)]
        where[axis % rank] = indices
    for coordinates, dim in zip(where, data.shape, strict=False):
        if coordinates.size and not (-dim <= coordinates.min() and coordinates.max() < dim):
            return None
    order: Positions = positions(data)[tuple(where)]
    return order


def _follow_gather(ctx: NodeContext, axis: int | None) -> None:
    """State the elements that indices take from a small tensor; axis: as for `_located`."""
    data = _data(ctx)
    indices = None if data is None else _indices(ctx)
    order = None if data is None or indices is None else _located(data, indices, axis)
    if data is not None and order is not None:
        ctx.set_contents(0, rearranged(data, order))


def _follow_scatter(ctx: NodeContext) -> None:
    """State the elements that Scatter, ScatterElements and ScatterND leave in a small tensor if they only replace
    elements.
    """
    data = _data(ctx)
    if data is None or ctx.attribute("reduction", "none") != "none" or ctx.node.op_type == "TensorScatter":
        return
    indices, updates = _indices(ctx), ctx.contents(2)
    if indices is None or updates is None:
        return
    order = _located(data, indices, None if ctx.node.op_type == "ScatterND" else int_attribute(ctx, "axis", 0))
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


def _follow_compress(ctx: NodeContext, holds: tuple[int, ...]) -> None:
    """State the elements that Compress keeps of a small tensor; holds: its condition."""
    data = _data(ctx)
    if data is None:
        return
    axis = int_attribute(ctx, "axis", 0) if ctx.has_attribute("axis") else None
    if axis is not None and not -len(data.shape) <= axis < len(data.shape):
        return
    length = len(data.items) if axis is None else data.shape[axis]
    if len(holds) <= length:
        ctx.set_contents(0, rearranged(data, np.compress([truth != 0 for truth in holds], positions(data), axis=axis)))
