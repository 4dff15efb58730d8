"""Attention of ai.onnx, operators that carry a state, and LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import DimLike, sum_dims
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import require_indices, require_lengths
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    differ,
    dims_of,
    dims_of_rank,
    exact_quotient,
    expect,
    expect_dims,
    int_attribute,
    merged_dim,
    operator,
    ranked_dims,
    tolerate,
)
from splitgraph.inference.rules.signatures import expect_shapes, shapes
from splitgraph.model.value_type import ValueType, tensor

# Before this version of Attention, a mask is for all keys.
_SHORT_MASK_SINCE = 24


@operator("Attention", gives=(0, 0, 2, 0))
def attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the weighted values for each query, the keys and values with those of the past, and the weights."""
    flat = _is_flat(ctx)
    _check_attributes(ctx, flat)
    heads, kept = int_attribute(ctx, "q_num_heads", 0), int_attribute(ctx, "kv_num_heads", 0)
    sizes: dict[str, DimLike | None] = {}
    given, output = ("Q: B H L D", "K: B N S D", "V: B N S E"), "B H L E"
    if flat is None:
        given, output = ("", "", ""), "..."
    elif flat:
        given, output = ("Q: B L ?", "K: B S ?", "V: B S ?"), "B L F"
        query_size, key_size, sizes["E"] = (_head_size(ctx, index, (heads, kept, kept)[index]) for index in range(3))
        sizes["D"] = merged_dim(ctx, query_size, key_size, "the head sizes of Q and K")
        values = dims_of(ctx, 2)
        sizes |= {"H": heads, "N": kept, "F": _joined_heads(None if values is None else values[2], heads, kept)}
    states = ("past_key: B N P D", "past_value: B N P E", "nonpad_kv_seqlen: B")
    known = expect_shapes(ctx, *given, "", *states, sizes=sizes)
    queries, keys = known.get("H"), known.get("N")
    if isinstance(queries, int) and isinstance(keys, int):
        _check_heads(queries, keys)
    parts = [known.get(letter) for letter in ("PS" if ctx.has_input(4) else "S")]
    known["T"] = sum_dims([part for part in parts if part is not None]) if None not in parts else ctx.fresh()
    _check_mask(ctx, [known.get(letter) for letter in "BHLT"])
    return shapes(ctx, sizes=known, gives=(f"0,1 {output}", "0,1 B N T D", "2 B N T E", "0,1 B H L T"))


def _check_mask(ctx: NodeContext, scores: Sequence[DimLike | None]) -> None:
    """Require a mask that broadcasts to the scores. From version 24 on, it may be for the first keys only."""
    mask = dims_of(ctx, 3) if ctx.has_input(3) else None
    if mask is None:
        return
    if len(mask) > len(scores):
        raise InvalidNode(f"attn_mask has rank {len(mask)}; it must have rank 2, 3 or 4")
    for axis, (dim, size) in enumerate(zip(reversed(mask), reversed(scores), strict=False), 1):
        if size is None or dim == 1 or not (isinstance(dim, int) or size == 1 or ctx.facts.prove_ne(dim, 1)):
            continue
        fault = partial("attn_mask has dimension {} on axis {}; it must be 1 or {}".format, dim, len(mask) - axis, size)
        if axis > 1:
            expect(ctx, dim, "==", size, fault)
        elif ctx.since_version >= _SHORT_MASK_SINCE:
            expect(ctx, size, ">=", dim, fault)
        elif isinstance(dim, int) and isinstance(size, int) and dim < size:
            tolerate(ctx, fault(), "without the other keys", run_by="the reference evaluator")
        else:
            expect(ctx, dim, "==", size, fault)


def _check_heads(queries: int, kept: int) -> None:
    if kept < 1 or queries % kept:
        raise InvalidNode(f"Q has {queries} heads and K has {kept}; the first number must be a multiple of the second")


def _check_attributes(ctx: NodeContext, flat: bool | None) -> None:
    """Check attributes, inputs and outputs against each other, for any shapes."""
    for name in ("left_window_size", "right_window_size"):
        size = int_attribute(ctx, name, -1)
        if size < -1:
            raise InvalidNode(f"{name} is {size}; it must be at least 0, or -1 for no bound")
    mode = int_attribute(ctx, "qk_matmul_output_mode", 0)
    if not 0 <= mode <= 3:
        raise InvalidNode(f"qk_matmul_output_mode is {mode}; it must be 0 to 3")
    if ctx.has_input(4) != ctx.has_input(5):
        raise InvalidNode("past keys and past values must be given together")
    if ctx.since_version < 25:
        # What is said of heads, presents and lengths below was not said before, and models have it.
        return
    if flat is False and (ctx.has_attribute("q_num_heads") or ctx.has_attribute("kv_num_heads")):
        raise InvalidNode("q_num_heads and kv_num_heads are given, but inputs of rank 4 already have an axis of heads")
    outputs = [*ctx.outputs, "", "", ""]
    if bool(outputs[1]) != bool(outputs[2]):
        raise InvalidNode("present_key and present_value must both be outputs, or neither")
    if ctx.has_input(6) and (ctx.has_input(4) or outputs[1]):
        raise InvalidNode("nonpad_kv_seqlen cannot be combined with past or present keys and values")


def _joined_heads(size: DimLike | None, query_heads: int, kept_heads: int) -> DimLike | None:
    """Return the size of the values of all query heads, from that of the heads that are kept."""
    if size is None:
        return None
    # Whole multiples keep the dimension as it is, without a quotient.
    if query_heads % kept_heads == 0:
        return size * (query_heads // kept_heads)
    return size // kept_heads * query_heads


def _is_flat(ctx: NodeContext) -> bool | None:
    """Return True if heads and head size share one axis (inputs of rank 3); None if no rank is known."""
    ranks = {len(dims) for index in range(3) if (dims := dims_of(ctx, index)) is not None}
    if len(ranks) > 1 or ranks - {3, 4}:
        raise InvalidNode(f"Q, K and V have the ranks {sorted(ranks)}; all must have rank 3 or all rank 4")
    return None if not ranks else ranks == {3}


def _head_size(ctx: NodeContext, index: int, heads: int) -> DimLike | None:
    """Return the size of each head of an input of rank 3."""
    if heads < 1:
        raise InvalidNode("inputs of rank 3 need the attributes 'q_num_heads' and 'kv_num_heads'")
    size = ranked_dims(ctx, index, 3)[2]
    what = f"the last dimension of input {index} by the number of heads"
    return None if size is None else exact_quotient(ctx, size, heads, what)


@operator("RotaryEmbedding")
def rotary_embedding(ctx: NodeContext) -> Sequence[ValueType]:
    """Turn each pair of elements by its position."""
    dims = dims_of(ctx, 0)
    if dims is not None and len(dims) not in (3, 4):
        raise InvalidNode(f"the input has rank {len(dims)}; it must have rank 3 or 4")
    if dims is not None and len(dims) == 3 and int_attribute(ctx, "num_heads", 0) < 1:
        raise InvalidNode("an input of rank 3 needs the attribute 'num_heads'")
    batch, length = (None, None) if dims is None else (dims[0], dims[-2] if len(dims) == 4 else dims[1])
    sizes = {"B": batch, "S": length, "D": _rotated_pairs(ctx, dims)}
    cache = "M D" if ctx.has_input(3) else "1 S D | B S D"
    expect_shapes(ctx, "", f"cos_cache: {cache}", f"sin_cache: {cache}", "position_ids: B S", sizes=sizes)
    cosines = dims_of(ctx, 1)
    if cosines and ctx.has_input(3):
        require_indices(ctx, 3, cosines, 0)
    if cosines is not None:
        expect_dims(ctx, 2, cosines, "sin_cache")
        if not ctx.has_input(3) and differ(batch, cosines[0]):
            text = f"cos_cache (input 1) is for a batch of {cosines[0]}; it must be for the batch of {batch}"
            tolerate(ctx, text, "with one cache for all")
    return [tensor(ctx.input(0).dtype, dims)]


def _rotated_pairs(ctx: NodeContext, dims: Dims | None) -> DimLike | None:
    """Return how many pairs of elements of each head turn."""
    size = int_attribute(ctx, "rotary_embedding_dim", 0)
    if size:
        return size // 2
    if dims is None or (len(dims) == 3 and ctx.is_unresolved("num_heads")):
        return None
    if len(dims) == 3:
        heads = int_attribute(ctx, "num_heads", 0)
        return exact_quotient(ctx, dims[2], heads, "the hidden size by the number of heads") // 2
    return dims[3] // 2


@operator("FlexAttention", domain="ai.onnx.preview")
def flex_attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the weighted values for each query."""
    query, key = (ranked_dims(ctx, index, 4)[1] for index in range(2))
    if isinstance(query, int) and isinstance(key, int):
        _check_heads(query, key)
    return shapes(ctx, "Q: B H L D", "K: B N S D", "V: B N S E", gives="0 B H L E")


@operator("LinearAttention", gives=(0, 3))
def linear_attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the output for each query, and the state after the last query."""
    queries, kept = int_attribute(ctx, "q_num_heads", 0), int_attribute(ctx, "kv_num_heads", 0)
    if queries < 1 or kept < 1 or queries % kept:
        raise InvalidNode(f"q_num_heads {queries} must be a multiple of kv_num_heads {kept}, which must be at least 1")
    widths = [ranked_dims(ctx, index, 3)[2] for index in range(3)]
    query_size, key_size, value_size = (
        None
        if width is None
        else exact_quotient(ctx, width, heads, f"the last dimension of input {index} by the number of heads")
        for index, (width, heads) in enumerate(zip(widths, (queries, kept, kept), strict=True))
    )
    head_size = merged_dim(ctx, query_size, key_size, "the head sizes of query and key")
    _check_gates(ctx, kept)
    inputs = ("query: B T ?", "key: B T ?", "value: B T ?", "past_state: B N D V", "decay: B T ?", "beta: B T ?")
    known = expect_shapes(ctx, *inputs, sizes={"N": kept, "D": head_size, "V": value_size})
    size = known.get("V")
    # The state may tell the size as a number, where the width of the values is a symbol.
    if size is not None and (widths[2] is None or isinstance(size, int)):
        size = size * queries
    else:
        size = _joined_heads(widths[2], queries, kept)
    state = f"{3 if ctx.has_input(3) else '0,1,2'} B N D V"
    return shapes(ctx, *inputs, sizes={**known, "H": size}, gives=("0,1,2 B T H", state))


# The inputs of LinearAttention that an update rule needs.
_GATES = {"linear": (), "gated": (4,), "delta": (5,), "gated_delta": (4, 5)}


def _check_gates(ctx: NodeContext, heads: int) -> None:
    """Require the decay and the rate that the update rule needs, in sizes that fit the heads."""
    rule = ctx.attribute("update_rule", "gated_delta")
    if rule not in _GATES:
        raise InvalidNode(f"update_rule is {rule!r}; it must be one of {', '.join(_GATES)}")
    width = ranked_dims(ctx, 1, 3)[2]
    for index in (4, 5):
        if ctx.has_input(index) != (index in _GATES[rule]):
            verb = "takes no" if ctx.has_input(index) else "needs"
            raise InvalidNode(f"update_rule {rule!r} {verb} {'decay' if index == 4 else 'beta'} (input {index})")
        gate = dims_of_rank(ctx, index, 3)
        if gate is None:
            continue
        allowed = {1, heads} if index == 5 else {heads, width}
        if isinstance(gate[2], int) and gate[2] not in allowed and all(isinstance(size, int) for size in allowed):
            raise InvalidNode(
                f"the last dimension of input {index} is {gate[2]}; it must be one of {sorted(allowed, key=str)}"
            )


@operator("CausalConvWithState", gives=(0, 0))
def causal_conv_with_state(ctx: NodeContext) -> Sequence[ValueType]:
    """Convolve the input, and keep its last positions: one less than the kernel has."""
    activation = "none" if ctx.is_unresolved("activation") else ctx.attribute("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise InvalidNode(f"activation is {activation!r}; it must be none, silu or swish")
    size = ranked_dims(ctx, 1, 3)[2]
    if isinstance(size, int) and size < 1:
        raise InvalidNode(f"the kernel has {size} elements; it must have at least 1")
    kept = {"P": None if size is None else size - 1}
    inputs = ("input: B C L", "weight: C 1 K", "bias: C", "past_state: B C P")
    return shapes(ctx, *inputs, sizes=kept, gives=("0,1,2,3 B C L", "0,1,2,3 B C P"))


_GATE_COUNTS = {"LSTM": 4, "GRU": 3, "RNN": 1}
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
    """Compute all hidden states and the last states, for each direction. With `layout` 1, the batch comes first."""
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
    hidden: DimLike | None = ranked_dims(ctx, 2, 3)[2]
    if ctx.has_attribute("hidden_size"):
        hidden = int_attribute(ctx, "hidden_size", 0)
    batch_first = bool(int_attribute(ctx, "layout", 0))
    data, state, whole = ("B T", "B D H", "B T D H") if batch_first else ("T B", "D B H", "T D B H")
    gates = _GATE_COUNTS[ctx.node.op_type]
    counts = {"G": gates, "F": 2 * gates, "E": 3}
    parts = {letter: None if hidden is None else count * hidden for letter, count in counts.items()}
    result = shapes(
        ctx,
        *(f"X: {data} I", "W: D G I", "R: D G H", "B: D F", "sequence_lens: B"),
        *(f"initial_h: {state}", f"initial_c: {state}", "P: D E"),
        sizes={"D": directions, "H": hidden, **parts},
        gives=(f"0,1,2 {whole}", f"0,1,2 {state}", f"0,1,2 {state}"),
    )
    steps = ranked_dims(ctx, 0, 3)[1 if batch_first else 0]
    require_lengths(ctx, 4, steps, "sequence_lens (input 4)", run_by="OpenVINO and the reference evaluator")
    return result


def _check_count_of_activations(ctx: NodeContext, directions: int) -> None:
    count, needed = len(ctx.attribute("activations") or ()), _FUNCTIONS[ctx.node.op_type] * directions
    # The default of RNN has two for each node, and exporters write it out.
    if count not in (0, needed) and not (ctx.node.op_type == "RNN" and count > needed):
        raise InvalidNode(
            f"activations has {count} elements; it must have {needed}, for each direction the same number"
        )
