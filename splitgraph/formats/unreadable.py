"""Why a file is not a readable ONNX protobuf: protobuf itself only says that it could not.

Walks the wire format along the schema, without reading a single weight, and only after protobuf has refused the file.
"""

from __future__ import annotations

from typing import Any

from splitgraph.formats.skeleton import MAX_DEPTH
from splitgraph.onnx_proto import ModelProto
from splitgraph.wire_format import LENGTH, Malformed, fields


def explain_unreadable(data: bytes) -> str:
    """What is wrong with bytes that protobuf refused, in one clause: truncated, nested too deep, or malformed, and
    where.
    """
    # Each entry is a message still to be read: start, end, its descriptor, its depth, what it is called.
    pending: list[tuple[int, int, Any, int, str]] = [(0, len(data), ModelProto.DESCRIPTOR, 1, "the model")]
    while pending:
        start, end, descriptor, depth, name = pending.pop()
        if depth > MAX_DEPTH:
            return f"is nested deeper than the {MAX_DEPTH} levels that protobuf reads"
        try:
            for found in fields(data, start, end):
                field = descriptor.fields_by_number.get(found.number)
                if found.kind == LENGTH and field is not None and field.message_type is not None:
                    pending.append((found.start, found.end, field.message_type, depth + 1, field.message_type.name))
        except Malformed as fault:
            return f"{fault} (in {name}, at byte {fault.position:,})"
    return "is not a valid protobuf"
