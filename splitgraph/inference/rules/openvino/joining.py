"""OpenVINO's layers that join or enlarge tensors: Concat, Tile and Pad; and Range."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.joining import concatenated, counted_out, required_sum, tiled
from splitgraph.inference.rules.openvino.attributes import element_type, layer, listed, number
from splitgraph.inference.rules.operands import InvalidNode, dims_of, known_dtype
from splitgraph.value_type import Item, ValueType, tensor


@layer("Concat")
def concat(ctx: NodeContext) -> Sequence[ValueType]:
    """The inputs one after another along the axis; their other dimensions must agree."""
    return [concatenated(ctx, number(ctx, "axis", 0))]


@layer("Tile")
def tile(ctx: NodeContext) -> Sequence[ValueType]:
    """The input repeated along each axis; of ranks and repeats, the fewer are filled up with 1 in front."""
    dtype, dims, repeats = ctx.input(0).dtype, dims_of(ctx, 0), listed(ctx, 1)
    if dims is None or repeats is None:
        return [tensor(dtype, None)]
    rank = max(len(dims), len(repeats))
    ones = (1,) * rank
    return [tensor(dtype, tiled(ctx, ones[len(dims) :] + dims, ones[len(repeats) :] + repeats))]


@layer("Pad")
def pad(ctx: NodeContext) -> Sequence[ValueType]:
    """The input with elements added, or for negative pads removed, at both ends of each axis."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    before, after = listed(ctx, 1), listed(ctx, 2)
    if dims is None:
        return [tensor(dtype, None)]
    rank = len(dims)
    for pads in (before, after):
        if pads is not None and len(pads) != rank:
            raise InvalidNode(f"{len(pads)} pads for an input of rank {rank}; one is required for each axis")
    if before is None or after is None:
        return [tensor(dtype, (None,) * rank)]
    result: list[DimLike | None] = [
        None if low is None or high is None else required_sum(ctx, dim, low, high)
        for dim, low, high in zip(dims, before, after, strict=True)
    ]
    return [tensor(dtype, result)]


@layer("Range", gives=(None,))
def range_(ctx: NodeContext) -> Sequence[ValueType]:
    """The numbers from start up to stop in steps of step; version 4 names their type, and first converts to it."""
    if "output_type" not in ctx.attributes():
        return [counted_out(ctx, known_dtype(ctx, range(3)))]
    dtype = element_type(ctx, "output_type", None)
    if dtype is None or not all(_is_kept(ctx, index, dtype) for index in range(3)):
        return [tensor(dtype, (None,))]
    return [counted_out(ctx, dtype)]


def _is_kept(ctx: NodeContext, index: int, dtype: str) -> bool:
    """True when a conversion to this type leaves the number as it is."""
    contents = ctx.contents(index)
    item: Item = None if contents is None else contents.scalar
    return ctx.input(index).dtype == dtype or isinstance(item, int) or (isinstance(item, float) and item.is_integer())
