"""Inputs of model-local functions that a call leaves out: in the body a name stands for them all the same.

A node of the body that may be given such an input, or not, means one of two things. What is written in its place would
have to mean the same both ways, so that only nodes that stay as they are either way are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, called_function, function_key
from splitgraph.onnx_proto import ModelProto, NodeProto

_HELP = "Inline the function first, or give the input in every call."


def left_out_inputs(model: ModelProto, every: Sequence[Scope]) -> dict[int, frozenset[str]]:
    """The inputs of each function, by its index, that at least one call leaves out, or hands on from one that does."""
    indices = {function_key(function): index for index, function in enumerate(model.functions)}
    if not indices:
        return {}
    calls = [
        (scope, node, indices[key])
        for scope in every
        for node in scope.nodes
        if (key := called_function(node)) in indices
    ]
    found: dict[int, frozenset[str]] = dict.fromkeys(indices.values(), frozenset())
    changed = True
    while changed:
        changed = False
        for scope, node, index in calls:
            absent = {"", *(found[scope.path[1]] if scope.in_function else ())}
            given = node.input[:]
            missing = found[index].union(
                name
                for position, name in enumerate(model.functions[index].input)
                if position >= len(given) or given[position] in absent
            )
            changed |= missing != found[index]
            found[index] = missing
    return found


def left_out_in(found: Mapping[int, frozenset[str]], scope: Scope) -> frozenset[str]:
    """Those among the names that a graph of a function can read."""
    return found.get(scope.path[1], frozenset()) if found and scope.in_function else frozenset()


def reads_left_out(node: NodeProto, left_out: Collection[str]) -> bool:
    """True for a node that reads one of them."""
    return bool(left_out) and any(name in left_out for name in node.input)


def without_left_out(node: NodeProto, left_out: Collection[str]) -> NodeProto:
    """The node as it is in the calls that leave all of them out."""
    made = NodeProto()
    made.CopyFrom(node)
    made.input[:] = ["" if name in left_out else name for name in node.input]
    return made


def blocker(node: NodeProto, left_out: Collection[str], code: str, location: str) -> Diagnostic:
    """Why a node that reads one of them cannot be written anew."""
    name = next(name for name in node.input if name in left_out)
    text = f"{node.op_type} reads {name!r}, an input of the function that a call leaves out, and would have to change"
    return diagnostic(code, text, location, help=_HELP)
