"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of_rank,
    int_attribute,
    known_dtype,
    merged_dim,
    operator,
)
from splitgraph.value_type import ValueType, tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@operator("LSTM", "GRU", "RNN", gives=(0, 0, 0))
def recurrent(ctx: NodeContext) -> Sequence[ValueType]:
    """All hidden states, and the last ones, for each direction; `layout` 1 puts the batch first."""
    dtype = known_dtype(ctx, (0, 1, 2))
    data, weights, recurrence = (dims_of_rank(ctx, index, 3) for index in range(3))
    direction = ctx.attribute("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise InvalidNode(f"direction is {direction!r}; it must be forward, reverse or bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    hidden: DimLike | None = None if recurrence is None else recurrence[2]
    if ctx.has_attribute("hidden_size"):
        size = int_attribute(ctx, "hidden_size", 0)
        hidden = size if hidden is None else merged_dim(ctx, size, hidden, "hidden_size and the recurrence weights")
    batch_first = bool(int_attribute(ctx, "layout", 0))
    steps, batch, features = (
        (None, None, None) if data is None else ((data[1], data[0], data[2]) if batch_first else data)
    )
    if weights is not None:
        merged_dim(ctx, directions, weights[0], "the weights' first dimension and the number of directions")
        if features is not None:
            merged_dim(ctx, features, weights[2], "the weights' last dimension and the input's features")
        if hidden is not None:
            merged_dim(
                ctx, hidden * _GATES[ctx.node.op_type], weights[1], "the weights' rows and the size of all gates"
            )
    # One and the same in all outputs.
    hidden, steps, batch = (ctx.fresh() if dim is None else dim for dim in (hidden, steps, batch))
    if batch_first:
        state = tensor(dtype, (batch, directions, hidden))
        return [tensor(dtype, (batch, steps, directions, hidden)), state, state]
    state = tensor(dtype, (directions, batch, hidden))
    return [tensor(dtype, (steps, directions, batch, hidden)), state, state]
