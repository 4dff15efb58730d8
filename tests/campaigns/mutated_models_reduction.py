"""The smallest mutant with the same fault: fields are left out as long as the fault stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from google.protobuf.message import DecodeError
from mutated_models_fields import Field, read_fields, spots, write_fields
from mutated_models_mutants import Mutant
from onnx import ModelProto

from splitgraph.model.wire_format import Malformed

# How often all fields that are left are tried.
_ROUNDS = 6

IsFaulty = Callable[[Mutant], bool]


def reduced(mutant: Mutant, is_faulty: IsFaulty) -> Mutant:
    """A mutant with the same fault and fewer fields, or fewer bytes where it is no model."""
    is_model = isinstance(mutant.content, ModelProto)
    written = mutant.content.SerializeToString() if isinstance(mutant.content, ModelProto) else mutant.content

    def made(data: bytes) -> Mutant | None:
        try:
            return replace(mutant, content=ModelProto.FromString(data) if is_model else data)
        except DecodeError:
            return None

    def stays(data: bytes) -> bool:
        smaller = made(data)
        return smaller is not None and is_faulty(smaller)

    if not stays(written):
        return mutant
    message = _fields_of(written)
    # Fields are written as protobuf writes them: what is wrong with a number that is longer than it needs is lost.
    is_by_fields = message is not None and stays(write_fields(message))
    smallest = _fewer_fields(message, stays) if message and is_by_fields else _fewer_bytes(written, stays)
    return made(smallest) or mutant


def _fields_of(written: bytes) -> list[Field] | None:
    try:
        return read_fields(written)
    except (Malformed, RecursionError):
        return None


def _fewer_fields(message: list[Field], stays: Callable[[bytes], bool]) -> bytes:
    for _ in range(_ROUNDS):
        before = write_fields(message)
        # What holds much goes first.
        held = [(spot.around, spot.field) for spot in spots(message)]
        for around, field in sorted(held, key=lambda each: -len(write_fields([each[1]]))):
            at = next(index for index, each in enumerate(around) if each is field)
            del around[at]
            if not stays(write_fields(message)):
                around.insert(at, field)
        if write_fields(message) == before:
            break
    return write_fields(message)


def _fewer_bytes(data: bytes, stays: Callable[[bytes], bool]) -> bytes:
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if stays(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def shown(mutant: Mutant) -> str:
    """A mutant as text: its bytes, as Python writes them, or its fields."""
    if isinstance(mutant.content, ModelProto):
        return str(mutant.content)
    return repr(mutant.content)
