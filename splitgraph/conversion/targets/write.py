"""Writes the splits of a model as a runtime reads them: one round of a conversion for a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.splits.joined_slices import plan_partitions
from splitgraph.conversion.splits.lower import SplitNode, SplitRewrites, lower_split
from splitgraph.conversion.splits.sequences import plan_sequences
from splitgraph.conversion.targets.operators import first_read, plan_other_operators
from splitgraph.conversion.targets.patterns import plan_parted
from splitgraph.conversion.targets.split_ways import SplitWay, WrittenValues, first_read_way, judge_written
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.attributes import make_node
from splitgraph.model.names import Definitions, FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import GraphPath, Scope, plain_domain, roots
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN
from splitgraph.model.values import tensor_contents
from splitgraph.runtimes.check import Examined
from splitgraph.runtimes.node_traits import NodeTraits
from splitgraph.runtimes.patterns import ends_pattern
from splitgraph.runtimes.target import Target
from splitgraph.splits.canonical import dimension_on
from splitgraph.splits.lowering import set_int

# Splits that the target does not read ---------------------------------------------------------------------------------


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
        kinds = {node.node.op_type for node in failing.values()}
        if not kinds.isdisjoint(("SplitToSequence", "SequenceAt")):
            # Of a sequence whose elements are not read, the split is written in another way.
            only = None if "SequenceAt" in kinds else failing.keys()
            plan_sequences(self.plan, model, walked, root, names, why, only=only)
        if self.joins and any(node.takes_part for node in failing.values()):
            plan_partitions(self.plan, model, walked, root, names, why, only=failing.keys())
        for node in failing.values():
            if node.node.op_type == "Slice" and not self._is_planned(node):
                detail = walked.graphs[node.scope.path]
                plan_plain_slice(self.plan, model, node, detail, self.target, names, why)
            if ends_pattern(node.factors):
                plan_parted(self.plan, model, node, names, why)
        self._write_others(root, names, why, failing)

    def _write_others(
        self, root: Sequence[Scope], names: FreshNames, why: str, failing: Mapping[tuple[GraphPath, int], NodeTraits]
    ) -> None:
        # What no way was found for is not tried again.
        tried = {
            place: node
            for place, node in failing.items()
            if node.detail is None and not node.is_call and (place[0], _first_output(node)) not in self.stuck
        }
        wanted = {place: self.target.operators.types_read(node.label) for place, node in tried.items()}
        choose = first_read(self.target, opset_of(root[0].imports))
        model, walked = self.examined.model, self.examined.walked
        plan_other_operators(self.plan, model, walked, root, names, why, wanted=wanted, choose=choose)
        self.stuck |= {(node.scope.path, _first_output(node)) for node in tried.values() if not self._is_planned(node)}

    def _is_planned(self, node: NodeTraits) -> bool:
        return self.plan.at(node.scope.path).changes(node.index)

    def _write(self, rewrites: SplitRewrites, node: NodeTraits, root: Sequence[Scope]) -> None:
        detail = node.detail
        if detail is None or detail.split is None:
            return
        split_node = SplitNode(node.scope, node.index, node.node, detail)
        way = self._first_way(split_node, node)
        if way is None:
            shorter = without_empty_parts(self.examined.model, root, split_node, self.target)
            way = None if shorter is None else self._first_way(shorter.split, node)
            if shorter is None or way is None:
                return
            for name, readers in shorter.gone.items():
                _plan_part(self.plan, split_node, name, readers)
            split_node = shorter.split
        again = self._again(split_node, way, rewrites.names)
        replacement = rewrites.write(again, way.variant, explicit_lengths=way.explicit_lengths, afresh=True)
        if replacement is not None:
            _write_axis(replacement, way)

    def _first_way(self, split_node: SplitNode, node: NodeTraits) -> SplitWay | None:
        """Return the first way to write a split that the target reads. Each is written with names for the trial."""
        scope, index, opset = split_node.scope, split_node.index, opset_of(split_node.scope.imports)

        def write(way: SplitWay) -> Replacement | None:
            names = FreshNames((*split_node.node.input, *split_node.node.output))
            again = self._again(split_node, way, names)
            emission = new_emission(self.plan, self.examined.model, scope, again.node, index, names, opset)
            explicit = way.explicit_lengths
            replacement, _ = lower_split(again, way.variant, emission, "", explicit_lengths=explicit, afresh=True)
            if replacement is not None:
                _write_axis(replacement, way)
            return replacement

        return first_read_way(split_node, node, opset, self.target, write)

    def _again(self, split_node: SplitNode, way: SplitWay, names: FreshNames) -> SplitNode:
        """Return a split as it is to be written in a way: each output has a name, or none if nothing reads the slice
        for it.
        """
        node = NodeProto()
        node.CopyFrom(split_node.node)
        is_sliced = way.variant.op_type == "Slice"
        for index, name in enumerate(node.output):
            if is_sliced and name and not self.plan.is_read(split_node.scope.path, name):
                node.output[index] = ""
            elif not name and not is_sliced:
                node.output[index] = names.new(f"{split_node.node.name or split_node.node.op_type}_part{index}")
        # The lengths that the model has may be what the target does not read: known ones become a new constant.
        known = way.split.static_lengths is not None
        dtype = None if known else split_node.detail.lengths_dtype
        return replace(split_node, node=node, detail=replace(split_node.detail, split=way.split, lengths_dtype=dtype))


def _write_axis(replacement: Replacement, way: SplitWay) -> None:
    """Write the axis of a Split out."""
    for made in replacement.messages():
        if made.op_type == "Split" and way.split.axis is not None and not _refers(made):
            set_int(made, "axis", way.split.axis)


def _first_output(node: NodeTraits) -> str:
    return next(filter(None, node.node.output), "")


def _refers(node: NodeProto) -> bool:
    """Return True where the axis is an attribute of the enclosing function."""
    return any(attribute.ref_attr_name for attribute in node.attribute)


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
    return is_known and has_initializers and _reads_empty_constants(target, opset_of(split_node.scope.imports))


def _reads_empty_constants(target: Target, opset: int) -> bool:
    """Return True if the target was measured to read an initializer without elements."""
    version = meant_version("Identity", opset)
    kind = (("data", "const"), ("empty", "yes"))
    return (
        target.measured is not None
        and version is not None
        and target.judge_version(f"Identity-{version.since_version}", frozenset(), kind).verdict == "reads"
    )


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


def plan_plain_slice(
    plan: Plan,
    model: ModelProto,
    node: NodeTraits,
    detail: GraphDetail,
    target: Target,
    names: FreshNames,
    why: str,
) -> None:
    """Plan that a Slice gets constant bounds within the dimension, where they are known and the target is not known to
    refuse it then.
    """
    bounds = _bounds(node, detail)
    if bounds is None or node.seen is None:
        return
    opset = opset_of(node.scope.imports)
    emission = new_emission(plan, model, node.scope, node.node, node.index, names, opset)
    given = [emission.constant(values, hint) for values, hint in zip(bounds, ("starts", "ends", "axes"), strict=True)]
    made = make_node("Slice", [node.node.input[0], *given], list(node.node.output))
    made.name, made.doc_string = node.node.name, node.node.doc_string
    made.metadata_props.extend(node.node.metadata_props)
    emission.main(made)
    replacement = emission.replacement(why, node.label, node.label)
    judged = judge_written(made, WrittenValues.of(replacement, node.seen, "shape"), opset, target)
    if judged.verdict in ("reads", "unmeasured"):
        plan.replace(node.scope, node.index, replacement)


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
