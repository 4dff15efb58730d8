"""The bytes of a model file, in pieces where it holds weights: protobuf writes a message into a buffer that it doubles
until all is in, and copies that, which takes three to four times the memory that the message takes.

Source: the encoding of protocol buffers. The pieces, one behind the other, are what protobuf itself writes.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.message import EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from splitgraph.formats.skeleton import Piece, size_of, with_weights_between
from splitgraph.onnx_proto import GraphProto, ModelProto, TensorProto
from splitgraph.tensor_data import KEY_BYTES, Place
from splitgraph.wire_format import head, total

MAX_PROTO_BYTES = 2**31 - 1
# In bytes: smaller files are written in one go.
_RESERVED_FROM = 2**20
# In elements: smaller tensors are written faster in one piece, and so are models with less of them for each node,
# since taking a model apart copies its nodes.
_LARGE_TENSOR = 2**14
_LARGE_FOR_A_NODE = 256


class Serialized(NamedTuple):
    """The bytes of a model file.

    pieces: what is to be written, one behind the other; weights that stayed in the file that the model was read from
    are copied. written: the pieces as protobuf has them, without those weights. nodes: the piece that holds all nodes
    of the main graph, None where the model is in one piece.
    """

    pieces: Sequence[Piece]
    written: Sequence[bytes]
    nodes: bytes | None


def serialized(model: ModelProto) -> Serialized | None:
    """The bytes of a model file, None when it is too large for one."""
    try:
        if _has_weights(model.graph):
            written, nodes = _in_pieces(model)
        else:
            written, nodes = [model.SerializeToString()], None
    except (EncodeError, ValueError):
        # protobuf has no error of its own for a message that is too large; nothing else makes one unwritable.
        return None
    if any(KEY_BYTES in piece for piece in written):
        pieces: Sequence[Piece] = with_weights_between(b"".join(written))
    else:
        pieces = written
    return Serialized(pieces, written, nodes) if size_of(pieces) <= MAX_PROTO_BYTES else None


def write_pieces(pieces: Sequence[Piece], file: BinaryIO) -> None:
    """Write the pieces behind one another; what is in another file is copied by the system. Raises ModelError where
    that file was changed, OSError where the disk has no room for all of them, before one of them is written.
    """
    reserve(file, sum(piece.length if isinstance(piece, Place) else len(piece) for piece in pieces))
    for piece in pieces:
        if isinstance(piece, Place):
            file.flush()
            piece.source.copy(piece.start, piece.length, file.fileno())
        else:
            file.write(piece)


def reserve(file: BinaryIO, length: int) -> None:
    """Have room on the disk for so many bytes at the place where a file is written. A system that gives it at once
    writes large files faster. Raises OSError where there is no room.
    """
    if length < _RESERVED_FROM or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), file.tell(), length)
    except OSError as error:
        # Any other reason is that this file system does not do it.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise


def _has_weights(graph: GraphProto) -> bool:
    large = (tensor for tensor in graph.initializer if _count(tensor) >= _LARGE_TENSOR and tensor.HasField("raw_data"))
    elements = sum(map(_count, large))
    return elements > max(_LARGE_TENSOR, _LARGE_FOR_A_NODE * len(graph.node))


def _count(tensor: TensorProto) -> int:
    return math.prod(tensor.dims[:])


def _in_pieces(model: ModelProto) -> tuple[Sequence[bytes], bytes | None]:
    """The bytes of a model that holds weights, and those of the nodes of its main graph."""
    nodes: list[bytes] = []

    def write_graph(graph: GraphProto) -> Sequence[bytes]:
        pieces = _around(graph, GraphProto.INITIALIZER_FIELD_NUMBER, _write_initializers)
        nodes.append(pieces[0])
        return _framed(ModelProto.GRAPH_FIELD_NUMBER, pieces)

    pieces = _around(model, ModelProto.GRAPH_FIELD_NUMBER, write_graph)
    return pieces, nodes[0] if nodes else None


def _write_initializers(tensors: Iterable[TensorProto]) -> Sequence[bytes]:
    pieces, size = list[bytes](), 0
    for tensor in tensors:
        written = _framed(GraphProto.INITIALIZER_FIELD_NUMBER, _written(tensor))
        size += total(written)
        if size > MAX_PROTO_BYTES:
            raise ValueError("too large for one file, which need not be known to the byte")
        pieces += written
    return pieces


def _written(tensor: TensorProto) -> Sequence[bytes]:
    if _count(tensor) < _LARGE_TENSOR:
        return [tensor.SerializeToString()]
    return _around(tensor, TensorProto.RAW_DATA_FIELD_NUMBER, _write_raw_data)


def _write_raw_data(data: bytes) -> Sequence[bytes]:
    return _framed(TensorProto.RAW_DATA_FIELD_NUMBER, [data])


def _around(message: Message, number: int, write: Callable[[Any], Sequence[bytes]]) -> Sequence[bytes]:
    """The bytes of a message whose field of this number is written by `write`: fields before it, itself, those after
    it. A message with fields that its schema does not know is written as a whole, as is one without that field.
    """
    if len(UnknownFieldSet(message)):
        return [message.SerializeToString()]
    before, after, pieces = type(message)(), type(message)(), None
    for field, value in message.ListFields():
        if field.number == number:
            pieces = write(value)
            continue
        part = before if field.number < number else after
        if hasattr(value, "MergeFrom"):
            getattr(part, field.name).MergeFrom(value)
        else:
            setattr(part, field.name, value)
    if pieces is None:
        return [message.SerializeToString()]
    return [before.SerializeToString(), *pieces, after.SerializeToString()]


def _framed(number: int, pieces: Sequence[bytes]) -> Sequence[bytes]:
    """The pieces as a field of this number."""
    return [head(number, total(pieces)), *pieces]
