"""Splits without their empty parts, for runtimes that refuse a part of length 0 or compute it wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from splitgraph.conversion.finish.ir_version import INITIALIZER_IR_VERSION
from splitgraph.conversion.nodes.node import Node
from splitgraph.conversion.planning.plan import Plan, Replacement
from splitgraph.conversion.splits.lower import SplitNode
from splitgraph.graph.names import Definitions
from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.runtimes.target import Target
from splitgraph.value_type import DTYPE_NUMBERS

# A node by its scope and index.
_Edit = tuple[Scope, int]


class Shorter(NamedTuple):
    """A split with only the parts that have elements. gone: for each other part that has a name, the Concat nodes that
    go without it; None where a constant stands for it.
    """

    split: SplitNode
    gone: dict[str, list[_Edit] | None]


def without_empty_parts(model: ModelProto, root: Sequence[Scope], found: SplitNode, target: Target) -> Shorter | None:
    """The split without its empty parts. None where the lengths are not known, or where an empty part is read and can
    be no constant that the target reads.
    """
    split = found.detail.split
    if split is None or split.axis is None or split.static_lengths is None or 0 not in split.static_lengths:
        return None
    kept = [index for index, length in enumerate(split.static_lengths) if length]
    empty = [name for index, name in enumerate(found.node.output) if index not in kept and name]
    may_be_constant = _may_be_constant(model, found, target)
    gone: dict[str, list[_Edit] | None] = {}
    for name in empty:
        edits = _joins_of(root, found, name, empty)
        if edits is None and not may_be_constant:
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


def plan_empty_parts(plan: Plan, found: SplitNode, gone: Mapping[str, Sequence[_Edit] | None]) -> None:
    """Plan what becomes of the empty parts of a split."""
    for name, readers in gone.items():
        _plan_part(plan, found, name, readers)


def _may_be_constant(model: ModelProto, found: SplitNode, target: Target) -> bool:
    """True where an initializer can stand for an empty part: the target reads such, its type and all other dimensions
    are known, and it is no input, as in old IR versions, and not in a function.
    """
    data, split = found.detail.data, found.detail.split
    axis = None if split is None else split.axis
    others = [dim for place, dim in enumerate(data.shape or (None,)) if place != axis]
    is_known = data.dtype is not None and all(isinstance(dim, int) for dim in others)
    has_initializers = model.ir_version >= INITIALIZER_IR_VERSION and not found.scope.in_function
    return is_known and has_initializers and "constant-empty" in target.reads


def _joins_of(root: Sequence[Scope], found: SplitNode, name: str, empty: Collection[str]) -> list[_Edit] | None:
    """The Concat nodes that go without an empty part, none where nothing reads it; None where others read it, too.
    empty: the names of all empty parts of the split.
    """
    definitions, readers = Definitions(root), []
    for scope in root:
        if definitions.home(scope.path, name) != found.scope.path:
            continue
        if name in (scope.proto.output if scope.is_function else [value.name for value in scope.proto.output]):
            return None
        for index, node in enumerate(scope.nodes):
            if name not in node.input:
                continue
            if scope.path != found.scope.path or not _joins_along(node, found, empty):
                return None
            readers.append((scope, index))
    return readers


def _joins_along(node: NodeProto, found: SplitNode, empty: Collection[str]) -> bool:
    """True for a Concat along the axis of the split that also has inputs that are no empty parts of it."""
    if node.op_type != "Concat" or plain_domain(node.domain):
        return False
    # Concat-1 may leave its axis out.
    given = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)
    rank, split = found.detail.data.rank, found.detail.split
    is_along = split is not None and rank is not None and given % rank == split.axis
    return is_along and not set(node.input) <= set(empty)


def _plan_part(plan: Plan, found: SplitNode, name: str, readers: Sequence[_Edit] | None) -> None:
    if readers is None:
        data, split = found.detail.data, found.detail.split
        axis = None if split is None else split.axis
        shape = [dim if isinstance(dim, int) and place != axis else 0 for place, dim in enumerate(data.shape or ())]
        kind = DTYPE_NUMBERS[data.dtype] if data.dtype is not None else TensorProto.UNDEFINED
        plan.at(found.scope.path).constants.append(TensorProto(name=name, dims=shape, data_type=kind))
    for scope, index in readers or ():
        planned = plan.at(scope.path).replaced.get(index)
        join = planned[0] if planned and isinstance(planned[0], Node) else Node.of(scope.nodes[index])
        shorter = join.copy()
        shorter.inputs = [each for each in join.inputs if each != name]
        plan.replace(scope, index, Replacement([shorter]))
