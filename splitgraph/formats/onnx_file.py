"""Read ONNX files.

Source: the ONNX IR specification (onnx/docs/IR.md) and onnx/docs/ExternalData.md.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Literal, NamedTuple

from google.protobuf.message import DecodeError

from splitgraph.findings.diagnostics import ModelError, meant_file
from splitgraph.formats.broken_text import find_broken_text, is_clean_text
from splitgraph.formats.external_data import (
    ExternalReference,
    all_tensors,
    external_references,
    leave_in_files,
    load_external_data,
    may_be_external,
    new_type_references,
    small_references,
)
from splitgraph.formats.recognition import describe_content, model_error, system_reason
from splitgraph.formats.skeleton import MAX_PROTO_BYTES, WHOLE, explain_unreadable, without_weights
from splitgraph.model.onnx_proto import IR_VERSION, ModelProto, NodeProto, TensorProto
from splitgraph.model.tensor_data import SourceFile, byte_size, fill, is_external
from splitgraph.model.wire_format import Malformed
from splitgraph.options import StrPath

# If nodes take more bytes than this, they hold weights, which must not be copied.
_BYTES_FOR_A_NODE = 4096
_MOST_COPIED = 64 * 2**20


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


class ReadFile(NamedTuple):
    """A model that was read, and what of it stayed in files.

    files: those that the model was in: its own, and those of its external data. source: the model's own file, where
    weights stayed in it; whoever holds it has the file that was read, even where another has its name now.
    taken_in: external tensors that were read because they are small, or that can be read because their type is new, by
    their bytes as they are now, with those that refer to the file.
    """

    model: ModelProto
    files: Sequence[Path]
    source: SourceFile | None
    taken_in: Mapping[bytes, bytes]


def read_onnx(
    path: StrPath, *, external_data: Literal["load", "keep"] = "load", weights: Literal["load", "leave"] = "load"
) -> ReadFile:
    """`load_onnx`, and where the model was. weights: "leave" leaves large tensors in the model's own file, too (see
    `tensor_data`); `whole_model` puts them in.
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
            small = small_references(references)
            taken_in = _take_in(small, path)
            # Small ones are no longer external.
            taken_in |= _take_places(new_type_references(references), path)
    except MemoryError:
        raise model_error("SG101", "does not fit into this machine's memory", path) from None
    locations = dict.fromkeys(reference.location for reference in references)
    files = [Path(path), *(model_folder(path) / location for location in locations)]
    return ReadFile(model, files, source, taken_in)


def external_locations(path: StrPath) -> list[str]:
    """Return the data files that a model refers to, as the model names them. None of them is looked at. Raises
    ModelError.
    """
    data, source = _read_file(path, leave=True)
    tensors = all_tensors(_parse(data, path, source))
    entries = (entry for tensor in tensors for entry in tensor.external_data if entry.key == "location")
    return list(dict.fromkeys(entry.value for entry in entries))


def _take_in(references: list[ExternalReference], path: StrPath) -> dict[bytes, bytes]:
    """Read external tensors into the model. Return what each was before, by what it is now."""
    before = [reference.tensor.SerializeToString() for reference in references]
    load_external_data(references, model_folder(path), path)
    after = [reference.tensor.SerializeToString() for reference in references]
    return dict(zip(after, before, strict=True))


def _take_places(references: list[ExternalReference], path: StrPath) -> dict[bytes, bytes]:
    """Make external tensors like those that stayed in the model's own file, so that their elements can be read. Return
    what each was before, by what it is now.
    """
    before = [reference.tensor.SerializeToString() for reference in references]
    leave_in_files(references, model_folder(path), path)
    after = [reference.tensor.SerializeToString() for reference in references]
    return dict(zip(after, before, strict=True))


@contextlib.contextmanager
def put_back(model: ModelProto, taken_in: Mapping[bytes, bytes]) -> Iterator[None]:
    """Make tensors external again inside the block: those that were taken in with the model and have not changed."""
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


def node_bytes(model: ModelProto, size: int) -> bytes | None:
    """Return the bytes of all nodes of the main graph, one behind the other; None where these may be many.

    To search these takes a tenth of the time that it takes to ask protobuf for each text or tensor of each node. size:
    bytes of the whole model. To protobuf, nodes behind one another are one message with the fields of all.
    """
    nodes = model.graph.node
    weights = sum(byte_size(tensor) or 0 for tensor in model.graph.initializer if not is_external(tensor))
    if size - weights > min(len(nodes) * _BYTES_FOR_A_NODE, _MOST_COPIED):
        return None
    return b"".join(map(NodeProto.SerializeToString, nodes))


def whole_model(model: ModelProto, source: StrPath) -> ModelProto:
    """Return a copy of a model with all of its weights in it; a model that has them comes back as it is.

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
    """Return the folder that a model's external data is relative to: that of the path as given, not of what it links
    to.
    """
    return Path(path).parent


def require_path(path: object) -> None:
    """Refuse what cannot be the name of a file: a file descriptor, bytes, a name with a NUL character. Raises
    ModelError (SG101).
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise model_error("SG101", f"a path is a str or an os.PathLike of str, not {type(path).__name__}")
    if not text or "\0" in text:
        raise model_error("SG101", "is not a file name", text)


def _read_file(path: StrPath, *, leave: bool) -> tuple[bytes, SourceFile | None]:
    """Return the bytes of a model's file. leave: of a large file, return the bytes without weights, and the file that
    they stay in.
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
            skeleton = _skeleton(path)
            if skeleton is not None:
                return skeleton
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise model_error("SG101", f"no such file{meant_file(path)}", path) from None
    except OSError as error:
        raise model_error("SG101", f"cannot be read: {system_reason(error)}", path) from error
    if not data:
        raise model_error("SG101", "is empty", path)
    return data, None


def _skeleton(path: StrPath) -> tuple[bytes, SourceFile] | None:
    """Return the model without its weights, and its file; None where it cannot be read so: protobuf says whether at
    all.
    """
    source = SourceFile.opened(Path(path))
    try:
        with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return without_weights(data, source), source
    except (Malformed, ValueError):
        # A file that became empty cannot be mapped.
        return None


def _parse(data: bytes, path: StrPath, source: SourceFile | None = None) -> ModelProto:
    """Return the model in the bytes of a file; source: the file, where weights stayed in it. Raises ModelError."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        if source is not None:
            # The message names a place in the whole file.
            data = source.read(0, source.size)
        raise _not_a_model(data, path, explain_unreadable(data)) from None
    if not model.HasField("graph") or model.ir_version < 1:
        missing = "no graph" if not model.HasField("graph") else "no IR version"
        raise _not_a_model(data, path, f"has {missing}")
    return model


def holds_model(data: bytes) -> bool:
    """Return True for the bytes of an ONNX model."""
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
