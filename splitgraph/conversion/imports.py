"""The domains that a model imports: ai.onnx where nodes of it are written, and no domain that nothing uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.schemas import newest_opset
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.model.scopes import plain_domain, scopes


def newest_opset_of(model: ModelProto) -> int:
    """Return the newest opset that the IR version of a model may import."""
    opsets = range(newest_opset(), 0, -1)
    return next((opset for opset in opsets if minimum_ir_version(opset) <= model.ir_version), 1)


def importing(model: ModelProto, opset: int) -> ModelProto:
    """Return a copy of a model that imports ai.onnx, as do its functions."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for entries in _imports(copy):
        if all(plain_domain(entry.domain) != "" for entry in entries):
            entries.add(domain="", version=opset)
    return copy


def used_domains(model: ModelProto) -> set[str]:
    """Return the domains of all nodes and functions of a model."""
    used = {plain_domain(node.domain) for scope in scopes(model) for node in scope.nodes}
    return used | {plain_domain(function.domain) for function in model.functions}


def drop_imports(model: ModelProto, unwanted: Collection[str]) -> None:
    """Remove the imports of domains from a model and its functions."""
    for entries in _imports(model):
        for index in range(len(entries) - 1, -1, -1):
            if plain_domain(entries[index].domain) in unwanted:
                del entries[index]


def _imports(model: ModelProto) -> Iterator[Any]:
    """Yield the opset imports of a model and of each of its functions."""
    yield model.opset_import
    for function in model.functions:
        yield function.opset_import
