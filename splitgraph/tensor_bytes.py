"""How many bytes the elements of a tensor take, and whether they are where they should be."""

from __future__ import annotations

import math
import struct
from itertools import pairwise

from splitgraph.onnx_proto import SparseTensorProto, TensorProto
from splitgraph.tensor_places import Place, place_of, with_elements

# Bits of one element of each TensorProto.DataType that has a fixed size.
_BITS: dict[int, int] = {
    **dict.fromkeys((25, 26), 2),
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((27, 28), 6),
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, 14), 64),
    15: 128,
}
_STRING = TensorProto.STRING
# The field that holds the elements of each type where there is no raw data. Source: onnx.proto, TensorProto.
_INT32_TYPES = (2, 3, 4, 5, 6, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28)
_FIELD_OF: dict[int, str] = {
    **dict.fromkeys((1, 14), "float_data"),
    **dict.fromkeys(_INT32_TYPES, "int32_data"),
    _STRING: "string_data",
    7: "int64_data",
    **dict.fromkeys((11, 15), "double_data"),
    **dict.fromkeys((12, 13), "uint64_data"),
}
# Beyond so many the places of a sparse tensor, and 16-bit entries, are not looked at: they are weights.
_MOST_INDICES = 4096
_HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_LARGEST_BITS = 0xFFFF
_FIELDS = tuple(dict.fromkeys(_FIELD_OF.values()))
# Complex numbers take two entries of the field each; 4-bit and 2-bit elements share an entry.
_ENTRIES: dict[int, tuple[int, int]] = {
    **dict.fromkeys((14, 15), (2, 1)),
    **dict.fromkeys((21, 22, 23), (1, 2)),
    **dict.fromkeys((25, 26), (1, 4)),
}


def byte_size(tensor: TensorProto) -> int | None:
    """Bytes that a tensor of this type and shape takes as raw data; None for strings and unknown types."""
    bits = _BITS.get(tensor.data_type)
    return None if bits is None else (math.prod(tensor.dims) * bits + 7) // 8


def is_external(tensor: TensorProto) -> bool:
    """True when the tensor's contents lie in another file, or stayed in the model's own (see `tensor_places`)."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def lacks_data(tensor: TensorProto) -> bool:
    """True for a tensor that has elements by its shape, and none in the file: the weights were removed."""
    if tensor.raw_data or is_external(tensor) or _given_fields(tensor):
        return False
    return math.prod(tensor.dims) > 0


def misfit(tensor: TensorProto) -> str | None:
    """What is wrong with a tensor: its element type, its shape, or where and how many its elements are. None for a
    sound tensor, one whose elements are in another file, and one that has none at all (see `lacks_data`).
    """
    data_type, dims = tensor.data_type, tensor.dims
    if data_type not in _FIELD_OF:
        return _fault_of_type(data_type)
    if dims and min(dims) < 0:
        return f"dimension {min(dims)} is negative"
    if is_external(tensor):
        place = place_of(tensor)
        return None if place is None else _misfit_in_place(tensor, place)
    given = _given_fields(tensor)
    if not given:
        return _fault_of_raw_data(tensor)
    if tensor.HasField("raw_data"):
        return f"it has elements in both raw_data and {given[0]}; exactly one of them must be given"
    if len(given) > 1:
        return f"it has elements in {' and '.join(given)}; exactly one of them must be given"
    found = len(getattr(tensor, given[0]))
    fault = _fault_of_entries(tensor, given[0], found)
    if fault is not None:
        return fault
    return _fault_of_bits(tensor) if data_type in _HALVES and 0 < found <= _MOST_INDICES else None


def _misfit_in_place(tensor: TensorProto, place: Place) -> str | None:
    """The same of a tensor whose elements stayed in the model's file."""
    if place.entries is None:
        return _fault_of_size(tensor, place.length)
    return _fault_of_entries(tensor, TensorProto.DESCRIPTOR.fields_by_number[place.field].name, place.entries)


def _fault_of_entries(tensor: TensorProto, field: str, found: int) -> str | None:
    """What is wrong with so many entries in a typed field."""
    expected = _FIELD_OF[tensor.data_type]
    if field != expected:
        return f"its elements are in {field}; those of its type must be in {expected} or raw_data"
    times, per_entry = _ENTRIES.get(tensor.data_type, (1, 1))
    needed = -(-math.prod(tensor.dims) * times // per_entry)
    return None if found == needed else f"it has {found} entries in {expected}, {_needing(needed)}"


def _fault_of_bits(tensor: TensorProto) -> str | None:
    """What is wrong with 16-bit floats in int32_data, which holds the bits of each."""
    wrong = [each for each in (min(tensor.int32_data), max(tensor.int32_data)) if not 0 <= each <= _LARGEST_BITS]
    return f"its entry {wrong[0]} of int32_data is not the bits of a 16-bit number" if wrong else None


def misfit_of_sparse(sparse: SparseTensorProto) -> str | None:
    """What is wrong with the values, the indices or the shape of a sparse tensor; None for a sound one."""
    values, indices, dims = sparse.values, sparse.indices, sparse.dims
    for name, held in (("values", values), ("indices", indices)):
        problem = misfit(held)
        if problem is not None:
            return f"of its {name}, {problem}"
    if not dims or min(dims) < 0:
        return "its shape must have one dimension or more, and none of them negative"
    if len(values.dims) != 1:
        return f"its values have rank {len(values.dims)}; it must be 1"
    count = values.dims[0]
    if count == 0 and not indices.dims:
        return None
    if indices.data_type != TensorProto.INT64:
        return "its indices must be int64"
    allowed = [[count], [count, len(dims)]]
    if list(indices.dims) not in allowed:
        return f"its indices have the shape {list(indices.dims)}; it must be {allowed[0]} or {allowed[1]}"
    return _fault_of_indices(indices, list(dims)) if count <= _MOST_INDICES else None


def _fault_of_indices(indices: TensorProto, dims: list[int]) -> str | None:
    """What is wrong with the places of a sparse tensor: each must be inside, and after the one before."""
    indices = with_elements(indices)
    items = indices.int64_data or struct.unpack(f"<{len(indices.raw_data) // 8}q", indices.raw_data)
    rank, bounds = 1, [math.prod(dims)]
    if len(indices.dims) == 2:
        rank, bounds = len(dims), dims
    places = [tuple(items[first : first + rank]) for first in range(0, len(items), rank)]
    for place in places:
        if not all(0 <= index < bound for index, bound in zip(place, bounds, strict=True)):
            return f"its index {list(place)} lies outside its shape {dims}"
    if any(place <= before for before, place in pairwise(places)):
        return "its indices are not in ascending order"
    return None


def _given_fields(tensor: TensorProto) -> list[str]:
    return [field for field in _FIELDS if getattr(tensor, field)]


def _fault_of_type(data_type: int) -> str | None:
    if data_type == TensorProto.UNDEFINED:
        return "it has no element type"
    # An element type of an onnx newer than splitgraph: where its elements are is not known.
    return None if data_type in TensorProto.DataType.values() else f"there is no element type {data_type}"


def _fault_of_raw_data(tensor: TensorProto) -> str | None:
    # One copy of the elements; ByteSize writes the whole message, which takes two.
    found = len(tensor.raw_data)
    return _fault_of_size(tensor, found) if found else None


def _fault_of_size(tensor: TensorProto, found: int) -> str | None:
    if tensor.data_type == _STRING:
        return "its elements are in raw_data; those of strings must be in string_data"
    needed = byte_size(tensor)
    return None if found == needed else f"it has {found} bytes of data, {_needing(needed)}"


def _needing(count: int | None) -> str:
    # Python does not write numbers of more than 4,300 digits, which a shape of some hundred dimensions can need.
    shown = "more than 2**63" if count is not None and count > 2**63 else count
    return f"and its type and shape need {shown}"
