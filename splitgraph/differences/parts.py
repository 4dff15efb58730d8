"""Compare the parts of two models besides their nodes: each model as one side, inputs, outputs, metadata, opsets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from splitgraph.differences.difference import Kind, Part, PartDifference
from splitgraph.differences.matching import ComparedGraph, ValueNames
from splitgraph.formats import LoadedModel
from splitgraph.formats.constants import (
    UNKNOWN_FOLDER,
    Bytes,
    Constant,
    Folder,
    UnknownFolder,
    constant,
    graph_constants,
)
from splitgraph.inference.analysis import Analysis
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import FunctionProto, ModelProto, TensorProto
from splitgraph.model.scopes import GraphPath, Scope, function_location, graph_at, opset_imports, scopes
from splitgraph.model.tensor_data import is_external
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.model.values import opaque_text

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph as IRGraph
    from splitgraph.formats.openvino_ir import Layer, OpenVINOModel
    from splitgraph.inference.openvino_ir.mirror import Mirror


# One model ------------------------------------------------------------------------------------------------------------


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
        self._graphs: dict[GraphPath, ComparedGraph] = {}

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

    def graph(self, path: GraphPath) -> ComparedGraph:
        """Return the graph at a path."""
        if path not in self._graphs:
            self._graphs[path] = ComparedGraph(self.scopes[path])
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
            return constants_of_ir(*self._ir, path)
        scope = self.scopes[path]
        return {} if scope.is_function else graph_constants(scope.proto, self.folder)


def constants_of_ir(model: OpenVINOModel, mirrored: Mirror, path: GraphPath) -> dict[str, Constant]:
    """Return the Const layers of a graph of an IR by the name of their value."""
    names, graph = mirrored.names[path], _graph_at(model, mirrored, path)
    mirrors = {tensor.name: tensor for tensor in graph_at(mirrored.model, path).initializer}
    layers = {names[layer.id, layer.outputs[0].id]: layer for layer in graph.layers if layer.type == "Const"}
    return {name: _constant_of_ir(model, layer, mirrors.get(name)) for name, layer in layers.items()}


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
    tensors = () if mirrored is None else (mirrored,)
    return Constant(text, kind, tensors, Bytes(place.size, lambda at, length: model.read(place.offset + at, length)))


# Differences of parts -------------------------------------------------------------------------------------------------


# Fields of a model that are metadata of their own.
_FIELDS = ("producer_name", "producer_version", "domain", "model_version")


def model_parts(before: Side, after: Side) -> Iterator[PartDifference]:
    """Yield the parts of the models themselves that differ."""
    one, two = before.model, after.model
    yield from _entries("opset", "", _texts(before.analysis.opset), _texts(after.analysis.opset))
    if not before.is_ir:
        versions = {"": str(one.ir_version)}, {"": str(two.ir_version)}
        yield from _entries("IR version", "", *versions)
    yield from _entries("metadata", "", _metadata_of_model(one), _metadata_of_model(two))
    functions = _functions(before), _functions(after)
    yield from _entries(
        "function", "", *({key: _signature(body) for key, body in by_key.items()} for by_key in functions)
    )
    for key, function in functions[0].items():
        if key in functions[1]:
            yield from _function_parts(key, function, functions[1][key])
    if _serialized(one.training_info) != _serialized(two.training_info):
        told = f"{len(one.training_info)} graphs", f"{len(two.training_info)} graphs"
        yield PartDifference("training", "", "", "changed", *told)


def graph_parts(
    sides: tuple[Side, Side], paths: tuple[GraphPath, GraphPath], names: ValueNames, different: Collection[str]
) -> Iterator[PartDifference]:
    """Yield the parts of two graphs that differ: inputs, outputs, initializers. different: the values of other
    types.
    """
    before, after = sides[0].graph(paths[0]), sides[1].graph(paths[1])
    location = after.scope.location
    if paths[1] == ():
        yield from _named_values("input", sides, before.formal_inputs, after.formal_inputs, different)
        yield from _named_values("output", sides, before.formal_outputs, after.formal_outputs, different)
    else:
        yield from _placed_values("input", location, before.formal_inputs, after.formal_inputs, names)
        yield from _placed_values("output", location, before.formal_outputs, after.formal_outputs, names)
    yield from _initializers(sides, paths, location)
    yield from _operator_sets(sides, paths, location, names)
    if before.scope.is_function or after.scope.is_function:
        return
    one, two = before.scope.proto, after.scope.proto
    yield from _entries("quantization", location, _quantization(one), _quantization(two))
    yield from _entries("metadata", location, _metadata(one), _metadata(two))


def parts_of_one(side: Side, path: GraphPath, kind: Kind) -> Iterator[PartDifference]:
    """Yield the initializers of a graph that only one model has."""
    location = side.scopes[path].location
    for name, tensor in side.constants(path).items():
        texts = (None, tensor.text) if kind == "added" else (tensor.text, None)
        yield PartDifference("initializer", location, name, kind, *texts)


def _entries(
    part: Part, location: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[PartDifference]:
    """Yield the entries that only one model has, or that differ."""
    for name in dict.fromkeys((*before, *after)):
        one, two = before.get(name), after.get(name)
        if one != two:
            yield PartDifference(part, location, name, _kind(one, two), one, two)


def _kind(before: object, after: object) -> Kind:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def _named_values(
    part: Part, sides: tuple[Side, Side], before: Sequence[str], after: Sequence[str], different: Collection[str]
) -> Iterator[PartDifference]:
    """Yield the inputs or outputs of the main graph that one model lacks or whose types differ, and their order if that
    differs. before, after: their names. different: names whose known types differ.
    """
    names = set(before), set(after)
    types, opaque = [side.types(()) for side in sides], [_opaque(side.model) for side in sides]
    for name in dict.fromkeys((*before, *after)):
        is_there = name in names[0], name in names[1]
        known = [each.get(name) if there else None for each, there in zip(types, is_there, strict=True)]
        is_known = [value is not None for value in known]
        is_same = name not in different if all(is_known) else not any(is_known)
        # What is known of an opaque type is its name alone.
        opaque_names = [each.get(name, "") for each in opaque]
        if all(is_there) and is_same and opaque_names[0] == opaque_names[1]:
            continue
        one, two = (
            opaque_name or str(value or UNKNOWN) if there else None
            for value, opaque_name, there in zip(known, opaque_names, is_there, strict=True)
        )
        yield PartDifference(part, "main", name, _kind(one, two), one, two)
    if [name for name in before if name in names[1]] != [name for name in after if name in names[0]]:
        order: Part = "order of inputs" if part == "input" else "order of outputs"
        yield PartDifference(order, "main", "", "changed", ", ".join(before), ", ".join(after))


def _opaque(model: ModelProto) -> dict[str, str]:
    """Return the opaque types among the declared types of inputs and outputs, by name of the value."""
    texts = {value.name: opaque_text(value.type) for value in (*model.graph.input, *model.graph.output)}
    return {name: text for name, text in texts.items() if text}


def _placed_values(
    part: Part, location: str, before: Sequence[str], after: Sequence[str], names: ValueNames
) -> Iterator[PartDifference]:
    """Inputs or outputs of a body or a function, which mean something by their positions."""
    for position in range(max(len(before), len(after))):
        one = before[position] if position < len(before) else None
        two = after[position] if position < len(after) else None
        if one is None or two is None or not names.is_same(one, two):
            yield PartDifference(part, location, str(two or one), _kind(one, two), one, two)


def _initializers(
    sides: tuple[Side, Side], paths: tuple[GraphPath, GraphPath], location: str
) -> Iterator[PartDifference]:
    before, after = sides[0].constants(paths[0]), sides[1].constants(paths[1])
    for name in dict.fromkeys((*before, *after)):
        one, two = before.get(name), after.get(name)
        if one is None or two is None or not one.equals(two):
            texts = [None if constant is None else constant.text for constant in (one, two)]
            yield PartDifference("initializer", location, name, _kind(one, two), *texts)


def _operator_sets(
    sides: tuple[Side, Side], paths: tuple[GraphPath, GraphPath], location: str, names: ValueNames
) -> Iterator[PartDifference]:
    """Yield the operator sets of the inputs, constants and results of an IR that both graphs have."""
    new = sides[1].operator_sets_of_values(paths[1])
    for (kind, name), text in sides[0].operator_sets_of_values(paths[0]).items():
        other = names.after.get(name, name)
        new_text = new.get((kind, other), text)
        if new_text != text:
            yield PartDifference("opset", location, f"{kind} {other}", "changed", text, new_text)


def _functions(side: Side) -> dict[str, FunctionProto]:
    return {location: side.model.functions[path[1]] for location, path in side.functions.items()}


def _signature(function: FunctionProto) -> str:
    # How many there are: their names are the matter of the body.
    return f"inputs: {len(function.input)}, outputs: {len(function.output)}"


def _function_parts(location: str, before: FunctionProto, after: FunctionProto) -> Iterator[PartDifference]:
    opsets = (opset_imports(function.opset_import) for function in (before, after))
    yield from _entries("opset", location, *map(_texts, opsets))
    told = ({f"attribute {name}": text for name, text in _attributes(function)} for function in (before, after))
    yield from _entries("function", location, *map(dict, told))
    yield from _entries("metadata", location, _metadata(before), _metadata(after))


def _attributes(function: FunctionProto) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a function takes, with their defaults."""
    yield from ((name, "must be given") for name in function.attribute)
    for attribute in function.attribute_proto:
        yield attribute.name, f"default {' '.join(str(attribute).split())}"


def _metadata_of_model(model: ModelProto) -> dict[str, str]:
    fields = {name: str(getattr(model, name)) for name in _FIELDS if model.HasField(name)}
    devices = {
        f"devices of {configuration.name}": ", ".join([str(configuration.num_devices), *configuration.device])
        for configuration in model.configuration
    }
    return {name: text for name, text in fields.items() if text not in ("", "0")} | devices | _metadata(model)


def _metadata(message: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in message.metadata_props}


def _quantization(graph: Any) -> dict[str, str]:
    return {
        annotation.tensor_name: ", ".join(
            sorted(f"{entry.key} {entry.value}" for entry in annotation.quant_parameter_tensor_names)
        )
        for annotation in graph.quantization_annotation
    }


def _texts(versions: Mapping[str, int]) -> dict[str, str]:
    return {domain: str(version) for domain, version in versions.items()}


def _serialized(messages: Iterable[Any]) -> list[bytes]:
    return [message.SerializeToString(deterministic=True) for message in messages]
