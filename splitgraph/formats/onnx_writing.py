"""Write ONNX files.

`save_onnx` checks the external data, copies data files into the new folder, and stages the model's file; all files
appear together (`atomic_write`). A model with weights is written in pieces: protobuf writes a message into a buffer
that it doubles until all is in, and copies that, which takes three to four times the memory of the message. The pieces,
one behind the other, are what protobuf itself writes. Source: the encoding of protocol buffers,
onnx/docs/ExternalData.md.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from google.protobuf.message import EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from splitgraph.formats.atomic_write import WriteTogether, writable_target
from splitgraph.formats.external_data import (
    ExternalReference,
    all_tensors,
    as_left_in_files,
    external_references,
    may_be_external,
    refer_to,
    stage_copies,
)
from splitgraph.formats.onnx_file import model_folder, require_path
from splitgraph.formats.recognition import model_error, shown, system_reason
from splitgraph.formats.skeleton import MAX_PROTO_BYTES, Piece, size_of, with_weights_between
from splitgraph.model.deferred import numpy_helper
from splitgraph.model.onnx_proto import GraphProto, ModelProto, TensorProto
from splitgraph.model.tensor_data import KEY_BYTES, Place, byte_size, fill, is_in_other_file, place_of
from splitgraph.model.wire_format import head, total
from splitgraph.options import ExternalData, StrPath

# In bytes: smaller files are written in one go.
_RESERVED_FROM = 2**20
# In elements: smaller tensors are written faster in one piece, and so are models with less of them for each node,
# since taking a model apart copies its nodes.
_LARGE_TENSOR = 2**14
_LARGE_FOR_A_NODE = 256
# Smaller tensors stay in the model, where every tool can read them without the data file.
_EXTERNAL_FROM_BYTES = 1024
# The page size that lets a runtime map a tensor into memory instead of reading it.
_ALIGNMENT = 4096
_BESIDE = 'Write the weights to a file beside the model, with --external-data or external_data="beside".'


class DataFile(NamedTuple):
    """A file that holds weights of a model that was written.

    how: "needed" is a data file of the model that was read; "copied" and "linked" are made of one; "written" holds the
    weights that were asked to be beside.
    """

    path: Path
    how: Literal["needed", "copied", "linked", "written"]


def save_onnx(
    model: ModelProto,
    path: StrPath,
    *,
    source: StrPath | None = None,
    overwrite: bool = True,
    kept: Collection[Path] = (),
    external_data: ExternalData | None = None,
) -> Sequence[DataFile]:
    """Write an ONNX file; afterwards it is there whole, or what was there before is unchanged. Returns the data files
    that the new file depends on.

    source: the file that the model was loaded from with external_data="keep"; its data files are copied into the new
    folder, under the same relative names. Without it, a model's external data must already lie beside `path`.
    external_data: "beside" puts the weights, also those in data files, into `<name>.data` beside the model, which a
    model beyond protobuf's 2 GiB needs; "link" makes hard links to data files in place of copies. A symbolic link is
    written through, permissions are kept. kept: files that are not replaced, not even with `overwrite`.

    Raises ModelError: SG107 external data that cannot be read, SG108 `path` exists and overwrite is False (or a data
    file would replace another, or something one of the kept files), SG109 cannot be written.
    """
    require_path(path)
    try:
        target = writable_target(path, overwrite)
        return _save(model, path, target, path if source is None else source, overwrite, kept, external_data)
    except OSError as error:
        raise model_error("SG109", f"cannot be written: {system_reason(error)}", path) from error


def _save(
    model: ModelProto,
    path: StrPath,
    target: Path,
    source: StrPath,
    overwrite: bool,
    kept: Collection[Path],
    external_data: ExternalData | None,
) -> Sequence[DataFile]:
    folder = model_folder(path)
    content = serialized(model)
    is_whole = content is not None and not may_be_external(model, content.written, content.nodes, is_foreign=False)
    old_folder, beside = model_folder(source), external_data == "beside"
    references = [] if is_whole else external_references(model, old_folder, source)
    moved: list[ExternalReference] = []
    if beside:
        # What is in the data file beside the path already stays there.
        target_data = os.path.realpath(data_file(path))
        moved = [ref for ref in references if os.path.realpath(old_folder / ref.location) != target_data]
    moved_files = {reference.location for reference in moved}
    _refuse_own_data(references, moved_files, old_folder, path)
    if moved:
        model = as_left_in_files(model, moved, old_folder, source)
        references = [reference for reference in references if reference.location not in moved_files]
    with WriteTogether(kept, overwrite=overwrite) as files:
        linked, taken = external_data == "link", {reference.location for reference in references}
        made = stage_copies(references, old_folder, folder, files, Path(path), overwrite=overwrite, linked=linked)
        beside_it = stage_model(model, content, Path(path), target, taken, files, overwrite=overwrite, beside=beside)
    kind: Literal["linked", "copied"] = "linked" if linked else "copied"
    data_files = [DataFile(folder / name, kind if name in made else "needed") for name in sorted(taken)]
    return data_files if beside_it is None else [*data_files, DataFile(beside_it, "written")]


def _refuse_own_data(
    references: Sequence[ExternalReference], moved: Collection[str], old_folder: Path, path: StrPath
) -> None:
    """Raise ModelError (SG108) if the model would be written over its own data, or over the place where its data must
    go. moved: files whose contents go elsewhere.
    """
    target = os.path.realpath(path)
    for location in sorted({reference.location for reference in references}):
        is_own = os.path.realpath(old_folder / location) == target
        is_taken = location not in moved and os.path.realpath(model_folder(path) / location) == target
        if is_own or is_taken:
            data = f"the external data {shown(location)}"
            what = f"is {data} of the model itself" if is_own else f"is where {data} has to go"
            raise model_error("SG108", what, path)


# The model's file, and a data file beside it -------------------------------------------------------------------------


def stage_model(
    model: ModelProto,
    content: Serialized | None,
    path: Path,
    target: Path,
    taken: set[str],
    files: WriteTogether,
    *,
    overwrite: bool,
    beside: bool = False,
) -> Path | None:
    """Stage the model's file at `target`, and, if asked, a data file beside `path`. Return the data file.

    content: the model as `serialized` gives it. beside: the weights go into the data file, if there are any. taken:
    names of data files that the model already refers to. Raises OSError, and ModelError: SG108 the data file exists and
    overwrite is False, SG109 the model is too large for one file.
    """
    place = None
    if beside and any(map(_is_weight, all_tensors(model))):
        name, number = data_file(path).name, 1
        while name in taken:
            name, number = f"{data_file(path).name}.{number}", number + 1
        place = path.parent / name
        if os.path.lexists(place) and not overwrite:
            raise model_error("SG108", f"needs a data file, and {shown(place)} exists already", path)
        with files.open(place) as file:
            content = serialized(_with_external_weights(model, name, file, path))
    elif beside:
        content = serialized(model)
    if content is None:
        if beside:
            raise model_error("SG109", "cannot be written: without its weights the model is still over 2 GiB", path)
        raise model_error("SG109", "cannot be written: it is over 2 GiB, and no ONNX file is", path, help=_BESIDE)
    with files.open(target) as file:
        write_pieces(content.pieces, file)
    return place


def data_file(path: str | os.PathLike[str]) -> Path:
    """Return where the weights of a model at a path go: to `<name>.data` beside it."""
    return Path(path).parent / f"{Path(path).name}.data"


def _is_weight(tensor: TensorProto) -> bool:
    """Return True for a tensor that goes into the data file: large, and in no other one."""
    size = byte_size(tensor)
    return size is not None and size >= _EXTERNAL_FROM_BYTES and not is_in_other_file(tensor)


def _with_external_weights(model: ModelProto, location: str, file: BinaryIO, path: Path) -> ModelProto:
    """Return a copy of the model whose large tensors are in `file`."""
    slim = ModelProto()
    slim.CopyFrom(model)
    for tensor in all_tensors(slim):
        if not _is_weight(tensor):
            continue
        place = place_of(tensor)
        offset = file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
        if place is not None and place.is_raw:
            write_pieces([place], file)
        else:
            fill(tensor)
            file.write(_raw_data(tensor, path))
        refer_to(tensor, location, offset, file.tell() - offset)
    return slim


def _raw_data(tensor: TensorProto, path: Path) -> bytes:
    if tensor.HasField("raw_data"):
        return bytes(tensor.raw_data)
    try:
        return bytes(numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data)
    except ValueError as error:
        raise model_error("SG111", f"tensor {tensor.name!r} does not hold what its type and shape say", path) from error


# The bytes of the model's file ---------------------------------------------------------------------------------------


class Serialized(NamedTuple):
    """The bytes of a model file.

    pieces: what is to be written, one behind the other; weights that stayed in the file that the model was read from
    are copied. written: the pieces as protobuf has them, without those weights. nodes: the piece that holds all nodes
    of the main graph, None where the model is in one piece.
    """

    pieces: Sequence[Piece]
    written: Sequence[bytes]
    nodes: bytes | None


def serialized(model: ModelProto) -> Serialized | None:
    """Return the bytes of a model file, None when it is too large for one."""
    try:
        if _has_weights(model.graph):
            written, nodes = _in_pieces(model)
        else:
            written, nodes = [model.SerializeToString()], None
    except (EncodeError, ValueError):
        # protobuf has no special error for a message that is too large; nothing else makes a model unwritable.
        return None
    if any(KEY_BYTES in piece for piece in written):
        pieces: Sequence[Piece] = with_weights_between(b"".join(written))
    else:
        pieces = written
    return Serialized(pieces, written, nodes) if size_of(pieces) <= MAX_PROTO_BYTES else None


def write_pieces(pieces: Sequence[Piece], file: BinaryIO) -> None:
    """Write the pieces one behind the other. The system copies pieces that are in another file.

    Raises ModelError if that file changed. Raises OSError, before anything is written, if the disk has no room for all
    of them.
    """
    reserve(file, sum(piece.length if isinstance(piece, Place) else len(piece) for piece in pieces))
    for piece in pieces:
        if isinstance(piece, Place):
            file.flush()
            piece.source.copy(piece.start, piece.length, file.fileno())
        else:
            file.write(piece)


def reserve(file: BinaryIO, length: int) -> None:
    """Reserve room on the disk for so many bytes at the place where a file is written: large files are then written
    faster. Raises OSError if there is no room.
    """
    if length < _RESERVED_FROM or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), file.tell(), length)
    except OSError as error:
        # Any other reason is that this file system does not do it.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise


def _has_weights(graph: GraphProto) -> bool:
    large = (tensor for tensor in graph.initializer if _count(tensor) >= _LARGE_TENSOR and tensor.HasField("raw_data"))
    elements = sum(map(_count, large))
    return elements > max(_LARGE_TENSOR, _LARGE_FOR_A_NODE * len(graph.node))


def _count(tensor: TensorProto) -> int:
    return math.prod(tensor.dims[:])


def _in_pieces(model: ModelProto) -> tuple[Sequence[bytes], bytes | None]:
    """Return the bytes of a model that holds weights, and those of the nodes of its main graph."""
    nodes: list[bytes] = []

    def write_graph(graph: GraphProto) -> Sequence[bytes]:
        pieces = _around(graph, GraphProto.INITIALIZER_FIELD_NUMBER, _write_initializers)
        nodes.append(pieces[0])
        return _framed(ModelProto.GRAPH_FIELD_NUMBER, pieces)

    pieces = _around(model, ModelProto.GRAPH_FIELD_NUMBER, write_graph)
    return pieces, nodes[0] if nodes else None


def _write_initializers(tensors: Iterable[TensorProto]) -> Sequence[bytes]:
    pieces, size = list[bytes](), 0
    for tensor in tensors:
        written = _framed(GraphProto.INITIALIZER_FIELD_NUMBER, _written(tensor))
        size += total(written)
        if size > MAX_PROTO_BYTES:
            raise ValueError("too large for one file, which need not be known to the byte")
        pieces += written
    return pieces


def _written(tensor: TensorProto) -> Sequence[bytes]:
    if _count(tensor) < _LARGE_TENSOR:
        return [tensor.SerializeToString()]
    number = TensorProto.RAW_DATA_FIELD_NUMBER
    return _around(tensor, number, lambda data: _framed(number, [data]))


def _around(message: Message, number: int, write: Callable[[Any], Sequence[bytes]]) -> Sequence[bytes]:
    """Return the bytes of a message whose field of this number is written by `write`: the fields before it, itself,
    those after it.

    A message with fields that its schema does not know, or without that field, is written as a whole.
    """
    if len(UnknownFieldSet(message)):
        return [message.SerializeToString()]
    before, after, pieces = type(message)(), type(message)(), None
    for field, value in message.ListFields():
        if field.number == number:
            pieces = write(value)
            continue
        part = before if field.number < number else after
        if hasattr(value, "MergeFrom"):
            getattr(part, field.name).MergeFrom(value)
        else:
            setattr(part, field.name, value)
    if pieces is None:
        return [message.SerializeToString()]
    return [before.SerializeToString(), *pieces, after.SerializeToString()]


def _framed(number: int, pieces: Sequence[bytes]) -> Sequence[bytes]:
    """Return the pieces as a field of this number."""
    return [head(number, total(pieces)), *pieces]
