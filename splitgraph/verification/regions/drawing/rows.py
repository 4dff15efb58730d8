"""Draw positions for the inputs that read a table, or at which something is written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.model.tensor_data import byte_size
from splitgraph.verification.models.model_files import elements_of, is_default_domain, nodes_within
from splitgraph.verification.regions.drawing.repeating import repeated
from splitgraph.verification.regions.finding.folding import computed_tables
from splitgraph.verification.values import Array, Value

# A region before and after, each with the folder of its external data.
Models = tuple[tuple[onnx.ModelProto, Path], tuple[onnx.ModelProto, Path]]

# In so many cases at most, rows are drawn that do not fit into one.
MOST_ROWS = 48
# Positions and lengths that other operators read: at which input, along which axis of which other input they count, and
# whether they count its elements.
_COUNTING: Mapping[str, Sequence[tuple[int, int, int, bool]]] = {
    "Attention": ((6, 1, -2, True),),
    "EmbedLayerNormalization": ((0, 2, 0, False), (1, 4, 0, False)),
    **dict.fromkeys(sorted(kinds.RECURRENT), ((4, 0, 0, True),)),
    "RoiAlign": ((2, 0, 0, False),),
    "RotaryEmbedding": ((3, 1, 0, False),),
    "TensorScatter": ((2, 0, -2, False),),
}
# Those that have other inputs in the domain of onnxruntime.
_COUNTING_THERE: Mapping[str, Sequence[tuple[int, int, int, bool]]] = {
    "GroupQueryAttention": ((5, 3, 2, False), (5, 1, 1, False)),
    "RotaryEmbedding": ((1, 2, 0, False),),
}
# Where its operators take a mask: of one dimension these are lengths along the second dimension of the first input; of
# more, a number above 0 keeps an element, and any other one hides it.
_MASKED: Mapping[str, int] = {"Attention": 3, "MultiHeadAttention": 4, "QAttention": 5}
_MASKS = np.array([-1, 0, 1, 2])
_MANY = onnx.TensorProto(dims=[0])
# Operators that pass small whole numbers on as they are.
_PASSING = frozenset({"Cast", "Clip", "Floor", "Round", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Relu", "Abs"})
# Operators that pass most of them on where all inputs but one, from this one on, are constants.
_LIMITING = {"Max": 0, "Min": 0, "Mod": 0, "Where": 1}
# A table with more bytes is not read to find the rows that differ.
_LARGEST_TABLE = 2**28
# So many rows of a table are read at once.
_MOST_AT_ONCE = 2**16


def draw_rows(models: Models, base: Mapping[str, Value], indexed: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield positions for the inputs that read a table: each of its rows, those that differ first."""
    told = set[tuple[str, str, tuple[int, ...]]]()
    # The second model may hold a table that the first one computes.
    for place, (model, folder) in enumerate(models):
        for node in nodes_within(model.graph.node):
            if node.op_type not in kinds.READS_AT or not is_default_domain(node.domain):
                continue
            name, divisor = _passed_on(model, folder, node.input[1])
            values, dims = indexed.get(name), _table_dims(model, folder, node.input[0], base)
            key = name, node.op_type, dims
            is_known = place == 1 and key in told
            told.add(key)
            if not is_known and isinstance(values, np.ndarray) and values.size and math.prod(dims):
                different = _different_places(models, node)
                chosen = _positions(node, dims, values, different)
                yield from ({name: _divided_to(rows, divisor)} for rows in chosen)
    model, folder = models[0]
    for node in nodes_within(model.graph.node):
        sources = {place: _passed_on(model, folder, name)[0] for place, name in enumerate(node.input)}
        data, values = (
            (base.get(sources[place]) for place in (0, 1)) if node.op_type in kinds.WRITES_AT else (None, None)
        )
        if isinstance(data, np.ndarray) and isinstance(values, np.ndarray) and sources[1] in indexed:
            yield from ({sources[1]: chosen} for chosen in _written(node, data.shape, values))
        counted = _counted(node, lambda name: _table_dims(model, folder, name, base))
        for place, numbers in (*counted, *_bits(node, base)):
            values = indexed.get(sources.get(place, ""))
            if isinstance(values, np.ndarray) and values.size and numbers.size:
                yield from ({sources[place]: chosen} for chosen in _one_after_the_other(numbers, values))
        for lengths in _cache_lengths(node, lambda name: _table_dims(model, folder, name, base)):
            given = {sources[place]: length for place, length in lengths.items() if sources[place] in indexed}
            yield {
                name: np.full(np.shape(indexed[name]), length).astype(indexed[name].dtype)
                for name, length in given.items()
            }


def _table_dims(model: onnx.ModelProto, folder: Path, name: str, base: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the dimensions of a table: one that a region is given, has, or computes of constants; none of others."""
    if name in base:
        return np.shape(base[name]) if isinstance(base[name], np.ndarray) else ()
    table = next((tensor for tensor in model.graph.initializer if tensor.name == name), None)
    if table is not None:
        return tuple(table.dims)
    computed = computed_tables(model, folder).get(name)
    return () if computed is None else computed.shape


def _passed_on(model: onnx.ModelProto, folder: Path, name: str) -> tuple[str, int]:
    """Return the value that a value comes from, through operators that pass small whole numbers on, or most of them;
    and by which number it is divided on the way.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    passed: dict[str, tuple[str, int]] = {}
    for node in nodes_within(model.graph.node):
        sources = [each for each in node.input[_LIMITING.get(node.op_type, 0) :] if each not in constants]
        if node.op_type in _PASSING:
            passed[node.output[0]] = node.input[0], 1
        elif node.op_type in _LIMITING and len(sources) == 1:
            passed[node.output[0]] = sources[0], 1
        elif node.op_type == "Div" and len(constants.get(node.input[1], _MANY).dims) == 0:
            number = elements_of(constants[node.input[1]], folder)
            if number.dtype.kind in "iu" and number.item() > 0:
                passed[node.output[0]] = node.input[0], number.item()
    product = 1
    while name in passed:
        name, divisor = passed[name]
        product *= divisor
    return name, product


def _divided_to(rows: Array, divisor: int) -> Array:
    """Return the numbers, as large as they can be, that a division makes these rows of, which are counted from 0."""
    if divisor == 1:
        return rows
    wide = rows.astype(np.int64)
    return (wide * divisor + np.where(wide >= 0, divisor - 1, 0)).astype(rows.dtype)


def _counted(node: onnx.NodeProto, shape_of: Callable[[str], Sequence[int]]) -> Iterator[tuple[int, Array]]:
    """Yield the inputs of a node that are positions or lengths, and which numbers they may be."""
    names = dict(enumerate(node.input))
    table = _COUNTING if is_default_domain(node.domain) else {**_COUNTING, **_COUNTING_THERE}
    for place, other, axis, has_end in table.get(node.op_type, ()):
        dims = shape_of(names.get(other, ""))
        if max(axis + 1, -axis) <= len(dims):
            # What TensorScatter writes must fit behind its position.
            update = shape_of(names.get(1, "")) if node.op_type == "TensorScatter" else ()
            yield place, np.arange(dims[axis] - (update[axis] - 1 if update else 0)) + has_end
    if not is_default_domain(node.domain) and node.op_type in _MASKED:
        place = _MASKED[node.op_type]
        is_length, dims = len(shape_of(names.get(place, ""))) == 1, shape_of(names.get(0, ""))
        yield place, np.arange(dims[1] + 1) if is_length and len(dims) > 1 else _MASKS
    dims = shape_of(names.get(0, ""))
    if node.op_type == "ReverseSequence" and len(dims) > 1:
        time = next((attribute.i for attribute in node.attribute if attribute.name == "time_axis"), 0)
        yield 1, np.arange(dims[time]) + 1


def _bits(node: onnx.NodeProto, base: Mapping[str, Value]) -> Iterator[tuple[int, Array]]:
    """Yield by how many bits a node may shift."""
    data = base.get(node.input[0]) if node.op_type == "BitShift" else None
    if isinstance(data, np.ndarray):
        yield 1, np.arange(data.dtype.itemsize * 8)


def _one_after_the_other(numbers: Array, values: Array) -> Iterator[Array]:
    """Yield the first and the last number alone, and all numbers one after the other from each of these on."""
    for start in dict.fromkeys((0, numbers.size - 1)):
        yield np.full(values.shape, numbers[start]).astype(values.dtype)
        yield repeated(np.roll(numbers, -start).astype(values.dtype), values.shape)


def _cache_lengths(node: onnx.NodeProto, shape_of: Callable[[str], Sequence[int]]) -> Iterator[dict[int, int]]:
    """Yield numbers for the inputs of GroupQueryAttention that say lengths, which have to fit each other: the last row
    that counts of each item, and how many there are in all, with those of the cache. The full cache comes first.
    """
    if node.op_type != "GroupQueryAttention" or is_default_domain(node.domain) or len(node.input) < 7:
        return
    # Query, key or value: a region may compute one of them, and all are as long.
    new = next((dims[1] for dims in map(shape_of, node.input[:3]) if len(dims) > 1), 1)
    past = shape_of(node.input[3])
    total = new + (past[2] if len(past) == 4 else 0)
    yield from ({5: last, 6: total} for last in dict.fromkeys((total - 1, total - 2, new - 1)) if last >= 0)


def _written(node: onnx.NodeProto, dims: Sequence[int], values: Array) -> Iterator[Array]:
    """Yield positions at which a node writes: counted from both ends, and where it reduces, the same one again."""
    given = {attribute.name: attribute for attribute in node.attribute}
    is_reducing = "reduction" in given and given["reduction"].s != b"none"
    if not values.size or not math.prod(dims):
        return
    if is_reducing:
        yield from (np.full(values.shape, place).astype(values.dtype) for place in (0, -1))
    if node.op_type == "ScatterND":
        yield from _rows_apart(dims, values)
        return
    axis = given["axis"].i if "axis" in given else 0
    if values.ndim == len(dims) and -len(dims) <= axis < len(dims):
        axis, length = axis % len(dims), dims[axis]
        along = np.arange(values.shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(dims))])
        shown = np.broadcast_to(along, values.shape)
        if is_reducing:
            # The first element, counted from both ends in turn.
            yield (shown % 2 * -length).astype(values.dtype)
        if values.shape[axis] <= length:
            starts = dict.fromkeys((0, 1, length - values.shape[axis]))
            for more, back in itertools.product(starts, (length, 0)):
                yield (((shown + more) % length) - back).astype(values.dtype)


def _rows_apart(dims: Sequence[int], values: Array) -> Iterator[Array]:
    """Yield positions of several axes, no two of them the same: the first ones and the last ones, from both ends."""
    depth = values.shape[-1] if values.ndim else 0
    if not 0 < depth <= len(dims):
        return
    own = tuple(dims[:depth])
    count, most = values.size // depth, math.prod(own)
    for start in dict.fromkeys((0, most - count)) if count <= most else ():
        places = np.stack(np.unravel_index(np.arange(start, start + count), own), axis=-1).reshape(values.shape)
        yield places.astype(values.dtype)
        yield (places - np.array(own)).astype(values.dtype)


def _positions(node: onnx.NodeProto, dims: Sequence[int], values: Array, different: Array) -> Iterator[Array]:
    """Yield positions in a table for one node. different: the places of elements that differ, one in each row."""
    if node.op_type == "GatherND":
        yield from _nd_positions(node, dims, values, different)
        return
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    if not -len(dims) <= axis < len(dims):
        return
    rows = _in_order(dims[axis], np.unique(different[:, axis]) if different.size else different)
    if values.dtype.kind == "u":
        rows = rows[rows >= 0]
    if node.op_type == "GatherElements":
        # Each element reads its own place along the other axes.
        yield from (np.full(values.shape, row).astype(values.dtype) for row in rows[:MOST_ROWS].tolist())
        return
    if values.ndim and values.size < rows.size <= _MOST_AT_ONCE:
        # All rows at once, where nothing else in the region has the shape of the positions.
        yield rows.reshape((1,) * (values.ndim - 1) + (-1,)).astype(values.dtype)
    for case in range(min(-(-rows.size // values.size), MOST_ROWS)):
        yield repeated(np.roll(rows, -case * values.size).astype(values.dtype), values.shape)


def _nd_positions(node: onnx.NodeProto, dims: Sequence[int], values: Array, different: Array) -> Iterator[Array]:
    """Yield positions of several axes in a table: those that differ, and the ends, counted from both sides."""
    start = next((attribute.i for attribute in node.attribute if attribute.name == "batch_dims"), 0)
    depth = values.shape[-1] if values.ndim else 0
    if not 0 < depth <= len(dims) - start:
        return
    own = np.array(dims[start : start + depth], np.int64)
    ends = (np.zeros_like(own), own - 1, np.full_like(own, -1), -own)
    for place in (*different[:MOST_ROWS, start : start + depth], *ends):
        yield np.broadcast_to(place, values.shape).astype(values.dtype)


def _different_places(models: Models, node: onnx.NodeProto) -> Array:
    """Return where the table of a node of the first model is another one in the second model."""
    none: Array = np.empty((0, 1), np.int64)
    (before, folder), (after, other_folder) = models
    table = next((tensor for tensor in before.graph.initializer if tensor.name == node.input[0]), None)
    readers = (other for other in after.graph.node if other.op_type == node.op_type and other.input[1] == node.input[1])
    names = {other.input[0] for other in readers}
    new = next((tensor for tensor in after.graph.initializer if tensor.name in names), None)
    if table is None or new is None or list(table.dims) != list(new.dims) or (byte_size(table) or 0) > _LARGEST_TABLE:
        return none
    one, other = elements_of(table, folder), elements_of(new, other_folder)
    return np.argwhere(np.asarray(one != other)) if one.size else none


def _in_order(count: int, first: Array) -> Array:
    """Return the positions of a dimension: those that come first, the ends counted from both sides, and all others."""
    ends = [0, -1, count - 1, -count]
    return np.array(list(dict.fromkeys([*first.tolist(), *ends, *range(count)])), np.int64)
