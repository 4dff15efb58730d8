"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    InvalidNode,
    dims_of_rank,
    expect_dims,
    int_attribute,
    known_dtype,
    merged_dim,
    operator,
)
from splitgraph.value_type import ValueType, tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
# By their names in small letters, in which runtimes compare them.
_ACTIVATIONS = {
    name.lower(): name
    for name in (
        *("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid"),
        *("Elu", "Softsign", "Softplus"),
    )
}


@operator("LSTM", "GRU", "RNN", gives=(0, 0, 0))
def recurrent(ctx: NodeContext) -> Sequence[ValueType]:
    """All hidden states, and the last ones, for each direction; `layout` 1 puts the batch first."""
    dtype = known_dtype(ctx, (0, 1, 2))
    data, weights, recurrence = (dims_of_rank(ctx, index, 3) for index in range(3))
    direction = ctx.attribute("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise InvalidNode(f"direction is {direction!r}; it must be forward, reverse or bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    for activation in ctx.attribute("activations") or ():
        if activation.lower() not in _ACTIVATIONS:
            raise InvalidNode(
                f"activation {activation!r} does not exist; it must be one of {', '.join(_ACTIVATIONS.values())}"
            )
    _check_count_of_activations(ctx, directions)
    hidden: DimLike | None = None if recurrence is None else recurrence[2]
    if ctx.has_attribute("hidden_size"):
        size = int_attribute(ctx, "hidden_size", 0)
        hidden = (
            size
            if hidden is None
            else merged_dim(ctx, size, hidden, "hidden_size and the last dimension of the recurrence weights")
        )
    batch_first = bool(int_attribute(ctx, "layout", 0))
    steps, batch, features = (
        (None, None, None) if data is None else ((data[1], data[0], data[2]) if batch_first else data)
    )
    rows = None if hidden is None else hidden * _GATES[ctx.node.op_type]
    for dims, what in ((weights, "the weights"), (recurrence, "the recurrence weights")):
        if dims is not None:
            merged_dim(ctx, directions, dims[0], f"the first dimension of {what} and the number of directions")
        if dims is not None and rows is not None:
            merged_dim(ctx, rows, dims[1], f"the rows of {what} and the total size of the gates")
    if weights is not None and features is not None:
        merged_dim(ctx, features, weights[2], "the last dimensions of the weights and of the input")
    demanded = _known_batch(ctx, batch, axis=0 if batch_first else 1)
    batch = demanded if batch is None or demanded is None else merged_dim(ctx, batch, demanded, "the batch sizes")
    expect_dims(ctx, 3, (directions, None if rows is None else 2 * rows), "the bias")
    expect_dims(ctx, 4, (batch,), "sequence_lens")
    held = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    expect_dims(ctx, 5, held, "initial_h")
    if ctx.node.op_type == "LSTM":
        expect_dims(ctx, 6, held, "initial_c")
        expect_dims(ctx, 7, (directions, None if hidden is None else 3 * hidden), "the peephole tensor")
    # One and the same in all outputs.
    hidden, steps, batch = (ctx.fresh() if dim is None else dim for dim in (hidden, steps, batch))
    if batch_first:
        state = tensor(dtype, (batch, directions, hidden))
        return [tensor(dtype, (batch, steps, directions, hidden)), state, state]
    state = tensor(dtype, (directions, batch, hidden))
    return [tensor(dtype, (steps, directions, batch, hidden)), state, state]


def _check_count_of_activations(ctx: NodeContext, directions: int) -> None:
    count, needed = len(ctx.attribute("activations") or ()), _FUNCTIONS[ctx.node.op_type] * directions
    # The default of RNN has two for each node, and exporters write it out.
    if count not in (0, needed) and not (ctx.node.op_type == "RNN" and count > needed):
        raise InvalidNode(
            f"activations has {count} elements; it must have {needed}, for each direction the same number"
        )


def _known_batch(ctx: NodeContext, batch: DimLike | None, axis: int) -> DimLike | None:
    """The batch size of the data or, if it is unknown or a symbol, the number that a state requires."""
    held = [batch]
    for index, position, rank in ((4, 0, 1), (5, axis, 3), (6, axis, 3)):
        if ctx.has_input(index) and not (index == 6 and ctx.node.op_type != "LSTM"):
            dims = dims_of_rank(ctx, index, rank)
            held.append(None if dims is None else dims[position])
    known = [dim for dim in held if dim is not None]
    return next((dim for dim in known if isinstance(dim, int)), known[0] if known else None)
