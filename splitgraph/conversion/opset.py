"""Converting a whole model to another opset: every split through its canonical form, every other node by the generic
guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from splitgraph.conversion.finish.declared_casts import declare_casts, loses_cast_types
from splitgraph.conversion.finish.ir_version import IRVersion, check_ir_version, fit_ir_version, told_kept
from splitgraph.conversion.finish.part_names import has_unnamed_parts, name_parts
from splitgraph.conversion.ladder.guard import CONTRADICTIONS, is_unknown, route_of
from splitgraph.conversion.ladder.ladder import Ladder
from splitgraph.conversion.ladder.schema_history import version_at
from splitgraph.conversion.ladder.unknown_versions import refuse_unknown_versions
from splitgraph.conversion.ladder.values import Values
from splitgraph.conversion.left_out import find_left_out
from splitgraph.conversion.operators import load_families
from splitgraph.conversion.planning.edits import edit_in_place, replace_by_forms
from splitgraph.conversion.planning.emission import new_emission
from splitgraph.conversion.planning.plan import Plan, apply_plan, opset_of
from splitgraph.conversion.planning.use_counts import Uses
from splitgraph.conversion.prepare.collecting_loops import (
    LOOPS_CARRY_SEQUENCES_FROM,
    collects_in_a_loop,
    plan_collecting_loops,
)
from splitgraph.conversion.prepare.inlining import inline_functions, told_inlined
from splitgraph.conversion.prepare.repair import in_order, plan_repairs
from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.conversion.splits.sequences import plan_sequences
from splitgraph.conversion.splits.to_opset import plan_splits
from splitgraph.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.graph.names import FreshNames, used_names
from splitgraph.graph.scopes import (
    MAIN,
    FunctionKey,
    Scope,
    called_function,
    function_key,
    function_location,
    node_label,
    opset_imports,
    plain_domain,
)
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.operators import plugin_advice
from splitgraph.inference.walk_results import Visit
from splitgraph.onnx_proto import ModelProto, NodeProto
from splitgraph.schemas import newest_opset
from splitgraph.variants import SPLIT_OPERATORS, variant_at

_NAME_OF: Callable[[NodeProto], str] = attrgetter("name")

_SEQUENCES_EXIST_FROM = 11
_HOW_TO_TYPE = "Declare the types of what operators that nobody knows give in value_info, to be certain."


def convert_opset(model: ModelProto, target: int, ir_version: IRVersion = None, *, owned: bool = False) -> Rewrite:
    """A copy of the model at another opset of ai.onnx, every node exact; the model itself is not changed.

    ir_version: of the result. None is the model's own, raised to what a newer opset needs or lowered to what came with
    an older one; "keep" lowers nothing. owned: nobody else has the model, so that it is edited itself and no copy is
    made. Raises ConversionError with every blocker, and SplitgraphError for an opset that does not exist.
    """
    newest = newest_opset(target)
    if not 1 <= target <= newest:
        raise SplitgraphError(f"there is no opset {target} of ai.onnx; splitgraph knows 1 to {newest}")
    check_ir_version(ir_version)
    load_families()
    own, drafted = model.ir_version, _draft(model, target)
    if drafted.plan.blockers:
        drafted = _with_functions_inlined(drafted, model, target)
    walked, plan = drafted.walked, drafted.plan
    source = walked.opset.get("", target)
    plan.raise_blockers(f"the model cannot go from opset {source} to {target}")
    # Asked before the model is edited.
    has_unnamed = has_unnamed_parts(walked)
    converted = apply_plan(plan, drafted.model, owned=owned or drafted.model is not model)
    opset = target if "" in walked.opset else None
    converted, told = fit_ir_version(converted, ir_version, opset, own, lowers=target < source)
    if source == opset:
        told = [*told, *told_kept(converted, source, ir_version)]
    after = opset_imports(converted.opset_import)
    changes = followed_by(drafted.changes, plan.changes)
    if source != target and has_unnamed:
        changes = followed_by(changes, name_parts(converted))
    found = tuple(dict.fromkeys((*drafted.notes, *plan.notes, *told)))
    return Rewrite(converted, tuple(changes), found, None, dict(walked.opset), after, plan.rounding)


class _Draft(NamedTuple):
    """A conversion up to its plan: the model as it was prepared, what was changed and noted of it, and the plan."""

    model: ModelProto
    walked: Walked
    changes: list[Change]
    notes: list[Diagnostic]
    plan: Plan


def _draft(model: ModelProto, target: int) -> _Draft:
    walked, changes, notes = walk_model(model), list[Change](), list[Diagnostic]()
    model, told_order = in_order(model, walked)
    if told_order is not None:
        walked, notes = walk_model(model), [told_order]
    for prepare in (_repaired, _without_collecting_loops, _without_sequences):
        first = prepare(model, walked, target)
        if first is not None:
            model = apply_plan(first, model)
            walked = walk_model(model)
            changes, notes = followed_by(changes, first.changes), [*notes, *first.notes]
    plan = plan_opset(model, walked, target)
    refuse_unknown_versions(plan, walked.scopes)
    return _Draft(model, walked, changes, notes, plan)


def _with_functions_inlined(first: _Draft, model: ModelProto, target: int) -> _Draft:
    """The draft of the model with its local functions inlined, where that takes blockers away; else the first. In the
    body of a function an attribute or a type may be unknown that each call gives.
    """
    # A function that is named as an operator of ai.onnx may be meant or not.
    if _errors(first.walked) or any(plain_domain(function.domain) == "" for function in model.functions):
        return first
    try:
        inlined = inline_functions(model)
    except ValueError:
        return first
    if inlined is model:
        return first
    second = _draft(inlined, target)
    if len(second.plan.blockers) >= len(first.plan.blockers):
        return first
    text = f"{told_inlined(model, ours_too=False)}; their bodies as written cannot go to opset {target}"
    return second._replace(notes=[diagnostic("SG413", text, "main", severity="info"), *second.notes])


def followed_by(earlier: Sequence[Change], later: Sequence[Change]) -> list[Change]:
    """The changes of a rewrite and of the one after it; a node that both changed was changed once. Where nodes share a
    name, which of them is which is not known, and each change is told.
    """
    before, after = (Counter(change.location for change in changes) for changes in (earlier, later))
    again = {change.location: change for change in later if before[change.location] == after[change.location] == 1}
    made = []
    for change in earlier:
        last = again.get(change.location)
        if last is not None:
            why = "; ".join(dict.fromkeys((change.why, last.why)))
            change = replace(last, before=change.before, why=why)
        made.append(change)
    return [*made, *(change for change in later if change.location not in again)]


def _repaired(_: ModelProto, walked: Walked, __: int) -> Plan | None:
    """What repairs the nodes that have one reading only, so that what reads them knows their types."""
    return plan_repairs(walked)


def _without_collecting_loops(model: ModelProto, walked: Walked, target: int) -> Plan | None:
    """What makes loops stack the lists that they only collect, for an opset at which they carry none; None where there
    are none, or an error.
    """
    if target >= LOOPS_CARRY_SEQUENCES_FROM or not any(map(collects_in_a_loop, walked.scopes)):
        return None
    return _planned(model, walked, plan_collecting_loops)


def _without_sequences(model: ModelProto, walked: Walked, target: int) -> Plan | None:
    """What makes plain splits of the sequences whose readers allow it, for an opset that has none; None where there is
    none, or an error.
    """
    found = (split for graph in walked.graphs.values() for split in graph.splits.values())
    if target >= _SEQUENCES_EXIST_FROM or not any(split.variant.op_type == "SplitToSequence" for split in found):
        return None
    why = f"below opset {_SEQUENCES_EXIST_FROM} there are no sequences"
    return _planned(model, walked, partial(plan_sequences, why=why))


def _planned(model: ModelProto, walked: Walked, plan_root: Callable[..., None]) -> Plan | None:
    """What a function plans for each root of a model; None where that is nothing, or for a model with errors."""
    plan = Plan(left_out=find_left_out(model, walked.scopes))
    check_readable(plan, walked)
    if plan.blockers:
        return None
    names = FreshNames(used_names(model, walked.scopes))
    for root in roots(walked.scopes):
        plan_root(plan, model, walked, root, names, Uses(root))
    return None if plan.blockers or not plan.edits else plan


def check_readable(plan: Plan, walked: Walked) -> None:
    """Make every error of the model a blocker. A shape that is declared wrongly is kept
    as it is, with a warning: runtimes go by what nodes give, and so does conversion.
    """
    plan.blockers += _errors(walked)
    for found in walked.misdeclared:
        plan.notes.append(replace(found, severity="warning", message=f"{found.message}; it is kept as declared"))


def _errors(walked: Walked) -> list[Diagnostic]:
    return [found for found in walked.diagnostics if found.severity == "error"]


def plan_opset(model: ModelProto, walked: Walked, target: int) -> Plan:
    """Everything that the conversion to `target` edits, or what blocks it."""
    main = walked.graphs.get(MAIN)
    if main is not None:
        # Names that the walk knows are not listed again. Nor are those of nodes, which a new name hardly ever is: that
        # is looked at in the end, for in a large model they take as much memory as all else that is planned. ONNX keeps
        # names of nodes and of values apart, so that those of new initializers need not be looked for among them.
        names = FreshNames(used_names(model, walked.scopes, defined=MAIN), main.types)
        plan = _plan_opset(model, walked, target, names)
        others = names.given - {held.name for edits in plan.edits.values() for held in edits.new_initializers}
        if not others or others.isdisjoint(map(_NAME_OF, walked.scopes[0].nodes)):
            return plan
    return _plan_opset(model, walked, target, FreshNames(used_names(model, walked.scopes)))


def _plan_opset(model: ModelProto, walked: Walked, target: int, names: FreshNames) -> Plan:
    plan = Plan(opset=target, left_out=find_left_out(model, walked.scopes))
    if loses_cast_types(walked.opset.get("", target), target):
        plan.finish = declare_casts
    check_readable(plan, walked)
    if any(found.code == "SG103" for found in plan.blockers):
        return plan
    _refuse_training(plan, model, walked, target)
    _refuse_ambiguous_functions(plan, model, walked, target)
    functions = frozenset(function_key(function) for function in model.functions)
    for root in roots(walked.scopes):
        uses = Uses(root)
        touched = {scope.path: _touched(scope, walked.visits(scope), target, functions) for scope in root}
        splits = {path: found.splits for path, found in touched.items()}
        for op_type in dict.fromkeys(name for found in touched.values() for name in found.unknown):
            text = f"ai.onnx has no operator {op_type}: it is kept, and what it means at opset {target} is not known"
            plan.notes.append(diagnostic("SG303", text, "main", severity="warning", help=plugin_advice(op_type)))
        plan_splits(plan, model, walked, root, names, target, uses, splits)
        first, blocked = len(plan.changes), list[Sequence[Diagnostic]]()
        for scope in reversed(root):
            blocked += _plan_others(plan, model, walked, scope, target, names, uses, touched[scope.path].others)
        plan.changes[first:] = reversed(plan.changes[first:])
        plan.blockers += [found for each in reversed(blocked) for found in each]
    return plan


class Touched(NamedTuple):
    """The nodes of ai.onnx in a graph that cannot just be kept, by index: splits, and others; and the operators that
    nobody knows, which are kept.
    """

    splits: list[int]
    others: list[int]
    unknown: list[str]


def _touched(scope: Scope, visits: Sequence[Visit | None], target: int, functions: Collection[FunctionKey]) -> Touched:
    source, found = scope.imports.get(""), Touched([], [], [])

    def place_of(node: NodeProto) -> list[int] | None:
        op_type = node.op_type
        if plain_domain(node.domain) != "" or (functions and called_function(node) in functions):
            return None
        if op_type in SPLIT_OPERATORS:
            return None if variant_at(op_type, opset_of(scope.imports)) is None else found.splits
        if source is None or source == target:
            return None
        if is_unknown(op_type):
            found.unknown.append(op_type)
        return None if route_of(op_type, source, target) is None else found.others

    nodes = scope.nodes
    # Asked once for nodes of one visit, which are of one operator; most need nothing, and are not looked at.
    places = {visit: place_of(nodes[visit.index]) for visit in dict.fromkeys(visits) if visit is not None}
    wanted = {None, *(visit for visit, place in places.items() if place is not None)}
    for index in [index for index, visit in enumerate(visits) if visit in wanted]:
        visit = visits[index]
        place = place_of(nodes[index]) if visit is None else places[visit]
        if place is not None:
            place.append(index)
    return found


def _refuse_training(plan: Plan, model: ModelProto, walked: Walked, target: int) -> None:
    """The graphs of training_info are of the model's opset too, but inference does not walk them."""
    if walked.opset.get("", target) == target:
        return
    for index, training in enumerate(model.training_info):
        if training.initialization.node or training.algorithm.node:
            text = "the training graphs are at the model's opset, and splitgraph does not convert them"
            help = "Remove training_info from the model, which runtimes for inference do not read."
            plan.blockers.append(diagnostic("SG409", text, f"training_info[{index}]", help=help))


def _refuse_ambiguous_functions(plan: Plan, model: ModelProto, walked: Walked, target: int) -> None:
    """Which of a function and an operator of one name is meant is left to runtimes (onnx.proto, ModelProto.functions):
    onnxruntime takes the operator, onnx's evaluator the function. Where the operator is the same at both opsets, each
    still gives what it gave.
    """
    source = walked.opset.get("", target)
    for function in model.functions:
        if plain_domain(function.domain) != "":
            continue
        if version_at(function.name, source) != version_at(function.name, target):
            text = (
                f"a local function is named as {function.name} of ai.onnx, and which a node means is left to runtimes"
            )
            help = "Rename the function or its domain, or inline it."
            plan.blockers.append(diagnostic("SG409", text, function_location(function), help=help))


def roots(every: Sequence[Scope]) -> Iterator[list[Scope]]:
    """The scopes of the main graph, then those of each function, each with its subgraphs."""
    group: list[Scope] = []
    key: object = None
    for scope in every:
        mine = scope.path[:2] if scope.in_function else ()
        if group and mine != key:
            yield group
            group = []
        key = mine
        group.append(scope)
    if group:
        yield group


def _plan_others(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    scope: Scope,
    target: int,
    names: FreshNames,
    uses: Uses,
    touched: Sequence[int],
) -> list[Sequence[Diagnostic]]:
    """Plan what becomes of the nodes, the last one first; what blocks each, in that order."""
    blocked: list[Sequence[Diagnostic]] = []
    if not touched:
        return blocked
    values, left_out = Values(walked, scope.path), plan.left_out.inputs_in(scope)
    ladder = Ladder(scope.imports[""], target, values, scope.in_function, partial(uses.is_read, scope.path), left_out)
    visits, nodes = walked.visits(scope), scope.nodes
    edits = plan.edits.get(scope.path)
    # A node that is none of its operator's has no meaning to keep; one that was only declared wrongly has.
    invalid = {found.location for found in plan.blockers if found.code != "SG301"}
    # An invalid node of a function is told where the function is called, so that `invalid` does not hold it.
    is_valid = not _errors(walked)
    # What stays as it is does so for its operator, attributes and types, which nodes of one visit share.
    kept: set[int] = set()
    # From the last node on: what only fed a node that needs it no longer goes with it, and needs no conversion.
    for index in reversed(touched):
        visit = visits[index]
        if id(visit) in kept or (edits is not None and index in edits.replaced):
            continue
        node = nodes[index]
        key = ladder.key_of(node, visit)
        carried = ladder.again(key, node)
        if carried is not None and carried.is_kept:
            # What a call leaves out is no type, and asked of each node by itself.
            if visit is not None and not left_out:
                kept.add(id(visit))
            continue
        location = f"{scope.location}/{node_label(node, index)}"
        if location in invalid:
            continue
        if carried is not None and carried.in_place is not None:
            made = carried.in_place
            edit_in_place(plan, uses, scope, index, made, Change(location, node.op_type, made.op_type, carried.why))
            edits = plan.edits[scope.path]
            continue
        emission = new_emission(plan, model, scope, node, index, names, target)
        try:
            carried = carried or ladder.carry(node, key, location, emission)
        except CONTRADICTIONS:
            # An adapter relies on what inference accepts. The errors that inference found are blockers already, but for
            # those of nodes that never run, of which most can be carried over all the same.
            if is_valid and not walked.never_run:
                raise
            blocked.append(walked.never_run if is_valid else ())
            continue
        blocked.append(carried.blockers)
        if visit is not None and carried.is_kept and not left_out:
            kept.add(id(visit))
        if carried.edits:
            plan.at(scope.path).attributes.setdefault(index, []).extend(carried.edits)
            plan.changes.append(Change(location, node.op_type, node.op_type, carried.why))
        elif carried.forms is not None:
            replace_by_forms(plan, uses, scope, index, carried, emission, location)
            edits = plan.edits[scope.path]
    for assumption in ladder.assumptions:
        text = f"{assumption}; the element type is unknown here and taken to be another one"
        plan.notes.append(diagnostic("SG403", text, scope.location, severity="warning", help=_HOW_TO_TYPE))
    return blocked
