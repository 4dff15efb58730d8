"""Nodes with accepted findings on the way to another opset: a node stays as it is, or its finding is a blocker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from splitgraph.conversion.ladder.graph_context import GraphContext
from splitgraph.conversion.ladder.guard import CONTRADICTIONS, Route, check_node, route_of
from splitgraph.conversion.nodes.crossing import NodeFacts
from splitgraph.conversion.nodes.element_types import formal_at, possible_types
from splitgraph.conversion.nodes.node_form import NodeForm
from splitgraph.conversion.nodes.omitted_arguments import reads_left_out
from splitgraph.conversion.operators import decision
from splitgraph.onnx_proto import NodeProto
from splitgraph.schemas import Formal


def stays(node: NodeProto, graph: GraphContext, left_out: Collection[str]) -> bool:
    """True for a node that an opset conversion keeps as it is, although an error of it was accepted.

    Its operator must mean the same at both opsets whatever the node is like, because the meaning of this node is
    unknown. What the node has and is not wrong (attributes, inputs, element types) must be allowed at the target.
    """
    route = route_of(node.op_type, graph.source, graph.target)
    if not isinstance(route, Route):
        return route is None
    if any(decision(newer.op, newer.since_version) is not None for _, newer in route.crossings):
        return False
    if reads_left_out(node, left_out):
        return False
    facts = graph.facts(NodeForm.of(node), node, graph.source, "")
    try:
        edits, blockers = check_node(_without_wrong_types(facts, route))
    except CONTRADICTIONS:
        # The guard relies on what inference accepts, and something of this node was not.
        return False
    return not edits and not blockers


def _without_wrong_types(facts: NodeFacts, route: Route) -> NodeFacts:
    """The facts without the element types that the operator does not allow at the source either: the node is no less
    valid at the target for these.
    """
    inputs = _allowed(facts.input_dtypes, facts.input_kinds, route.start.inputs)
    return replace(facts, input_dtypes=inputs, output_dtypes=[None] * len(facts.output_dtypes))


def _allowed(dtypes: Sequence[str | None], kinds: Sequence[str | None], formals: Sequence[Formal]) -> list[str | None]:
    kept: list[str | None] = []
    for position, (dtype, kind) in enumerate(zip(dtypes, kinds, strict=True)):
        formal = formal_at(formals, position)
        fits = formal is not None and possible_types(formal, dtype, kind) <= formal.types
        kept.append(dtype if fits else None)
    return kept
