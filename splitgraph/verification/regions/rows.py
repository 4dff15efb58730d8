"""Draw positions for the inputs that read a table, or at which something is written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.tensor_data import byte_size
from splitgraph.verification.models.model_files import elements_of, is_default_domain, nodes_within
from splitgraph.verification.regions.folding import computed_tables
from splitgraph.verification.values import Array, Value

# A region before and after, each with the folder of its external data.
Models = tuple[tuple[onnx.ModelProto, Path], tuple[onnx.ModelProto, Path]]

# In so many cases at most, rows are drawn that do not fit into one.
MOST_ROWS = 48
# Operators that read a table at given positions.
TABLE_READERS = ("Gather", "GatherElements", "GatherND")
# Operators that write at given positions.
_WRITERS = ("Scatter", "ScatterElements", "ScatterND")
# Positions and lengths that other operators read: at which input, along which axis of which other input they count, and
# whether they count its elements.
_COUNTING: Mapping[str, Sequence[tuple[int, int, int, bool]]] = {
    "Attention": ((6, 1, -2, True),),
    "EmbedLayerNormalization": ((0, 2, 0, False), (1, 4, 0, False)),
    "RoiAlign": ((2, 0, 0, False),),
    "TensorScatter": ((2, 0, -2, False),),
}
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
            if node.op_type not in TABLE_READERS or not is_default_domain(node.domain):
                continue
            name = _passed_on(model, node.input[1])
            values, dims = indexed.get(name), _table_dims(model, folder, node.input[0], base)
            key = name, node.op_type, dims
            is_known = place == 1 and key in told
            told.add(key)
            if not is_known and isinstance(values, np.ndarray) and values.size and math.prod(dims):
                different = _different_places(models, node)
                yield from ({name: chosen} for chosen in _positions(node, dims, values, different))
    for node in nodes_within(models[0][0].graph.node):
        data, values = (base.get(name) for name in node.input[:2]) if node.op_type in _WRITERS else (None, None)
        if isinstance(data, np.ndarray) and isinstance(values, np.ndarray) and node.input[1] in indexed:
            yield from ({node.input[1]: chosen} for chosen in _written(node, data.shape, values))
    for node in nodes_within(models[0][0].graph.node):
        yield from _counted(node, base, indexed)


def _table_dims(model: onnx.ModelProto, folder: Path, name: str, base: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the dimensions of a table: one that a region is given, has, or computes of constants; none of others."""
    if name in base:
        return np.shape(base[name]) if isinstance(base[name], np.ndarray) else ()
    table = next((tensor for tensor in model.graph.initializer if tensor.name == name), None)
    if table is not None:
        return tuple(table.dims)
    computed = computed_tables(model, folder).get(name)
    return () if computed is None else computed.shape


def _passed_on(model: onnx.ModelProto, name: str) -> str:
    """Return the value that a value comes from, through operators that pass small whole numbers on, or most of them."""
    constants = {tensor.name for tensor in model.graph.initializer}
    nodes = [*nodes_within(model.graph.node)]
    passed = {node.output[0]: node.input[0] for node in nodes if node.op_type in _PASSING}
    for node in nodes:
        sources = [each for each in node.input[_LIMITING.get(node.op_type, 0) :] if each not in constants]
        if node.op_type in _LIMITING and len(sources) == 1:
            passed[node.output[0]] = sources[0]
    while name in passed:
        name = passed[name]
    return name


def _counted(
    node: onnx.NodeProto, base: Mapping[str, Value], indexed: Mapping[str, Value]
) -> Iterator[dict[str, Value]]:
    """Yield the first and the last positions or lengths that a node may read, and one after the other."""
    names = dict(enumerate(node.input))
    for place, other, axis, has_end in _COUNTING.get(node.op_type, ()):
        values, data = indexed.get(names.get(place, "")), base.get(names.get(other, ""))
        if not isinstance(values, np.ndarray) or not isinstance(data, np.ndarray) or data.ndim <= max(axis, -axis - 1):
            continue
        # What TensorScatter writes must fit behind its position.
        update = base.get(names.get(1, "")) if node.op_type == "TensorScatter" else None
        count = data.shape[axis] - (np.shape(update)[axis] - 1 if isinstance(update, np.ndarray) else 0)
        numbers = np.arange(count) + has_end
        for start in dict.fromkeys((0, count - 1)) if count > 0 and values.size else ():
            yield {names[place]: np.full(values.shape, numbers[start]).astype(values.dtype)}
            yield {
                names[place]: np.resize(np.roll(numbers, -start), values.size)
                .reshape(values.shape)
                .astype(values.dtype)
            }


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
            yield from ((((shown + more) % length) - length).astype(values.dtype) for more in (0, 1))


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
        chosen = np.resize(np.roll(rows, -case * values.size), values.size)
        yield chosen.reshape(values.shape).astype(values.dtype)


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
