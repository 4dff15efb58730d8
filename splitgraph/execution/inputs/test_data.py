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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import numpy_helper

from splitgraph.execution.inputs.array_files import read_archive, read_array
from splitgraph.execution.inputs.given_inputs import GivenCase
from splitgraph.execution.inputs.room import Room
from splitgraph.execution.values import Value
from splitgraph.formats.skeleton import MAX_PROTO_BYTES
from splitgraph.tensor_data import misfit

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
    numbered = sorted((int(found[1]), each) for each in folder.iterdir() if (found := _SET.fullmatch(each.name)))
    cases = [_read_case(each, inputs, outputs, room) for _, each in numbered if each.is_dir()]
    held = [case for case in cases if case is not None]
    if not held:
        raise ValueError(f"the folder {folder} holds no test data; give {_WHAT}")
    return held


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
        name = kept if kind == "input" and any(kept == each.name for each in declared) else declared[position].name
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
        held = onnx.TypeProto.Sequence(elem_type=declared.map_type.value_type)
        _check(proto.values, onnx.TypeProto(sequence_type=held))
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
    filled = [each.name for each, _ in proto.ListFields() if each.name.endswith(field.removeprefix(wanted))]
    is_absent = not is_sequence and kind == "undefined" and not filled
    is_full = kind == wanted and filled in ([field], [] if is_sequence else [field])
    if not is_absent and not is_full:
        found = ", ".join(filled) or "no value"
        raise ValueError(f"it has {found} and says that it holds {kind}; the model takes {wanted}")
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
