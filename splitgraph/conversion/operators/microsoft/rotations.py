"""RotaryEmbedding and MRotaryEmbedding of com.microsoft: pairs of elements turn by angles of their positions.

Cosines and sines have a row for each position, and a column for each pair. Kernels compute types of 16 bits in float32,
and round once. The attribute `scale` does nothing in RotaryEmbedding; in MRotaryEmbedding it multiplies what turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from splitgraph.conversion.notation.formula import Formula, Term, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.normalizations import widened
from splitgraph.conversion.operators.standard import standard
from splitgraph.model.deferred import np

# The opset from which on ai.onnx has RotaryEmbedding.
_ROTARY_SINCE = 23


@dataclass(frozen=True, slots=True)
class Rotation:
    """How elements turn. cos, sin: (positions, pairs), or (batch, length, pairs) if `positions` is None.

    positions: (batch, length). interleaved: pairs are neighbours; otherwise the halves of what turns. pairs: how many.
    """

    cos: Term
    sin: Term
    positions: Term | None
    pairs: int
    interleaved: bool

    def shared(self) -> Rotation:
        """Return a rotation for several tensors: below the opset of RotaryEmbedding, the rows are taken once."""
        if self.positions is None or self.cos.formula.opset >= _ROTARY_SINCE:
            return self
        return replace(self, cos=self.cos.take(self.positions), sin=self.sin.take(self.positions), positions=None)

    def turned(self, data: Term, rank: int, heads: int | None, size: int) -> Term:
        """Turn (batch, length, heads * size), or (batch, heads, length, size). heads: None where unknown. What exceeds
        the pairs stays. 16-bit types are rounded once.
        """
        wide = data.cast(wide_float(data.dtype))
        if data.formula.opset >= _ROTARY_SINCE and (rank == 4 or heads is not None):
            return self._by_operator(wide, rank, heads, size).cast(data.dtype)
        return self._by_products(wide, rank, heads, size).cast(data.dtype)

    def _by_operator(self, data: Term, rank: int, heads: int | None, size: int) -> Term:
        tables = [self.cos, self.sin, *(() if self.positions is None else (self.positions,))]
        return data.formula.apply(
            "RotaryEmbedding",
            data,
            *tables,
            num_heads=heads if rank == 3 else None,
            rotary_embedding_dim=None if 2 * self.pairs == size else 2 * self.pairs,
            interleaved=1 if self.interleaved else None,
        )

    def _by_products(self, data: Term, rank: int, heads: int | None, size: int) -> Term:
        f = data.formula
        axis, split = (2, data.reshape(0, 0, heads or -1, size)) if rank == 3 else (1, data)
        cos, sin = (self._row(table).unsqueezed(axis) for table in (self.cos, self.sin))
        rest = size - 2 * self.pairs
        if self.interleaved:
            turning, *kept = _parts(split, [2 * self.pairs, rest] if rest else [size])
            pairs = turning.reshape(0, 0, 0, self.pairs, 2)
            one, other = pairs.take(0, 4), pairs.take(1, 4)
            both = [part.unsqueezed(4) for part in (one * cos - other * sin, one * sin + other * cos)]
            parts = [f.joined(both, 4).reshape(0, 0, 0, 2 * self.pairs), *kept]
        else:
            one, other, *kept = _parts(split, [self.pairs, self.pairs, *([rest] if rest else [])])
            parts = [one * cos - other * sin, one * sin + other * cos, *kept]
        result = f.joined(parts, 3)
        return result.reshape(0, 0, heads * size if heads else -1) if rank == 3 else result

    def _row(self, table: Term) -> Term:
        return table if self.positions is None else table.take(self.positions)


def _parts(data: Term, sizes: list[int]) -> list[Term]:
    """Split the last of four axes."""
    if len(sizes) == 1:
        return [data]
    return data.formula.write("Split", [data, data.formula.number(sizes)], *[data.dtype] * len(sizes), axis=3)


# RotaryEmbedding, MRotaryEmbedding ------------------------------------------------------------------------------------


@standard("RotaryEmbedding", rotary_embedding_dim=0, num_heads=0, interleaved=0)
def write_rotary_embedding(node: NodeAtBoundary) -> None:
    """Turn by the rows at the positions; one position is that of the first element of each sequence."""
    f, pairs = Formula(node), _pairs(node)
    positions = f.input(1)
    if node.known_rank(1) != 2:
        counted = f.counting(f.size(0, 1 if node.known_rank() == 3 else 2))
        positions = (counted + positions.reshape(1)).expanded(f.vector([f.size(0, 0), 1]))
    _give_turned(f, Rotation(widened(f, 2), widened(f, 3), positions, pairs, _is_interleaved(node)))


def _is_interleaved(node: NodeAtBoundary) -> bool:
    return bool(node.known_value_or_default("interleaved"))


def _pairs(node: NodeAtBoundary) -> int:
    """Return how many pairs turn; raise Inexact where neither a table nor a shape tells."""
    turned: int = node.known_value_or_default("rotary_embedding_dim")
    table, data, heads = node.shape(2), node.shape(0), node.known_value_or_default("num_heads")
    if turned:
        return turned // 2
    if table is not None and isinstance(table[-1], int):
        return table[-1]
    last = data[-1] if data is not None else None
    if data is not None and isinstance(last, int) and (len(data) == 4 or heads):
        return last // (2 if len(data) == 4 else 2 * heads)
    raise Inexact("nothing tells how many elements turn", "declare the shape of cos_cache")


def _give_turned(f: Formula, rotation: Rotation) -> None:
    """Turn the input, whose heads are as large as what turns unless the attributes tell how large."""
    node, rank = f.node, f.node.known_rank()
    shape, heads = node.shape(0), node.known_value_or_default("num_heads") or None
    last = shape[-1] if shape is not None else None
    width = last if isinstance(last, int) else None
    size = 2 * rotation.pairs
    if node.known_value_or_default("rotary_embedding_dim"):
        if width is None or (rank == 3 and heads is None):
            raise Inexact("nothing tells the size of a head, of which a part turns", "declare the shape of the input")
        size = width if rank == 4 else width // (heads or 1)
    elif rank == 3 and width is not None:
        heads = width // size
    f.give(rotation.turned(f.input(0), rank, heads, size))


@standard("MRotaryEmbedding", rotary_embedding_dim=0, num_heads=0, interleaved=0, mrope_layout=0, scale=1.0)
def write_multimodal_rotary_embedding(node: NodeAtBoundary) -> None:
    """Take the angle of each pair from the row at one of three positions, and turn."""
    f, pairs = Formula(node), _pairs(node)
    streams = _streams(node.known_value("mrope_section"), node.known_value_or_default("mrope_layout"), pairs)
    # For each pair, the places of its angles in the tables as rows: (pairs, batch, length).
    columns = f.number(np.arange(pairs).reshape(pairs, 1, 1))
    places = f.input(1, "int64").take(streams) * pairs + columns
    cos, sin = (widened(f, index).reshape(-1).take(places).transposed(1, 2, 0) for index in (2, 3))
    scale = node.known_value_or_default("scale")
    if scale != 1.0:
        cos, sin = cos * scale, sin * scale
    _give_turned(f, Rotation(cos, sin, None, pairs, _is_interleaved(node)))


def _streams(sections: list[int], layout: int, pairs: int) -> list[int]:
    """Return which of the three positions each pair takes: those of a section lie together, or are every third."""
    if layout == 0:
        streams = [stream for stream, count in enumerate(sections) for _ in range(count)]
    else:
        streams = [0] * pairs
        for stream in (1, 2):
            for place in range(stream, min(3 * sections[stream], pairs), 3):
                streams[place] = stream
    if len(streams) != pairs:
        raise Inexact(f"mrope_section {list(sections)} is not for {pairs} pairs")
    return streams
