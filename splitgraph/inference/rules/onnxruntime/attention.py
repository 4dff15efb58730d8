"""Attention operators of onnxruntime (domain com.microsoft)."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, dim_max
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.indices import require_indices
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dims_of_rank,
    exact_quotient,
    expect,
    int_attribute,
    ints_attribute,
    like_input,
    operator,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import ONE, expect_shapes, shapes
from splitgraph.model.value_type import ValueType, tensor

DOMAIN = "com.microsoft"
Shape = tuple["DimLike | None", ...]

_UNKNOWN_STATE: Shape = (None,) * 4


def _heads(ctx: NodeContext, name: str = "num_heads") -> int:
    heads = int_attribute(ctx, name, 0)
    if heads < 1:
        raise InvalidNode(f"attribute {name!r} is {heads}; it must be at least 1")
    return heads


@operator("Attention", "QAttention", "PackedAttention", gives=(0, 0), domain=DOMAIN)
def attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Project the input and compute attention: the output of the values' size, and keys and values with the past.

    In the shapes, B items have S rows each, or T rows in all when they are packed. Rows have I columns before the
    projection, W after it and V in the output. A past of P rows makes L rows in all, for N heads of D columns.
    """
    quantized, packed = ctx.node.op_type == "QAttention", ctx.node.op_type == "PackedAttention"
    heads, (key_size, value_size) = _heads(ctx), _projected_sizes(ctx)
    rows = "T" if packed else "B S"
    inputs = [f"input: {rows} I", "weights: I W", "bias: W", ""]
    if quantized:
        columns = (f"weight_scale: {ONE} | W", f"weight_zero_point: {ONE} | W")
        inputs[3:] = [f"input_scale: {ONE}", columns[0], "", f"input_zero_point: {ONE}", columns[1]]
    sizes = {"W": sum(ints_attribute(ctx, "qkv_hidden_sizes") or ()) or None, "V": value_size, "N": heads}
    output = f"{3 if quantized else 0} {rows} V"
    if packed:
        return shapes(ctx, *inputs, sizes=sizes, gives=output)
    data, before = dims_of_rank(ctx, 0, 3), dims_of_rank(ctx, len(inputs), 5)
    has_past, length = ctx.has_input(len(inputs)), None if data is None else data[1]
    sizes["L"] = length
    if has_past:
        sizes["L"] = None if before is None or length is None else before[3] + length
    # A buffer stays as long as it is.
    is_buffer = has_past and int_attribute(ctx, "past_present_share_buffer", 0)
    present = f"{output[0]} 2 B N {'P' if is_buffer else 'L'} D"
    if key_size is not None:
        sizes["D"] = exact_quotient(ctx, key_size, heads, "the hidden size by the number of heads")
    return shapes(ctx, *inputs, "past: 2 B N P D", sizes=sizes, gives=(output, present))


def _projected_sizes(ctx: NodeContext) -> tuple[DimLike | None, DimLike | None]:
    """Return the sizes of keys and values for all heads together."""
    sizes = ints_attribute(ctx, "qkv_hidden_sizes")
    if sizes:
        if len(sizes) != 3:
            raise InvalidNode(f"qkv_hidden_sizes {list(sizes)} must have 3 elements")
        return sizes[1], sizes[2]
    weights, bias = dims_of_rank(ctx, 1, 2), dims_of_rank(ctx, 2, 1)
    together = weights[1] if weights is not None else (None if bias is None else bias[0])
    if together is None:
        return None, None
    size = exact_quotient(ctx, together, 3, "the columns of the weights into queries, keys and values")
    return size, size


@operator("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", gives=(0, 0, 0, None), domain=DOMAIN)
def multi_head_attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute attention over projected inputs: the output, keys and values with the past, and the weights."""
    dtype, heads = ctx.input(0).dtype, _heads(ctx)
    query, key, value = dims_of(ctx, 0), dims_of(ctx, 1), dims_of(ctx, 2)
    if query is not None and len(query) not in (3, 5):
        raise InvalidNode(f"the query has rank {len(query)}; it must have rank 3, or 5 when packed")
    batch, length = (None, None) if query is None else (query[0], query[1])
    output = tensor(dtype, (batch, length, _value_size(ctx, query, key, value)))
    _check_projected(ctx, query, key, value)
    decoder = ctx.node.op_type != "MultiHeadAttention"
    if decoder or ctx.has_input(8):
        # The buffers may be longer than what they hold, and stay as long as they are.
        buffers = [dims_of_rank(ctx, index, 4) or _UNKNOWN_STATE for index in ((5, 6) if decoder else (6, 7))]
        return [output, *(tensor(dtype, dims) for dims in buffers)]
    total, key_size, value_size = _kept(ctx, query, key, value, heads)
    return [
        output,
        tensor(dtype, (batch, heads, total, key_size)),
        tensor(dtype, (batch, heads, total, value_size)),
        # The type of the weights is not that of the input everywhere, and nothing in the node says which it is.
        tensor(None, (batch, heads, length, total)),
    ]


def _check_projected(ctx: NodeContext, query: Dims | None, key: Dims | None, value: Dims | None) -> None:
    """Require that queries, keys and values fit each other, the bias for all of them, and the past."""
    if query is None or key is None or value is None or len(query) != 3 or len(key) != len(value):
        return
    heads = _heads(ctx)
    size = exact_quotient(ctx, query[2], heads, "the hidden size by the number of heads")
    if len(key) == 4:
        # Projected keys and values of an encoder.
        sizes = {"N": heads, "D": size}
        expect_shapes(ctx, "query: B ? H", "key: B N L D", "value: B N L D", sizes=sizes)
    elif len(key) == 3:
        length = "1" if ctx.node.op_type == "DecoderMaskedMultiHeadAttention" else "L"
        sizes = {"W": query[2] * 2 + value[2], "N": heads, "D": size}
        if length == "L":
            sizes["E"] = exact_quotient(ctx, value[2], heads, "the value size by the number of heads")
        given = (f"query: B {'?' if length == 'L' else length} H", f"key: B {length} H", f"value: B {length} ?")
        past = ("past_key: B N P D", "past_value: B N P E")
        more = ("bias: W", "", "", *past) if length == "L" else ("", "", *past)
        expect_shapes(ctx, *given, *more, sizes=sizes)


def _value_size(ctx: NodeContext, query: Dims | None, key: Dims | None, value: Dims | None) -> DimLike | None:
    """Return the size of the values for all heads together."""
    if query is not None and len(query) == 5:
        return query[2] * query[4]
    if ctx.has_input(2):
        if value is None:
            return None
        return value[2] if len(value) == 3 else (value[1] * value[3] if len(value) == 4 else None)
    if key is not None and len(key) == 5:
        return key[2] * key[4]
    return None


def _kept(
    ctx: NodeContext, query: Dims | None, key: Dims | None, value: Dims | None, heads: int
) -> tuple[DimLike | None, DimLike | None, DimLike | None]:
    """Return the length of the keys with the past, and the head sizes of keys and values."""
    if query is not None and len(query) == 5:
        length, key_size, value_size = query[1], query[4], query[4]
    elif key is not None and len(key) == 5:
        length, key_size, value_size = key[1], key[4], key[4]
    elif key is not None and value is not None and len(key) == len(value) == 3:
        length = key[1]
        key_size = exact_quotient(ctx, key[2], heads, "the key size by the number of heads")
        value_size = exact_quotient(ctx, value[2], heads, "the value size by the number of heads")
    elif key is not None and value is not None and len(key) == len(value) == 4:
        length, key_size, value_size = key[2], key[3], value[3]
    else:
        return ctx.fresh(), None, None
    if not ctx.has_input(6):
        return length, key_size, value_size
    past = dims_of_rank(ctx, 6, 4)
    return ctx.fresh() if past is None else past[2] + length, key_size, value_size


@operator("GroupQueryAttention", "SparseAttention", gives=(0, 3, 4, 0), domain=DOMAIN)
def group_query_attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute attention with fewer heads for keys and values: the output, and the buffers of both."""
    dtype, query = ctx.input(0).dtype, dims_of_rank(ctx, 0, 3)
    heads, kept = _heads(ctx), _heads(ctx, "kv_num_heads")
    if heads % kept:
        raise InvalidNode(f"num_heads {heads} must be a multiple of kv_num_heads {kept}")
    hidden = head_size = None
    if query is not None:
        together = heads if ctx.has_input(1) else heads + 2 * kept
        head_size = exact_quotient(ctx, query[2], together, "the query size by the number of heads")
        hidden = head_size * heads
    batch, length = (None, None) if query is None else query[:2]
    output = tensor(dtype, (batch, length, hidden))
    _check_grouped(ctx, batch, length, kept, head_size)
    if ctx.node.op_type == "SparseAttention":
        buffers = (dims_of_rank(ctx, 3, 4), dims_of_rank(ctx, 4, 4))
        return [output, *(tensor(dtype, _UNKNOWN_STATE if dims is None else dims) for dims in buffers)]
    total = scalar_dim(ctx, 6)
    if total is None:
        total = ctx.fresh()
    elif length is not None:
        expect(ctx, total, ">=", length, lambda: f"total_sequence_length is {total}, and there are {length} new tokens")
    states = [_buffer(ctx, index, (batch, kept, total, head_size)) for index in (3, 4)]
    return [output, *states, tensor(dtype, (batch, heads, length, total))]


def _check_grouped(
    ctx: NodeContext, batch: DimLike | None, length: DimLike | None, kept: int, size: DimLike | None
) -> None:
    """Require keys, values, buffers and lengths that fit the queries of GroupQueryAttention and SparseAttention."""
    sizes = {"B": batch, "S": length, "G": kept, "D": size, "K": None if size is None else size * kept}
    # The elements of quantised buffers may be packed.
    plain = ctx.attribute("k_quant_type", "NONE") == "NONE"
    expect_shapes(ctx, "", "key: B S K", "value: B S K", sizes=sizes)
    last = "D" if plain else "?"
    past = (f"past_key: B G P {last}", f"past_value: B G P {last}")
    lengths = "seqlens_k: B | B 1" if ctx.node.op_type == "GroupQueryAttention" else ""
    expect_shapes(ctx, "", "", "", *past, lengths, sizes=sizes)


def _buffer(ctx: NodeContext, past: int, new: tuple[DimLike | None, int, DimLike, DimLike | None]) -> ValueType:
    """Return the type of a buffer of keys or values: as long as the past buffer, or as all tokens so far if these are
    more.
    """
    batch, kept, total, head_size = new
    if not ctx.has_input(past):
        quantized = ctx.attribute("k_quant_type", "NONE") != "NONE"
        return tensor(None if quantized else ctx.input(0).dtype, (batch, kept, total, None if quantized else head_size))
    dtype, before = ctx.input(past).dtype, dims_of_rank(ctx, past, 4)
    if before is None:
        return tensor(dtype, _UNKNOWN_STATE)
    if int_attribute(ctx, "sliding_window_cache", 0) or ctx.facts.prove_ge(before[2], total):
        return tensor(dtype, before)
    length = total if ctx.facts.prove_ge(total, before[2]) else dim_max(total, before[2])
    return tensor(dtype, (before[0], before[1], length, before[3]))


@operator("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(ctx: NodeContext) -> Sequence[ValueType]:
    """Turn each pair of elements by its position."""
    dims = dims_of(ctx, 0)
    length = None if dims is None or len(dims) not in (3, 4) else dims[-2] if len(dims) == 4 else dims[1]
    turned: DimLike | None = int_attribute(ctx, "rotary_embedding_dim", 0) or None
    heads = int_attribute(ctx, "num_heads", 0)
    if turned is None and dims is not None and len(dims) == 4:
        turned = dims[3]
    elif turned is None and dims is not None and len(dims) == 3 and heads:
        turned = exact_quotient(ctx, dims[2], heads, "the hidden size by the number of heads")
    pairs = None if turned is None else turned // 2
    sizes = {"B": None if dims is None or not dims else dims[0], "S": length, "D": pairs}
    expect_shapes(ctx, "", "position_ids: 1 | B S", "cos_cache: M D", "sin_cache: M D", sizes=sizes)
    table = dims_of(ctx, 2)
    if table and dims_of(ctx, 1) not in ((1,), ()):
        require_indices(ctx, 1, table, 0)
    return [tensor(ctx.input(0).dtype, dims)]


@operator("GemmaRotaryEmbedding", gives=(1, 3), domain=DOMAIN)
def gemma_rotary_embedding(ctx: NodeContext) -> Sequence[ValueType]:
    """Turn queries and keys by their positions."""
    return [like_input(ctx, index) for index in (1, 3)]


@operator("RelativePositionBias", domain=DOMAIN)
def relative_position_bias(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a bias for each head, query and key from a table of buckets by heads."""
    lengths = {"Q": scalar_dim(ctx, 1), "K": scalar_dim(ctx, 2)}
    return shapes(ctx, "bias_table: ? N", sizes=lengths, gives="0 1 N Q K")
