"""Convolution and pooling of onnxruntime (domain com.microsoft) over tensors whose channels come last."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.convolution import pooled_dims
from splitgraph.inference.rules.operands import Dims, InvalidNode, dims_of, ints_attribute, known_dtype, operator
from splitgraph.inference.rules.windows import check_each, read_windows, window_counts
from splitgraph.value_type import ValueType, tensor

DOMAIN = "com.microsoft"


def _channels_first(dims: Dims | None) -> Dims | None:
    """The dimensions with the last one second. Raises InvalidNode without batch, side and channels."""
    if dims is None:
        return None
    if len(dims) < 3:
        raise InvalidNode(
            f"the input has rank {len(dims)}; it must have batch, at least one spatial dimension and channels"
        )
    return (dims[0], dims[-1], *dims[1:-1])


@operator("NhwcMaxPool", domain=DOMAIN)
def max_pool(ctx: NodeContext) -> Sequence[ValueType]:
    """The largest element of each window."""
    found = pooled_dims(ctx, _channels_first(dims_of(ctx, 0)))
    return [tensor(ctx.input(0).dtype, None if found is None else (found[0], *found[2:], found[1]))]


@operator("NhwcConv", "NhwcFusedConv", domain=DOMAIN)
def conv(ctx: NodeContext) -> Sequence[ValueType]:
    """A convolution. The filters are the weights' first dimension; where their sides are differs, so that only
    `kernel_shape` says how large a window is.
    """
    dtype, data, weights = known_dtype(ctx, (0, 1, 2)), _channels_first(dims_of(ctx, 0)), dims_of(ctx, 1)
    if data is None:
        return [tensor(dtype, None)]
    rank = len(data) - 2
    given = ints_attribute(ctx, "kernel_shape")
    if given is not None and len(given) != rank:
        raise InvalidNode(f"kernel_shape {list(given)} for {rank} spatial dimensions; one is required for each")
    check_each("kernel_shape", given or ())
    kernel: Sequence[DimLike | None] = (None,) * rank if given is None else given
    filters = weights[0] if weights else None
    return [tensor(dtype, (data[0], *window_counts(ctx, data[2:], kernel, read_windows(ctx, rank)), filters))]
