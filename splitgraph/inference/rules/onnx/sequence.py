"""Sequences: making them, taking from them, joining them."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, ceildiv, dim_min
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.joining import joined_dims
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    int_attribute,
    like_input,
    merged_dim,
    normal_axis,
    operator,
)
from splitgraph.model.value_type import (
    DTYPE_NAMES,
    MAX_ITEMS,
    UNKNOWN,
    SequenceInfo,
    ValueType,
    scalar,
    sequence,
    tensor,
)


def sequence_of(ctx: NodeContext, index: int) -> ValueType:
    """Return the type of an input that must be a sequence. Raise InvalidNode if it is something else."""
    known = ctx.input(index)
    if known.kind not in ("sequence", "unknown"):
        raise InvalidNode(f"input {index} is a {known.kind}, not a sequence")
    return known


def common_type(elements: Sequence[ValueType]) -> ValueType:
    """Return the type of a sequence of these tensors: a dimension that all of them share, None elsewhere."""
    dtype = next((element.dtype for element in elements if element.dtype is not None), None)
    shapes = [element.shape for element in elements]
    first = shapes[0] if shapes else None
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return sequence(dtype, None)
    columns = zip(*[shape for shape in shapes if shape is not None], strict=True)
    return sequence(dtype, [column[0] if all(dim == column[0] for dim in column) else None for column in columns])


def element_type(ctx: NodeContext, known: ValueType, info: SequenceInfo | None) -> ValueType:
    """Return the type of an element if only the sequence is known."""
    if known.kind != "sequence":
        return tensor(None, None)
    if known.element is not None:
        return known.element
    if known.shape is None:
        return tensor(known.dtype, None)
    return tensor(known.dtype, [_element_dim(ctx, info, axis, dim) for axis, dim in enumerate(known.shape)])


def _element_dim(ctx: NodeContext, info: SequenceInfo | None, axis: int, dim: DimLike | None) -> DimLike | None:
    # A generated symbol in the type of a sequence says that its elements may differ there; only that of a tensor which
    # was split on another axis is one and the same in all parts.
    if not ctx.is_generated(dim):
        return dim
    shared = info is not None and info.axis is not None and (info.squeezed or info.axis != axis)
    return dim if shared else None


def position_in(ctx: NodeContext, index: int, length: DimLike | None, *, end_allowed: bool = False) -> int | None:
    """Return a constant position as it is written; None if it is unknown. Raise InvalidNode if it is out of range."""
    contents = ctx.contents(index)
    position = None if contents is None else contents.scalar
    if not isinstance(position, int):
        return None
    if isinstance(length, int):
        last = length if end_allowed else length - 1
        if not -length <= position <= last:
            raise InvalidNode(
                f"position {position} is out of range for {length} elements; it must be in [{-length}, {last}]"
            )
    return position


@operator("SequenceAt")
def sequence_at(ctx: NodeContext) -> Sequence[ValueType]:
    """Take the element at a position; a negative one counts from the end."""
    known, info = sequence_of(ctx, 0), ctx.sequence(0)
    length = None if info is None else info.length
    position = position_in(ctx, 1, length)
    if info is None or info.elements is None:
        element = element_type(ctx, known, info)
        return [element if info is None or position is None else _part_at(element, info, position)]
    if position is not None:
        return [info.elements[position]]
    if not info.elements:
        raise InvalidNode("the sequence is empty")
    shared = common_type(info.elements)
    return [tensor(shared.dtype, shared.shape)]


def _part_at(element: ValueType, info: SequenceInfo, position: int) -> ValueType:
    """Return the type of the element at a position among parts of one size. The node fails if there is none."""
    if info.size is None or info.total is None or info.axis is None or info.squeezed or element.shape is None:
        return element
    if position >= 0:
        length = dim_min(info.size, info.total - position * info.size)
    elif position == -1:
        length = info.total - (ceildiv(info.total, info.size) - 1) * info.size
    else:
        length = info.size
    return element.with_shape([length if axis == info.axis else dim for axis, dim in enumerate(element.shape)])


@operator("SequenceLength", gives=("int64",))
def sequence_length(ctx: NodeContext) -> Sequence[ValueType]:
    """Count the elements."""
    sequence_of(ctx, 0)
    info = ctx.sequence(0)
    if info is not None and info.length is not None:
        ctx.set_contents(0, scalar(info.length))
    return [tensor("int64", ())]


@operator("SequenceConstruct", gives=())
def sequence_construct(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a sequence of the inputs."""
    elements = []
    for index in range(len(ctx.node.input)):
        dims = dims_of(ctx, index)
        elements.append(ctx.complete(tensor(ctx.input(index).dtype, dims)))
    return [_built(ctx, elements)]


@operator("SequenceEmpty", gives=())
def sequence_empty(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a sequence without elements."""
    dtype = DTYPE_NAMES.get(int_attribute(ctx, "dtype", 1))
    if dtype is None:
        raise InvalidNode(f"attribute 'dtype' is {ctx.attribute('dtype')}, which is not an element type")
    ctx.set_sequence(0, SequenceInfo(0, ()))
    return [sequence(dtype, None)]


def _built(ctx: NodeContext, elements: Sequence[ValueType]) -> ValueType:
    ctx.set_sequence(0, SequenceInfo(len(elements), tuple(elements) if len(elements) <= MAX_ITEMS else None))
    return common_type(elements)


@operator("SequenceInsert", gives=())
def sequence_insert(ctx: NodeContext) -> Sequence[ValueType]:
    """Add one element to the sequence, at the end unless a position is given."""
    known, info = sequence_of(ctx, 0), ctx.sequence(0)
    added = like_input(ctx, 1)
    if known.dtype and added.dtype and known.dtype != added.dtype:
        raise InvalidNode(f"an element of {added.dtype} does not fit a sequence of {known.dtype}")
    length = None if info is None else info.length
    position = position_in(ctx, 2, length, end_allowed=True)
    if info is not None and info.elements is not None and (position is not None or not ctx.has_input(2)):
        elements = list(info.elements)
        elements.insert(len(elements) if position is None else position, added)
        built = _built(ctx, elements)
        return [ValueType("sequence", known.dtype or built.dtype, built.shape)]
    ctx.set_sequence(0, SequenceInfo(None if length is None else length + 1))
    if known.kind == "unknown" or known.element is not None:
        return [UNKNOWN if known.kind == "unknown" else known]
    return [common_type([element_type(ctx, known, info), added])]


@operator("SequenceErase", gives=())
def sequence_erase(ctx: NodeContext) -> Sequence[ValueType]:
    """Remove one element of the sequence, the last unless a position is given."""
    known, info = sequence_of(ctx, 0), ctx.sequence(0)
    length = None if info is None else info.length
    if length == 0:
        raise InvalidNode("the sequence is empty")
    position = position_in(ctx, 1, length)
    if info is None or info.elements is None or (position is None and ctx.has_input(1)):
        ctx.set_sequence(0, SequenceInfo(None if length is None else length - 1))
        return [known]
    elements = list(info.elements)
    del elements[-1 if position is None else position]
    built = _built(ctx, elements)
    return [built if elements else ValueType("sequence", known.dtype, None)]


@operator("ConcatFromSequence", gives=(None,))
def concat_from_sequence(ctx: NodeContext) -> Sequence[ValueType]:
    """Join the elements along an axis, or stack them along a new one."""
    known, info = sequence_of(ctx, 0), ctx.sequence(0)
    axis, stacked = int_attribute(ctx, "axis", 0), bool(int_attribute(ctx, "new_axis", 0))
    if info is not None and info.length == 0:
        raise InvalidNode("the sequence is empty")
    rank = known.rank
    if info is not None and info.elements:
        ranks = {element.rank for element in info.elements if element.rank is not None}
        if len(ranks) > 1:
            raise InvalidNode(f"the elements must have the same rank, not the ranks {sorted(ranks)}")
        rank = next(iter(ranks), rank)
    if known.kind == "unknown" or rank is None:
        return [tensor(known.dtype, None)]
    if not stacked and rank == 0:
        raise InvalidNode("scalars can be joined along a new axis only")
    axis = normal_axis(axis, rank + 1 if stacked else rank)
    result = _joined(ctx, known, info, axis, stacked)
    return [tensor(known.dtype, result)]


def _joined(
    ctx: NodeContext, known: ValueType, info: SequenceInfo | None, axis: int, stacked: bool
) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions of the elements of a sequence, joined along an axis; None if they are not known.

    known: the type of the sequence. info: what is known of its elements. stacked: the axis is a new one.
    """
    if info is not None and _restores_split(info, axis, stacked) and known.shape is not None:
        rest = known.shape if stacked else known.shape[:axis] + known.shape[axis + 1 :]
        return (*rest[:axis], info.total, *rest[axis:])
    if info is not None and info.elements:
        return _joined_elements(ctx, info.elements, axis, stacked)
    if known.shape is None:
        return None
    element = element_type(ctx, known, info).shape or ()
    length = None if info is None else info.length
    if stacked:
        return (*element[:axis], length, *element[axis:])
    part = element[axis]
    total = None if length is None or part is None else length * part
    return (*element[:axis], total, *element[axis + 1 :])


def _restores_split(info: SequenceInfo, axis: int, stacked: bool) -> bool:
    """Return True if the elements are all parts of one dimension, and joining them gives this dimension again."""
    return info.axis == axis and info.total is not None and info.squeezed == stacked


def _joined_elements(
    ctx: NodeContext, elements: Sequence[ValueType], axis: int, stacked: bool
) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions of elements of known number, joined along an axis."""
    shapes = [_dims(element) for element in elements]
    if all(shape is None for shape in shapes):
        return None
    if not stacked:
        return joined_dims(ctx, shapes, axis)
    first = _all_equal(ctx, shapes)
    return (*first[:axis], len(shapes), *first[axis:])


def _dims(element: ValueType) -> Dims | None:
    if element.shape is None:
        return None
    known = tuple(dim for dim in element.shape if dim is not None)
    return known if len(known) == len(element.shape) else None


def _all_equal(ctx: NodeContext, shapes: Sequence[Dims | None]) -> Dims:
    known = [shape for shape in shapes if shape is not None]
    result = list(known[0])
    for shape in known[1:]:
        for axis, dim in enumerate(shape):
            if result[axis] != dim:
                result[axis] = merged_dim(ctx, result[axis], dim, f"the dimensions of the elements on axis {axis}")
    return tuple(result)
