"""Says which node makes each value, and which nodes read it, in a root: a main graph or a function, with subgraphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.names import Definitions, ValueKey
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.scopes import GraphPath, Scope, subgraphs

# The names of values that a node reads, given its place.
Reads = Callable[[NodePlace], Iterable[str]]


class Uses:
    """The values of a root.

    makers: the node that makes each. readers: the nodes that read it, once for each time. results: the values that a
    graph outputs, or that a quantization annotation names. tensors: the initializers that no caller replaces.
    with_bodies: the nodes with bodies.
    """

    def __init__(self, root: Sequence[Scope], *, keeps_inputs: bool = True) -> None:
        """keeps_inputs: an initializer that is an input as well is a default; False if it is a constant."""
        self.root = root
        self.scopes: Mapping[GraphPath, Scope] = {scope.path: scope for scope in root}
        self.definitions = Definitions(root)
        self.makers: dict[ValueKey, NodePlace] = {}
        self.readers: dict[ValueKey, list[NodePlace]] = defaultdict(list)
        self.results: set[ValueKey] = set()
        self.tensors: dict[ValueKey, TensorProto] = {}
        self.with_bodies: set[NodePlace] = set()
        for scope in root:
            self._read(scope, keeps_inputs)

    def _read(self, scope: Scope, keeps_inputs: bool) -> None:
        key, path = self.definitions.key, scope.path
        for index, node in enumerate(scope.nodes):
            place = path, index
            self.makers.update((key(path, name), place) for name in node.output if name)
            for name in node.input:
                if name:
                    self.readers[key(path, name)].append(place)
        if path != self.root[0].path:
            self.with_bodies.add((path[:-3], path[-3]))
        if scope.is_function:
            self.results.update(key(path, name) for name in scope.proto.output)
            return
        self.results.update(key(path, value.name) for value in scope.proto.output)
        for note in scope.proto.quantization_annotation:
            self.results.update(key(path, entry.value) for entry in note.quant_parameter_tensor_names)
            self.results.add(key(path, note.tensor_name))
        inputs = {value.name for value in scope.proto.input} if keeps_inputs else ()
        for tensor in scope.proto.initializer:
            if tensor.name not in inputs:
                self.tensors[key(path, tensor.name)] = tensor

    def key(self, path: GraphPath, name: str) -> ValueKey:
        """Return what identifies the value that a graph reads under a name."""
        return self.definitions.key(path, name)

    def node(self, place: NodePlace) -> NodeProto:
        """Return the node at a place."""
        return self.scopes[place[0]].nodes[place[1]]

    def reads(self, place: NodePlace) -> Iterable[str]:
        """Return the names of values that a node reads as it is."""
        return self.node(place).input[:]

    def needed(self, reads: Reads | None = None) -> set[NodePlace]:
        """Return the nodes that results depend on, and those with bodies. reads: what each node reads, if not what it
        does.
        """
        read_by = reads or self.reads
        found = set[NodePlace]()
        waiting: list[NodePlace] = [self.makers[key] for key in self.results if key in self.makers]
        waiting += self.with_bodies
        while waiting:
            place = waiting.pop()
            if place in found:
                continue
            found.add(place)
            keys = (self.key(place[0], name) for name in read_by(place) if name)
            waiting += [self.makers[key] for key in keys if key in self.makers]
        return found


def has_bodies(node: NodeProto) -> bool:
    """Return True for a node with graphs in its attributes."""
    return any(True for _ in subgraphs(node))
