"""Attention, MultiHeadAttention, DecoderMaskedMultiHeadAttention and QAttention of com.microsoft.

A mask is a number that is added to the scores: 0, or `mask_filter_value` where a key is masked. So a query whose keys
are all masked sees all of them alike, and not none. Everything is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.normalizations import widened
from splitgraph.conversion.operators.microsoft.scaled_products import (
    ATTENTION_SINCE,
    LOWEST,
    AttendedLengths,
    Attending,
    hidden_keys,
    kept_keys,
    split_heads,
)
from splitgraph.conversion.operators.standard import standard
from splitgraph.dim import DimLike

_MASKED = -10000.0
# What hides a key in Attention of ai.onnx, a float32. onnxruntime's gives 0 to a query if all keys have the least one.
_LEAST = -3.3999999521443642e38


@dataclass(frozen=True, slots=True)
class _Masking:
    """What hides keys. mask, bias: inputs, None where the node has none. batch: the input that tells the batch."""

    mask: int | None
    bias: int | None
    batch: int
    unidirectional: bool
    fill: float
    may_stand_for_none: bool

    def added(self, f: Formula, lengths: AttendedLengths, *, least: float) -> Term | None:
        """Return what is added to the scores; None for nothing. least: what hides a key."""
        masked, hidden, zero = None, None, f.number(0.0, "float32")
        if self.mask is not None:
            kept = kept_keys(f, self.mask, self.batch, lengths, may_stand_for_none=self.may_stand_for_none)
            masked = None if kept is None else f.where(kept, zero, max(self.fill, least))
        if self.unidirectional:
            hidden = hidden_keys(f, lengths)
        if hidden is not None:
            masked = f.where(hidden, least, zero if masked is None else masked)
        if self.bias is None:
            return masked
        bias = widened(f, self.bias)
        return bias if masked is None else masked + bias

    def has_row_for_each_query(self, f: Formula) -> bool:
        """Return True when what is added differs from query to query."""
        return self.unidirectional or (self.mask is not None and f.node.rank(self.mask) == 3)

    @property
    def fits_attention(self) -> bool:
        """Return True when Attention of ai.onnx gives the same weights. onnxruntime's gives 0 to a query whose keys all
        have the least float32 or minus infinity, which a bias may hold.
        """
        return self.bias is None and (self.mask is None or self.fill > _LEAST or self.fill == LOWEST)


def _masking(
    node: NodeAtBoundary, *, batch: int, mask: int, bias: int | None = None, may_stand_for_none: bool = False
) -> _Masking:
    fill, one_way = node.known_value_or_default("mask_filter_value"), node.known_value("unidirectional", 0)
    return _Masking(
        mask if node.uses_input(mask) else None,
        bias if bias is not None and node.uses_input(bias) else None,
        batch,
        bool(one_way),
        fill,
        may_stand_for_none,
    )


def _attended(
    attending: Attending, masking: _Masking, lengths: AttendedLengths, *, presents: bool, scores: bool, keys_fit: bool
) -> list[Term]:
    """Write attention in the newest form that the opset has. Return the output, and keys, values and scores if they are
    asked for. keys_fit: no query comes before a key without a query of its own.
    """
    f = attending.f
    # onnxruntime refuses an Attention whose scale is not positive.
    is_refused = (attending.scale or 1.0) < 0
    if f.opset < ATTENTION_SINCE or scores or is_refused or not masking.fits_attention:
        return attending.by_products(masking.added(f, lengths, least=LOWEST))
    if masking.unidirectional and keys_fit and masking.mask is None:
        return attending.by_operator(None, is_causal=True, presents=presents)
    mask = masking.added(f, lengths, least=_LEAST)
    if mask is not None and not masking.has_row_for_each_query(f):
        # onnxruntime takes no mask that has one row for all queries.
        mask = mask.expanded(f.vector([1, 1, lengths.queries, lengths.total]))
    return attending.by_operator(mask, is_causal=False, presents=presents)


def _scale(node: NodeAtBoundary) -> float | None:
    """Return the scale, None for 1 / sqrt(size of a head), which 0 means, too."""
    scale: float | None = node.known_value("scale")
    return scale or None


def _whole(size: DimLike | None) -> int | None:
    return size if isinstance(size, int) else None


# Attention, QAttention: queries, keys and values from one product -----------------------------------------------------


@standard("Attention", mask_filter_value=_MASKED)
def write_attention(node: NodeAtBoundary) -> None:
    """Write the projection of the input, and attention."""
    f = Formula(node)
    projected = widened(f, 0) @ widened(f, 1)
    if node.uses_input(2):
        projected = projected + widened(f, 2)
    masking = _masking(node, batch=0, mask=3, bias=5, may_stand_for_none=True)
    _give_self_attention(f, projected, masking, past=4, dtype=node.known_dtype())


@standard("QAttention", mask_filter_value=_MASKED)
def write_quantized_attention(node: NodeAtBoundary) -> None:
    """Write the projection of the quantized input in integers, and attention."""
    f = Formula(node)
    terms = [f.input(0), f.input(1), *(f.input(index) if node.uses_input(index) else None for index in (6, 7))]
    while terms[-1] is None:
        terms.pop()
    (product,) = f.write("MatMulInteger", terms, "int32")
    projected = product.cast("float32") * (f.input(3) * f.input(4)) + f.input(2)
    masking = _masking(node, batch=0, mask=5, may_stand_for_none=True)
    _give_self_attention(f, projected, masking, past=8, dtype="float32")


def _give_self_attention(f: Formula, projected: Term, masking: _Masking, past: int, dtype: str) -> None:
    """Give the attention of queries, keys and values that lie beside each other."""
    node, heads = f.node, f.node.known_value("num_heads")
    _refuse_unknown_forms(node)
    widths = _widths(node)
    query, key, value = _split(f, projected, widths)
    key_size, value_size = (None if width is None else width // heads for width in widths[1:])
    kept = _past(f, past)
    attending = Attending(f, heads, query, key, value, True, _scale(node), (key_size, value_size), kept)
    lengths = _lengths(f, 0, past if kept else None, 3)
    presents = node.uses_output(1)
    output, *more = _attended(attending, masking, lengths, presents=presents, scores=False, keys_fit=True)
    present = f.joined([part.unsqueezed(0) for part in more[:2]]) if presents else None
    f.give(output.cast(dtype), None if present is None else present.cast(dtype))


def _refuse_unknown_forms(node: NodeAtBoundary) -> None:
    if node.op_type == "Attention" and node.known_is_set("do_rotary"):
        raise Inexact("onnxruntime refuses do_rotary on a CPU, so that nothing can be compared with it")
    if node.known_is_set("past_present_share_buffer"):
        raise Inexact("onnxruntime refuses past_present_share_buffer on a CPU, so that nothing can be compared with it")


def _widths(node: NodeAtBoundary) -> tuple[int | None, int | None, int | None]:
    """Return the sizes of queries, keys and values for all heads together; None where they are unknown, and equal."""
    sizes = node.known_value("qkv_hidden_sizes")
    if sizes:
        if len(sizes) != 3 or sizes[0] != sizes[1]:
            raise Inexact(f"qkv_hidden_sizes is {list(sizes)}; queries and keys must be of one size")
        return (sizes[0], sizes[1], sizes[2])
    weights, bias = node.shape(1), node.shape(2)
    together = _whole(weights[-1]) if weights else None
    if together is None and bias:
        together = _whole(bias[-1])
    return (None,) * 3 if together is None else (together // 3,) * 3


def _split(f: Formula, data: Term, widths: Sequence[int | None]) -> list[Term]:
    """Split the last axis of (batch, length, width): into three equal parts where the widths are unknown."""
    known = [width for width in widths if width is not None]
    if len(known) == len(widths):
        return f.write("Split", [data, f.number(known)], *[data.dtype] * len(known), axis=2)
    part = data.shape().take([2]) / 3
    bounds = [f.number([0]), part, part * 2, part * 3]
    return [data.sliced(start, end, 2) for start, end in pairwise(bounds)]


def _past(f: Formula, index: int) -> tuple[Term, Term] | None:
    """Return the keys and values of the past, which are stacked."""
    if not f.node.uses_input(index):
        return None
    past = widened(f, index)
    return past.take(0), past.take(1)


def _lengths(f: Formula, data: int, past: int | None, axis: int) -> AttendedLengths:
    """Return the lengths of self attention. data: an input (batch, length, ...). past: one with the past on an axis."""
    node, shape = f.node, f.node.shape(data)
    new: DimLike | None = shape[1] if shape is not None and len(shape) > 1 else None
    before: DimLike | None = 0
    if past is not None:
        buffer = node.shape(past)
        before = buffer[axis] if buffer is not None else None
    queries, kept = f.size(data, 1), f.number(0) if past is None else f.size(past, axis)
    return AttendedLengths(queries, kept, kept + queries, None if new is None or before is None else before + new)


# MultiHeadAttention, DecoderMaskedMultiHeadAttention: queries, keys and values apart ----------------------------------


@dataclass(frozen=True, slots=True)
class _Places:
    """The inputs of an operator that takes queries, keys and values first."""

    bias: int
    mask: int
    attention_bias: int
    past_key: int
    past_value: int
    past_length: int
    beams: int


_MULTI_HEAD = _Places(3, 4, 5, 6, 7, 8, 9)
_DECODER_MASKED = _Places(10, 3, 4, 5, 6, 7, 9)


@standard("MultiHeadAttention", mask_filter_value=_MASKED)
def write_multi_head_attention(node: NodeAtBoundary) -> None:
    """Write the biases, and attention."""
    _write_multi_head(node, _MULTI_HEAD)


@standard("DecoderMaskedMultiHeadAttention", mask_filter_value=_MASKED)
def write_decoder_masked_multi_head_attention(node: NodeAtBoundary) -> None:
    """Write the biases, and the attention of one query."""
    _write_multi_head(node, _DECODER_MASKED)


def _write_multi_head(node: NodeAtBoundary, at: _Places) -> None:
    f, dtype = Formula(node), node.known_dtype()
    if not node.uses_input(1) or not node.uses_input(2):
        raise Inexact("onnxruntime refuses packed queries, keys and values on a CPU", "give keys and values apart")
    if node.uses_input(at.beams) and node.uses_input(at.attention_bias):
        bias = node.shape(at.attention_bias)
        if not bias or bias[0] != 1:
            raise Inexact(
                "onnxruntime adds to the scores of a beam what is meant for another one", "give one bias for all"
            )
    attending, masking = _operands(f, at), _masking(node, batch=0, mask=at.mask, bias=at.attention_bias)
    asks = {"presents": node.uses_output(1) or node.uses_output(2), "scores": node.uses_output(3)}
    if node.uses_input(at.past_key) and node.uses_input(at.past_length):
        attending, lengths, buffers = _with_buffers(attending, at)
        output, *more = _attended(attending, masking, lengths, **{**asks, "presents": False}, keys_fit=False)
        more = [*buffers, *more[2:]]
    else:
        if node.uses_input(at.past_key):
            if node.op_type.startswith("Decoder") or not node.uses_input(at.past_value):
                raise Inexact("onnxruntime refuses a past of keys without its length, and without one of values")
            attending.past = (widened(f, at.past_key), widened(f, at.past_value))
        lengths = _lengths_of_keys(f, at, flat=attending.flat)
        output, *more = _attended(attending, masking, lengths, **asks, keys_fit=_keys_fit(node, flat=attending.flat))
    wanted = [term if node.uses_output(place) else None for place, term in enumerate(more, 1)]
    f.give(*(None if term is None else term.cast(dtype) for term in (output, *wanted)))


def _operands(f: Formula, at: _Places) -> Attending:
    """Return queries, keys and values with their biases."""
    node = f.node
    flat, heads = node.known_rank(1) == 3, node.known_value("num_heads")
    shapes = [node.shape(index) for index in range(3)]
    width, of_key, last = (_whole(shape[-1]) if shape else None for shape in shapes)
    key_size = width // heads if width is not None else (None if flat else of_key)
    sizes = (key_size, last // heads if flat and last is not None else last)
    operands = [widened(f, index) for index in range(3)]
    if node.uses_input(at.bias):
        # Keys and values that are split into heads are those of an encoder, which have their biases.
        count = 3 if flat else 1
        parts = _parts_of_bias(f, at.bias, width)[:count]
        operands[:count] = [data + part for data, part in zip(operands, parts, strict=False)]
    query, key, value = operands
    return Attending(f, heads, query, key, value, flat, _scale(node), sizes)


def _parts_of_bias(f: Formula, index: int, width: int | None) -> list[Term]:
    """Return the biases of queries, keys and values, which lie behind each other. width: of queries and of keys."""
    bias = widened(f, index)
    known = f.node.elements(index)
    if known is not None and width is not None:
        parts = (known[:width], known[width : 2 * width], known[2 * width :])
        return [f.term(part).cast(bias.dtype) for part in parts]
    size = f.size(0, 2).reshape(1)
    return [
        bias.sliced(f.number([0]), size, 0),
        bias.sliced(size, size * 2, 0),
        bias.sliced(size * 2, axis=0),
    ]


def _lengths_of_keys(f: Formula, at: _Places, *, flat: bool) -> AttendedLengths:
    past = f.size(at.past_key, 2) if f.node.uses_input(at.past_key) else f.number(0)
    return AttendedLengths(f.size(0, 1), past, past + f.size(1, 1 if flat else 2), None)


def _keys_fit(node: NodeAtBoundary, *, flat: bool) -> bool:
    """Return True when there are known to be no more new keys than queries."""
    query, key = node.shape(0), node.shape(1)
    queries, keys = query[1] if query else None, key[1 if flat else 2] if key else None
    return queries is not None and (
        queries == keys or (isinstance(queries, int) and isinstance(keys, int) and keys <= queries)
    )


def _with_buffers(attending: Attending, at: _Places) -> tuple[Attending, AttendedLengths, list[Term]]:
    """Return attention over the first rows of buffers, as many as the past has, and over the new keys; and the buffers
    with the new keys and values behind the past.
    """
    f, flat = attending.f, attending.flat
    count, first = f.given(at.past_length, "int32").cast("int64").reshape(1), f.number([0])
    new = f.size(1, 1 if flat else 2).reshape(1)
    joined, buffers = [], []
    for index, data, size in zip(
        (at.past_key, at.past_value), (attending.key, attending.value), attending.sizes, strict=True
    ):
        rows, buffer = split_heads(data, attending.heads, size) if flat else data, widened(f, index)
        past = buffer.sliced(first, count, 2)
        buffers.append(f.joined([past, rows, buffer.sliced(count + new, axis=2)], 2))
        joined.append(f.joined([_of_beams(f, at.beams, past, count) if f.node.uses_input(at.beams) else past, rows], 2))
    lengths = AttendedLengths(f.size(0, 1), count.reshape(), (count + new).reshape(), None)
    return replace(attending, key=joined[0], value=joined[1], flat=False), lengths, buffers


def _of_beams(f: Formula, index: int, past: Term, count: Term) -> Term:
    """Return the past of each beam, of which each row may be that of another beam of the same batch.

    index: of the input that tells which one, (batch, beams, length of the buffer).
    """
    first = f.counting(f.size(index, 0)).reshape(-1, 1, 1) * f.size(index, 1)
    rows = (f.input(index, "int32").cast("int64") + first).shaped([-1, f.size(index, 2)])
    rows = rows.sliced(f.number([0]), count, 1).unsqueezed(1, 3)
    return f.apply("GatherElements", past, rows.expanded(past.shape()), axis=0)
