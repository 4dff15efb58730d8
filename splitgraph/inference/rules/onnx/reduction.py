"""Reductions over axes: Reduce*, ArgMax, ArgMin, and normalisations that also give the statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.arithmetic import BinaryItem
from splitgraph.inference.rules.broadcasting import expect_to_fit
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dims_of_rank,
    expect_dims,
    expect_one_element,
    input_of,
    int_attribute,
    ints_attribute,
    like_input,
    merged_dim,
    normal_axes,
    normal_axis,
    operator,
    positions,
    ranked_dims,
    scalar_dim,
    static_count,
    tolerate,
)
from splitgraph.model.schemas.kinds import REDUCTIONS
from splitgraph.model.value_type import DTYPE_NAMES, Contents, Item, ValueType, tensor, vector

# How the rules follow the elements.
COMBINED: Mapping[str, BinaryItem] = {
    "ReduceSum": exact.add,
    "ReduceProd": exact.multiply,
    "ReduceMax": exact.largest,
    "ReduceMin": exact.smallest,
}
# Of nothing, where that is an integer of every type.
_OF_NOTHING = {"ReduceSum": 0, "ReduceProd": 1}

# By default, the mean is over batch, height and width.
_MEAN_VARIANCE_AXES = (0, 2, 3)


def _reduce(ctx: NodeContext) -> Sequence[ValueType]:
    """Reduce the input over the axes, which stay as 1 unless `keepdims` is 0."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    given, axes = _axes(ctx)
    keep = bool(int_attribute(ctx, "keepdims", 1))
    if given and axes is None:
        return [tensor(dtype, None if dims is None else dims_after_unknown_axes(dims, keep))]
    if not axes and int_attribute(ctx, "noop_with_empty_axes", 0):
        ctx.set_contents(0, ctx.contents(0) if ctx.node.op_type in _OF_NOTHING else None)
        return [tensor(dtype, dims)]
    if dims is None:
        return [tensor(dtype, () if not axes and not keep else None)]
    where = normal_axes(axes, len(dims)) if axes else tuple(range(len(dims)))
    return reduced(ctx, COMBINED.get(ctx.node.op_type), dims, where, keep)


def reduced(
    ctx: NodeContext, item: BinaryItem | None, dims: Dims, axes: Sequence[int], keep: bool
) -> Sequence[ValueType]:
    """Reduce the input over known axes, and state the elements if `item` combines them."""
    dtype, result = ctx.input(0).dtype, reduced_dims(dims, axes, keep)
    contents = ctx.contents(0) if item is not None and static_count(dims) is not None else None
    if item is not None and contents is not None and dtype is not None:
        _reduce_contents(ctx, item, contents, axes, dtype, result)
    return [tensor(dtype, result)]


operator(*REDUCTIONS)(_reduce)


def reduced_dims(dims: Dims, axes: Sequence[int], keep: bool) -> Dims:
    """Return the dimensions without the axes, or with 1 in their places."""
    if keep:
        return tuple([1 if axis in axes else dim for axis, dim in enumerate(dims)])
    return tuple([dim for axis, dim in enumerate(dims) if axis not in axes])


def dims_after_unknown_axes(dims: Dims, keep: bool) -> tuple[DimLike | None, ...] | None:
    """Return the dimensions after a reduction over unknown axes: each one stays or becomes 1."""
    return tuple(1 if dim == 1 else None for dim in dims) if keep else None


def _axes(ctx: NodeContext) -> tuple[bool, tuple[int, ...] | None]:
    """Return True if axes are given, and the axes; None if they are unknown."""
    if input_of(ctx, "axes") is None:
        axes = ints_attribute(ctx, "axes")
        return axes is not None, axes
    if not ctx.has_input(1):
        return False, None
    contents = ctx.contents(1)
    return True, None if contents is None else contents.integers


def _reduce_contents(
    ctx: NodeContext, item: BinaryItem, contents: Contents, axes: Sequence[int], dtype: str, result: Dims
) -> None:
    """State the elements of the output for small contents, which are reduced with `item` along the axes."""
    rest = [axis for axis in range(len(contents.shape)) if axis not in axes]
    count = static_count(result)
    adds_up = ctx.node.op_type in _OF_NOTHING and not exact.is_integer_type(dtype)
    if count is None or (
        adds_up and any(isinstance(value, float) and not value.is_integer() for value in contents.items)
    ):
        # Runtimes add fractions in different orders, and round after each.
        return
    groups = [list(range(len(contents.items)))]
    if rest:
        groups = positions(contents).transpose([*rest, *axes]).reshape(count, -1 if count else 0).tolist()
    items: list[Item] = []
    facts = ctx.facts
    for group in groups:
        if not group:
            items.append(_OF_NOTHING.get(ctx.node.op_type) if exact.is_integer_type(dtype) else None)
            continue
        value = contents.items[group[0]]
        for position in group[1:]:
            value = item(facts, dtype, value, contents.items[position])
        items.append(value)
    ctx.set_contents(0, Contents(tuple(dim for dim in result if isinstance(dim, int)), tuple(items)))


@operator("CumSum")
def cumulative_sum(ctx: NodeContext) -> Sequence[ValueType]:
    """Sum all elements up to each one along an axis. Vectors of integers are followed."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    expect_one_element(ctx, 1, "axis")
    axis = scalar_dim(ctx, 1)
    if dims is not None and isinstance(axis, int):
        normal_axis(axis, len(dims))
    contents = ctx.contents(0) if dims is not None and len(dims) == 1 and static_count(dims) is not None else None
    if contents is not None and dtype is not None and exact.is_integer_type(dtype):
        backward = bool(int_attribute(ctx, "reverse", 0))
        sums: list[Item] = [0]
        for item in reversed(contents.items) if backward else contents.items:
            sums.append(exact.add(ctx.facts, dtype, sums[-1], item))
        kept = sums[:-1] if int_attribute(ctx, "exclusive", 0) else sums[1:]
        ctx.set_contents(0, vector(reversed(kept) if backward else kept))
    return [tensor(dtype, dims)]


@operator("ArgMax", "ArgMin", gives=("int64",))
def arg_extreme(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the position of the extreme along one axis."""
    dims = dims_of(ctx, 0)
    if dims is None:
        return [tensor("int64", None)]
    axis = normal_axis(int_attribute(ctx, "axis", 0), len(dims))
    return [tensor("int64", reduced_dims(dims, (axis,), bool(int_attribute(ctx, "keepdims", 1))))]


@operator("LayerNormalization", gives=(0, None, None))
def layer_normalization(ctx: NodeContext) -> Sequence[ValueType]:
    """Normalise the input, and return mean and inverse deviation, with 1 for each axis that is normalised."""
    output, statistics = normalized(ctx)
    return [output, statistics, statistics]


def normalized(ctx: NodeContext) -> tuple[ValueType, ValueType]:
    """Return the types of a normalised input and of its statistics, for axes from `axis` on."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    stash = DTYPE_NAMES.get(int_attribute(ctx, "stash_type", 1))
    if dims is None:
        return tensor(dtype, None), tensor(stash, None)
    expect_to_fit(ctx, 1, dims, "the scale")
    expect_to_fit(ctx, 2, dims, "the bias")
    if ctx.is_unresolved("axis"):
        return tensor(dtype, dims), tensor(stash, (None,) * len(dims))
    axis = normal_axis(int_attribute(ctx, "axis", -1), len(dims))
    return tensor(dtype, dims), tensor(stash, dims[:axis] + (1,) * (len(dims) - axis))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(ctx: NodeContext) -> Sequence[ValueType]:
    """Subtract the mean over the axes and divide by the deviation. onnxruntime and OpenVINO accept a repeated axis.

    Below opset 9 the operator was experimental, without axes, and onnxruntime takes any rank.
    """
    dims, axes = dims_of(ctx, 0), ints_attribute(ctx, "axes")
    if dims is not None and ctx.opset >= 9 and not ctx.is_unresolved("axes"):
        chosen = [normal_axis(axis, len(dims)) for axis in axes or _MEAN_VARIANCE_AXES]
        if len(set(chosen)) < len(chosen):
            text = f"axes {list(axes or ())} contain an axis twice"
            tolerate(ctx, text, "as with the axis once", "onnxruntime and OpenVINO")
    return [tensor(ctx.input(0).dtype, dims)]


@operator("BatchNormalization")
def batch_normalization(ctx: NodeContext) -> Sequence[ValueType]:
    """Normalise the input; in training also return the statistics, each of the shape of its input."""
    dims = dims_of(ctx, 0)
    known = tensor(ctx.input(0).dtype, dims)
    # Versions 6 and 7 may have statistics for each element instead of each channel.
    if 6 <= ctx.since_version < 9 and not int_attribute(ctx, "spatial", 1):
        for index in range(1, 5):
            if dims is not None and ctx.since_version >= 7:
                expect_dims(ctx, index, dims[1:], f"input {index} (spatial is 0)")
            elif dims is not None:
                _expect_length_of_6(ctx, index, dims)
    else:
        channels = None if dims is None else (dims[1] if len(dims) > 1 else 1)
        for index in range(1, 5):
            length = ranked_dims(ctx, index, 1)[0]
            merged_dim(ctx, channels, length, f"the number of channels and the length of input {index}")
    if len(ctx.node.output) == 1:
        return [known]
    if ctx.since_version >= 14 and not int_attribute(ctx, "training_mode", 0):
        raise InvalidNode(f"{len(ctx.node.output)} outputs without training_mode; only one is allowed")
    if ctx.since_version < 9:
        mean, variance = (like_input(ctx, index) for index in (3, 4))
    else:
        channels = dims[1] if dims is not None and len(dims) > 1 else None
        what = "the numbers of channels and of statistics"
        mean, variance = (
            tensor(ctx.input(index).dtype, (merged_dim(ctx, channels, ranked_dims(ctx, index, 1)[0], what),))
            for index in (3, 4)
        )
    return [known, mean, variance, mean, variance]


def _expect_length_of_6(ctx: NodeContext, index: int, dims: Dims) -> None:
    """Check a parameter of BatchNormalization-6 with spatial=0. By its document, every parameter has one dimension, so
    it has an element for each channel, or one for each activation.
    """
    parameter = dims_of_rank(ctx, index, 1)
    if parameter is None or not all(isinstance(dim, int) for dim in (*parameter, *dims[1:])):
        return
    allowed = {math.prod(dims[1:2]), math.prod(dims[1:])}
    if parameter[0] not in allowed:
        one, other = min(allowed), max(allowed)
        raise InvalidNode(
            f"input {index} has {parameter[0]} elements; it must have {one} (channels) or {other} (activations)"
        )
