"""Planning what takes the place of a node, and what goes with it."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.ladder.conversion_cache import Carried
from splitgraph.conversion.ladder.guard import attribute_edits
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import InPlace, NodeEdit, Plan
from splitgraph.conversion.planning.use_counts import Uses
from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.splits.lower import emitted_inputs
from splitgraph.graph.scopes import Scope
from splitgraph.onnx_proto import NodeProto

# Operators that round: what they compute in place of another operator may differ from it in the last bits.
_ARITHMETIC = frozenset(
    {
        *("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Reciprocal", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Softmax"),
        *("MatMul", "Gemm", "Conv", "Sum", "Mean", "ReduceMean", "ReduceSum", "ReduceProd"),
        *("BatchNormalization", "InstanceNormalization", "Resize"),
    }
)


# A node by its scope and index, what was emitted for it or how it is edited (None: not at all), and the change as the
# user reads it.
Replacement = tuple[Scope, int, Emission | InPlace | None, Change]


def replace_nodes(plan: Plan, uses: Uses, replacements: Sequence[Replacement]) -> None:
    """Plan the replacement of nodes in graph order; one that only fed what another needs no longer goes instead."""
    first = len(plan.changes)
    for scope, index, made, change in reversed(replacements):
        if plan.at(scope.path).replaced.get(index) == []:
            continue
        if made is None:
            plan.changes.append(change)
            uses.hold(scope, index)
        elif isinstance(made, InPlace):
            edit_in_place(plan, uses, scope, index, made, change)
        else:
            replace_node(plan, uses, scope, index, made, change)
    plan.changes[first:] = reversed(plan.changes[first:])


def edit_in_place(plan: Plan, uses: Uses, scope: Scope, index: int, made: InPlace, change: Change) -> None:
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


def replace_node(plan: Plan, uses: Uses, scope: Scope, index: int, emission: Emission, change: Change) -> None:
    """Plan the replacement of a node by what was emitted, with the removal of what nobody reads after it."""
    plan.at(scope.path).new_initializers.extend(emission.initializers)
    plan.variadic_parts |= emission.variadic_parts
    plan.changes.append(change)
    outputs = {name for made in emission.nodes for name in made.output}
    exchange(plan, uses, scope, index, list(emission.nodes), emitted_inputs(emission.nodes), outputs)


def exchange(
    plan: Plan,
    uses: Uses,
    scope: Scope,
    index: int,
    made: list[NodeProto | None],
    inputs: Sequence[str],
    outputs: set[str],
) -> None:
    """Plan a node's exchange for others, which read `inputs` and give `outputs`, with the removal of what nobody reads
    after it.
    """
    edits = plan.at(scope.path)
    edits.replaced[index] = made
    nodes, initializers = uses.exchange(scope, index, inputs)
    edits.gone_values |= set(scope.nodes[index].output) - outputs
    for inner, gone in nodes:
        plan.at(inner.path).replaced[gone] = []
        plan.at(inner.path).gone_values |= set(inner.nodes[gone].output)
    for path, name in initializers:
        plan.at(path).gone_initializers.add(name)
        plan.at(path).gone_values.add(name)


def replace_by_forms(
    plan: Plan, uses: Uses, scope: Scope, index: int, carried: Carried, emission: Emission, location: str
) -> None:
    """Plan what a node became: itself, edited, where it is among the forms, with new nodes around it."""
    node, forms = scope.nodes[index], carried.forms or ()
    made: list[NodeProto | None] = []
    edits = plan.at(scope.path)
    for form in forms:
        made.append(form.node(plan.drafts) if form.original is None else None)
        if form.original is not None and form.is_edited:
            edits.nodes[index] = NodeEdit(form.op_type, form.inputs, form.outputs)
            if form.wrap is not None:
                edits.wraps[index] = form.wrap
            edits.attributes[index] = attribute_edits(node, form.attributes, carried.why)
    edits.new_initializers.extend(emission.initializers)
    plan.rounding |= any(form.op_type in _ARITHMETIC and form.op_type != node.op_type for form in forms)
    after = ", ".join(dict.fromkeys(form.op_type for form in forms if form.op_type != "Constant")) or "Constant"
    plan.changes.append(Change(location, node.op_type, after, carried.why))
    inputs = [name for form in forms for name in form.reads]
    outputs = {name for form in forms for name in form.outputs}
    exchange(plan, uses, scope, index, made, inputs, outputs)
