"""OpenVINO IR as an ONNX model: a node of a domain of its own for each layer, so that one walk infers both formats.

Only what inference reads is mirrored. A value has OpenVINO's name of its tensor if that is unique, else the name of its
layer and port. Nodes have the order of the layers, so that a finding about a node is a finding about its layer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from splitgraph.dim import DimLike, symbol
from splitgraph.formats.openvino_ir.notation import Interval, dtype_of, parse_shape
from splitgraph.inference.rules.openvino.control_flow import write_ports
from splitgraph.model.attributes import make_attribute
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import IR_VERSION, AttributeProto, GraphProto, ModelProto, TensorProto
from splitgraph.model.scopes import MAIN, GraphPath
from splitgraph.model.value_type import DTYPE_NUMBERS, MAX_ITEMS, MAX_LISTED, ValueType
from splitgraph.model.values import LARGEST_DIM, write_shape
from splitgraph.splits.openvino_split_1 import DOMAIN, EXTENSION

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer, OpenVINOModel, Port


# The attribute with the operator set of a node's layer ("opset1", "extension").
OPERATOR_SET = "operator_set"
_SPLITS = frozenset({"Split", "VariadicSplit"})
# How many bytes an element of a mirrored constant can take.
_WIDEST = 8


@dataclass(slots=True)
class Mirror:
    """The mirrored model, and the way back from it to the IR.

    layers: of the nodes of each graph, in order. names: of the value that each output port gives, by graph, layer and
    port. given: the types of inputs and constants, by graph and name. declared: the types of other layers' outputs, as
    the IR has them; not of splits and of decompression, whose types in the IR are incomplete or wrong. bounds: the
    bounds of symbols that stand for intervals.
    """

    model: ModelProto = field(default_factory=ModelProto)
    layers: dict[GraphPath, list[Layer]] = field(default_factory=dict)
    names: dict[GraphPath, dict[tuple[int, int], str]] = field(default_factory=dict)
    given: dict[GraphPath, dict[str, ValueType]] = field(default_factory=dict)
    declared: dict[GraphPath, dict[str, ValueType]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)


def mirror(model: OpenVINOModel) -> Mirror:
    """Return the model that inference walks in place of the IR. Raise ModelError for what cannot be read."""
    return _Mirroring(model).run()


def input_names(model: OpenVINOModel) -> list[str]:
    """Return the names of the inputs of the mirror of an IR, without making it."""
    names = _value_names(model.graph)
    return [names[layer.id, layer.outputs[0].id] for layer in model.graph.layers if layer.type == "Parameter"]


class _Mirroring:
    def __init__(self, model: OpenVINOModel) -> None:
        self._source = model
        self._names = FreshNames(())
        self._bounds: dict[str, Interval] = {}
        self._result = Mirror(bounds=self._bounds)

    def run(self) -> Mirror:
        made = self._result.model
        made.ir_version = IR_VERSION
        for domain in (DOMAIN, EXTENSION):
            made.opset_import.add(domain=domain, version=max(self._source.version, 1))
        made.graph.name = self._source.name
        self._fill(made.graph, self._source.graph, MAIN)
        return self._result

    def _fill(self, proto: GraphProto, graph: Graph, path: GraphPath) -> None:
        names = self._result.names[path] = _value_names(graph)
        given = self._result.given[path] = {}
        declared = self._result.declared[path] = {}
        layers = self._result.layers[path] = []
        for layer in graph.layers:
            if layer.type == "Parameter":
                name = names[layer.id, layer.outputs[0].id]
                given[name] = self._add_input(proto, layer, name)
            elif layer.type == "Result":
                proto.output.add(name=_read_by(graph, names, layer)[0])
            elif layer.type == "Const":
                name = names[layer.id, layer.outputs[0].id]
                given[name] = self._add_constant(proto, layer, name)
            else:
                if not is_split(layer) and not _is_decompression(layer):
                    declared |= {names[layer.id, port.id]: _declared(port) for port in layer.outputs}
                self._add_node(proto, graph, layer, names, (*path, len(layers)))
                layers.append(layer)

    def _shape(self, text: str, layer: Layer) -> tuple[DimLike | None, ...] | None:
        """Return the shape in an attribute of a layer, with a symbol for each interval; None for an unknown rank."""
        intervals = parse_shape(text)
        if intervals is None:
            return None
        return tuple(self._dim(interval, f"{layer.name}_{axis}") for axis, interval in enumerate(intervals))

    def _dim(self, interval: Interval, hint: str) -> DimLike | None:
        lowest, most = interval
        if lowest == most:
            return lowest
        if interval == (0, None):
            return None
        name = self._names.new(re.sub(r"\W", "_", hint, flags=re.ASCII))
        self._bounds[name] = interval
        return symbol(name)

    def _static_shape(self, layer: Layer) -> tuple[int, ...] | None:
        shape = self._shape(layer.data.get("shape", ""), layer)
        dims = tuple(dim for dim in shape or () if isinstance(dim, int))
        return dims if shape is not None and len(dims) == len(shape) else None

    def _add_input(self, proto: GraphProto, layer: Layer, name: str) -> ValueType:
        written = layer.data.get("shape")
        port = _declared(layer.outputs[0])
        shape = port.shape if written is None else self._shape(written, layer)
        known = ValueType("tensor", dtype_of(layer.data.get("element_type", "")) or port.dtype, shape)
        value = proto.input.add(name=name)
        value.type.tensor_type.elem_type = DTYPE_NUMBERS.get(known.dtype or "", 0)
        write_shape(known, value.type.tensor_type)
        return known

    def _add_constant(self, proto: GraphProto, layer: Layer, name: str) -> ValueType:
        """Add a constant. Its contents are added only if it has few numbers or is a list of numbers."""
        dtype, dims = dtype_of(layer.data.get("element_type", "")), self._static_shape(layer)
        number = DTYPE_NUMBERS.get(dtype or "")
        known = ValueType("tensor", dtype, dims)
        if number is None or dims is None:
            return known
        tensor = proto.initializer.add(name=name, data_type=number, dims=dims)
        content = self._source.constant(layer)
        most = MAX_LISTED if len(dims) == 1 else MAX_ITEMS
        if dtype == "string" or len(content) > most * _WIDEST:
            tensor.data_location = TensorProto.EXTERNAL
        else:
            tensor.raw_data = bytes(content)
        return known

    def _add_node(
        self,
        proto: GraphProto,
        graph: Graph,
        layer: Layer,
        names: Mapping[tuple[int, int], str],
        place: GraphPath,
    ) -> None:
        node = proto.node.add(op_type=layer.type, name=layer.name, domain=_domain(layer))
        node.input.extend(_read_by(graph, names, layer))
        node.output.extend(names[layer.id, port.id] for port in layer.outputs)
        if is_split(layer):
            node.attribute.extend(_split_attributes(layer))
            return
        for key, text in layer.data.items():
            node.attribute.append(make_attribute(key, text))
        node.attribute.append(make_attribute(OPERATOR_SET, layer.version))
        for key, body in layer.bodies.items():
            attribute = node.attribute.add(name=key, type=AttributeProto.GRAPH)
            attribute.g.name = key
            self._fill(attribute.g, body, (*place, key, 0))
        for key in layer.port_maps:
            node.attribute.append(make_attribute(key, write_ports(layer, key)))


def is_split(layer: Layer) -> bool:
    """Return True for OpenVINO's own splits."""
    return layer.type in _SPLITS and _domain(layer) == DOMAIN


def _is_decompression(layer: Layer) -> bool:
    """Return True for a Convert that OpenVINO wrote behind a compressed constant. If it is an output of the model, its
    port has the compressed type, and OpenVINO reads only destination_type.
    """
    return layer.type == "Convert" and layer.element.find("rt_info/attribute[@name='decompression']") is not None


def _domain(layer: Layer) -> str:
    return DOMAIN if layer.version.startswith("opset") else EXTENSION


def _split_attributes(layer: Layer) -> list[AttributeProto]:
    """Return the attributes that the split variants read. The number of parts of a Split becomes an integer if it is
    one.
    """
    text = layer.data.get("num_splits")
    if layer.type != "Split" or text is None:
        return []
    is_number = text.strip().isascii() and text.strip().isdigit()
    return [make_attribute("num_splits", min(int(text), LARGEST_DIM) if is_number else text)]


def _declared(port: Port) -> ValueType:
    return ValueType("tensor", dtype_of(port.precision), port.dims)


def _read_by(graph: Graph, names: Mapping[tuple[int, int], str], layer: Layer) -> list[str]:
    """Return the names of a layer's inputs, "" for a port without a connection."""
    sources = (graph.sources.get((layer.id, port.id)) for port in layer.inputs)
    return [names.get(source, "") if source is not None else "" for source in sources]


def _value_names(graph: Graph) -> dict[tuple[int, int], str]:
    """Return a name for the value of each output port. No two values of the graph share a name."""
    ports = [(layer, index, port) for layer in graph.layers for index, port in enumerate(layer.outputs)]
    wishes = [
        [*port.names[:1], layer.name if len(layer.outputs) == 1 else f"{layer.name}.{index}"]
        for layer, index, port in ports
    ]
    count = Counter(options[0] for options in wishes)
    taken: set[str] = set()
    names = {}
    for (layer, _, port), options in zip(ports, wishes, strict=True):
        name = next((wish for wish in options if wish and wish not in taken and count[wish] <= 1), "")
        number = 0
        while not name or name in taken:
            name = f"{layer.name}:{port.id}_{number}" if number else f"{layer.name}:{port.id}"
            number += 1
        taken.add(name)
        names[layer.id, port.id] = name
    return names
