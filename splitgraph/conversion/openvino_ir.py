"""Converting the splits of an IR between OpenVINO's Split-1 and VariadicSplit-1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement

from splitgraph.conversion.rewrite import Change, Rewrite
from splitgraph.dim import Dim
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.formats.openvino_ir.notation import name_of, precision_of
from splitgraph.formats.openvino_ir.xml_tree import copied
from splitgraph.inference.analysis import IR
from splitgraph.inference.openvino_ir import is_split, mirror
from splitgraph.inference.openvino_ir.infer import analyse_mirror
from splitgraph.inference.walk_results import GraphDetail, NodePlace, SplitDetail
from splitgraph.model.deferred import np
from splitgraph.model.scopes import GraphPath
from splitgraph.options import STRICT, Leeway
from splitgraph.splits.lowering import lengths_with_rest

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel


@dataclass(frozen=True, slots=True)
class _Edit:
    """The rewrite of one split layer.

    detail: its inference. lengths: in the new form; None where they are computed at run time. axis_is_scalar: Split
    needs a scalar axis.
    """

    path: GraphPath
    index: int
    detail: SplitDetail
    location: str
    lengths: tuple[int, ...] | None = None
    axis_is_scalar: bool = True


@dataclass(slots=True)
class _Plan:
    edits: list[_Edit] = field(default_factory=list)
    blockers: list[Diagnostic] = field(default_factory=list)


def convert_ir(
    model: OpenVINOModel,
    to: str,
    *,
    explicit_lengths: bool = False,
    leeway: Leeway = STRICT,
    only: Collection[NodePlace] | None = None,
) -> Rewrite:
    """Return a copy of the model with its splits as Split or as VariadicSplit; names, ports and all other layers stay.

    explicit_lengths: replace a -1 of a VariadicSplit by its length where that is known. leeway: what the user permits;
    conversion changes splits only, so that no other layer is needed. only: the splits to convert, None for all. Raises
    ConversionError with every split that the target cannot express, SplitgraphError for wrong arguments.
    """
    if to == "slice":
        raise SplitgraphError("splits of an OpenVINO IR cannot be converted to 'slice'; only those of ONNX models can")
    if to not in ("split", "variadic-split"):
        raise SplitgraphError(f"splits cannot be converted to {to!r}; the targets are 'split' and 'variadic-split'")
    if explicit_lengths and to == "split":
        raise SplitgraphError("OpenVINO's Split has no lengths to write out; explicit_lengths is for 'variadic-split'")
    mirrored = mirror(model)
    analysis = analyse_mirror(mirrored, leeway=leeway)
    plan = _Plan(blockers=[finding for finding in analysis.diagnostics if finding.severity == "error"])
    locations = {scope.path: scope.location for scope in analysis.details.scopes}
    for path, layers in mirrored.layers.items():
        finding: GraphDetail = analysis.details.graphs.get(path) or GraphDetail()
        sources = graph_at(model.graph, path).sources
        for index, layer in enumerate(layers):
            if is_split(layer) and (only is None or (path, index) in only):
                location = f"{locations[path]}/{layer.name}"
                first = len(plan.edits)
                _plan(plan, layer, finding.splits.get(index), (path, index, location), to, explicit_lengths)
                axis = sources.get((layer.id, layer.inputs[1].id)) if len(layer.inputs) > 1 else None
                known = finding.types.get(mirrored.names[path].get(axis, "")) if axis is not None else None
                is_scalar = known is not None and known.shape == ()
                plan.edits[first:] = [replace(edit, axis_is_scalar=is_scalar) for edit in plan.edits[first:]]
    if plan.blockers:
        lines = "".join(f"\n  {blocker.code}  {blocker.location}  {blocker.message}" for blocker in plan.blockers)
        raise ConversionError(f"the splits cannot be converted to {to}:{lines}", plan.blockers)
    changes = tuple(_change(edit, to) for edit in plan.edits)
    version = {IR: model.version}
    notes = tuple(finding for finding in analysis.diagnostics if finding.code == "SG606")
    return Rewrite(
        _apply(plan, model, to), changes, notes, from_opset=version, to_opset=version, accepted=analysis.accepted
    )


def _change(edit: _Edit, to: str) -> Change:
    after = "VariadicSplit-1" if to == "variadic-split" else "Split-1"
    return Change(edit.location, edit.detail.variant.label, after, f"convert to {to}")


def _plan(
    plan: _Plan,
    layer: Layer,
    detail: SplitDetail | None,
    place: tuple[GraphPath, int, str],
    to: str,
    explicit_lengths: bool,
) -> None:
    location = place[2]
    if detail is None or detail.split is None:
        if detail is None or not detail.errors:
            text = f"inference knows nothing about this {layer.type}, so it cannot be replaced exactly"
            plan.blockers.append(diagnostic("SG407", text, location))
        return
    if to == "variadic-split":
        _plan_variadic(plan, layer, detail, place, explicit_lengths)
    elif layer.type == "VariadicSplit":
        problem = _no_plain_split(layer, detail)
        if problem is None:
            plan.edits.append(_Edit(*place[:2], detail, location))
        else:
            help = "Keep VariadicSplit, which OpenVINO runs as well."
            plan.blockers.append(diagnostic("SG408", problem, location, help=help))


def _plan_variadic(
    plan: _Plan, layer: Layer, detail: SplitDetail, place: tuple[GraphPath, int, str], explicit_lengths: bool
) -> None:
    split = detail.split
    assert split is not None
    if layer.type == "VariadicSplit":
        lengths = split.static_lengths
        if explicit_lengths and detail.rest_possible and lengths is not None:
            plan.edits.append(_Edit(*place[:2], detail, place[2], lengths))
        return
    plan.edits.append(_Edit(*place[:2], detail, place[2], lengths_with_rest(split)))


def _no_plain_split(layer: Layer, detail: SplitDetail) -> str | None:
    """Return why a VariadicSplit cannot become a Split; None where it can."""
    split = detail.split
    assert split is not None
    lengths = split.lengths or ()
    # Equal lengths that are no numbers are equal parts of any dimension: -1 alone, or computed ones.
    are_alike = bool(lengths) and all(length == lengths[0] for length in lengths) and isinstance(lengths[0], Dim)
    if not are_alike and (split.static_lengths is None or not isinstance(split.total, int)):
        return "Split makes equal parts of a dimension, and cannot pin one that is dynamic or lengths known at run time"
    if len(set(lengths)) > 1:
        return f"Split makes equal parts, and these are {', '.join(map(str, lengths))}"
    if split.axis is None:
        return "the axis is known only at run time, so the parts may be unequal"
    return None


def _apply(plan: _Plan, model: OpenVINOModel, to: str) -> OpenVINOModel:
    copy = model.copy()
    editors: dict[GraphPath, tuple[GraphEditor, Graph, list[Layer]]] = {}
    for edit in plan.edits:
        if edit.path not in editors:
            graph = graph_at(copy.graph, edit.path)
            editors[edit.path] = (GraphEditor(copy, graph), graph, nodes_of(graph))
        editor, graph, nodes = editors[edit.path]
        if to == "split":
            _write_split(editor, graph, nodes[edit.index], edit)
        else:
            _write_variadic(editor, graph, nodes[edit.index], edit)
    copy.refresh()
    return copy


def nodes_of(graph: Graph) -> list[Layer]:
    """Return the layers that are nodes of the mirror, in its order."""
    return [layer for layer in graph.layers if layer.type not in ("Parameter", "Result", "Const")]


def graph_at(graph: Graph, path: GraphPath) -> Graph:
    """Return the graph at a path of the mirror."""
    for index, key in zip(path[::3], path[1::3], strict=True):
        graph = nodes_of(graph)[index].bodies[key]
    return graph


def _write_split(editor: GraphEditor, graph: Graph, layer: Layer, edit: _Edit) -> None:
    """Edit a VariadicSplit to be a Split: without lengths, with the number of parts and a scalar axis."""
    split = edit.detail.split
    assert split is not None and split.axis is not None
    axis, lengths = layer.inputs[1], layer.inputs[2]
    gone = [graph.sources[layer.id, lengths.id]]
    editor.disconnect((layer.id, lengths.id))
    holder = layer.element.find("input")
    assert holder is not None
    ports = holder.findall("port")
    ports[1].tail = ports[2].tail
    holder.remove(ports[2])
    if not edit.axis_is_scalar:
        gone.append(graph.sources[layer.id, axis.id])
        editor.disconnect((layer.id, axis.id))
        editor.connect(editor.constant(layer, "axis", split.axis), (layer.id, axis.id))
        for dim in ports[1].findall("dim"):
            ports[1].remove(dim)
        ports[1].text = None
        ports[1].set("precision", "I64")
    layer.element.set("type", "Split")
    set_data(layer, {"num_splits": str(len(layer.outputs))})
    editor.remove_unread(_by_id(graph, gone))


def _write_variadic(editor: GraphEditor, graph: Graph, layer: Layer, edit: _Edit) -> None:
    """Edit a Split to be a VariadicSplit: a third input with the lengths, constant or computed; -1 is unknown."""
    count = len(layer.outputs)
    if layer.type == "VariadicSplit":
        lengths = layer.inputs[2]
        gone = graph.sources[layer.id, lengths.id]
        editor.disconnect((layer.id, lengths.id))
        editor.connect(editor.constant(layer, "split_lengths", list(edit.lengths or ())), (layer.id, lengths.id))
        editor.remove_unread(_by_id(graph, [gone]))
        return
    number = 1 + max(port.id for port in (*layer.inputs, *layer.outputs))
    if edit.lengths is None:
        source = _equal_lengths(editor, graph, layer, count)
    else:
        source = editor.constant(layer, "split_lengths", list(edit.lengths))
    insert_input(layer, number, NewPort("I64", [count]))
    editor.connect(source, (layer.id, number))
    layer.element.set("type", "VariadicSplit")
    set_data(layer, {})


def _equal_lengths(editor: GraphEditor, graph: Graph, layer: Layer, count: int) -> Place:
    """Write layers that compute the lengths of equal parts at run time: ShapeOf, Gather, Divide, Broadcast."""
    data, axis = layer.inputs[0], layer.inputs[1]
    dims = [-1 if dim is None else dim for dim in data.dims or ()]
    value, axis_value = graph.sources[layer.id, data.id], graph.sources[layer.id, axis.id]
    rank, number = NewPort("I64", [len(dims) if data.dims else -1]), NewPort("I64")
    shape = editor.layer(
        layer, "shape", "ShapeOf", "opset3", {"output_type": "i64"}, [(value, NewPort(data.precision, dims))], [rank]
    )
    zero = editor.constant(layer, "zero", 0)
    place = [(shape, rank), (axis_value, NewPort(axis.precision)), (zero, number)]
    dim = editor.layer(layer, "dim", "Gather", "opset8", {"batch_dims": "0"}, place, [number])
    divisor = editor.constant(layer, "parts", count)
    given = {"auto_broadcast": "numpy", "m_pythondiv": "true"}
    length = editor.layer(layer, "length", "Divide", "opset1", given, [(dim, number), (divisor, number)], [number])
    count_port = editor.constant(layer, "count", [count])
    places = [(length, number), (count_port, NewPort("I64", [1]))]
    return editor.layer(
        layer, "split_lengths", "Broadcast", "opset3", {"mode": "numpy"}, places, [NewPort("I64", [count])]
    )


def _by_id(graph: Graph, places: Sequence[Place]) -> list[Layer]:
    numbers = {place[0] for place in places}
    return [layer for layer in graph.layers if layer.id in numbers]


# Edits of one graph ---------------------------------------------------------------------------------------------------


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
