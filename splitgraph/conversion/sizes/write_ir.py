"""Writes what a walk with new sizes found into an IR: constants, and layers that compute sizes from the Parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from splitgraph.conversion.ir_editor import GraphEditor, NewPort, Place, graph_at, insert_input, nodes_of, set_data
from splitgraph.conversion.layer_draft import LayerDraft, LayerValue, as_read
from splitgraph.conversion.rewrite import Change
from splitgraph.conversion.sizes.follow import Follower
from splitgraph.conversion.sizes.formulas import NotWritable, SizeFormulas, plain_target
from splitgraph.conversion.sizes.needs import InputPlace
from splitgraph.conversion.sizes.weights_anew import WeightWriter
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


@dataclass(slots=True)
class LayerWriter:
    """Edits a copy of an IR. mirrored: the mirror of the IR, in which the nodes were walked."""

    copy: OpenVINOModel
    mirrored: Mirror
    walked: Walked
    follower: Follower
    changes: list[Change] = field(default_factory=list)
    _computed: dict[GraphPath, dict[DimLike, LayerValue]] = field(default_factory=dict)

    def run(self) -> None:
        """Edit the layers in graph order. Raises NotWritable."""
        locations = {scope.path: scope.location for scope in self.walked.scopes}
        graphs = {path: graph_at(self.copy.graph, path) for path in self.mirrored.layers}
        for path, graph in graphs.items():
            edited = self._edited(path)
            editor, layers = GraphEditor(self.copy, graph), nodes_of(graph)
            for index in sorted(edited):
                layer = layers[index]
                draft = _SizedLayers(self, editor, layer, path)
                try:
                    why = self._edit(draft, graph, (path, index))
                except NotWritable as reason:
                    raise NotWritable(f"{layer.name}: {reason}") from None
                if why:
                    text = f"follows the sizes: {', '.join(why)}"
                    self.changes.append(Change(f"{locations[path]}/{layer.name}", layer.versioned, layer.type, text))
            editor.remove_unread(layer for layer in graph.layers if edited)

    def _edited(self, path: GraphPath) -> set[int]:
        follower = self.follower
        places: list[NodePlace] = [
            *follower.seen.edits,
            *follower.seen.values,
            *(each[:2] for each in follower.decided.expanded),
        ]
        return {index for where, index in places if where == path}

    def _edit(self, draft: _SizedLayers, graph: Graph, place: NodePlace) -> list[str]:
        """Edit a layer. Return what changes, as people read it."""
        layer, why = draft.layer, list[str]()
        for position, contents in sorted(self.follower.seen.edits.get(place, {}).items()):
            source = self._elements(draft, graph, position, contents)
            if position < len(layer.inputs):
                draft.editor.reconnect(source.place, (layer.id, layer.inputs[position].id))
            else:
                # An input that the layer leaves out.
                number = 1 + max(port.id for port in (*layer.inputs, *layer.outputs))
                insert_input(layer, number, source.port)
                draft.editor.connect(source.place, (layer.id, number))
            why.append(f"input {position} [{', '.join(map(str, contents.items))}]")
        weights = WeightWriter(draft, self.follower.wanted)
        for position, entries in sorted(self.follower.seen.values.get(place, {}).items()):
            source, known = self._read(graph, layer, layer.inputs[position], place[0])
            made = weights.with_sizes(source, known, entries)
            draft.editor.reconnect(made.place, (layer.id, layer.inputs[position].id))
            why.append(f"computes with {', '.join(map(str, entries.values()))}")
        for position, port in enumerate(layer.inputs):
            axes = self.follower.decided.expanded.get(InputPlace(*place, position))
            if axes:
                source, known = self._read(graph, layer, port, place[0])
                made = weights.expanded(self.follower, InputPlace(*place, position), source, known, axes)
                draft.editor.reconnect(made.place, (layer.id, port.id))
                shape = [axes.get(axis, dim) for axis, dim in enumerate(known.shape or ())]
                why.append(f"input {position} is repeated to [{', '.join(map(str, shape))}]")
        return why

    def _elements(self, draft: _SizedLayers, graph: Graph, position: int, contents: Contents) -> LayerValue:
        layer = draft.layer
        items: list[DimLike] = [self.follower.wanted.after(item) for item in contents.items]  # type: ignore[arg-type]
        if layer.type == "Reshape":
            items = self._target(draft, graph, items)
        elif layer.type == "VariadicSplit":
            items = _with_rest(items)
        known = dtype_of(layer.inputs[position].precision) if position < len(layer.inputs) else None
        dtype = known or _INT64
        return draft.elements(items, contents.shape, dtype)

    def _target(self, draft: _SizedLayers, graph: Graph, items: list[DimLike]) -> list[DimLike]:
        """Return the target of a Reshape with 0 and -1. A layer whose zeros copy nothing learns to, if it has none."""
        layer = draft.layer
        copies = layer.data.get("special_zero", "").strip().lower() in ("true", "1")
        data = self.type_of(draft.path, graph.sources[layer.id, layer.inputs[0].id]).shape or ()
        plain = plain_target(items, data, zeros_copy=copies or 0 not in items)
        if not copies and 0 in plain and 0 not in items:
            set_data(layer, {**layer.data, "special_zero": "true"})
        return plain

    def _read(self, graph: Graph, layer: Layer, port: Port, path: GraphPath) -> tuple[LayerValue, ValueType]:
        """Return what a port reads, and its type."""
        value = as_read(graph, layer, port)
        return value, self.type_of(path, value.place)

    def type_of(self, path: GraphPath, place: Place) -> ValueType:
        """Return the type of a value, as the walk found it."""
        name = self.mirrored.names[path].get(place, "")
        detail = self.walked.graphs.get(path)
        return UNKNOWN if detail is None else detail.types.get(name, UNKNOWN)


def _with_rest(items: list[DimLike]) -> list[DimLike]:
    """Return the lengths of a split with -1 for the only one that a run has to tell."""
    open_ones = [index for index, item in enumerate(items) if isinstance(item, Dim)]
    if len(open_ones) != 1 or -1 in items:
        return items
    return [-1 if index == open_ones[0] else item for index, item in enumerate(items)]


class _SizedLayers(LayerDraft, SizeFormulas[LayerValue]):
    """The layers that stand before one layer whose inputs get other sizes."""

    def __init__(self, writer: LayerWriter, editor: GraphEditor, layer: Layer, path: GraphPath) -> None:
        LayerDraft.__init__(self, editor, layer)
        SizeFormulas.__init__(self, writer.follower.wanted.places, writer._computed.setdefault(path, {}))
        self.writer, self.path = writer, path

    def list_of(self, numbers: Sequence[int], hint: str) -> LayerValue:
        return self.constant(np.array(numbers, np.int64), hint)

    def dimension(self, name: str) -> LayerValue:
        if self.path != MAIN:
            raise NotWritable(f"it is in a body, which cannot read the dimension {name} of an input")
        place = self.place_of(name)
        source = next(port for port, value in self.writer.mirrored.names[MAIN].items() if value == place.input)
        known = self.writer.type_of(MAIN, source)
        dims = [dim if isinstance(dim, int) else -1 for dim in known.shape or ()]
        given = LayerValue(source, NewPort(precision_of(known.dtype or _INT64), dims))
        shape = self.write("Shape", [given], "shape")
        return self.write("Gather", [shape, self.list_of([place.axis], "axis")], name, axis=0)

    def cast(self, value: LayerValue, dtype: str) -> LayerValue:
        data, port = {"destination_type": name_of(dtype)}, NewPort(precision_of(dtype), value.port.dims)
        return LayerValue(self.editor.layer(self.layer, "cast", "Convert", "opset1", data, [value], [port]), port)

    def elements(self, items: Sequence[DimLike], shape: tuple[int, ...], dtype: str) -> LayerValue:
        """Write sizes as a tensor of a shape."""
        if all(isinstance(item, int) for item in items):
            most = np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else None
            numbers = [item if most is None else min(item, most) for item in items]
            return self.constant(np.array(numbers, dtype).reshape(shape), "sizes")
        parts = [self.size(item) for item in items]
        made = parts[0] if len(parts) == 1 else self.write("Concat", parts, "sizes", axis=0)
        if not shape:
            made = self.write("Squeeze", [made, self.constant(np.array(0), "first")], "size")
        elif len(shape) != 1:
            made = self.write("Reshape", [made, self.list_of(shape, "shape")], "size")
        return made if dtype == _INT64 else self.cast(made, dtype)
