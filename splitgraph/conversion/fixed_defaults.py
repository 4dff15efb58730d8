"""Taking initializers out of the inputs of a model: they are constants then, and no defaults that a caller replaces."""

from __future__ import annotations

from dataclasses import replace

from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.rewrite import Rewrite
from splitgraph.findings.diagnostics import Diagnostic, abridged, diagnostic
from splitgraph.model.onnx_proto import GraphProto, ModelProto

_MOST_NAMED = 5


def without_defaults(model: ModelProto, *, owned: bool) -> tuple[ModelProto, list[Diagnostic]]:
    """Return the model with its initializers as constants, and a note; the model itself where nothing changes. owned:
    nobody else has the model, so that it is edited itself.

    Below IR version 4 every initializer is an input, and is a constant. Inputs of subgraphs have no defaults.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    constants.update(sparse.values.name for sparse in model.graph.sparse_initializer)
    names = [value.name for value in model.graph.input if value.name in constants]
    if model.ir_version < INITIALIZER_IR_VERSION or not names:
        return model, []
    if not owned:
        copy = ModelProto()
        copy.CopyFrom(model)
        model = copy
    _remove_inputs(model.graph, constants)
    named = ", ".join(abridged(repr(name)) for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    text = (
        f"the initializers {named}{more} are no inputs any more" if len(names) > 1 else f"{named} is no input any more"
    )
    help = "A caller who gave a value of their own for one of these cannot do so any more."
    return model, [diagnostic("SG305", text, "main", severity="info", help=help)]


def _remove_inputs(graph: GraphProto, names: set[str]) -> None:
    for index in range(len(graph.input) - 1, -1, -1):
        if graph.input[index].name in names:
            del graph.input[index]


def with_constants(rewrite: Rewrite[ModelProto], source: ModelProto, told: list[Diagnostic], *, owned: bool) -> Rewrite:
    """Return a rewrite whose result has no initializers among its inputs, as far as its IR version allows. told: what
    was said of the inputs of its source, before it was rewritten.
    """
    is_own = owned or rewrite.model is not source
    model, more = without_defaults(rewrite.model, owned=is_own)
    return replace(rewrite, held=model, diagnostics=(*told, *rewrite.diagnostics, *more))
