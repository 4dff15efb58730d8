"""One of two models, as regions are found in it: its nodes and constants, and who computes and reads each value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import onnx

from splitgraph.differences.matching import ComparedGraph
from splitgraph.formats.constants import UnknownFolder
from splitgraph.model.scopes import (
    MAIN,
    FunctionKey,
    Scope,
    function_key,
    node_label,
    opset_imports,
    reads,
    subgraph_location,
    subgraphs,
)
from splitgraph.verification.models.dependence import only_sizes
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.constant_values import Constants
from splitgraph.verification.regions.finding.merging import merged
from splitgraph.verification.regions.finding.reached import reached


class ModelSide:
    """One model: its main graph, its constants, and who computes and who reads each value. nodes: those that an output
    of the model depends on, without those that compute the same as another one (see `merging`), and in their bodies
    those that an output of the body depends on. computed: the indices
    of those that are no constants. reads: the names that each node reads, also in its bodies.
    """

    def __init__(self, compared: ComparedModel, location: str = "main") -> None:
        """location: of the main graph, as people read it."""
        assert isinstance(compared.model, onnx.ModelProto)
        self.model, self.folder = compared.model, compared.folder
        self._location = location
        self.analysis, self.types, self.graphs = compared.analysis, compared.analysis.types, compared.analysis.graphs
        self.constants = Constants(self.model, compared.left_out)
        self.results = {value.name for value in self.model.graph.output}
        scope = Scope(self.model.graph, MAIN, "main", opset_imports(self.model.opset_import))
        nodes = [with_live_bodies(node) for node in scope.nodes]
        read = _reads_of(nodes)
        producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
        needed = reached([producers[name] for name in self.results if name in producers], read, producers)
        found = merged(self.model, nodes, read, needed, self.constants, compared.folder or UnknownFolder())
        self.graph = ComparedGraph(scope, found.nodes)
        self.nodes, self._places = self.graph.nodes, found.places
        self.reads = _reads_of(self.nodes)
        self.computed = {index for index, node in enumerate(self.nodes) if node.op_type != "Constant"}
        self.makers = {name: maker for name, maker in self.graph.producers.items() if maker in self.computed}

    @cached_property
    def functions(self) -> Mapping[FunctionKey, onnx.FunctionProto]:
        """The functions of the model."""
        return {function_key(function): function for function in self.model.functions}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[int]]:
        """The nodes that read each value."""
        readers = defaultdict(list)
        for index in sorted(self.computed):
            for name in self.reads[index]:
                readers[name].append(index)
        return readers

    @cached_property
    def only_sizes(self) -> set[str]:
        """The values that say sizes, and nothing else."""
        return only_sizes(self.model) - self.results

    def location(self, index: int) -> str:
        """Return the location of a node, as people read it."""
        return f"{self._location}/{self._label(index)}"

    def body_location(self, index: int, attribute: str, position: int) -> str:
        """Return the location of a body of a node."""
        return subgraph_location(self._location, self._label(index), attribute, position)

    def _label(self, index: int) -> str:
        return node_label(self.nodes[index], self._places[index])

    def is_used(self, name: str) -> bool:
        """Return True for a value that a node or a caller reads."""
        return bool(name) and (name in self.readers or name in self.results)

    def made_by(self, indices: Iterable[int]) -> dict[str, None]:
        """Return the values that some nodes compute, in their order."""
        return dict.fromkeys(name for index in sorted(indices) for name in self.nodes[index].output if name)


def with_live_bodies(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a node whose bodies have only nodes that their outputs depend on: what other ones read is not read."""
    if all(len(live_nodes(body)) == len(body.node) for body in graphs_within(node)):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for body in graphs_within(copy):
        kept = live_nodes(body)
        del body.node[:]
        body.node.extend(kept)
    return copy


def live_nodes(body: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that an output of a body depends on."""
    makers = {name: index for index, node in enumerate(body.node) for name in node.output if name}
    start = [makers[value.name] for value in body.output if value.name in makers]
    return [body.node[index] for index in sorted(reached(start, _reads_of(body.node), makers))]


def graphs_within(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the bodies of a node, each behind those in it."""
    for _, _, body in subgraphs(node):
        for inner in body.node:
            yield from graphs_within(inner)
        yield body


def _reads_of(nodes: Iterable[onnx.NodeProto]) -> list[tuple[str, ...]]:
    return [tuple(dict.fromkeys(filter(None, reads(node)))) for node in nodes]
