"""Attention: the softmax of scaled products of queries and keys, as weights of values, in operators of ai.onnx.

Queries are (batch, length, heads * size). Keys and values are so, too, or (batch, heads, length, size).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact
from splitgraph.dim import DimLike
from splitgraph.model.deferred import np

# The opset from which on ai.onnx has Attention.
ATTENTION_SINCE = 23
# What onnxruntime writes in place of the score of a key that comes after a query: the least float32.
LOWEST = -3.4028234663852886e38


def split_heads(data: Term, heads: int, size: int | None) -> Term:
    """Return (batch, heads, length, size)."""
    return data.reshape(0, 0, heads, -1 if size is None else size).transposed(0, 2, 1, 3)


def merge_heads(data: Term, heads: int, size: int | None) -> Term:
    """Return (batch, length, heads * size)."""
    return data.transposed(0, 2, 1, 3).reshape(0, 0, -1 if size is None else heads * size)


def inverse_root(size: Term) -> Term:
    """Return 1 / sqrt(size) as float32."""
    if size.elements is not None:
        return size.formula.number(1 / math.sqrt(int(size.elements)), "float32")
    f = size.formula
    return f.apply("Reciprocal", size.cast("float32").sqrt())


@dataclass(slots=True)
class Attending:
    """The operands of attention. All are float32.

    flat: keys and values are as queries are. scale: None for 1 / sqrt(size of a head). sizes: of the heads of keys and
    values, None where unknown. past: keys and values (batch, heads, length, size) that come before.
    """

    f: Formula
    heads: int
    query: Term
    key: Term
    value: Term
    flat: bool
    scale: float | None
    sizes: tuple[int | None, int | None]
    past: tuple[Term, Term] | None = None

    def by_operator(self, mask: Term | None, *, is_causal: bool, presents: bool) -> list[Term]:
        """Write an Attention. mask: with a row for each query. Return the output, and keys and values with the past if
        they are asked for.
        """
        past = self.past or (None, None)
        presents = presents or self.past is not None
        query = self.query if self.flat else split_heads(self.query, self.heads, self.sizes[0])
        attributes = {"q_num_heads": self.heads, "kv_num_heads": self.heads} if self.flat else {}
        terms = [query, self.key, self.value, mask, *past]
        while terms[-1] is None:
            terms.pop()
        types = ["float32"] * (3 if presents else 1)
        causal = 1 if is_causal else None
        output, *kept = self.f.write("Attention", terms, *types, scale=self.scale, is_causal=causal, **attributes)
        if not self.flat:
            output = merge_heads(output, self.heads, self.sizes[1])
        return [output, *kept]

    def by_products(self, mask: Term | None) -> list[Term]:
        """Write the products. Return the output, keys and values with the past, and the scores with the mask."""
        query, key, value = split_heads(self.query, self.heads, self.sizes[0]), self.key, self.value
        if self.flat:
            key, value = (
                split_heads(data, self.heads, size) for data, size in zip((key, value), self.sizes, strict=True)
            )
        if self.past is not None:
            key, value = (self.f.joined(list(parts), 2) for parts in zip(self.past, (key, value), strict=True))
        scores = (query @ key.transposed(0, 1, 3, 2)) * self._scale()
        if mask is not None:
            scores = scores + mask
        weights = self.f.apply("Softmax", scores, axis=-1)
        output = merge_heads(weights @ value, self.heads, self.sizes[1])
        return [output, key, value, scores]

    def _scale(self) -> Term:
        if self.scale is not None:
            return self.f.number(self.scale, "float32")
        if self.sizes[0] is not None:
            return inverse_root(self.f.number(self.sizes[0]))
        return inverse_root(self.query.shape().take(2) / self.heads)


@dataclass(frozen=True, slots=True)
class AttendedLengths:
    """Of the queries, of the keys of the past, and of all keys; int64 scalars. known: of all keys, None if unknown."""

    queries: Term
    past: Term
    total: Term
    known: DimLike | None


def hidden_keys(f: Formula, lengths: AttendedLengths) -> Term | None:
    """Return where a key comes after a query, (queries, keys). onnxruntime hides nothing from the last query, even if
    there are more keys than queries. None where there is one query.
    """
    if lengths.queries.elements is not None and int(lengths.queries.elements) == 1:
        return None
    rows = f.counting(lengths.queries).reshape(-1, 1)
    return (f.counting(lengths.total) > rows + lengths.past) & (rows < lengths.queries - 1)


def kept_keys(f: Formula, index: int, batch: int, lengths: AttendedLengths, *, may_stand_for_none: bool) -> Term | None:
    """Return where a mask keeps keys, a boolean that broadcasts to (batch, 1, queries, keys); None if it keeps all.

    index: of the mask. batch: of the input that tells the batch, in its first dimension. may_stand_for_none: a mask for
    one key is none, if there are more.
    """
    mask, rank = f.given(index, "int32"), f.node.known_rank(index)
    if rank == 1:
        return _within_lengths(f, mask, index, batch, lengths)
    if rank not in (2, 3):
        raise Inexact(f"onnxruntime takes no mask of rank {rank} on a CPU")
    kept, axes = mask > 0, (1, 2) if rank == 2 else (1,)
    kept = kept.unsqueezed(*axes) if kept.elements is None else f.term(np.expand_dims(kept.elements, axes))
    length = (f.node.shape(index) or (None,))[-1]
    if rank == 3 or not may_stand_for_none or (length is not None and length == lengths.known):
        return kept
    if isinstance(length, int):
        # If there is one key in all, its weight is 1 with any mask.
        return None if length == 1 else kept
    return kept | f.size(index, 1).equals(1)


def _within_lengths(f: Formula, mask: Term, index: int, batch: int, lengths: AttendedLengths) -> Term:
    """Return where keys are within the ends that a mask of one dimension holds, and behind the starts if it holds
    these.
    """
    ends, starts = _ends_and_starts(f, mask, index, batch)
    places = f.counting(lengths.total)
    kept = places < ends.cast("int64").reshape(-1, 1, 1, 1)
    return kept if starts is None else kept & ~(places < starts.cast("int64").reshape(-1, 1, 1, 1))


def _ends_and_starts(f: Formula, mask: Term, index: int, batch: int) -> tuple[Term, Term | None]:
    """Return what a mask of one dimension holds for each sequence: where it ends, and where it starts if this is told,
    too.
    """
    length, sequences = (f.node.shape(index) or (None,))[0], (f.node.shape(batch) or (None,))[0]
    if length is None or sequences is None:
        raise Inexact("its mask has one dimension, and unknown sizes do not tell its meaning", "declare the shapes")
    if length == sequences:
        return mask, None
    count = f.size(batch, 0).reshape(1)
    if length == sequences * 2:
        return mask.sliced(f.number([0]), count, 0), mask.sliced(count, axis=0)
    if length == sequences * 3 + 2:
        return mask.sliced(f.number([0]), count, 0), None
    raise Inexact(
        f"its mask has {length} elements for {sequences} sequences, and its sizes do not tell its meaning",
        "declare the shapes",
    )
