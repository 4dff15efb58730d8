"""The first cause of what is unknown: the input or node that gives the first value of unknown rank."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.graph.scopes import (
    MAIN,
    GraphPath,
    called_function,
    may_have_bodies,
    node_label,
    plain_domain,
    subgraph_location,
    subgraphs,
)
from splitgraph.inference.analysis import Origin
from splitgraph.inference.operators import AI_ONNX
from splitgraph.inference.walk_state import WalkState
from splitgraph.onnx_proto import NodeProto
from splitgraph.value_type import UNKNOWN, ValueType


def first_unknown(state: WalkState) -> Origin | None:
    """Where the first value of unknown rank comes from, in the order of the nodes; bodies are searched where their node
    stands. None if no value has an unknown rank.
    """
    detail = state.record.details.get(MAIN)
    for value in state.task.model.graph.input:
        if detail is not None and _is_unknown(detail.types.get(value.name, UNKNOWN)):
            return Origin(f"main/{value.name}", "the input declares no shape")
    return _in_graph(state, MAIN, "main", state.task.model.graph.node)


def _in_graph(state: WalkState, path: GraphPath, location: str, nodes: Sequence[NodeProto]) -> Origin | None:
    detail = state.record.details.get(path)
    if detail is None:
        return None
    for index, node in enumerate(nodes):
        label = node_label(node, index)
        if may_have_bodies(node, state.task.plain_functions):
            for name, position, graph in subgraphs(node):
                inside = subgraph_location(location, label, name, position)
                found = _in_graph(state, (*path, index, name, position), inside, graph.node)
                if found is not None:
                    return found
        if any(name and _is_unknown(detail.types.get(name, UNKNOWN)) for name in node.output):
            place = f"{location}/{label}"
            function = state.task.functions.get(called_function(node))
            inner = None if function is None else _in_graph(state, ("call", place), place, function.node)
            return inner or Origin(place, _reason(state, node, place))
    return None


def _reason(state: WalkState, node: NodeProto, place: str) -> str:
    label = f"{plain_domain(node.domain) or AI_ONNX}::{node.op_type}"
    if label in state.record.unknown_operators:
        return f"unknown operator {label}"
    if any(found.location == place and found.severity == "error" for found in state.record.diagnostics):
        return f"the node {node.op_type} has an error"
    if any(subgraphs(node)):
        return f"the bodies of {node.op_type} give no common rank"
    return f"the inputs of {node.op_type} do not tell the rank"


def _is_unknown(value: ValueType) -> bool:
    """True for a value of unknown rank. A map has none."""
    return value.shape is None and value.kind != "map"
