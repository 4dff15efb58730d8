"""The data of a page: what its scripts read about a model and its graphs, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import splitgraph
from splitgraph.differences.constants import (
    UNKNOWN_FOLDER,
    Constant,
    Folder,
    attribute_texts,
    constant,
    graph_constants,
    sparse_constant,
)
from splitgraph.dim import Dim, Obligation, symbols_of
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.formats import HeldModel, open_model
from splitgraph.inference.analysis import IR, Analysis, SplitReport
from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import AttributeProto, ModelProto
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
from splitgraph.report.html.split_svg import KINDS, bar_weights, operator_label, rest_parts
from splitgraph.report.text import dim_text, opset_text, printable, shortened
from splitgraph.splits.openvino_split_1 import DOMAIN as OPENVINO

if TYPE_CHECKING:
    from splitgraph.report.documents import Document

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
    the version of the operator of each split, by location. constants: returns the constants of a graph by name. folder:
    of the data files of the model.
    """

    model: ModelProto
    types: Mapping[GraphPath, Mapping[str, ValueType]]
    calls: Mapping[str, Mapping[str, ValueType]]
    wanted: Iterable[str]
    versions: Mapping[str, int]
    splits: Collection[str]
    constants: Callable[[Any, GraphPath], Mapping[str, Constant]]
    folder: Folder


@dataclass(slots=True)
class Graphs:
    """The graphs of a page.

    documents: one for each graph. places: the graph and the index of each node, by the node's location. repeated: all
    nodes at the location of a split, where several nodes have one name. ops, types, attributes, elements: the tables of
    operators, of types, of the attributes of a node, and of the elements of a constant that documents refer to.
    """

    documents: list[Document] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    repeated: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    ops: EntryTable[str] = field(default_factory=EntryTable)
    types: EntryTable[str] = field(default_factory=EntryTable)
    attributes: EntryTable[list[tuple[str, str]]] = field(default_factory=EntryTable)
    elements: EntryTable[tuple[str, str]] = field(default_factory=EntryTable)
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
        known = {} if is_function else self._sources.constants(graph.proto, graph.path)
        elements = [(values.index(name), self._elements(known[name])) for name in constants if name in known]
        names, ops, read, written, inner = [], [], [], [], list[_Waiting]()
        attributes = []
        for index, node in enumerate(graph.proto.node):
            label = node_label(node, index)
            location = f"{graph.location}/{label}"
            names.append(printable(node.name))
            ops.append(self._operator(node, location))
            read.append([values.index(name) for name in node.input])
            written.append([values.index(name) for name in node.output])
            held = _constant_of(node, self._sources.folder)
            if held is not None:
                elements += [(value, self._elements(held)) for value in written[-1][:1]]
            attributes.append(self._attributes(node, without_tensors=held is not None))
            if self._graphs.places.setdefault(location, (number, index)) != (number, index):
                self._note_repeated(location, number, index)
            if graph.function:
                self._graphs.places.setdefault(f"{graph.function}/{label}", (number, index))
            inner += self._inside(node, graph, index, label, (number, index))
        document["outputs"] = [values.index(name) for name in outputs]
        document |= {"names": names, "ops": ops, "ins": read, "outs": written}
        document |= {"values": values.names, "types": values.types, "attrs": attributes, "elements": elements}
        return inner

    def _elements(self, held: Constant) -> int:
        first, limits = held.shown()
        return self._graphs.elements.index((printable(first), printable(limits)))

    def _attributes(self, node: Any, *, without_tensors: bool) -> int:
        """Return the index of the attributes of a node, -1 for none. without_tensors: of a Constant."""
        left = {attribute.name for attribute in node.attribute if without_tensors and attribute.type in _TENSORS}
        left |= {attribute.name for attribute in node.attribute if attribute.type in HOLDING_GRAPHS}
        texts = attribute_texts(node, self._sources.folder) if len(node.attribute) > len(left) else {}
        shown = [(printable(name), printable(text)) for name, text in texts.items() if name not in left]
        return self._graphs.attributes.index(shown, tuple(shown)) if shown else -1

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


_TENSORS = frozenset({AttributeProto.TENSOR, AttributeProto.SPARSE_TENSOR})


def _constant_of(node: Any, folder: Folder) -> Constant | None:
    """Return the tensor that a Constant holds; None for another node."""
    if node.op_type != "Constant":
        return None
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            return constant(attribute.t, folder)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return sparse_constant(attribute.sparse_tensor, folder)
    return None


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


# Characters of a text of the model's metadata.
_LONGEST_TEXT = 400


class ModelData(NamedTuple):
    """document: everything that a page shows of a model. places: graph and index of each node, by location."""

    document: Document
    places: Mapping[str, tuple[int, int]]


def model_data(analysis: Analysis, name: str, wanted: Iterable[str] = ()) -> ModelData:
    """Return the data of a model. name: of the model, such as its path. wanted: locations of further nodes that
    must be in the data; calls of functions without a split, a finding or such a node are not opened.
    """
    sources = _sources(analysis, wanted)
    graphs = _Reading(sources).run()
    splits, ranks = _Splits(analysis, graphs), _Ranks(analysis, sources.model)
    written = [splits.document(split) for split in analysis.splits]
    completeness = analysis.completeness
    document = {
        "splitgraph": splitgraph.__version__,
        "name": printable(name),
        "format": "OpenVINO IR" if IR in analysis.opset else "ONNX",
        "opset": printable(opset_text(analysis.opset)),
        **({} if IR in analysis.opset else _metadata(sources.model)),
        "graphs": graphs.documents,
        "ops": graphs.ops.entries,
        "types": graphs.types.entries,
        "attributes": graphs.attributes.entries,
        "elements": graphs.elements.entries,
        "dims": splits.dims.entries,
        "splits": written,
        "findings": [_finding(finding, graphs) for finding in analysis.diagnostics],
        "symbols": [
            [printable(symbol), low, high, ranks.of({symbol})]
            for symbol, (low, high) in sorted(analysis.symbols.items(), key=lambda each: ranks.of({each[0]}))
        ],
        "obligations": [
            [_obligation_text(obligation), [printable(location) for location in locations[:20]], rank]
            for rank, obligation, locations in ranks.ordered(analysis.required_by)
        ],
        "assumptions": [
            [printable(str(assumption)), [printable(at)], ranks.of(assumption.symbols)]
            for assumption, at in analysis.assumed_by.items()
        ],
        "completeness": {"dims": completeness.dims, "known": completeness.known, "symbolic": completeness.symbolic},
    }
    return ModelData(document, graphs.places)


class _Ranks:
    """Orders what is said of symbols: 0 for those of the model's inputs, 1 for others of the author, 2 if a symbol is
    splitgraph's own.
    """

    def __init__(self, analysis: Analysis, model: ModelProto) -> None:
        inputs = [analysis.types.get(value.name) for value in model.graph.input]
        dims = [dim for value in inputs if value is not None for dim in value.shape or () if isinstance(dim, Dim)]
        self._own = analysis.generated
        self._inputs = {name for dim in dims for name in symbols_of(dim)} - analysis.generated

    def of(self, symbols: Collection[str]) -> int:
        """Return the rank of what is said of these symbols."""
        if not self._own.isdisjoint(symbols):
            return 2
        return 0 if self._inputs.issuperset(symbols) else 1

    def ordered(self, required: Mapping[Obligation, tuple[str, ...]]) -> list[tuple[int, Obligation, tuple[str, ...]]]:
        """Return the requirements with their ranks, those of the inputs first."""
        ranked = [(self.of(obligation.symbols), obligation, at) for obligation, at in required.items()]
        return sorted(ranked, key=lambda each: each[0])


def _obligation_text(obligation: Obligation) -> str:
    condition = f" (if {' or '.join(obligation.branches)} runs)" if obligation.branches else ""
    return printable(f"{obligation}{condition}")


def _metadata(model: ModelProto) -> Document:
    """Return what an ONNX model says of itself. imports: its operator sets. metadata: entries of the author."""
    told = {
        "IR version": model.ir_version,
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))),
        "domain": model.domain,
        "model version": model.model_version or "",
        "graph": model.graph.name,
        "description": model.doc_string or model.graph.doc_string,
    }
    imports = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    return {
        "about": [(name, _abridged(str(text))) for name, text in told.items() if text != ""],
        "imports": [(printable(domain), version) for domain, version in imports.items()],
        "metadata": [(printable(entry.key), _abridged(entry.value)) for entry in model.metadata_props],
    }


def _abridged(text: str) -> str:
    return printable(shortened(text, _LONGEST_TEXT))


def _sources(analysis: Analysis, more: Iterable[str]) -> GraphSources:
    details = analysis.details
    wanted = [
        *(split.location for split in analysis.splits),
        *(finding.location for finding in analysis.diagnostics),
        *more,
    ]
    source: Any = analysis.held
    content = source.content if isinstance(source, HeldModel) else open_model(source, weights="leave").content
    folder = source.folder if isinstance(source, HeldModel) else UNKNOWN_FOLDER
    model, constants = _with_constants(content, folder)
    return GraphSources(
        model=model,
        types={MAIN: analysis.types} if details is None else details.types,
        calls={} if details is None else _call_types(analysis),
        wanted=wanted,
        splits={split.location for split in analysis.splits},
        versions={split.location: split.since_version for split in analysis.splits if not split.domain},
        constants=constants,
        folder=folder,
    )


def _with_constants(
    content: Any, folder: Folder
) -> tuple[ModelProto, Callable[[Any, GraphPath], Mapping[str, Constant]]]:
    """Return the model without its weights, and what returns the constants of a graph; of an OpenVINO IR the nodes
    that mirror its layers.
    """
    if isinstance(content, ModelProto):
        return content, lambda graph, path: graph_constants(graph, folder)
    from splitgraph.differences.parts import constants_of_ir
    from splitgraph.inference.openvino_ir import mirror

    mirrored = mirror(content)
    return mirrored.model, lambda graph, path: constants_of_ir(content, mirrored, path)


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
