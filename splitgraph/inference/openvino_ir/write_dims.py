"""Writing inferred dimensions into the ports of a copy of an IR, and given sizes into its Parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from splitgraph.graph.scopes import MAIN, GraphPath
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.given_sizes import UNBOUND, BoundSizes, bound_type
from splitgraph.inference.openvino_ir.mirror import Mirror
from splitgraph.value_type import Shape, ValueType

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel

Types = Mapping[GraphPath, Mapping[str, ValueType]]


def fill_ir(analysis: Analysis, mirrored: Mirror, model: OpenVINOModel, sizes: BoundSizes = UNBOUND) -> OpenVINOModel:
    """A copy of the model with the inferred dims in every port, and with the sizes that the caller gives in its
    Parameters. A dimension that is not a number is -1 in a port, as the IR has no names for dimensions.
    """
    copy = model.copy()
    if sizes is not UNBOUND:
        _fix_parameters(copy.graph, mirrored, sizes)
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


def _fix_parameters(graph: Graph, mirrored: Mirror, sizes: BoundSizes) -> None:
    """Write the given sizes into the shapes that the Parameters declare; open dimensions keep their text."""
    names, declared = mirrored.names[MAIN], mirrored.given[MAIN]
    shapes = {name: bound_type(known, sizes.bound).shape for name, known in declared.items()}
    for value, given in zip(mirrored.model.graph.input, sizes.given, strict=False):
        if given is not None and given.shape is not None:
            shapes[value.name] = given.shape
    for layer in graph.layers:
        data = layer.element.find("data")
        shape = shapes[names[layer.id, layer.outputs[0].id]] if layer.type == "Parameter" else None
        if data is not None and shape is not None:
            data.set("shape", _fixed_text(data.get("shape", "..."), shape))


def _fixed_text(written: str, shape: Shape) -> str:
    parts = written.strip().removeprefix("[").removesuffix("]").split(",")
    kept = parts if len(parts) == len(shape) and written != "..." else ["?"] * len(shape)
    fixed = [str(dim) if isinstance(dim, int) else part for dim, part in zip(shape, kept, strict=True)]
    return written if fixed == parts else ",".join(fixed)


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
