"""Writes what a walk with new sizes found into an IR: constants, and layers that compute sizes from the Parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from splitgraph.conversion.openvino_ir import GraphEditor, NewPort, Place, graph_at, insert_input, nodes_of, set_data
from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.formulas import NotWritable, SizeFormulas, plain_target
from splitgraph.conversion.sizes.needs import Counted, InputPlace, Repeated, Triangle
from splitgraph.dim import Dim, DimLike
from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel, Port
from splitgraph.formats.openvino_ir.notation import dtype_of, name_of, precision_of
from splitgraph.inference import Walked
from splitgraph.inference.openvino_ir import Mirror
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.deferred import np
from splitgraph.model.scopes import MAIN, GraphPath
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType

_INT64 = "int64"
_OPERATIONS = {"Add": "Add", "Sub": "Subtract", "Mul": "Multiply", "Div": "Divide", "Max": "Maximum"}
# What the layers are told that compute elementwise.
_NUMPY = {"auto_broadcast": "numpy"}


class _LayerValue(NamedTuple):
    """A value of the IR: the port that gives it, and what stands in a port that reads it."""

    place: Place
    port: NewPort


@dataclass(slots=True)
class LayerWriter:
    """Edits a copy of an IR. mirrored: the mirror of the IR, in which the nodes were walked."""

    copy: OpenVINOModel
    mirrored: Mirror
    walked: Walked
    follower: Follower
    changes: list[Change] = field(default_factory=list)
    _computed: dict[GraphPath, dict[DimLike, _LayerValue]] = field(default_factory=dict)

    def run(self) -> None:
        """Edit the layers in graph order. Raises NotWritable."""
        locations = {scope.path: scope.location for scope in self.walked.scopes}
        graphs = {path: graph_at(self.copy.graph, path) for path in self.mirrored.layers}
        for path, graph in graphs.items():
            edited = self._edited(path)
            editor, layers = GraphEditor(self.copy, graph), nodes_of(graph)
            for index in sorted(edited):
                layer = layers[index]
                draft = _LayerDraft(self, editor, layer, path)
                try:
                    why = self._edit(draft, graph, (path, index))
                except NotWritable as reason:
                    raise NotWritable(f"{layer.name}: {reason}") from None
                if why:
                    text = f"follows the sizes: {', '.join(why)}"
                    self.changes.append(Change(f"{locations[path]}/{layer.name}", layer.type, layer.type, text))
            editor.remove_unread(layer for layer in graph.layers if edited)

    def _edited(self, path: GraphPath) -> set[int]:
        follower = self.follower
        places: list[NodePlace] = [*follower.edits, *follower.values, *(each[:2] for each in follower.expanded)]
        return {index for where, index in places if where == path}

    def _edit(self, draft: _LayerDraft, graph: Graph, place: NodePlace) -> list[str]:
        """Edit a layer. Return what changes, as people read it."""
        layer, why = draft.layer, list[str]()
        for position, contents in sorted(self.follower.edits.get(place, {}).items()):
            source = self._elements(draft, graph, position, contents)
            if position < len(layer.inputs):
                draft.editor.reconnect(source.place, (layer.id, layer.inputs[position].id))
            else:
                # An input that the layer leaves out.
                number = 1 + max(port.id for port in (*layer.inputs, *layer.outputs))
                insert_input(layer, number, source.port)
                draft.editor.connect(source.place, (layer.id, number))
            why.append(f"input {position} [{', '.join(map(str, contents.items))}]")
        for position, entries in sorted(self.follower.values.get(place, {}).items()):
            port = layer.inputs[position]
            source = _LayerValue(graph.sources[layer.id, port.id], _as_read(port))
            made = draft.with_sizes(source, self.type_of(place[0], source.place), entries)
            draft.editor.reconnect(made.place, (layer.id, port.id))
            why.append(f"computes with {', '.join(map(str, entries.values()))}")
        for position, port in enumerate(layer.inputs):
            axes = self.follower.expanded.get(InputPlace(*place, position))
            if axes:
                source = _LayerValue(graph.sources[layer.id, port.id], _as_read(port))
                known = self.type_of(place[0], source.place)
                shape: list[Any] = [axes.get(axis, dim) for axis, dim in enumerate(known.shape or ())]
                how = self.follower.repeated.get(InputPlace(*place, position), {})
                pattern = self.follower.patterns.get(InputPlace(*place, position))
                if any(InputPlace(*place, position) in each for each in (self.follower.cuts, self.follower.levels)):
                    raise NotWritable(f"input {position} has weights that no layer makes of another size")
                for count in pattern if pattern is not None and not isinstance(pattern, Triangle) else ():
                    source = draft.with_count(source, count, known.dtype or _INT64, shape)
                    dims = [
                        self.follower.wanted.after(shape[at]) if at == count.axis else dim
                        for at, dim in enumerate(known.shape or ())
                    ]
                    known = known.with_shape(dims)
                if isinstance(pattern, Triangle):
                    source = draft.triangle(pattern, known.dtype or "", shape)
                    known, how = known.with_shape([*(1 for _ in shape[:-2]), *shape[-2:]]), {}
                repeated = draft.expanded(source, known, how, shape)
                draft.editor.reconnect(repeated.place, (layer.id, port.id))
                why.append(f"input {position} is repeated to [{', '.join(map(str, shape))}]")
        return why

    def _elements(self, draft: _LayerDraft, graph: Graph, position: int, contents: Contents) -> _LayerValue:
        layer = draft.layer
        items: list[DimLike] = [self.follower.wanted.after(item) for item in contents.items]  # type: ignore[arg-type]
        if layer.type == "Reshape":
            items = self._target(draft, graph, items)
        elif layer.type == "VariadicSplit":
            items = _with_rest(items)
        known = dtype_of(layer.inputs[position].precision) if position < len(layer.inputs) else None
        dtype = known or _INT64
        return draft.elements(items, contents.shape, dtype)

    def _target(self, draft: _LayerDraft, graph: Graph, items: list[DimLike]) -> list[DimLike]:
        """Return the target of a Reshape with 0 and -1. A layer whose zeros copy nothing learns to, if it has none."""
        layer = draft.layer
        copies = layer.data.get("special_zero", "").strip().lower() in ("true", "1")
        data = self.type_of(draft.path, graph.sources[layer.id, layer.inputs[0].id]).shape or ()
        plain = plain_target(items, data, zeros_copy=copies or 0 not in items)
        if not copies and 0 in plain and 0 not in items:
            set_data(layer, {**layer.data, "special_zero": "true"})
        return plain

    def type_of(self, path: GraphPath, place: Place) -> ValueType:
        """Return the type of a value, as the walk found it."""
        name = self.mirrored.names[path].get(place, "")
        detail = self.walked.graphs.get(path)
        return UNKNOWN if detail is None else detail.types.get(name, UNKNOWN)


def _as_read(port: Port) -> NewPort:
    return NewPort(port.precision, [-1 if dim is None else dim for dim in port.dims or ()])


def _with_rest(items: list[DimLike]) -> list[DimLike]:
    """Return the lengths of a split with -1 for the only one that a run has to tell."""
    open_ones = [index for index, item in enumerate(items) if isinstance(item, Dim)]
    if len(open_ones) != 1 or -1 in items:
        return items
    return [-1 if index == open_ones[0] else item for index, item in enumerate(items)]


class _LayerDraft(SizeFormulas[_LayerValue]):
    """The layers that stand before one layer."""

    def __init__(self, writer: LayerWriter, editor: GraphEditor, layer: Layer, path: GraphPath) -> None:
        self.wanted = writer.follower.wanted
        super().__init__(self.wanted.places, writer._computed.setdefault(path, {}))
        self.writer, self.editor, self.layer, self.path = writer, editor, layer, path

    def list_of(self, numbers: Sequence[int], hint: str, dtype: str = _INT64) -> _LayerValue:
        if np.dtype(dtype).kind in "iu":
            most = int(np.iinfo(dtype).max)
            numbers = [min(number, most) for number in numbers]
        place = self.editor.constant(self.layer, hint, numbers, dtype)
        return _LayerValue(place, NewPort(precision_of(dtype), [len(numbers)]))

    def number(self, number: int, hint: str) -> _LayerValue:
        return _LayerValue(self.editor.constant(self.layer, hint, number), NewPort("I64"))

    def write(
        self, type_: str, version: str, data: dict[str, str], inputs: Sequence[_LayerValue], port: NewPort, hint: str
    ) -> _LayerValue:
        """Write a layer with one output."""
        return _LayerValue(self.editor.layer(self.layer, hint, type_, version, data, inputs, [port]), port)

    def dimension(self, name: str) -> _LayerValue:
        if self.path != MAIN:
            raise NotWritable(f"it is in a body, which cannot read the dimension {name} of an input")
        place = self.place_of(name)
        source = next(port for port, value in self.writer.mirrored.names[MAIN].items() if value == place.input)
        known = self.writer.type_of(MAIN, source)
        dims = [dim if isinstance(dim, int) else -1 for dim in known.shape or ()]
        given = _LayerValue(source, NewPort(precision_of(known.dtype or _INT64), dims))
        shape = self.write("ShapeOf", "opset3", {"output_type": "i64"}, [given], NewPort("I64", [len(dims)]), "shape")
        inputs = [shape, self.list_of([place.axis], "axis"), self.number(0, "zero")]
        return self.write("Gather", "opset8", {"batch_dims": "0"}, inputs, NewPort("I64", [1]), name)

    def operate(self, operator: str, parts: Sequence[_LayerValue], hint: str) -> _LayerValue:
        data = {**_NUMPY, "m_pythondiv": "true"} if operator == "Div" else _NUMPY
        return self.write(_OPERATIONS[operator], "opset1", data, parts, NewPort("I64", [1]), hint)

    def elements(self, items: Sequence[DimLike], shape: tuple[int, ...], dtype: str) -> _LayerValue:
        """Write a list of sizes, or one size."""
        numbers = [item for item in items if isinstance(item, int)]
        if len(numbers) == len(items) and shape:
            return self.list_of(numbers, "sizes", dtype)
        parts = [self.size(item) for item in items]
        joined = parts[0]
        if len(parts) > 1:
            joined = self.write("Concat", "opset1", {"axis": "0"}, parts, NewPort("I64", [len(parts)]), "sizes")
        if not shape:
            inputs = [joined, self.number(0, "first")]
            joined = self.write("Squeeze", "opset1", {}, inputs, NewPort("I64"), "size")
        return joined if dtype == _INT64 else self._converted(joined, dtype)

    def _converted(self, value: _LayerValue, dtype: str) -> _LayerValue:
        name = name_of(dtype)
        port = NewPort(precision_of(dtype), value.port.dims)
        return self.write("Convert", "opset1", {"destination_type": name}, [value], port, "converted")

    def expanded(
        self, value: _LayerValue, known: ValueType, repeated: Mapping[int, Repeated], shape: Sequence[DimLike]
    ) -> _LayerValue:
        """Write a value that is repeated along axes where it has one element."""
        own: tuple[object, ...] = known.shape or ()
        wanted = [self.wanted.after(dim) for dim in shape]
        counted = next((each for each in repeated.values() if each.step), None)
        if counted is not None:
            value = self._counted(counted, wanted[counted.axis], len(wanted), known.dtype or _INT64)
            own = tuple(dim if axis == counted.axis else 1 for axis, dim in enumerate(wanted))
        for axis in repeated if counted is None else ():
            own = (*own[:axis], 1, *own[axis + 1 :])
            inputs = [value, self.list_of([0], "first"), self.number(axis, "axis")]
            port = NewPort(value.port.precision, [dim if isinstance(dim, int) else -1 for dim in own])
            value = self.write("Gather", "opset8", {"batch_dims": "0"}, inputs, port, "first_of")
        if all(before == after for before, after in zip(own, wanted, strict=True)):
            return value
        port = NewPort(value.port.precision, [dim if isinstance(dim, int) else -1 for dim in wanted])
        target = self.elements(wanted, (len(wanted),), _INT64)
        return self.write("Broadcast", "opset3", {"mode": "numpy"}, [value, target], port, "repeated")

    def with_sizes(self, value: _LayerValue, known: ValueType, entries: Mapping[int, DimLike]) -> _LayerValue:
        """Write a constant with sizes in place of some of its numbers."""
        shape = tuple(size for size in known.shape or () if isinstance(size, int))
        if prod(shape[:-1]) != 1:
            raise NotWritable("it computes with numbers in rows, of which one is a size")
        dims = [self.wanted.after(entries.get(entry, 0)) for entry in range(prod(shape))]
        made = self.elements(dims, shape[-1:], known.dtype or _INT64)
        if len(entries) == len(dims):
            return made
        mask = self.editor.constant(self.layer, "places", [int(entry in entries) for entry in range(len(dims))], "bool")
        inputs = [_LayerValue(mask, NewPort("BOOL", [len(dims)])), made, value]
        return self.write("Select", "opset1", _NUMPY, inputs, value.port, "numbers")

    def triangle(self, triangle: Triangle, dtype: str, shape: Sequence[DimLike]) -> _LayerValue:
        """Write one value up to a diagonal, and another above it."""
        wanted, rank = [self.wanted.after(dim) for dim in shape[-2:]], len(shape)
        rows, columns = (
            self._counted(Repeated(rank - 2 + at, 0, 1), size, rank, _INT64) for at, size in enumerate(wanted)
        )
        number = _LayerValue(self.editor.constant(self.layer, "diagonal", triangle.diagonal), NewPort("I64"))
        last = self.write("Add", "opset1", _NUMPY, [rows, number], rows.port, "last")
        dims = [*(1 for _ in shape[:-2]), *(size if isinstance(size, int) else -1 for size in wanted)]
        above = self.write("Greater", "opset1", _NUMPY, [columns, last], NewPort("BOOL", dims), "above")
        port = NewPort(precision_of(dtype), dims)
        values = [
            _LayerValue(self.editor.constant(self.layer, hint, value, dtype), NewPort(port.precision))
            for value, hint in ((triangle.above, "far"), (triangle.below, "near"))
        ]
        return self.write("Select", "opset1", _NUMPY, [above, *values], port, "triangle")

    def with_count(self, value: _LayerValue, counted: Counted, dtype: str, shape: Sequence[DimLike]) -> _LayerValue:
        """Write the first of indices, with a count of the items in one entry."""
        size, rank = self.wanted.after(shape[counted.axis]), len(shape)
        inputs = [value, self.list_of([0], "first"), self.number(counted.axis, "axis")]
        dims = [1 if axis == counted.axis else entry for axis, entry in enumerate(value.port.dims)]
        port = NewPort(value.port.precision, dims)
        first = self.write("Gather", "opset8", {"batch_dims": "0"}, inputs, port, "first_of")
        number = self._counted(Repeated(counted.axis, 0, 1), size, rank, dtype)
        along = counted.along % rank
        entry = self.list_of([int(at == counted.entry) for at in range(int(dims[along]))], "entry", dtype)
        places = [dims[along] if axis == along else 1 for axis in range(rank)]
        if along != rank - 1:
            inputs = [entry, self.list_of(places, "shape")]
            port = NewPort(port.precision, places)
            entry = self.write("Reshape", "opset1", {"special_zero": "false"}, inputs, port, "along_axis")
        items = number.port.dims[counted.axis]
        port = NewPort(port.precision, [items if axis == counted.axis else each for axis, each in enumerate(places)])
        count = self.write("Multiply", "opset1", _NUMPY, [number, entry], port, "count")
        whole = [items if axis == counted.axis else each for axis, each in enumerate(dims)]
        return self.write("Add", "opset1", _NUMPY, [first, count], NewPort(port.precision, whole), "indices")

    def _counted(self, repeated: Repeated, size: DimLike, rank: int, dtype: str) -> _LayerValue:
        """Write numbers that are counted along an axis."""
        bounds = [self.elements([self.wanted.after(bound)], (), _INT64) for bound in _bounds(repeated, size)]
        name = name_of(dtype)
        port = NewPort(precision_of(dtype), [size if isinstance(size, int) else -1])
        value = self.write("Range", "opset4", {"output_type": name}, bounds, port, "counted")
        if rank == 1:
            return value
        along = [-1 if axis == repeated.axis else 1 for axis in range(rank)]
        port = NewPort(port.precision, [port.dims[0] if entry == -1 else 1 for entry in along])
        inputs = [value, self.list_of(along, "shape")]
        return self.write("Reshape", "opset1", {"special_zero": "false"}, inputs, port, "along_axis")


def _bounds(repeated: Repeated, size: DimLike) -> list[DimLike]:
    first = repeated.first(size)
    return [first, first + size * repeated.step, repeated.step]
