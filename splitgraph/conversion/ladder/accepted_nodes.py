"""Nodes with accepted findings on the way to another opset: a node stays as it is, or its finding is a blocker."""

from __future__ import annotations

from dataclasses import replace

from splitgraph.conversion.ladder.climb import Ladder
from splitgraph.conversion.ladder.keep import CONTRADICTIONS, Route, route_of
from splitgraph.conversion.nodes.known_values import KnownValues, reads_left_out
from splitgraph.conversion.nodes.node import formal_at, possible_types
from splitgraph.conversion.operators.registry import decision
from splitgraph.conversion.planning.plan import needed_by_conversion
from splitgraph.diagnostics import Diagnostic
from splitgraph.graph.scopes import plain_domain
from splitgraph.inference import Walked
from splitgraph.onnx_proto import NodeProto
from splitgraph.schemas.history import version_at
from splitgraph.value_type import ValueType


def stays(node: NodeProto, ladder: Ladder) -> bool:
    """Return True for a node that an opset conversion keeps as it is, although an error of it was accepted.

    Its operator must mean the same at both opsets whatever the node is like, because the meaning of this node is
    unknown. What the node has and is not wrong (attributes, inputs, element types) must be allowed at the target.
    """
    route = route_of(node.op_type, ladder.source, ladder.target)
    if not isinstance(route, Route):
        return route is None
    if any(decision(newer.op, newer.since_version) is not None for _, newer in route.boundaries):
        return False
    if reads_left_out(node, ladder.cache.left_out):
        return False
    try:
        return replace(ladder, values=_WithoutWrongTypes(ladder.values, node, route)).stays(node, "")
    except CONTRADICTIONS:
        # Steps rely on what inference accepts, and something of this node was not.
        return False


def gaining_meaning(walked: Walked, target: int) -> list[Diagnostic]:
    """The blockers of nodes with accepted findings that have something which only the version at the target knows: an
    attribute, or more inputs or outputs. At the source, runtimes ignore it or refuse the node.
    """
    held = {scope.path: scope for scope in walked.scopes}
    found = []
    for (path, index), accepted in walked.set_aside.items():
        scope = held[path]
        node, source = scope.nodes[index], scope.imports.get("")
        if source is not None and plain_domain(node.domain) == "" and _gains(node, source, target):
            found.append(needed_by_conversion(accepted))
    return found


def _gains(node: NodeProto, source: int, target: int) -> bool:
    start, end = version_at(node.op_type, source), version_at(node.op_type, target)
    if start is None or end is None or start.since_version == end.since_version:
        return False
    unknown = {attribute.name for attribute in node.attribute} - start.attributes.keys()
    return (
        not unknown.isdisjoint(end.attributes)
        or (len(node.input) > start.max_inputs and end.max_inputs > start.max_inputs)
        or (len(node.output) > start.max_outputs and end.max_outputs > start.max_outputs)
    )


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
