"""Hold the values of a model, and pass them between this process and an engine process in files.

A value is an array (strings as objects, bfloat16 and the other narrow types as ml_dtypes arrays), a list (a sequence),
a dict (a map) or None (an optional without element). A file holds one JSON line that describes the values, followed by
their bytes. Reading a file executes nothing, unlike reading a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

# An array, a list or dict of values, or None. The types of the model decide which, so that a type checker cannot.
Value = Any
Array = npt.NDArray[Any]
# Runs a loaded model: takes the inputs by name and returns the outputs in the order of the model.
Run = Callable[[Mapping[str, Value]], list[Value]]


class UnsupportedError(Exception):
    """Raised for what an engine or this file format cannot do; it says nothing about the model."""


def write_values(path: Path, values: Mapping[str, Value]) -> None:
    """Write named values to a file; raise UnsupportedError for any other kind of value, such as a sparse tensor."""
    blobs: list[bytes] = []
    description = {name: _describe(value, blobs) for name, value in values.items()}
    with path.open("wb") as file:
        file.write(json.dumps({"values": description}).encode("ascii") + b"\n")
        for blob in blobs:
            file.write(blob)


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


def _decode(element: Any) -> str:
    return element.decode("utf-8", "surrogateescape") if isinstance(element, bytes) else str(element)


def _describe(value: Value, blobs: list[bytes]) -> dict[str, Any]:
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
        blob = json.dumps([_decode(element) for element in array.ravel().tolist()]).encode("ascii")
        name = "string"
    else:
        blob = np.ascontiguousarray(array).tobytes()
        name = array.dtype.name
    blobs.append(blob)
    return {"kind": "tensor", "dtype": name, "shape": list(array.shape), "bytes": len(blob)}


def _restore(description: Mapping[str, Any], file: BinaryIO) -> Value:
    kind = description["kind"]
    if kind == "none":
        return None
    if kind == "sequence":
        return [_restore(item, file) for item in description["items"]]
    if kind == "map":
        pairs = [(_restore(key, file), _restore(item, file)) for key, item in description["items"]]
        return {key.item(): item for key, item in pairs}
    blob = file.read(description["bytes"])
    shape = tuple(description["shape"])
    if description["dtype"] == "string":
        return as_text(np.array(json.loads(blob), dtype=object)).reshape(shape)
    return np.frombuffer(blob, dtype=dtype_by_name(description["dtype"])).reshape(shape).copy()
