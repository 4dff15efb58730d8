"""Finds strings of a model that are not UTF-8: protobuf hands them out as bytes, which no later code expects."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto, ValueInfoProto

_WRITTEN_NODE = NodeProto.SerializeToString
_WRITTEN_VALUE = ValueInfoProto.SerializeToString


def _strict_classes() -> dict[Any, Any]:
    file = FileDescriptorProto()
    ModelProto.DESCRIPTOR.file.CopyToProto(file)
    file.syntax = "proto3"
    pool = DescriptorPool()
    pool.Add(file)
    kinds = (ModelProto, NodeProto, ValueInfoProto)
    return {kind: GetMessageClass(pool.FindMessageTypeByName(kind.DESCRIPTOR.full_name)) for kind in kinds}


# The messages whose strings must be UTF-8. They are made at import, because every model that is read needs them.
_STRICT = _strict_classes()

# The check by parsing takes as much memory and time again as reading the file, and a larger one may be mostly weights.
_MOST_PARSED_TWICE = 8 * 2**20
_PARSED_AT_ONCE = 2**20
# The most elements of a tensor in a node that is parsed twice.
_MOST_ELEMENTS = 4096


def is_clean_text(data: bytes) -> bool:
    """Return True when every string of the model in these bytes is UTF-8; False when one is not, or when they are many.

    ONNX's schema does not make protobuf look at strings, but that of the same fields in proto3 does, in a tenth of the
    time that it takes to look at each field from Python.
    """
    return len(data) <= _MOST_PARSED_TWICE and _is_strictly(ModelProto, data)


def _is_strictly(message: Any, data: bytes) -> bool:
    """Return True when the bytes are those of a message with UTF-8 in every string."""
    try:
        _STRICT[message].FromString(data)
    except DecodeError:
        return False
    return True


def find_broken_text(model: ModelProto, nodes: bytes | None = None) -> str | None:
    """Return the first string field that is not UTF-8 ("NodeProto.name"), None when all are; a tensor's numbers are
    never touched.

    nodes: those of the main graph, as `node_bytes` has them.
    """
    return _find(model, nodes is not None and _is_strictly(NodeProto, nodes))


def find_broken_text_in_memory(model: ModelProto) -> str | None:
    """Do as `find_broken_text` for a model whose bytes nobody has: its nodes are written, a few at a time."""
    return _find(model, _are_clean(model.graph.node))


def _are_clean(nodes: Iterable[NodeProto]) -> bool:
    """Return True when every string of the nodes is UTF-8; False when one is not, or where nodes hold large weights."""
    pieces, size = list[bytes](), 0
    for written in map(_WRITTEN_NODE, nodes):
        pieces.append(written)
        size += len(written)
        if size <= _PARSED_AT_ONCE:
            continue
        if len(written) > _MOST_PARSED_TWICE or not _is_strictly(NodeProto, b"".join(pieces)):
            return False
        pieces, size = [], 0
    # Written behind one another they are one message, with the fields of all.
    return _is_strictly(NodeProto, b"".join(pieces))


def _find(model: ModelProto, are_clean: bool) -> str | None:
    """Return the first string field that is not UTF-8. are_clean: the nodes of the main graph are known to be UTF-8."""
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        if isinstance(message, NodeProto) and _is_short(message) and _is_strictly(NodeProto, _WRITTEN_NODE(message)):
            continue
        if isinstance(message, TensorProto):
            # Listing all fields of a tensor would copy its weights.
            if not (isinstance(message.name, str) and isinstance(message.doc_string, str)):
                return "TensorProto.name or doc_string"
            pending += message.external_data
            # The oldest supported onnx does not have these fields.
            pending += getattr(message, "metadata_props", ())
            continue
        for field, value in message.ListFields():
            if are_clean and field.name == "node" and message is model.graph:
                continue
            if field.type == FieldDescriptor.TYPE_STRING:
                texts = (value,) if isinstance(value, (str, bytes)) else value
                if not all(isinstance(text, str) for text in texts):
                    return f"{message.DESCRIPTOR.name}.{field.name}"
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                if hasattr(value, "DESCRIPTOR"):
                    pending.append(value)
                elif field.name != "value_info" or not _is_strictly(
                    ValueInfoProto, b"".join(map(_WRITTEN_VALUE, value))
                ):
                    pending.extend(value)
    return None


def _is_short(node: NodeProto) -> bool:
    """Return True for a node without graphs and large tensors."""
    for attribute in node.attribute[:]:
        if attribute.type in HOLDING_GRAPHS or prod(attribute.t.dims[:]) > _MOST_ELEMENTS or attribute.tensors:
            return False
    return True
