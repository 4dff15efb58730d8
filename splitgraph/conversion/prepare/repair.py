"""Repairing the nodes that an exporter wrote wrongly and that have one reading only, as inference found them."""

from __future__ import annotations

from splitgraph.conversion.ladder.guard import AttributeEdit
from splitgraph.conversion.ladder.schema_history import version_at
from splitgraph.conversion.planning.plan import Plan
from splitgraph.conversion.rewrite import Change
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.order import sort_nodes
from splitgraph.graph.scopes import Scope, node_label
from splitgraph.inference import Walked
from splitgraph.inference.repairs import Repair
from splitgraph.onnx_proto import ModelProto


def plan_repairs(walked: Walked) -> Plan | None:
    """What repairs the model's nodes; None where nothing is to be repaired."""
    plan = Plan()
    for scope in walked.scopes:
        detail = walked.graphs.get(scope.path)
        for index, repairs in ({} if detail is None else detail.repairs).items():
            _repair(plan, scope, index, repairs)
    return plan if plan.edits else None


def in_order(model: ModelProto, walked: Walked) -> tuple[ModelProto, Diagnostic | None]:
    """The model with its nodes in topological order, and a note of that; itself where they are, and where graphs are
    nested too deep for the model to be converted at all.
    """
    found = [each.location for each in walked.diagnostics if each.code == "SG112"]
    if not found or any(each.code == "SG114" for each in walked.diagnostics):
        return model, None
    copy = ModelProto()
    copy.CopyFrom(model)
    sort_nodes(copy)
    text = f"the nodes are written in topological order, in which they were not in {', '.join(found)}"
    return copy, diagnostic("SG112", text, severity="info", help="Nothing to do.")


def _repair(plan: Plan, scope: Scope, index: int, repairs: list[Repair]) -> None:
    node = scope.nodes[index]
    location = f"{scope.location}/{node_label(node, index)}"
    edits = plan.at(scope.path).attributes.setdefault(index, [])
    for repair in repairs:
        why = f"repaired: {repair.what}"
        edits += [AttributeEdit(name, "remove", None, why) for name in repair.dropped]
        if repair.added is not None:
            edits.append(AttributeEdit(repair.added.name, "set", repair.added, why))
        plan.notes.append(diagnostic("SG401", repair.what, location, severity="info"))
    version = version_at(node.op_type, scope.imports.get("", 1))
    label = node.op_type if version is None else f"{node.op_type}-{version.since_version}"
    plan.changes.append(Change(location, label, label, "repaired: " + "; ".join(repair.what for repair in repairs)))
