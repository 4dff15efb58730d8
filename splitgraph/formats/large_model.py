"""Models whose weights go to a data file beside the model, as those beyond protobuf's 2 GiB need."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from splitgraph.deferred import numpy_helper
from splitgraph.formats.atomic_write import WriteTogether
from splitgraph.formats.external_data import all_tensors, refer_to
from splitgraph.formats.model_error import model_error, shown
from splitgraph.formats.serialization import Serialized, serialized, write_pieces
from splitgraph.onnx_proto import ModelProto, TensorProto
from splitgraph.tensor_data import byte_size, fill, is_in_other_file, place_of

# Smaller tensors stay in the model, where every tool can read them without the data file.
_EXTERNAL_FROM_BYTES = 1024
# The page size that lets a runtime map a tensor into memory instead of reading it.
_ALIGNMENT = 4096
_BESIDE = 'Write the weights to a file beside the model, with --external-data or external_data="beside".'


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
    """Stage the model's file at `target`, and a data file beside `path` where that is asked for; returns that file.

    content: the model as `serialized` gives it. beside: the weights go into the data file, if there are any. taken:
    names of data files that the model already refers to. Raises OSError, and ModelError SG108 when the data file exists
    and overwrite is False, SG109 when the model is too large for one file.
    """
    place = None
    if beside and any(map(_is_weight, all_tensors(model))):
        name = _free_name(data_file(path).name, taken)
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
    """Where the weights of a model at a path go: to `<name>.data` beside it."""
    return Path(path).parent / f"{Path(path).name}.data"


def _is_weight(tensor: TensorProto) -> bool:
    """True for a tensor that goes into the data file: large, and in no other one."""
    size = byte_size(tensor)
    return size is not None and size >= _EXTERNAL_FROM_BYTES and not is_in_other_file(tensor)


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        name, number = f"{wanted}.{number}", number + 1
    return name


def _with_external_weights(model: ModelProto, location: str, file: BinaryIO, path: Path) -> ModelProto:
    """A copy of the model whose large tensors are in `file`."""
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
