"""Find what differs between two ONNX models: regions, each with its nodes in both models and the same values at its
border.

1. `differences.matching` pairs the nodes of the two main graphs, and so the values. Two values are taken for the same
   only if their inferred types agree.
2. A node is kept if its partner does the same with the same values (see `sameness`). All other nodes have changed.
3. Nodes that no output of their model depends on do not count, and nodes of one model that compute the same are one
   (see `merging`). An output of a node that nobody reads is not compared. A value that only one model reads is no
   value of both.
4. Changed nodes that meet at a value which only one model has are one region. So are the nodes that compute the same
   value in both models. Two changed nodes that meet at a value of both models stay two regions: each is held to what it
   does itself, so that neither hides the other.

Constants are no values at a border: a region holds those that its nodes read, so that a changed weight changes its
readers. A changed node in a body, or in a function, changes the node that holds the body or calls the function.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import onnx

from splitgraph.differences.matching import ValueNames, match_nodes
from splitgraph.formats.constants import Folder, UnknownFolder
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.kinds import shape_inputs
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.verification.models.model_files import elements_of
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.constant_values import ConstantPairs
from splitgraph.verification.regions.finding.reached import reached, reached_forward
from splitgraph.verification.regions.finding.sameness import Sameness
from splitgraph.verification.regions.finding.sides import ModelSide

# Operators that let only some numbers pass, as they are.
LIMITING = frozenset({"Cast", "Relu", "Abs", "Clip"})
# Operators that tell 0.0 from -0.0, and at which input; and those that pass the sign of a zero on.
_TELLING_SIGNS = {"Div": 1, "Reciprocal": 0, "Pow": 0, "BitCast": 0}
_KEEPING_SIGNS = (
    kinds.MOVED
    | kinds.MOVED_BY_DEFAULT.keys()
    | kinds.SIGNED
    | kinds.WHOLE
    | kinds.names(
        "Asin Asinh Atan Atanh Cast Clip Div Elu Erf HardSwish LeakyRelu Max Min Mul PRelu Selu Sin Sinh Softsign Sqrt "
        "Swish Tan Tanh"
    )
)
# Operators that move elements, and compute nothing.
_MOVING = kinds.MOVED | {"Cast", "Convert", "StridedSlice"}
# So many kept nodes at most belong to a region.
_MOST_CONTEXT = 16
# With what its inputs are computed from, a region has at most so many nodes.
_MOST_BEHIND = 2000
# A constant with more elements is no list of limits or sizes.
_MOST_NUMBERS = 8


# A node: 0 for the first model and 1 for the second one, and its index in the main graph.
_Node = tuple[int, int]


class Border(NamedTuple):
    """A value that both models have, by its name in each."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FoundRegion:
    """A part that differs. before, after: the indices of its nodes in the main graph of each model, in their order.
    inputs: the values that it reads. outputs: the values that other nodes, or a caller, read from it. context: those of
    `before` that have not changed, and belong to it because of what they say about its inputs.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]
    context: frozenset[int] = frozenset()


class ModelRegions:
    """The regions of two models, in the order of the first one. partners: the nodes that both models have alike, by
    their indices. signs_matter: the values of the first model in which 0.0 and -0.0 are not the same.
    """

    def __init__(
        self,
        first: ComparedModel,
        second: ComparedModel,
        locations: tuple[str, str] = ("main", "main"),
        apart: Collection[str] = (),
    ) -> None:
        """locations: of the main graphs, as people read them. apart: values of the first model that are others in the
        second one, whatever their names.
        """
        self._models, self._locations = (first, second), locations
        self.before, self.after = ModelSide(first, locations[0]), ModelSide(second, locations[1])
        self.sides = self.before, self.after
        self._folder = first.folder
        self._sameness = Sameness(self.before.model, self.after.model, _folders(first, second))
        pairs = match_nodes(self.before.graph, self.after.graph, by_position=False)
        names = ValueNames(self.before.graph, self.after.graph, pairs, by_position=False).after
        self._apart_after = {names[name] for name in apart if name in names}
        self._after_name = {
            name: other
            for name, other in names.items()
            if name not in apart and self._may_be_same(name, other) and self._are_alike(name, other)
        }
        self._before_name = {other: name for name, other in self._after_name.items()}
        self._constants = ConstantPairs(self.before.constants, self.after.constants, self._sameness)
        self._pairs = dict(pairs)
        self.partners = {
            index: other for index, other in pairs if index in self.before.computed and self._is_kept(index, other)
        }
        self._drop_values_of_one_model()
        changed = self.before.computed - self.partners.keys(), self.after.computed - set(self.partners.values())
        regions = (self._with_context(self.region(*members)) for members in self._joined(changed))
        self.signs_matter = _with_signs(self.before)
        self.regions = sorted((region for region in regions if region.outputs), key=self._place)

    def with_values_apart(self, names: Collection[str]) -> ModelRegions:
        """Return the regions again, for models in which values of these names are not the same."""
        return ModelRegions(*self._models, self._locations, names)

    def turned(self) -> ModelRegions:
        """Return the regions of the second model and the first one, with the same values apart."""
        (first, second), (here, there) = self._models, self._locations
        return ModelRegions(second, first, (there, here), self._apart_after)

    def common_values(self) -> list[Border]:
        """Return the values that both models compute, in the order of the first model."""
        pairs = ((name, self._after_name.get(name)) for name in self.before.makers)
        return [Border(name, other) for name, other in pairs if other is not None and other in self.after.makers]

    def whole_numbers_behind(self, region: FoundRegion) -> list[int]:
        """Return the small constants that the values of a region in the first model are computed from, such as the
        number of items from which on a branch is taken.
        """
        behind = reached(region.before, self.before.reads, self.before.makers)
        names = dict.fromkeys(name for index in sorted(behind) for name in self.before.reads[index])
        tensors = (self.before.constants.tensor(name) for name in names if name in self.before.constants)
        small = (tensor for tensor in tensors if tensor is not None and math.prod(tensor.dims) <= _MOST_NUMBERS)
        arrays = (elements_of(t, self._folder) for t in small if t.data_type != onnx.TensorProto.STRING)
        numbers = (number for array in arrays if array.dtype.kind in "iuf" for number in array.ravel().tolist())
        return list(dict.fromkeys(int(number) for number in numbers if 1 < number < 2**31))

    def opened(self, region: FoundRegion) -> list[tuple[int, int]]:
        """Return the nodes of a region whose bodies alone differ, each with its partner in the second model."""
        after = set(region.after)
        pairs = [(index, self._pairs.get(index)) for index in region.before if index not in region.context]
        return [
            (index, other)
            for index, other in pairs
            if other is not None
            and other in after
            and self._have_same_outputs(index, other)
            and self._sameness.have_bodies_of_one_kind(self.before.nodes[index], self.after.nodes[other], self._is_same)
        ]

    def name_before(self, name: str) -> str | None:
        """Return the name that a value of the second model has in the first one; None if only the second one has it."""
        return self._counterpart(1, name)

    def region(self, before: Collection[int], after: Collection[int]) -> FoundRegion:
        """Return the region of these nodes, with the values at its border."""
        inputs: dict[Border, None] = {}
        outputs: dict[Border, None] = {}
        for number, (side, indices) in enumerate(zip(self.sides, (before, after), strict=True)):
            made = side.made_by(indices)
            read = dict.fromkeys(name for index in sorted(indices) for name in side.reads[index])
            inputs.update(
                dict.fromkeys(self._border(number, n) for n in read if n not in made and n not in side.constants)
            )
            leaving = (
                name
                for name in made
                if name in side.results or any(reader not in indices for reader in side.readers.get(name, ()))
            )
            outputs.update(dict.fromkeys(self._border(number, n) for n in leaving if self._counterpart(number, n)))
        return FoundRegion(tuple(sorted(before)), tuple(sorted(after)), tuple(inputs), tuple(outputs))

    def joined(self, regions: Sequence[FoundRegion]) -> FoundRegion:
        """Return one region of several, with the kept nodes that lie between them."""
        before = {index for region in regions for index in region.before}
        between = reached(before, self.before.reads, self.before.makers)
        between &= reached_forward(before, self.before.nodes, self.before.readers)
        kept = {index for index in between if index in self.partners}
        after = {index for region in regions for index in region.after} | {self.partners[index] for index in kept}
        return replace(self.region(before | kept, after), context=frozenset(kept))

    def with_all_behind(self, region: FoundRegion) -> FoundRegion | None:
        """Return the region with all nodes that its inputs are computed from, so that it reads inputs of the model and
        nothing else; None if these are no more nodes, or too many. Its outputs are those of the region, and the
        conditions that these nodes compute, so that a run says which were true and false.
        """
        nodes = []
        for number, indices in enumerate((region.before, region.after)):
            side = self.sides[number]
            makers = {side.makers[border[number]] for border in region.inputs if border[number] in side.makers}
            nodes.append(reached({*indices, *makers}, side.reads, side.makers))
        before, after = nodes
        if max(len(before), len(after)) > _MOST_BEHIND or not before - set(region.before):
            return None
        kept = before & self.partners.keys()
        conditions = (
            self._border(0, name)
            for index in sorted(kept)
            for name in self.before.nodes[index].output
            if self._counterpart(0, name) and self.before.types.get(name, UNKNOWN).dtype == "bool"
        )
        outputs = tuple(dict.fromkeys([*region.outputs, *conditions]))
        return replace(self.region(before, after), outputs=outputs, context=frozenset(kept))

    def through_sizes(self, regions: Sequence[FoundRegion]) -> Iterator[tuple[FoundRegion, list[int]]]:
        """Yield larger regions: those of `regions` that compute values which say only sizes, with the nodes that read
        these, and the positions of the regions in each. Other numbers, such as a -1, may say the same size.
        """
        groups = _Groups()
        wider: dict[int, list[_Node]] = {}
        for position, region in enumerate(regions):
            nodes = self._with_told(region)
            if len(nodes) > len(region.before) + len(region.after):
                wider[position] = nodes
                for node in nodes:
                    groups.join(nodes[0], node)
        members: dict[_Node, list[int]] = {}
        for position, nodes in wider.items():
            members.setdefault(groups.find(nodes[0]), []).append(position)
        for positions in members.values():
            before, after = (
                {index for position in positions for side, index in wider[position] if side == number}
                for number in (0, 1)
            )
            yield replace(self.region(before, after), context=frozenset(before & self.partners.keys())), positions

    def _with_told(self, region: FoundRegion) -> list[_Node]:
        """Return the nodes of a region and those that it tells sizes, with their partners or their own regions; only
        those of the region where a node computes with such a size, which may give the same by luck.
        """
        own = [*((0, index) for index in region.before), *((1, index) for index in region.after)]
        nodes, waiting = dict.fromkeys(own), list(own)
        while waiting:
            number, index = waiting.pop()
            side = self.sides[number]
            sizes = [name for name in side.nodes[index].output if name in side.only_sizes]
            for reader, size in {(reader, name) for name in sizes for reader in side.readers.get(name, ())}:
                if (number, reader) not in own and not _says_or_moves(side.nodes[reader], size):
                    return own
                more = [node for node in self._with_partner((number, reader)) if node not in nodes]
                nodes.update(dict.fromkeys(more))
                waiting += more
        return list(nodes)

    def _with_partner(self, node: _Node) -> list[_Node]:
        """Return a kept node with its partner, or the region of a changed one."""
        number, index = node
        for pair in self.partners.items():
            if pair[number] == index:
                return list(enumerate(pair))
        regions = ((region.before, region.after) for region in self.regions)
        own = next((region for region in regions if index in region[number]), ((), ()))
        return [(side, each) for side, indices in enumerate(own) for each in indices]

    def _with_context(self, region: FoundRegion) -> FoundRegion:
        """Return the region with the nodes that say what its inputs can be: a Cast from a narrower type, a Relu; and
        where one side reads a value and the other one what that is computed from, the nodes between the two.
        """
        context: set[int] = set()
        while len(context) < _MOST_CONTEXT:
            more = self._limiting(region) or self._between_inputs(region)
            more &= self.partners.keys()
            more -= set(region.before)
            if not more or len(more) > _MOST_CONTEXT:
                break
            context |= more
            region = self.region({*region.before, *more}, {*region.after, *(self.partners[index] for index in more)})
        return replace(region, context=frozenset(context))

    def _limiting(self, region: FoundRegion) -> set[int]:
        """Return the kept nodes that make an input, and let only some numbers pass."""
        makers = (self.before.makers.get(border.before) for border in region.inputs)
        return {maker for maker in makers if maker is not None and self.before.nodes[maker].op_type in LIMITING}

    def _between_inputs(self, region: FoundRegion) -> set[int]:
        """Return the nodes that compute an input of one side from an input of the other one."""
        read = [
            {name for index in indices for name in side.reads[index]}
            for side, indices in zip(self.sides, (region.before, region.after), strict=True)
        ]
        of_one = [border for border in region.inputs if (border.before in read[0]) != (border.after in read[1])]
        between: set[int] = set()
        for border in of_one:
            maker = self.before.makers.get(border.before)
            if maker is None:
                continue
            others = [other.before for other in region.inputs if other != border]
            readers = [reader for name in others for reader in self.before.readers.get(name, ())]
            forward = reached_forward(readers, self.before.nodes, self.before.readers)
            if maker in forward:
                between |= forward & reached([maker], self.before.reads, self.before.makers)
        return between

    # Nodes that stay ---------------------------------------------------------------------------------------------

    def _may_be_same(self, name: str, other: str) -> bool:
        """Return False for two inner values whose types contradict each other."""
        if name in self.before.results or name not in self.before.makers:
            return True
        return not _contradict(self.before.types.get(name, UNKNOWN), self.after.types.get(other, UNKNOWN))

    def _are_alike(self, name: str, other: str) -> bool:
        """Return False for a value that one model computes and the other one has as a constant: drawn for the one, it
        would not be what the other one reads.
        """
        return (name in self.before.constants) == (other in self.after.constants)

    def _drop_values_of_one_model(self) -> None:
        """Keep no value as one of both models that only one of them reads: the other one may compute anything there."""
        kept = {name for index in self.partners for name in self.before.nodes[index].output}
        for name, other in list(self._after_name.items()):
            if name not in kept and self.before.is_used(name) != self.after.is_used(other):
                del self._after_name[name], self._before_name[other]

    def _is_kept(self, index: int, other: int) -> bool:
        before, after = self.before.nodes[index], self.after.nodes[other]
        return self._sameness.are_same(before, after, self._is_same) and self._have_same_outputs(index, other)

    def _have_same_outputs(self, index: int, other: int) -> bool:
        """Return True if the outputs of two nodes that somebody reads are the same values."""
        return all(
            self._after_name.get(name) == new or not (self.before.is_used(name) or self.after.is_used(new))
            for name, new in zip(self.before.nodes[index].output, self.after.nodes[other].output, strict=False)
        )

    def _is_same(self, name: str, other: str) -> bool:
        constants = name in self.before.constants, other in self.after.constants
        if any(constants):
            return all(constants) and self._constants.are_same(name, other)
        return self._after_name.get(name) == other if name and other else name == other

    # Regions -----------------------------------------------------------------------------------------------------

    def _joined(self, changed: tuple[Collection[int], Collection[int]]) -> Iterable[tuple[list[int], list[int]]]:
        """Return the changed nodes of both models, region by region."""
        groups = _Groups()
        for number, indices in enumerate(changed):
            side, other = self.sides[number], self.sides[1 - number]
            for index in indices:
                for name in side.nodes[index].output:
                    counterpart = self._counterpart(number, name)
                    if counterpart is None:
                        for reader in side.readers.get(name, ()):
                            groups.join((number, index), (number, reader))
                    elif counterpart in other.makers:
                        groups.join((number, index), (1 - number, other.makers[counterpart]))
        members: dict[_Node, tuple[list[int], list[int]]] = {}
        for number, indices in enumerate(changed):
            for index in sorted(indices):
                members.setdefault(groups.find((number, index)), ([], []))[number].append(index)
        return members.values()

    def _counterpart(self, number: int, name: str) -> str | None:
        """Return the name of a value in the other model; None if only this one has it."""
        return (self._before_name if number else self._after_name).get(name)

    def _border(self, number: int, name: str) -> Border:
        other = self._counterpart(number, name) or name
        return Border(other, name) if number else Border(name, other)

    def _place(self, region: FoundRegion) -> int:
        """Return where a region is in the first model."""
        makers = (self.before.makers.get(border.before) for border in region.outputs)
        return min((*region.before, *(maker for maker in makers if maker is not None)), default=0)


def _folders(first: ComparedModel, second: ComparedModel) -> tuple[Folder, Folder]:
    # Models without a folder have no data files, or the same ones.
    unknown = UnknownFolder()
    return first.folder or unknown, second.folder or unknown


def _contradict(before: ValueType, after: ValueType) -> bool:
    """Return True if no value can have both types."""
    if before.kind != after.kind:
        return "unknown" not in (before.kind, after.kind)
    if before.dtype != after.dtype and before.dtype is not None and after.dtype is not None:
        return True
    if before.kind != "tensor" or before.shape is None or after.shape is None:
        return False
    pairs = zip(before.shape, after.shape, strict=False)
    sizes = [pair for pair in pairs if isinstance(pair[0], int) and isinstance(pair[1], int)]
    return before.rank != after.rank or any(one != other for one, other in sizes)


def _says_or_moves(node: onnx.NodeProto, name: str) -> bool:
    """Return True if a node reads a value as sizes, or only moves its elements."""
    return node.op_type in _MOVING or any(
        position < len(node.input) and node.input[position] == name for position in shape_inputs(node)
    )


def _with_signs(side: ModelSide) -> set[str]:
    """Return the values whose zeros may meet an operator that tells 0.0 from -0.0."""
    matter: set[str] = set()
    for index in sorted(side.computed, reverse=True):
        node = side.nodes[index]
        if node.op_type in _TELLING_SIGNS:
            matter.update(node.input[_TELLING_SIGNS[node.op_type] :][:1])
        if node.op_type == "Cast" and side.types.get(node.output[0], UNKNOWN).dtype == "string":
            matter.update(node.input)
        if node.op_type in _KEEPING_SIGNS and not matter.isdisjoint(node.output):
            matter.update(node.input)
    return matter - {""}


class _Groups:
    """Sets of nodes that grow together."""

    def __init__(self) -> None:
        self._parent: dict[_Node, _Node] = {}

    def find(self, node: _Node) -> _Node:
        """Return the node that stands for the set of a node."""
        self._parent.setdefault(node, node)
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def join(self, node: _Node, other: _Node) -> None:
        """Make one set of two."""
        self._parent[self.find(node)] = self.find(other)
