"""Writes what a walk with new sizes found into a model: constants, and nodes that compute sizes from the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.sizes.draft import NUM_OUTPUTS, SizeDraft, WrittenSizes, equal_parts
from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.formulas import plain_target
from splitgraph.conversion.sizes.needs import InputPlace
from splitgraph.conversion.sizes.weights_anew import WeightWriter
from splitgraph.conversion.sizes.windows import ATTRIBUTES_OF_GLOBAL, GLOBAL
from splitgraph.dim import DimLike
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import make_attribute
from splitgraph.model.names import Definitions, FreshNames
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import GraphPath, Scope, node_label
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType

_INT64 = "int64"


@dataclass(slots=True)
class SizeWriter:
    """Plans the edits of a root of a model."""

    plan: Plan
    walked: Walked
    follower: Follower
    names: FreshNames
    root: Sequence[Scope]
    _definitions: Definitions = field(init=False)
    _computed: dict[GraphPath, dict[DimLike, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._definitions = Definitions(self.root)

    def run(self) -> None:
        """Plan the edits in graph order. Raises NotWritable."""
        replacements: list[tuple[Scope, int, Replacement]] = []
        for scope in self.root:
            for index in sorted(self._edited(scope.path)):
                replacements.append((scope, index, self._replacement(scope, index)))
        self.plan.replace_all(replacements)

    def _edited(self, path: GraphPath) -> set[int]:
        """Return the nodes of a graph that change."""
        follower = self.follower
        places: list[NodePlace] = [
            *follower.seen.edits,
            *follower.seen.attributes,
            *follower.seen.values,
            *follower.seen.taking_all,
        ]
        places += [each[:2] for each in follower.decided.expanded]
        return {index for where, index in places if where == path}

    def _replacement(self, scope: Scope, index: int) -> Replacement:
        """Return what stands in place of a node: the node with its edits, behind the nodes that it needs for them."""
        node, place, follower = scope.nodes[index], (scope.path, index), self.follower
        edited, draft = Node.of(node), self._draft(scope, node_label(node, index))
        weights = WeightWriter(draft, follower.wanted)
        why: list[str] = []
        for position, contents in sorted(follower.seen.edits.get(place, {}).items()):
            why.append(f"{_operand(node, position)} {_spelled(contents)}")
            self._write_elements(draft, edited, position, contents)
        for position, entries in sorted(follower.seen.values.get(place, {}).items()):
            why.append(f"computes with {', '.join(map(str, entries.values()))}")
            name = node.input[position]
            edited.inputs[position] = weights.with_sizes(name, self._type(scope, name), entries)
        for name, numbers in follower.seen.attributes.get(place, {}).items():
            why.append("equal parts" if numbers is None else f"{name} {list(numbers)}")
            _set_attribute(edited, name, numbers)
        if place in follower.seen.taking_all:
            why.append("takes everything")
            _make_global(edited)
        why += self._expand_inputs(scope, index, edited, weights)
        told = f"follows the sizes: {', '.join(why)}"
        return Replacement([*draft.nodes, edited], draft.constants, told, after=edited.op_type)

    def _expand_inputs(self, scope: Scope, index: int, edited: Node, weights: WeightWriter[str]) -> Iterator[str]:
        """Give inputs the dimensions that they get along axes. Yield what is done, for the reason of the change."""
        for position, name in enumerate(scope.nodes[index].input):
            place = InputPlace(scope.path, index, position)
            axes, known = self.follower.decided.expanded.get(place), self._type(scope, name)
            if axes:
                edited.inputs[position] = weights.expanded(self.follower, place, name, known, axes)
                shape: list[Any] = [axes.get(axis, dim) for axis, dim in enumerate(known.shape or ())]
                yield f"{name!r} is repeated to {_spelled(shape)}"

    def _draft(self, scope: Scope, prefix: str) -> SizeDraft:
        # Nodes share only sizes. A node that computes anything else may turn out to have no reader.
        written = WrittenSizes(self._computed.setdefault(scope.path, {}))
        return SizeDraft(self.plan, self.names, scope, prefix, self.follower.wanted.places, written)

    def _write_elements(self, draft: SizeDraft, edited: Node, position: int, contents: Contents) -> None:
        """Give an input of a node these elements, at the new sizes."""
        items: list[DimLike] = [self.follower.wanted.after(item) for item in contents.items]  # type: ignore[arg-type]
        if edited.op_type == "Split" and len(set(items)) == 1 and self._are_parts(draft, edited, items):
            equal_parts(edited, draft.opset, len(items))
            return
        if edited.op_type == "Reshape":
            copies = "allowzero" not in edited.attributes or edited.attributes["allowzero"].i != 1
            items = plain_target(items, self._type(draft.scope, edited.inputs[0]).shape or (), zeros_copy=copies)
        if position == len(edited.inputs):
            edited.inputs.append("")
        edited.inputs[position] = draft.elements(
            items, contents.shape, self._dtype(draft.scope, edited.inputs[position])
        )

    def _are_parts(self, draft: SizeDraft, edited: Node, lengths: Sequence[DimLike]) -> bool:
        """Return True if a Split gives these lengths or fails: num_outputs gives others where one element is left."""
        if draft.opset < NUM_OUTPUTS:
            return True
        shape = self._type(draft.scope, edited.inputs[0]).shape
        axis = edited.attributes["axis"].i if "axis" in edited.attributes else 0
        whole = None if shape is None else shape[axis]
        return whole is not None and lengths[0] * len(lengths) == self.follower.wanted.after(whole)

    def _type(self, scope: Scope, name: str) -> ValueType:
        detail = self.walked.graphs.get(self._definitions.home(scope.path, name))
        return UNKNOWN if detail is None else detail.types.get(name, UNKNOWN)

    def _dtype(self, scope: Scope, name: str) -> str:
        return self._type(scope, name).dtype or _INT64


_OPERANDS = {
    "Reshape": {1: "target"},
    "Expand": {1: "target"},
    "Slice": {1: "starts", 2: "ends"},
    "Split": {1: "lengths"},
    "Squeeze": {1: "axes"},
    "Resize": {3: "sizes"},
    "ConstantOfShape": {0: "shape"},
    "Range": {1: "limit"},
    "Tile": {1: "repeats"},
    "TopK": {1: "k"},
}


def _set_attribute(edited: Node, name: str, numbers: tuple[int, ...] | None) -> None:
    """Give a node these numbers as an attribute; None removes the attribute."""
    edited.attributes.pop(name, None)
    if numbers is not None:
        edited.attributes[name] = make_attribute(name, numbers)


def _make_global(edited: Node) -> None:
    """Make a pooling one that takes all of each dimension."""
    edited.op_type = GLOBAL[edited.op_type]
    edited.attributes = {name: each for name, each in edited.attributes.items() if name in ATTRIBUTES_OF_GLOBAL}


def _operand(node: NodeProto, position: int) -> str:
    return _OPERANDS.get(node.op_type, {}).get(position, f"input {position}")


def _spelled(items: Contents | Sequence[DimLike]) -> str:
    listed = items.items if isinstance(items, Contents) else items
    return f"[{', '.join(map(str, listed))}]"
