"""Read inputs, and outputs that are expected, from files: an archive of NumPy, or a folder of test data.

- A file `.npz` holds an array for each input, by its name. It is one case.
- A folder holds `input_0.pb`, `input_1.pb` and so on, as the tests of onnx and its model zoo have them: each is a
  TensorProto, SequenceProto or OptionalProto, for the input of its name, or else of its number. `output_0.pb` and so on
  are what the model is expected to give. Or it holds a file `.npy` for each input, called by its name.
- A folder of such folders, `test_data_set_0` and so on, holds a case in each.

Nothing is unpickled, and no file outside the folder is read: a tensor that refers to another file is refused.
"""

from __future__ import annotations

import lzma
import math
import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import onnx
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from numpy.lib import format as npy_format
from onnx import numpy_helper

from splitgraph.findings.diagnostics import meant_file
from splitgraph.formats.skeleton import MAX_PROTO_BYTES
from splitgraph.model.tensor_data import misfit
from splitgraph.model.wire_format import LENGTH, Malformed, fields
from splitgraph.verification.inputs.given_inputs import GivenCase
from splitgraph.verification.values import Array, Value

_SET = re.compile(r"test_data_set_(\d+)")
_NUMBERED = re.compile(r"(input|output)_(\d+)\.pb")
_WHAT = "an archive data.npz, or a folder with input_0.pb, with .npy files or with folders test_data_set_0"
_Proto = onnx.TensorProto | onnx.SequenceProto | onnx.OptionalProto
_PROTOS: Mapping[str, type[_Proto]] = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
# How archives and pickles begin.
_ARCHIVE = b"PK\x03\x04"
_PICKLE = b"\x80"
# As NumPy has it: what follows could run Python's parser out of memory.
_LONGEST_HEADER = 10_000
# The errors of NumPy, and of the modules that decompress archives, for damaged files.
_DAMAGES = (
    ValueError,
    EOFError,
    MemoryError,
    TypeError,
    OverflowError,
    SyntaxError,
    RecursionError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
_MIB = 2**20
# All files of inputs together.
_MOST = 2048 * _MIB
# One archive: so much, or so many times its own size. Arrays that programs store are compressed ten times at most;
# masks and zeros are compressed better, and are small.
_MOST_OF_ARCHIVE = 256 * _MIB
_TIMES_OF_ARCHIVE = 32
# The bytes of a text as an object of Python, and of a field as a message of its own.
TEXT, _FIELD = 64, 256
# Raw data are there twice for a while; numbers of typed fields become objects of Python, one by one.
_RAW, _TYPED = 2, 16
_NUMBERS = frozenset({"float_data", "int32_data", "int64_data", "double_data", "uint64_data"})
# protobuf reads nothing that is nested deeper.
_DEEPEST = 100


def read_test_data(
    path: str | os.PathLike[str], inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
) -> list[GivenCase]:
    """Read the cases of a file or a folder, in order.

    inputs, outputs: of the first model, in its order. Raises ValueError for a path that holds no test data, for a
    damaged file, and for a number that no input or output has.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return _read_folder(place, inputs, outputs)
        if not place.exists():
            raise ValueError(f"the inputs {place} do not exist{meant_file(place)}; give {_WHAT}")
        return [GivenCase(place.name, read_archive(place, f"give {_WHAT}"))]
    except OSError as error:
        raise ValueError(f"the inputs {place} cannot be read: {error.strerror or error}") from error


def _read_folder(
    folder: Path, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
) -> list[GivenCase]:
    room = Room()
    own = _read_case(folder, inputs, outputs, room)
    if own is not None:
        return [own]
    numbered = sorted((int(number[1]), path) for path in folder.iterdir() if (number := _SET.fullmatch(path.name)))
    cases = [_read_case(set_folder, inputs, outputs, room) for _, set_folder in numbered if set_folder.is_dir()]
    read = [case for case in cases if case is not None]
    if not read:
        raise ValueError(f"the folder {folder} holds no test data; give {_WHAT}")
    return read


def _read_case(
    folder: Path, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], room: Room
) -> GivenCase | None:
    """Return the case of a folder; None if there is no test data in it."""
    given: dict[str, Value] = {
        path.name.removesuffix(".npy"): read_array(path, room) for path in sorted(folder.glob("*.npy"))
    }
    for name, value, path in _read_numbered(folder, "input", inputs, room):
        if name in given:
            raise ValueError(f"{path} holds the input {name!r}, which another file of the folder holds, too")
        given[name] = value
    positions = {value.name: position for position, value in enumerate(outputs)}
    expected = {positions[name]: value for name, value, _ in _read_numbered(folder, "output", outputs, room)}
    return GivenCase(folder.name, given, expected) if given or expected else None


def _read_numbered(
    folder: Path, kind: str, declared: Sequence[onnx.ValueInfoProto], room: Room
) -> Iterator[tuple[str, Value, Path]]:
    """Yield the name, the value and the file of each input, or of each output."""
    for path in sorted(folder.glob(f"{kind}_*.pb")):
        number = _NUMBERED.fullmatch(path.name)
        if number is None:
            continue
        position = int(number[2])
        if position >= len(declared):
            names = ", ".join(value.name for value in declared) or "none"
            raise ValueError(f"{path} is for {kind} {position}, but the model has {len(declared)} {kind}s: {names}")
        kept, value = _read_proto(path, declared[position].type, room)
        name = kept if kind == "input" and any(kept == info.name for info in declared) else declared[position].name
        yield name, value, path


def _read_proto(path: Path, declared: onnx.TypeProto, room: Room) -> tuple[str, Value]:
    """Read a value of a declared kind; return its own name, too."""
    proto: _Proto = _PROTOS.get(declared.WhichOneof("value") or "", onnx.TensorProto)()
    try:
        if path.stat().st_size > MAX_PROTO_BYTES:
            raise ValueError("it has more than 2 GiB, and protobuf reads no such file")
        written = path.read_bytes()
        room.take_message(type(proto), written)
        proto.ParseFromString(written)
        if isinstance(proto, onnx.OptionalProto):
            _refuse_several(written)
        _check(proto, declared)
        if isinstance(proto, onnx.SequenceProto):
            return proto.name, numpy_helper.to_list(proto)
        if isinstance(proto, onnx.OptionalProto):
            return proto.name, numpy_helper.to_optional(proto)
        return proto.name, numpy_helper.to_array(proto)
    except (DecodeError, TypeError, ValueError, KeyError, IndexError, MemoryError) as error:
        kind = type(proto).__name__
        raise ValueError(f"{path} cannot be read as a {kind}: {error or type(error).__name__}") from error


def _check(proto: Any, declared: onnx.TypeProto) -> None:
    """Raise ValueError for a value that is not of the declared kind, for a tensor whose shape and elements do not fit,
    and for one whose elements are in another file.

    protobuf reads a message of one kind as one of another kind, and keeps what does not fit as unknown fields.
    """
    if len(UnknownFieldSet(proto)):
        raise ValueError(f"it has fields that a {type(proto).__name__} does not have; it may be of another kind")
    if isinstance(proto, onnx.TensorProto):
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            raise ValueError("its elements are in another file; store them in the file itself")
        problem = misfit(proto)
        if problem is not None:
            raise ValueError(problem)
    elif isinstance(proto, onnx.MapProto):
        sequence_type = onnx.TypeProto.Sequence(elem_type=declared.map_type.value_type)
        _check(proto.values, onnx.TypeProto(sequence_type=sequence_type))
    elif isinstance(proto, (onnx.SequenceProto, onnx.OptionalProto)):
        _check_held(proto, declared)
    else:
        raise ValueError(f"it holds a {type(proto).__name__}, which splitgraph does not read")


def _check_held(proto: onnx.SequenceProto | onnx.OptionalProto, declared: onnx.TypeProto) -> None:
    """Check what a sequence or an optional holds: values of the declared kind, and only in the field for these."""
    is_sequence = isinstance(proto, onnx.SequenceProto)
    element = (declared.sequence_type if is_sequence else declared.optional_type).elem_type
    wanted = (element.WhichOneof("value") or "tensor_type").removesuffix("_type")
    kind, field = proto.DataType.Name(proto.elem_type).lower(), f"{wanted}_value{'s' * is_sequence}"
    filled = [info.name for info, _ in proto.ListFields() if info.name.endswith(field.removeprefix(wanted))]
    is_absent = not is_sequence and kind == "undefined" and not filled
    is_full = kind == wanted and filled in ([field], [] if is_sequence else [field])
    if not is_absent and not is_full:
        filled_fields = ", ".join(filled) or "no value"
        raise ValueError(f"it has {filled_fields} and says that it holds {kind}; the model takes {wanted}")
    for name in filled:
        values = getattr(proto, name)
        for value in values if is_sequence else [values]:
            _check(value, element)


def _refuse_several(written: bytes) -> None:
    """Raise ValueError for a sequence of several values: read as an optional, these are merged to one."""
    sequence = onnx.SequenceProto.FromString(written)
    for field, values in sequence.ListFields():
        if field.name.endswith("_values") and len(values) > 1:
            raise ValueError(f"it has {len(values)} values, as a SequenceProto has; an optional has one")


def read_array(path: Path, room: Room) -> Array:
    """Read a file `.npy`. Raises ValueError for a file that holds no array, or a damaged one, and OSError."""
    try:
        with path.open("rb") as file:
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                raise _Unfit("is an archive; its name must end in .npz")
            file.seek(0)
            _check_header(file, os.fstat(file.fileno()).st_size, room)
            file.seek(0)
            array: Array = npy_format.read_array(file, allow_pickle=False)
            return array
    except _Unfit as error:
        raise ValueError(f"{path} {error}") from None
    except _DAMAGES as error:
        raise ValueError(f"{path} {_problem(error)}") from error


def read_archive(path: Path, help: str) -> dict[str, Array]:
    """Read a file `.npz`: its arrays by name, at least one. help: what to give in place of another file.

    Raises ValueError for a file that is no archive, holds something else, two arrays of one name or a damaged array,
    and OSError.
    """
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no archive of arrays by name; {help}")
    arrays: dict[str, Array] = {}
    room = Room.of_archive(path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                array = _read_member(archive, member, room)
                if array is None:
                    raise _Unfit(f"holds the file {member.filename!r}, which is no array; make it with numpy.savez")
                if name in arrays:
                    raise _Unfit(f"holds two arrays with the name {name!r}; keep one of them")
                arrays[name] = array
    except _Unfit as error:
        raise ValueError(f"{path} {error}") from None
    except _DAMAGES as error:
        raise ValueError(f"{path} {_problem(error)}") from error
    if not arrays:
        raise ValueError(f"{path} holds no arrays; {help}")
    return arrays


class _Unfit(Exception):
    """Raised for a sound file that is none of arrays by name."""


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, room: Room) -> Array | None:
    """Return an array of an archive; None for a file that holds none."""
    with archive.open(member) as file:
        if file.read(len(npy_format.MAGIC_PREFIX)) != npy_format.MAGIC_PREFIX:
            return None
    with archive.open(member) as file:
        _check_header(file, member.file_size, room)
    with archive.open(member) as file:
        array: Array = npy_format.read_array(file, allow_pickle=False)
        return array


def _check_header(file: IO[bytes], size: int, room: Room) -> None:
    """Raise ValueError if the header of a file `.npy` is damaged, promises more than the file has bytes for, or more
    than there is room for.
    """
    prefix = file.read(npy_format.MAGIC_LEN)
    if not prefix.startswith(npy_format.MAGIC_PREFIX):
        raise ValueError("it is a pickle" if prefix.startswith(_PICKLE) else "it is no file of numpy.save")
    # The third version differs from the second one only in the names of fields, which have no size.
    is_first = prefix[len(npy_format.MAGIC_PREFIX) :] == b"\x01\x00"
    # NumPy reads a longer one before it refuses it.
    length = file.read(2 if is_first else 4)
    if int.from_bytes(length, "little") > _LONGEST_HEADER:
        raise ValueError(f"its header is longer than {_LONGEST_HEADER} bytes")
    file.seek(-len(length), os.SEEK_CUR)
    read_header = npy_format.read_array_header_1_0 if is_first else npy_format.read_array_header_2_0
    try:
        shape, _, dtype = read_header(file)
    except _DAMAGES as error:
        # NumPy's words are about Python's syntax, except for these.
        is_about_type = isinstance(error, ValueError) and "dtype" in str(error)
        raise ValueError(f"its header is damaged{f': {error}' if is_about_type else ''}") from None
    if any(isinstance(dim, bool) or dim < 0 for dim in shape):
        raise ValueError(f"its header has the shape {shape}")
    # Elements without bytes, such as empty texts, take memory, too.
    if not dtype.hasobject and math.prod(shape) * max(dtype.itemsize, 1) > size:
        raise ValueError(f"it has {size} bytes, fewer than the shape {list(shape)} of its header needs")
    # A text becomes an object of its own.
    room.take(math.prod(shape) * max(dtype.itemsize, TEXT if dtype.kind in "SU" else 1))


def _problem(error: Exception) -> str:
    """Return what is wrong with a file of arrays, to stand after its name."""
    if "pickle" in str(error) or "Object arrays" in str(error):
        return (
            "holds Python objects, which are pickled, and reading a pickle runs code; store arrays of numbers, "
            "booleans or texts (numpy.str_)"
        )
    return f"cannot be read as arrays: {error or type(error).__name__}"


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
        """Take a message of ONNX. Raises ValueError also if the bytes are none, or nested too deep."""
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
    for record in fields(written, start, end):
        yield _FIELD
        known = descriptor.fields_by_number.get(record.number)
        if known is None or record.kind != LENGTH:
            continue
        if known.message_type is not None:
            yield from _costs(known.message_type, written, record.start, record.end, depth + 1)
        elif is_tensor and known.name in _NUMBERS:
            yield _TYPED * (record.end - record.start)


def _shown(size: int) -> str:
    return f"{size / _MIB:,.1f} MiB"
