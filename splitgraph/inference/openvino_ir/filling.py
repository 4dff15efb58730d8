"""Writing what was inferred of an IR into a copy of it: the dims of its ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from splitgraph.graph.scopes import MAIN, GraphPath
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.openvino_ir.mirror import Mirror
from splitgraph.value_type import Shape, ValueType

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel

Types = Mapping[GraphPath, Mapping[str, ValueType]]


def fill_ir(analysis: Analysis, mirrored: Mirror, model: OpenVINOModel) -> OpenVINOModel:
    """A copy of the model with the inferred dims in every port; one that is not a number is -1, as the IR has no
    names for dimensions.
    """
    copy = model.copy()
    _fill(copy.graph, MAIN, mirrored, analysis.details.types)
    copy.refresh()
    return copy


def _fill(graph: Graph, path: GraphPath, mirrored: Mirror, types: Types) -> None:
    names, known = mirrored.names[path], types.get(path, {})
    shapes = {place: found.shape for place, name in names.items() if (found := known.get(name)) is not None}
    for layer in graph.layers:
        if layer.type != "Const":
            _fill_ports(layer, "output", {port.id: shapes.get((layer.id, port.id)) for port in layer.outputs})
        read = {port.id: graph.sources.get((layer.id, port.id)) for port in layer.inputs}
        _fill_ports(layer, "input", {port: shapes.get(source) for port, source in read.items() if source is not None})
    nodes = [layer for layer in graph.layers if layer.type not in ("Parameter", "Result", "Const")]
    for index, layer in enumerate(nodes):
        for key, body in layer.bodies.items():
            _fill(body, (*path, index, key, 0), mirrored, types)


def _fill_ports(layer: Layer, side: str, shapes: Mapping[int, Shape | None]) -> None:
    holder = layer.element.find(side)
    for port in () if holder is None else holder.findall("port"):
        shape = shapes.get(int(port.get("id", "-1")))
        if shape is not None:
            _write_dims(port, [str(dim) if isinstance(dim, int) else "-1" for dim in shape])


def _write_dims(port: Element, texts: Iterable[str]) -> None:
    wanted, present = list(texts), port.findall("dim")
    if len(wanted) == len(present):
        for dim, text in zip(present, wanted, strict=True):
            if (dim.text or "").strip() != text:
                dim.text = text
        return
    for dim in present:
        port.remove(dim)
    for text in wanted:
        SubElement(port, "dim").text = text
