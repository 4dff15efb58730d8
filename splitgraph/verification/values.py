"""Hold the values of a model, and pass them between this process and an engine process in files.

A value is an array (strings as objects, bfloat16 and the other narrow types as ml_dtypes arrays), a list (a sequence),
a dict (a map) or None (an optional without element). A file holds one JSON line that describes the values, followed by
their bytes. Reading a file executes nothing, unlike reading a pickle.

The elements of a large tensor stay in their file: its array is mapped to them. `blocks` walks over such arrays in
pieces, so that they never take the memory of a whole tensor.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

# An array, a list or dict of values, or None. The types of the model decide which, so that a type checker cannot.
Value = Any
Array = npt.NDArray[Any]
# Runs a loaded model: takes the inputs by name, and the names of the outputs to return in this order; None for all
# outputs in the order of the model.
Run = Callable[[Mapping[str, Value], Sequence[str] | None], list[Value]]
# The index of a part of an array.
ValueBlock = tuple[Any, ...]

# A tensor of at least so many bytes stays in its file. Windows removes no file that is mapped.
_MAPPED = 2**24
_MAPS = os.name == "posix"
# So many elements of a tensor are in memory at a time. A comparison takes about 50 bytes for each.
_BLOCK = 2**19


class UnsupportedError(Exception):
    """Raised for what an engine or this file format cannot do; it says nothing about the model."""


def write_values(path: Path, values: Mapping[str, Value], most_objects: float = math.inf) -> None:
    """Write named values to a file.

    most_objects: how many texts, members of sequences and entries of maps there may be; a reader takes memory and time
    for each. Raises UnsupportedError for more, and for any other kind of value, such as a sparse tensor.
    """
    count = sum(map(_count_objects, values.values()))
    if count > most_objects:
        raise UnsupportedError(f"its outputs hold {count:,} texts or tensors, more than the {most_objects:,} compared")
    blobs: list[memoryview] = []
    description = {name: _describe(value, blobs) for name, value in values.items()}
    with path.open("wb") as file:
        file.write(json.dumps({"values": description}).encode("ascii") + b"\n")
        for blob in blobs:
            file.write(blob)


def are_identical(path: Path, values: Sequence[Value]) -> bool:
    """Return True if the values in a file are the same, bit for bit. Texts and what is no tensor are never the same."""
    stored = list(read_values(path).values())
    return len(stored) == len(values) and all(map(_is_identical, stored, values))


def _is_identical(first: Value, second: Value) -> bool:
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or is_text(first) or is_text(second):
        return False
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return all(have_same_bits(first[block], second[block]) for block in blocks(first))


def is_same(first: Value, second: Value) -> bool:
    """Return True if two values are the same: numbers bit for bit, texts, and the members of sequences and maps."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and is_text(first) and is_text(second):
        return bool(np.array_equal(first, second))
    return _is_identical(first, second) if isinstance(first, np.ndarray) else bool(first == second)


def have_same_bits(first: Array, second: Array) -> bool:
    """Return True if two arrays of numbers, of the same type and shape, are the same bit for bit."""
    width = first.dtype.itemsize if first.dtype.itemsize in (1, 2, 4, 8) else 1
    left, right = (np.ascontiguousarray(array).reshape(-1).view(f"u{width}") for array in (first, second))
    return bool(np.array_equal(left, right))


def blocks(array: Array, *others: Array) -> Iterator[ValueBlock]:
    """Yield what selects each part of an array, in the order of its elements; a part is never too large for memory.

    Once a part was used, the memory of mapped files is given back. others: arrays of which the same parts are used.
    """
    for block in _blocks(array.shape):
        yield block
        for mapped in (array, *others):
            _give_back(mapped)


def _blocks(shape: Sequence[int]) -> Iterator[ValueBlock]:
    if not shape or math.prod(shape) <= _BLOCK:
        yield (...,)
        return
    row = math.prod(shape[1:])
    rows = max(_BLOCK // max(row, 1), 1)
    for start in range(0, shape[0], rows):
        for rest in _blocks(shape[1:]) if row > _BLOCK else ((...,),):
            yield (slice(start, start + rows), *rest)


def _give_back(array: Array) -> None:
    """Give back the memory of a mapped file; its elements are read again where they are used again."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = getattr(owner, "obj", owner)
    if isinstance(owner, mmap.mmap) and hasattr(owner, "madvise"):
        owner.madvise(mmap.MADV_DONTNEED)


def _count_objects(value: Value) -> int:
    if isinstance(value, dict):
        return 2 * len(value)
    if isinstance(value, (list, tuple)):
        return len(value) + sum(map(_count_objects, value))
    return value.size if isinstance(value, np.ndarray) and is_text(value) else 0


def read_values(path: Path) -> dict[str, Value]:
    """Read a file that write_values wrote."""
    with path.open("rb") as file:
        header = json.loads(file.readline())
        return {name: _restore(description, file) for name, description in header["values"].items()}


def dtype_by_name(name: str) -> np.dtype[Any]:
    """Return the element type of NumPy or ml_dtypes with a name such as "float32" or "float8_e4m3fn"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow


def is_text(array: Array) -> bool:
    """Return True for an array of strings, in any of the forms that NumPy has for them."""
    return array.dtype.kind in "OUST"


def as_text(array: Array) -> Array:
    """Convert an array of strings to `str` objects; bytes are decoded as UTF-8."""
    texts = np.empty(array.size, dtype=object)
    texts[:] = [_decode(element) for element in array.ravel().tolist()]
    return texts.reshape(array.shape)


def tensors_of(value: Value) -> Iterator[Array]:
    """Yield the tensors in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield np.asarray(item)
    elif isinstance(value, list):
        for item in value:
            yield from tensors_of(item)


def _decode(element: Any) -> str:
    return element.decode("utf-8", "surrogateescape") if isinstance(element, bytes) else str(element)


def _describe(value: Value, blobs: list[memoryview]) -> dict[str, Any]:
    if value is None:
        return {"kind": "none"}
    if isinstance(value, dict):
        return {
            "kind": "map",
            "items": [
                [_describe(np.asarray(key), blobs), _describe(np.asarray(item), blobs)] for key, item in value.items()
            ],
        }
    if isinstance(value, (list, tuple)):
        return {"kind": "sequence", "items": [_describe(item, blobs) for item in value]}
    if not isinstance(value, (np.ndarray, np.generic)):
        raise UnsupportedError(f"a {type(value).__name__} is not a tensor, sequence, map or optional")
    array = np.asarray(value)
    if is_text(array):
        blob = memoryview(json.dumps([_decode(element) for element in array.ravel().tolist()]).encode("ascii"))
        name = "string"
    else:
        # Without a copy; NumPy has no memory views of the types of ml_dtypes.
        blob = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        name = array.dtype.name
    blobs.append(blob)
    return {"kind": "tensor", "dtype": name, "shape": list(array.shape), "bytes": blob.nbytes}


def _restore(description: Mapping[str, Any], file: BinaryIO) -> Value:
    kind = description["kind"]
    if kind == "none":
        return None
    if kind == "sequence":
        return [_restore(item, file) for item in description["items"]]
    if kind == "map":
        pairs = [(_restore(key, file), _restore(item, file)) for key, item in description["items"]]
        return {key.item(): item for key, item in pairs}
    size, shape = description["bytes"], tuple(description["shape"])
    if description["dtype"] == "string":
        return as_text(np.array(json.loads(file.read(size)), dtype=object)).reshape(shape)
    dtype = dtype_by_name(description["dtype"])
    if size < _MAPPED or not _MAPS:
        return np.frombuffer(file.read(size), dtype=dtype).reshape(shape).copy()
    start = file.seek(size, os.SEEK_CUR) - size
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=dtype, count=math.prod(shape), offset=start).reshape(shape)
