"""Operator versions newer than this release of splitgraph: conversion refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from splitgraph.conversion.operators import decision
from splitgraph.conversion.operators.registry import UNDECIDED
from splitgraph.conversion.planning.plan import Plan, opset_of
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, node_label, plain_domain
from splitgraph.onnx_proto import NodeProto
from splitgraph.schemas.history import version_at, versions_between
from splitgraph.variants import SPLIT_OPERATORS, variant_of
from splitgraph.variants.variadic_function import variadic_function


def unknown_version(op_type: str, opset: int) -> int | None:
    """The version of an operator of ai.onnx at an opset, if splitgraph does not know it; otherwise None."""
    found = version_at(op_type, opset)
    if found is None:
        return None
    since = found.since_version
    if op_type in SPLIT_OPERATORS:
        return since if variant_of(op_type, since) is None else None
    is_first = len(versions_between(op_type, 1, opset)) == 1
    return since if not is_first and decision(op_type, since) is UNDECIDED else None


def refusal(op_type: str, since_version: int, location: str, *, is_target: bool) -> Diagnostic:
    """The blocker for a node of a version that splitgraph does not know. is_target: a lower target opset would help."""
    text = f"{op_type} changes at opset {since_version}: {UNDECIDED.reason}"
    newer = f"a splitgraph that knows {op_type}-{since_version}"
    help = f"Ask for opset {since_version - 1} or older, or install {newer}." if is_target else f"Install {newer}."
    return diagnostic("SG405", text, location, help=help)


def refuse_unknown_versions(plan: Plan, scopes: Sequence[Scope]) -> None:
    """Block new nodes with such a version. Nodes that replace splits are written for the target opset and cross no
    boundary, so that the guard does not see them.
    """
    held: Mapping[object, Scope] = {scope.path: scope for scope in scopes}
    for path, edits in plan.edits.items():
        scope = held[path]
        opset = opset_of(scope.imports) if plan.opset is None else plan.opset
        for index, made in edits.replaced.items():
            _refuse(
                plan,
                [node for node in made if isinstance(node, NodeProto)],
                opset,
                f"{scope.location}/{node_label(scope.nodes[index], index)}",
            )
    if plan.variadic_parts:
        opset = opset_of(scopes[0].imports)
        _refuse(plan, variadic_function(min(plan.variadic_parts), opset).node, opset, scopes[0].location)


def _refuse(plan: Plan, nodes: Iterable[NodeProto], opset: int, location: str) -> None:
    for op_type in dict.fromkeys(node.op_type for node in nodes if plain_domain(node.domain) == ""):
        since = unknown_version(op_type, opset)
        if since is not None:
            plan.blockers.append(refusal(op_type, since, location, is_target=plan.opset is not None))
