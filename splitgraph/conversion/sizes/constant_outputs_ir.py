"""Gives each constant that is a result of an IR an Identity that reads it, as `constant_outputs.py` does for ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from splitgraph.conversion.ir_editor import GraphEditor, NewPort, Place, nodes_of
from splitgraph.formats.openvino_ir import Graph, OpenVINOModel, Port
from splitgraph.inference.openvino_ir import mirror
from splitgraph.model.scopes import MAIN

_IDENTITY = "opset16"
# They give what no constant says: inputs, and the states of a model.
_GIVEN = ("Parameter", "ReadValue")


class ConstantReader(NamedTuple):
    """A layer that reads a constant. layer: its number. value, constant: the names of both values in the mirror.
    source: where the constant stands; tensor: its names in the IR.
    """

    layer: int
    value: str
    constant: str
    source: Place
    tensor: str


def with_readers(model: OpenVINOModel) -> tuple[OpenVINOModel, Mapping[str, ConstantReader]]:
    """Return a copy of the model in which an Identity reads each constant that is a result, and these layers by what
    the constants are called.
    """
    results: dict[Place, list[Place]] = {}
    for source, reader in _constant_results(model.graph):
        results.setdefault(source, []).append(reader)
    if not results:
        return model, {}
    names, copy = mirror(model).names[MAIN], model.copy()
    graph, labels = copy.graph, {layer.name for layer in nodes_of(copy.graph)}
    editor, layers = GraphEditor(copy, graph), {layer.id: layer for layer in graph.layers}
    called: dict[int, tuple[str, Place]] = {}
    for source, readers in results.items():
        port = next(port for port in layers[source[0]].outputs if port.id == source[1])
        written = NewPort(port.precision, [-1 if dim is None else dim for dim in port.dims or ()])
        first = layers[readers[0][0]]
        made = editor.layer(first, "read", "Identity", _IDENTITY, {}, [(source, written)], [written])
        for reader in readers:
            editor.reconnect(made, reader)
        # Messages and answers call it as the model calls the constant, or else the result.
        called[made[0]] = first.name if names[source] in labels else names[source], source
    for layer in copy.refresh().layers:
        if layer.id in called:
            layer.element.set("name", called[layer.id][0])
    copy.refresh()
    after = mirror(copy).names[MAIN]
    values = {place[0]: name for place, name in after.items() if place[0] in called}
    return copy, {
        name: ConstantReader(
            number, values[number], after[source], source, _tensor(layers[source[0]].outputs, source[1])
        )
        for number, (name, source) in called.items()
    }


def _tensor(ports: Sequence[Port], number: int) -> str:
    """Return the names of a value as the IR writes them."""
    return next(",".join(each.replace(",", "\\,") for each in port.names) for port in ports if port.id == number)


def readers_of(model: OpenVINOModel, readers: Mapping[str, ConstantReader]) -> dict[str, int]:
    """Return the number of the node that is each reader in the mirror of the model, by the name of its value."""
    order = {layer.id: index for index, layer in enumerate(nodes_of(model.graph))}
    return {reader.value: order[reader.layer] for reader in readers.values()}


def without_readers(model: OpenVINOModel, readers: Mapping[str, ConstantReader]) -> list[str]:
    """Let results read what the readers read, and return what the constants are called that are what they were. The
    model is edited.
    """
    graph = model.refresh()
    editor, layers = GraphEditor(model, graph), {layer.id: layer for layer in graph.layers}
    kept = []
    for name, reader in readers.items():
        layer = layers[reader.layer]
        source = graph.sources[layer.id, layer.inputs[0].id]
        for place, read in graph.sources.items():
            if read[0] == layer.id:
                editor.reconnect(source, place)
        editor.remove(layer)
        if source == reader.source:
            kept.append(name)
        else:
            editor.name_value(source, reader.tensor)
    model.refresh()
    return kept


def _constant_results(graph: Graph) -> Iterator[tuple[Place, Place]]:
    """Yield each constant that a Result reads, and the port of the Result."""
    constant: set[int] = set()
    for layer in graph.layers:
        sources = [graph.sources.get((layer.id, port.id)) for port in layer.inputs]
        is_constant = all(source is not None and source[0] in constant for source in sources)
        if layer.type == "Result" and is_constant and sources[0] is not None:
            yield sources[0], (layer.id, layer.inputs[0].id)
        elif is_constant and layer.type not in _GIVEN:
            constant.add(layer.id)
