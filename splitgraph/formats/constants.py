"""Compares constant tensors and attributes of two models, and spells them for people.

Tensors are compared by their elements, wherever these are: in memory, in the model's file, in a data file, or in the
.bin of an IR. Large ones are read in blocks and never as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from splitgraph.findings.diagnostics import ModelError, diagnostic
from splitgraph.formats.external_data import ExternalReference, checked_references
from splitgraph.formats.recognition import model_error, system_reason
from splitgraph.model.attributes import HOLDING_GRAPHS, attribute_value
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto
from splitgraph.model.tensor_data import SourceFile, first_elements, is_external, is_in_other_file, place_of
from splitgraph.model.value_type import DTYPE_NAMES
from splitgraph.model.values import array_of, tensor_contents, tensor_items, tensor_type

# Bytes of each tensor that are in memory at once.
_BLOCK = 2**22
# Elements of a tensor that a text shows.
_SHOWN_ELEMENTS = 8
# Of a tensor with more elements: bytes that are read to show its first elements and their range, and elements shown.
_FIRST_BYTES = 4096
_FIRST_ELEMENTS = 5
# Elements of a list, and characters of a string, that a text shows.
_SHOWN = 16
_LONGEST_STRING = 60

_TENSORS = frozenset({AttributeProto.TENSOR, AttributeProto.TENSORS})
_SPARSE_TENSORS = frozenset({AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS})


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

    text: its type, and its elements where these are few. tensors: the tensor; the values and indices of a sparse one;
    the mirror of a constant of an IR. bytes: of a constant of an IR, its elements. folder: of external data.
    """

    text: str
    type: str
    tensors: tuple[TensorProto, ...] = ()
    bytes: Bytes | None = None
    folder: Folder = UNKNOWN_FOLDER

    def equals(self, other: Constant) -> bool:
        """Return True if type and elements are the same. Raises ModelError if elements cannot be read."""
        if self.type != other.type:
            return False
        if self.bytes is not None and other.bytes is not None:
            return _same_bytes(self.bytes, other.bytes)
        pairs = zip(self.tensors, other.tensors, strict=True)
        return all(_same_elements(one, self.folder, two, other.folder) for one, two in pairs)

    def shown(self) -> ShownElements:
        """Return the first elements and their range. A few KB are read at most, wherever the elements are."""
        tensor = self.tensors[0] if self.tensors else TensorProto()
        try:
            first = first_elements(self._with_first_bytes(tensor), _FIRST_BYTES)
        except ModelError as error:
            return ShownElements("", f"not read: {error.diagnostics[0].message}")
        items = tensor_items(first)
        if items is None:
            return ShownElements("", "")
        return ShownElements(_first_text(items, tensor), _range_text(items, tensor))

    def _with_first_bytes(self, tensor: TensorProto) -> TensorProto:
        """Return the tensor; of one whose elements are elsewhere than in the model's file, with the first of them."""
        if self.bytes is None and not is_in_other_file(tensor):
            return tensor
        if self.bytes is None and isinstance(self.folder, UnknownFolder):
            text = "it is in a data file, and the folder of a model in memory is not known"
            raise ModelError(text, [diagnostic("SG107", text)])
        held = self.bytes or _bytes_of(tensor, self.folder)
        assert held is not None
        raw = held.read(0, min(held.size, _FIRST_BYTES))
        return TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)


class ShownElements(NamedTuple):
    """What a person reads of the elements of a constant. first: the first of them, or all if these are few. range: the
    smallest and the largest one, or why none could be read.
    """

    first: str
    range: str


def _first_text(items: Sequence[Any], tensor: TensorProto) -> str:
    count = _count(tensor)
    if not items:
        return "[]" if not count else ""
    shown = ", ".join(map(_element_text, items[: _SHOWN if count <= _SHOWN else _FIRST_ELEMENTS]))
    if not tensor.dims:
        return shown
    return f"[{shown}]" if count <= _SHOWN else f"[{shown}, … ({count:,} in all)]"


def _range_text(items: Sequence[Any], tensor: TensorProto) -> str:
    """Return the range of the elements that were read: "-0.5 … 0.25 in the first 1,024"."""
    count = _count(tensor)
    if count and not items:
        return "it has no elements in the file"
    if count <= _SHOWN or tensor.data_type in (TensorProto.BOOL, TensorProto.STRING):
        return ""
    numbers = [item for item in items if item == item]
    told = "all NaN"
    if numbers:
        low, high = (_element_text(end(numbers)) for end in (min, max))
        told = f"all {low}" if low == high else f"{low} … {high}"
        told += " and NaN" if len(numbers) < len(items) else ""
    return told if len(items) == count else f"{told} in the first {len(items):,}"


def constant(tensor: TensorProto, folder: Folder) -> Constant:
    """Return the constant of a tensor of an ONNX model."""
    kind = str(tensor_type(tensor)) if tensor.data_type in DTYPE_NAMES else f"type {tensor.data_type}{[*tensor.dims]}"
    contents = tensor_contents(tensor) if _count(tensor) <= _SHOWN_ELEMENTS else None
    shown = f"= {', '.join(map(_element_text, contents.items))}" if contents is not None and contents.items else ""
    return Constant(f"{kind} {shown}".rstrip(), kind, (tensor,), folder=folder)


def sparse_constant(sparse: SparseTensorProto, folder: Folder) -> Constant:
    """Return the constant of a sparse tensor of an ONNX model."""
    dtype = DTYPE_NAMES.get(sparse.values.data_type, "?")
    kind = f"sparse_tensor({dtype}{[*sparse.dims]})"
    # The number of stored elements is not part of a type, but two with other numbers differ.
    stored = f"{kind} {[*sparse.values.dims]} {[*sparse.indices.dims]}"
    return Constant(kind, stored, (sparse.values, sparse.indices), folder=folder)


def graph_constants(graph: GraphProto, folder: Folder) -> dict[str, Constant]:
    """Return the initializers of a graph by name. folder: of external data."""
    constants = {tensor.name: constant(tensor, folder) for tensor in graph.initializer}
    for sparse in graph.sparse_initializer:
        constants[sparse.values.name] = sparse_constant(sparse, folder)
    return constants


def _count(tensor: TensorProto) -> int:
    count = 1
    for dim in tensor.dims:
        count *= max(dim, 0)
    return count


def _element_text(item: object) -> str:
    if isinstance(item, float):
        return f"{item:.6g}"
    if isinstance(item, str):
        return _string_text(item)
    return str(item)


def _string_text(item: str) -> str:
    ending = "" if len(item) <= _LONGEST_STRING else f"… ({len(item):,} characters)"
    return f'"{item[:_LONGEST_STRING]}{ending}"'


def _same_elements(one: TensorProto, folder: Folder, two: TensorProto, other_folder: Folder) -> bool:
    if list(one.dims) != list(two.dims) or one.data_type != two.data_type:
        return False
    if one.data_type == TensorProto.STRING:
        return list(one.string_data) == list(two.string_data)
    if _is_unreachable(one, folder) or _is_unreachable(two, other_folder):
        return _same_reference(one, two, is_one_folder=folder is other_folder)
    raw, other_raw = _bytes_of(one, folder), _bytes_of(two, other_folder)
    if raw is not None and other_raw is not None:
        return _same_bytes(raw, other_raw)
    return _decoded(one, raw) == _decoded(two, other_raw)


def _same_bytes(one: Bytes, two: Bytes) -> bool:
    if one.size != two.size:
        return False
    if one.origin is not None and one.origin == two.origin:
        return True
    starts = range(0, one.size, _BLOCK)
    return all(one.read(at, min(_BLOCK, one.size - at)) == two.read(at, min(_BLOCK, one.size - at)) for at in starts)


def _bytes_of(tensor: TensorProto, folder: Folder) -> Bytes | None:
    """Return the elements as raw data has them; None if they are in a field of numbers, which is written in another
    way.
    """
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


def _decoded(tensor: TensorProto, raw: Bytes | None) -> bytes:
    """Return the elements in one form, whatever form the tensor has."""
    if raw is not None and not tensor.HasField("raw_data"):
        tensor = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw.read(0, raw.size))
    if tensor.data_type not in DTYPE_NAMES:
        return _written_tensor(tensor)
    try:
        decoded: bytes = array_of(tensor).tobytes()
    except (ValueError, TypeError):
        # Elements that do not fit the shape.
        decoded = _written_tensor(tensor)
    return decoded


def _written_tensor(tensor: TensorProto) -> bytes:
    """Return a tensor that cannot be read, as it is written."""
    plain = TensorProto()
    plain.CopyFrom(tensor)
    for field in ("name", "doc_string"):
        plain.ClearField(field)
    written: bytes = plain.SerializeToString()
    return written


def _is_unreachable(tensor: TensorProto, folder: Folder) -> bool:
    return is_external(tensor) and place_of(tensor) is None and isinstance(folder, UnknownFolder)


def _same_reference(one: TensorProto, two: TensorProto, *, is_one_folder: bool) -> bool:
    """Compare models in memory whose data files are not known: equal references have equal elements if they lead to the
    same file.
    """
    entries = [sorted((entry.key, entry.value) for entry in tensor.external_data) for tensor in (one, two)]
    if is_one_folder and is_external(one) and is_external(two) and entries[0] == entries[1]:
        return True
    name = one.name or two.name
    text = f"the elements of tensor {name!r} are in a data file, and the folder of a model in memory is not known"
    raise ModelError(
        text, [diagnostic("SG107", text, help="Give the path of the model, or load the model with its data.")]
    )


# Attributes ----------------------------------------------------------------------------------------------------------


def attributes_of(node: NodeProto) -> dict[str, AttributeProto]:
    """Return the attributes by name."""
    return {attribute.name: attribute for attribute in node.attribute}


def attribute_texts(node: NodeProto, folder: Folder) -> Mapping[str, str]:
    """Return the value of each attribute as text, by name."""
    return {attribute.name: _text(attribute, folder) for attribute in node.attribute}


def different_attributes(before: NodeProto, after: NodeProto, folders: tuple[Folder, Folder]) -> tuple[str, ...]:
    """Return the names of the attributes that only one node has, or whose values differ. Graphs are not looked into.

    folders: of external data of the two models.
    """
    one, two = attributes_of(before), attributes_of(after)
    names = [name for name in one if name not in two or not _are_same(one[name], two[name], folders)]
    return (*names, *(name for name in two if name not in one))


def _are_same(one: AttributeProto, two: AttributeProto, folders: tuple[Folder, Folder]) -> bool:
    if one.type != two.type or one.ref_attr_name != two.ref_attr_name:
        return False
    if one.type in HOLDING_GRAPHS:
        return len(one.graphs) == len(two.graphs)
    if one.type in _TENSORS or one.type in _SPARSE_TENSORS:
        make: Any = constant if one.type in _TENSORS else sparse_constant
        items, others = _listed(one), _listed(two)
        return len(items) == len(others) and all(
            make(item, folders[0]).equals(make(other, folders[1])) for item, other in zip(items, others, strict=True)
        )
    return _written(one) == _written(two)


def _written(attribute: AttributeProto) -> bytes:
    """Return the bytes of an attribute without its documentation. Not its value: NaN equals nothing, and 0.0 equals
    -0.0.
    """
    if not attribute.doc_string:
        written: bytes = attribute.SerializeToString(deterministic=True)
        return written
    plain = AttributeProto()
    plain.CopyFrom(attribute)
    plain.ClearField("doc_string")
    return _written(plain)


def _listed(attribute: AttributeProto) -> Sequence[Any]:
    value = attribute_value(attribute)
    return value if isinstance(value, tuple) else (value,)


def _text(attribute: AttributeProto, folder: Folder) -> str:
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type in HOLDING_GRAPHS:
        return "graph" if attribute.type == AttributeProto.GRAPH else f"{len(attribute.graphs)} graphs"
    value = attribute_value(attribute)
    if not isinstance(value, tuple):
        return _item_text(attribute, value, folder)
    shown = [_item_text(attribute, item, folder) for item in value[:_SHOWN]]
    left = f", … ({len(value):,} in all)" if len(value) > _SHOWN else ""
    return f"[{', '.join(shown)}{left}]"


def _float32_text(item: float) -> str:
    """Return the shortest text that means this float32: "1e-05" and not "9.99999975e-06"."""
    texts = [f"{item:.{digits}g}" for digits in range(6, 10)]
    return next((text for text in texts if struct.pack("<f", float(text)) == struct.pack("<f", item)), texts[-1])


def _item_text(attribute: AttributeProto, item: Any, folder: Folder) -> str:
    if attribute.type in _TENSORS:
        return constant(item, folder).text
    if attribute.type in _SPARSE_TENSORS:
        return sparse_constant(item, folder).text
    if isinstance(item, float):
        return _float32_text(item)
    if isinstance(item, str):
        return _string_text(item)
    if item is None or not isinstance(item, int):
        return "none" if item is None else "type"
    return str(item)
