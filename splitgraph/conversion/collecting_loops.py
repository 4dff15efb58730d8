"""Loops that collect a list become loops that stack its members.

Scripted models append to a list in a loop and join its members afterwards. The loop carries the list as a sequence,
which Loop allows from opset 13 on. At every opset, Loop can stack a tensor of each iteration along a new first axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from splitgraph.conversion.builders import Emission, axes_node, new_emission
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement, opset_of, started_roots
from splitgraph.dim import Dim, DimLike
from splitgraph.inference import Walked
from splitgraph.model.attributes import attribute_value, make_node
from splitgraph.model.names import Definitions, FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, ValueInfoProto
from splitgraph.model.scopes import GraphPath, Scope, node_label, plain_domain, subgraph_at
from splitgraph.model.value_type import ValueType, tensor
from splitgraph.model.values import write_type

# From this opset on, a loop can carry sequences.
LOOPS_CARRY_SEQUENCES_FROM = 13
_WHY = f"below opset {LOOPS_CARRY_SEQUENCES_FROM} a loop carries no sequence"


class Join(NamedTuple):
    """A node that joins the members of a list along an axis. is_new: the members do not have this axis."""

    scope: Scope
    place: int
    axis: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class _List:
    """A list that a loop collects.

    number: of the carried value. name: of the list after the loop. inner_name: of the list in the body, before it
    grows. member: the type of its members. joins: the nodes that join them.
    """

    number: int
    name: str
    inner_name: str
    member: ValueType
    joins: Sequence[Join]


def plan_stacking_loops(model: ModelProto, walked: Walked) -> Plan | None:
    """Return the plan by which loops stack tensors instead of carrying lists, for an opset whose loops carry none; None
    where nothing changes.
    """
    if not any(map(_collects_in_a_loop, walked.scopes)):
        return None
    plan, names = Plan(), FreshNames(used_names(model, walked.scopes))
    for root in started_roots(plan, model, walked):
        _plan_root(plan, model, walked, root, names)
    return plan if plan.edits and not plan.blockers else None


def _collects_in_a_loop(scope: Scope) -> bool:
    """Return True for the body of a loop that may collect a list."""
    in_loop = len(scope.path) > 2 and scope.path[-2] == "body"
    return in_loop and any(node.op_type == "SequenceInsert" for node in scope.nodes)


def _plan_root(plan: Plan, model: ModelProto, walked: Walked, root: Sequence[Scope], names: FreshNames) -> None:
    """Plan that each loop stacks the members of a list that it only collects and that is only joined afterwards."""
    finder = _Finder(walked, root)
    for body in filter(_collects_in_a_loop, root):
        scope, index = finder.scopes[body.path[:-3]], body.path[-3]
        lists = finder.lists(scope, index, body)
        if not lists:
            continue
        stacks = _plan_loop(plan, scope, index, lists, names)
        for collected in lists:
            for join in collected.joins:
                _plan_join(plan, model, join, stacks[collected.number], collected.member, names)


class _Finder:
    """Finds the lists that loops of a root collect."""

    def __init__(self, walked: Walked, root: Sequence[Scope]) -> None:
        self._walked, self._root = walked, root
        self.scopes = {scope.path: scope for scope in root}
        self._definitions = Definitions(root)

    def lists(self, scope: Scope, index: int, body: Scope) -> list[_List]:
        """Return the lists that the loop with this index collects."""
        node = scope.nodes[index]
        carried = len(node.input) - 2
        if (
            not _is_operator(node, "Loop")
            or len(body.proto.input) != carried + 2
            or len(body.proto.output) != len(node.output) + 1
        ):
            return []
        candidates = (self._list(scope, node, body, number) for number in range(carried))
        return [candidate for candidate in candidates if candidate is not None]

    def _list(self, scope: Scope, node: NodeProto, body: Scope, number: int) -> _List | None:
        before, after = body.proto.input[number + 2].name, body.proto.output[number + 1].name
        insert = next((made for made in body.nodes if after in made.output), None)
        if insert is None or not _is_operator(insert, "SequenceInsert"):
            return None
        # With a position, members need not be in the order of the iterations.
        if len(insert.input) != 2 or insert.input[0] != before or insert.input[1] == before:
            return None
        if self._reads(body.path, before) != [insert] or self._reads(body.path, after):
            return None
        if self._given(body.path, before) or self._given(body.path, after) > 1:
            return None
        if not self._is_empty(scope, node.input[number + 2]):
            return None
        member = self._walked.graphs[self._definitions.home(body.path, insert.input[1])].types.get(insert.input[1])
        joins = self._joins(scope, node.output[number], member)
        return None if member is None or joins is None else _List(number, node.output[number], before, member, joins)

    def _readers(self, path: GraphPath, name: str) -> list[tuple[Scope, int]]:
        """Return the nodes that read the value that a graph defines with a name."""
        within = self._within(path, name)
        return [(scope, index) for scope in within for index, node in enumerate(scope.nodes) if name in node.input]

    def _reads(self, path: GraphPath, name: str) -> list[NodeProto]:
        return [scope.nodes[index] for scope, index in self._readers(path, name)]

    def _given(self, path: GraphPath, name: str) -> int:
        """Return how many outputs of graphs are the value that a graph defines with a name."""
        count = 0
        for scope in self._within(path, name):
            outputs = scope.proto.output
            count += list(outputs if scope.is_function else (value.name for value in outputs)).count(name)
        return count

    def _within(self, path: GraphPath, name: str) -> Iterator[Scope]:
        """Return the graphs that can read the value that a graph defines with a name."""
        for scope in self._root:
            if scope.path[: len(path)] == path and self._definitions.home(scope.path, name) == path:
                yield scope

    def _is_empty(self, scope: Scope, name: str) -> bool:
        """Return True for a list without members."""
        if not name:
            return False
        home = self.scopes[self._definitions.home(scope.path, name)]
        given = next((node for node in home.nodes if name in node.output), None)
        return given is not None and _is_operator(given, "SequenceEmpty")

    def _joins(self, scope: Scope, name: str, member: ValueType | None) -> list[Join] | None:
        """Return the nodes that join a list of such members, None where anything else reads the list."""
        if member is None or member.kind != "tensor" or member.dtype is None:
            return None
        if name and self._given(scope.path, name):
            return None
        joins = []
        for reader, index in self._readers(scope.path, name) if name else ():
            joined = _joined_axis(reader.nodes[index], member.shape)
            if joined is None:
                return None
            joins.append(Join(reader, index, *joined))
        return joins


def _is_operator(node: NodeProto, op_type: str) -> bool:
    """Return True for a node of this operator of ai.onnx."""
    return node.op_type == op_type and plain_domain(node.domain) == ""


def _joined_axis(node: NodeProto, dims: Sequence[DimLike | None] | None) -> tuple[int, bool] | None:
    """Return the axis along which a node joins members with these dimensions, and whether the axis is new; None for
    another node, and where stacked members cannot be joined so.

    Along an axis that they have, members may differ in length; such members cannot be stacked. Where they are longer
    than 1 along it, the dimensions from the axis on are written out for Reshape. None of them may be 0, which Reshape
    takes for "the same as before".
    """
    if not _is_operator(node, "ConcatFromSequence") or any(attributes.ref_attr_name for attributes in node.attribute):
        return None
    attributes = {attribute.name: attribute_value(attribute) for attribute in node.attribute}
    axis, is_new = attributes.get("axis"), bool(attributes.get("new_axis", 0))
    if axis is None or (axis == 0 and is_new):
        return None if axis is None else (0, True)
    if dims is None:
        return None
    rank = len(dims) + is_new
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank:
        return None
    fits = is_new or dims[axis] == 1 or all(isinstance(dim, int) and dim > 0 for dim in dims[axis:])
    return (axis, is_new) if fits else None


def _plan_loop(plan: Plan, scope: Scope, index: int, lists: Sequence[_List], names: FreshNames) -> dict[int, str]:
    """Plan that a loop stacks lists instead of carrying them. Return the name of each stack by the list's number."""
    node, label = scope.nodes[index], node_label(scope.nodes[index], index)
    stacks = {collected.number: names.new(f"{collected.name or label}_stacked") for collected in lists}
    inputs = [*node.input[:2], *(name for number, name in enumerate(node.input[2:]) if number not in stacks)]
    outputs = [*(name for number, name in enumerate(node.output) if number not in stacks), *stacks.values()]
    edited = Node.of(node)
    edited.inputs, edited.outputs, edited.wrap = inputs, outputs, partial(_stack_in_body, lists)
    plan.replace(scope, index, Replacement([edited], (), _WHY))
    return stacks


def _stack_in_body(lists: Sequence[_List], loop: NodeProto) -> None:
    """Make the members new outputs of the body, after all others, and remove the lists."""
    body, members = subgraph_at(loop, "body", 0), []
    for collected in reversed(lists):
        given = ValueInfoProto(name=body.output[collected.number + 1].name)
        known = (
            None
            if collected.member.shape is None
            else [None if isinstance(d, Dim) else d for d in collected.member.shape]
        )
        write_type(tensor(collected.member.dtype, known), given.type)
        members.append(given)
        insert = next(node for node in body.node if given.name in node.output)
        insert.op_type, insert.input[:] = "Identity", insert.input[1:]
        del body.input[collected.number + 2], body.output[collected.number + 1]
        for place in reversed(range(len(body.value_info))):
            if body.value_info[place].name in (given.name, collected.inner_name):
                del body.value_info[place]
    body.output.extend(reversed(members))


def _plan_join(
    plan: Plan,
    model: ModelProto,
    join: Join,
    stack: str,
    member: ValueType,
    names: FreshNames,
) -> None:
    """Plan that members that are stacked along the first axis are joined along the axis of the join."""
    scope, place, axis, is_new = join
    node = scope.nodes[place]
    emission = new_emission(plan, model, scope, node, place, names, opset_of(scope.imports))
    moved = stack
    if axis:
        rank = len(member.shape or ())
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = emission.write("Transpose", [stack], "moved", perm=perm)
    output = node.output[0]
    if is_new:
        written = make_node("Identity", [moved], [output])
    elif (member.shape or ())[axis] == 1:
        written = axes_node(emission, "Squeeze", moved, output, axis + 1)
    else:
        written = make_node("Reshape", [moved, _joined_shape(emission, moved, member.shape or (), axis)], [output])
    written.name, written.doc_string = node.name, node.doc_string
    written.metadata_props.extend(node.metadata_props)
    emission.main(written)
    plan.replace(scope, place, emission.replacement("joins what a loop stacked", after=written.op_type))


def _joined_shape(emission: Emission, moved: str, dims: Sequence[DimLike | None], axis: int) -> str:
    """Return the shape in which the axis of the stack is merged into the axis behind it."""
    lengths = [dim for dim in dims[axis:] if isinstance(dim, int)]
    count = emission.write(
        "Gather", [emission.write("Shape", [moved], "shape"), emission.constant([axis], "axis")], "count"
    )
    # For Reshape, 0 means that a dimension stays.
    parts = [emission.constant([0] * axis, "before")] if axis else []
    parts.append(emission.write("Mul", [count, emission.constant(lengths[:1], "length")], "joined"))
    if lengths[1:]:
        parts.append(emission.constant(lengths[1:], "behind"))
    return emission.write("Concat", parts, "joined_shape", axis=0)
