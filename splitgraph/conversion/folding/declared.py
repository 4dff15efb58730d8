"""Removes wrong shapes that a model declares of inner values."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.rewrite import Change
from splitgraph.model.onnx_proto import ModelProto, ValueInfoProto

WHY = "declared with a shape that it does not have in every run"


def drop_shapes(model: ModelProto, values: Sequence[ValueInfoProto]) -> list[Change]:
    """Remove declarations from a model; return what changed."""
    names = {value.name for value in values}
    for place in reversed(range(len(model.graph.value_info))):
        if model.graph.value_info[place].name in names:
            del model.graph.value_info[place]
    return [Change(f"main/{name}", "declared shape", "no declared shape", WHY) for name in sorted(names)]
