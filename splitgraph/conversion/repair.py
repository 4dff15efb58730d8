"""Repairing nodes that an exporter wrote wrongly and that have only one possible meaning; inference finds them."""

from __future__ import annotations

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.findings.acceptance import REPAIRED
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.input_defaults import findings_about_defaults
from splitgraph.inference.walk_results import Repair
from splitgraph.model.names import FreshNames, named_outputs, used_names
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import versioned_operator
from splitgraph.model.scopes import Scope, node_label, roots, sort_nodes
from splitgraph.options import STRICT, Leeway


def repaired(
    model: ModelProto, leeway: Leeway = STRICT, walked: Walked | None = None
) -> tuple[Rewrite[ModelProto], Walked]:
    """Return the rewrite that repairs nodes and sorts them into topological order, and the inference of its model: a
    copy, or the model itself where nothing changes. Accepted are the findings of the original that are left.

    walked: the inference of the model with this leeway, where the caller has it.
    """
    walked = walk_model(model, leeway) if walked is None else walked
    accepted = tuple(finding for finding in walked.accepted if finding.code not in REPAIRED)
    assumed = findings_about_defaults(model, assumed=leeway.assume_defaults)
    notes = [*walked.stale, *assumed, *walked.doubled, *walked.lenient, *walked.tolerated]
    model, told_order = _in_order(model, walked)
    if told_order is not None:
        walked = walk_model(model, walked.leeway)
        notes.append(told_order)
    rewrite = step(model, (), notes, accepted=accepted)
    plan = plan_repairs(model, walked)
    if plan is None or plan.needed(walked):
        return rewrite, walked
    rewrite = rewrite.then(apply_plan(plan, model))
    return rewrite, walk_model(rewrite.model, walked.leeway)


def plan_repairs(model: ModelProto, walked: Walked) -> Plan | None:
    """Return the plan that repairs the model's nodes; None where there is nothing to repair. walked: the model's
    inference.
    """
    plan, names = Plan(), FreshNames(used_names(model, walked.scopes))
    for root in roots(walked.scopes):
        plan.start(root)
        for scope in root:
            detail = walked.graphs.get(scope.path)
            for index, repairs in ({} if detail is None else detail.repairs).items():
                _repair(plan, scope, index, repairs, names)
    return plan if plan.edits else None


def _in_order(model: ModelProto, walked: Walked) -> tuple[ModelProto, Diagnostic | None]:
    """Return a copy of the model with its nodes in topological order, and a note. The model itself where they are in
    order, and where its graphs are nested too deep for any conversion.
    """
    locations = [finding.location for finding in walked.diagnostics if finding.code == "SG112"]
    if not locations or any(finding.code == "SG114" for finding in walked.diagnostics):
        return model, None
    copy = ModelProto()
    copy.CopyFrom(model)
    sort_nodes(copy)
    text = f"the nodes were not in topological order in {', '.join(locations)}; they are sorted now"
    return copy, diagnostic("SG112", text, severity="info", help="Nothing to do.")


def _repair(plan: Plan, scope: Scope, index: int, repairs: list[Repair], names: FreshNames) -> None:
    node, location = scope.nodes[index], f"{scope.location}/{node_label(scope.nodes[index], index)}"
    edited = Node.of(node)
    for repair in repairs:
        for name in repair.dropped:
            edited.attributes.pop(name, None)
        if repair.added is not None:
            edited.attributes.pop(repair.added.name, None)
            edited.attributes[repair.added.name] = repair.added
        if repair.more_outputs:
            edited.outputs = list(named_outputs(node, [*node.output, *[""] * repair.more_outputs], names))
        plan.notes.append(diagnostic("SG401", repair.what, location, severity="info"))
    label = versioned_operator(node, scope.imports)
    why = "repaired: " + "; ".join(repair.what for repair in repairs)
    plan.replace(scope, index, Replacement([edited], (), why, label, label))
