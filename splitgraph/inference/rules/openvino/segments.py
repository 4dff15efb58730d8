"""OpenVINO's layers that reduce segments: bags of embeddings, sparse rows, labels of sequences."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.openvino.attributes import element_type, layer, listed
from splitgraph.inference.rules.operands import dims_of, dims_of_rank, merged_dim, scalar_dim
from splitgraph.value_type import ValueType, tensor

# Which input has an element for each bag.
_BAGS = {
    "EmbeddingBagOffsets": 2,
    "EmbeddingBagOffsetsSum": 2,
    "EmbeddingBagPacked": 1,
    "EmbeddingBagPackedSum": 1,
}


@layer(*_BAGS)
def bags(ctx: NodeContext) -> Sequence[ValueType]:
    """The sum or mean of the embeddings of each bag."""
    dtype, table, listed_bags = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, _BAGS[ctx.node.op_type])
    if not table:
        return [tensor(dtype, None)]
    return [tensor(dtype, (listed_bags[0] if listed_bags else None, *table[1:]))]


@layer("EmbeddingSegmentsSum", "SegmentMax")
def segments(ctx: NodeContext) -> Sequence[ValueType]:
    """The sum or maximum of each segment, of which an input gives the number."""
    dtype, table = ctx.input(0).dtype, dims_of(ctx, 0)
    place = 3 if ctx.node.op_type == "EmbeddingSegmentsSum" else 2
    count = required_dim(ctx, scalar_dim(ctx, place)) if ctx.has_input(place) else None
    return [tensor(dtype, (count, *table[1:]) if table else None)]


@layer("SparseFillEmptyRows", gives=(None, 0, "bool"))
def filled_rows(ctx: NodeContext) -> Sequence[ValueType]:
    """Indices and values with one for each empty row, and which rows were empty."""
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
    """The labels of each sequence, or their loss. The first version has the time first, the others the batch."""
    dtype, data, other = ctx.input(0).dtype, dims_of_rank(ctx, 0, 3), dims_of(ctx, 1)
    time_first = ctx.node.op_type == "CTCGreedyDecoder"
    time, batch = (None, None) if data is None else data[:2] if time_first else (data[1], data[0])
    if other is not None and len(other) == 1 + time_first:
        batch = _common(ctx, batch, other[-1], "the numbers of sequences")
        time = _common(ctx, time, other[0], "the lengths") if time_first else time
    if ctx.node.op_type == "CTCLoss":
        return [tensor(dtype, (batch,))]
    if time_first:
        return [tensor(dtype, (batch, time, 1, 1))]
    batch = ctx.fresh() if batch is None else batch
    return [
        tensor(element_type(ctx, "classes_index_type", "int32"), (batch, time)),
        tensor(element_type(ctx, "sequence_length_type", "int32"), (batch,)),
    ]


def _common(ctx: NodeContext, known: DimLike | None, other: DimLike, what: str) -> DimLike:
    return other if known is None else merged_dim(ctx, known, other, what)
