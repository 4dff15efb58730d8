"""Merge the nodes of a graph that compute the same from the same values: their values are one.

A tool may compute a value once that another one computes twice. Drawn apart, the two would be called different. So a
node is left out if one before it is the same operator with equal attributes and bodies, and reads the same values and
equal constants; its readers read the values of that one. Nodes that may draw random numbers stay, as do operators that
nobody here knows. A value that a caller reads keeps its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from splitgraph.differences.matching import without_omitted_end
from splitgraph.formats.constants import Folder
from splitgraph.model.schemas.kinds import may_draw
from splitgraph.model.scopes import called_function, function_key, plain_domain, subgraphs
from splitgraph.verification.models.model_files import nodes_within
from splitgraph.verification.regions.finding.constant_values import ConstantPairs, Constants
from splitgraph.verification.regions.finding.sameness import Sameness

# Of nodes with one key, each is compared with so many at most, so that the time stays linear.
_MOST_COMPARED = 8
_KNOWN_DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft"})


@dataclass(slots=True)
class MergedNodes:
    """The nodes of a graph of which none computes what another one does. places: the index of each in the graph."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


def merged(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    reads: Sequence[Sequence[str]],
    needed: Collection[int],
    constants: Constants,
    folder: Folder,
) -> MergedNodes:
    """Return the nodes of the main graph that an output depends on, the same ones merged, and the Constant nodes.

    nodes: of the main graph. reads: the names that each node reads, also in its bodies. needed: the nodes that an
    output depends on.
    """
    results = {value.name for value in model.graph.output}
    merging = _Merging(model, constants, folder, results)
    kept = [index for index in sorted(needed) if not merging.has_taken(nodes[index], reads[index])]
    found = MergedNodes()
    for index in kept:
        node = nodes[index]
        names = {name: merging.name_of(name) for name in reads[index] if merging.name_of(name) != name}
        outputs = [merging.written.get(name, name) for name in node.output]
        if names or outputs != node.output[:]:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.output[:] = outputs
            _read_as(copy, names)
            node = copy
        found.nodes.append(node)
        found.places.append(index)
    return found


class _Merging:
    """Decides node by node. read: the value to read in place of another one. written: the name of a caller for what a
    node computes.
    """

    def __init__(self, model: onnx.ModelProto, constants: Constants, folder: Folder, results: Collection[str]) -> None:
        self._constants, self._results = constants, results
        self._sameness = Sameness(model, model, (folder, folder))
        self._pairs = ConstantPairs(constants, constants, self._sameness)
        self._functions = {function_key(function) for function in model.functions}
        self._drawing = _drawing_functions(model.functions)
        self._known: dict[object, list[onnx.NodeProto]] = defaultdict(list)
        self.read: dict[str, str] = {}
        self.written: dict[str, str] = {}

    def name_of(self, name: str) -> str:
        """Return the name under which a value is read."""
        read = self.read.get(name, name)
        return self.written.get(read, read)

    def has_taken(self, node: onnx.NodeProto, reads: Iterable[str]) -> bool:
        """Return True if a node is left out, because an earlier one computes its values."""
        if node.op_type == "Constant" or not self._is_known(node):
            return False
        candidates = self._known[self._key(node, reads)]
        same = next((one for one in candidates[:_MOST_COMPARED] if self._are_same(one, node)), None)
        if same is None:
            candidates.append(node)
            return False
        is_left_out = True
        for name, other in zip(same.output, node.output, strict=True):
            if not other:
                continue
            self.read[other] = name
            if other not in self._results:
                continue
            if name in self._results or name in self.written:
                # Two names of a caller for one value: both nodes stay.
                is_left_out = False
            else:
                self.written[name] = other
        return is_left_out

    def _are_same(self, one: onnx.NodeProto, other: onnx.NodeProto) -> bool:
        if len(one.output) != len(other.output):
            return False
        if any(new and not old for old, new in zip(one.output, other.output, strict=True)):
            return False
        return self._sameness.are_same(one, other, self._is_same)

    def _is_same(self, name: str, other: str) -> bool:
        if name in self._constants or other in self._constants:
            return name == other or self._pairs.are_same(name, other)
        return self.read.get(name, name) == self.read.get(other, other)

    def _is_known(self, node: onnx.NodeProto) -> bool:
        return all(
            (called_function(inner) in self._functions and called_function(inner) not in self._drawing)
            or (plain_domain(inner.domain) in _KNOWN_DOMAINS and not may_draw(inner))
            for inner in nodes_within([node])
        )

    def _key(self, node: onnx.NodeProto, reads: Iterable[str]) -> object:
        """Return what nodes that are the same have in common."""
        if any(True for _ in subgraphs(node)):
            own = [self._told(name) for name in without_omitted_end(node.input[:])]
            return called_function(node), tuple(own), frozenset(map(self._told, reads))
        written = sorted(a.SerializeToString() for a in node.attribute if not a.HasField("t"))
        return called_function(node), tuple(map(self._told, without_omitted_end(node.input[:]))), tuple(written)

    def _told(self, name: str) -> object:
        return self._constants.told(name) if name in self._constants else self.read.get(name, name)


def _drawing_functions(functions: Iterable[onnx.FunctionProto]) -> set[tuple[str, str, str]]:
    """Return the functions that may draw random numbers, or call such a function."""
    called = {}
    drawing: set[tuple[str, str, str]] = set()
    own = {function_key(function) for function in functions}
    for function in functions:
        inner = list(nodes_within(function.node))
        called[function_key(function)] = {called_function(node) for node in inner}
        unknown = (
            called_function(node) not in own and (plain_domain(node.domain) not in _KNOWN_DOMAINS or may_draw(node))
            for node in inner
        )
        if any(unknown):
            drawing.add(function_key(function))
    grown = True
    while grown:
        more = {key for key, others in called.items() if key not in drawing and not drawing.isdisjoint(others)}
        drawing |= more
        grown = bool(more)
    return drawing


def _read_as(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Let a node and its bodies read values under other names."""
    if not names:
        return
    node.input[:] = [names.get(name, name) for name in node.input]
    for _, _, body in subgraphs(node):
        own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
        own |= {tensor.values.name for tensor in body.sparse_initializer}
        own |= {name for inner in body.node for name in inner.output}
        outer = {name: other for name, other in names.items() if name not in own}
        for inner in body.node:
            _read_as(inner, outer)
        for value in body.output:
            value.name = outer.get(value.name, value.name)
