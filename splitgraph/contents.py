"""What is known of a value's contents: the elements of a small tensor, the members of a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from splitgraph.dim import Dim
from splitgraph.value_type import ValueType


@dataclass(frozen=True, slots=True)
class Ratio:
    """An element of a float tensor: a symbolic integer over a static one, not rounded yet (half of N, before Floor)."""

    numerator: Dim
    denominator: int


# One element: an exact number (booleans are 0 and 1), a symbolic integer, a symbolic fraction, a string, or None when
# unknown.
Item = int | float | str | Dim | Ratio | None

# How much is made of what a file only declares: a few bytes can declare any number (docs/dimensions.md).

# Shape arithmetic works on a handful of elements; following more than this would only cost time. A sequence of more
# parts is described by their size.
MAX_ITEMS = 4096
# Dimensions, or lengths of parts, of which nothing is known but how many there are: each gets a symbol.
MAX_UNKNOWN = 256
# Elements of constants that a conversion writes out.
MAX_WRITTEN = 2**20
# The rank of tensors whose elements are followed: the lowest limit of the NumPy versions that are supported.
MAX_RANK = 32
# Elements of a list of integers that the file holds, which may be the lengths of a split with very many parts.
MAX_LISTED = 2**20


@dataclass(frozen=True, slots=True)
class Contents:
    """The elements of a tensor of static shape, in row-major order; an element may be unknown (None)."""

    shape: tuple[int, ...]
    items: tuple[Item, ...]

    @property
    def dims(self) -> tuple[int | Dim | None, ...]:
        """The elements as integers: None for one that is unknown or not an integer."""
        return tuple(item if isinstance(item, (int, Dim)) else None for item in self.items)

    @property
    def integers(self) -> tuple[int, ...] | None:
        """All elements when every one is a known integer, else None."""
        if all(isinstance(item, int) for item in self.items):
            return tuple(item for item in self.items if isinstance(item, int))
        return None

    @property
    def scalar(self) -> Item:
        """The only element of a tensor with one element, None when unknown or when there are more."""
        return self.items[0] if len(self.items) == 1 else None


def scalar(item: Item) -> Contents:
    """The contents of a 0-D tensor."""
    return Contents((), (item,))


def vector(items: Iterable[Item] | Sequence[Item]) -> Contents:
    """The contents of a 1-D tensor."""
    held = tuple(items)
    return Contents((len(held),), held)


@dataclass(frozen=True, slots=True)
class SequenceInfo:
    """What is known of a sequence beyond the type of its elements.

    length: number of elements, None when unknown. elements: the type of each, None when not known one by one.
    axis, total: the elements are consecutive parts along `axis` of a tensor whose dimension there is `total` (None: not
    such parts); squeezed: the parts had length 1 and lost that axis; size: the length of every part but the last, which
    may be shorter (None: not such parts).
    """

    length: int | Dim | None = None
    elements: tuple[ValueType, ...] | None = None
    axis: int | None = None
    total: int | Dim | None = None
    squeezed: bool = False
    size: int | Dim | None = None
