"""OpenVINO's StridedSlice; masks say how each entry is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from splitgraph.dim import Dim, DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.slicing import Bounds, slice_contents, slice_length
from splitgraph.inference.rules.openvino.attributes import layer, listed, numbers
from splitgraph.inference.rules.operands import Dims, InvalidNode, at_most, dims_of, static_count
from splitgraph.value_type import Contents, ValueType, tensor

# Past the first element, for a backward slice that goes to the end.
_BEFORE_ALL, _AFTER_ALL = -(2**31), 2**31 - 1


@dataclass(slots=True)
class _Entries:
    """What the inputs and masks say of each entry."""

    begin: Bounds
    end: Bounds
    steps: Bounds
    masks: dict[str, tuple[int, ...]]

    def has(self, mask: str, position: int) -> bool:
        """True when this bit of a mask is set; a mask may be shorter than the inputs."""
        bits = self.masks[mask]
        return position < len(bits) and bits[position] != 0


@dataclass(slots=True)
class _Sliced:
    """The result as far as the entries have been read: its dimensions, and the slices of the data's axes."""

    dims: list[DimLike | None] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    starts: list[DimLike | None] = field(default_factory=list)
    ends: list[DimLike | None] = field(default_factory=list)
    steps: list[DimLike | None] = field(default_factory=list)


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


@layer("StridedSlice")
def strided_slice(ctx: NodeContext) -> Sequence[ValueType]:
    """The elements from begin to end in steps; entries also add an axis, take one element of it, or skip some."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    begin, end = listed(ctx, 1), listed(ctx, 2)
    steps = listed(ctx, 3) if ctx.has_input(3) else None
    count = next((len(given) for given in (begin, end, steps) if given is not None), None)
    if dims is None or count is None:
        return [tensor(dtype, None)]
    unknown: Bounds = (None,) * count
    entries = _Entries(
        begin or unknown,
        end or unknown,
        (steps or unknown) if ctx.has_input(3) else (1,) * count,
        {mask: numbers(ctx, mask) or () for mask in _MASKS},
    )
    if not len(entries.begin) == len(entries.end) == len(entries.steps):
        found = f"{len(entries.begin)} begins, {len(entries.end)} ends and {len(entries.steps)} strides"
        raise InvalidNode(f"{found}; the numbers must be equal")
    result = _read(ctx, dims, entries, count)
    held = slice_contents(ctx, dims, result.axes, tuple(result.starts), tuple(result.ends), tuple(result.steps))
    if held is not None and static_count(result.dims) == len(held.items):
        ctx.set_contents(0, Contents(tuple(dim for dim in result.dims if isinstance(dim, int)), held.items))
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
