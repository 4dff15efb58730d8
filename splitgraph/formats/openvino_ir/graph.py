"""The graph that the XML of an IR describes: layers, ports, edges and bodies, each checked as it is read.

What no reader could make sense of is the file's fault and refused here. A cycle, an input that nothing feeds and a
layer of unknown type are the model's fault: inference reports them.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.openvino_ir.notation import Interval, byte_size, parse_shape, parse_static_shape
from splitgraph.formats.openvino_ir.xml_tree import quoted, refusal

_BODY_OF = {"port_map": "body", "back_edges": "body", "then_port_map": "then_body", "else_port_map": "else_body"}
_BODIES = ("body", "then_body", "else_body")
_NUMBER = re.compile(r"[0-9]{1,19}")
_LARGEST = 2**63 - 1
_MOST_ELEMENTS = 2**63
# A comma that no backslash stands before.
_NAME_BREAK = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a layer.

    precision: as the IR writes it ("FP32", "I64"), "" when absent. dims: None for an entry that is dynamic; the whole
    is None where the IR does not tell the rank: a port without <dim> is a scalar or of unknown rank, and only the
    layers Const and Parameter say which. names: the tensor's names.
    """

    id: int
    precision: str
    dims: tuple[int | None, ...] | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer of a graph.

    version: "opset1", "extension", ... data: the attributes of <data>. bodies: by tag ("body", "then_body",
    "else_body"). port_maps: by tag ("port_map", "then_port_map", "else_port_map", "back_edges"), the attributes of each
    entry in order, with the entry's own tag under "tag". element: the layer in the model's tree.
    """

    id: int
    name: str
    type: str
    version: str
    data: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bodies: Mapping[str, Graph]
    port_maps: Mapping[str, tuple[Mapping[str, str], ...]]
    element: Element

    @property
    def label(self) -> str:
        """The layer's type with its operator set, "opset1.Split"."""
        return f"{self.version}.{self.type}"

    @property
    def versioned(self) -> str:
        """The layer's type with the number of its operator set, "Split-1"; of a set without a number, its label."""
        number = self.version.removeprefix("opset")
        return f"{self.type}-{number}" if number.isdecimal() else self.label


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The layers of a <net> or a body, in topological order; layers on a cycle, or that depend on one, come last.

    sources: what each input port reads: (to layer, to port) -> (from layer, from port). element: the element that holds
    <layers> and <edges>.
    """

    layers: tuple[Layer, ...]
    sources: Mapping[tuple[int, int], tuple[int, int]]
    element: Element


# Reading -------------------------------------------------------------------------------------------------------------


def read_graph(element: Element, path: str | os.PathLike[str] | None) -> Graph:
    """Return the graph of a <net> or a body. Raises ModelError (SG111) for what is not a graph."""
    return _GraphReader(path).graph(element, "")


@dataclass(frozen=True, slots=True)
class _GraphReader:
    path: str | os.PathLike[str] | None

    def refuse(self, where: str, message: str) -> ModelError:
        return refusal("SG111", f"{where} {message}" if where else message, self.path)

    def graph(self, element: Element, inside: str) -> Graph:
        """inside: how messages name the layer whose body this is, empty for the net itself."""
        named = f"the <{element.tag}> of {inside}" if inside else "the <net>"
        layers: dict[int, Layer] = {}
        for child in self._children(element, "layers", "layer", named):
            layer = self._layer(child, inside)
            if layer.id in layers:
                other = quoted(layers[layer.id].name)
                raise self.refuse(named, f"has two layers of id {layer.id}: {other} and {quoted(layer.name)}")
            layers[layer.id] = layer
        sources = self._sources(self._children(element, "edges", "edge", named), layers, named)
        return Graph(_topological(layers, sources), sources, element)

    def _children(self, element: Element, tag: str, entry: str, named: str) -> list[Element]:
        lists = element.findall(tag)
        if len(lists) > 1 or (not lists and tag == "layers"):
            raise self.refuse(named, f"has {len(lists) or 'no'} <{tag}>; it must have one")
        return lists[0].findall(entry) if lists else []

    # Layers ----------------------------------------------------------------------------------------------------------

    def _layer(self, element: Element, inside: str) -> Layer:
        name = element.get("name", "")
        where = f"layer {quoted(name)}" + (f" in {inside}" if inside else "")
        number = self.number(element, "id", where)
        for attribute in ("name", "type", "version"):
            if attribute not in element.attrib:
                raise self.refuse(f"{where} (id {number})", f"has no {attribute}")
        data_element = element.find("data")
        data = {} if data_element is None else dict(data_element.items())
        bodies = {tag: self.graph(body, where) for tag in _BODIES if (body := element.find(tag)) is not None}
        layer = Layer(
            id=number,
            name=name,
            type=element.attrib["type"],
            version=element.attrib["version"],
            data=data,
            inputs=self._ports(element, "input", where),
            outputs=self._ports(element, "output", where),
            bodies=bodies,
            port_maps={tag: _entries(entries) for tag in _BODY_OF if (entries := element.find(tag)) is not None},
            element=element,
        )
        self._check_ports(layer, where)
        self._check_port_maps(layer, where)
        return layer

    def _ports(self, layer: Element, tag: str, where: str) -> tuple[Port, ...]:
        ports = layer.find(tag)
        return () if ports is None else tuple(self._port(layer, port, where) for port in ports.findall("port"))

    def _port(self, layer: Element, element: Element, where: str) -> Port:
        number = self.number(element, "id", f"a port of {where}")
        entries = [self._dim(entry, f"port {number} of {where}") for entry in element.findall("dim")]
        dims = tuple(entries) if entries else self._rank_of_no_dims(layer, where)
        return Port(number, element.get("precision", ""), dims, _names(element.get("names", "")))

    def _rank_of_no_dims(self, layer: Element, where: str) -> tuple[()] | None:
        """Return what a port without <dim> has: OpenVINO writes scalars and unknown ranks alike."""
        data = layer.find("data")
        if layer.get("type") not in ("Const", "Parameter") or data is None or "shape" not in data.attrib:
            return None
        return () if self.shape(data.attrib["shape"], where) == () else None

    def _dim(self, element: Element, where: str) -> int | None:
        text = (element.text or "").strip()
        if text == "-1":
            return None
        if not _NUMBER.fullmatch(text) or int(text) > _LARGEST:
            raise self.refuse(where, f"has the dimension {quoted(text)}; it must be -1 or a size")
        return int(text)

    def _check_ports(self, layer: Layer, where: str) -> None:
        for ports in (layer.inputs, layer.outputs):
            seen: set[int] = set()
            for port in ports:
                if port.id in seen:
                    raise self.refuse(where, f"has two ports of id {port.id}")
                seen.add(port.id)
        if layer.type == "Parameter" and "shape" in layer.data:
            self.shape(layer.data["shape"], where)

    def shape(self, text: str, where: str) -> tuple[Interval, ...] | None:
        try:
            return parse_shape(text)
        except ValueError as error:
            raise self.refuse(where, f"has the shape {quoted(text)}: {error}") from None

    def number(self, element: Element, attribute: str, where: str) -> int:
        text = element.get(attribute)
        if text is None:
            raise self.refuse(where, f"has no {attribute}")
        if not _NUMBER.fullmatch(text.strip()) or int(text) > _LARGEST:
            raise self.refuse(where, f"has the {attribute} {quoted(text)}; it must be a number")
        return int(text)

    # Bodies ----------------------------------------------------------------------------------------------------------

    def _check_port_maps(self, layer: Layer, where: str) -> None:
        """Every entry names a Parameter or Result of the body, and a port of the layer or -1."""
        ports = {"input": {port.id for port in layer.inputs}, "output": {port.id for port in layer.outputs}}
        for tag, entries in layer.port_maps.items():
            body = layer.bodies.get(_BODY_OF[tag])
            if body is None:
                raise self.refuse(where, f"has a <{tag}>, but no <{_BODY_OF[tag]}>")
            ends = {"Parameter": _ids(body, "Parameter"), "Result": _ids(body, "Result")}
            for entry in entries:
                for attribute, kind in _ENDS.get(entry["tag"], ()):
                    self._check_end(entry, attribute, kind, ends[kind], where)
                if entry["tag"] in ports:
                    self._check_external(entry, ports[entry["tag"]], where)

    def _check_end(self, entry: Mapping[str, str], attribute: str, kind: str, known: set[int], where: str) -> None:
        text = entry.get(attribute, "").strip()
        if not _NUMBER.fullmatch(text) or int(text) not in known:
            raise self.refuse(where, f"maps to its body by {attribute} {quoted(text)}, which is no {kind} of it")

    def _check_external(self, entry: Mapping[str, str], known: set[int], where: str) -> None:
        text = entry.get("external_port_id", "").strip()
        if text != "-1" and (not _NUMBER.fullmatch(text) or int(text) not in known):
            raise self.refuse(where, f"maps the external_port_id {quoted(text)}, which is no {entry['tag']} port of it")

    # Edges -----------------------------------------------------------------------------------------------------------

    def _sources(
        self, edges: Iterable[Element], layers: Mapping[int, Layer], named: str
    ) -> dict[tuple[int, int], tuple[int, int]]:
        outputs = {(layer.id, port.id) for layer in layers.values() for port in layer.outputs}
        inputs = {(layer.id, port.id) for layer in layers.values() for port in layer.inputs}
        sources: dict[tuple[int, int], tuple[int, int]] = {}
        for edge in edges:
            source, target = self._end(edge, "from", named), self._end(edge, "to", named)
            where = (
                f"an edge of {named} from layer {source[0]}, port {source[1]} to layer {target[0]}, port {target[1]}"
            )
            for (number, port), known, kind in ((source, outputs, "output"), (target, inputs, "input")):
                if (number, port) not in known:
                    what = f"has no {kind} port {port}" if number in layers else "does not exist"
                    raise self.refuse(where, f"leads nowhere: layer {number} {what}")
            if target in sources:
                raise self.refuse(where, "is the second one into that port")
            sources[target] = source
        return sources

    def _end(self, edge: Element, end: str, named: str) -> tuple[int, int]:
        where = f"an edge of {named}"
        return self.number(edge, f"{end}-layer", where), self.number(edge, f"{end}-port", where)


# What an entry of a port map names in the body: the attribute, and the type of layer that it means.
_ENDS = {
    "input": (("internal_layer_id", "Parameter"),),
    "output": (("internal_layer_id", "Result"),),
    "edge": (("from-layer", "Result"), ("to-layer", "Parameter")),
}


def _ids(graph: Graph, kind: str) -> set[int]:
    return {layer.id for layer in graph.layers if layer.type == kind}


def _entries(element: Element) -> tuple[Mapping[str, str], ...]:
    # A comment has a function as its tag.
    return tuple({**child.attrib, "tag": child.tag} for child in element if isinstance(child.tag, str))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.replace("\\,", ",") for name in _NAME_BREAK.split(text) if name)


def _topological(layers: Mapping[int, Layer], sources: Mapping[tuple[int, int], tuple[int, int]]) -> tuple[Layer, ...]:
    """Return the layers, each behind the layers that it reads, otherwise as in the file. Layers on a cycle, and layers
    that depend on one, come last.
    """
    position = {number: index for index, number in enumerate(layers)}
    readers: dict[int, list[int]] = {number: [] for number in layers}
    missing = dict.fromkeys(layers, 0)
    for (reader, _), (source, _) in sources.items():
        readers[source].append(reader)
        missing[reader] += 1
    ready = [(index, number) for number, index in position.items() if not missing[number]]
    ordered: list[Layer] = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(layers[number])
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (position[reader], reader))
    return (*ordered, *(layer for number, layer in layers.items() if missing[number]))


# Constants -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinRange:
    """Bytes of the .bin: `size` of them from `offset`."""

    offset: int
    size: int


def check_constants(graph: Graph, available: int | None, path: str | os.PathLike[str] | None) -> None:
    """Check every Const of a graph and its bodies. available: bytes of the .bin, None when there is none. Raises
    ModelError (SG107, SG111).
    """
    for layer in graph.layers:
        if layer.type == "Const":
            locate(layer, available, path)
        for body in layer.bodies.values():
            check_constants(body, available, path)


def locate(layer: Layer, available: int | None, path: str | os.PathLike[str] | None) -> BinRange:
    """Return where the contents of a Const are.

    Raises ModelError: SG107 the .bin does not hold them; SG111 the layer does not say where they are, or gives a size
    that does not fit its type and shape.
    """

    def refuse(code: str, message: str) -> ModelError:
        return refusal(code, f"layer {quoted(layer.name)} (id {layer.id}) {message}", path)

    if layer.type != "Const":
        raise refuse("SG111", f"is a {layer.type}, which has no contents in the .bin")
    for attribute in ("element_type", "shape", "offset", "size"):
        if attribute not in layer.data:
            raise refuse("SG111", f"is a Const without {attribute}")
    numbers = [layer.data[attribute].strip() for attribute in ("offset", "size")]
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        raise refuse(
            "SG111", f"has the offset {quoted(numbers[0])} and the size {quoted(numbers[1])}; both must be numbers"
        )
    offset, size = map(int, numbers)
    try:
        shape = parse_static_shape(layer.data["shape"])
    except ValueError as error:
        raise refuse("SG111", f"has the shape {quoted(layer.data['shape'])}: {error}") from None
    elements = _product(shape)
    if elements > _MOST_ELEMENTS:
        raise refuse("SG111", f"has the shape {quoted(layer.data['shape'])}, of more elements than any file holds")
    expected = byte_size(layer.data["element_type"], elements)
    # For a constant without elements OpenVINO writes a byte that holds nothing.
    is_padding = expected == 0 and size == 1
    if expected is not None and size != expected and not is_padding:
        what = f"{quoted(layer.data['element_type'])} of shape {quoted(layer.data['shape'])}"
        raise refuse("SG111", f"has {size:,} bytes, but {what} takes {expected:,}")
    if available is None:
        raise refuse("SG107", "is in the .bin, but there is none beside the .xml")
    if offset + size > available:
        raise refuse("SG107", f"needs {size:,} bytes from byte {offset:,} of the .bin, which has only {available:,}")
    return BinRange(offset, 0 if is_padding else size)


def _product(shape: tuple[int, ...]) -> int:
    """Return the number of elements, or some number above _MOST_ELEMENTS: the product of many sizes has too many
    digits.
    """
    if 0 in shape:
        return 0
    product = 1
    for size in shape:
        product *= size
        if product > _MOST_ELEMENTS:
            break
    return product
