"""Writing inferred types into a copy of the model: value_info of every graph, and the outputs' types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx

from splitgraph.graph.scopes import scopes
from splitgraph.graph.types import type_proto
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import ValueType


def fill_model(analysis: Analysis, model: onnx.ModelProto) -> Analysis:
    """The analysis with a copy of the model that has the inferred types filled in; everything else of the copy is as it
    was.
    """
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    for scope in scopes(filled):
        types = analysis.details.types.get(scope.path)
        if types is not None and not scope.is_function:
            _fill_graph(scope.proto, types)
    return replace(analysis, model=filled)


def _fill_graph(graph: onnx.GraphProto, types: Mapping[str, ValueType]) -> None:
    skipped = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    skipped |= {tensor.values.name for tensor in graph.sparse_initializer}
    for value in graph.output:
        _write(value, types.get(value.name))
        skipped.add(value.name)
    listed = {value.name: value for value in graph.value_info}
    for name, inferred in types.items():
        if name in skipped:
            continue
        if name in listed:
            _write(listed[name], inferred)
            continue
        made = type_proto(inferred)
        if made is not None:
            graph.value_info.add(name=name).type.CopyFrom(made)


def _write(value: onnx.ValueInfoProto, inferred: ValueType | None) -> None:
    """Fill in a declared type; its documentation and denotations stay where the shape has the same rank."""
    made = None if inferred is None else type_proto(inferred)
    if made is None:
        return
    if value.type.HasField("tensor_type") and made.HasField("tensor_type"):
        _refine(value.type.tensor_type, made.tensor_type)
        return
    if value.type.WhichOneof("value") in (None, made.WhichOneof("value")):
        value.type.MergeFrom(made) if value.type.WhichOneof("value") is None else value.type.CopyFrom(made)


def _refine(declared: onnx.TypeProto.Tensor, inferred: onnx.TypeProto.Tensor) -> None:
    if not declared.elem_type:
        declared.elem_type = inferred.elem_type
    if not inferred.HasField("shape"):
        return
    if not declared.HasField("shape") or len(declared.shape.dim) != len(inferred.shape.dim):
        declared.shape.CopyFrom(inferred.shape)
        return
    for mine, theirs in zip(declared.shape.dim, inferred.shape.dim, strict=True):
        # A name that the author gave stays; a number says more than a name.
        if theirs.HasField("dim_value") or not mine.dim_param:
            denotation = mine.denotation
            mine.CopyFrom(theirs)
            mine.denotation = denotation
