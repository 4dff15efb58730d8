"""Find the constants of an OpenVINO IR that an ONNX model has not, where a run need not read them: rows of tables, what
a condition selects, limits, and what only a branch reads.

OpenVINO folds constants, turns weights and stores them in other types, so that constants have no partners by name. A
constant is the same if some constant of the ONNX model, or what that computes of constants alone, has its elements, in
their order or with other dimensions.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel
from splitgraph.verification.models.ir_constants import ChangedConstant, IRConstant, different_places, ir_constants
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.folding import computed_tables
from splitgraph.verification.values import Array

# The layers with bodies around a constant.
Place = tuple[tuple[int, str], ...]

# Layers that read only some elements of a constant, or show them only beyond a limit: at these inputs.
_TABLES = {"Gather": (0,), "GatherElements": (0,), "GatherND": (0,), "Slice": (0,), "StridedSlice": (0,)}
_CHOOSING = {
    "Select": (1, 2),
    **dict.fromkeys(("Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual"), (0, 1)),
    **dict.fromkeys(("Maximum", "Minimum"), (0, 1)),
}
# Layers that pass a constant on.
_PASSING = frozenset({"Convert", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Broadcast"})
# Tables have so many elements; they are the same table, with other rows, if half of them are equal.
_LEAST_TABLE = 8
# Constants of so many dimensions are turned in all ways.
_MOST_TURNED = 4


def constants_of_one(model: onnx.ModelProto, folder: Path | None, other: OpenVINOModel) -> Iterator[ChangedConstant]:
    """Yield constants of an IR whose elements the ONNX model has not."""
    asked = [
        (constant, array, is_table)
        for constant, is_table in _asked(other)
        if (array := constant.elements(other)) is not None
    ]
    sizes = {array.size for _, array, _ in asked}
    held = [one.elements(folder) for one in held_constants(model) if one.size in sizes]
    held = [array for array in held if array.dtype.kind in "fiub"]
    small = [
        array
        for one in ir_constants(other)
        if math.prod(one.dims) < _LEAST_TABLE and (array := one.elements(other)) is not None
    ]
    computed: Sequence[Array] | None = None
    for constant, array, is_table in asked:
        nearest = _nearest(array, held)
        if nearest is not None and not nearest[1].size:
            continue
        if array.size >= _LEAST_TABLE:
            computed = [*computed_tables(model, folder).values()] if computed is None else computed
            nearest = _nearest(array, [*held, *computed])
            if nearest is not None and nearest[1].size * 2 <= array.size:
                yield from [ChangedConstant(constant, nearest[1], (nearest[0], array))] if nearest[1].size else []
            elif is_table:
                yield ChangedConstant(constant, np.arange(array.size), (_others(array), array))
        else:
            # What OpenVINO adds itself has no partner: one of the same size that the IR has not.
            alone = [one for one in held if _nearest_places(one, small) is None]
            nearest = _nearest(array, alone)
            if nearest is not None:
                yield ChangedConstant(constant, nearest[1], (nearest[0], array))


def _nearest_places(array: Array, others: Sequence[Array]) -> Array | None:
    """Return an array with the same elements; None if there is none."""
    found = _nearest(array, others)
    return found[0] if found is not None and not found[1].size else None


def _nearest(array: Array, others: Sequence[Array]) -> tuple[Array, Array] | None:
    """Return the one of the arrays, turned like this one, that differs in the fewest places, and these; None if no
    array has as many numbers of the kind.
    """
    best: tuple[Array, Array] | None = None
    for other in others:
        if other.size != array.size or (other.dtype.kind in "f") != (array.dtype.kind in "f"):
            continue
        for turned in _turned(other, array.shape):
            with np.errstate(over="ignore"):
                made = turned.astype(array.dtype)
            places = different_places(made, array)
            if best is None or places.size < best[1].size:
                best = made, places
            if not places.size:
                return best
    return best


def _turned(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array in a shape: its elements in their order, and with its dimensions in every other one."""
    yield array.reshape(shape)
    plain = array.reshape([length for length in array.shape if length != 1])
    wanted = [length for length in shape if length != 1]
    if 2 <= plain.ndim <= _MOST_TURNED and sorted(plain.shape) == sorted(wanted):
        for order in itertools.islice(itertools.permutations(range(plain.ndim)), 1, None):
            if [plain.shape[axis] for axis in order] == wanted:
                yield plain.transpose(order).reshape(shape)


def _others(array: Array) -> Array:
    """Return other elements for all of an array."""
    if array.dtype.kind == "b":
        return ~array
    return np.where(array == 0, np.ones((), array.dtype), array + array).astype(array.dtype)


def _asked(model: OpenVINOModel) -> Iterator[tuple[IRConstant, bool]]:
    """Yield the constants that a run need not read, each with whether it is a table."""
    readers: dict[Place, Mapping[int, Sequence[tuple[Layer, int]]]] = {}
    for constant in ir_constants(model):
        place = constant.path[:-1]
        if place not in readers:
            readers[place] = _readers(_graph_at(model.graph, place))
        kinds = {*_kinds(constant.layer, readers[place])}
        is_floating = constant.layer.data["element_type"] in ("f16", "f32", "f64")
        is_in_branch = is_floating and any(tag in ("then_body", "else_body") for _, tag in place)
        if kinds or is_in_branch:
            yield constant, "table" in kinds


def _graph_at(graph: Graph, place: Sequence[tuple[int, str]]) -> Graph:
    for number, tag in place:
        graph = next(layer for layer in graph.layers if layer.id == number).bodies[tag]
    return graph


def _readers(graph: Graph) -> Mapping[int, Sequence[tuple[Layer, int]]]:
    layers = {layer.id: layer for layer in graph.layers}
    found: dict[int, list[tuple[Layer, int]]] = defaultdict(list)
    for (reader, port), (source, _) in graph.sources.items():
        position = next(place for place, own in enumerate(layers[reader].inputs) if own.id == port)
        found[source].append((layers[reader], position))
    return found


def _kinds(layer: Layer, readers: Mapping[int, Sequence[tuple[Layer, int]]]) -> Iterator[str]:
    for reader, position in readers.get(layer.id, ()):
        if position in _TABLES.get(reader.type, ()):
            yield "table"
        elif position in _CHOOSING.get(reader.type, ()):
            yield "choice"
        elif reader.type in _PASSING and position == 0:
            yield from _kinds(reader, readers)
