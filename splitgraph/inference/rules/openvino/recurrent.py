"""OpenVINO's recurrent layers: cells, and sequences of them."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.openvino.attributes import layer, number
from splitgraph.inference.rules.operands import dims_of_rank, expect_dims, known_dtype, merged_dim
from splitgraph.value_type import ValueType, tensor

# How many states there are besides the data: the hidden one, and the cell of an LSTM.
_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1, "AUGRU": 1}


@layer("LSTMCell", "GRUCell", "RNNCell", "AUGRUCell", gives=(0, 0))
def cell(ctx: NodeContext) -> Sequence[ValueType]:
    """The next states, for each batch."""
    states = _STATES[ctx.node.op_type.removesuffix("Cell")]
    known = [dims_of_rank(ctx, index, 2) for index in range(1 + states)]
    batch, hidden = known[0][0] if known[0] is not None else None, number(ctx, "hidden_size", 0) or None
    for dims in known[1:]:
        if dims is not None:
            batch = dims[0] if batch is None else merged_dim(ctx, batch, dims[0], "the batch sizes of data and states")
    return [tensor(known_dtype(ctx, range(1 + states)), (batch, hidden))] * states


@layer("LSTMSequence", "GRUSequence", "RNNSequence", "AUGRUSequence", gives=(0, 0, 0))
def sequence(ctx: NodeContext) -> Sequence[ValueType]:
    """All hidden states for each batch and direction, and the last states."""
    states = _STATES[ctx.node.op_type.removesuffix("Sequence")]
    data = dims_of_rank(ctx, 0, 3)
    known = [dims_of_rank(ctx, 1 + index, 3) for index in range(states)]
    directions = 2 if ctx.attribute("direction", "forward") == "bidirectional" else 1
    batch, length = data[:2] if data is not None else (None, None)
    for dims in known:
        if dims is not None:
            batch = dims[0] if batch is None else merged_dim(ctx, batch, dims[0], "the batch sizes of data and states")
    hidden = number(ctx, "hidden_size", 0) or None
    for index in range(states):
        expect_dims(ctx, 1 + index, (batch, directions, hidden), f"state {index}")
    expect_dims(ctx, 1 + states, (batch,), "sequence_lengths")
    batch = ctx.fresh() if batch is None else batch
    dtype = known_dtype(ctx, range(1 + states))
    return [tensor(dtype, (batch, directions, length, hidden)), *[tensor(dtype, (batch, directions, hidden))] * states]
