"""Names for omitted outputs of splits: onnxruntime crashes on a Split with an empty output name."""

from __future__ import annotations

from splitgraph.conversion.planning.plan import opset_of
from splitgraph.conversion.rewrite import Change
from splitgraph.graph.names import FreshNames, named_outputs, used_names
from splitgraph.graph.scopes import Scope, node_label, plain_domain, scopes
from splitgraph.inference import Walked
from splitgraph.onnx_proto import ModelProto, NodeProto
from splitgraph.variants import variadic_split_1, variant_at

_WHY = "an output without a name makes onnxruntime crash"


def has_unnamed_parts(walked: Walked) -> bool:
    """True where a split of the model omits an output."""
    graphs = ((scope, walked.graphs.get(scope.path)) for scope in walked.scopes)
    return any("" in scope.nodes[index].output for scope, found in graphs if found for index in found.splits)


def name_parts(model: ModelProto) -> list[Change]:
    """Edit the model: each omitted output of a split gets a name that is new in every scope."""
    names, changes = FreshNames(used_names(model)), list[Change]()
    for scope in scopes(model):
        for index, node in enumerate(scope.nodes):
            form = _form(scope, node) if "" in node.output else None
            if form is None:
                continue
            location = f"{scope.location}/{node_label(node, index)}"
            node.output[:] = named_outputs(node, node.output, names)
            changes.append(Change(location, form, form, _WHY))
    return changes


def _form(scope: Scope, node: NodeProto) -> str | None:
    """The operator and version of a split, None for another operator."""
    domain = plain_domain(node.domain)
    if domain == variadic_split_1.DOMAIN:
        return "VariadicSplit-1"
    variant = variant_at(node.op_type, opset_of(scope.imports)) if domain == "" else None
    return None if variant is None else f"{variant.op_type}-{variant.since_version}"
