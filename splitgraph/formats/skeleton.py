"""Read a model's file without its weights, and make the bytes of the file that such a model becomes.

The file is mapped into memory and its wire format walked; only messages that are long enough to hold weights are looked
into. What is left when these stay where they are is read by protobuf. Source: onnx.proto, and the protocol buffers
encoding specification.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from splitgraph.model.onnx_proto import AttributeProto, ModelProto, TensorProto
from splitgraph.model.tensor_data import (
    DATA_LOCATION,
    EXTERNAL_DATA,
    KEY_BYTES,
    RAW_DATA,
    Place,
    SourceFile,
    place_of,
    written_place,
)
from splitgraph.model.wire_format import (
    LENGTH,
    LONGEST_VARINT,
    ONE_BYTE,
    VARINT,
    Buffer,
    Field,
    Malformed,
    fields,
    head,
    tag,
    varint,
    varint_at,
)

# No file of protobuf is larger.
MAX_PROTO_BYTES = 2**31 - 1
# Elements of up to this many bytes are read with the model: rules may ask for them.
SMALL = 2**16
# Smaller files are read as they are: to walk them would take longer.
WHOLE = 2**20
# The nesting at which protobuf's own parsers stop.
MAX_DEPTH = 100

# If an attribute has more fields, protobuf says which it has: each number or string of a list may be a field, and a
# tree has a million of them.
_MANY_FIELDS = 256

# The fields of numbers that all take the same bytes, float_data and double_data, and how many.
_SIZES = {4: 4, 10: 8}
# Strings are left in the model.
_STRING_DATA = 6
# The fields that hold elements.
_ELEMENTS = frozenset({*_SIZES, 5, _STRING_DATA, 7, RAW_DATA, 11})
_NUMBERS_OF_MORE_BYTES = bytes(range(ONE_BYTE, 256))
_TYPE = AttributeProto.TYPE_FIELD_NUMBER
_FIELD_OF_TYPE: Mapping[int, int] = {
    AttributeProto.TENSOR: AttributeProto.T_FIELD_NUMBER,
    AttributeProto.GRAPH: AttributeProto.G_FIELD_NUMBER,
    AttributeProto.TENSORS: AttributeProto.TENSORS_FIELD_NUMBER,
    AttributeProto.GRAPHS: AttributeProto.GRAPHS_FIELD_NUMBER,
    AttributeProto.SPARSE_TENSOR: AttributeProto.SPARSE_TENSOR_FIELD_NUMBER,
    AttributeProto.SPARSE_TENSORS: AttributeProto.SPARSE_TENSORS_FIELD_NUMBER,
}
# A number of more than 64 bits, or the bytes of one that protobuf does not end.
_TOO_LONG = re.compile(rb"[\x80-\xff]{%d}" % LONGEST_VARINT)

# What is written behind one another: bytes of ours, and elements that are copied from another file.
Piece = bytes | Place


class _Message(NamedTuple):
    """Where a kind of message may hold tensors.

    is_tensor, is_attribute: it is one itself. inside: the kinds of the messages that may hold tensors, by the number of
    their field. single: the fields among them that a message has once only.
    """

    is_tensor: bool
    is_attribute: bool
    inside: Mapping[int, Any]
    single: frozenset[int]


@cache
def _message(descriptor: Any) -> _Message:
    holding = _holding_tensors()
    inside = {
        field.number: field.message_type
        for field in descriptor.fields
        if field.message_type is not None and field.message_type.full_name in holding
    }
    single = frozenset(
        field.number for field in descriptor.fields if field.number in inside and not _is_repeated(field)
    )
    name = descriptor.full_name
    is_tensor, is_attribute = name == TensorProto.DESCRIPTOR.full_name, name == AttributeProto.DESCRIPTOR.full_name
    return _Message(is_tensor, is_attribute, inside, single)


def _is_repeated(described: Any) -> bool:
    # Of protobuf's versions, some have no `is_repeated`, and the newest warn of `label`.
    return bool(described.is_repeated if hasattr(described, "is_repeated") else described.label == 3)


@cache
def _holding_tensors() -> frozenset[str]:
    """Return the names of the messages that a tensor may be in, its own among them."""
    around: dict[str, set[str]] = {}
    waiting, seen = [ModelProto.DESCRIPTOR], set[str]()
    while waiting:
        descriptor = waiting.pop()
        if descriptor.full_name in seen:
            continue
        seen.add(descriptor.full_name)
        for field in descriptor.fields:
            if field.message_type is not None:
                around.setdefault(field.message_type.full_name, set()).add(descriptor.full_name)
                waiting.append(field.message_type)
    holding, new = set[str](), {TensorProto.DESCRIPTOR.full_name}
    while new:
        holding |= new
        new = {outer for name in new for outer in around.get(name, ())} - holding
    return frozenset(holding)


# Reading ---------------------------------------------------------------------------------------------------------


def without_weights(data: Buffer, source: SourceFile) -> bytes:
    """Return the bytes of a model without its weights. In place of each weight stands where it is in the source.

    data: the bytes of the source. Raises Malformed for a message that may hold weights and cannot be read.
    """
    return b"".join(_MessageReader(data, source).message(ModelProto.DESCRIPTOR, 0, len(data), 1))


class _MessageReader:
    def __init__(self, data: Buffer, source: SourceFile) -> None:
        self._data = data
        self._source = source

    def message(self, descriptor: Any, start: int, end: int, depth: int) -> Sequence[bytes]:
        """Return the pieces of a message without its weights. A message in which protobuf may find weights elsewhere is
        returned as it is.
        """
        data = self._data
        known = _message(descriptor)
        if depth > MAX_DEPTH:
            raise Malformed(f"is nested deeper than the {MAX_DEPTH} levels that protobuf reads", start)
        if known.is_tensor:
            return self._tensor(start, end)
        if known.is_attribute and not _holds_what_it_says(data, start, end):
            return [data[start:end]]
        pieces: list[bytes] = []
        kept, seen = start, set[int]()
        for field in fields(data, start, end):
            if field.number in known.single:
                if field.number in seen:
                    # Protobuf merges the two messages, and each may hold some of the elements.
                    return [data[start:end]]
                seen.add(field.number)
            may_hold_weights = field.number in known.inside and field.kind == LENGTH
            if not may_hold_weights or field.end - field.start <= SMALL:
                continue
            inner = self.message(known.inside[field.number], field.start, field.end, depth + 1)
            length = sum(map(len, inner))
            # Without weights, the field stays with what stands before the next one that is written anew.
            if length != field.end - field.start:
                pieces += [data[kept : field.begin], head(field.number, length), *inner]
                kept = field.end
        return [*pieces, data[kept:end]]

    def _tensor(self, start: int, end: int) -> Sequence[bytes]:
        """Return the pieces of a tensor without its elements, if these are many and in one field, as all tools write
        them; else the tensor as it is.
        """
        data, elements, told = self._data, list[Field](), False
        for field in fields(data, start, end):
            if field.number in _ELEMENTS:
                elements.append(field)
            elif field.number == EXTERNAL_DATA:
                # The entry for the place of the elements would not be the only one.
                return [data[start:end]]
            elif field.number == DATA_LOCATION and field.kind == VARINT:
                told = True
                if varint_at(data, field.start, end)[0] != TensorProto.DEFAULT:
                    return [data[start:end]]
        weights = elements[0] if len(elements) == 1 else None
        if (
            weights is None
            or weights.number == _STRING_DATA
            or weights.kind != LENGTH
            or weights.end - weights.start <= SMALL
        ):
            return [data[start:end]]
        place = Place(
            self._source,
            weights.start,
            weights.end - weights.start,
            weights.number,
            self._entries(weights),
            told,
        )
        return [data[start : weights.begin], data[weights.end : end], written_place(place)]

    def _entries(self, field: Field) -> int | None:
        """Return how many numbers a field holds; None for raw data. Raises Malformed for what protobuf does not
        read.
        """
        length = field.end - field.start
        if field.number == RAW_DATA:
            return None
        if field.number in _SIZES:
            if length % _SIZES[field.number]:
                raise Malformed("is truncated: it ends within a number", field.end)
            return length // _SIZES[field.number]
        if self._data[field.end - 1] >= ONE_BYTE or _TOO_LONG.search(self._data, field.start, field.end):
            raise Malformed("holds a number that does not end", field.start)
        pieces = range(field.start, field.end, SMALL)
        # A number ends with its one byte below 128.
        return sum(
            len(self._data[at : min(at + SMALL, field.end)].translate(None, _NUMBERS_OF_MORE_BYTES)) for at in pieces
        )


def _holds_what_it_says(data: Buffer, start: int, end: int) -> bool:
    """Return True if the attribute has tensors in the field of its type only. Nobody looks for weights elsewhere."""
    types, numbers = list[int](), set[int]()
    inside = _message(AttributeProto.DESCRIPTOR).inside
    for count, field in enumerate(fields(data, start, end)):
        if field.number == _TYPE and field.kind == VARINT:
            types.append(varint_at(data, field.start, end)[0])
        elif field.number in inside:
            numbers.add(field.number)
        if count == _MANY_FIELDS and _holds_none(data[start:end], inside):
            return False
    return len(types) == 1 and numbers == {_FIELD_OF_TYPE.get(types[0])}


def _holds_none(attribute: bytes, inside: Collection[int]) -> bool:
    """Return True if the attribute in these bytes has none of these fields. Return False also for bytes that protobuf
    does not read; their fields tell what is wrong.
    """
    try:
        read = AttributeProto.FromString(attribute)
    except DecodeError:
        return False
    return not any(field.number in inside for field, _ in read.ListFields())


# Writing ---------------------------------------------------------------------------------------------------------


def with_weights_between(written: bytes) -> list[Piece]:
    """Return the pieces that a model's file is written of. written: the model as protobuf writes it."""
    return _Writer(written, list(_hits(written))).message(ModelProto.DESCRIPTOR, 0, len(written))


def size_of(pieces: Sequence[Piece]) -> int:
    """Return how many bytes the pieces take."""
    return sum([piece.length if isinstance(piece, Place) else len(piece) for piece in pieces])


def _hits(written: bytes) -> Iterator[int]:
    at = written.find(KEY_BYTES)
    while at >= 0:
        yield at
        at = written.find(KEY_BYTES, at + 1)


class _Writer:
    def __init__(self, written: bytes, hits: Sequence[int]) -> None:
        self._written = written
        self._hits = hits

    def message(self, descriptor: Any, start: int, end: int) -> list[Piece]:
        """Return the message with its weights, in pieces."""
        written, known = self._written, _message(descriptor)
        if known.is_tensor:
            return self._tensor(start, end)
        pieces: list[Piece] = []
        kept = start
        for field in fields(written, start, end):
            if field.number in known.inside and self._is_hit(field.start, field.end):
                inner = self.message(known.inside[field.number], field.start, field.end)
                pieces += [written[kept : field.begin] + head(field.number, size_of(inner)), *inner]
                kept = field.end
        return [*pieces, written[kept:end]]

    def _is_hit(self, start: int, end: int) -> bool:
        place = bisect_left(self._hits, start)
        return place < len(self._hits) and self._hits[place] < end

    def _tensor(self, start: int, end: int) -> list[Piece]:
        written = self._written[start:end]
        place = place_of(TensorProto.FromString(written))
        assert place is not None
        before, after = bytearray(), bytearray()
        for field in fields(written, 0, len(written)):
            if field.number == EXTERNAL_DATA and KEY_BYTES in written[field.start : field.end]:
                continue
            part = before if field.number < place.field else after
            if field.number != DATA_LOCATION:
                part += written[field.begin : field.end]
            elif place.is_told:
                part += tag(DATA_LOCATION, VARINT) + varint(TensorProto.DEFAULT)
        return [bytes(before) + place.head, place, bytes(after)]


# Files that protobuf refuses -----------------------------------------------------------------------------------------


def explain_unreadable(data: bytes) -> str:
    """Return what is wrong with bytes that protobuf refused, and where, in one clause: truncated, nested too deep, or
    malformed.

    Protobuf itself only says that it could not read them. The wire format is walked along the schema, no weight is
    read.
    """
    # Messages still to be read: start, end, descriptor, depth, name in messages.
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
