"""Constant tensors of two models, compared by their elements, wherever these are: in memory, in the model's file, in a
data file, or in the .bin of an IR. Large ones are read in blocks and never as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from splitgraph.diagnostics import ModelError, diagnostic
from splitgraph.formats.external_data import ExternalReference, checked_references
from splitgraph.formats.model_error import model_error, system_reason
from splitgraph.graph.values import array_of, tensor_contents, tensor_type
from splitgraph.onnx_proto import SparseTensorProto, TensorProto
from splitgraph.tensor_data import SourceFile, is_external, place_of
from splitgraph.value_type import DTYPE_NAMES

# Bytes of each tensor that are in memory at once.
_BLOCK = 2**22
# Elements that a text shows.
_SHOWN = 8


class UnknownFolder:
    """The folder of a model in memory, which may have data files. Models with the same one have the same files."""


Folder = Path | UnknownFolder
# Of a constant that has no data file.
UNKNOWN_FOLDER = UnknownFolder()


class Bytes(NamedTuple):
    """Bytes that can be read piece by piece. origin: of two with the same origin, the bytes are the same."""

    size: int
    read: Callable[[int, int], bytes]
    origin: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant tensor of a model.

    text: its type, and its elements where these are few. tensors: the tensor; the values and indices of a sparse one.
    bytes: of a constant of an IR, in place of tensors. folder: of external data.
    """

    text: str
    type: str
    tensors: tuple[TensorProto, ...] = ()
    bytes: Bytes | None = None
    folder: Folder = UNKNOWN_FOLDER

    def equals(self, other: Constant) -> bool:
        """True if type and elements are the same. Raises ModelError if elements cannot be read."""
        if self.type != other.type:
            return False
        if self.bytes is not None and other.bytes is not None:
            return _same_bytes(self.bytes, other.bytes)
        pairs = zip(self.tensors, other.tensors, strict=True)
        return all(_same_elements(one, self.folder, two, other.folder) for one, two in pairs)


def constant(tensor: TensorProto, folder: Folder) -> Constant:
    """The constant of a tensor of an ONNX model."""
    kind = str(tensor_type(tensor)) if tensor.data_type in DTYPE_NAMES else f"type {tensor.data_type}{[*tensor.dims]}"
    contents = tensor_contents(tensor) if _count(tensor) <= _SHOWN else None
    shown = "" if contents is None else _items_text(contents.items)
    return Constant(f"{kind} {shown}".rstrip(), kind, (tensor,), folder=folder)


def sparse_constant(sparse: SparseTensorProto, folder: Folder) -> Constant:
    """The constant of a sparse tensor of an ONNX model."""
    dtype = DTYPE_NAMES.get(sparse.values.data_type, "?")
    kind = f"sparse_tensor({dtype}{[*sparse.dims]})"
    # The number of stored elements is not part of a type, but two with other numbers differ.
    stored = f"{kind} {[*sparse.values.dims]} {[*sparse.indices.dims]}"
    return Constant(kind, stored, (sparse.values, sparse.indices), folder=folder)


def _count(tensor: TensorProto) -> int:
    count = 1
    for dim in tensor.dims:
        count *= max(dim, 0)
    return count


def _items_text(items: tuple[object, ...]) -> str:
    return f"= {', '.join(map(_item_text, items))}" if items else ""


def _item_text(item: object) -> str:
    if isinstance(item, float):
        return f"{item:.6g}"
    return f'"{item}"' if isinstance(item, str) else str(item)


def _same_elements(one: TensorProto, folder: Folder, two: TensorProto, other_folder: Folder) -> bool:
    if list(one.dims) != list(two.dims) or one.data_type != two.data_type:
        return False
    if one.data_type == TensorProto.STRING:
        return list(one.string_data) == list(two.string_data)
    if _is_unreachable(one, folder) or _is_unreachable(two, other_folder):
        return _same_reference(one, two, is_one_folder=folder is other_folder)
    found, other = _bytes_of(one, folder), _bytes_of(two, other_folder)
    if found is not None and other is not None:
        return _same_bytes(found, other)
    return _decoded(one, found) == _decoded(two, other)


def _same_bytes(one: Bytes, two: Bytes) -> bool:
    if one.size != two.size:
        return False
    if one.origin is not None and one.origin == two.origin:
        return True
    starts = range(0, one.size, _BLOCK)
    return all(one.read(at, min(_BLOCK, one.size - at)) == two.read(at, min(_BLOCK, one.size - at)) for at in starts)


def _bytes_of(tensor: TensorProto, folder: Folder) -> Bytes | None:
    """The elements as raw data has them; None where they are in a field of numbers that is written in another way."""
    place = place_of(tensor)
    if place is not None:
        if not place.is_raw:
            return None
        source, start = place.source, place.start
        origin = (*source.identity, start, place.length)
        return Bytes(place.length, lambda at, length: source.read(start + at, length), origin)
    if is_external(tensor) and isinstance(folder, Path):
        return _bytes_of_file(checked_references([tensor], folder, folder)[0], folder)
    if not tensor.HasField("raw_data"):
        return None
    raw = tensor.raw_data
    return Bytes(len(raw), lambda at, length: raw[at : at + length])


def _bytes_of_file(reference: ExternalReference, folder: Path) -> Bytes:
    path = folder / reference.location
    try:
        source = SourceFile.opened(path)
    except OSError as error:
        raise model_error("SG107", f"cannot be read: {system_reason(error)}", path) from error
    offset = reference.offset
    return Bytes(
        reference.length,
        lambda at, length: source.read(offset + at, length),
        (*source.identity, offset, reference.length),
    )


def _decoded(tensor: TensorProto, found: Bytes | None) -> bytes:
    """The elements in one form, whatever form the tensor has."""
    if found is not None and not tensor.HasField("raw_data"):
        filled = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=found.read(0, found.size))
        tensor = filled
    if tensor.data_type not in DTYPE_NAMES:
        return _written(tensor)
    try:
        decoded: bytes = array_of(tensor).tobytes()
    except (ValueError, TypeError):
        # Elements that do not fit the shape.
        decoded = _written(tensor)
    return decoded


def _written(tensor: TensorProto) -> bytes:
    """A tensor that cannot be read, as it is written."""
    plain = TensorProto()
    plain.CopyFrom(tensor)
    for field in ("name", "doc_string"):
        plain.ClearField(field)
    written: bytes = plain.SerializeToString()
    return written


def _is_unreachable(tensor: TensorProto, folder: Folder) -> bool:
    return is_external(tensor) and place_of(tensor) is None and isinstance(folder, UnknownFolder)


def _same_reference(one: TensorProto, two: TensorProto, *, is_one_folder: bool) -> bool:
    """The answer for models in memory whose data files are not known: equal references have equal elements where they
    lead to the same file.
    """
    entries = [sorted((entry.key, entry.value) for entry in tensor.external_data) for tensor in (one, two)]
    if is_one_folder and is_external(one) and is_external(two) and entries[0] == entries[1]:
        return True
    name = one.name or two.name
    text = f"the elements of tensor {name!r} are in a data file, and the folder of a model in memory is not known"
    raise ModelError(
        text, [diagnostic("SG107", text, help="Give the path of the model, or load the model with its data.")]
    )
