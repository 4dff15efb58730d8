"""Writing a model in operators of ai.onnx alone: what onnxruntime and its tools wrote as operators of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from splitgraph.conversion.opset import convert_opset
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.schemas import newest_opset
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.model.scopes import implies_opset, model_imports, plain_domain, scopes
from splitgraph.options import STRICT, IRVersion, Leeway

# How the names of its domains begin: it imports all of them in each model that it saves.
_WRITTEN_BY_ONNXRUNTIME = ("com.microsoft", "com.ms.internal")


def convert_standard(
    model: ModelProto,
    opset: int | None = None,
    ir_version: IRVersion = None,
    leeway: Leeway = STRICT,
    *,
    owned: bool = False,
) -> Rewrite[ModelProto]:
    """Return a copy of a model whose operators of com.microsoft, and of ai.onnx.ml where they have a form, are written
    in operators of ai.onnx; the model itself is not changed.

    opset: of the result; None is the model's own. Other arguments and errors as `convert_opset`; a node of
    com.microsoft without a form is a blocker.
    """
    own, used = model_imports(model).get(""), _used_domains(model)
    if own is None and not implies_opset(model):
        own = _newest_opset_of(model)
        model, owned = _importing(model, own), True
    goal = own if opset is None else opset
    assert goal is not None
    rewrite = convert_opset(model, goal, ir_version, leeway, owned=owned, standard=True)
    _drop_unused_imports(rewrite.model, used)
    return rewrite


def _newest_opset_of(model: ModelProto) -> int:
    """Return the newest opset that the IR version of a model may import."""
    opsets = range(newest_opset(), 0, -1)
    return next((opset for opset in opsets if minimum_ir_version(opset) <= model.ir_version), 1)


def _importing(model: ModelProto, opset: int) -> ModelProto:
    """Return a copy of a model that imports ai.onnx, as do its functions."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for entries in _imports(copy):
        if all(plain_domain(entry.domain) != "" for entry in entries):
            entries.add(domain="", version=opset)
    return copy


def _imports(model: ModelProto) -> Iterator[Any]:
    """Yield the opset imports of a model and of each of its functions."""
    yield model.opset_import
    for function in model.functions:
        yield function.opset_import


def _used_domains(model: ModelProto) -> set[str]:
    """Return the domains of all nodes and functions of a model."""
    used = {plain_domain(node.domain) for scope in scopes(model) for node in scope.nodes}
    return used | {plain_domain(function.domain) for function in model.functions}


def _drop_unused_imports(model: ModelProto, used_before: set[str]) -> None:
    """Remove the imports of domains from which nothing is left, and those that onnxruntime writes into every model."""
    used = _used_domains(model)
    for entries in _imports(model):
        for index in range(len(entries) - 1, -1, -1):
            domain = plain_domain(entries[index].domain)
            if domain and domain not in used and (domain in used_before or domain.startswith(_WRITTEN_BY_ONNXRUNTIME)):
                del entries[index]
