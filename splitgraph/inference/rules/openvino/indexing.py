"""OpenVINO's layers that select elements by position: Slice, Gather*, Scatter*, TopK, OneHot, NonZero and StridedSlice;
and those that reduce segments: bags of embeddings, sparse rows, labels of sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from splitgraph.dim import Dim, DimLike, product
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import require_index_tuples, require_indices
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.onnx.indexing import gathered, gathered_elements, gathered_tuples
from splitgraph.inference.rules.onnx.slicing import Bounds, filled_bounds, slice_contents, slice_length, sliced
from splitgraph.inference.rules.openvino.attributes import (
    element_type,
    layer,
    listed,
    listed_axes,
    number,
    numbers,
    operator_set,
)
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    at_most,
    dims_of,
    merged_dim,
    normal_axis,
    scalar_dim,
    static_count,
)
from splitgraph.inference.rules.signatures import shapes
from splitgraph.model.value_type import Contents, ValueType, tensor

# From this operator set on, Gather counts a negative index from the end.
_NEGATIVE_INDICES_SINCE = 8


@layer("Slice")
def slice_(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the elements from start to stop in steps along the axes of the last input, or the first axes."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    lists = [listed(ctx, index) for index in (1, 2, 3)]
    count = next((len(bounds) for bounds in lists if bounds is not None), None)
    axes = listed_axes(ctx, 4) if ctx.has_input(4) else None
    if dims is None:
        return [tensor(dtype, None)]
    if count is None or (ctx.has_input(4) and axes is None):
        return [tensor(dtype, (None,) * len(dims))]
    starts, stops, steps = ((None,) * count if bounds is None else bounds for bounds in lists)
    return sliced(ctx, dtype, dims, starts, stops, axes, steps)


@layer("Gather")
def gather(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the slices along the axis that the indices name, for each batch. The indices' dimensions replace the
    axis.
    """
    dtype, dims, indices = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    axis = scalar_dim(ctx, 2)
    if dims is None or indices is None:
        return [tensor(dtype, None)]
    if not dims:
        raise InvalidNode("the data is a scalar; it must have at least one axis")
    batch = number(ctx, "batch_dims", 0)
    if not -len(indices) <= batch <= len(indices):
        raise InvalidNode(f"batch_dims {batch} is out of range for indices of rank {len(indices)}")
    batch += len(indices) if batch < 0 else 0
    if not isinstance(axis, int):
        rank = len(dims) + len(indices) - 1 - batch
        return [tensor(dtype, (None,) * rank)]
    axis = normal_axis(axis, len(dims))
    if batch > axis:
        raise InvalidNode(f"batch_dims {batch} is greater than the axis {axis}")
    batches = tuple(merged_dim(ctx, dims[i], indices[i], f"the batch dimensions on axis {i}") for i in range(batch))
    if not batch:
        _gather_contents(ctx, dims, axis)
    return [tensor(dtype, batches + dims[batch:axis] + indices[batch:] + dims[axis + 1 :])]


def _gather_contents(ctx: NodeContext, dims: Dims, axis: int) -> None:
    data = ctx.contents(0) if static_count(dims) is not None else None
    indices = None if data is None else ctx.contents(1)
    where = None if indices is None else indices.integers
    if data is None or indices is None or where is None:
        return
    length = data.shape[axis]
    lowest = -length if operator_set(ctx) >= _NEGATIVE_INDICES_SINCE else 0
    if not all(lowest <= index < length for index in where):
        # What lies outside is 0 to some versions and left open by others.
        return
    ctx.set_contents(0, gathered(data, where, indices.shape, axis))


@layer("GatherElements")
def gather_elements(ctx: NodeContext) -> Sequence[ValueType]:
    """Take one element of the data for each of the indices, which have the data's dimensions off the axis."""
    axis, dims, indices = number(ctx, "axis", 0), dims_of(ctx, 0), dims_of(ctx, 1)
    known = gathered_elements(ctx, axis)
    if dims and indices is not None:
        axis = normal_axis(axis, len(dims))
        for other, (dim, size) in enumerate(zip(dims, indices, strict=True)):
            if other != axis:
                merged_dim(ctx, dim, size, f"the dimensions of data and indices on axis {other}")
        require_indices(ctx, 1, dims, axis)
    return known


@layer("GatherND")
def gather_nd(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the slices of the data that index tuples name, for each batch. Before operator set 8, all batch axes become
    one.
    """
    batch, dims = number(ctx, "batch_dims", 0), dims_of(ctx, 0)
    known = gathered_tuples(ctx, batch, one_batch=operator_set(ctx) < _NEGATIVE_INDICES_SINCE)
    if dims is not None:
        require_index_tuples(ctx, 1, dims, batch)
    return known


@layer("ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate")
def scatter(ctx: NodeContext) -> Sequence[ValueType]:
    """Replace some elements of the data. ScatterUpdate on vectors is followed."""
    dims = dims_of(ctx, 0)
    axis = scalar_dim(ctx, 3)
    if dims and isinstance(axis, int) and ctx.node.op_type != "ScatterNDUpdate":
        # ScatterElementsUpdate counts a negative index from the end since operator set 12.
        from_end = ctx.node.op_type == "ScatterElementsUpdate"
        require_indices(ctx, 1, dims, normal_axis(axis, len(dims)), from_end=from_end)
    if ctx.node.op_type == "ScatterUpdate" and dims is not None and len(dims) == 1:
        _update_contents(ctx, dims)
    return [tensor(ctx.input(0).dtype, dims)]


def _update_contents(ctx: NodeContext, dims: Dims) -> None:
    data = ctx.contents(0) if static_count(dims) is not None else None
    indices, updates = ctx.contents(1), ctx.contents(2)
    where = None if indices is None else indices.integers
    if data is None or where is None or updates is None or len(where) != len(updates.items):
        return
    if len(set(where)) != len(where) or not all(0 <= index < len(data.items) for index in where):
        return
    items = list(data.items)
    for index, item in zip(where, updates.items, strict=True):
        items[index] = item
    ctx.set_contents(0, Contents(data.shape, tuple(items)))


@layer("NonZero", gives=(None,))
def non_zero(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the coordinates of the elements that are not 0, one column for each."""
    dims, dtype = dims_of(ctx, 0), element_type(ctx, "output_type", "int64")
    if dims is None:
        return [tensor(dtype, (None, None))]
    return [tensor(dtype, (len(dims), at_most(ctx, product(dims))))]


@layer("Unique", gives=(0, None, None, None))
def unique(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the distinct elements or slices, the first position of each, which one each of the input is, and how often
    each occurs.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    index_type, count_type = (element_type(ctx, f"{name}_element_type", "int64") for name in ("index", "count"))
    axis = scalar_dim(ctx, 1) if ctx.has_input(1) else None
    shape: tuple[DimLike | None, ...] | None = None
    among = product(dims) if dims is not None and not ctx.has_input(1) else None
    if dims is not None and isinstance(axis, int):
        axis = normal_axis(axis, len(dims))
        among = dims[axis]
    count = ctx.fresh() if among is None else at_most(ctx, among, least=1)
    if not ctx.has_input(1):
        shape = (count,)
    elif dims is not None:
        shape = (*dims[:axis], count, *dims[axis + 1 :]) if isinstance(axis, int) else (None,) * len(dims)
    return [
        tensor(dtype, shape),
        tensor(index_type, (count,)),
        tensor(index_type, (among,)),
        tensor(count_type, (count,)),
    ]


@layer("TopK", gives=(0, None))
def top_k(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the k largest or smallest elements along the axis, and their positions."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    index_type = element_type(ctx, "index_element_type", "int32")
    if dims is None:
        return [tensor(dtype, None), tensor(index_type, None)]
    axis = normal_axis(number(ctx, "axis", 0), len(dims))
    known = scalar_dim(ctx, 1)
    count = at_most(ctx, dims[axis]) if known is None else required_dim(ctx, known)
    result = (*dims[:axis], count, *dims[axis + 1 :])
    return [tensor(dtype, result), tensor(index_type, result)]


@layer("OneHot", gives=(2,))
def one_hot(ctx: NodeContext) -> Sequence[ValueType]:
    """Give each index a new axis of `depth` elements, of which one is on."""
    dtype, indices = ctx.input(2).dtype, dims_of(ctx, 0)
    if indices is None:
        return [tensor(dtype, None)]
    axis = normal_axis(number(ctx, "axis", -1), len(indices) + 1)
    depth: DimLike = required_dim(ctx, scalar_dim(ctx, 1))
    return [tensor(dtype, (*indices[:axis], depth, *indices[axis:]))]


# Past the first element, for a backward slice that goes to the end.
_BEFORE_ALL, _AFTER_ALL = -(2**31), 2**31 - 1


@dataclass(slots=True)
class _Entries:
    """The inputs and masks of each entry."""

    begin: Bounds
    end: Bounds
    steps: Bounds
    masks: dict[str, tuple[int, ...]]

    def has(self, mask: str, position: int) -> bool:
        """Return True if this bit of a mask is set; a mask may be shorter than the inputs."""
        bits = self.masks[mask]
        return position < len(bits) and bits[position] != 0


@dataclass(slots=True)
class _Sliced:
    """The result of the entries that have been read: its dimensions, and the slices of the data's axes."""

    dims: list[DimLike | None] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    starts: list[DimLike | None] = field(default_factory=list)
    ends: list[DimLike | None] = field(default_factory=list)
    steps: list[DimLike | None] = field(default_factory=list)


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


@layer("StridedSlice")
def strided_slice(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the elements from begin to end in steps. Entries also add an axis, take one element of it, or skip some."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    begin, end = listed(ctx, 1), listed(ctx, 2)
    known = filled_bounds(begin, end, listed(ctx, 3) if ctx.has_input(3) else None)
    if dims is None or known is None:
        return [tensor(dtype, None)]
    begins, ends, steps = known
    count = len(begins)
    masks = {mask: numbers(ctx, mask) or () for mask in _MASKS}
    entries = _Entries(begins, ends, steps if ctx.has_input(3) else (1,) * count, masks)
    if not len(entries.begin) == len(entries.end) == len(entries.steps):
        counts = f"{len(entries.begin)} begins, {len(entries.end)} ends and {len(entries.steps)} strides"
        raise InvalidNode(f"{counts}; the numbers must be equal")
    result = _read(ctx, dims, entries, count)
    contents = slice_contents(ctx, dims, result.axes, tuple(result.starts), tuple(result.ends), tuple(result.steps))
    if contents is not None and static_count(result.dims) == len(contents.items):
        ctx.set_contents(0, Contents(tuple(dim for dim in result.dims if isinstance(dim, int)), contents.items))
    return [tensor(dtype, result.dims)]


def _read(ctx: NodeContext, dims: Dims, entries: _Entries, count: int) -> _Sliced:
    result, axis = _Sliced(), 0
    for position in range(count):
        if entries.has("ellipsis_mask", position):
            taken = sum(not entries.has("new_axis_mask", later) for later in range(position + 1, count))
            skipped = max(len(dims) - axis - taken, 0)
            result.dims += dims[axis : axis + skipped]
            axis += skipped
        elif entries.has("new_axis_mask", position):
            result.dims.append(1)
        elif axis >= len(dims):
            raise InvalidNode(f"there are more entries than the {len(dims)} axes of the data")
        else:
            _slice_axis(ctx, dims[axis], axis, entries, position, result)
            axis += 1
    result.dims += dims[axis:]
    return result


def _slice_axis(ctx: NodeContext, dim: DimLike, axis: int, entries: _Entries, position: int, result: _Sliced) -> None:
    start, end, step = entries.begin[position], entries.end[position], entries.steps[position]
    if step == 0:
        raise InvalidNode("a stride is 0; strides must not be 0")
    if entries.has("shrink_axis_mask", position):
        # For -1, the element after it is the end itself.
        end = None if start is None else _AFTER_ALL if start == -1 else start + 1
        step = 1
    else:
        backward = isinstance(step, int) and step < 0
        known = isinstance(step, int) or (isinstance(step, Dim) and ctx.facts.prove_ge(step, 1))
        if entries.has("begin_mask", position):
            start = (-1 if backward else 0) if known else None
        if entries.has("end_mask", position):
            end = (_BEFORE_ALL if backward else _AFTER_ALL) if known else None
        length = slice_length(ctx.facts, dim, start, end, step)
        result.dims.append(at_most(ctx, dim) if length is None else length)
    result.axes.append(axis)
    result.starts.append(start)
    result.ends.append(end)
    result.steps.append(step)


# Which input has an element for each bag.
_BAGS = {
    "EmbeddingBagOffsets": 2,
    "EmbeddingBagOffsetsSum": 2,
    "EmbeddingBagPacked": 1,
    "EmbeddingBagPackedSum": 1,
}


@layer(*_BAGS)
def bags(ctx: NodeContext) -> Sequence[ValueType]:
    """Sum or average the embeddings of each bag."""
    dtype, table, listed_bags = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, _BAGS[ctx.node.op_type])
    if not table:
        return [tensor(dtype, None)]
    require_indices(ctx, 1, table, 0, from_end=False)
    return [tensor(dtype, (listed_bags[0] if listed_bags else None, *table[1:]))]


@layer("EmbeddingSegmentsSum", "SegmentMax")
def segments(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the sum or maximum of each segment. An input holds the number of segments."""
    dtype, table = ctx.input(0).dtype, dims_of(ctx, 0)
    place = 3 if ctx.node.op_type == "EmbeddingSegmentsSum" else 2
    count = required_dim(ctx, scalar_dim(ctx, place)) if ctx.has_input(place) else None
    if table and ctx.node.op_type == "EmbeddingSegmentsSum":
        require_indices(ctx, 1, table, 0, from_end=False)
    return [tensor(dtype, (count, *table[1:]) if table else None)]


@layer("SparseFillEmptyRows", gives=(None, 0, "bool"))
def filled_rows(ctx: NodeContext) -> Sequence[ValueType]:
    """Add an element to each empty row; return indices, values, and which rows were empty."""
    shape = listed(ctx, 1)
    rows = None if not shape else shape[0]
    count = ctx.fresh()
    return [
        tensor(ctx.input(2).dtype, (count, 2)),
        tensor(ctx.input(0).dtype, (count,)),
        tensor("bool", (None if rows is None else required_dim(ctx, rows),)),
    ]


@layer("CTCGreedyDecoder", "CTCGreedyDecoderSeqLen", "CTCLoss", gives=(None, None))
def connectionist(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the labels of each sequence, or their loss. The first version has the time first, the others the batch."""
    if ctx.node.op_type == "CTCGreedyDecoder":
        return shapes(ctx, "data: T B C", "sequence_mask: T B", gives="0 B T 1 1")
    inputs = ("data: B T C", "sequence_length: B")
    if ctx.node.op_type == "CTCLoss":
        return shapes(ctx, *inputs, gives="0 B")
    classes, lengths = (element_type(ctx, f"{name}_type", "int32") for name in ("classes_index", "sequence_length"))
    return shapes(ctx, *inputs, gives=(f"{classes} B T", f"{lengths} B"))
