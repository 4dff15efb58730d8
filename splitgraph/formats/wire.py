"""Why a file is not a readable ONNX protobuf: protobuf itself only says that it could not.

Walks the wire format along the schema, without reading a single weight, and only after protobuf has refused the file.
Source: the protocol buffers encoding specification.
"""

from __future__ import annotations

from typing import Any

from splitgraph.onnx_proto import ModelProto

# The nesting at which protobuf's own parsers stop.
MAX_DEPTH = 100
_VARINT, _FIXED64, _LENGTH, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_FIXED_SIZE = {_FIXED64: 8, _FIXED32: 4}


class _Malformed(Exception):
    """Bytes that are not a varint; the argument says what they are."""


def explain_unreadable(data: bytes) -> str:
    """What is wrong with bytes that protobuf refused, in one clause: truncated, nested too deep, or malformed, and
    where.
    """
    # Each entry is a message still to be read: start, end, its descriptor, its depth, what it is called.
    pending: list[tuple[int, int, Any, int, str]] = [(0, len(data), ModelProto.DESCRIPTOR, 1, "the model")]
    while pending:
        position, end, descriptor, depth, name = pending.pop()
        if depth > MAX_DEPTH:
            return f"is nested deeper than the {MAX_DEPTH} levels that protobuf reads"
        while position < end:
            try:
                tag, position = _varint(data, position, end)
                field = descriptor.fields_by_number.get(tag >> 3)
                start, position = _skip_value(data, position, end, tag)
            except _Malformed as fault:
                return f"{fault} (in {name}, at byte {position:,})"
            what = f"field {field.name!r} of {name}" if field is not None else name
            if position > end:
                return f"is truncated: {what} ends at byte {position:,}, but there are only {end:,}"
            if tag & 7 == _LENGTH and field is not None and field.message_type is not None:
                pending.append((start, position, field.message_type, depth + 1, field.message_type.name))
    return "is not a valid protobuf"


def _skip_value(data: bytes, position: int, end: int, tag: int) -> tuple[int, int]:
    """Start and end of the value behind a tag; the end may lie beyond the message."""
    kind = tag & 7
    if tag >> 3 == 0 or kind in (_GROUP_START, _GROUP_END, 6, 7):
        raise _Malformed(f"holds bytes that are no protobuf field (tag {tag})")
    if kind == _VARINT:
        return position, _varint(data, position, end)[1]
    if kind == _LENGTH:
        length, position = _varint(data, position, end)
        return position, position + length
    return position, position + _FIXED_SIZE[kind]


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise _Malformed("is truncated: it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _Malformed("holds a number of more than 64 bits")
