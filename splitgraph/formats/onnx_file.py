"""Reading and writing ONNX files.

Source: the ONNX IR specification (onnx/docs/IR.md) and onnx/docs/ExternalData.md.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Literal, NamedTuple

from google.protobuf.message import DecodeError

from splitgraph.diagnostics import ModelError
from splitgraph.formats.atomic_write import WriteTogether
from splitgraph.formats.broken_text import find_broken_text, is_clean_text
from splitgraph.formats.external_data import (
    ExternalReference,
    all_tensors,
    as_left_in_files,
    external_references,
    load_external_data,
    may_be_external,
    small_references,
    stage_copies,
)
from splitgraph.formats.large_model import data_file, stage_model
from splitgraph.formats.model_error import model_error, shown, system_reason
from splitgraph.formats.node_bytes import node_bytes
from splitgraph.formats.recognition import describe_content
from splitgraph.formats.serialization import MAX_PROTO_BYTES, serialized
from splitgraph.formats.skeleton import WHOLE, without_weights
from splitgraph.formats.unreadable import explain_unreadable
from splitgraph.onnx_proto import IR_VERSION, ModelProto, TensorProto
from splitgraph.options import ExternalData, StrPath
from splitgraph.tensor_bytes import is_external
from splitgraph.tensor_places import SourceFile, fill
from splitgraph.wire_format import Malformed


def load_onnx(path: StrPath, *, external_data: Literal["load", "keep"] = "load") -> ModelProto:
    """Read an ONNX file.

    external_data: "load" reads the contents of external tensors into the model, which then stands on its own. "keep"
    leaves the large ones where they are, so that a model of any size costs little more than its graph; those that
    shapes may depend on are read all the same (hand the path to `save_onnx` as `source`). Both check that every
    external tensor can be read: its file lies in the model's folder and is long enough.

    Raises ModelError: SG101 not a readable model file, SG106 IR version newer than the installed onnx, SG107 external
    data that cannot be read, SG111 a model without the parts that the format requires. An opset that does not exist,
    a cycle and the like are not the file's fault: inference reports them.
    """
    return read_onnx(path, external_data=external_data).model


class DataFile(NamedTuple):
    """A file that holds weights of a model that was written.

    how: "needed" is a data file of the model that was read; "copied" and "linked" are made of one; "written" holds the
    weights that were asked to be beside.
    """

    path: Path
    how: Literal["needed", "copied", "linked", "written"]


class ReadFile(NamedTuple):
    """A model that was read, and what of it stayed in files.

    files: those that the model was in: its own, and those of its external data. source: the model's own file, where
    weights stayed in it; whoever holds it has the file that was read, even where another has its name now.
    taken_in: small external tensors that were read, by their bytes as they are now, with those that refer to the file.
    """

    model: ModelProto
    files: Sequence[Path]
    source: SourceFile | None
    taken_in: Mapping[bytes, bytes]


def read_onnx(
    path: StrPath, *, external_data: Literal["load", "keep"] = "load", weights: Literal["load", "leave"] = "load"
) -> ReadFile:
    """`load_onnx`, and where the model was. weights: "leave" leaves large tensors in the model's own file, too (see
    `tensor_places`); `whole_model` puts them in.
    """
    require_path(path)
    try:
        data, source = _read_file(path, leave=weights == "leave")
        # Before the model is made: both at once would take twice the memory.
        is_clean = is_clean_text(data)
        model = _parse(data, path, source)
        nodes = None if is_clean else node_bytes(model, len(data))
        _require_model(model, nodes, path, is_clean=is_clean)
        is_whole = not may_be_external(model, [data], nodes, is_foreign=True)
        references = [] if is_whole else external_references(model, model_folder(path), path)
        del data, nodes
        if external_data == "load":
            load_external_data(references, model_folder(path), path)
            taken_in: dict[bytes, bytes] = {}
        else:
            taken_in = _take_in(small_references(references), path)
    except MemoryError:
        raise model_error("SG101", "does not fit into this machine's memory", path) from None
    locations = dict.fromkeys(reference.location for reference in references)
    files = [Path(path), *(model_folder(path) / location for location in locations)]
    return ReadFile(model, files, source, taken_in)


def external_locations(path: StrPath) -> list[str]:
    """The data files that a model refers to, as the model names them. None of them is looked at. Raises ModelError."""
    data, source = _read_file(path, leave=True)
    tensors = all_tensors(_parse(data, path, source))
    entries = (entry for tensor in tensors for entry in tensor.external_data if entry.key == "location")
    return list(dict.fromkeys(entry.value for entry in entries))


def _take_in(references: list[ExternalReference], path: StrPath) -> dict[bytes, bytes]:
    """Read external tensors into the model; gives back what they were, by what they are."""
    before = [reference.tensor.SerializeToString() for reference in references]
    load_external_data(references, model_folder(path), path)
    after = [reference.tensor.SerializeToString() for reference in references]
    return dict(zip(after, before, strict=True))


@contextlib.contextmanager
def put_back(model: ModelProto, taken_in: Mapping[bytes, bytes]) -> Iterator[None]:
    """Have those tensors external in the block that were read with the model and are what they were."""
    names = {TensorProto.FromString(written).name for written in taken_in}
    changed = list[tuple[TensorProto, bytes]]()
    try:
        for tensor in all_tensors(model) if taken_in else ():
            now = tensor.SerializeToString() if tensor.name in names else b""
            if now in taken_in:
                changed.append((tensor, now))
                tensor.ParseFromString(taken_in[now])
        yield
    finally:
        for tensor, written in changed:
            tensor.ParseFromString(written)


def whole_model(model: ModelProto, source: StrPath) -> ModelProto:
    """A copy of a model with all of its weights in it; a model that has them comes back as it is.

    source: the file that the model was read from. Raises ModelError (SG107) for external data that cannot be read.
    """
    if not any(is_external(tensor) for tensor in all_tensors(model)):
        return model
    whole = ModelProto()
    whole.CopyFrom(model)
    for tensor in all_tensors(whole):
        fill(tensor)
    folder = model_folder(source)
    load_external_data(external_references(whole, folder, source), folder, source)
    return whole


def model_folder(path: StrPath) -> Path:
    """The folder that a model's external data is relative to: that of the path as given, not of what it links to."""
    return Path(path).parent


def require_path(path: object) -> None:
    """Refuse what no file can be called: a file descriptor, bytes, a name with a NUL character. Raises ModelError
    (SG101).
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise model_error("SG101", f"a path is a str or an os.PathLike of str, not {type(path).__name__}")
    if not text or "\0" in text:
        raise model_error("SG101", "is not a file name", text)


def _read_file(path: StrPath, *, leave: bool) -> tuple[bytes, SourceFile | None]:
    """The bytes of a model's file; without the weights, and with the file that they stay in, where that is asked for
    and the file is large.
    """
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise model_error("SG101", "is a folder, not a model file", path)
        if not stat.S_ISREG(status.st_mode):
            raise model_error("SG101", "is not a regular file", path)
        if status.st_size > MAX_PROTO_BYTES:
            message = f"has {status.st_size:,} bytes; beyond 2 GiB, an ONNX model keeps its weights in external data"
            raise model_error("SG101", message, path)
        if leave and status.st_size >= WHOLE:
            found = _skeleton(path)
            if found is not None:
                return found
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise model_error("SG101", "no such file", path) from None
    except OSError as error:
        raise model_error("SG101", f"cannot be read: {system_reason(error)}", path) from error
    if not data:
        raise model_error("SG101", "is empty", path)
    return data, None


def _skeleton(path: StrPath) -> tuple[bytes, SourceFile] | None:
    """The model without its weights, and its file; None where it cannot be read so: protobuf says whether at all."""
    source = SourceFile.opened(Path(path))
    try:
        with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return without_weights(data, source), source
    except (Malformed, ValueError):
        # A file that became empty cannot be mapped.
        return None


def _parse(data: bytes, path: StrPath, source: SourceFile | None = None) -> ModelProto:
    """The model in the bytes of a file; source: the file, where weights stayed in it. Raises ModelError."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        if source is not None:
            # What is wrong is told with its place in the whole file.
            data = source.read(0, source.size)
        raise _not_a_model(data, path, explain_unreadable(data)) from None
    if not model.HasField("graph") or model.ir_version < 1:
        missing = "no graph" if not model.HasField("graph") else "no IR version"
        raise _not_a_model(data, path, f"has {missing}")
    return model


def holds_model(data: bytes) -> bool:
    """True for the bytes of an ONNX model."""
    try:
        _parse(data, "")
    except ModelError:
        return False
    return True


def _not_a_model(data: bytes, path: StrPath, fault: str) -> ModelError:
    looks_like = describe_content(data)
    if looks_like is not None:
        return model_error("SG101", f"is not an ONNX model; it looks like {looks_like}", path)
    return model_error("SG101", f"is not a readable ONNX model: it {fault}", path)


def _require_model(model: ModelProto, nodes: bytes | None, path: StrPath, *, is_clean: bool) -> None:
    if model.ir_version > IR_VERSION:
        import onnx

        message = f"has IR version {model.ir_version}; the installed onnx {onnx.__version__} reads up to {IR_VERSION}"
        raise model_error("SG106", message, path)
    if not (model.graph.node or model.graph.input or model.graph.output or model.graph.initializer):
        raise model_error("SG111", "has an empty graph: no nodes, inputs, outputs or initializers", path)
    broken = None if is_clean else find_broken_text(model, nodes)
    if broken is not None:
        raise model_error("SG111", f"has a string that is not UTF-8 ({broken})", path)


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
    moved = [each for each in references if beside and not _is_beside(old_folder, each, path)]
    _refuse_own_data(references, {each.location for each in moved}, old_folder, path)
    if moved:
        model = as_left_in_files(model, moved, old_folder, source)
        left = {each.location for each in moved}
        references = [each for each in references if each.location not in left]
    with WriteTogether(kept, overwrite=overwrite) as files:
        linked, taken = external_data == "link", {each.location for each in references}
        made = stage_copies(references, old_folder, folder, files, Path(path), overwrite=overwrite, linked=linked)
        beside_it = stage_model(model, content, Path(path), target, taken, files, overwrite=overwrite, beside=beside)
    kind: Literal["linked", "copied"] = "linked" if linked else "copied"
    found = [DataFile(folder / each, kind if each in made else "needed") for each in sorted(taken)]
    return found if beside_it is None else [*found, DataFile(beside_it, "written")]


def _is_beside(folder: Path, reference: ExternalReference, path: StrPath) -> bool:
    """True for elements that are in the data file beside a model's path already."""
    return os.path.realpath(folder / reference.location) == os.path.realpath(data_file(path))


def _refuse_own_data(
    references: Sequence[ExternalReference], moved: Collection[str], old_folder: Path, path: StrPath
) -> None:
    """Raise ModelError (SG108) where a model would be written over its own data, or where its data have to go. moved:
    files whose contents go elsewhere.
    """
    target = os.path.realpath(path)
    for location in sorted({reference.location for reference in references}):
        is_own = os.path.realpath(old_folder / location) == target
        is_taken = location not in moved and os.path.realpath(model_folder(path) / location) == target
        if is_own or is_taken:
            data = f"the external data {shown(location)}"
            what = f"is {data} of the model itself" if is_own else f"is where {data} has to go"
            raise model_error("SG108", what, path)


def writable_target(path: StrPath, overwrite: bool) -> Path:
    """The file to write, behind a symbolic link if the path is one; refuses what cannot be a model file. Raises
    OSError.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise model_error("SG109", f"the folder {shown(target.parent)} does not exist", path)
    if not os.path.lexists(target):
        return target
    mode = os.stat(target).st_mode
    if stat.S_ISDIR(mode):
        raise model_error("SG109", "is a folder", path)
    if not stat.S_ISREG(mode):
        raise model_error("SG109", "is not a regular file", path)
    if not overwrite:
        raise model_error("SG108", "exists already", path)
    if not os.access(target, os.W_OK):
        raise model_error("SG109", "is write-protected", path)
    return target
