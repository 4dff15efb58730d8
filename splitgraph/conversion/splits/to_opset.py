"""Planning what becomes of the splits when a model goes to another opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from splitgraph.conversion.ladder.guard import AttributeEdit, attribute_edits
from splitgraph.conversion.ladder.unknown_versions import refusal, unknown_version
from splitgraph.conversion.left_out import reads_left_out
from splitgraph.conversion.planning.edits import Replacement, replace_nodes
from splitgraph.conversion.planning.emission import new_emission
from splitgraph.conversion.planning.plan import InPlace, Plan
from splitgraph.conversion.planning.use_counts import Uses
from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.splits.lower import Lowered, SplitNode, lower_split
from splitgraph.conversion.splits.shared_lengths import SharedLengths
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import GraphPath, Scope, node_label
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.onnx_proto import ModelProto, NodeProto
from splitgraph.value_type import ValueType
from splitgraph.variants import Variant, variant_at


class _Recipe(NamedTuple):
    """What a split became, for those of which the same is known. inputs: each a position among the node's own, or the
    name of lengths that are shared; None where they are as they were.
    """

    inputs: Sequence[int | str] | None
    attributes: Sequence[AttributeEdit]
    change: Change


def plan_splits(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    target: int,
    uses: Uses,
    splits: Mapping[GraphPath, Sequence[int]],
) -> None:
    """Plan every split of a root (main graph or function, with its subgraphs). splits: their indices, by graph."""
    replacements: list[Replacement] = []
    dimensions = _certain_dimensions(model)
    never_run = {error.location for error in walked.never_run}
    for scope in root:
        detail: GraphDetail | None = walked.graphs.get(scope.path)
        # In a function the names of dimensions are those of one call.
        common = SharedLengths(frozenset() if scope.in_function else dimensions)
        # By what is known of a split, which is one object for all that are alike.
        recipes: dict[int, _Recipe] = {}
        nodes = scope.nodes
        for index in splits[scope.path]:
            node = nodes[index]
            found = None if detail is None else detail.splits.get(index)
            # What inference knows of an input that a call leaves out is not all that there is to it.
            is_like_others = not reads_left_out(node, plan.left_out.inputs_in(scope))
            recipe = recipes.get(id(found)) if is_like_others else None
            if recipe is not None:
                replacements.append(_followed(recipe, scope, index, node))
                continue
            location = f"{scope.location}/{node_label(node, index)}"
            if found is None:
                plan.blockers.append(_not_inferred(node, location))
                continue
            variant = variant_at(node.op_type, target)
            if variant is None:
                plan.blockers.append(_missing(node, location, target))
                continue
            unknown = unknown_version(node.op_type, target)
            if unknown is not None:
                plan.blockers.append(refusal(node.op_type, unknown, location, is_target=True))
                continue
            if (
                variant.output_types is not found.variant.output_types
                or variant.lower is None
                or node.op_type == "SplitToSequence"
            ):
                # Sequences and strings have one form: only the element types can stand in the way.
                plan.blockers.extend(_kept_as_is(found.variant, variant, found.data, location))
                continue
            if variant is found.variant and location in never_run:
                continue
            emission = new_emission(plan, model, scope, node, index, names, target, common)
            split = SplitNode(scope, index, node, found)
            lowered = lower_split(split, variant, emission, f"opset {target}")
            plan.blockers.extend(lowered.blockers)
            if lowered.emission is None or lowered.change is None:
                continue
            replacements.append((scope, index, lowered.emission, lowered.change))
            recipe = _recipe(node, found, lowered, common) if is_like_others else None
            if recipe is not None:
                recipes[id(found)] = recipe
    replace_nodes(plan, uses, replacements)


def _certain_dimensions(model: ModelProto) -> frozenset[str]:
    """Symbols in the shapes of the inputs that the caller has to give: of those that have a default, the default may be
    of another size.
    """
    named: dict[bool, set[str]] = {True: set(), False: set()}
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        named[value.name in defaults].update(dim.dim_param for dim in value.type.tensor_type.shape.dim)
    return frozenset(named[False] - named[True])


def _recipe(node: NodeProto, found: SplitDetail, lowered: Lowered, common: SharedLengths) -> _Recipe | None:
    """The recipe of a split that stays one node and reads nothing that was made for it alone; None for any other."""
    emission, change = lowered.emission, lowered.change
    if emission is None or change is None or len(emission.mains) != 1:
        return None
    main, own = emission.mains[0], node.input[:]
    if (main.op_type, main.domain, main.output[:]) != (node.op_type, node.domain, node.output[:]):
        return None
    inputs: list[int | str] = []
    for position, name in enumerate(main.input):
        if position < len(own) and own[position] == name:
            inputs.append(position)
        elif common.holds(name):
            inputs.append(name)
        else:
            return None
    attributes = {attribute.name: attribute for attribute in main.attribute}
    kept = inputs == list(range(len(own)))
    return _Recipe(None if kept else inputs, attribute_edits(node, attributes, change.why), change)


def _followed(recipe: _Recipe, scope: Scope, index: int, node: NodeProto) -> Replacement:
    like, location = recipe.change, f"{scope.location}/{node_label(node, index)}"
    change = Change(location, like.before, like.after, like.why)
    if recipe.inputs is None:
        made = InPlace(node.op_type, None, recipe.attributes) if recipe.attributes else None
        return scope, index, made, change
    own = node.input[:]
    inputs = [own[each] if isinstance(each, int) else each for each in recipe.inputs]
    return scope, index, InPlace(node.op_type, inputs, recipe.attributes), change


def _kept_as_is(before: Variant, after: Variant, data: ValueType, location: str) -> list[Diagnostic]:
    """Blockers for a node that is kept: an element type that the target version does not take, or may not."""
    if (
        after.dtypes is None
        or data.dtype in after.dtypes
        or (before.dtypes is not None and before.dtypes <= after.dtypes)
    ):
        return []
    what = (
        f"{after.label} does not take {data.dtype}"
        if data.dtype
        else f"the element type is unknown, and {after.label} takes fewer types"
    )
    return [diagnostic("SG403", what, location)]


def _not_inferred(node: NodeProto, location: str) -> Diagnostic:
    return diagnostic(
        "SG407", f"inference did not reach this {node.op_type}, so nothing is known of its parts", location
    )


def _missing(node: NodeProto, location: str, target: int) -> Diagnostic:
    first = 11 if node.op_type == "SplitToSequence" else 20
    helps = {
        "SplitToSequence": "Stop at opset 11. 'convert --to split' says why it cannot be a plain split.",
        "StringSplit": "Stop at opset 20; nothing older splits strings.",
    }
    return diagnostic(
        "SG404",
        f"{node.op_type} exists from opset {first} on and has no older form",
        location,
        help=helps.get(node.op_type),
    )
