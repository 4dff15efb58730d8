"""How OpenVINO IR writes element types and shapes.

Source: what OpenVINO's writer gives for every type of openvino.Type, and the sizes of constants that it writes;
openvino::PartialShape and openvino::Dimension, by what their constructors accept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Element types -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type. dtype: splitgraph's name for it, OpenVINO's own name for a type that ONNX does not have. bits:
    None for strings.
    """

    dtype: str
    bits: int | None


# By the name that <data element_type> has; a port's precision names the same types in capitals, or as _PRECISIONS says.
_TYPES: dict[str, ElementType] = {
    "f64": ElementType("float64", 64),
    "f32": ElementType("float32", 32),
    "f16": ElementType("float16", 16),
    "bf16": ElementType("bfloat16", 16),
    "f8e4m3": ElementType("float8e4m3fn", 8),
    "f8e5m2": ElementType("float8e5m2", 8),
    "f8e8m0": ElementType("float8e8m0", 8),
    "f4e2m1": ElementType("float4e2m1", 4),
    "nf4": ElementType("nf4", 4),
    "i64": ElementType("int64", 64),
    "i32": ElementType("int32", 32),
    "i16": ElementType("int16", 16),
    "i8": ElementType("int8", 8),
    "i4": ElementType("int4", 4),
    "u64": ElementType("uint64", 64),
    "u32": ElementType("uint32", 32),
    "u16": ElementType("uint16", 16),
    "u8": ElementType("uint8", 8),
    "u6": ElementType("u6", 6),
    "u4": ElementType("uint4", 4),
    "u3": ElementType("u3", 3),
    "u2": ElementType("uint2", 2),
    "u1": ElementType("u1", 1),
    "boolean": ElementType("bool", 8),
    "string": ElementType("string", None),
}
_PRECISIONS = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "bool": "boolean", "bin": "u1"}
# Of these, OpenVINO stores groups that fill three bytes: the low bits of all elements, then the high ones.
_GROUPED_BITS = frozenset({3, 6})
_GROUP_BITS = 24


def element_type(name: str) -> ElementType | None:
    """Return the type that a precision ("FP32", "BOOL") or an element_type ("f32", "boolean") names; None for one that
    is dynamic, absent or not known.
    """
    lowered = name.strip().lower()
    return _TYPES.get(_PRECISIONS.get(lowered, lowered))


def dtype_of(name: str) -> str | None:
    """splitgraph's name for a precision or element_type, None where the IR does not tell a known one."""
    element = element_type(name)
    return None if element is None else element.dtype


def name_of(dtype: str) -> str:
    """Return the element_type that our name for a type has in an IR."""
    return next(name for name, element in _TYPES.items() if element.dtype == dtype)


def precision_of(dtype: str) -> str:
    """Return the precision that a port of our type has in an IR."""
    name = name_of(dtype)
    return next((precision for precision, known in _PRECISIONS.items() if known == name), name).upper()


def byte_size(name: str, elements: int) -> int | None:
    """Return bytes that a constant of this many elements takes; None for strings and for types that are not known."""
    element = element_type(name)
    if element is None or element.bits is None:
        return None
    bits = element.bits
    if bits in _GROUPED_BITS:
        per_group = _GROUP_BITS // bits
        return -(-elements // per_group) * (_GROUP_BITS // 8)
    return (elements * bits + 7) // 8


# Shapes --------------------------------------------------------------------------------------------------------------


# The lowest and the highest size of a dimension; the highest is None if there is no limit.
Interval = tuple[int, "int | None"]

_SIZE = re.compile(r"[0-9]{1,19}")
_LARGEST = 2**63 - 1


def parse_shape(text: str) -> tuple[Interval, ...] | None:
    """Return the bounds of each dimension of a shape, None for one of unknown rank ("...").

    Raises ValueError for what is not a shape: its message says which part is wrong.
    """
    inner = text.strip()
    if inner == "...":
        return None
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1].strip()
    return tuple(_interval(part.strip()) for part in inner.split(",")) if inner else ()


def parse_static_shape(text: str) -> tuple[int, ...]:
    """Return the sizes of the shape of a constant, which has no dynamic dimension and no brackets. Raises
    ValueError.
    """
    shape = parse_shape(text)
    if "[" in text:
        raise ValueError("the shape of a constant stands without brackets")
    if shape is None or any(lowest != highest for lowest, highest in shape):
        raise ValueError(f"{text[:80]!r} is dynamic")
    return tuple(lowest for lowest, _ in shape)


def _interval(part: str) -> Interval:
    if part in ("?", "-1"):
        return 0, None
    if ".." not in part:
        size = _size(part, part)
        return size, size
    low, _, high = part.partition("..")
    lowest = _size(low, part) if low else 0
    highest = _size(high, part) if high else None
    if highest is not None and highest < lowest:
        raise ValueError(f"{part[:80]!r} is not an interval: its end is less than its start")
    return lowest, None if highest == _LARGEST else highest


def _size(text: str, part: str) -> int:
    if not _SIZE.fullmatch(text) or int(text) > _LARGEST:
        raise ValueError(f"{part[:80]!r} is not a dimension")
    return int(text)
