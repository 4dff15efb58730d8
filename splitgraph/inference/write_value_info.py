"""Write inferred types into a model: value_info of every graph, and types of outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from splitgraph.dim import marks_unknown
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.shown_symbols import tally
from splitgraph.inference.task import UNBOUND, BoundSizes, fix_sizes
from splitgraph.model.onnx_proto import (
    FunctionProto,
    GraphProto,
    ModelProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)
from splitgraph.model.scopes import (
    LEVELS_OF_BODY,
    MOST_NESTED,
    PROTOBUF_LEVELS,
    GraphPath,
    graph_at,
    scopes,
    subgraph_at,
)
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import type_proto
from splitgraph.model.wire_format import field, head


def fill_model(analysis: Analysis, model: ModelProto, sizes: BoundSizes = UNBOUND) -> Analysis:
    """Fill the inferred types into a model, and the caller's sizes into the types that it declares. Everything else
    stays. Return the analysis with that model.
    """
    if sizes is not UNBOUND:
        fix_sizes(model, sizes, tuple(scopes(model)), analysis.details.types)
    encoded = _EncodedTypes()
    has_twice = any(finding.code == "SG104" for finding in analysis.diagnostics)
    graphs: dict[GraphPath, Any] = {}
    # Outer graphs first, so that an inner one is found from the one around it.
    for path, types in sorted(analysis.details.types.items(), key=lambda item: len(item[0])):
        around = graphs.get(path[:-3])
        graph = graph_at(model, path) if around is None else subgraph_at(around.node[path[-3]], path[-2], path[-1])
        graphs[path] = graph
        if not isinstance(graph, FunctionProto):
            # No declaration fits both values of a name that a graph defines twice.
            if twice := _given_twice(graph) if has_twice else set():
                types = {name: value for name, value in types.items() if name not in twice}
            _fill_graph(graph, _that_fit(types, path), encoded)
    return replace(analysis, held=model)


def _given_twice(graph: GraphProto) -> set[str]:
    count = Counter(name for node in graph.node for name in node.output if name)
    return {name for name, times in count.items() if times > 1}


# Messages in one another in a value_info: itself, its type, tensor, shape and dimension; and in each sequence.
_LEVELS_OF_VALUE, _LEVELS_OF_SEQUENCE = 5, 2


def _that_fit(types: Mapping[str, ValueType], path: GraphPath) -> Mapping[str, ValueType]:
    """Return the types that fit into a graph: with a deeper type, protobuf could not read the model again."""
    around = len(path[2:] if path[:1] == ("F",) else path) // 3
    room = PROTOBUF_LEVELS - 2 - LEVELS_OF_BODY * around - _LEVELS_OF_VALUE
    if room >= _LEVELS_OF_SEQUENCE * (MOST_NESTED + 1):
        return types
    return {name: value for name, value in types.items() if _LEVELS_OF_SEQUENCE * _sequences(value) <= room}


def _sequences(value: ValueType) -> int:
    """Return how many sequences, optional values and maps enclose a tensor."""
    if value.kind == "tensor":
        return 0
    return 1 if value.element is None else 1 + _sequences(value.element)


class _EncodedTypes(dict[int, tuple[bytes, int] | None]):
    """The field `type` of a value_info and its length, by the identity of a type; None if nothing can be declared. A
    model has few types and many values.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept_alive: list[ValueType] = []

    def add(self, types: Collection[ValueType]) -> None:
        """Encode each of these types."""
        for value, _ in tally(types):
            if id(value) not in self:
                made = type_proto(value)
                # Held with its bytes: another type could take the identity of one that is gone.
                self._kept_alive.append(value)
                written = None if made is None else field(_TYPE_OF_VALUE, made.SerializeToString())
                self[id(value)] = None if written is None else (written, len(written))


# Reading many value_info at once takes a fifth of the time that adding one after the other does; all would take memory.
_READ_AT_ONCE = 4096
# The fields value_info of a graph, and name and type of a value_info; the beginnings of short ones by length.
_VALUE_INFO, _NAME_OF_VALUE, _TYPE_OF_VALUE = 13, 1, 2
_SHORT_ENTRY = 126
_ENTRY = [head(_VALUE_INFO, size + 2) for size in range(_SHORT_ENTRY)]
_NAME = [head(_NAME_OF_VALUE, size) for size in range(_SHORT_ENTRY)]


def _fill_graph(graph: GraphProto, types: Mapping[str, ValueType], encoded: _EncodedTypes) -> None:
    skipped = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    skipped |= {tensor.values.name for tensor in graph.sparse_initializer}
    for value in graph.output:
        _write(value, types.get(value.name))
        skipped.add(value.name)
    listed = {value.name: value for value in graph.value_info}
    encoded.add(types.values())
    added: list[bytes] = []
    for (name, inferred), key in zip(types.items(), map(id, types.values()), strict=True):
        if name in skipped:
            continue
        if name in listed:
            _write(listed[name], inferred)
            continue
        fitting = encoded[key]
        if fitting is not None:
            type_field, length = fitting
            written = name.encode()
            of_name = len(written)
            size = of_name + length
            if size < _SHORT_ENTRY:
                added.append(_ENTRY[size] + _NAME[of_name] + written + type_field)
            else:
                added.append(field(_VALUE_INFO, field(_NAME_OF_VALUE, written) + type_field))
        if len(added) == _READ_AT_ONCE:
            graph.MergeFromString(b"".join(added))
            added.clear()
    graph.MergeFromString(b"".join(added))


def _write(value: ValueInfoProto, inferred: ValueType | None) -> None:
    """Fill in a declared type. Its documentation and denotations stay if the rank stays."""
    made = None if inferred is None else type_proto(inferred)
    if made is None:
        return
    if value.type.HasField("tensor_type") and made.HasField("tensor_type"):
        _refine(value.type.tensor_type, made.tensor_type)
        return
    if value.type.WhichOneof("value") in (None, made.WhichOneof("value")):
        value.type.MergeFrom(made) if value.type.WhichOneof("value") is None else value.type.CopyFrom(made)


def _is_told(dim: TensorShapeProto.Dimension) -> bool:
    """Return True if a dimension is declared by a number or a name, and not marked as unknown."""
    if dim.HasField("dim_value"):
        return dim.dim_value >= 0
    return not marks_unknown(dim.dim_param)


def _refine(declared: TypeProto.Tensor, inferred: TypeProto.Tensor) -> None:
    if not declared.elem_type:
        declared.elem_type = inferred.elem_type
    if not inferred.HasField("shape"):
        return
    if not declared.HasField("shape") or len(declared.shape.dim) != len(inferred.shape.dim):
        declared.shape.CopyFrom(inferred.shape)
        return
    for mine, theirs in zip(declared.shape.dim, inferred.shape.dim, strict=True):
        # A name that the author gave stays. A number says more than a name, and anything more than nothing. Where what
        # is inferred is no number, a declared one does not hold for every size.
        if theirs.HasField("dim_value") or (theirs.dim_param and (mine.HasField("dim_value") or not _is_told(mine))):
            mine.ClearField("value")
            mine.MergeFrom(theirs)
