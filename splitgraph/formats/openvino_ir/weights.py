"""The bytes of a .bin, read where and when they are wanted."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path

from splitgraph.formats.model_error import shown, system_reason
from splitgraph.formats.openvino_ir.refusal import refusal

_READ_AT_ONCE = 1 << 20
_BINARY: int = getattr(os, "O_BINARY", 0)


class Weights:
    """A .bin that stays open: replaced by another file it still gives its own bytes, written over in place it refuses.

    Read rather than mapped into memory, as a mapped file that somebody shortens ends the process.
    """

    def __init__(self, file: Path, path: Path) -> None:
        """file: the .bin. path: the .xml, for messages. Raises OSError."""
        self.file = file
        self._path = path
        self._descriptor = os.open(file, os.O_RDONLY | _BINARY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._look()

    def __len__(self) -> int:
        return self._state[0]

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`. Raises ModelError (SG107) when the file is not any more what was opened."""
        try:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            parts: list[bytes] = []
            while size > 0 and (part := os.read(self._descriptor, size)):
                parts.append(part)
                size -= len(part)
            is_same = self._look() == self._state
        except OSError as error:
            reason = system_reason(error)
            raise refusal("SG107", f"its weights {shown(self.file)} cannot be read: {reason}", self._path) from error
        if size > 0 or not is_same:
            raise refusal("SG107", f"its weights {shown(self.file)} were written to after it was read", self._path)
        return b"".join(parts)

    def blocks(self) -> Iterator[bytes]:
        """All of the bytes, in order. Raises as `read`."""
        for offset in range(0, len(self), _READ_AT_ONCE):
            yield self.read(offset, min(_READ_AT_ONCE, len(self) - offset))

    def _look(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns
