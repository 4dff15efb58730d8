"""Values of a model, and the file format in which they travel between this process and an engine's.

A value is an array (strings as objects, bfloat16 and the other narrow types as ml_dtypes arrays), a list (a sequence),
a dict (a map) or None (an optional without element). A file holds one JSON line that describes the values, and then
their bytes; nothing in it is executed when it is read, as a pickle would be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

# An array, a list or dict of values, or None; which of them, the model's types say, and no type checker can.
Value = Any


class UnsupportedError(Exception):
    """What an engine, or this file format, cannot do; no finding about the model."""


def write_values(path: Path, values: Mapping[str, Value]) -> None:
    """Write named values to a file; UnsupportedError for what is no value of these kinds (a sparse tensor, say)."""
    blobs: list[bytes] = []
    description = {name: _describe(value, blobs) for name, value in values.items()}
    with path.open("wb") as file:
        file.write(json.dumps({"values": description}).encode("ascii") + b"\n")
        for blob in blobs:
            file.write(blob)


def read_values(path: Path) -> dict[str, Value]:
    """Read what write_values wrote."""
    with path.open("rb") as file:
        header = json.loads(file.readline())
        return {name: _restore(description, file) for name, description in header["values"].items()}


def dtype_by_name(name: str) -> np.dtype[Any]:
    """numpy's or ml_dtypes' element type of a name such as "float32" or "float8_e4m3fn"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow


def is_text(array: npt.NDArray[Any]) -> bool:
    """True for an array of strings, however numpy holds them."""
    return array.dtype.kind in "OUST"


def as_text(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Strings as an array of `str` objects; bytes are read as UTF-8."""
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
        raise UnsupportedError(f"a {type(value).__name__} is no tensor, sequence, map or optional")
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
