"""The values that unknown operators leave open: their outputs, and values computed from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from splitgraph.graph.scopes import MAIN, GraphPath, called_function, plain_domain, subgraphs
from splitgraph.inference.walk_state import WalkState
from splitgraph.onnx_proto import NodeProto
from splitgraph.value_type import UNKNOWN, ValueType

Types = Mapping[GraphPath, Mapping[str, ValueType]]


def values_left_open(state: WalkState, types: Types) -> set[tuple[GraphPath, str]]:
    """Graph path and name of each value that depends on an unknown operator and is not fully known."""
    found: set[tuple[GraphPath, str]] = set()
    _visit(state, types, MAIN, state.task.model.graph.node, frozenset(), found)
    return found


def _visit(
    state: WalkState,
    types: Types,
    path: GraphPath,
    nodes: Sequence[NodeProto],
    around: frozenset[str],
    found: set[tuple[GraphPath, str]],
) -> frozenset[str]:
    """Go through a graph's nodes; around: open names of the graphs around it. Gives the open names visible in it."""
    types_here = types.get(path, {})
    visible = set(around)
    for index, node in enumerate(nodes):
        depends = _is_unknown(state, node) or not visible.isdisjoint(node.input)
        for name, position, graph in subgraphs(node):
            inside = (*path, index, name, position)
            if state.record.is_too_deep and inside not in types:
                continue
            inner = _visit(state, types, inside, graph.node, frozenset(visible), found)
            depends |= any(value.name in inner for value in graph.output)
        for name in node.output if depends else ():
            if name and _is_open(types_here.get(name, UNKNOWN)):
                visible.add(name)
                found.add((path, name))
    return frozenset(visible)


def _is_unknown(state: WalkState, node: NodeProto) -> bool:
    if f"{plain_domain(node.domain)}::{node.op_type}" in state.record.unknown_operators:
        return True
    function = state.task.functions.get(called_function(node))
    return function is not None and any(
        f"{plain_domain(inner.domain)}::{inner.op_type}" in state.record.unknown_operators for inner in function.node
    )


def _is_open(value: ValueType) -> bool:
    return value.kind == "unknown" or (
        value.element is None and (value.shape is None or value.dtype is None or None in value.shape)
    )
