"""Writes what a walk with new sizes found into a model: constants, and nodes that compute sizes from the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.sizes.draft import NUM_OUTPUTS, SizeDraft, WrittenSizes, equal_parts
from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.formulas import NotWritable, plain_target
from splitgraph.conversion.sizes.needs import Counted, Cut, InputPlace, Repeated, Triangle
from splitgraph.conversion.sizes.windows import ATTRIBUTES_OF_GLOBAL, GLOBAL
from splitgraph.dim import DimLike
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import make_attribute
from splitgraph.model.deferred import np
from splitgraph.model.names import Definitions, FreshNames
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import GraphPath, Scope, node_label
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, Contents, Shape, ValueType

# Expand, Range and the bounds of a Slice as inputs exist from these opsets on.
_EXPAND, _RANGE, _BOUNDS = 8, 11, 10
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
                replacement = self._replacement(scope, index)
                if replacement is not None:
                    replacements.append((scope, index, replacement))
        self.plan.replace_all(replacements)

    def _edited(self, path: GraphPath) -> set[int]:
        follower = self.follower
        places: list[NodePlace] = [*follower.edits, *follower.attributes, *follower.values, *follower.taking_all]
        places += [each[:2] for each in follower.expanded]
        return {index for where, index in places if where == path}

    def _replacement(self, scope: Scope, index: int) -> Replacement | None:
        node = scope.nodes[index]
        edited, draft = Node.of(node), _FollowingDraft(self, scope, node_label(node, index))
        why: list[str] = []
        for position, contents in sorted(self.follower.edits.get((scope.path, index), {}).items()):
            why.append(f"{_operand(node, position)} {_spelled(contents)}")
            self._write_elements(draft, edited, position, contents)
        for position, entries in sorted(self.follower.values.get((scope.path, index), {}).items()):
            why.append(f"computes with {', '.join(map(str, entries.values()))}")
            edited.inputs[position] = draft.with_sizes(node.input[position], entries)
        for name, numbers in self.follower.attributes.get((scope.path, index), {}).items():
            edited.attributes.pop(name, None)
            if numbers is not None:
                edited.attributes[name] = make_attribute(name, numbers)
            why.append("equal parts" if numbers is None else f"{name} {list(numbers)}")
        if (scope.path, index) in self.follower.taking_all:
            why.append("takes everything")
            edited.op_type = GLOBAL[node.op_type]
            kept = {name: each for name, each in edited.attributes.items() if name in ATTRIBUTES_OF_GLOBAL}
            edited.attributes = kept
        for position in range(len(node.input)):
            axes = self.follower.expanded.get(InputPlace(scope.path, index, position))
            if axes:
                own = self._type(scope, node.input[position]).shape or ()
                shape: list[Any] = [axes.get(axis, dim) for axis, dim in enumerate(own)]
                why.append(f"{node.input[position]!r} is repeated to {_spelled(shape)}")
                edited.inputs[position] = draft.expanded(
                    InputPlace(scope.path, index, position), node.input[position], shape
                )
        told = f"follows the sizes: {', '.join(why)}"
        return Replacement([*draft.nodes, edited], draft.constants, told, node.op_type, edited.op_type)

    def _write_elements(self, draft: _FollowingDraft, edited: Node, position: int, contents: Contents) -> None:
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

    def _are_parts(self, draft: _FollowingDraft, edited: Node, lengths: Sequence[DimLike]) -> bool:
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


class _FollowingDraft(SizeDraft):
    """The nodes and constants that stand before one node whose inputs get other sizes."""

    def __init__(self, writer: SizeWriter, scope: Scope, prefix: str) -> None:
        wanted = writer.follower.wanted
        # Sizes alone are shared by nodes: each of them may turn out to be read by nobody.
        written = WrittenSizes(writer._computed.setdefault(scope.path, {}))
        super().__init__(writer.plan, writer.names, scope, prefix, wanted.places, written)
        self.writer, self.wanted = writer, wanted

    def expanded(self, place: InputPlace, name: str, shape: Sequence[DimLike]) -> str:
        """Write a value that is repeated along axes where it has one element; returns its name."""
        follower, known = self.writer.follower, self.writer._type(self.scope, name)
        wanted, own = [self.wanted.after(dim) for dim in shape], known.shape or ()
        levels, dtype = follower.levels.get(place), known.dtype or _INT64
        if levels is None:
            cut, pattern = follower.cuts.get(place), follower.patterns.get(place)
            return self._expanded(name, own, wanted, dtype, cut, follower.repeated.get(place, {}), pattern)
        parts, axis = [], levels.axis
        for start, dim, (cut, repeated, counted) in levels.parts:
            size = prod(cut.sizes)
            part = self._part_of(name, axis, start, start + size)
            old = (*own[:axis], size, *own[axis + 1 :])
            sizes = (*wanted[:axis], self.wanted.after(dim), *wanted[axis + 1 :])
            parts.append(self._expanded(part, old, sizes, dtype, cut, repeated, counted or None))
        return self.write("Concat", parts, "levels", axis=axis)

    def _part_of(self, name: str, axis: int, start: int, end: int) -> str:
        """Write the part of a value between two places along an axis; returns its name."""
        if self.opset < _BOUNDS:
            return self.write("Slice", [name], "level", starts=[start], ends=[end], axes=[axis])
        return self.write("Slice", [name, *(self.list_of([each], "bound") for each in (start, end, axis))], "level")

    def _expanded(
        self,
        name: str,
        own: Sequence[DimLike | None],
        wanted: Sequence[DimLike],
        dtype: str,
        cut: Cut | None,
        repeated: Mapping[int, Repeated],
        pattern: tuple[Counted, ...] | Triangle | None,
    ) -> str:
        """Write the same for one list or grid of weights. own, wanted: their shapes."""
        counted = next((each for each in repeated.values() if each.step), None)
        whole, own = wanted, tuple(own)
        if cut is not None:
            wanted = cut.parts(wanted, [self.wanted.after(dim) for dim in cut.dims])
            own = cut.parts(own, cut.sizes)
            name = self.write("Reshape", [name, self.list_of(own, "parts")], "in_parts")
        if isinstance(pattern, Triangle):
            name = self._triangle(pattern, wanted)
            own = (*(1 for _ in wanted[:-2]), *wanted[-2:])
        elif pattern is not None:
            for count in pattern:
                name = self._with_count(name, count, wanted, dtype)
                own = (*own[: count.axis], wanted[count.axis], *own[count.axis + 1 :])
            name, own = self._first_of(name, own, repeated)
        elif counted is not None:
            name = self._counted(counted, wanted[counted.axis], len(wanted), dtype)
            own = tuple(dim if axis == counted.axis else 1 for axis, dim in enumerate(wanted))
        else:
            name, own = self._first_of(name, own, repeated)
        target = [1 if before == after else after for before, after in zip(own, wanted, strict=True)]
        if any(size != 1 for size in target):
            operator = "Expand" if self.opset >= _EXPAND else "Tile"
            name = self.write(operator, [name, self.elements(target, (len(target),), _INT64)], "repeated")
        return (
            name if cut is None else self.write("Reshape", [name, self.elements(whole, (len(whole),), _INT64)], "whole")
        )

    def with_sizes(self, name: str, entries: Mapping[int, DimLike]) -> str:
        """Write a constant with sizes in place of some of its numbers; returns its name."""
        kind = self.writer._type(self.scope, name)
        shape = tuple(size for size in kind.shape or () if isinstance(size, int))
        dims = [self.wanted.after(entries.get(entry, 0)) for entry in range(prod(shape))]
        made = self.elements(dims, shape, kind.dtype or _INT64)
        if len(entries) == len(dims):
            return made
        mask = np.array([entry in entries for entry in range(len(dims))]).reshape(shape)
        return self.write("Where", [self.constant(mask, "places"), made, name], "numbers")

    def _first_of(self, name: str, shape: Shape, axes: Iterable[int]) -> tuple[str, Shape]:
        """Write the first of what is all the same along axes; returns its name and shape."""
        for axis in axes:
            name = self.write("Gather", [name, self.list_of([0], "first")], "first_of", axis=axis)
            shape = (*shape[:axis], 1, *shape[axis + 1 :])
        return name, shape

    def _counted(self, repeated: Repeated, size: DimLike, rank: int, dtype: str) -> str:
        """Write numbers that are counted along an axis."""
        name = self._range(0, size, 1)
        if repeated.first(size) != 0:
            # Not as a Range downwards: onnxruntime 1.32 makes an empty one of it.
            first = self.elements([repeated.first(size)], (), _INT64)
            name = self.write("Sub" if repeated.step == -1 else "Add", [first, name], "from_end")
        if repeated.step not in (1, -1):
            name = self.write("Mul", [name, self.elements([self.wanted.after(repeated.step)], (), _INT64)], "in_steps")
        if dtype != _INT64:
            name = self.write("Cast", [name], "cast", to=DTYPE_NUMBERS[dtype])
        if rank == 1:
            return name
        shape = [-1 if axis == repeated.axis else 1 for axis in range(rank)]
        return self.write("Reshape", [name, self.list_of(shape, "shape")], "along_axis")

    def _with_count(self, name: str, counted: Counted, shape: Sequence[DimLike], dtype: str) -> str:
        """Write the first of indices or positions, with a count in one entry."""
        first = self.write("Gather", [name, self.list_of([0], "first")], "first_of", axis=counted.axis)
        number = self._counted(Repeated(counted.axis, 0, 1), shape[counted.axis], len(shape), dtype)
        entry = np.array([int(at == counted.entry) for at in range(int(shape[counted.along]))], dtype)
        entry = entry.reshape([-1 if at == counted.along % len(shape) else 1 for at in range(len(shape))])
        count = self.write("Mul", [number, self.constant(entry, "entry")], "count")
        return self.write("Add", [first, count], "indices")

    def _range(self, *bounds: DimLike) -> str:
        if self.opset < _RANGE:
            raise NotWritable(f"opset {self.opset} has no Range; upgrade the model to {_RANGE} first")
        return self.write("Range", [self.elements([bound], (), _INT64) for bound in bounds], "counted")

    def _triangle(self, triangle: Triangle, shape: Sequence[DimLike]) -> str:
        """Write one value up to a diagonal, and another above it."""
        rows, columns = (self._range(0, size, 1) for size in shape[-2:])
        along = [self.list_of([1] * (len(shape) - 2) + last, "shape") for last in ([-1, 1], [1, -1])]
        last = self.write("Add", [rows, self.constant(np.array(triangle.diagonal), "diagonal")], "last")
        columns, last = (
            self.write("Reshape", [value, shape], "along_axis")
            for value, shape in ((columns, along[1]), (last, along[0]))
        )
        above = self.write("Greater", [columns, last], "above")
        if triangle.above.dtype == bool:
            return above if triangle.above else self.write("Not", [above], "below")
        values = (self.constant(value, hint) for value, hint in ((triangle.above, "far"), (triangle.below, "near")))
        return self.write("Where", [above, *values], "triangle")


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


def _operand(node: NodeProto, position: int) -> str:
    return _OPERANDS.get(node.op_type, {}).get(position, f"input {position}")


def _spelled(items: Contents | Sequence[DimLike]) -> str:
    listed = items.items if isinstance(items, Contents) else items
    return f"[{', '.join(map(str, listed))}]"
