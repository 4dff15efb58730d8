"""Mutations of a model's file that know the wire format and the schema: whole fields are changed, or lied about."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mutated_models_sources import NUMBERS, TEXTS
from onnx import AttributeProto, GraphProto, ModelProto

from splitgraph.model.wire_format import (
    FIXED32,
    FIXED64,
    GROUP_END,
    GROUP_START,
    LENGTH,
    VARINT,
    fields,
    varint,
    varint_at,
)

_UNKNOWN_NUMBERS = (900, 2**11, 19_000, 2**29 - 1)
# A number of 64 bits takes at most ten bytes, and a negative one is written as if it had 64 bits.
_LONGEST = 10
_UNSIGNED = 2**64


@dataclass(slots=True)
class Field:
    """A field of a message as it will be written.

    content: of a message its fields, of a varint its number, else its bytes. descriptor: of the message in it. extra:
    how many more bytes than needed its number, or its length, takes. length: said instead of the real one.
    """

    number: int
    kind: int
    content: Any
    descriptor: Any = None
    extra: int = 0
    length: int | None = None


@dataclass(slots=True)
class _Spot:
    """Where a field is: in a list of fields, at an index; descriptor: of the message that the list is."""

    around: list[Field]
    index: int
    descriptor: Any

    @property
    def field(self) -> Field:
        return self.around[self.index]


# Reading and writing ---------------------------------------------------------------------------------------------


def read_fields(data: bytes, descriptor: Any = ModelProto.DESCRIPTOR) -> list[Field]:
    """The fields of a message, and those of the messages in it. data: of a message that protobuf reads."""
    found = []
    for each in fields(data, 0, len(data)):
        written = data[each.start : each.end]
        known = descriptor.fields_by_number.get(each.number) if descriptor is not None else None
        if each.kind == VARINT:
            found.append(Field(each.number, VARINT, varint_at(data, each.start, each.end)[0]))
        elif each.kind == LENGTH and known is not None and known.message_type is not None:
            inner = read_fields(written, known.message_type)
            found.append(Field(each.number, LENGTH, inner, known.message_type))
        else:
            found.append(Field(each.number, each.kind, written))
    return found


def write_fields(message: Sequence[Field]) -> bytes:
    """The bytes of a message."""
    return b"".join(map(_write_field, message))


def _write_field(field: Field) -> bytes:
    tag = varint(field.number << 3 | field.kind)
    if isinstance(field.content, int):
        return tag + _long_varint(field.content, field.extra)
    content = write_fields(field.content) if isinstance(field.content, list) else field.content
    if field.kind == GROUP_START:
        return tag + content + varint(field.number << 3 | GROUP_END)
    if field.kind != LENGTH:
        return tag + content
    return tag + _long_varint(len(content) if field.length is None else field.length, field.extra) + content


def _long_varint(number: int, extra: int) -> bytes:
    written = bytearray(varint(number % _UNSIGNED))
    for _ in range(extra):
        written[-1] |= 0x80
        written.append(0)
    return bytes(written)


def spots(message: list[Field], descriptor: Any = ModelProto.DESCRIPTOR) -> Iterator[_Spot]:
    """Every field of a message, and of the messages in it."""
    for index, field in enumerate(message):
        yield _Spot(message, index, descriptor)
        if isinstance(field.content, list):
            yield from spots(field.content, field.descriptor)


# Mutations -------------------------------------------------------------------------------------------------------


def mutate_fields(message: list[Field], rng: random.Random) -> str:
    """Change the message in one way; returns which, and where."""
    held = list(spots(message))
    if not held:
        return "nothing left"
    spot = rng.choice(held)
    # Most fields are small ones deep down; what holds them is as interesting.
    if rng.random() < 0.4:
        spot = rng.choice([each for each in held if isinstance(each.field.content, list)] or [spot])
    name = rng.choice(list(_WAYS))
    where = f"{spot.descriptor.name if spot.descriptor is not None else '?'}.{spot.field.number}"
    _WAYS[name](spot, held, rng)
    return f"{where} {name}"


def _drop(spot: _Spot, _: list[_Spot], __: random.Random) -> None:
    del spot.around[spot.index]


def _repeat(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    at = rng.choice((spot.index, 0, len(spot.around)))
    spot.around[at:at] = [_copied(spot.field) for _ in range(rng.choice((1, 1, 2, 100)))]


def _move(spot: _Spot, held: list[_Spot], rng: random.Random) -> None:
    field = spot.around.pop(spot.index)
    around = rng.choice((spot.around, rng.choice(held).around))
    around.insert(rng.randint(0, len(around)), field)


def _renumber(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    known = list(spot.descriptor.fields_by_number) if spot.descriptor is not None else [1]
    spot.field.number = rng.choice((rng.choice(known), rng.choice(known), *_UNKNOWN_NUMBERS, 0))


def _rekind(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    field = spot.field
    kind = rng.choice((VARINT, FIXED64, LENGTH, GROUP_START, GROUP_END, FIXED32, 6, 7))
    content = _bytes_of(field)
    if kind == VARINT:
        content = len(content)
    elif kind in (FIXED64, FIXED32):
        size = 8 if kind == FIXED64 else 4
        content = content[:size].ljust(size, b"\0")
    field.kind, field.content = kind, content


def _bytes_of(field: Field) -> bytes:
    if isinstance(field.content, list):
        return write_fields(field.content)
    return varint(field.content % _UNSIGNED) if isinstance(field.content, int) else field.content


def _replace(spot: _Spot, held: list[_Spot], rng: random.Random) -> None:
    alike = [each for each in held if each.field.descriptor is spot.field.descriptor]
    other = rng.choice(alike if rng.random() < 0.7 else held).field
    spot.around[spot.index] = replace(_copied(other), number=spot.field.number)


def _copied(field: Field) -> Field:
    """The same field again, so that a message never comes to hold itself."""
    content = [_copied(each) for each in field.content] if isinstance(field.content, list) else field.content
    return replace(field, content=content)


def _split(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    """Write the message as two fields, which protobuf joins where there is to be one only."""
    field = spot.field
    if isinstance(field.content, list) and field.content:
        at = rng.randint(0, len(field.content))
        first = Field(field.number, field.kind, field.content[:at], field.descriptor)
        second = Field(field.number, field.kind, field.content[at:], field.descriptor)
        spot.around[spot.index : spot.index + 1] = [first, second]


def _lengthen(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    spot.field.extra = rng.randint(1, _LONGEST)


def _lie(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    """Say another length than that of the content."""
    field = spot.field
    real = len(_bytes_of(field))
    field.kind, field.content = LENGTH, _bytes_of(field)
    field.length = rng.choice((real + 1, max(real - 1, 0), 0, 2**31, 2**32, 2**63, 2**64 - 1, 2**64 - real, 100_000))


def _set(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    field = spot.field
    if isinstance(field.content, int):
        field.content = rng.choice(NUMBERS)
    elif field.kind == LENGTH:
        field.content = rng.choice((rng.choice(TEXTS), rng.randbytes(rng.randint(0, 40)), _cut(_bytes_of(field), rng)))
    else:
        field.content = rng.randbytes(len(_bytes_of(field)))


def _cut(content: bytes, rng: random.Random) -> bytes:
    """Content that is a little shorter or longer: packed numbers then end within one."""
    return rng.choice((content[:-1], content[1:], content + b"\x80", content + b"\0", content + b"\xff" * 11))


def _pack(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    """Write numbers one by one that are packed, or packed where they are not."""
    field = spot.field
    if isinstance(field.content, int):
        field.kind, field.content = LENGTH, _bytes_of(field) * rng.choice((1, 3))
    elif field.kind == LENGTH and isinstance(field.content, bytes):
        spot.around[spot.index : spot.index + 1] = [Field(field.number, VARINT, byte) for byte in field.content[:200]]


def _add_unknown(spot: _Spot, _: list[_Spot], rng: random.Random) -> None:
    number, kind = rng.choice(_UNKNOWN_NUMBERS), rng.choice((LENGTH, GROUP_START))
    content = rng.choice((b"", b"abc", b"\x08\x01"))
    for _ in range(rng.choice((0, 0, 1, 5, 99, 150)) if kind == GROUP_START else 0):
        content = _write_field(Field(number, GROUP_START, content))
    spot.around.insert(rng.randint(0, len(spot.around)), Field(number, kind, content))


def _nest(_: _Spot, held: list[_Spot], rng: random.Random) -> None:
    """Put a graph into an If, within an If, and so on; protobuf reads 100 messages in one another."""
    graphs = [each.field for each in held if each.field.descriptor is GraphProto.DESCRIPTOR]
    if not graphs:
        return
    graph = rng.choice(graphs)
    # As bytes: Python's stack has no room for so many fields in one another.
    content = _bytes_of(graph)
    for _ in range(rng.choice((1, 2, 10, 30, 31, 32, 33, 60, 200))):
        branch = [Field(1, LENGTH, b"then_branch"), Field(6, LENGTH, content), Field(20, VARINT, AttributeProto.GRAPH)]
        node = [Field(2, LENGTH, b"y"), Field(4, LENGTH, b"If"), Field(5, LENGTH, branch)]
        content = _write_field(Field(1, LENGTH, node))
    graph.content = content


_WAYS: dict[str, Callable[[_Spot, list[_Spot], random.Random], None]] = {
    "dropped": _drop,
    "repeated": _repeat,
    "moved": _move,
    "renumbered": _renumber,
    "of another wire type": _rekind,
    "replaced": _replace,
    "in two": _split,
    "with a long number": _lengthen,
    "with a wrong length": _lie,
    "set": _set,
    "packed or not": _pack,
    "with an unknown field beside": _add_unknown,
    "nested": _nest,
}
