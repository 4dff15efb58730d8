"""The data of a page: what its scripts read about a model and its graphs, as JSON values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import splitgraph
from splitgraph.dim import Dim, symbols_of
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.formats import HeldModel, open_model
from splitgraph.inference.analysis import IR, Analysis, SplitReport
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import (
    MAIN,
    FunctionKey,
    GraphPath,
    called_function,
    function_key,
    function_location,
    node_label,
    plain_domain,
    subgraph_location,
    subgraphs,
)
from splitgraph.model.value_type import ValueType
from splitgraph.reports.html.split_svg import KINDS, bar_weights, operator_label, rest_parts
from splitgraph.reports.text import dim_text, opset_text, printable
from splitgraph.splits.openvino_split_1 import DOMAIN as OPENVINO

if TYPE_CHECKING:
    from splitgraph.reports.documents import Document

# Graphs ---------------------------------------------------------------------------------------------------------------


T = TypeVar("T")


class EntryTable(Generic[T]):
    """Distinct entries in the order of first use; the data of a page refers to an entry by its index."""

    def __init__(self) -> None:
        self.entries: list[T] = []
        self._indices: dict[object, int] = {}

    def index(self, entry: T, key: object = None) -> int:
        """Return the index of an entry, which is added at its first use. key: what identifies an entry without a
        hash.
        """
        known = entry if key is None else key
        position = self._indices.get(known)
        if position is None:
            position = self._indices[known] = len(self.entries)
            self.entries.append(entry)
        return position


# A page stops to add the bodies of called functions at this many nodes; it still lists their splits and findings.
MOST_NODES = 200_000


@dataclass(slots=True)
class GraphSources:
    """The data from which graphs are read.

    types: the types of values by graph path. calls: the types of values in the body of a called function, by the
    location of the call. wanted: locations of splits and findings; a call without one of them is not opened. versions:
    the version of the operator of each split, by location.
    """

    model: ModelProto
    types: Mapping[GraphPath, Mapping[str, ValueType]]
    calls: Mapping[str, Mapping[str, ValueType]]
    wanted: Iterable[str]
    versions: Mapping[str, int]
    splits: Collection[str]


@dataclass(slots=True)
class Graphs:
    """The graphs of a page.

    documents: one for each graph. places: the graph and the index of each node, by the node's location. repeated: all
    nodes at the location of a split, where several nodes have one name. ops, types: the tables of operators and of
    types that documents refer to.
    """

    documents: list[Document] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    repeated: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    ops: EntryTable[str] = field(default_factory=EntryTable)
    types: EntryTable[str] = field(default_factory=EntryTable)
    _type_indices: dict[int, tuple[int, ValueType]] = field(default_factory=dict)

    def output_names(self, place: tuple[int, int]) -> list[str]:
        """Return the names of the outputs of a node, as they are displayed."""
        document = self.documents[place[0]]
        return [document["values"][value] if value >= 0 else "" for value in document["outs"][place[1]]]

    def type_index(self, value: ValueType | None) -> int:
        """Return the index of a type; 0 for an unknown one."""
        if value is None or value.kind == "unknown":
            return self.types.index("")
        # Equal nodes share one object for the types of their outputs; the object is kept, so that its identity stays.
        entry = self._type_indices.get(id(value))
        if entry is None:
            entry = self._type_indices[id(value)] = self.types.index(printable(str(value))), value
        return entry[0]


@dataclass(frozen=True, slots=True)
class _Waiting:
    proto: Any
    path: GraphPath
    location: str
    title: str
    parent: tuple[int, int] | None
    types: Mapping[str, ValueType]
    # Of a function's body: its location as written, apart from any call.
    function: str = ""


class _Reading:
    def __init__(self, sources: GraphSources) -> None:
        self._sources = sources
        self._functions: dict[FunctionKey, Any] = {
            function_key(function): function for function in sources.model.functions
        }
        self._prefixes = _prefixes(sources.wanted) if self._functions else frozenset()
        self._nodes = 0
        self._graphs = Graphs()
        # Type 0 is an unknown type.
        self._graphs.type_index(None)

    def run(self) -> Graphs:
        """Return every graph of the model: the main graph first, then those inside its nodes."""
        main = self._sources.model.graph
        waiting = [_Waiting(main, MAIN, "main", "main", None, self._sources.types.get(MAIN, {}))]
        while waiting:
            waiting.extend(reversed(self._read(waiting.pop())))
        return self._graphs

    def _read(self, graph: _Waiting) -> list[_Waiting]:
        """Add a graph; returns the graphs inside its nodes."""
        number = len(self._graphs.documents)
        self._nodes += len(graph.proto.node)
        values = _Values(self._graphs, graph.types)
        document: Document = {"loc": printable(graph.location), "title": printable(graph.title), "parent": graph.parent}
        self._graphs.documents.append(document)
        is_function = not hasattr(graph.proto, "initializer")
        inputs = graph.proto.input if is_function else [value.name for value in graph.proto.input]
        outputs = graph.proto.output if is_function else [value.name for value in graph.proto.output]
        # An initializer that is also an input has a value of its own: it is drawn as a constant.
        constants = [] if is_function else [tensor.name for tensor in graph.proto.initializer]
        constants += [] if is_function else [tensor.values.name for tensor in graph.proto.sparse_initializer]
        document["consts"] = [values.index(name) for name in constants]
        document["inputs"] = [values.index(name) for name in inputs]
        names, ops, read, written, inner = [], [], [], [], list[_Waiting]()
        for index, node in enumerate(graph.proto.node):
            label = node_label(node, index)
            location = f"{graph.location}/{label}"
            names.append(printable(node.name))
            ops.append(self._operator(node, location))
            read.append([values.index(name) for name in node.input])
            written.append([values.index(name) for name in node.output])
            if self._graphs.places.setdefault(location, (number, index)) != (number, index):
                self._note_repeated(location, number, index)
            if graph.function:
                self._graphs.places.setdefault(f"{graph.function}/{label}", (number, index))
            inner += self._inside(node, graph, index, label, (number, index))
        document["outputs"] = [values.index(name) for name in outputs]
        document |= {"names": names, "ops": ops, "ins": read, "outs": written}
        document |= {"values": values.names, "types": values.types}
        return inner

    def _note_repeated(self, location: str, number: int, index: int) -> None:
        """Record a further node with the name of a split."""
        if location in self._sources.splits:
            self._graphs.repeated.setdefault(location, [self._graphs.places[location]]).append((number, index))

    def _operator(self, node: Any, location: str) -> int:
        version = self._sources.versions.get(location)
        domain = plain_domain(node.domain)
        name = node.op_type if version is None else f"{node.op_type}-{version}"
        is_plain = domain in ("", OPENVINO) or version is not None
        shown = printable(name if is_plain else f"{domain}::{name}")
        return self._graphs.ops.index(shown)

    def _inside(self, node: Any, graph: _Waiting, index: int, label: str, parent: tuple[int, int]) -> list[_Waiting]:
        waiting = []
        for attribute, position, body in subgraphs(node):
            location = subgraph_location(graph.location, label, attribute, position)
            # A body in a function has types of its call, which are not kept apart by graph.
            path = (*graph.path, index, attribute, position)
            types = self._sources.types.get(path, {}) if graph.path[:1] != ("call",) else {}
            title = f"{label} · {attribute}" + (f"[{position}]" if position else "")
            waiting.append(_Waiting(body, path, location, title, parent, types))
        function = self._functions.get(called_function(node))
        location = f"{graph.location}/{label}"
        if function is not None and location in self._prefixes and self._nodes < MOST_NODES:
            title = f"{label} · {function_location(function)}"
            path = ("call", location)
            types = self._sources.calls.get(location, {})
            written = function_location(function)
            waiting.append(_Waiting(function, path, location, title, parent, types, written))
        return waiting


class _Values:
    """The values of one graph: names, and types as indices."""

    def __init__(self, graphs: Graphs, types: Mapping[str, ValueType]) -> None:
        self.names: list[str] = []
        self.types: list[int] = []
        self._graphs, self._known = graphs, types
        self._indices: dict[str, int] = {}

    def index(self, name: str) -> int:
        """Return the index of a value; -1 for an omitted one."""
        if not name:
            return -1
        position = self._indices.get(name)
        if position is None:
            position = self._indices[name] = len(self.names)
            self.names.append(printable(name))
            self.types.append(self._graphs.type_index(self._known.get(name)))
        return position


def _prefixes(locations: Iterable[str]) -> frozenset[str]:
    """Return every location that one of these locations may be inside of."""
    prefixes: set[str] = set()
    for location in locations:
        place = location.rfind("/")
        while place > 0 and (start := location[:place]) not in prefixes:
            prefixes.add(start)
            place = location.rfind("/", 0, place)
    return frozenset(prefixes)


# The page of a model --------------------------------------------------------------------------------------------------


class ModelData(NamedTuple):
    """document: everything that a page shows of a model. places: graph and index of each node, by location."""

    document: Document
    places: Mapping[str, tuple[int, int]]


def model_data(analysis: Analysis, name: str, wanted: Iterable[str] = ()) -> ModelData:
    """Return the data of a model. name: of the model, such as its path. wanted: locations of further nodes that
    must be in the data; calls of functions without a split, a finding or such a node are not opened.
    """
    graphs = _Reading(_sources(analysis, wanted)).run()
    splits = _Splits(analysis, graphs)
    written = [splits.document(split) for split in analysis.splits]
    completeness = analysis.completeness
    document = {
        "splitgraph": splitgraph.__version__,
        "name": printable(name),
        "format": "OpenVINO IR" if IR in analysis.opset else "ONNX",
        "opset": printable(opset_text(analysis.opset)),
        "graphs": graphs.documents,
        "ops": graphs.ops.entries,
        "types": graphs.types.entries,
        "dims": splits.dims.entries,
        "splits": written,
        "findings": [_finding(finding, graphs) for finding in analysis.diagnostics],
        "symbols": [[printable(symbol), low, high] for symbol, (low, high) in analysis.symbols.items()],
        "obligations": [
            [
                printable(
                    f"{obligation} (if {' or '.join(obligation.branches)} runs)"
                    if obligation.branches
                    else str(obligation)
                ),
                [printable(location) for location in locations[:20]],
            ]
            for obligation, locations in analysis.required_by.items()
        ],
        "assumptions": [
            [printable(str(assumption)), [printable(at)]] for assumption, at in analysis.assumed_by.items()
        ],
        "completeness": {"dims": completeness.dims, "known": completeness.known, "symbolic": completeness.symbolic},
    }
    return ModelData(document, graphs.places)


def _sources(analysis: Analysis, more: Iterable[str]) -> GraphSources:
    details = analysis.details
    wanted = [
        *(split.location for split in analysis.splits),
        *(finding.location for finding in analysis.diagnostics),
        *more,
    ]
    return GraphSources(
        model=_proto(analysis),
        types={MAIN: analysis.types} if details is None else details.types,
        calls={} if details is None else _call_types(analysis),
        wanted=wanted,
        splits={split.location for split in analysis.splits},
        versions={split.location: split.since_version for split in analysis.splits if not split.domain},
    )


def _proto(analysis: Analysis) -> ModelProto:
    """Return the model without its weights; of an OpenVINO IR the nodes that mirror its layers."""
    source: Any = analysis.held
    content = source.content if isinstance(source, HeldModel) else open_model(source, weights="leave").content
    if isinstance(content, ModelProto):
        return content
    import_whole("splitgraph.inference.openvino_ir")
    from splitgraph.inference.openvino_ir import mirror

    return mirror(content).model


def _call_types(analysis: Analysis) -> dict[str, Mapping[str, ValueType]]:
    """Return the types of values in called functions, by the location of the call. The walk's own symbols have no
    displayed names there, so a dimension with one of them is left unknown.
    """
    shown = analysis.symbols.keys() - analysis.generated
    return {
        path[1]: {name: _with_shown_dims(value, shown) for name, value in detail.types.items()}
        for path, detail in analysis.details.graphs.items()
        if path[:1] == ("call",)
    }


def _with_shown_dims(value: ValueType, shown: Any) -> ValueType:
    if value.element is not None or not any(isinstance(dim, Dim) for dim in value.shape or ()):
        return value
    return value.with_shape(
        [dim if not isinstance(dim, Dim) or symbols_of(dim) <= shown else None for dim in value.shape or ()]
    )


class _Splits:
    """Writes the splits of a model. Splits of repeated layers have equal lengths, which are written once."""

    def __init__(self, analysis: Analysis, graphs: Graphs) -> None:
        self.dims: EntryTable[list[Any]] = EntryTable()
        self._bounds, self._graphs, self._rests = analysis.symbols, graphs, rest_parts(analysis)
        self._written: dict[tuple[int | Dim | None, ...], list[int]] = {}

    def document(self, split: SplitReport) -> Document:
        """Return the data of one split; splits are given in the order of the analysis."""
        document: Document = {
            "at": self._place(split),
            "loc": printable(split.location),
            "name": printable(split.name),
            "op": operator_label(split),
            "kind": KINDS.get(split.op, "split"),
            "axis": split.axis,
            "input": [printable(split.input_name), self._graphs.type_index(split.input)],
            "outputs": [[printable(name), self._graphs.type_index(value)] for name, value in split.outputs],
            "lengths": self._lengths(split.lengths),
        }
        if split.obligations:
            document["needs"] = [printable(obligation) for obligation in split.obligations]
        if split.location in self._rests:
            document["rest"] = self._rests[split.location]
        return document

    def _place(self, split: SplitReport) -> tuple[int, int] | None:
        """Return the node of a split; of several nodes of one name, the one with the outputs of the split."""
        repeated = self._graphs.repeated.get(split.location)
        if repeated is None:
            return self._graphs.places.get(split.location)
        names = [printable(name) for name, _ in split.outputs]
        return next((place for place in repeated if self._graphs.output_names(place) == names), None)

    def _lengths(self, lengths: tuple[int | Dim | None, ...]) -> list[int]:
        indices = self._written.get(lengths)
        if indices is None:
            texts = [printable(dim_text(length)) for length in lengths]
            weights = [round(weight, 3) for weight in bar_weights(lengths, self._bounds)]
            pairs = zip(texts, weights, strict=True)
            indices = [self.dims.index([text, weight], (text, weight)) for text, weight in pairs]
            self._written[lengths] = indices
        return indices


def _finding(finding: Diagnostic, graphs: Graphs) -> Document:
    return {
        "at": graphs.places.get(finding.location),
        "code": finding.code,
        "severity": finding.severity,
        "message": printable(finding.message),
        "help": printable(finding.help),
        "loc": printable(finding.location),
    }
