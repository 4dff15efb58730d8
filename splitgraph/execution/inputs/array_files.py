"""Read NumPy's files of arrays: `.npy` and `.npz`. Nothing is unpickled, and no more memory is taken than the file has
bytes for, whatever its header says, nor more than there is room for.
"""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

from numpy.lib import format as npy_format

from splitgraph.execution.inputs.room import TEXT, Room
from splitgraph.execution.values import Array

# How archives and pickles begin.
_ARCHIVE = b"PK\x03\x04"
_PICKLE = b"\x80"
# As NumPy has it: what follows could run Python's parser out of memory.
_LONGEST_HEADER = 10_000
# What NumPy, and the modules that decompress archives, raise for damaged files.
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
