"""Linear attention, convolutions that carry a state, and the gates and norms around them, of onnxruntime (domain
com.microsoft).
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    exact_quotient,
    int_attribute,
    operator,
    ranked_dims,
)
from splitgraph.inference.rules.signatures import expect_shapes, shaped, shapes
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"

shaped("GatedRMSNorm", "X: ... D", "scale: ?", "gate: ... D", gives="0 ... D", domain=DOMAIN)
shaped("GatedAdd", "X: ... C", "Y: ... C", gives="0 ... C", domain=DOMAIN)
shaped(
    "LinearAttentionGate",
    *("a: ... H", "dt_bias: H", "decay_scale: H", "b: ... H"),
    gives=("0 ... H", "0 ... H"),
    domain=DOMAIN,
)
shaped(
    "EngramGate",
    *("key: B S C H", "query: B S C H", "value: B S H"),
    *("key_norm_scale: C H", "query_norm_scale: C H", "conv_norm_scale: C H"),
    gives=("0,1,2 B S C H", "0,1,2 B S C H"),
    domain=DOMAIN,
)


# Branches, of the same number and size as before.
shaped("BranchwiseRMSNorm HyperConnectionPostMix", "X: ...", gives="0 ...", domain=DOMAIN)


@operator("HyperConnectionPreMix", domain=DOMAIN)
def hyper_connection_pre_mix(ctx: NodeContext) -> Sequence[ValueType]:
    """Sum the branches: an axis of its own, or parts of the last axis."""
    branches = int_attribute(ctx, "num_branches", 0)
    if not branches:
        return shapes(ctx, "streams: ... C H", gives="0 ... H")
    size = expect_shapes(ctx, "streams: ... S").get("S")
    part = None if size is None else exact_quotient(ctx, size, branches, "the last dimension by the branches")
    return shapes(ctx, "streams: ... S", sizes={"H": part}, gives="0 ... H")


@operator("LinearAttention", gives=(0, 3), domain=DOMAIN)
def linear_attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the output for each query, and the state after the last query, or after each of the last ones."""
    queries, kept = int_attribute(ctx, "q_num_heads", 0), int_attribute(ctx, "kv_num_heads", 0)
    if queries < 1 or kept < 1:
        raise InvalidNode(f"q_num_heads is {queries} and kv_num_heads is {kept}; both must be at least 1")
    query, value = ranked_dims(ctx, 0, 3), ranked_dims(ctx, 2, 3)
    key_size, value_size = (
        None if dims[2] is None else exact_quotient(ctx, dims[2], heads, "the last dimension by the number of heads")
        for dims, heads in ((query, queries), (value, kept))
    )
    window = int_attribute(ctx, "state_window", 0)
    size = None if value_size is None else value_size * max(queries, kept)
    inputs = ("query: B T ?", "key: B T ?", "value: B T ?", "", "decay: B T ?", "beta: B T ?")
    sizes = {"W": window, "N": kept, "K": key_size, "V": value_size, "H": size}
    state = f"{3 if ctx.has_input(3) else 0} {'W ' if window else ''}B N K V"
    return shapes(ctx, *inputs, sizes=sizes, gives=("0 B T H", state))


@operator("GatedDeltaNet", gives=(0, "float32", "float32"), domain=DOMAIN)
def gated_delta_net(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the output for each token, and the state after the last token of each sequence."""
    query, key, value, state = (dims_of(ctx, index) for index in (0, 1, 2, 6))
    if not ctx.has_input(1):
        # The state alone tells the heads of queries, keys and values that are packed.
        heads, size = (None, None) if state is None or len(state) != 4 else (state[1], state[2])
        tokens = None if query is None else query[:-1]
    else:
        heads, size = (None, None) if value is None or len(value) < 2 else value[-2:]
        tokens = None if query is None or len(query) < 2 else query[:-2]
    dtype = ctx.input(0).dtype
    output = tensor(dtype, None if tokens is None else (*tokens, heads, size))
    final = state or (tokens[0] if tokens and len(tokens) == 2 else None, heads, size, key[-1] if key else None)
    return [output, tensor("float32", final), tensor("float32", (final[0], None))]


@operator("CausalConvWithState", gives=(0, 0, 0), domain=DOMAIN)
def causal_conv_with_state(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve the input, and keep its last positions along the last axis, which no earlier output sees."""
    dtype, dims, weight = ctx.input(0).dtype, dims_of(ctx, 0), dims_of(ctx, 1)
    window = int_attribute(ctx, "state_window", 0)
    kept: Dims | None = None
    if dims is not None and weight is not None and len(weight) > 2:
        taps = weight[-1]
        length = None if taps is None else (taps - 1) * int_attribute(ctx, "dilation", 1)
        place = 1 if int_attribute(ctx, "channels_last", 0) else len(dims) - 1
        kept = (*((window,) if window else ()), *dims[:place], length, *dims[place + 1 :])
    return [tensor(dtype, dims), tensor(dtype, kept), tensor(dtype, (None,) * 3)]


@operator("VarlenCausalConvWithState", gives=(0, 4, 0), domain=DOMAIN)
def varlen_causal_conv_with_state(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve each of the sequences that are packed, and keep the last positions of each."""
    batch: DimLike | None = ranked_dims(ctx, 4, 3)[0]
    captured = int_attribute(ctx, "state_update_capacity", 0)
    inputs = ("input: T C", "weight: C 1 ?", "", "bias: C", "initial_state: B C P")
    return shapes(
        ctx, *inputs, sizes={"B": batch, "E": captured}, gives=("0,1,3,4 T C", "0,1,3,4 B C P", "0,1,3,4 B E C")
    )


@operator("MRotaryEmbedding", domain=DOMAIN)
def multimodal_rotary_embedding(ctx: NodeContext) -> Sequence[ValueType]:
    """Turn each pair of elements by one of three positions."""
    dims = dims_of(ctx, 0)
    length = None if dims is None or len(dims) not in (3, 4) else dims[-2] if len(dims) == 4 else dims[1]
    sizes = {"B": None if not dims else dims[0], "S": length}
    expect_shapes(ctx, "", "position_ids: 3 B S", "cos_cache: M D", "sin_cache: M D", sizes=sizes)
    return [tensor(ctx.input(0).dtype, dims)]
