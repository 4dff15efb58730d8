"""Tensors whose elements stay in the model's file until somebody asks for them.

Weights are most of a model, and no split looks at them. In a model that is read from a file, a large tensor comes
without its elements: it is marked as external, and an entry of its external data says where they are: in which file,
and from which byte. So the message itself leads to its file, whoever has it and whatever else is still held. The key of
the entry is made up anew by each process, so that no file can hold one.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from splitgraph.diagnostics import ModelError, diagnostic
from splitgraph.onnx_proto import TensorProto
from splitgraph.wire_format import VARINT, field, head, tag, varint

KEY = f"splitgraph place {os.urandom(8).hex()}"
KEY_BYTES = KEY.encode()

RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER
EXTERNAL_DATA = TensorProto.EXTERNAL_DATA_FIELD_NUMBER
DATA_LOCATION = TensorProto.DATA_LOCATION_FIELD_NUMBER
# The fields of typed numbers (float_data, double_data) whose bytes are those of raw data.
_AS_RAW = frozenset({4, 10})
# What a file system takes in one call, and what is held in memory where it copies nothing by itself.
_MOST_AT_ONCE = 2**30
_IN_MEMORY = 2**20


class _Status(NamedTuple):
    """What tells a file that was opened from any other, and from itself when it is changed."""

    modified: int
    size: int
    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Status:
        return cls(status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino)


class SourceFile:
    """A model's file, whose bytes are read again later.

    As long as somebody holds the object, this is the file that was opened, even where another has its name now. For
    the places in a message whose file nobody holds any more, and where the system has no `pread`, the file is opened by
    its name each time, and must be the one that it was: nothing keeps it from being replaced.
    """

    def __init__(self, path: Path, status: _Status, number: int, descriptor: int | None) -> None:
        """number: of the file among those that were opened. descriptor: of the open file, taken over."""
        self.path = path
        self._status = status
        self._number = number
        self._descriptor = descriptor
        _SOURCES[self.text] = self
        if not hasattr(os, "pread"):
            self.close()

    @classmethod
    def opened(cls, path: Path) -> SourceFile:
        """The file of a name, opened. Raises OSError."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        # Whoever reads it later may be in another folder.
        return cls(Path(os.path.abspath(path)), _Status.of(os.fstat(descriptor)), next(_NUMBERS), descriptor)

    @classmethod
    def told(cls, text: str) -> SourceFile:
        """The file that a place in a message names: the one that is held, else the one of its name."""
        held = _SOURCES.get(text)
        if held is not None:
            return held
        *numbers, path = text.split()
        number, *status = map(int, numbers)
        return cls(Path(os.fsdecode(bytes.fromhex(path))), _Status(*status), number, None)

    @property
    def text(self) -> str:
        """How a place in a message names the file. The path may be of bytes that are no text."""
        return " ".join([*map(str, (self._number, *self._status)), os.fsencode(self.path).hex()])

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._status.size

    @property
    def identity(self) -> tuple[object, ...]:
        """What two files that were opened have in common only if they are the same one, unchanged in between."""
        # Some file systems number no files; then only the object itself is the same.
        return self._status if self._status.inode else (self._number, *self._status)

    def close(self) -> None:
        """Let go of the open file; it is opened by its name from now on."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.close()

    def read(self, start: int, length: int) -> bytes:
        """Some bytes of the file. Raises ModelError where it is not what it was."""
        with _Opened(self) as descriptor:
            pieces, position = [], start
            while position < start + length:
                piece = _read_at(descriptor, start + length - position, position)
                if not piece:
                    raise self._changed()
                pieces.append(piece)
                position += len(piece)
        return b"".join(pieces)

    def copy(self, start: int, length: int, target: int) -> None:
        """Copy some bytes of the file to where an open file is written; by the kernel where it can. Raises ModelError
        where the file is not what it was, OSError where they cannot be written.
        """
        with _Opened(self) as descriptor:
            position, end = start, start + length
            for copied in (_copy_range, _send, _copy_through_memory):
                try:
                    while position < end:
                        moved = copied(descriptor, target, position, min(end - position, _MOST_AT_ONCE))
                        if not moved:
                            raise self._changed()
                        position += moved
                    return
                except (OSError, AttributeError):
                    # A kernel or file system that cannot; the last way says what is wrong.
                    if copied is _copy_through_memory:
                        raise

    def is_at(self, path: Path) -> bool:
        """True where the file of this name is still the one that was read."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size) == (self._status.modified, self._status.size)

    def _changed(self) -> ModelError:
        text = "was changed after it was read, and its weights are needed now"
        return ModelError(f"{self.path}: {text}", (diagnostic("SG101", text, str(self.path)),))


class _Opened:
    """The descriptor of a source file, for a while; checked to be the file that was read."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._opened: int | None = None

    def __enter__(self) -> int:
        descriptor = self._source._descriptor
        if descriptor is None:
            try:
                descriptor = self._opened = os.open(self._source.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            except OSError:
                raise self._source._changed() from None
        if _Status.of(os.fstat(descriptor)) != self._source._status:
            self.__exit__()
            raise self._source._changed()
        return descriptor

    def __exit__(self, *error: object) -> None:
        if self._opened is not None:
            os.close(self._opened)


# The files that somebody holds, by how a message names them.
_SOURCES: WeakValueDictionary[str, SourceFile] = WeakValueDictionary()
_NUMBERS = count()


def _read_at(descriptor: int, length: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, min(length, _MOST_AT_ONCE), position)
    os.lseek(descriptor, position, os.SEEK_SET)
    return os.read(descriptor, min(length, _MOST_AT_ONCE))


def _copy_range(source: int, target: int, position: int, length: int) -> int:
    return os.copy_file_range(source, target, length, position)


def _send(source: int, target: int, position: int, length: int) -> int:
    return os.sendfile(target, source, position, length)


def _copy_through_memory(source: int, target: int, position: int, length: int) -> int:
    left = memoryview(_read_at(source, min(length, _IN_MEMORY), position))
    copied = len(left)
    while left:
        left = left[os.write(target, left) :]
    return copied


class Place(NamedTuple):
    """Where the elements of a tensor are: `length` bytes of a file from `start`, which are the value of the field of
    that number. entries: how many numbers these are, None for raw data. is_told: whether the file says of the tensor
    that its elements are in it, which goes without saying.
    """

    source: SourceFile
    start: int
    length: int
    field: int
    entries: int | None
    is_told: bool

    @property
    def is_raw(self) -> bool:
        """True where the bytes are those of raw data."""
        return self.field == RAW_DATA or self.field in _AS_RAW

    @property
    def head(self) -> bytes:
        """What stands before the elements in the file."""
        return head(self.field, self.length)

    @property
    def end(self) -> int:
        """The position behind the elements."""
        return self.start + self.length


def place_of(tensor: TensorProto) -> Place | None:
    """Where the elements of a tensor stayed; None for one that has them, or names another file."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return None
    for entry in tensor.external_data:
        if entry.key == KEY:
            *numbers, source = entry.value.split(maxsplit=5)
            start, length, number_of_field, entries, told = map(int, numbers)
            of = SourceFile.told(source)
            return Place(of, start, length, number_of_field, None if entries < 0 else entries, bool(told))
    return None


def is_in_other_file(tensor: TensorProto) -> bool:
    """True when the elements of a tensor lie in a file beside the model's own."""
    return tensor.data_location == TensorProto.EXTERNAL and place_of(tensor) is None


def written_place(place: Place) -> bytes:
    """The fields of a TensorProto that say where its elements are."""
    entries = -1 if place.entries is None else place.entries
    numbers = place.start, place.length, place.field, entries, int(place.is_told)
    value = " ".join([*map(str, numbers), place.source.text])
    entry = field(1, KEY_BYTES) + field(2, value.encode())
    return field(EXTERNAL_DATA, entry) + tag(DATA_LOCATION, VARINT) + varint(TensorProto.EXTERNAL)


def fill(tensor: TensorProto) -> None:
    """Read the elements that stayed in a file into the tensor. Raises ModelError where the file was changed."""
    place = place_of(tensor)
    if place is None:
        return
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    if place.is_told:
        tensor.data_location = TensorProto.DEFAULT
    elements = place.source.read(place.start, place.length)
    if place.field == RAW_DATA:
        tensor.raw_data = elements
    else:
        tensor.MergeFromString(place.head + elements)


def with_elements(tensor: TensorProto) -> TensorProto:
    """The tensor with its elements: itself where it has them."""
    if place_of(tensor) is None:
        return tensor
    filled = TensorProto()
    filled.CopyFrom(tensor)
    fill(filled)
    return filled
