"""Splits without their empty parts, for runtimes that refuse a part of length 0 or compute it wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from splitgraph.conversion.planning.plan import NodeEdit, Plan
from splitgraph.conversion.splits.lower import SplitNode
from splitgraph.graph.definitions import Definitions
from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.onnx_proto import NodeProto, TensorProto
from splitgraph.runtimes.target import Target
from splitgraph.value_type import DTYPE_NUMBERS

# A node by its scope and index.
_Edit = tuple[Scope, int]


class Shorter(NamedTuple):
    """A split with only the parts that have elements. gone: for each other part that has a name, the Concat nodes that
    go without it; a constant stands for a part without such nodes.
    """

    split: SplitNode
    gone: dict[str, list[_Edit]]


def without_empty_parts(root: Sequence[Scope], found: SplitNode, target: Target) -> Shorter | None:
    """The split without its empty parts. None where the lengths are not known, or where an empty part is read and can
    be no constant that the target reads.
    """
    split = found.detail.split
    if split is None or split.axis is None or split.static_lengths is None or 0 not in split.static_lengths:
        return None
    kept = [index for index, length in enumerate(split.static_lengths) if length]
    gone: dict[str, list[_Edit]] = {}
    for index, name in enumerate(found.node.output):
        if index in kept or not name:
            continue
        edits = _edits_of(root, found, name, split.axis, target)
        if edits is None:
            return None
        gone[name] = edits
    if not kept:
        return None
    node = NodeProto()
    node.CopyFrom(found.node)
    node.output[:] = [found.node.output[index] for index in kept]
    lengths = tuple(split.static_lengths[index] for index in kept)
    shorter = replace(split, lengths=lengths, count=len(lengths), form="lengths")
    detail = replace(found.detail, split=shorter, divisible=False)
    return Shorter(replace(found, node=node, detail=detail), gone)


def plan_empty_parts(plan: Plan, found: SplitNode, gone: Mapping[str, Sequence[_Edit]]) -> None:
    """Plan what becomes of the empty parts of a split."""
    for name, readers in gone.items():
        _plan_part(plan, found, name, readers)


def _edits_of(root: Sequence[Scope], found: SplitNode, name: str, axis: int, target: Target) -> list[_Edit] | None:
    """The Concat nodes that go without an empty part; an empty list where a constant stands for it; None where neither
    can be.
    """
    definitions, readers, others = Definitions(root), [], False
    for scope in root:
        if definitions.home(scope.path, name) != found.scope.path:
            continue
        outputs = scope.proto.output if scope.is_function else [value.name for value in scope.proto.output]
        others |= name in outputs
        for index, node in enumerate(scope.nodes):
            if name not in node.input:
                continue
            if scope.path == found.scope.path and _joins_along(node, axis, found):
                readers.append((scope, index))
            else:
                others = True
    if not others:
        return readers
    data = found.detail.data
    others_known = all(isinstance(dim, int) for place, dim in enumerate(data.shape or (None,)) if place != axis)
    is_constant = others_known and "constant-empty" in target.reads and not found.scope.in_function
    return [] if is_constant else None


def _joins_along(node: NodeProto, axis: int, found: SplitNode) -> bool:
    """True for a Concat along the axis of the split that has other inputs, too."""
    if node.op_type != "Concat" or plain_domain(node.domain):
        return False
    given = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    rank = found.detail.data.rank
    return rank is not None and given % rank == axis and len(set(node.input)) > 1


def _plan_part(plan: Plan, found: SplitNode, name: str, readers: Sequence[_Edit]) -> None:
    if not readers:
        data, split = found.detail.data, found.detail.split
        axis = 0 if split is None else split.axis
        shape = [dim if isinstance(dim, int) and place != axis else 0 for place, dim in enumerate(data.shape or ())]
        plan.at(found.scope.path).new_initializers.append(
            TensorProto(name=name, dims=shape, data_type=DTYPE_NUMBERS[data.dtype or "float32"])
        )
    for scope, index in readers:
        edits, node = plan.at(scope.path), scope.nodes[index]
        before = edits.nodes[index].inputs if index in edits.nodes else list(node.input)
        edits.nodes[index] = NodeEdit("Concat", [each for each in before if each != name], list(node.output))
