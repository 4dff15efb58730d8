"""Edits one graph of an OpenVINO IR: adds and removes layers and edges, and keeps its indentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement

from splitgraph.formats.openvino_ir.notation import name_of, precision_of
from splitgraph.formats.openvino_ir.xml_tree import copied
from splitgraph.model.deferred import np
from splitgraph.model.scopes import GraphPath

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel


def nodes_of(graph: Graph) -> list[Layer]:
    """Return the layers that are nodes of the mirror, in its order."""
    return [layer for layer in graph.layers if layer.type not in ("Parameter", "Result", "Const")]


def graph_at(graph: Graph, path: GraphPath) -> Graph:
    """Return the graph at a path of the mirror."""
    for index, key in zip(path[::3], path[1::3], strict=True):
        graph = nodes_of(graph)[index].bodies[key]
    return graph


# The (layer, port) that outputs a value.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class NewPort:
    """A port to write: precision and dims as the IR spells them (-1: dynamic)."""

    precision: str
    dims: Sequence[int] = ()


class GraphEditor:
    """Adds and removes layers and edges of one graph; new layers stand before the layer that is edited."""

    def __init__(self, model: OpenVINOModel, graph: Graph) -> None:
        self._model = model
        self._layers = _child(graph.element, "layers")
        self._edges = _child(graph.element, "edges")
        self._next_id = 1 + max((layer.id for layer in graph.layers), default=-1)
        self._names = {layer.name for layer in graph.layers}

    def constant(self, before: Layer, hint: str, values: Any, dtype: str = "int64") -> Place:
        """Add a Const layer of a number, of a list of numbers, or of a NumPy array."""
        array = np.array(values, dtype=np.dtype(dtype).newbyteorder("<"))
        data = {
            "element_type": name_of(dtype),
            "shape": ", ".join(map(str, array.shape)),
            "offset": str(self._model.append_constant(array.tobytes())),
            "size": str(array.nbytes),
        }
        return self.layer(before, hint, "Const", "opset1", data, [], [NewPort(precision_of(dtype), array.shape)])

    def layer(
        self,
        before: Layer,
        hint: str,
        type: str,
        version: str,
        data: Mapping[str, str],
        inputs: Sequence[tuple[Place, NewPort]],
        outputs: Sequence[NewPort],
    ) -> Place:
        """Add a layer with its edges. Return the place of its first output."""
        name = f"{before.name}/{hint}"
        while name in self._names:
            name += "_"
        self._names.add(name)
        number, self._next_id = self._next_id, self._next_id + 1
        made = Element("layer", {"id": str(number), "name": name, "type": type, "version": version})
        if data:
            SubElement(made, "data", dict(data))
        port = 0
        for side, ports in (("input", [port for _, port in inputs]), ("output", list(outputs))):
            if not ports:
                continue
            holder = SubElement(made, side)
            for output in ports:
                add_port(holder, port, output)
                port += 1
        for index, (source, _) in enumerate(inputs):
            self.connect(source, (number, index))
        self._insert(made, before.element)
        return number, len(inputs)

    def repeat(self, layer: Layer, suffix: str) -> int:
        """Add a copy of a layer with a state of its own, without edges and without names of its values. Return its
        id.
        """
        number, self._next_id = self._next_id, self._next_id + 1
        made = copied(layer.element)
        made.set("id", str(number))
        made.set("name", layer.name + suffix)
        data = made.find("data")
        if data is not None and "variable_id" in data.attrib:
            data.set("variable_id", data.attrib["variable_id"] + suffix)
        for port in made.iterfind("output/port"):
            port.attrib.pop("names", None)
        self._layers.append(made)
        return number

    def move_names(self, layer: Layer, port: int, to: Place) -> None:
        """Give the names of a value to another one."""
        outputs = {int(each.get("id", "-1")): each for each in layer.element.iterfind("output/port")}
        self.name_value(to, outputs[port].attrib.pop("names", ""))

    def name_value(self, place: Place, names: str) -> None:
        """Give a value the names of a tensor, as the IR writes them; "" for none."""
        made = next(each for each in self._layers if each.get("id") == str(place[0]))
        for each in made.iterfind("output/port") if names else ():
            if each.get("id") == str(place[1]):
                each.set("names", names)

    def remove(self, layer: Layer) -> None:
        """Remove a layer that nothing reads, with its edges."""
        for port in layer.inputs:
            self.disconnect((layer.id, port.id))
        _remove(self._layers, layer.element)

    def _insert(self, made: Element, before: Element) -> None:
        siblings = list(self._layers)
        position = siblings.index(before)
        level = _indentation(self._layers.text)
        _indent(made, level)
        made.tail = self._layers.text if self._layers.text else None
        self._layers.insert(position, made)

    def connect(self, source: Place, reader: Place) -> None:
        """Add an edge."""
        edge = Element(
            "edge",
            {
                "from-layer": str(source[0]),
                "from-port": str(source[1]),
                "to-layer": str(reader[0]),
                "to-port": str(reader[1]),
            },
        )
        edge.tail = self._edges[-1].tail if len(self._edges) else None
        if len(self._edges):
            self._edges[-1].tail = self._edges.text
        self._edges.append(edge)

    def reconnect(self, source: Place, reader: Place) -> None:
        """Let a port read another value."""
        self.disconnect(reader)
        self.connect(source, reader)

    def disconnect(self, reader: Place) -> None:
        """Remove the edge into a port."""
        for edge in list(self._edges.iter("edge")):
            if (edge.get("to-layer"), edge.get("to-port")) == (str(reader[0]), str(reader[1])):
                _remove(self._edges, edge)

    def remove_unread(self, layers: Iterable[Layer]) -> None:
        """Remove the Const layers without a reader; their bytes stay in the .bin."""
        read = {edge.get("from-layer") for edge in self._edges.iter("edge")}
        for layer in layers:
            if layer.type == "Const" and str(layer.id) not in read:
                _remove(self._layers, layer.element)


def add_port(holder: Element, number: int, port: NewPort) -> None:
    """Write a port as the last of an <input> or <output>."""
    made = SubElement(holder, "port", {"id": str(number), "precision": port.precision})
    for dim in port.dims:
        SubElement(made, "dim").text = str(dim)


def insert_input(layer: Layer, number: int, port: NewPort) -> None:
    """Add an input port to an existing layer, after the others."""
    holder = _child(layer.element, "input")
    level = _indentation(holder.text)
    last = holder[-1]
    add_port(holder, number, port)
    _indent(holder[-1], level)
    holder[-1].tail, last.tail = last.tail, holder.text


def set_data(layer: Layer, values: Mapping[str, str]) -> None:
    """Write the attributes of a layer into <data>; without attributes, remove <data>."""
    data = layer.element.find("data")
    if data is not None and not values:
        _remove(layer.element, data)
    elif data is not None:
        data.attrib.clear()
        data.attrib.update(values)
    elif values:
        data = Element("data", dict(values))
        data.tail = layer.element.text
        layer.element.insert(0, data)


def _child(element: Element, tag: str) -> Element:
    child = element.find(tag)
    return SubElement(element, tag) if child is None else child


def _remove(parent: Element, child: Element) -> None:
    """Remove an element with the whitespace before it."""
    siblings = list(parent)
    position = siblings.index(child)
    if position + 1 == len(siblings):
        if position:
            siblings[position - 1].tail = child.tail
        else:
            parent.text = child.tail
    parent.remove(child)


def _indentation(text: str | None) -> str | None:
    """Return the whitespace before the children of an element, None where the file has none."""
    return None if not text or "\n" not in text or text.strip() else text[text.rindex("\n") :]


def _indent(element: Element, level: str | None) -> None:
    """Indent a new element and its children with one more tab each, as OpenVINO does. level: None for a file without
    indentation.
    """
    if level is None or not len(element):
        return
    element.text = f"{level}\t"
    for child in element:
        _indent(child, f"{level}\t")
        child.tail = f"{level}\t"
    element[-1].tail = level
