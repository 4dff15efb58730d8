"""Tensors whose contents lie in files beside the model: finding, checking, reading and copying them.

Source: onnx/docs/ExternalData.md. Stricter than it in one point: no path, by `..`, an absolute name or a symbolic
link, leads out of the model's folder, so that a model from a stranger cannot name the reader's other files as its
weights.
"""

from __future__ import annotations

import filecmp
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.atomic_write import WriteTogether
from splitgraph.formats.recognition import model_error, shown, system_reason
from splitgraph.model.onnx_proto import AttributeProto, ModelProto, NodeProto, SparseTensorProto, TensorProto
from splitgraph.model.tensor_data import RAW_DATA, Place, SourceFile, byte_size, is_external, place_of, written_place
from splitgraph.model.values import has_few_elements

_INTEGERS_AND_BOOL = frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13, 21, 22, 25, 26})
_SMALL_OF_ANY_TYPE = 1024
# Most attributes of a model are of these types, and looking into each costs more than all else of loading.
_WITHOUT_TENSORS = frozenset(
    {
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    }
)


@dataclass(frozen=True, slots=True)
class ExternalReference:
    """Where a tensor says that its contents are: a path relative to the model's folder, bytes from `offset`, `length`
    of them.
    """

    tensor: TensorProto
    location: str
    offset: int
    length: int


def all_tensors(model: ModelProto, *, but_nodes: bool = False) -> Iterator[TensorProto]:
    """Yield every tensor of a model: initializers, attributes and sparse parts, in all subgraphs, functions and
    training graphs.

    but_nodes: leave out what the nodes of the main graph hold.
    """
    graphs = [model.graph]
    for training in model.training_info:
        graphs += [training.initialization, training.algorithm]
    attributes = [attribute for function in model.functions for attribute in function.attribute_proto]
    for function in model.functions:
        attributes += _that_hold_tensors(function.node)
    while graphs or attributes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            yield from _sparse_parts(graph.sparse_initializer)
            if not (but_nodes and graph is model.graph):
                attributes += _that_hold_tensors(graph.node)
        else:
            attribute = attributes.pop()
            if attribute.type == AttributeProto.TENSOR:
                # Most are, and hold nothing else.
                yield attribute.t
                continue
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from _sparse_parts([attribute.sparse_tensor])
            yield from _sparse_parts(attribute.sparse_tensors)
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            graphs += attribute.graphs


def _that_hold_tensors(nodes: Iterable[NodeProto]) -> list[AttributeProto]:
    return [attribute for node in nodes for attribute in node.attribute[:] if attribute.type not in _WITHOUT_TENSORS]


def _sparse_parts(sparse_tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for sparse in sparse_tensors:
        yield sparse.values
        yield sparse.indices


# The field data_location with the value EXTERNAL, as protobuf writes it; `in` takes twice as long for two bytes.
_EXTERNAL_FIELD = re.compile(re.escape(TensorProto(data_location=TensorProto.EXTERNAL).SerializeToString()))
# Bytes for each node that take as long to search as the node's tensors to be looked at.
_MOST_SEARCHED = 1024


def may_be_external(model: ModelProto, data: Sequence[bytes], nodes: bytes | None, *, is_foreign: bool) -> bool:
    """Return False when no tensor of a model is external. data: the bytes of the model, in pieces. nodes: those of the
    nodes of its main graph, as `node_bytes` or `serialized` has them. is_foreign: others wrote them, and may have used
    more bytes for a number than it needs.
    """
    most = _MOST_SEARCHED * len(model.graph.node)
    if len(data) == 1 and len(data[0]) <= most:
        return _may_hold_external(data[0], is_foreign)
    # With weights, searching all of it takes longer than looking at each tensor.
    is_searched = nodes is not None and len(nodes) <= most and not _may_hold_external(nodes, is_foreign)
    return any(map(is_external, all_tensors(model, but_nodes=is_searched)))


def _may_hold_external(written: bytes, is_foreign: bool) -> bool:
    return _EXTERNAL_FIELD.search(written) is not None or (is_foreign and b"location" in written)


def external_references(model: ModelProto, folder: Path, path: str | os.PathLike[str]) -> list[ExternalReference]:
    """Return every external tensor of a model, each checked: its file exists in the folder of the model and holds all
    of its bytes.

    path: the model's file, for messages. Raises ModelError (SG107) for the first that cannot be read.
    """
    external = (tensor for tensor in all_tensors(model) if is_external(tensor) and place_of(tensor) is None)
    return checked_references(external, folder, path)


def checked_references(
    tensors: Iterable[TensorProto], folder: Path, path: str | os.PathLike[str]
) -> list[ExternalReference]:
    """Return the references of external tensors, checked as those of `external_references`."""
    sizes: dict[str, int] = {}
    return [_checked_reference(tensor, folder, path, sizes) for tensor in tensors]


def _checked_reference(
    tensor: TensorProto, folder: Path, path: str | os.PathLike[str], sizes: dict[str, int]
) -> ExternalReference:
    def refuse(message: str) -> ModelError:
        return model_error("SG107", f"tensor {tensor.name!r} {message}", path)

    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location:
        raise refuse("is external, but names no file")
    try:
        offset = int(entries.get("offset") or 0)
        given = int(entries["length"]) if entries.get("length") else None
    except ValueError:
        raise refuse("has an offset or length that is not a number") from None
    if offset < 0 or (given is not None and given < 0):
        raise refuse("has a negative offset or length")
    if any(dim < 0 for dim in tensor.dims):
        raise refuse("has a negative dimension")
    if tensor.data_type == TensorProto.STRING:
        raise refuse("holds strings, which no external data can")
    if location not in sizes:
        sizes[location] = _file_size(folder, location, tensor.name, path)
    expected, available = byte_size(tensor), max(0, sizes[location] - offset)
    if given is not None and expected is not None and given != expected:
        raise refuse(f"takes {expected:,} bytes, but names {given:,} of {shown(location)}")
    length = next((size for size in (expected, given) if size is not None), available)
    if length > available:
        raise refuse(
            f"needs {length:,} bytes from byte {offset:,} of {shown(location)}, which has only {sizes[location]:,}"
        )
    return ExternalReference(tensor, location, offset, length)


def _file_size(folder: Path, location: str, tensor_name: str, path: str | os.PathLike[str]) -> int:
    what = f"tensor {tensor_name!r} is in {shown(location)}"
    if not is_inside(folder, location):
        raise model_error("SG107", f"{what}, which leads outside the model's folder", path)
    try:
        # Joined as text: a Path would drop a "/" at the end, which says that the name is a folder.
        status = os.stat(os.path.join(folder, location))
    except FileNotFoundError:
        raise model_error("SG107", f"{what}, which is missing", path) from None
    except OSError as error:
        raise model_error("SG107", f"{what}, which cannot be read: {system_reason(error)}", path) from error
    if not stat.S_ISREG(status.st_mode):
        raise model_error("SG107", f"{what}, which is not a regular file", path)
    return status.st_size


def is_inside(folder: Path, location: str) -> bool:
    """Return True when a relative path, with every symbolic link followed, stays in a folder."""
    if "\0" in location or os.path.isabs(location) or os.path.splitdrive(location)[0]:
        return False
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, location))
    return real == root or real.startswith(os.path.join(root, ""))


def load_external_data(references: list[ExternalReference], folder: Path, path: str | os.PathLike[str]) -> None:
    """Read the contents of external tensors into the tensors themselves, one pass over each file. Raises ModelError
    (SG107).
    """
    by_location: dict[str, list[ExternalReference]] = {}
    for reference in references:
        by_location.setdefault(reference.location, []).append(reference)
    for location, group in by_location.items():
        try:
            with open(folder / location, "rb") as file:
                for reference in sorted(group, key=lambda reference: reference.offset):
                    file.seek(reference.offset)
                    _fill(reference.tensor, file.read(reference.length), reference.length, path)
        except OSError as error:
            message = f"external data {shown(location)} cannot be read: {system_reason(error)}"
            raise model_error("SG107", message, path) from error


def with_external_data(tensor: TensorProto, folder: Path, path: str | os.PathLike[str]) -> TensorProto:
    """Return a copy of an external tensor with its elements. Raises ModelError (SG107)."""
    whole = TensorProto()
    whole.CopyFrom(tensor)
    load_external_data(checked_references([whole], folder, path), folder, path)
    return whole


def _fill(tensor: TensorProto, content: bytes, length: int, path: str | os.PathLike[str]) -> None:
    if len(content) != length:
        raise model_error("SG107", f"external data of tensor {tensor.name!r} became shorter while it was read", path)
    tensor.raw_data = content
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")


def refer_to(tensor: TensorProto, location: str, offset: int | None, length: int | None) -> None:
    """Make a tensor external: its contents are in that file, and no longer in the tensor."""
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
        tensor.ClearField(field)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("external_data")
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))


def as_left_in_files(
    model: ModelProto, references: Sequence[ExternalReference], folder: Path, path: str | os.PathLike[str]
) -> ModelProto:
    """Return a copy of a model in which these tensors are as those that stayed in the model's own file (see
    `tensor_data`). Raises ModelError (SG107).
    """
    left = {(reference.location, reference.offset, reference.length) for reference in references}
    copied = ModelProto()
    copied.CopyFrom(model)
    places = external_references(copied, folder, path)
    leave_in_files([place for place in places if (place.location, place.offset, place.length) in left], folder, path)
    return copied


def leave_in_files(references: Iterable[ExternalReference], folder: Path, path: str | os.PathLike[str]) -> None:
    """Make external tensors like those that stayed in the model's own file: each names its file itself, wherever the
    model goes. Raises ModelError (SG107).
    """
    sources: dict[str, SourceFile] = {}
    for reference in references:
        location = reference.location
        if location not in sources:
            try:
                sources[location] = SourceFile.opened(folder / location)
            except OSError as error:
                message = f"external data {shown(location)} cannot be read: {system_reason(error)}"
                raise model_error("SG107", message, path) from error
        reference.tensor.ClearField("external_data")
        left = Place(sources[location], reference.offset, reference.length, RAW_DATA, None, is_told=False)
        reference.tensor.MergeFromString(written_place(left))


def small_references(references: list[ExternalReference], max_bytes: int = 65_536) -> list[ExternalReference]:
    """Return the external tensors that shapes may depend on, by type and size.

    Lists of integers that inference knows, integer and bool tensors of up to max_bytes, and any tensor of up to 1,024
    bytes (scales, the limits of a Range).
    """
    limits = dict.fromkeys(_INTEGERS_AND_BOOL, max_bytes)
    return [
        reference
        for reference in references
        if reference.length <= limits.get(reference.tensor.data_type, _SMALL_OF_ANY_TYPE)
        or (reference.tensor.data_type in _INTEGERS_AND_BOOL and has_few_elements(reference.tensor))
    ]


def new_type_references(references: list[ExternalReference]) -> list[ExternalReference]:
    """Return the tensors of bfloat16 and newer types that are external, which an older opset needs in another type."""
    return [each for each in references if has_new_type(each.tensor) and is_external(each.tensor)]


def has_new_type(tensor: TensorProto) -> bool:
    """Return True for a tensor of bfloat16 or a newer type, which older opsets do not have."""
    return tensor.data_type >= int(TensorProto.BFLOAT16)


def stage_copies(
    references: list[ExternalReference],
    source: Path,
    target: Path,
    files: WriteTogether,
    path: Path,
    *,
    overwrite: bool,
    linked: bool = False,
) -> set[str]:
    """Copy the data files of a model from its folder to another folder, under the same relative names; by the system,
    which shares what it can share. linked: make hard links in place of copies. Returns which of the files are
    copies or links now.

    A file that is there with the same content is left alone; another file of that name is replaced only with
    `overwrite` (ModelError SG108 otherwise). path: the new model's file, for messages. Raises OSError.
    """
    made = set[str]()
    for location in sorted({reference.location for reference in references}):
        old, new = source / location, target / location
        if not is_inside(target, os.path.dirname(location) or "."):
            raise model_error(
                "SG107", f"external data {shown(location)} would be written outside the model's folder", path
            )
        if new.exists() and os.path.samefile(old, new):
            continue
        made.add(location)
        if new.exists() and filecmp.cmp(old, new, shallow=False):
            continue
        if os.path.lexists(new) and not overwrite:
            raise model_error("SG108", f"its external data {shown(location)} exists there, with other content", path)
        if linked:
            files.link(new, old)
            continue
        source_file = SourceFile.opened(old)
        with files.open(new, copied=old) as writer:
            source_file.copy(0, source_file.size, writer.fileno())
    return made
