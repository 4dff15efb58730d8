"""Strings of a model that are not UTF-8: protobuf hands them out as bytes, which no later code expects."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor


def find_broken_text(model: onnx.ModelProto) -> str | None:
    """The first string field that is not UTF-8 ("NodeProto.name"), None when all are; a tensor's numbers are never
    touched.
    """
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        if isinstance(message, onnx.TensorProto):
            # Listing all fields of a tensor would copy its weights.
            if not (isinstance(message.name, str) and isinstance(message.doc_string, str)):
                return "TensorProto.name or doc_string"
            pending += message.external_data
            continue
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_STRING:
                texts = (value,) if isinstance(value, (str, bytes)) else value
                if not all(isinstance(text, str) for text in texts):
                    return f"{message.DESCRIPTOR.name}.{field.name}"
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                if hasattr(value, "DESCRIPTOR"):
                    pending.append(value)
                else:
                    pending.extend(value)
    return None
