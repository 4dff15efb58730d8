"""Mutations of a model's file that know nothing of what the bytes mean."""

from __future__ import annotations

import random
from collections.abc import Callable

from mutated_models_sources import TEXTS, pick_source

# Numbers as no writer writes them: with more bytes than they need, up to 2**64 - 1, and with too many bytes.
_VARINTS = (
    b"\x80\x00", b"\x81\x80\x80\x00", b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x7f",
    b"\x80" * 10 + b"\x01", b"\xff" * 4 + b"\x0f", b"\x80" * 4 + b"\x08", b"\xff" * 3 + b"\x7f",
)  # fmt: skip
# Tags of groups, of wire types that do not exist, and of the field 0.
_TAGS = (b"\x3b", b"\x3c", b"\x3b\x3c", b"\x0b" * 120, b"\x3e", b"\x3f", b"\x00", b"\x02", b"\xf8\xff\xff\xff\xff\x0f")


def mutate_bytes(data: bytearray, rng: random.Random) -> str:
    """Change the bytes in one way; returns which."""
    name = rng.choice(list(_WAYS))
    _WAYS[name](data, rng)
    return name


def _position(data: bytearray, rng: random.Random) -> int:
    # What stands at the start of a file decides about all of it.
    return rng.randrange(min(len(data), 64 if rng.random() < 0.2 else len(data)) or 1)


def _flip(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    if data:
        data[at] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    data[at : at + 1] = bytes([rng.choice((0, 1, 7, 127, 128, 255, rng.randrange(256)))])


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[_position(data, rng) :]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    data[at:at] = rng.choice((rng.randbytes(rng.randint(1, 9)), rng.choice(TEXTS), rng.choice(_TAGS)))


def _delete(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    del data[at : at + rng.choice((1, 2, 10, 1000))]


def _repeat(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    data[at:at] = data[at : at + rng.choice((1, 2, 10, 1000))] * rng.choice((1, 1, 2, 50))


def _number(data: bytearray, rng: random.Random) -> None:
    at = _position(data, rng)
    data[at : at + 1] = rng.choice(_VARINTS)


def _splice(data: bytearray, rng: random.Random) -> None:
    other = pick_source(rng).written
    data[_position(data, rng) :] = other[rng.randrange(len(other)) :]


def _append(data: bytearray, rng: random.Random) -> None:
    # Protobuf reads two messages behind one another as one.
    data += pick_source(rng).written


_WAYS: dict[str, Callable[[bytearray, random.Random], None]] = {
    "bit flipped": _flip,
    "byte set": _set,
    "truncated": _truncate,
    "inserted": _insert,
    "deleted": _delete,
    "repeated": _repeat,
    "number": _number,
    "spliced": _splice,
    "another model behind it": _append,
}
