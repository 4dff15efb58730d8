"""Applying a plan to a copy of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from splitgraph.conversion.declared_shapes import (
    Belief,
    correct_shapes,
    correction_finding,
    declare_results_of_scans,
    dimensions_of_inputs,
    with_corrections,
)
from splitgraph.conversion.node import Node, changed_attributes
from splitgraph.conversion.plan import KEPT, GraphEdits, Plan
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.onnx_proto import FunctionProto, GraphProto, ModelProto, NodeProto
from splitgraph.model.places import with_nodes
from splitgraph.model.schemas.table import minimum_ir_version
from splitgraph.model.scopes import (
    GraphPath,
    graph_at,
    implies_opset,
    model_imports,
    node_label,
    plain_domain,
    scopes,
    write_implied_opset,
)
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import value_type, write_shape
from splitgraph.splits.variadic_split_1 import DOMAIN, variadic_function

# Model-local functions exist from this IR version on.
_FUNCTION_IR_VERSION = 8
# Below this IR version, every initializer is an input, too.
_LONE_INITIALIZERS = 4


def apply_plan(plan: Plan, model: ModelProto, *, owned: bool = False) -> Rewrite[ModelProto]:
    """Make every edit of the plan in a copy of the model; the model itself is not changed, unless it is `owned`: then
    nobody else has it, and it is edited itself. Return the rewrite, with the changes and notes of the plan.
    """
    # The nodes that they are about may be gone afterwards.
    notes = with_nodes(plan.notes, scopes(model))
    copy = model
    if not owned:
        copy = ModelProto()
        copy.CopyFrom(model)
    version = model.ir_version if plan.opset is None else max(model.ir_version, minimum_ir_version(plan.opset))
    correct = _Corrections(plan, model)
    if plan.opset is not None:
        correct.declare_results_of_scans(copy, plan.opset)
    # Inner graphs first: editing a graph's list of nodes copies them, with what they contain.
    for path in sorted(plan.edits, key=len, reverse=True):
        graph = graph_at(copy, path)
        rewritten = _outputs_of_others(graph, plan.edits[path])
        _edit_graph(graph, plan.edits[path], constants_are_inputs=not path and version < _LONE_INITIALIZERS)
        correct.shapes(graph, path, rewritten)
        if plan.finish is not None and isinstance(graph, GraphProto):
            plan.finish(graph)
    if implies_opset(copy) and (plan.opset is not None or plan.variadic_parts):
        write_implied_opset(copy)
    if plan.opset is not None:
        _set_opset(copy, plan.opset)
    _import_versions(copy, plan.domains)
    _set_functions(copy, plan)
    return step(copy, plan.changes, correct.with_notes(notes), rounding=plan.rounding)


def _outputs_of_others(graph: Any, edits: GraphEdits) -> dict[str, str]:
    """Return the values that other operators than before define afterwards, each with the label of its old node."""
    return {
        name: node_label(graph.node[index], index)
        for index, made in edits.replaced.items()
        if [node.op_type for node in made] != [graph.node[index].op_type]
        for name in graph.node[index].output
    }


class _Corrections:
    """Takes wrong declared shapes from values that other nodes define, and tells of those that people see."""

    def __init__(self, plan: Plan, model: ModelProto) -> None:
        self._walked = plan.known
        inputs = dimensions_of_inputs(model)
        self._belief = Belief(inputs, names=True, unknown=bool(plan.known and plan.known.misdeclared))
        self._corrected = dict[str, Diagnostic | None]()

    def declare_results_of_scans(self, model: ModelProto, opset: int) -> None:
        """Declare what bodies of Scan give, if the model goes to another opset. model: not edited yet."""
        if self._walked is not None and self._walked.opset.get("") != opset:
            declare_results_of_scans(model, self._walked, self._belief)

    def shapes(self, graph: Any, path: GraphPath, rewritten: Mapping[str, str]) -> None:
        """Correct the declared shapes in a graph. rewritten: as `_outputs_of_others` returns it."""
        detail = None if self._walked is None else self._walked.graphs.get(path)
        if detail is None or not rewritten or not isinstance(graph, GraphProto):
            return
        known = {name: detail.types[name] for name in rewritten if name in detail.types}
        outputs = {value.name for value in graph.output}
        for value, declared in correct_shapes(graph, known, self._belief):
            finding = None
            if value.name in outputs:
                assert self._walked is not None
                scope = next(scope for scope in self._walked.scopes if scope.path == path)
                location = f"{scope.location}/{rewritten[value.name]}"
                finding = correction_finding(value.name, declared, value_type(value.type), location)
            self._corrected[value.name] = finding

    def with_notes(self, notes: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Return the notes of the plan with those about corrections."""
        return with_corrections(notes, self._corrected, KEPT) if self._corrected else list(notes)


def _edit_graph(proto: Any, edits: GraphEdits, *, constants_are_inputs: bool) -> None:
    changed = [*edits.replaced, *edits.unread]
    lost = {name for index in changed for name in proto.node[index].output[:]} if proto.value_info else set()
    if edits.unread or any(len(nodes) != 1 for nodes in edits.replaced.values()):
        _exchange_nodes(proto.node, edits)
    else:
        for index, (made,) in edits.replaced.items():
            if isinstance(made, Node):
                _edit_node(proto.node[index], made)
            else:
                proto.node[index].CopyFrom(made)
    if lost:
        given = (made.outputs if isinstance(made, Node) else made.output for made in chain(*edits.replaced.values()))
        lost = lost.difference(*given)
    lost |= edits.gone_initializers
    if lost:
        _remove(proto.value_info, lambda value: value.name in lost)
    if isinstance(proto, FunctionProto):
        return
    if edits.gone_initializers:
        _remove(proto.initializer, lambda tensor: tensor.name in edits.gone_initializers)
    proto.initializer.extend(edits.constants)
    if constants_are_inputs:
        for tensor in edits.constants:
            value = proto.input.add(name=tensor.name)
            value.type.tensor_type.elem_type = tensor.data_type
            write_shape(ValueType("tensor", None, tuple(tensor.dims)), value.type.tensor_type)


def _exchange_nodes(nodes: Any, edits: GraphEdits) -> None:
    """Put the nodes that replace others in their places: behind the last one first, and then all in order, which moves
    no node in memory and copies none.
    """
    kept = list(nodes)
    replaced = {**edits.replaced, **dict.fromkeys(edits.unread, ())}
    nodes.extend(made for made_nodes in replaced.values() for made in made_nodes if not isinstance(made, Node))
    # A node is the same object for as long as it is held.
    added = nodes[len(kept) :]
    width = max(map(len, replaced.values())) + 1
    place = {id(node): index * width for index, node in enumerate(kept)}
    behind, gone, following = len(kept) * width, 0, iter(added)
    for index, made_nodes in replaced.items():
        stays = False
        for position, made in enumerate(made_nodes):
            if isinstance(made, Node):
                stays = True
                _edit_node(kept[index], made)
            place[id(kept[index] if isinstance(made, Node) else next(following))] = index * width + position
        if not stays:
            place[id(kept[index])] = behind
            gone += 1
    nodes.sort(key=lambda node: place[id(node)])
    del nodes[len(nodes) - gone :]


def _edit_node(node: NodeProto, edited: Node) -> None:
    """Give a node what it has as edited. Attributes that stay are left alone, with the graphs in them."""
    changed = [] if edited.original is None else changed_attributes(edited.original, edited.attributes)
    node.op_type = edited.op_type
    if plain_domain(node.domain) != edited.domain:
        node.ClearField("domain")
        if edited.domain:
            node.domain = edited.domain
    if node.input[:] != edited.inputs:
        node.input[:] = edited.inputs
    if node.output[:] != edited.outputs:
        node.output[:] = edited.outputs
    if changed:
        _remove(node.attribute, lambda attribute: attribute.name in changed)
        node.attribute.extend(edited.attributes[name] for name in changed if name in edited.attributes)
    if edited.wrap is not None:
        edited.wrap(node)


def _remove(entries: Any, unwanted: Callable[[Any], bool]) -> None:
    """Delete the entries of a repeated protobuf field that are unwanted."""
    for index in range(len(entries) - 1, -1, -1):
        if unwanted(entries[index]):
            del entries[index]


def _import_versions(model: ModelProto, versions: Mapping[str, int]) -> None:
    """Set the versions of domains that the model and its functions import."""
    for entries in (model.opset_import, *(function.opset_import for function in model.functions)):
        for entry in entries:
            entry.version = versions.get(plain_domain(entry.domain), entry.version)


def _set_opset(model: ModelProto, opset: int) -> None:
    _import_versions(model, {"": opset})
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
