"""Where the elements of tensors are, how many bytes they take, and whether they are sound.

Weights are most of a model, and no split looks at them. In a model that is read from a file, a large tensor comes
without its elements, which stay in the file until somebody asks for them. The tensor is marked as external, and an
entry of its external data says where they are: in which file, and from which byte. So the message itself leads to its
file, whoever has it. The key of the entry is made up anew by each process, so that no file can hold one.
"""

from __future__ import annotations

import math
import os
import struct
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from splitgraph.findings.diagnostics import ModelError, diagnostic
from splitgraph.model.onnx_proto import SparseTensorProto, TensorProto
from splitgraph.model.wire_format import VARINT, field, head, tag, varint

KEY = f"splitgraph place {os.urandom(8).hex()}"
KEY_BYTES = KEY.encode()

RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER
EXTERNAL_DATA = TensorProto.EXTERNAL_DATA_FIELD_NUMBER
DATA_LOCATION = TensorProto.DATA_LOCATION_FIELD_NUMBER
# The fields of typed numbers (float_data, double_data) whose bytes are those of raw data.
_AS_RAW = frozenset({4, 10})
# The most bytes for a file system in one call, and the most in memory if the file system does not copy.
_MOST_AT_ONCE = 2**30
_IN_MEMORY = 2**20
# The bytes of a number of variable length that another one follows.
_CONTINUED = bytes(range(128, 256))


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
        """Return the file of a name, opened. Raises OSError."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        # Whoever reads it later may be in another folder.
        return cls(Path(os.path.abspath(path)), _Status.of(os.fstat(descriptor)), next(_NUMBERS), descriptor)

    @classmethod
    def of_text(cls, text: str) -> SourceFile:
        """Return the file that a place in a message names: the one that is held, else the one of its name."""
        source = _SOURCES.get(text)
        if source is not None:
            return source
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
        """Return some bytes of the file. Raises ModelError if the file changed."""
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
        """Copy some bytes of the file to an open file; the kernel does it if it can. Raises ModelError if the file
        changed, OSError if the bytes cannot be written.
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
                    # The kernel or file system cannot do it; the last way raises its error.
                    if copied is _copy_through_memory:
                        raise

    def is_at(self, path: Path) -> bool:
        """Return True where the file of this name is still the one that was read."""
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


# The files that are held, by their names in messages.
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
    """Where the elements of a tensor are: `length` bytes of a file from `start`, the value of a field of a TensorProto.

    field: the number of the field. entries: how many numbers these are, None for raw data. is_told: the tensor in the
    file has a data_location that says that its elements are in it, which is the default.
    """

    source: SourceFile
    start: int
    length: int
    field: int
    entries: int | None
    is_told: bool

    @property
    def is_raw(self) -> bool:
        """True if the bytes are those of raw data."""
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
    """Return where the elements of a tensor stayed; None for one that has them, or names another file."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return None
    for entry in tensor.external_data:
        if entry.key == KEY:
            *numbers, source = entry.value.split(maxsplit=5)
            start, length, number_of_field, entries, told = map(int, numbers)
            of = SourceFile.of_text(source)
            return Place(of, start, length, number_of_field, None if entries < 0 else entries, bool(told))
    return None


def is_in_other_file(tensor: TensorProto) -> bool:
    """Return True when the elements of a tensor lie in a file beside the model's own."""
    return tensor.data_location == TensorProto.EXTERNAL and place_of(tensor) is None


def written_place(place: Place) -> bytes:
    """Return the fields of a TensorProto that say where its elements are."""
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
    """Return the tensor with its elements: itself where it has them."""
    if place_of(tensor) is None:
        return tensor
    filled = TensorProto()
    filled.CopyFrom(tensor)
    fill(filled)
    return filled


def first_elements(tensor: TensorProto, most: int) -> TensorProto:
    """Return the first elements of a tensor as a 1-D tensor; none of a tensor in another file.

    most: how many bytes of its contents are read at most, a multiple of 8; no more is read of what stayed in the
    model's file. Raises ModelError where that file was changed.
    """
    part = TensorProto(data_type=tensor.data_type)
    place, typed = place_of(tensor), _FIELD_OF.get(tensor.data_type)
    if place is not None:
        content = place.source.read(place.start, min(place.length, most))
        # A number that is cut off lacks its last byte, the only one below 128.
        content = content if place.is_raw else content.rstrip(_CONTINUED)
        part.MergeFromString(head(place.field, len(content)) + content)
    elif tensor.HasField("raw_data"):
        part.raw_data = tensor.raw_data[:most]
    elif typed is not None:
        getattr(part, typed).extend(getattr(tensor, typed)[: most // 8])
    # The last entry or byte may hold more elements than the tensor has.
    part.dims.append(min(_held_elements(part, typed), math.prod(tensor.dims)))
    return part


def _held_elements(tensor: TensorProto, typed: str | None) -> int:
    """Return how many whole elements the contents of a tensor hold. typed: the field for its type, None if unknown."""
    bits = _BITS.get(tensor.data_type)
    if tensor.HasField("raw_data"):
        return 0 if bits is None else len(tensor.raw_data) * 8 // bits
    if typed is None:
        return 0
    entries, elements = _ENTRIES.get(tensor.data_type, (1, 1))
    return len(getattr(tensor, typed)) * elements // entries


# Size and soundness --------------------------------------------------------------------------------------------------


# Bits of one element of each TensorProto.DataType that has a fixed size.
_BITS: dict[int, int] = {
    **dict.fromkeys((25, 26), 2),
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((27, 28), 6),
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, 14), 64),
    15: 128,
}
_STRING = TensorProto.STRING
# The field that holds the elements of each type where there is no raw data. Source: onnx.proto, TensorProto.
_INT32_TYPES = (2, 3, 4, 5, 6, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
_FIELD_OF: dict[int, str] = {
    **dict.fromkeys((1, 14), "float_data"),
    **dict.fromkeys(_INT32_TYPES, "int32_data"),
    _STRING: "string_data",
    7: "int64_data",
    **dict.fromkeys((11, 15), "double_data"),
    **dict.fromkeys((12, 13), "uint64_data"),
}
# With more entries than this, the places of a sparse tensor and 16-bit entries are not checked: they are weights.
_MOST_INDICES = 4096
_HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_LARGEST_BITS = 0xFFFF
_FIELDS = tuple(dict.fromkeys(_FIELD_OF.values()))
# How many entries of the field hold how many elements: a complex number takes two entries, and 4-bit and 2-bit
# elements share one.
_ENTRIES: dict[int, tuple[int, int]] = {
    **dict.fromkeys((14, 15), (2, 1)),
    **dict.fromkeys((21, 22, 23), (1, 2)),
    **dict.fromkeys((25, 26), (1, 4)),
}


def byte_size(tensor: TensorProto) -> int | None:
    """Return bytes that a tensor of this type and shape takes as raw data; None for strings and unknown types."""
    bits = _BITS.get(tensor.data_type)
    return None if bits is None else (math.prod(tensor.dims) * bits + 7) // 8


def is_external(tensor: TensorProto) -> bool:
    """Return True when the tensor's contents lie in another file, or stayed in the model's own (see
    `tensor_data`).
    """
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def lacks_data(tensor: TensorProto) -> bool:
    """Return True for a tensor that has elements by its shape, and none in the file: the weights were removed."""
    if tensor.raw_data or is_external(tensor) or _given_fields(tensor):
        return False
    return math.prod(tensor.dims) > 0


def misfit(tensor: TensorProto) -> str | None:
    """Return what is wrong with a tensor: its element type, its shape, or where and how many its elements are. Return
    None for a sound tensor, for elements in another file, and for a tensor without elements (see `lacks_data`).
    """
    data_type, dims = tensor.data_type, tensor.dims
    if data_type == TensorProto.UNDEFINED:
        return "it has no element type"
    if data_type not in _FIELD_OF:
        # An element type of a newer onnx: it is not known where its elements are.
        return None if data_type in TensorProto.DataType.values() else f"there is no element type {data_type}"
    if dims and min(dims) < 0:
        return f"dimension {min(dims)} is negative"
    if is_external(tensor):
        place = place_of(tensor)
        if place is None:
            return None
        if place.entries is None:
            return _fault_of_size(tensor, place.length)
        return _fault_of_entries(tensor, TensorProto.DESCRIPTOR.fields_by_number[place.field].name, place.entries)
    given = _given_fields(tensor)
    if not given:
        # This makes one copy of the elements; ByteSize would write the whole message, which takes two.
        size = len(tensor.raw_data)
        return _fault_of_size(tensor, size) if size else None
    if tensor.HasField("raw_data"):
        return f"it has elements in both raw_data and {given[0]}; exactly one of them must be given"
    if len(given) > 1:
        return f"it has elements in {' and '.join(given)}; exactly one of them must be given"
    count = len(getattr(tensor, given[0]))
    fault = _fault_of_entries(tensor, given[0], count)
    if fault is None and data_type in _HALVES and 0 < count <= _MOST_INDICES:
        # int32_data holds the bits of each 16-bit float.
        ends = (min(tensor.int32_data), max(tensor.int32_data))
        wrong = [entry for entry in ends if not 0 <= entry <= _LARGEST_BITS]
        fault = f"its entry {wrong[0]} of int32_data is not the bits of a 16-bit number" if wrong else None
    return fault


def _fault_of_entries(tensor: TensorProto, given: str, count: int) -> str | None:
    """Return what is wrong with this number of entries in a typed field. given: the field that has them."""
    expected = _FIELD_OF[tensor.data_type]
    if given != expected:
        return f"its elements are in {given}; those of its type must be in {expected} or raw_data"
    times, per_entry = _ENTRIES.get(tensor.data_type, (1, 1))
    needed = -(-math.prod(tensor.dims) * times // per_entry)
    return None if count == needed else f"it has {count} entries in {expected}, {_needing(needed)}"


def misfit_of_sparse(sparse: SparseTensorProto) -> str | None:
    """Return what is wrong with the values, the indices or the shape of a sparse tensor; None for a sound one."""
    values, indices, dims = sparse.values, sparse.indices, sparse.dims
    for name, tensor in (("values", values), ("indices", indices)):
        problem = misfit(tensor)
        if problem is not None:
            return f"of its {name}, {problem}"
    if not dims or min(dims) < 0:
        return "its shape must have one dimension or more, and none of them negative"
    if len(values.dims) != 1:
        return f"its values have rank {len(values.dims)}; it must be 1"
    count = values.dims[0]
    if count == 0 and not indices.dims:
        return None
    if indices.data_type != TensorProto.INT64:
        return "its indices must be int64"
    allowed = [[count], [count, len(dims)]]
    if list(indices.dims) not in allowed:
        return f"its indices have the shape {list(indices.dims)}; it must be {allowed[0]} or {allowed[1]}"
    return _fault_of_indices(indices, list(dims)) if count <= _MOST_INDICES else None


def _fault_of_indices(indices: TensorProto, dims: list[int]) -> str | None:
    """Return what is wrong with the places of a sparse tensor: each must be inside, and after the one before."""
    indices = with_elements(indices)
    items = indices.int64_data or struct.unpack(f"<{len(indices.raw_data) // 8}q", indices.raw_data)
    rank, bounds = 1, [math.prod(dims)]
    if len(indices.dims) == 2:
        rank, bounds = len(dims), dims
    places = [tuple(items[first : first + rank]) for first in range(0, len(items), rank)]
    for place in places:
        if not all(0 <= index < bound for index, bound in zip(place, bounds, strict=True)):
            return f"its index {list(place)} lies outside its shape {dims}"
    if any(place <= before for before, place in pairwise(places)):
        return "its indices are not in ascending order"
    return None


def _given_fields(tensor: TensorProto) -> list[str]:
    return [name for name in _FIELDS if getattr(tensor, name)]


def _fault_of_size(tensor: TensorProto, size: int) -> str | None:
    if tensor.data_type == _STRING:
        return "its elements are in raw_data; those of strings must be in string_data"
    needed = byte_size(tensor)
    return None if size == needed else f"it has {size} bytes of data, {_needing(needed)}"


def _needing(count: int | None) -> str:
    # Python does not write numbers of more than 4,300 digits, which a shape of some hundred dimensions can need.
    shown = "more than 2**63" if count is not None and count > 2**63 else count
    return f"and its type and shape need {shown}"
