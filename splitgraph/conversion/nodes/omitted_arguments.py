"""Inputs and attributes of model-local functions that a call leaves out: in the body a name stands for them all the
same.

A node of the body that may be given such an input, or not, means one of two things. What is written in its place would
have to mean the same both ways, so that only nodes that stay as they are either way are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, called_function, function_key
from splitgraph.onnx_proto import FunctionProto, ModelProto, NodeProto

# What to do about a body whose nodes cannot be written anew for all calls of it at once.
INLINE_FIRST = "inline the function first, as onnx.inliner and `splitgraph convert --to split --explicit-lengths` do"
_HELP = f"{INLINE_FIRST.capitalize()}; or give the input in every call."


# By the index of a function.
_Names = dict[int, frozenset[str]]
# What a call leaves out of a function, if in the body that it is in these names stand for nothing.
_Missing = Callable[[FunctionProto, NodeProto, Collection[str]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What at least one call of a function leaves out, or hands on from one that does, by the function's index: inputs,
    and attributes without a default.
    """

    inputs: Mapping[int, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def inputs_in(self, scope: Scope) -> frozenset[str]:
        """Those inputs among the names that a graph of a function can read."""
        return self.inputs.get(scope.path[1], frozenset()) if self.inputs and scope.in_function else frozenset()


def find_left_out(model: ModelProto, every: Sequence[Scope]) -> LeftOut:
    """What the calls of a model leave out. every: its scopes."""
    indices = {function_key(function): index for index, function in enumerate(model.functions)}
    if not indices:
        return LeftOut()
    calls = [
        (scope, node, indices[key])
        for scope in every
        for node in scope.nodes
        if (key := called_function(node)) in indices
    ]
    return LeftOut(_by_function(model, calls, _missing_inputs), _by_function(model, calls, _missing_attributes))


def _by_function(model: ModelProto, calls: Sequence[tuple[Scope, NodeProto, int]], missing_of: _Missing) -> _Names:
    found: _Names = dict.fromkeys(range(len(model.functions)), frozenset())
    changed = True
    while changed:
        changed = False
        for scope, node, index in calls:
            absent = found[scope.path[1]] if scope.in_function else frozenset()
            missing = found[index].union(missing_of(model.functions[index], node, absent))
            changed |= missing != found[index]
            found[index] = missing
    return found


def _missing_inputs(function: FunctionProto, call: NodeProto, absent: Collection[str]) -> Iterable[str]:
    given = [name if name not in absent else "" for name in call.input]
    return [name for position, name in enumerate(function.input) if not any(given[position : position + 1])]


def _missing_attributes(function: FunctionProto, call: NodeProto, absent: Collection[str]) -> Iterable[str]:
    return {*function.attribute} - {given.name for given in call.attribute if given.ref_attr_name not in absent}


def is_given(model: ModelProto, left_out: LeftOut, scope: Scope, attribute: str) -> bool:
    """True when an attribute of the function that a scope is in has a default, or a value in every call."""
    if not scope.in_function:
        return False
    index = scope.path[1]
    function = model.functions[index]
    has_default = any(default.name == attribute for default in function.attribute_proto)
    return has_default or (attribute in function.attribute and attribute not in left_out.attributes.get(index, ()))


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
