"""Applying a plan to a copy of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from splitgraph.conversion.nodes.crossing import AttributeEdit
from splitgraph.conversion.planning.plan import GraphEdits, Plan
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.graph.scopes import graph_at, implies_opset, model_imports, plain_domain, write_implied_opset
from splitgraph.onnx_proto import FunctionProto, GraphProto, ModelProto, NodeProto
from splitgraph.schemas.table import minimum_ir_version
from splitgraph.variants.variadic_split_1 import DOMAIN, variadic_function

# Model-local functions exist from this IR version on.
_FUNCTION_IR_VERSION = 8


def apply_plan(plan: Plan, model: ModelProto, *, owned: bool = False) -> Rewrite[ModelProto]:
    """Make every edit of the plan in a copy of the model; the model itself is not changed, unless it is `owned`: then
    nobody else has it, and it is edited itself. Return the rewrite, with the changes and notes of the plan.
    """
    copy = model
    if not owned:
        copy = ModelProto()
        copy.CopyFrom(model)
    # Inner graphs first: editing a graph's list of nodes copies them, with what they contain.
    for path in sorted(plan.edits, key=len, reverse=True):
        graph = graph_at(copy, path)
        _edit_graph(graph, plan.edits[path])
        if plan.finish is not None and isinstance(graph, GraphProto):
            plan.finish(graph)
    if implies_opset(copy) and (plan.opset is not None or plan.variadic_parts):
        write_implied_opset(copy)
    if plan.opset is not None:
        _set_opset(copy, plan.opset)
    _set_functions(copy, plan)
    return step(copy, plan.changes, plan.notes, rounding=plan.rounding)


def _edit_graph(proto: Any, edits: GraphEdits) -> None:
    for index, attribute_edits in edits.attributes.items():
        for edit in attribute_edits:
            _edit_attribute(proto.node[index], edit)
    for index, form in edits.nodes.items():
        node = proto.node[index]
        node.op_type = form.op_type
        node.input[:] = form.inputs
        node.output[:] = form.outputs
    for index, wrap in edits.wraps.items():
        wrap(proto.node[index])
    if any(len(nodes) != 1 for nodes in edits.replaced.values()):
        _exchange_nodes(proto.node, edits.replaced)
    else:
        for index, (made,) in edits.replaced.items():
            if made is not None:
                proto.node[index].CopyFrom(made)
    if edits.gone_values:
        _remove(proto.value_info, lambda value: value.name in edits.gone_values)
    if isinstance(proto, FunctionProto):
        return
    if edits.gone_initializers:
        _remove(proto.initializer, lambda tensor: tensor.name in edits.gone_initializers)
    proto.initializer.extend(edits.new_initializers)


def _exchange_nodes(nodes: Any, replaced: Mapping[int, Sequence[NodeProto | None]]) -> None:
    """Put the nodes that replace others in their places: behind the last one first, and then all in order, which moves
    no node in memory and copies none.
    """
    kept = list(nodes)
    nodes.extend(node for each in replaced.values() for node in each if node is not None)
    # A node is the same object for as long as it is held.
    added = nodes[len(kept) :]
    width = max(map(len, replaced.values())) + 1
    place = {id(node): index * width for index, node in enumerate(kept)}
    behind, gone, following = len(kept) * width, 0, iter(added)
    for index, each in replaced.items():
        stays = False
        for position, node in enumerate(each):
            stays |= node is None
            place[id(kept[index] if node is None else next(following))] = index * width + position
        if not stays:
            place[id(kept[index])] = behind
            gone += 1
    nodes.sort(key=lambda node: place[id(node)])
    del nodes[len(nodes) - gone :]


def _edit_attribute(node: NodeProto, edit: AttributeEdit) -> None:
    _remove(node.attribute, lambda attribute: attribute.name == edit.name)
    if edit.action == "set" and edit.value is not None:
        node.attribute.append(edit.value)


def _remove(entries: Any, unwanted: Callable[[Any], bool]) -> None:
    """Delete the entries of a repeated protobuf field that are unwanted."""
    for index in range(len(entries) - 1, -1, -1):
        if unwanted(entries[index]):
            del entries[index]


def _set_opset(model: ModelProto, opset: int) -> None:
    imports = [model.opset_import, *(function.opset_import for function in model.functions)]
    for entries in imports:
        for entry in entries:
            if plain_domain(entry.domain) == "":
                entry.version = opset
    model.ir_version = max(model.ir_version, minimum_ir_version(opset))


def _set_functions(model: ModelProto, plan: Plan) -> None:
    """Add the VariadicSplit functions that calls need, remove those that nothing calls any more, and import their
    domain.
    """
    _remove(model.functions, lambda f: f.domain == DOMAIN and f.name in plan.gone_functions)
    present = {function.name for function in model.functions if function.domain == DOMAIN}
    opset = model_imports(model).get("", 1)
    for parts in sorted(plan.variadic_parts):
        made = variadic_function(parts, opset)
        if made.name not in present:
            model.functions.append(made)
    if plan.variadic_parts:
        # onnx's reference evaluator knows a function only behind its place in the list, and a function may call ours.
        model.functions.sort(key=lambda function: function.domain != DOMAIN)
        model.ir_version = max(model.ir_version, _FUNCTION_IR_VERSION)
        _import_domain(model.opset_import)
        for function in model.functions:
            if function.domain != DOMAIN and _calls_domain(function.node):
                _import_domain(function.opset_import)
    elif plan.gone_functions and not any(function.domain == DOMAIN for function in model.functions):
        for entries in (model.opset_import, *(function.opset_import for function in model.functions)):
            _remove(entries, lambda entry: entry.domain == DOMAIN)


def _import_domain(entries: Any) -> None:
    """Import our domain among the opset imports of a model or function."""
    if not any(entry.domain == DOMAIN for entry in entries):
        entries.add(domain=DOMAIN, version=1)


def _calls_domain(nodes: Iterable[NodeProto]) -> bool:
    for node in nodes:
        if node.domain == DOMAIN:
            return True
        for attribute in node.attribute:
            if attribute.HasField("g") and _calls_domain(attribute.g.node):
                return True
    return False
