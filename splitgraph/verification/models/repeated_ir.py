"""An IR that runs another one for each group of items, and joins the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from splitgraph.conversion.ir_editor import GraphEditor, NewPort, Place
from splitgraph.conversion.sizes.convert_ir import with_shapes
from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel, Port
from splitgraph.inference.openvino_ir import mirror
from splitgraph.model.scopes import MAIN

_SHARED = frozenset({"Parameter", "Const", "Result"})


def repeated_ir(
    model: OpenVINOModel, inputs: Mapping[str, int], axes: Mapping[int, int], size: int, groups: int
) -> OpenVINOModel:
    """Return an IR that splits inputs into groups of items, runs the model on each, and joins the outputs.

    inputs: the axis of each that has items. axes: along which the items of an output are joined, by the id of
    the Result; without those that have no items. size: how many items a group has.
    """
    copy = model.copy()
    names = mirror(copy).names[MAIN]
    repeating = _Repeating(copy.graph, GraphEditor(copy, copy.graph), groups)
    for layer in copy.graph.layers:
        name = names[layer.id, layer.outputs[0].id] if layer.type == "Parameter" else ""
        if name in inputs:
            repeating.split(layer, size, inputs[name])
    repeating.repeat()
    for layer in copy.graph.layers:
        if layer.id in axes:
            repeating.join(layer, axes[layer.id])
    copy.refresh()
    shapes = {
        value.name: [
            size * groups if axis == inputs[value.name] else None
            for axis in range(len(value.type.tensor_type.shape.dim))
        ]
        for value in mirror(copy).model.graph.input
        if value.name in inputs
    }
    made: OpenVINOModel = with_shapes(copy, shapes).model
    return made


@dataclass(slots=True)
class _Repeating:
    """pieces: of a value that differs from group to group, the value in each group."""

    graph: Graph
    editor: GraphEditor
    groups: int
    pieces: dict[Place, list[Place]] = field(default_factory=dict)
    _joined: dict[tuple[Place, int], Place] = field(default_factory=dict)

    def split(self, layer: Layer, size: int, along: int) -> None:
        """Split an input into groups along an axis; the layers of the first group read the first one."""
        port = layer.outputs[0]
        source = layer.id, port.id
        before = _first_reader(self.graph, source)
        if before is None:
            return
        axis = self.editor.constant(before, "axis", along)
        lengths = self.editor.constant(before, "lengths", [size] * self.groups)
        inputs = [(source, _of(port)), (axis, NewPort("I64")), (lengths, NewPort("I64", [self.groups]))]
        number, first = self.editor.layer(
            before, "groups", "VariadicSplit", "opset1", {}, inputs, [_of(port)] * self.groups
        )
        self.pieces[source] = [(number, first + group) for group in range(self.groups)]
        for reader in _readers(self.graph, source):
            self.editor.reconnect(self.pieces[source][0], reader)

    def repeat(self) -> None:
        """Add the layers of the other groups."""
        own = [layer for layer in self.graph.layers if layer.type not in _SHARED]
        for layer in own:
            copies = [layer.id, *(self.editor.repeat(layer, f"/{group}") for group in range(1, self.groups))]
            for port in layer.outputs:
                self.pieces[layer.id, port.id] = [(number, port.id) for number in copies]
            for port in layer.inputs:
                source = self.graph.sources.get((layer.id, port.id))
                if source is None:
                    continue
                for piece, number in list(zip(self.pieces.get(source, [source] * self.groups), copies, strict=True))[
                    1:
                ]:
                    self.editor.connect(piece, (number, port.id))

    def join(self, result: Layer, axis: int) -> None:
        """Let an output give the results of all groups."""
        reader = result.id, result.inputs[0].id
        source = self.graph.sources[reader]
        layer = next(each for each in self.graph.layers if each.id == source[0])
        if layer.type == "Parameter":
            # It has all items.
            self.editor.reconnect(source, reader)
            return
        if (source, axis) not in self._joined:
            port = next(each for each in layer.outputs if each.id == source[1])
            inputs = [(piece, _of(port)) for piece in self.pieces.get(source, [source] * self.groups)]
            data: Mapping[str, str] = {"axis": str(axis)}
            self._joined[source, axis] = self.editor.layer(
                result, "joined", "Concat", "opset1", data, inputs, [_of(port)]
            )
            self.editor.move_names(layer, source[1], self._joined[source, axis])
        self.editor.reconnect(self._joined[source, axis], reader)


def _of(port: Port) -> NewPort:
    return NewPort(port.precision, [-1 if dim is None else dim for dim in port.dims or ()])


def _readers(graph: Graph, source: Place) -> list[Place]:
    return [reader for reader, found in graph.sources.items() if found == source]


def _first_reader(graph: Graph, source: Place) -> Layer | None:
    numbers = {number for number, _ in _readers(graph, source)}
    return next((layer for layer in graph.layers if layer.id in numbers), None)
