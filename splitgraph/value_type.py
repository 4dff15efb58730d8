"""What is known of a value: its kind, element type and shape."""

from __future__ import annotations

from collections.abc import Sequence
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
        found = self
        while found.element is not None:
            found = found.element
        return found

    def with_shape(self, shape: Sequence[int | Dim | None] | None) -> ValueType:
        """The same type with another shape."""
        return ValueType(self.kind, self.dtype, None if shape is None else tuple(shape), self.element)

    def __str__(self) -> str:
        body = f"{self.dtype or '?'}[{'...' if self.shape is None else ', '.join(_dim_text(d) for d in self.shape)}]"
        if self.kind == "tensor":
            return body
        if self.kind == "unknown":
            return "unknown"
        return f"{self.kind}({body if self.element is None else self.element})"


UNKNOWN = ValueType()


def tensor(dtype: str | None, shape: Sequence[int | Dim | None] | None) -> ValueType:
    """A tensor type."""
    return ValueType("tensor", dtype, None if shape is None else tuple(shape))


def sequence(dtype: str | None, shape: Sequence[int | Dim | None] | None) -> ValueType:
    """A sequence of tensors of one element type, each of the given shape."""
    return ValueType("sequence", dtype, None if shape is None else tuple(shape))


def _dim_text(dim: int | Dim | None) -> str:
    return "?" if dim is None else str(dim)
