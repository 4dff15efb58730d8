"""The wire format of Protocol Buffers: one reader and one writer for all that works on bytes rather than messages.

Source: the protocol buffers encoding specification. Python's protobuf is asked wherever it can do the work; this module
serves what it cannot: to pass over the weights of a file without reading them, to copy them without holding them, to
say where a broken file is broken, and to write many small messages at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from mmap import mmap
from typing import NamedTuple

VARINT, FIXED64, LENGTH, GROUP_START, GROUP_END, FIXED32 = range(6)
_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}
# Ten bytes of seven bits hold any 64-bit number.
LONGEST_VARINT = 10
# Tags and lengths have 32 bits, and protobuf reads no longer ones, though their number be small.
_LONGEST_HEAD = 5
_MOST_TAG = 2**32 - 1
# A number from here on takes more than one byte.
ONE_BYTE = 128

Buffer = bytes | mmap


class Malformed(Exception):
    """Bytes that are not a field. position: where. str() says what is wrong with them, as the rest of "the file
    ...".
    """

    def __init__(self, fault: str, position: int) -> None:
        super().__init__(fault)
        self.position = position


class Field(NamedTuple):
    """A field of a message: its number and wire type, where its tag begins, and where its value begins and ends."""

    number: int
    kind: int
    begin: int
    start: int
    end: int


# Reading ---------------------------------------------------------------------------------------------------------


def fields(data: Buffer, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in `data[start:end]`, in order; their values are not read. Raises Malformed for
    bytes that are not a field, and for a field that is longer than the message.
    """
    position = start
    while position < end:
        begin = position
        tag = data[position]
        position += 1
        if tag >= ONE_BYTE:
            tag, position = varint_at(data, begin, end)
            if position - begin > _LONGEST_HEAD or tag > _MOST_TAG:
                raise Malformed(f"holds bytes that are no protobuf field (tag {tag})", begin)
        kind = tag & 7
        if kind == LENGTH and tag > 7:
            length = data[position] if position < end else ONE_BYTE
            if length < ONE_BYTE:
                position += 1
            else:
                length, behind = varint_at(data, position, end)
                # A length that leads behind the message is reported as truncated below.
                if behind - position > _LONGEST_HEAD and behind + length <= end:
                    raise Malformed(f"holds a length that takes more than {_LONGEST_HEAD} bytes", position)
                position = behind
            value = position
            position += length
        elif kind == VARINT and tag > 7:
            value = position
            position = varint_at(data, position, end)[1]
        elif kind in _FIXED_SIZE and tag > 7:
            value = position
            position += _FIXED_SIZE[kind]
        else:
            raise Malformed(f"holds bytes that are no protobuf field (tag {tag})", begin)
        if position > end:
            raise Malformed(f"is truncated: a field ends at byte {position:,}, but there are only {end:,}", begin)
        yield Field(tag >> 3, kind, begin, value, position)


def varint_at(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position behind it. Raises Malformed."""
    value = 0
    for place in range(LONGEST_VARINT):
        at = position + place
        if at >= end:
            raise Malformed("is truncated: it ends within a number", at)
        byte = data[at]
        value |= (byte & 0x7F) << 7 * place
        if byte < ONE_BYTE:
            return value, at + 1
    raise Malformed("holds a number of more than 64 bits", position + LONGEST_VARINT)


# Writing ---------------------------------------------------------------------------------------------------------

_SHORT = [bytes([number]) for number in range(ONE_BYTE)]


def varint(number: int) -> bytes:
    """Return the bytes of a number, which must not be negative."""
    if number < ONE_BYTE:
        return _SHORT[number]
    written = bytearray()
    while number >= ONE_BYTE:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def tag(number: int, kind: int = LENGTH) -> bytes:
    """Return the bytes before the value of a field."""
    return varint(number << 3 | kind)


def field(number: int, content: bytes) -> bytes:
    """Return a field of a message, a text or bytes."""
    return tag(number) + varint(len(content)) + content


def head(number: int, length: int) -> bytes:
    """Return the bytes before the content of a field; the content is written elsewhere."""
    return tag(number) + varint(length)


def total(pieces: Iterable[bytes]) -> int:
    """Return how many bytes the pieces take, one behind the other."""
    return sum(map(len, pieces))
