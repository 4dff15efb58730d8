"""How much memory the files of inputs may take. A small file can hold much: an archive that is compressed, a text of
one character for each of many elements, a list of many empty tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from splitgraph.wire_format import LENGTH, Malformed, fields

_MIB = 2**20
# All files of inputs together.
_MOST = 2048 * _MIB
# One archive: so much, or so many times its own size. Arrays that programs store are compressed ten times at most;
# masks and zeros are compressed better, and are small.
_MOST_OF_ARCHIVE = 256 * _MIB
_TIMES_OF_ARCHIVE = 32
# What a text takes as an object of Python, and what a field takes as a message of its own.
TEXT, _FIELD = 64, 256
# Raw data are there twice for a while; numbers of typed fields become objects of Python, one by one.
_RAW, _TYPED = 2, 16
_NUMBERS = frozenset({"float_data", "int32_data", "int64_data", "double_data", "uint64_data"})
# protobuf reads nothing that is nested deeper.
_DEEPEST = 100


class Room:
    """Memory for the values of files, of which each file takes a part before it is read."""

    def __init__(self, most: int | None = None) -> None:
        self._left = _MOST if most is None else most

    @classmethod
    def of_archive(cls, size: int) -> Room:
        """Return the room for what an archive of so many bytes holds."""
        return cls(min(_MOST, max(_MOST_OF_ARCHIVE, _TIMES_OF_ARCHIVE * size)))

    def take(self, needed: int) -> None:
        """Raise ValueError if so many bytes are more than there is room for."""
        if needed > self._left:
            raise ValueError(
                f"it takes {_shown(needed)} of memory, and the limit leaves {_shown(self._left)}; give smaller arrays, "
                "or fewer, or store them without compression (numpy.savez)"
            )
        self._left -= needed

    def take_message(self, kind: Any, written: bytes) -> None:
        """The same for a message of ONNX. Raises ValueError also where it is none, or nested too deep."""
        needed = _RAW * len(written)
        try:
            for cost in _costs(kind.DESCRIPTOR, written, 0, len(written), 1):
                needed += cost
                if needed > self._left:
                    break
        except Malformed as error:
            raise ValueError(f"it {error}") from None
        self.take(needed)


def _costs(descriptor: Any, written: bytes, start: int, end: int, depth: int) -> Iterator[int]:
    """Yield what each field takes beside its own bytes."""
    if depth > _DEEPEST:
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
    is_tensor = descriptor.full_name == onnx.TensorProto.DESCRIPTOR.full_name
    for found in fields(written, start, end):
        yield _FIELD
        known = descriptor.fields_by_number.get(found.number)
        if known is None or found.kind != LENGTH:
            continue
        if known.message_type is not None:
            yield from _costs(known.message_type, written, found.start, found.end, depth + 1)
        elif is_tensor and known.name in _NUMBERS:
            yield _TYPED * (found.end - found.start)


def _shown(size: int) -> str:
    return f"{size / _MIB:,.1f} MiB"
