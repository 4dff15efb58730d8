"""Finds wrong shapes that a model declares of inner values: some runtimes believe them over the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.inference.infer import Walked
from splitgraph.model.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import ValueType


def untrue_shapes(model: ModelProto, walked: Walked) -> Iterator[ValueInfoProto]:
    """Yield what the main graph declares of inner values and what does not hold: another rank, or a number where
    inference knows another size.
    """
    types = walked.graphs[MAIN].types if MAIN in walked.graphs else {}
    for value in model.graph.value_info:
        known = types.get(value.name)
        if known is not None and value.type.HasField("tensor_type") and not _holds(value, known):
            yield value


def _holds(value: ValueInfoProto, known: ValueType) -> bool:
    declared = value.type.tensor_type
    if known.shape is None or not declared.HasField("shape"):
        return True
    if len(declared.shape.dim) != len(known.shape):
        return False
    pairs = zip(declared.shape.dim, known.shape, strict=True)
    return all(dim is None or not given.HasField("dim_value") or given.dim_value == dim for given, dim in pairs)
