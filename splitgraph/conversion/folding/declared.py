"""Shapes that a model declares of inner values, and that are wrong: some runtimes believe them over the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from splitgraph.conversion.rewrite import Change
from splitgraph.inference import Walked
from splitgraph.model.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.model.scopes import MAIN
from splitgraph.model.value_type import ValueType

WHY = "declared with a shape that it does not have in every run"


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


def drop_shapes(model: ModelProto, values: Sequence[ValueInfoProto]) -> list[Change]:
    """Remove declarations from a model; return what changed."""
    names = {value.name for value in values}
    for place in reversed(range(len(model.graph.value_info))):
        if model.graph.value_info[place].name in names:
            del model.graph.value_info[place]
    return [Change(f"main/{name}", "declared shape", "no declared shape", WHY) for name in sorted(names)]
