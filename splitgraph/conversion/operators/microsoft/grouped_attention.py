"""GroupQueryAttention of com.microsoft: attention with a cache, in which fewer heads hold keys and values.

Each sequence of the batch has a length of its own: `seqlens_k` tells the last place that holds a key after this step. A
call whose new tokens are all tokens is the first one, whatever the cache holds. Places behind the length hold 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.linear_attention import text_of
from splitgraph.conversion.operators.microsoft.normalizations import widened
from splitgraph.conversion.operators.microsoft.rotations import Rotation
from splitgraph.conversion.operators.microsoft.scaled_products import (
    ATTENTION_SINCE,
    LOWEST,
    inverse_root,
    merge_heads,
    split_heads,
)
from splitgraph.conversion.operators.standard import standard, without_form

_KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LAST_PLACES, _TOTAL, _COS, _SIN = range(1, 9)
_POSITIONS, _BIAS, _SINK, _KEY_SCALE, _VALUE_SCALE, _KEY_NORM, _QUERY_NORM, _NEW = range(9, 17)
_QUERY_KEY = 3

without_form(
    "SparseAttention",
    "onnxruntime runs it only where the past and the present are one buffer, which a model does not tell",
)


@dataclass(frozen=True, slots=True)
class _CacheStep:
    """What a call adds to the cache; int64.

    batch, new, total: how many sequences, new rows of each, and keys at most, (). counted: the new rows, (new).
    ends: the length of each sequence after the step, and before: in front of it, both (batch, 1, 1, 1) or ().
    rows: how many new rows of each sequence count; None for all. is_first: None where it has no meaning.
    """

    batch: Term
    new: Term
    total: Term
    counted: Term
    ends: Term
    before: Term
    rows: Term | None
    is_first: Term | None

    @property
    def is_one_token(self) -> bool:
        """Return True when each sequence is known to get one token."""
        return self.new.elements is not None and int(self.new.elements) == 1


@standard(
    "GroupQueryAttention",
    causal=1,
    local_window_size=-1,
    qk_output=0,
    k_quant_type="NONE",
    v_quant_type="NONE",
    kv_cache_bit_width=0,
)
def write_group_query_attention(node: NodeAtBoundary) -> None:
    """Write the rotation of queries and keys, the cache with the new rows, and attention."""
    f, dtype = Formula(node), node.known_dtype()
    _refuse_other_forms(node)
    size = _head_size(node)
    step = _step(f)
    query, key, value = _tokens(f, size)
    if node.known_is_set("do_rotary"):
        query, key = _rotated(f, step, query, key, size)
    keys, values = _cache(f, step, key, value, size)
    heads = _Heads(f, *_counts(node), size, step)
    rows = (
        _read(f, _attended_rows(f, step, cache), scale, size)
        for cache, scale in ((keys, _KEY_SCALE), (values, _VALUE_SCALE))
    )
    output, scores = heads.attended(query, *rows)
    asked = [node.uses_output(index) for index in (1, 2, _QUERY_KEY)]
    results = [keys, values, None if scores is None else scores.cast(dtype)]
    f.give(output.cast(dtype), *(term if wanted else None for term, wanted in zip(results, asked, strict=True)))


def _refuse_other_forms(node: NodeAtBoundary) -> None:
    """Raise Inexact for what no kernel on a CPU computes, and for what a model does not tell."""
    kinds = [text_of(node, name) for name in ("k_quant_type", "v_quant_type")]
    if kinds[0] != kinds[1] or (_is_quantized(node) and not node.uses_input(_PAST_KEY)):
        raise Inexact("onnxruntime refuses keys and values that are quantized differently on a CPU, or without a past")
    if _is_quantized(node) and _bits(node) not in (4, 8):
        raise Inexact(f"onnxruntime refuses a cache of {_bits(node)} bits")
    if node.known_is_set("sliding_window_cache"):
        raise Inexact("its cache holds a window of the last keys, which this version of splitgraph does not write")
    if node.uses_input(_QUERY_NORM) or node.uses_input(_KEY_NORM):
        raise Inexact("onnxruntime refuses weights of norms on a CPU, so that nothing can be compared with them")
    if node.uses_output(_QUERY_KEY) and (
        node.known_value_or_default("qk_output") not in (1, 2) or node.known_value_or_default("local_window_size") >= 0
    ):
        raise Inexact("qk_output does not tell what its fourth output holds, or a window hides keys from it")


def _counts(node: NodeAtBoundary) -> tuple[int, int]:
    """Return the number of heads of queries, and of keys and values."""
    return node.known_value("num_heads"), node.known_value("kv_num_heads")


def _head_size(node: NodeAtBoundary) -> int:
    """Return the size of a head; raise Inexact where no shape tells it."""
    heads, kept = _counts(node)
    query, past = node.shape(0), node.shape(_PAST_KEY)
    width = query[-1] if query is not None else None
    if isinstance(width, int):
        return width // (heads if node.uses_input(_KEY) else heads + 2 * kept)
    size = past[-1] if past is not None else None
    if isinstance(size, int) and not _is_quantized(node):
        return size
    raise Inexact("the size of a head is unknown", "declare the shape of the query")


def _tokens(f: Formula, size: int) -> list[Term]:
    """Return queries, keys and values, (batch, length, heads * size)."""
    if f.node.uses_input(_KEY):
        return [f.input(index) for index in range(3)]
    heads, kept = _counts(f.node)
    packed, widths = f.input(0), [heads * size, kept * size, kept * size]
    return f.write("Split", [packed, f.number(widths)], *[packed.dtype] * 3, axis=2)


# The step -------------------------------------------------------------------------------------------------------------


def _step(f: Formula) -> _CacheStep:
    node, batch, new = f.node, f.size(0, 0), f.size(0, 1)
    counted = f.counting(new)
    ends = (f.input(_LAST_PLACES, "int32").cast("int64") + 1).reshape(-1, 1, 1, 1)
    if not node.uses_input(_PAST_KEY):
        return _CacheStep(batch, new, new, counted, ends, f.number(0), None, f.number(True, "bool"))
    total = f.given(_TOTAL, "int32").cast("int64").reshape()
    if node.uses_input(_NEW):
        rows = f.input(_NEW, "int32").cast("int64").reshape(-1, 1, 1, 1)
        return _CacheStep(batch, new, total, counted, ends, ends - rows, rows, None)
    is_first = total.equals(new)
    step = _CacheStep(batch, new, total, counted, ends, ends - new, None, is_first)
    # The first token of a sequence has no past in any case.
    return step if step.is_one_token else replace(step, before=f.where(is_first, f.number(0), step.before))


def _positions(f: Formula, step: _CacheStep) -> Term:
    """Return the position of each new token, (batch, length). In the first step, the kernel counts from the first
    position of all that are given.
    """
    if not f.node.uses_input(_POSITIONS):
        if step.before.elements is not None:
            return step.counted.expanded(f.vector([step.batch, 1]))
        return (step.before + step.counted).squeezed(1, 2)
    given = f.input(_POSITIONS, "int64")
    if step.is_first is None:
        return given
    from_first = step.counted + given.reshape(-1).take(0)
    if step.is_first.elements is not None and bool(step.is_first.elements):
        return from_first.expanded(f.vector([step.batch, 1]))
    return f.where(step.is_first, from_first, given)


def _rotated(f: Formula, step: _CacheStep, query: Term, key: Term, size: int) -> tuple[Term, Term]:
    node = f.node
    table = node.shape(_COS)
    pairs = table[-1] if table is not None else None
    if not isinstance(pairs, int):
        raise Inexact("nothing tells how many elements turn", "declare the shape of cos_cache")
    cos, sin = widened(f, _COS), widened(f, _SIN)
    rotation = Rotation(cos, sin, _positions(f, step), pairs, node.known_is_set("rotary_interleaved")).shared()
    heads, kept = _counts(node)
    return rotation.turned(query, 3, heads, size), rotation.turned(key, 3, kept, size)


# The cache ------------------------------------------------------------------------------------------------------------


def _cache(f: Formula, step: _CacheStep, key: Term, value: Term, size: int) -> list[Term]:
    """Return keys and values after the step, (batch, heads, length, size), with 0 behind each sequence."""
    _, kept = _counts(f.node)
    if not f.node.uses_input(_PAST_KEY):
        return [split_heads(data, kept, size) for data in (key, value)]
    places, caches = _places(f, step), []
    width = size // 2 if _is_quantized(f.node) and _bits(f.node) == 4 else size
    nothing = f.filled(f.vector([step.batch, 1, kept, width]), 0, f.node.known_dtype(_PAST_KEY))
    for index, data, scale in ((_PAST_KEY, key, _KEY_SCALE), (_PAST_VALUE, value, _VALUE_SCALE)):
        new = _stored(f, data.reshape(0, 0, kept, size), scale)
        rows = [f.input(index).transposed(0, 2, 1, 3), new, nothing]
        chosen = f.joined(rows, 1).reshape(-1, kept, width).take(places)
        caches.append(chosen.transposed(0, 2, 1, 3))
    return caches


def _places(f: Formula, step: _CacheStep) -> Term:
    """Return, for each place of the cache after the step, the row that it takes of: the past, the new tokens, and a row
    of 0, of all sequences behind each other; (batch, length).
    """
    held = f.size(_PAST_KEY, 2)
    places = f.counting(f.apply("Max", held, step.total))
    before = step.before.reshape(-1, 1) if step.before.elements is None else step.before
    since = places - before
    rows = step.new if step.rows is None else step.rows.reshape(-1, 1)
    taken = f.where(since < 0, places, f.where(since < rows, since + held, held + step.new))
    return taken + (f.counting(step.batch) * (held + step.new + 1)).reshape(-1, 1)


def _attended_rows(f: Formula, step: _CacheStep, cache: Term) -> Term:
    """Return the part of the cache that may be seen: it may be longer than all tokens."""
    if not f.node.uses_input(_PAST_KEY):
        return cache
    return cache.sliced(f.number([0]), step.total.reshape(1), 2)


def _is_quantized(node: NodeAtBoundary) -> bool:
    return text_of(node, "k_quant_type") != "NONE"


def _bits(node: NodeAtBoundary) -> int:
    bits: int = node.known_value_or_default("kv_cache_bit_width")
    return bits


def _stored(f: Formula, data: Term, scale: int) -> Term:
    """Return new rows (batch, length, heads, size) as the cache stores them. A byte holds two numbers of 4 bits, from
    -8 on, the first in its low bits. scale: an input, (1) or (1, heads, 1, size).
    """
    if not _is_quantized(f.node):
        return data
    steps, bound = f.input(scale), 1 << (_bits(f.node) - 1)
    steps = steps.transposed(0, 2, 1, 3) if f.node.known_rank(scale) == 4 else steps
    bounds = [f.number(limit, "float32") for limit in (-bound, bound - 1)]
    whole = f.apply("Clip", f.apply("Round", data.cast("float32") / steps), *bounds)
    if _bits(f.node) == 8:
        return whole.cast("int8")
    _, kept = _counts(f.node)
    pairs = (whole + bound).cast("int32").reshape(0, 0, kept, -1, 2)
    return (pairs.take(0, 4) + pairs.take(1, 4) * 16).cast("uint8")


def _read(f: Formula, cache: Term, scale: int, size: int) -> Term:
    """Return rows of the cache (batch, heads, length, size) as float32."""
    if not _is_quantized(f.node):
        return cache.cast("float32")
    if _bits(f.node) == 4:
        both = cache.cast("int32")
        parts = [part.unsqueezed(4) for part in (both % 16, both / 16)]
        cache = f.joined(parts, 4).reshape(0, 0, 0, size) - 8
    return cache.cast("float32") * f.input(scale)


# Attention ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heads:
    """Attention of heads of which several share keys and values."""

    f: Formula
    count: int
    kept: int
    size: int
    step: _CacheStep

    def attended(self, query: Term, key: Term, value: Term) -> tuple[Term, Term | None]:
        """Return the output, and the scores or weights if they are asked for. key, value: float32."""
        node, seen = self.f.node, self._seen()
        plain = not any(node.uses_input(index) for index in (_BIAS, _SINK)) and not node.uses_output(_QUERY_KEY)
        plain = plain and not self._softcap() and not self._is_smooth() and self._window() is None
        if plain and self.f.opset >= ATTENTION_SINCE:
            if not self._is_causal():
                seen = seen.expanded(self.f.vector([1, 1, self.step.new, 1]))
            terms = [split_heads(_wide(query), self.count, self.size), key, value, seen]
            (output,) = self.f.write("Attention", terms, "float32", scale=self._scale())
            return merge_heads(output, self.count, self.size), None
        seen, key, value = self._for_groups(seen), self._for_groups(key), self._for_groups(value)
        scores = self._scores(self._split(_wide(query)), key)
        weights = self._weights(scores, seen)
        return self._merged(weights @ value), self._asked(scores, weights, seen)

    # Groups: the heads that share keys and values have an axis of their own, if several do ------------------------

    @property
    def _group(self) -> int:
        return self.count // self.kept

    def _for_groups(self, data: Term) -> Term:
        """Insert the axis of the heads that share keys and values."""
        return data if self._group == 1 else data.unsqueezed(2)

    def _split(self, query: Term) -> Term:
        if self._group == 1:
            return split_heads(query, self.count, self.size)
        return query.reshape(0, 0, self.kept, self._group, self.size).transposed(0, 2, 3, 1, 4)

    def _merged(self, output: Term) -> Term:
        if self._group == 1:
            return merge_heads(output, self.count, self.size)
        return output.transposed(0, 3, 1, 2, 4).reshape(0, 0, self.count * self.size)

    def _by_group(self, data: Term, *sizes: Term | int) -> Term:
        """Return (x, heads, ...) with an axis for groups. sizes: all but those of heads."""
        if self._group == 1:
            return data
        return data.shaped([sizes[0], self.kept, self._group, *sizes[1:]])

    # What is seen --------------------------------------------------------------------------------------------------

    def _seen(self) -> Term:
        """Return which keys each query sees, (batch, 1, queries, keys); one row stands for all queries alike."""
        f, step = self.f, self.step
        places = f.counting(step.total)
        if not self._is_causal():
            return places < step.ends
        behind = step.before + step.counted.reshape(-1, 1) + 1
        end = step.ends if step.is_one_token else f.apply("Min", behind, step.ends)
        seen, window = places < end, self._window()
        if window is not None:
            seen = seen & ~(places < (behind if self._counts_window_from_query() else end) - window)
        if step.rows is not None:
            seen = seen & (step.counted.reshape(-1, 1) < step.rows)
        return seen

    def _counts_window_from_query(self) -> bool:
        """Return True where the kernel counts the window from the query itself, and not from the end of the sequence:
        the two differ for tokens of padding behind it. float32 has a kernel of its own, for what is plain otherwise.
        """
        has_sink = self._is_smooth() or self.f.node.uses_input(_SINK)
        return self.f.node.dtype(0) == "float32" and not self._softcap() and not has_sink

    def _is_causal(self) -> bool:
        return bool(self.f.node.known_value_or_default("causal"))

    def _window(self) -> int | None:
        window: int = self.f.node.known_value_or_default("local_window_size")
        return window if window >= 0 else None

    def _is_smooth(self) -> bool:
        return bool(self.f.node.known_value("smooth_softmax", -1) == 1)

    # Scores and weights --------------------------------------------------------------------------------------------

    def _softcap(self) -> float:
        cap: float = self.f.node.known_value("softcap", 0.0)
        return max(cap, 0.0)

    def _scale(self) -> float | None:
        scale: float | None = self.f.node.known_value("scale")
        return scale or None

    def _scores(self, query: Term, key: Term) -> Term:
        """Return the scaled products of queries and keys, capped, with the bias."""
        f, scale, cap = self.f, self._scale(), self._softcap()
        factor = inverse_root(f.number(self.size)) if scale is None else f.number(scale, "float32")
        order = (0, 1, 3, 2) if self._group == 1 else (0, 1, 2, 4, 3)
        scores = (query @ key.transposed(*order)) * factor
        if cap:
            scores = f.apply("Tanh", scores / cap) * cap
        if not f.node.uses_input(_BIAS):
            return scores
        # A bias may be the same for all heads.
        bias = widened(f, _BIAS).expanded(f.number([1, self.count, 1, 1]))
        return scores + self._by_group(bias, f.size(_BIAS, 0), self.step.new, -1)

    def _weights(self, scores: Term, seen: Term) -> Term:
        """Return the softmax over the keys that are seen; 0 for a query that sees none. A sink takes a part of it."""
        f, node = self.f, self.f.node
        scores = f.where(seen, scores, LOWEST)
        sink = f.number(0.0, "float32") if self._is_smooth() else None
        if node.uses_input(_SINK):
            sink = self._by_group(widened(f, _SINK).reshape(1, self.count, 1, 1), 1, 1, 1)
        if sink is None:
            weights = f.apply("Softmax", scores, axis=-1)
        else:
            heads = [self.count] if self._group == 1 else [self.kept, self._group]
            column = sink.expanded(f.vector([self.step.batch, *heads, self.step.new, 1]))
            weights = f.apply("Softmax", f.joined([scores, column], -1), axis=-1)
            weights = weights.sliced(f.number([0]), self.step.total.reshape(1), -1)
        may_see_none = self._window() is not None or self.step.rows is not None or node.uses_input(_BIAS)
        return f.where(seen, weights, 0.0) if may_see_none else weights

    def _asked(self, scores: Term, weights: Term, seen: Term) -> Term | None:
        node = self.f.node
        if not node.uses_output(_QUERY_KEY):
            return None
        before = node.known_value_or_default("qk_output") == 1
        given = self.f.where(seen, scores if before else weights, 0.0)
        return given if self._group == 1 else given.shaped([0, self.count, self.step.new, self.step.total])


def _wide(data: Term) -> Term:
    return data.cast("float32")
