"""Write the splits of a model as a runtime reads them: one round of a conversion for a target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.splits.joined_slices import plan_partitions
from splitgraph.conversion.splits.lower import SplitNode, SplitRewrites
from splitgraph.conversion.splits.sequences import plan_sequences
from splitgraph.conversion.targets.operators import first_read, plan_other_operators
from splitgraph.inference.walk_results import GraphDetail, SplitDetail
from splitgraph.model.attributes import make_node
from splitgraph.model.names import Definitions, FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import GraphPath, Scope, plain_domain, roots
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN
from splitgraph.model.values import tensor_contents
from splitgraph.runtimes.check import Examined
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.traits import FORMS, OVERRUNS, Given, data_traits, split_form
from splitgraph.splits import Variant, variant_at
from splitgraph.splits.canonical import CanonicalSplit, dimension_on
from splitgraph.splits.lowering import lengths_with_rest, set_int
from splitgraph.splits.slices import OPEN_END, BoundsForm, open_bounds, slice_variant

# Splits that the target does not read ---------------------------------------------------------------------------------


_JOINED = {"slice-attributes", "slice-constant", "slice-folded", "slice-computed", "gather-range"}
_EMPTY = {"part-empty", "part-empty-joined", "output-omitted", *OVERRUNS}
_SEQUENCES = {"sequence-lengths", "sequence-size", "sequence-each"}


@dataclass(slots=True)
class TargetPlanner:
    """Plans one round of a conversion: each node that the target does not read gets another form, where there is one.

    joins: whether slices that are not read become a Split, where they are all parts of a value. stuck: nodes of earlier
    rounds that are written in no other way, by graph and first output; this adds those of the round.
    """

    plan: Plan
    examined: Examined
    target: Target
    joins: bool
    stuck: set[tuple[GraphPath, str]]

    def run(self) -> None:
        """Plan all roots of the model."""
        model, walked = self.examined.model, self.examined.walked
        names = FreshNames(used_names(model, walked.scopes))
        failing = {(node.scope.path, node.index): node for node in self.examined.not_read(self.target)}
        for root in roots(walked.scopes):
            paths = {scope.path for scope in root}
            mine = {key: node for key, node in failing.items() if key[0] in paths}
            if mine:
                self._root(root, names, mine)

    def _root(
        self, root: Sequence[Scope], names: FreshNames, failing: Mapping[tuple[GraphPath, int], NodeTraits]
    ) -> None:
        model, walked = self.examined.model, self.examined.walked
        self.plan.start(root)
        why = f"{self.target.label} does not read it as it was"
        rewrites = SplitRewrites(self.plan, model, root, names, why)
        for node in failing.values():
            if node.detail is not None and node.detail.variant.op_type == "Split":
                self._write(rewrites, node, root)
        rewrites.settle()
        traits = frozenset().union(*(node.traits for node in failing.values()))
        if traits & _SEQUENCES:
            plan_sequences(self.plan, model, walked, root, names, why, only=failing.keys())
        if traits & _JOINED and self.joins:
            plan_partitions(self.plan, model, walked, root, names, why, only=failing.keys())
        # What no way was found for is not tried again.
        tried = {
            place: node
            for place, node in failing.items()
            if node.detail is None and not node.traits and (place[0], _first_output(node)) not in self.stuck
        }
        wanted = {place: self.target.operators.types_read(node.label) for place, node in tried.items()}
        choose = first_read(self.target, opset_of(root[0].imports))
        plan_other_operators(self.plan, model, walked, root, names, why, wanted=wanted, choose=choose)
        for (path, index), node in tried.items():
            if not self.plan.at(path).changes(index):
                self.stuck.add((path, _first_output(node)))
        for node in failing.values():
            is_planned = self.plan.at(node.scope.path).changes(node.index)
            if node.node.op_type == "Slice" and not is_planned:
                detail = walked.graphs[node.scope.path]
                plan_plain_slice(self.plan, model, node, detail, self.target, names, why)

    def _write(self, rewrites: SplitRewrites, node: NodeTraits, root: Sequence[Scope]) -> None:
        detail, opset = node.detail, opset_of(node.scope.imports)
        if detail is None or detail.split is None:
            return
        split_node = SplitNode(node.scope, node.index, node.node, detail)
        choice = choose(node, detail, opset, self.target)
        if choice is None:
            shorter = without_empty_parts(self.examined.model, root, split_node, self.target)
            if shorter is None:
                return
            traits = (node.traits - _EMPTY) | _single(shorter.split)
            choice = choose(replace(node, traits=frozenset(traits)), shorter.split.detail, opset, self.target)
            if choice is None:
                return
            for name, readers in shorter.gone.items():
                _plan_part(self.plan, split_node, name, readers)
            split_node = shorter.split
        self._write_as(rewrites, split_node, choice)

    def _write_as(self, rewrites: SplitRewrites, split_node: SplitNode, choice: SplitChoice) -> None:
        node = NodeProto()
        node.CopyFrom(split_node.node)
        is_sliced = choice.variant.op_type == "Slice"
        for index, name in enumerate(node.output):
            if is_sliced and name and not self.plan.is_read(split_node.scope.path, name):
                node.output[index] = ""
            elif not name and not is_sliced:
                node.output[index] = rewrites.names.new(
                    f"{split_node.node.name or split_node.node.op_type}_part{index}"
                )
        # The lengths that the model has may be what the target does not read: known ones become a new constant.
        known = choice.split.static_lengths is not None
        detail = replace(
            split_node.detail, split=choice.split, lengths_dtype=None if known else split_node.detail.lengths_dtype
        )
        again = replace(split_node, node=node, detail=detail)
        replacement = rewrites.write(again, choice.variant, explicit_lengths=choice.explicit_lengths, afresh=True)
        if replacement is None:
            return
        for made in replacement.messages():
            if made.op_type == "Split" and choice.split.axis is not None and not _refers(made):
                set_int(made, "axis", choice.split.axis)


def _first_output(node: NodeTraits) -> str:
    return next(filter(None, node.node.output), "")


def _single(split_node: SplitNode) -> set[str]:
    return {"part-single"} if len(split_node.node.output) == 1 else set()


def _refers(node: NodeProto) -> bool:
    """Return True where the axis is an attribute of the enclosing function."""
    return any(attribute.ref_attr_name for attribute in node.attribute)


# The form of a split --------------------------------------------------------------------------------------------------


# Traits of a node that a new form does not take over: they are written in the plain way.
_REWRITTEN = {"axis-omitted", "axis-negative", "output-omitted", "input-unnamed"}
# Traits that only a node has whose outputs are all parts.
_OF_ALL_PARTS = {"output-unread", "outputs-mixed"}


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """One way to write a split: the variant, whether its lengths are written out, and its traits. operator: that of the
    slices that are written instead, with its version.
    """

    variant: Variant
    split: CanonicalSplit
    explicit_lengths: bool
    traits: frozenset[str]
    operator: str | None = None


def choose(node: NodeTraits, detail: SplitDetail, opset: int, target: Target) -> SplitChoice | None:
    """Return the first form that the target reads; None where it reads none of them, or where nothing is known of
    them.
    """
    return next((choice for choice in _choices(node, detail, opset) if _is_read(choice, target)), None)


def _is_read(choice: SplitChoice, target: Target) -> bool:
    # Not known is not read: what splitgraph itself writes must be known to be.
    written = {
        trait
        for trait in choice.traits
        if trait in FORMS or trait in OVERRUNS or trait.startswith(("split-", "bounds-"))
    }
    if choice.operator is not None and not target.operators.reads(choice.operator):
        return False
    return written <= target.reads and not target.failures_of(choice.traits)


def _choices(node: NodeTraits, detail: SplitDetail, opset: int) -> Iterator[SplitChoice]:
    """Return every form that splitgraph can write, the plainest first."""
    split, variant = detail.split, variant_at("Split", opset)
    if split is None or variant is None:
        return
    kept = _kept_traits(node, detail, split)
    # Parts that overrun the dimension are empty parts where their lengths are written out.
    written_out = kept - OVERRUNS | ({"part-empty"} if OVERRUNS & kept else set())
    divisible = detail.divisible or (split.form == "equal")
    is_short = split.form == "equal" or (split.form == "chunks" and (variant.since_version >= 18 or divisible))
    if is_short:
        yield SplitChoice(variant, split, False, kept | {split_form(variant.since_version, "", split, divisible)})
    given = _lengths_given(node, split, variant)
    if given is not None:
        explicit = replace(split, form="lengths") if split.static_lengths is not None else split
        form = split_form(variant.since_version, given, split, divisible)
        yield SplitChoice(variant, explicit, True, written_out | {form})
    if not is_short and split.static_lengths is not None and len(set(split.static_lengths)) == 1:
        equal = replace(split, form="equal")
        yield SplitChoice(variant, equal, False, kept | {split_form(variant.since_version, "", equal, True)})
    if len(split.lengths or ()) == 1:
        yield _whole(split, detail, opset)
        return
    yield from _slices(split, opset, written_out - _OF_ALL_PARTS, given == "input")


def _whole(split: CanonicalSplit, detail: SplitDetail, opset: int) -> SplitChoice:
    """Return the form for a split whose only part is the whole value: an Identity, whatever its shape."""
    dtype = detail.data.dtype
    return SplitChoice(slice_variant(opset), split, False, frozenset({dtype} if dtype else ()) - {"float32"})


def _slices(split: CanonicalSplit, opset: int, kept: frozenset[str], is_input: bool) -> Iterator[SplitChoice]:
    """Return the forms with a Slice for each part. is_input: the lengths are a graph input."""
    computed = "slice-input" if is_input else "slice-computed"
    forms: list[tuple[BoundsForm, set[str]]] = []
    bounds = open_bounds(split)
    if split.static_lengths is not None:
        forms.append(("constant", set()))
    elif bounds is not None and lengths_with_rest(split) is not None:
        ends = [end for pair in bounds for end in pair]
        unusual = {"bounds-open"} if any(end == OPEN_END for end in ends) else set()
        forms.append(("open", unusual | ({"bounds-negative"} if any(end < 0 for end in ends) else set())))
    forms.append(("computed", set()))
    for form, unusual in forms:
        variant = slice_variant(opset, (form,))
        written = "slice-attributes" if opset < 10 else computed if form == "computed" else "slice-constant"
        if form == "computed" and opset < 10:
            continue
        operator = f"Slice-{variant.since_version}"
        yield SplitChoice(variant, split, False, kept | {written, *unusual}, operator)


def _kept_traits(node: NodeTraits, detail: SplitDetail, split: CanonicalSplit) -> frozenset[str]:
    """Return the traits that the split has in any form."""
    of_data = data_traits(detail.data, split.axis)
    own = {trait for trait in node.traits if trait in _OF_ALL_PARTS or trait.startswith("part")}
    return frozenset(of_data | own) - _REWRITTEN


def _lengths_given(node: NodeTraits, split: CanonicalSplit, variant: Variant) -> Given | None:
    """Return how the lengths would be given if they were written out; None where the version cannot have them."""
    if split.static_lengths is not None:
        return "attribute" if variant.since_version < 13 else "constant"
    if variant.since_version < 13:
        return None
    return "input" if any(trait.endswith("-input") for trait in node.traits & FORMS.keys()) else "computed"


# Splits without empty parts -------------------------------------------------------------------------------------------


# A node by its scope and index.
_Edit = tuple[Scope, int]


class Shorter(NamedTuple):
    """A split with only the parts that have elements. gone: for each other part that has a name, the Concat nodes that
    go without it; None where a constant stands for it.
    """

    split: SplitNode
    gone: dict[str, list[_Edit] | None]


def without_empty_parts(
    model: ModelProto, root: Sequence[Scope], split_node: SplitNode, target: Target
) -> Shorter | None:
    """Return the split without its empty parts. None where the lengths are not known, or where an empty part is read
    and can be no constant that the target reads.
    """
    split = split_node.detail.split
    if split is None or split.axis is None or split.static_lengths is None or 0 not in split.static_lengths:
        return None
    kept = [index for index, length in enumerate(split.static_lengths) if length]
    empty = [name for index, name in enumerate(split_node.node.output) if index not in kept and name]
    may_be_constant = _may_be_constant(model, split_node, target)
    gone: dict[str, list[_Edit] | None] = {}
    for name in empty:
        edits = _joins_of(root, split_node, name, empty)
        if edits is None and not may_be_constant:
            return None
        gone[name] = edits
    if not kept:
        return None
    node = NodeProto()
    node.CopyFrom(split_node.node)
    node.output[:] = [split_node.node.output[index] for index in kept]
    lengths = tuple(split.static_lengths[index] for index in kept)
    shorter = replace(split, lengths=lengths, count=len(lengths), form="lengths")
    detail = replace(split_node.detail, split=shorter, divisible=False)
    return Shorter(replace(split_node, node=node, detail=detail), gone)


def _may_be_constant(model: ModelProto, split_node: SplitNode, target: Target) -> bool:
    """Return True where an initializer can stand for an empty part: the target reads such, its type and all other
    dimensions are known, and it is no input, as in old IR versions, and not in a function.
    """
    data, split = split_node.detail.data, split_node.detail.split
    axis = None if split is None else split.axis
    others = [dim for place, dim in enumerate(data.shape or (None,)) if place != axis]
    is_known = data.dtype is not None and all(isinstance(dim, int) for dim in others)
    has_initializers = model.ir_version >= INITIALIZER_IR_VERSION and not split_node.scope.in_function
    return is_known and has_initializers and "constant-empty" in target.reads


def _joins_of(root: Sequence[Scope], split_node: SplitNode, name: str, empty: Collection[str]) -> list[_Edit] | None:
    """Return the Concat nodes that go without an empty part, none where nothing reads it; None where others read it,
    too. empty: the names of all empty parts of the split.
    """
    definitions, readers = Definitions(root), []
    for scope in root:
        if definitions.home(scope.path, name) != split_node.scope.path:
            continue
        if name in (scope.proto.output if scope.is_function else [value.name for value in scope.proto.output]):
            return None
        for index, node in enumerate(scope.nodes):
            if name not in node.input:
                continue
            if scope.path != split_node.scope.path or not _joins_along(node, split_node, empty):
                return None
            readers.append((scope, index))
    return readers


def _joins_along(node: NodeProto, split_node: SplitNode, empty: Collection[str]) -> bool:
    """Return True for a Concat along the axis of the split that also has inputs that are no empty parts of it."""
    if node.op_type != "Concat" or plain_domain(node.domain):
        return False
    # Concat-1 may leave its axis out.
    given = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    rank, split = split_node.detail.data.rank, split_node.detail.split
    is_along = split is not None and rank is not None and given % rank == split.axis
    return is_along and not set(node.input) <= set(empty)


def _plan_part(plan: Plan, split_node: SplitNode, name: str, readers: Sequence[_Edit] | None) -> None:
    if readers is None:
        data, split = split_node.detail.data, split_node.detail.split
        axis = None if split is None else split.axis
        shape = [dim if isinstance(dim, int) and place != axis else 0 for place, dim in enumerate(data.shape or ())]
        kind = DTYPE_NUMBERS[data.dtype] if data.dtype is not None else TensorProto.UNDEFINED
        plan.at(split_node.scope.path).constants.append(TensorProto(name=name, dims=shape, data_type=kind))
    for scope, index in readers or ():
        planned = plan.at(scope.path).replaced.get(index)
        join = planned[0] if planned and isinstance(planned[0], Node) else Node.of(scope.nodes[index])
        shorter = join.copy()
        shorter.inputs = [input for input in join.inputs if input != name]
        plan.replace(scope, index, Replacement([shorter]))


# Slices with plain bounds ---------------------------------------------------------------------------------------------


# What is gone where all bounds are constants within the dimension.
_UNUSUAL = {"bounds-int32", "bounds-steps", "bounds-open", "bounds-negative", "axis-negative"}
_WRITTEN = {"slice-folded", "slice-fixed", "slice-constant"}


def plan_plain_slice(
    plan: Plan,
    model: ModelProto,
    node: NodeTraits,
    detail: GraphDetail,
    target: Target,
    names: FreshNames,
    why: str,
) -> None:
    """Plan that a Slice gets such bounds, where they are known and the target reads it then."""
    bounds = _bounds(node, detail)
    plain = (node.traits - _UNUSUAL - _WRITTEN) | {"slice-constant"}
    if bounds is None or not node.traits & _WRITTEN or target.failures_of(plain):
        return
    emission = new_emission(plan, model, node.scope, node.node, node.index, names, opset_of(node.scope.imports))
    given = [emission.constant(values, hint) for values, hint in zip(bounds, ("starts", "ends", "axes"), strict=True)]
    made = make_node("Slice", [node.node.input[0], *given], list(node.node.output))
    made.name, made.doc_string = node.node.name, node.node.doc_string
    made.metadata_props.extend(node.node.metadata_props)
    emission.main(made)
    plan.replace(node.scope, node.index, emission.replacement(why, node.label, node.label))


def _bounds(node: NodeTraits, detail: GraphDetail) -> tuple[list[int], list[int], list[int]] | None:
    """Return starts, ends and axes; None where one is not known, a step is not 1, or a dimension is not known."""
    inputs = list(node.node.input)
    arguments = [_integers(detail, name) for name in inputs[1:]]
    starts, ends, axes, steps = (*arguments, None, None)[:4] if len(arguments) >= 2 else (None,) * 4
    data = detail.types.get(inputs[0], UNKNOWN)
    if starts is None or ends is None or data.rank is None or (len(inputs) > 4 and inputs[4] and steps is None):
        return None
    if axes is None:
        if len(inputs) > 3 and inputs[3]:
            return None
        axes = list(range(len(starts)))
    if steps is not None and any(step != 1 for step in steps):
        return None
    along = [axis % data.rank for axis in axes]
    dims = [dimension_on(data, axis) for axis in along]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) != len(dims):
        return None
    return _within(starts, sizes), _within(ends, sizes), along


def _within(bounds: list[int], sizes: list[int]) -> list[int]:
    return [max(0, min(bound + size if bound < 0 else bound, size)) for bound, size in zip(bounds, sizes, strict=True)]


def _integers(detail: GraphDetail, name: str) -> list[int] | None:
    constant = detail.constants.get(name)
    contents = tensor_contents(constant) if isinstance(constant, TensorProto) else constant
    return None if contents is None or contents.integers is None else list(contents.integers)
