"""The graphs of a page: nodes with their attributes and values, and the elements of constants, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from splitgraph.formats.constants import Constant, Folder, attribute_texts, constant, sparse_constant
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
from splitgraph.reports.text import printable
from splitgraph.splits.openvino_split_1 import DOMAIN as OPENVINO

if TYPE_CHECKING:
    from splitgraph.reports.documents.parts import Document

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


class _Held(NamedTuple):
    """The index of the attributes of a node, and of the elements of a Constant; -1 for none."""

    attributes: int
    elements: int


_GRAPHS_AND_TENSORS = HOLDING_GRAPHS | {AttributeProto.TENSOR, AttributeProto.SPARSE_TENSOR}
# Bytes of attributes up to which those of other nodes may be the same.
_LONGEST_KEY = 256


def read_graphs(sources: GraphSources) -> Graphs:
    """Return every graph of the model: the main graph first, then those inside its nodes."""
    return _Reading(sources).run()


class _Reading:
    def __init__(self, sources: GraphSources) -> None:
        self._sources = sources
        self._functions: dict[FunctionKey, Any] = {
            function_key(function): function for function in sources.model.functions
        }
        self._prefixes = _prefixes(sources.wanted) if self._functions else frozenset()
        self._nodes = 0
        self._known: dict[tuple[bytes, bool], _Held] = {}
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
            held = self._held(node)
            attributes.append(held.attributes)
            if held.elements >= 0:
                elements += [(value, held.elements) for value in written[-1][:1]]
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

    def _held(self, node: Any) -> _Held:
        """Return what a node holds. Nodes of repeated layers have equal attributes, which are read once."""
        if any(attribute.type in HOLDING_GRAPHS for attribute in node.attribute):
            return self._read_held(node)
        key = b"".join([attribute.SerializeToString() for attribute in node.attribute])
        if len(key) > _LONGEST_KEY:
            return self._read_held(node)
        # Of a Constant, the tensor is a value and no attribute.
        is_constant = node.op_type == "Constant"
        held = self._known.get((key, is_constant))
        if held is None:
            held = self._known[key, is_constant] = self._read_held(node)
        return held

    def _read_held(self, node: Any) -> _Held:
        tensor = _constant_of(node, self._sources.folder)
        left = _GRAPHS_AND_TENSORS if tensor is not None else HOLDING_GRAPHS
        names = {attribute.name for attribute in node.attribute if attribute.type not in left}
        texts = attribute_texts(node, self._sources.folder) if names else {}
        shown = [(printable(name), printable(text)) for name, text in texts.items() if name in names]
        return _Held(
            self._graphs.attributes.index(shown, tuple(shown)) if shown else -1,
            -1 if tensor is None else self._elements(tensor),
        )

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
