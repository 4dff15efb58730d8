"""Planning the edits that replace nodes, and the removal of what nobody reads afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from splitgraph.conversion.nodes.crossing import AttributeEdit
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import InPlace, NodeEdit, Plan
from splitgraph.conversion.planning.use_counts import UseCounts
from splitgraph.conversion.rewrite import Change
from splitgraph.graph.scopes import Scope
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.variants.variadic_split_1 import FORM_KEY

# A node by its scope and index, the nodes that replace it or its edits (None: no edit), and the change for the user.
Replacement = tuple[Scope, int, Emission | InPlace | None, Change]


def replace_nodes(plan: Plan, uses: UseCounts, replacements: Sequence[Replacement]) -> None:
    """Plan replacements, given in graph order. A node that nobody reads after the others were replaced is removed
    instead, unless a later replacement reads it after all.
    """
    first = len(plan.changes)
    for replacement in reversed(replacements):
        edits, index = plan.at(replacement[0].path), replacement[1]
        make = partial(_make, plan, uses, replacement)
        if edits.replaced.get(index) == []:
            edits.postponed[index] = make
        else:
            make()
    plan.changes[first:] = reversed(plan.changes[first:])


def _make(plan: Plan, uses: UseCounts, replacement: Replacement) -> None:
    scope, index, made, change = replacement
    if made is None:
        plan.changes.append(change)
        uses.hold(scope, index)
    elif isinstance(made, InPlace):
        edit_in_place(plan, uses, scope, index, made, change)
    else:
        replace_node(plan, uses, scope, index, made, change)


def edit_in_place(plan: Plan, uses: UseCounts, scope: Scope, index: int, made: InPlace, change: Change) -> None:
    """Plan the edits of a node that stays one node with the same outputs."""
    edits = plan.at(scope.path)
    if made.attributes:
        edits.attributes[index] = list(made.attributes)
    plan.changes.append(change)
    if made.inputs is None:
        uses.hold(scope, index)
        return
    outputs = scope.nodes[index].output[:]
    edits.nodes[index] = NodeEdit(made.op_type, made.inputs, outputs)
    exchange(plan, uses, scope, index, [None], made.inputs, set(outputs))


def replace_node(plan: Plan, uses: UseCounts, scope: Scope, index: int, emission: Emission, change: Change) -> None:
    """Plan that the emitted nodes replace a node."""
    plan.at(scope.path).new_initializers.extend(emission.initializers)
    plan.variadic_parts |= emission.variadic_parts
    plan.changes.append(change)
    inputs = [name for made in emission.nodes for name in made.input if name]
    outputs = {name for made in emission.nodes for name in made.output}
    exchange(plan, uses, scope, index, list(emission.nodes), inputs, outputs)


def exchange(
    plan: Plan,
    uses: UseCounts,
    scope: Scope,
    index: int,
    made: list[NodeProto | None],
    inputs: Sequence[str],
    outputs: set[str],
) -> None:
    """Plan that other nodes, with these inputs and outputs, replace a node (None: the node itself), and that nodes and
    initializers without a reader are removed. What was removed and is read by the other nodes stays.
    """
    edits = plan.at(scope.path)
    edits.replaced[index] = made
    _hand_down(scope.nodes[index], made)
    effects = uses.exchange(scope, index, inputs)
    edits.gone_values |= set(scope.nodes[index].output) - outputs
    for inner, gone in effects.gone:
        plan.at(inner.path).replaced[gone] = []
        plan.at(inner.path).gone_values |= set(inner.nodes[gone].output)
    for path, name in effects.gone_initializers:
        plan.at(path).gone_initializers.add(name)
        plan.at(path).gone_values.add(name)
    for path, name in effects.back_initializers:
        plan.at(path).gone_initializers.discard(name)
        plan.at(path).gone_values.discard(name)
    for inner, back in effects.back:
        _bring_back(plan, inner, back)


def _hand_down(original: NodeProto, made: Sequence[NodeProto | None]) -> None:
    """Give the metadata of a node, such as stack traces and namespaces, to all nodes that stand for it."""
    kept = [entry for entry in original.metadata_props if entry.key != FORM_KEY]
    for node in made if kept else ():
        if node is not None and node is not original:
            known = {entry.key for entry in node.metadata_props}
            node.metadata_props.extend(entry for entry in kept if entry.key not in known)


def _bring_back(plan: Plan, scope: Scope, index: int) -> None:
    """Keep a node that was to be removed, or replace it as was planned before."""
    edits = plan.at(scope.path)
    del edits.replaced[index]
    edits.gone_values -= set(scope.nodes[index].output)
    make = edits.postponed.pop(index, None)
    if make is not None:
        make()


def attribute_edits(
    node: NodeProto, attributes: Mapping[str, AttributeProto], reasons: Mapping[str, str] | str
) -> list[AttributeEdit]:
    """The edits that give a node these attributes. reasons: one for each attribute that differs, or one for all."""

    def why(name: str) -> str:
        return reasons if isinstance(reasons, str) else reasons[name]

    before = {attribute.name: attribute for attribute in node.attribute}
    edits = [AttributeEdit(name, "remove", None, why(name)) for name in before if name not in attributes]
    for name, attribute in attributes.items():
        if before.get(name) is not attribute and before.get(name) != attribute:
            edits.append(AttributeEdit(name, "set", attribute, why(name)))
    return edits
