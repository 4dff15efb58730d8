"""One of the two models of a comparison: its graphs, the types of their values, and their constants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from splitgraph.deferred import import_whole
from splitgraph.differences.constants import (
    UNKNOWN_FOLDER,
    Bytes,
    Constant,
    Folder,
    UnknownFolder,
    constant,
    sparse_constant,
)
from splitgraph.differences.matching import Graph
from splitgraph.formats import LoadedModel
from splitgraph.graph.scopes import GraphPath, Scope, function_location, graph_at, scopes
from splitgraph.inference.analysis import Analysis
from splitgraph.onnx_proto import ModelProto, TensorProto
from splitgraph.tensor_data import is_external
from splitgraph.value_type import ValueType

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph as IRGraph
    from splitgraph.formats.openvino_ir import Layer, OpenVINOModel
    from splitgraph.inference.openvino_ir.mirror import Mirror


class Side:
    """A model with what is known of it. model: ONNX; of an IR, its mirror. folder: of external data."""

    def __init__(self, loaded: LoadedModel, unknown: UnknownFolder) -> None:
        """unknown: the folder of a model in memory."""
        content = loaded.content
        self.folder: Folder = unknown if loaded.folder is None else loaded.folder
        self._ir: tuple[OpenVINOModel, Mirror] | None = None
        if isinstance(content, ModelProto):
            from splitgraph.inference import infer_model

            self.model = content
            self.analysis: Analysis = infer_model(content, assumes_nonempty=True, fill=False)
        else:
            # What reads OpenVINO IR is imported when there is one.
            import_whole("splitgraph.inference.openvino_ir")
            from splitgraph.inference.openvino_ir.infer import analyse_mirror
            from splitgraph.inference.openvino_ir.mirror import mirror

            mirrored = mirror(content)
            self._ir = content, mirrored
            self.model = mirrored.model
            self.analysis = analyse_mirror(mirrored)
        self.scopes: dict[GraphPath, Scope] = {scope.path: scope for scope in scopes(self.model)}
        self._graphs: dict[GraphPath, Graph] = {}

    @property
    def is_ir(self) -> bool:
        """True for OpenVINO IR."""
        return self._ir is not None

    @cached_property
    def bodies(self) -> Mapping[GraphPath, Sequence[GraphPath]]:
        """The paths of the graphs in attributes of each graph's nodes, in their order."""
        bodies = defaultdict(list)
        for path in self.scopes:
            if len(path) >= 3:
                bodies[path[:-3]].append(path)
        return bodies

    @cached_property
    def functions(self) -> Mapping[str, GraphPath]:
        """The path of each function's body, by its location; the second function of a name is "domain::name#2"."""
        paths: dict[str, GraphPath] = {}
        times = Counter[str]()
        for index, function in enumerate(self.model.functions):
            location = function_location(function)
            times[location] += 1
            paths[location if times[location] == 1 else f"{location}#{times[location]}"] = ("F", index)
        return paths

    def graph(self, path: GraphPath) -> Graph:
        """Return the graph at a path."""
        if path not in self._graphs:
            self._graphs[path] = Graph(self.scopes[path])
        return self._graphs[path]

    def types(self, path: GraphPath) -> Mapping[str, ValueType]:
        """Return the types of the values of a graph. A function has none, because the types are those of each call."""
        types: Mapping[str, ValueType] = self.analysis.details.types.get(path, {})
        return types

    def operator_set(self, path: GraphPath, index: int) -> str:
        """Return the operator set of a layer of an IR, such as "opset1" or "extension"."""
        assert self._ir is not None
        return self._ir[1].layers[path][index].version

    def operator_sets_of_values(self, path: GraphPath) -> Mapping[tuple[str, str], str]:
        """Return the operator sets of those layers of an IR that are no nodes, by type of the layer and name of the
        value.
        """
        if self._ir is None:
            return {}
        graph, names = _graph_at(*self._ir, path), self._ir[1].names[path]
        operator_sets = {}
        for layer in graph.layers:
            if layer.type in ("Parameter", "Const", "Result"):
                port: tuple[int, int] | None = None
                if layer.type != "Result":
                    port = layer.id, layer.outputs[0].id
                elif layer.inputs:
                    port = graph.sources.get((layer.id, layer.inputs[0].id))
                operator_sets[layer.type, "" if port is None else names.get(port, "")] = layer.version
        return operator_sets

    def constants(self, path: GraphPath) -> dict[str, Constant]:
        """Return the initializers of a graph by name; the Const layers of a graph of an IR."""
        if self._ir is not None:
            model, mirrored = self._ir
            names, graph = mirrored.names[path], _graph_at(model, mirrored, path)
            mirrors = {tensor.name: tensor for tensor in graph_at(mirrored.model, path).initializer}
            layers = {names[layer.id, layer.outputs[0].id]: layer for layer in graph.layers if layer.type == "Const"}
            return {name: _constant_of_ir(model, layer, mirrors.get(name)) for name, layer in layers.items()}
        scope = self.scopes[path]
        if scope.is_function:
            return {}
        constants = {tensor.name: constant(tensor, self.folder) for tensor in scope.proto.initializer}
        for sparse in scope.proto.sparse_initializer:
            constants[sparse.values.name] = sparse_constant(sparse, self.folder)
        return constants


def _graph_at(model: OpenVINOModel, mirrored: Mirror, path: GraphPath) -> IRGraph:
    graph, at = model.graph, path[:0]
    for place in range(0, len(path), 3):
        index, key, _ = path[place : place + 3]
        graph = mirrored.layers[at][index].bodies[key]
        at = path[: place + 3]
    return graph


def _constant_of_ir(model: OpenVINOModel, layer: Layer, mirrored: TensorProto | None) -> Constant:
    """Return the constant of a layer. mirrored: has the elements where they are few."""
    import_whole("splitgraph.formats.openvino_ir")
    from splitgraph.formats.openvino_ir.notation import dtype_of

    element = layer.data.get("element_type", "")
    kind = f"{dtype_of(element) or element}[{', '.join(layer.data.get('shape', '').replace(',', ' ').split())}]"
    text = kind if mirrored is None or is_external(mirrored) else constant(mirrored, UNKNOWN_FOLDER).text
    place = model.place_of(layer)
    return Constant(text, kind, bytes=Bytes(place.size, lambda at, length: model.read(place.offset + at, length)))
