"""Records of what is known of a value.

`ValueType`: its kind, element type and shape. `Contents`: the elements of a small tensor. `SequenceInfo`: the members
of a sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from splitgraph.dim import Dim

Shape = tuple["int | Dim | None", ...]

# ONNX TensorProto.DataType numbers and the names that splitgraph uses for them, in reports and JSON.
DTYPE_NAMES: dict[int, str] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
    27: "float6e2m3",
    28: "float6e3m2",
}
DTYPE_NUMBERS: dict[str, int] = {name: number for number, name in DTYPE_NAMES.items()}


@dataclass(frozen=True, slots=True)
class ValueType:
    """Kind, element type and shape of a value, as far as they are known.

    kind: "tensor" | "sequence" | "optional" | "sparse_tensor" | "map" | "unknown".
    dtype: numpy-style name ("float32", "bfloat16", "string", ...), None when unknown. For a sequence or optional: of
    its tensors. shape: a tuple of int, Dim or None (unknown), or None for an unknown rank. For a sequence: of every
    element. element: what a sequence or optional holds when that is not simply a tensor of `dtype` and `shape`
        (an optional of a sequence, a sequence of maps); None otherwise.
    """

    kind: str = "unknown"
    dtype: str | None = None
    shape: Shape | None = None
    element: ValueType | None = field(default=None, compare=True)

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None when unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def innermost(self) -> ValueType:
        """What the innermost of sequences, optional values and maps in one another holds; itself for a tensor."""
        inner = self
        while inner.element is not None:
            inner = inner.element
        return inner

    def with_shape(self, shape: Sequence[int | Dim | None] | None) -> ValueType:
        """Return the same type with another shape."""
        return ValueType(self.kind, self.dtype, None if shape is None else tuple(shape), self.element)

    def __str__(self) -> str:
        shape = "..." if self.shape is None else ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        body = f"{self.dtype or '?'}[{shape}]"
        if self.kind == "tensor":
            return body
        if self.kind == "unknown":
            return "unknown"
        return f"{self.kind}({body if self.element is None else self.element})"


UNKNOWN = ValueType()


def tensor(dtype: str | None, shape: Sequence[int | Dim | None] | None) -> ValueType:
    """Return a tensor type."""
    return ValueType("tensor", dtype, None if shape is None else tuple(shape))


def sequence(dtype: str | None, shape: Sequence[int | Dim | None] | None) -> ValueType:
    """Return a sequence of tensors of one element type, each of the given shape."""
    return ValueType("sequence", dtype, None if shape is None else tuple(shape))


# Contents ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ratio:
    """An element of a float tensor: a symbolic integer over a static one, not rounded yet (half of N, before Floor)."""

    numerator: Dim
    denominator: int


# One element: an exact number (booleans are 0 and 1), a symbolic integer, a symbolic fraction, a string, or None when
# unknown.
Item = int | float | str | Dim | Ratio | None

# Limits for what a file only declares: a few bytes can declare any number (docs/dimensions.md).

# Shape arithmetic works on a handful of elements; following more than this would only cost time. A sequence of more
# parts is described by their size.
MAX_ITEMS = 4096
# The most dimensions, or lengths of parts, of which only the number is known: each gets a symbol.
MAX_UNKNOWN = 256
# The most elements of constants that a conversion writes out.
MAX_WRITTEN = 2**20
# The rank of tensors whose elements are followed: the lowest limit of the NumPy versions that are supported.
MAX_RANK = 32
# The most elements of a list of integers in the file; it may be the lengths of a split with very many parts.
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
    """Return the contents of a 0-D tensor."""
    return Contents((), (item,))


def vector(items: Iterable[Item] | Sequence[Item]) -> Contents:
    """Return the contents of a 1-D tensor."""
    elements = tuple(items)
    return Contents((len(elements),), elements)


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
