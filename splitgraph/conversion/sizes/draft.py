"""Drafts the nodes and constants that compute sizes from the inputs of a model, to be put before one of its nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from splitgraph.conversion.node import Node
from splitgraph.conversion.plan import Plan, opset_of
from splitgraph.conversion.sizes.formulas import NotWritable, SizeFormulas
from splitgraph.conversion.sizes.wanted import SizePlace
from splitgraph.dim import Dim, DimLike, symbol
from splitgraph.model.attributes import make_attribute, make_node
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.scopes import Scope

# Expand, the bounds of a Slice as inputs, Range and Max of integers exist from these opsets on.
_EXPAND, _BOUNDS, _RANGE, _INTEGER_MAX = 8, 10, 11, 12
# Split has the attribute num_outputs from this opset on.
NUM_OUTPUTS = 18
_INT64 = "int64"


@dataclass(slots=True)
class WrittenSizes:
    """What new nodes of one graph compute, by what it is: later nodes of the graph read it again.

    sizes: lists of one size. shapes: of inputs. lists: of numbers.
    """

    sizes: dict[DimLike, str] = field(default_factory=dict)
    shapes: dict[str, str] = field(default_factory=dict)
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)


def equal_parts(edited: Node, opset: int, parts: int) -> None:
    """Edit a Split with lengths so that it makes equal parts."""
    edited.inputs = edited.inputs[:1]
    if opset >= NUM_OUTPUTS:
        edited.attributes["num_outputs"] = make_attribute("num_outputs", parts)


class SizeDraft(SizeFormulas[str]):
    """The nodes and constants that stand before one node. The drafts of a graph are made in the order of its nodes."""

    def __init__(
        self,
        plan: Plan,
        names: FreshNames,
        scope: Scope,
        prefix: str,
        places: Mapping[str, SizePlace],
        written: WrittenSizes,
        *,
        as_nodes: bool = False,
    ) -> None:
        """prefix: of all new names. written: by the drafts of the graph so far. as_nodes: constants are Constant nodes;
        they are in functions, which have no initializers.
        """
        super().__init__(places, written.sizes)
        self.scope, self.prefix = scope, prefix
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._plan, self._names, self._written = plan, names, written
        self._as_nodes = as_nodes or scope.in_function

    @property
    def opset(self) -> int:
        """The opset of the graph."""
        return opset_of(self.scope.imports)

    def write(self, op_type: str, inputs: Sequence[str], hint: str, **attributes: Any) -> str:
        """Write a node with one output; returns its name."""
        output = self._names.new(f"{self.prefix}_{hint}")
        self.nodes.append(make_node(op_type, inputs, [output], output, graph=self._plan.drafts, **attributes))
        return output

    def constant(self, array: Any, hint: str) -> str:
        """Write a constant; returns its name."""
        if self._as_nodes:
            return self.write("Constant", [], hint, value=numpy_helper.from_array(array))
        name = self._names.new(f"{self.prefix}_{hint}")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def list_of(self, numbers: Sequence[int], hint: str) -> str:
        """Write a list of numbers, once in a graph; returns its name."""
        key = tuple(numbers)
        known = self._written.lists.get(key)
        if known is None:
            known = self._written.lists[key] = self.constant(np.array(key, np.int64), hint)
        return known

    def elements(self, items: Sequence[DimLike], shape: tuple[int, ...], dtype: str) -> str:
        """Write a list of sizes, or one size; returns its name."""
        if not any(isinstance(item, Dim) for item in items):
            return self.constant(np.array(items, dtype).reshape(shape), "sizes")
        if not shape and dtype == _INT64 and self._input_of(items[0]):
            place = self.place_of(str(items[0]))
            position = self.constant(np.array(place.axis, np.int64), "axis")
            return self.write("Gather", [self._shape_of(place.input), position], "size", axis=0)
        parts = list(self._runs(items))
        name = parts[0] if len(parts) == 1 else self.write("Concat", parts, "sizes", axis=0)
        if len(shape) != 1:
            name = self.write("Reshape", [name, self.list_of(shape, "scalar")], "size")
        return name if dtype == _INT64 else self.cast(name, dtype)

    def _runs(self, items: Sequence[DimLike]) -> Iterator[str]:
        """Write numbers in a row as one list, and dimensions of one input in a row as parts of its shape."""
        for place, group in itertools.groupby(items, self._input_of):
            dims = list(group)
            if place == "":
                yield self.list_of([int(dim) for dim in dims], "numbers")
            elif place is None or len(dims) == 1:
                yield from map(self.size, dims)
            else:
                axes = [self.place_of(str(dim)).axis for dim in dims]
                shape = self._shape_of(place)
                yield self.write("Gather", [shape, self.list_of(axes, "axes")], "dims", axis=0)

    def _input_of(self, dim: DimLike) -> str | None:
        """Return the input that has a dimension; "" for a number, None for what is computed."""
        if isinstance(dim, int):
            return ""
        place = self.places.get(str(dim))
        return place.input if place is not None and dim == symbol(str(dim)) else None

    def dimension(self, name: str) -> str:
        """Write the dimension of an input; returns its name."""
        place = self.place_of(name)
        axis = self.list_of([place.axis], "axis")
        return self.write("Gather", [self._shape_of(place.input), axis], name, axis=0)

    def _shape_of(self, name: str) -> str:
        known = self._written.shapes.get(name)
        if known is None:
            known = self._written.shapes[name] = self.write("Shape", [name], "shape")
        return known

    def operate(self, operator: str, parts: Sequence[str], hint: str) -> str:
        """Write an operation; returns the name of its result."""
        if operator == "Max" and self.opset < _INTEGER_MAX:
            raise NotWritable(f"opset {self.opset} has no Max of integers; upgrade the model to 12 first")
        return super().operate(operator, parts, hint)

    def counted(self, size: DimLike) -> str:
        """Write 0 … size - 1; returns its name."""
        if self.opset < _RANGE:
            raise NotWritable(f"opset {self.opset} has no Range; upgrade the model to {_RANGE} first")
        return super().counted(size)

    def repeated(self, value: str, times: Sequence[DimLike]) -> str:
        """Write a value that is repeated; returns its name."""
        operator = "Expand" if self.opset >= _EXPAND else "Tile"
        return self.write(operator, [value, self.elements(times, (len(times),), _INT64)], "repeated")

    def part_of(self, value: str, axis: int, start: int, end: int) -> str:
        """Write the part of a value between two places along an axis; returns its name."""
        if self.opset < _BOUNDS:
            return self.write("Slice", [value], "level", starts=[start], ends=[end], axes=[axis])
        return super().part_of(value, axis, start, end)
