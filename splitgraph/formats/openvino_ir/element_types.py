"""Element types as OpenVINO IR names them, and the bytes that constants of them take.

Source: what OpenVINO's writer gives for every type of openvino.Type, and the sizes of constants that it writes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: splitgraph's name for it (OpenVINO's own where ONNX has none) and its bits, None for strings."""

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
    """The type that a precision ("FP32", "BOOL") or an element_type ("f32", "boolean") names; None for one that is
    dynamic, absent or not known.
    """
    lowered = name.strip().lower()
    return _TYPES.get(_PRECISIONS.get(lowered, lowered))


def dtype_of(name: str) -> str | None:
    """splitgraph's name for a precision or element_type, None where the IR does not tell a known one."""
    found = element_type(name)
    return None if found is None else found.dtype


def bits_of(name: str) -> int | None:
    """Bits of one element, None for strings and for types that are not known."""
    found = element_type(name)
    return None if found is None else found.bits


def byte_size(name: str, elements: int) -> int | None:
    """Bytes that a constant of this many elements takes; None for strings and for types that are not known."""
    bits = bits_of(name)
    if bits is None:
        return None
    if bits in _GROUPED_BITS:
        per_group = _GROUP_BITS // bits
        return -(-elements // per_group) * (_GROUP_BITS // 8)
    return (elements * bits + 7) // 8
