"""Planning the conversion of a whole model to another opset: splits first, then all other nodes of ai.onnx."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.cache import ConversionCache, Entries, Key
from splitgraph.conversion.keep import CONTRADICTIONS, Route, is_unknown, route_of
from splitgraph.conversion.known_values import KnownValues, find_left_out, reads_left_out
from splitgraph.conversion.ladder import Blocked, Ladder
from splitgraph.conversion.node import Node
from splitgraph.conversion.operators.registry import decision
from splitgraph.conversion.operators.standard import standard_form, why_not
from splitgraph.conversion.plan import Plan, Replacement, errors_of, needed_by_conversion, opset_of
from splitgraph.conversion.splits.lower import plan_splits
from splitgraph.findings.diagnostics import Diagnostic, Severity, diagnostic
from splitgraph.inference import Walked
from splitgraph.inference.operators import plugin_advice
from splitgraph.inference.repairs import FIRST_OPSET, INT32_INPUTS
from splitgraph.inference.walk_results import Form, GraphDetail, Visit
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.fit import formal_at, misfits, possible_types
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import (
    MACHINE_LEARNING,
    MAIN,
    FunctionKey,
    Scope,
    called_function,
    function_key,
    function_location,
    node_label,
    operator_name,
    plain_domain,
    roots,
)
from splitgraph.model.value_type import ValueType
from splitgraph.splits import SPLIT_OPERATORS, variant_at

# Below this opset, onnx does not infer the type of Cast.
_CASTS_ARE_INFERRED_FROM = 6
_NAME_OF: Callable[[NodeProto], str] = attrgetter("name")
_HOW_FORMS_ARE_VERIFIED = (
    "Nothing to do. No runtime reads the node as it is: verification runs the original with this node in the form of "
    "its opset."
)
_HOW_TO_TYPE = "To be certain, declare the output types of unknown operators in value_info."
# Operators that round. Where they replace another operator, the results may differ in the last bits.
_ROUNDING = kinds.BASIC | kinds.ADDED | kinds.ROUNDED | {"Div"}


class Goal(NamedTuple):
    """What a model is converted to.

    opset: of ai.onnx. domains: the versions of other domains. standard: operators of other domains that have a standard
    form are written in those of ai.onnx.
    """

    opset: int
    domains: Mapping[str, int] = {}
    standard: bool = False

    def ways(self, scope: Scope) -> dict[str, tuple[int, int]]:
        """Return the versions of other domains that a graph imports, each with that of the result."""
        own = {domain: version for domain, version in scope.imports.items() if domain}
        return {domain: (version, self.domains.get(domain, version)) for domain, version in own.items()}


def plan_opset(model: ModelProto, walked: Walked, goal: Goal) -> Plan:
    """Return the plan of the conversion to other opsets: all edits, or all blockers."""
    main = walked.graphs.get(MAIN)
    if main is not None:
        # The names of all nodes take as much memory as the rest of the plan, and a fresh name is hardly ever one of
        # them. So they are compared afterwards. ONNX keeps names of nodes and values apart: initializers do not matter.
        names = FreshNames(used_names(model, walked.scopes, defined=MAIN), main.types)
        plan = _plan_opset(model, walked, goal, names)
        others = names.given - {constant.name for edits in plan.edits.values() for constant in edits.constants}
        if not others or others.isdisjoint(map(_NAME_OF, walked.scopes[0].nodes)):
            return plan
    return _plan_opset(model, walked, goal, FreshNames(used_names(model, walked.scopes)))


def _plan_opset(model: ModelProto, walked: Walked, goal: Goal, names: FreshNames) -> Plan:
    to_opset = goal.opset
    plan = Plan(opset=to_opset, domains=goal.domains, left_out=find_left_out(model, walked.scopes))
    if to_opset < _CASTS_ARE_INFERRED_FROM <= walked.opset.get("", to_opset):
        plan.finish = declare_casts
    plan.refuse_errors(walked)
    if any(blocker.code == "SG103" for blocker in plan.blockers):
        return plan
    _refuse_training(plan, model, walked, goal)
    _refuse_ambiguous_functions(plan, model, walked, to_opset)
    functions = frozenset(function_key(function) for function in model.functions)
    # Of functions, by the opsets that they import.
    shared: dict[object, Entries] = {}
    for root in roots(walked.scopes):
        imported = frozenset(root[0].imports.items())
        entries = shared.setdefault(imported, {}) if root[0].in_function else None
        _plan_root(plan, model, walked, root, goal, names, functions, entries)
    return plan


def _refuse_training(plan: Plan, model: ModelProto, walked: Walked, goal: Goal) -> None:
    """Block models with training graphs, which have the model's opset, but which inference does not read."""
    goals = {"": goal.opset, **goal.domains}
    if all(walked.opset.get(domain, opset) == opset for domain, opset in goals.items()):
        return
    for index, training in enumerate(model.training_info):
        if training.initialization.node or training.algorithm.node:
            text = "the model has training graphs, which splitgraph cannot convert"
            help = "Remove training_info from the model, which runtimes for inference do not read."
            plan.blockers.append(diagnostic("SG409", text, f"training_info[{index}]", help=help))


def _refuse_ambiguous_functions(plan: Plan, model: ModelProto, walked: Walked, to_opset: int) -> None:
    """Block functions with the name of an operator that changes between the opsets.

    onnx.proto (ModelProto.functions) leaves to runtimes which of the two a node means: onnxruntime takes the operator,
    onnx's evaluator the function.
    """
    from_opset = walked.opset.get("", to_opset)
    for function in model.functions:
        if plain_domain(function.domain) != "":
            continue
        if meant_version(function.name, from_opset) != meant_version(function.name, to_opset):
            text = (
                f"a local function has the name of the operator {function.name}; runtimes disagree which a node means"
            )
            help = "Rename the function or its domain, or inline it."
            plan.blockers.append(diagnostic("SG409", text, function_location(function), help=help))


def _plan_root(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    goal: Goal,
    names: FreshNames,
    functions: Collection[FunctionKey],
    shared: Entries | None,
) -> None:
    to_opset = goal.opset
    plan.start(root)
    plan.notes += [note for scope in root for note in _form_findings(scope, forms_in(walked, scope))]
    affected = {
        scope.path: _affected(scope, walked.visits(scope), goal, functions, forms_in(walked, scope)) for scope in root
    }
    for blocker in [blocker for scope in root for blocker in affected[scope.path].without_form]:
        (plan.blockers if blocker.severity == "error" else plan.notes).append(blocker)
    for op_type in dict.fromkeys(name for nodes in affected.values() for name in nodes.unknown):
        text = f"ai.onnx has no operator {op_type}: it is kept, but its meaning at opset {to_opset} is unknown"
        plan.notes.append(diagnostic("SG303", text, "main", severity="warning", help=plugin_advice(op_type)))
    caches = {
        scope.path: ConversionCache(KnownValues(walked, scope.path), names, plan.left_out.inputs_in(scope), shared)
        for scope in root
        if affected[scope.path].splits or affected[scope.path].others
    }
    splits = {path: nodes.splits for path, nodes in affected.items() if nodes.splits}
    if splits:
        plan_splits(plan, model, walked, root, names, to_opset, splits, caches)
    first, blocked = len(plan.changes), list[Sequence[Diagnostic]]()
    for scope in reversed(root):
        others = affected[scope.path].others
        if others:
            planner = _ScopePlanner(plan, model, walked, scope, goal, names, caches[scope.path])
            blocked += planner.plan_nodes(others)
    plan.changes[first:] = reversed(plan.changes[first:])
    plan.blockers += [nodes for group in reversed(blocked) for nodes in group]


class _Affected(NamedTuple):
    """The nodes of a graph that may change, by index: splits and others. unknown: operators that ai.onnx
    does not have, which are kept. without_form: findings about nodes of other domains that have no standard form.
    """

    splits: list[int]
    others: list[int]
    unknown: list[str]
    without_form: list[Diagnostic]


def forms_in(walked: Walked, scope: Scope) -> Mapping[int, Form]:
    """Return, by index, whose form the nodes of a graph have that were read by their form."""
    detail = walked.graphs.get(scope.path)
    return {} if detail is None else detail.forms


def _form_findings(scope: Scope, forms: Mapping[int, Form]) -> list[Diagnostic]:
    return [
        diagnostic(
            "SG401",
            f"read as {form.label}, which {form.text}",
            f"{scope.location}/{node_label(scope.nodes[index], index)}",
            severity="info",
            help=_HOW_FORMS_ARE_VERIFIED,
        )
        for index, form in forms.items()
    ]


def _affected(
    scope: Scope,
    visits: Sequence[Visit | None],
    goal: Goal,
    functions: Collection[FunctionKey],
    forms: Mapping[int, Form],
) -> _Affected:
    affected, to_opset, ways = _Affected([], [], [], []), goal.opset, goal.ways(scope)

    def list_for(index: int) -> list[int] | None:
        node = nodes[index]
        op_type, from_opset = node.op_type, forms[index].opset if index in forms else scope.imports.get("")
        domain = plain_domain(node.domain)
        if functions and called_function(node) in functions:
            return None
        if goal.standard and standard_form(domain, op_type, from_opset) is not None:
            return affected.others
        if domain in ways and len(set(ways[domain])) == 2:
            return None if route_of(op_type, *ways[domain], domain) is None else affected.others
        if domain != "":
            return None
        if op_type in SPLIT_OPERATORS:
            return None if variant_at(op_type, opset_of(scope.imports)) is None else affected.splits
        if from_opset is None or from_opset == to_opset:
            return None
        if is_unknown(op_type, from_opset):
            affected.unknown.append(op_type)
        return None if route_of(op_type, from_opset, to_opset) is None else affected.others

    nodes = scope.nodes
    # Nodes of one visit have one operator, so that one of them is asked. Most nodes do not change.
    first = dict(zip(reversed(visits), reversed(range(len(visits))), strict=True))
    lists = {visit: list_for(first[visit]) for visit in dict.fromkeys(visits) if visit is not None}
    wanted = {None, *(visit for visit, indices in lists.items() if indices is not None)}
    for index in [index for index, visit in enumerate(visits) if visit in wanted]:
        visit = visits[index]
        indices = list_for(index) if visit is None else lists[visit]
        if indices is not None:
            indices.append(index)
    if goal.standard:
        affected.without_form.extend(_without_form(scope, functions))
    return affected


def _without_form(scope: Scope, functions: Collection[FunctionKey]) -> Iterator[Diagnostic]:
    """Yield a finding for each reason for which nodes of another domain have no standard form: an error for what only
    onnxruntime reads, a note for what ONNX itself defines. It is about the first of the nodes.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for index, node in enumerate(scope.nodes):
        domain = plain_domain(node.domain)
        if domain == "" or called_function(node) in functions or standard_form(domain, node.op_type) is not None:
            continue
        reason = why_not(domain, node.op_type)
        if reason is not None:
            found.setdefault((domain, reason), []).append(index)
    for (domain, reason), indices in found.items():
        first, *others = dict.fromkeys(operator_name(scope.nodes[index]) for index in indices)
        named = f"{first} and {', '.join(others)}" if others else first
        has = "have" if others else "has"
        number = f" ({len(indices)} nodes)" if len(indices) > 1 else ""
        severity: Severity = "info" if domain == MACHINE_LEARNING else "error"
        place = f"{scope.location}/{node_label(scope.nodes[indices[0]], indices[0])}"
        yield diagnostic("SG425", f"{named}{number} {has} no standard form: {reason}", place, severity=severity)


@dataclass(slots=True)
class _ScopePlanner:
    """Plans all nodes of one graph but its splits."""

    plan: Plan
    model: ModelProto
    walked: Walked
    scope: Scope
    goal: Goal
    names: FreshNames
    cache: ConversionCache

    def plan_nodes(self, indices: Sequence[int]) -> list[Sequence[Diagnostic]]:
        """Plan the nodes with these indices, the last one first. Return the blockers of each, in that order.

        From the end, because a node whose only reader no longer needs it is removed and not converted.
        """
        scope, cache, blocked = self.scope, self.cache, list[Sequence[Diagnostic]]()
        is_read = partial(self.plan.is_read, scope.path)
        to_opset = self.goal.opset
        own = Ladder(
            scope.imports.get("", to_opset),
            to_opset,
            cache.values,
            scope.in_function,
            is_read,
            cache=cache,
            standard=self.goal.standard,
            domains=self.goal.ways(scope),
        )
        forms = forms_in(self.walked, scope)
        of_forms = {opset: replace(own, from_opset=opset) for opset in {form.opset for form in forms.values()}}
        visits, nodes, kept = self.walked.visits(scope), scope.nodes, cache.kept_visits
        edits = self.plan.edits.get(scope.path)
        # A wrongly declared node can be converted; a node with any other error has no meaning to preserve.
        invalid = {finding.location for finding in self.plan.blockers if finding.code != "SG301"}
        lenient = (self.walked.graphs.get(scope.path) or GraphDetail()).lenient
        aside = {index: finding for (path, index), finding in self.walked.set_aside.items() if path == scope.path}
        for index in reversed(indices):
            visit = visits[index]
            if visit in kept or (edits is not None and edits.changes(index)):
                continue
            node = nodes[index]
            ladder = of_forms[forms[index].opset] if index in forms else own
            if index in lenient and to_opset >= FIRST_OPSET and stays(node, ladder):
                continue
            if index in aside:
                blocked.append(() if stays(node, ladder) else (needed_by_conversion(aside[index]),))
                continue
            key = cache.key_of(node, visit)
            replacement = cache.find(key, node, index)
            if replacement is not None and replacement.nodes is None:
                cache.keep_visit(visit)
                continue
            location = f"{scope.location}/{node_label(node, index)}"
            if location in invalid:
                continue
            if replacement is None:
                try:
                    replacement = self._converted(node, index, key, location, ladder)
                except Blocked as refusal:
                    blocked.append(refusal.blockers)
                    continue
            if replacement.nodes is None:
                cache.keep_visit(visit)
            elif index in lenient and reads_forbidden(node, replacement):
                blocked.append((_written_anew(lenient[index]),))
            else:
                self.plan.rounding |= may_round(node, replacement)
                self.plan.replace(scope, index, replacement)
                edits = self.plan.edits.get(scope.path)
        for ladder in (own, *of_forms.values()):
            self.plan.notes += [*ladder.notes, *assumption_findings(ladder, scope)]
        return blocked

    def _converted(self, node: NodeProto, index: int, key: Key | None, location: str, ladder: Ladder) -> Replacement:
        """Return what becomes of a node. Raises Blocked, for an invalid node that never runs with what is wrong with
        it: that says more than where the conversion gets stuck.
        """
        emission = new_emission(self.plan, self.model, self.scope, node, index, self.names, self.goal.opset)
        try:
            return ladder.convert(node, key, location, emission)
        except Blocked as refusal:
            invalid_here = [finding for finding in self.walked.never_run if finding.location == location]
            raise Blocked(invalid_here or refusal.blockers) from None
        except CONTRADICTIONS:
            # Adapters rely on what inference accepts, and inference found what is wrong here: errors, which are
            # blockers already, or errors of nodes that never run. Most of those can still be converted. The location of
            # an error within a function is the call, so all errors count.
            has_errors = bool(errors_of(self.walked))
            if not has_errors and not self.walked.never_run:
                raise
            raise Blocked(() if has_errors else self.walked.never_run) from None


def may_round(node: NodeProto, replacement: Replacement) -> bool:
    """Return True if what replaces a node may differ in the last bits."""
    nodes = replacement.nodes or ()
    return any(made.op_type in _ROUNDING and made.op_type != node.op_type for made in nodes)


def assumption_findings(ladder: Ladder, scope: Scope) -> list[Diagnostic]:
    """Return the warnings about element types of a graph that are unknown and were assumed."""
    return [
        diagnostic(
            "SG403",
            f"{assumption}; the element type here is unknown and assumed to be another one",
            scope.location,
            severity="warning",
            help=_HOW_TO_TYPE,
        )
        for assumption in ladder.assumptions
    ]


def reads_forbidden(node: NodeProto, replacement: Replacement) -> bool:
    """Return True if what replaces a node reads an input of an element type that only the schema forbids. A node with
    other attributes is no other node.
    """
    nodes = replacement.nodes or ()
    forbidden = {node.input[index] for index in INT32_INPUTS.get(node.op_type, ()) if index < len(node.input)}
    if [(made.op_type, made.inputs) for made in nodes if isinstance(made, Node)] == [(node.op_type, node.input[:])]:
        return False
    read = {name for made in nodes if isinstance(made, Node) for name in made.reads}
    return not read.isdisjoint(forbidden or node.input)


def _written_anew(finding: Diagnostic) -> Diagnostic:
    """Return the blocker for a node with element types that only the schema forbids, if the node has to be replaced."""
    help = f"The conversion has to write this node in another way, for which the types must be allowed. {finding.help}"
    return replace(finding, severity="error", help=help)


def declare_casts(graph: GraphProto) -> None:
    """Declare the output type of each Cast of a graph, where it is not declared."""
    declared = {value.name for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if node.op_type != "Cast" or plain_domain(node.domain) != "" or node.output[0] in declared:
            continue
        # A reference to an attribute of the enclosing function has no value here.
        for dtype in [attribute.s for attribute in node.attribute if attribute.name == "to" and attribute.s]:
            value = graph.value_info.add(name=node.output[0])
            value.type.tensor_type.elem_type = TensorProto.DataType.Value(dtype.decode())


# Nodes with accepted findings -----------------------------------------------------------------------------------------


def stays(node: NodeProto, ladder: Ladder) -> bool:
    """Return True for a node that an opset conversion keeps as it is, although an error of it was accepted.

    Its operator must mean the same at both opsets whatever the node is like, because the meaning of this node is
    unknown. What the node has and is not wrong (attributes, inputs, element types) must be allowed at the target.
    """
    route = ladder.route_of(node)
    if not isinstance(route, Route):
        return route is None
    if any(decision(newer.op, newer.since_version, newer.domain) is not None for _, newer in route.boundaries):
        return False
    if reads_left_out(node, ladder.cache.left_out):
        return False
    try:
        return replace(ladder, values=_WithoutWrongTypes(ladder.values, node, route)).stays(node, "")
    except CONTRADICTIONS:
        # Steps rely on what inference accepts, and something of this node was not.
        return False


def gaining_meaning(walked: Walked, goal: Goal) -> list[Diagnostic]:
    """Return the blockers of nodes with accepted findings that have something which only the version at the target
    knows: an attribute, or more inputs or outputs. At the source, runtimes ignore it or refuse the node.
    """
    scope_of = {scope.path: scope for scope in walked.scopes}
    blockers = []
    for (path, index), accepted in walked.set_aside.items():
        scope = scope_of[path]
        node = scope.nodes[index]
        domain = plain_domain(node.domain)
        to_opset = goal.domains.get(domain) if domain else goal.opset
        from_opset = scope.imports.get(domain)
        if from_opset is not None and to_opset is not None and _gains(node, domain, from_opset, to_opset):
            blockers.append(needed_by_conversion(accepted))
    return blockers


def _gains(node: NodeProto, domain: str, from_opset: int, to_opset: int) -> bool:
    start, end = (meant_version(node.op_type, opset, domain) for opset in (from_opset, to_opset))
    if start is None or end is None or start.since_version == end.since_version:
        return False
    attributes = {attribute.name: attribute for attribute in node.attribute}
    unknown, left = (
        {each for each in misfits(version, attributes, node.input, node.output) if each.what == "more"}
        for version in (start, end)
    )
    return bool(unknown - left)


class _WithoutWrongTypes(KnownValues):
    """The known values without the element types that the operator of a node does not allow at the source either: the
    node is no less valid at the target for these.
    """

    def __init__(self, values: KnownValues, node: NodeProto, route: Route) -> None:
        self._values = values
        self._allowed = set[str]()
        for position, name in enumerate(node.input):
            formal, known = formal_at(route.start.inputs, position), values.type_of(name)
            kind = None if known.kind == "unknown" else known.kind
            if formal is not None and possible_types(formal, known.dtype, kind) <= formal.types:
                self._allowed.add(name)

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value."""
        known = self._values.type_of(name)
        return known if name in self._allowed else replace(known, dtype=None)
