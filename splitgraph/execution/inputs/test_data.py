"""Read inputs, and outputs that are expected, from files: an archive of NumPy, or a folder of test data.

- A file `.npz` holds an array for each input, by its name. It is one case.
- A folder holds `input_0.pb`, `input_1.pb` and so on, as the tests of onnx and its model zoo have them: each is a
  TensorProto, SequenceProto or OptionalProto, for the input of its name, or else of its number. `output_0.pb` and so on
  are what the model is expected to give. Or it holds a file `.npy` for each input, called by its name.
- A folder of such folders, `test_data_set_0` and so on, holds a case in each.

Nothing is unpickled, and no file outside the folder is read: a tensor that refers to another file is refused.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from splitgraph.execution.inputs.given_inputs import GivenCase
from splitgraph.execution.values import Array, Value

_SET = re.compile(r"test_data_set_(\d+)")
_NUMBERED = re.compile(r"(input|output)_(\d+)\.pb")
_WHAT = "an archive data.npz, or a folder with input_0.pb, with .npy files or with folders test_data_set_0"
_Proto = onnx.TensorProto | onnx.SequenceProto | onnx.OptionalProto
_PROTOS: Mapping[str, type[_Proto]] = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}


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
            raise ValueError(f"the inputs {place} do not exist; give {_WHAT}")
        return [GivenCase(place.name, _read_archive(place))]
    except OSError as error:
        raise ValueError(f"the inputs {place} cannot be read: {error.strerror or error}") from error


def _read_folder(
    folder: Path, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
) -> list[GivenCase]:
    own = _read_case(folder, inputs, outputs)
    if own is not None:
        return [own]
    numbered = sorted((int(found[1]), each) for each in folder.iterdir() if (found := _SET.fullmatch(each.name)))
    cases = [_read_case(each, inputs, outputs) for _, each in numbered if each.is_dir()]
    held = [case for case in cases if case is not None]
    if not held:
        raise ValueError(f"the folder {folder} holds no test data; give {_WHAT}")
    return held


def _read_case(
    folder: Path, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
) -> GivenCase | None:
    """Return the case of a folder; None if there is no test data in it."""
    given: dict[str, Value] = {
        path.name.removesuffix(".npy"): _read_array(path) for path in sorted(folder.glob("*.npy"))
    }
    for name, value, path in _read_numbered(folder, "input", inputs):
        if name in given:
            raise ValueError(f"{path} holds the input {name!r}, which another file of the folder holds, too")
        given[name] = value
    positions = {value.name: position for position, value in enumerate(outputs)}
    expected = {positions[name]: value for name, value, _ in _read_numbered(folder, "output", outputs)}
    return GivenCase(folder.name, given, expected) if given or expected else None


def _read_numbered(
    folder: Path, kind: str, declared: Sequence[onnx.ValueInfoProto]
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
        kept, value = _read_proto(path, declared[position].type)
        name = kept if kind == "input" and any(kept == each.name for each in declared) else declared[position].name
        yield name, value, path


def _read_proto(path: Path, declared: onnx.TypeProto) -> tuple[str, Value]:
    """Read a value of a declared kind; return its own name, too."""
    proto: _Proto = _PROTOS.get(declared.WhichOneof("value") or "", onnx.TensorProto)()
    try:
        proto.ParseFromString(path.read_bytes())
        _refuse_external(proto, path)
        if isinstance(proto, onnx.SequenceProto):
            return proto.name, numpy_helper.to_list(proto)
        if isinstance(proto, onnx.OptionalProto):
            return proto.name, numpy_helper.to_optional(proto)
        return proto.name, numpy_helper.to_array(proto)
    except (DecodeError, TypeError, ValueError, KeyError, MemoryError) as error:
        kind = type(proto).__name__
        raise ValueError(f"{path} cannot be read as a {kind}: {error or type(error).__name__}") from error


def _refuse_external(proto: Any, path: Path) -> None:
    """Raise ValueError for a tensor whose elements are in another file."""
    if isinstance(proto, onnx.SequenceProto):
        for each in (*proto.tensor_values, *proto.sequence_values, *proto.optional_values):
            _refuse_external(each, path)
    elif isinstance(proto, onnx.OptionalProto):
        for field in ("tensor_value", "sequence_value", "optional_value"):
            if proto.HasField(field):
                _refuse_external(getattr(proto, field), path)
    elif proto.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError("its elements are in another file; store them in the file itself")


def _read_array(path: Path) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as error:
        raise ValueError(f"{path} {_problem(error)}") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path} is an archive; its name must end in .npz")
    return array


def _read_archive(path: Path) -> dict[str, Array]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no archive of arrays by name; give {_WHAT}")
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name]
                if not isinstance(array, np.ndarray):
                    raise ValueError(f"{path} holds the file {name!r}, which is no array; make it with numpy.savez")
                arrays[name] = array
    except (zipfile.BadZipFile, EOFError, MemoryError, NotImplementedError) as error:
        raise ValueError(f"{path} {_problem(error)}") from error
    except ValueError as error:
        raise error if str(path) in str(error) else ValueError(f"{path} {_problem(error)}") from error
    return arrays


def _problem(error: Exception) -> str:
    """Return what is wrong with a file of arrays, to stand after its name."""
    if "pickle" in str(error):
        return (
            "holds Python objects, which are pickled, and reading a pickle runs code; store arrays of numbers, "
            "booleans or texts (numpy.str_)"
        )
    return f"cannot be read as arrays: {error or type(error).__name__}"
