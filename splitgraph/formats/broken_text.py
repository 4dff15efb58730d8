"""Strings of a model that are not UTF-8: protobuf hands them out as bytes, which no later code expects."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from splitgraph.onnx_proto import ModelProto, TensorProto

# The check by parsing takes as much memory again as the file, which may be mostly weights.
_MOST_PARSED_TWICE = 64 * 2**20


def is_clean_text(data: bytes) -> bool:
    """True when every string of the model in these bytes is UTF-8; False when one is not, or when that is not known.

    ONNX's schema does not make protobuf look at strings, but that of the same fields in proto3 does, in a tenth of the
    time that it takes to look at each field from Python.
    """
    if len(data) > _MOST_PARSED_TWICE:
        return False
    try:
        _strict_model().FromString(data)
    except DecodeError:
        return False
    return True


@cache
def _strict_model() -> Any:
    file = FileDescriptorProto()
    ModelProto.DESCRIPTOR.file.CopyToProto(file)
    file.syntax = "proto3"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(ModelProto.DESCRIPTOR.full_name))


def find_broken_text(model: ModelProto) -> str | None:
    """The first string field that is not UTF-8 ("NodeProto.name"), None when all are; a tensor's numbers are never
    touched.
    """
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        if isinstance(message, TensorProto):
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
