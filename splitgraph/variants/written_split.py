"""What a split node says of its axis and its parts, for the report of a node that is invalid or not understood."""

from __future__ import annotations

from typing import NamedTuple

from splitgraph.canonical import SplitSite, dimension_on
from splitgraph.contents import MAX_ITEMS, MAX_UNKNOWN
from splitgraph.dim import Dim, DimLike
from splitgraph.variants.variant import Variant


class WrittenSplit(NamedTuple):
    """The axis and the lengths as a node gives them, not checked.

    axis: non-negative where rank and axis fit, else as written; None when unknown. lengths: None for an unknown one;
    empty when nothing gives their number.
    """

    axis: int | None
    lengths: tuple[DimLike | None, ...]


def read_written(variant: Variant, site: SplitSite) -> WrittenSplit:
    """Read what can be read of a split node, whatever is wrong with it; nothing is reported and nothing concluded."""
    if variant.op_type == "StringSplit":
        return WrittenSplit(None, ())
    axis = _axis(variant, site)
    lengths = _given_lengths(variant, site)
    return WrittenSplit(axis, _counted_parts(variant, site, axis) if lengths is None else lengths)


def _axis(variant: Variant, site: SplitSite) -> int | None:
    if "axis" in variant.attributes:
        axis = site.attribute("axis", 0)
    else:
        contents = site.contents(1)
        axis = None if contents is None else contents.scalar
    if not isinstance(axis, int):
        return None
    rank = site.input(0).rank
    return axis if rank is None or not -rank <= axis < rank else axis % rank


def _given_lengths(variant: Variant, site: SplitSite) -> tuple[DimLike | None, ...] | None:
    """The lengths of the input or the attribute that holds them in any version; None without either."""
    position = 2 if variant.op_type == "VariadicSplit" else 1
    if "num_splits" not in variant.attributes and site.has_input(position):
        contents = site.contents(position)
        shape = site.input(position).shape if contents is None else contents.shape
        if shape is None or (variant.op_type == "SplitToSequence" and not shape):
            # A scalar is the size of each part of a sequence.
            return None
        if contents is not None:
            return tuple(map(_length, contents.items))
        count = shape[0] if len(shape) == 1 else None
        return (None,) * count if isinstance(count, int) and count <= MAX_UNKNOWN else None
    given = site.attribute("split")
    return tuple(map(_length, given)) if isinstance(given, tuple) else None


def _length(item: object) -> DimLike | None:
    if isinstance(item, float) and item.is_integer():
        return int(item)
    return item if isinstance(item, (int, Dim)) else None


def _counted_parts(variant: Variant, site: SplitSite, axis: int | None) -> tuple[DimLike | None, ...]:
    """The parts that num_outputs or num_splits counts: each of the same size, as far as the dimension is known and has
    room for them.
    """
    equal = "num_splits" in variant.attributes
    count = site.attribute("num_splits" if equal else "num_outputs")
    if not isinstance(count, int) or not 0 < count <= MAX_ITEMS:
        return ()
    rank = site.input(0).rank
    total = dimension_on(site.input(0), axis) if rank is not None and axis is not None and 0 <= axis < rank else None
    if not isinstance(total, int) or (equal and total % count):
        return (None,) * count
    size = -(-total // count)
    found: list[DimLike | None] = [size if (part + 1) * size <= total else None for part in range(count)]
    rest = total - (count - 1) * size
    return (*found[:-1], rest if rest >= 0 else None)
