"""What defines each value: a node, or a constant tensor."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from splitgraph.graph.definitions import Definitions, ValueKey
from splitgraph.graph.scopes import GraphPath, Scope
from splitgraph.onnx_proto import NodeProto, TensorProto


class Producers:
    """The node or constant tensor that defines each value of a root (main graph or function, with its subgraphs)."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._definitions = Definitions(root)
        self._path = root[0].path
        self._nodes: dict[ValueKey, NodeProto] = {}
        self._initializers: dict[ValueKey, TensorProto] = {}
        for scope in root:
            for node in scope.nodes:
                self._nodes.update(dict.fromkeys(self._definitions.keys(scope.path, node.output[:]), node))
            if not scope.is_function:
                inputs = {value.name for value in scope.proto.input}
                for tensor in scope.proto.initializer:
                    if tensor.name not in inputs:
                        self._initializers[self._definitions.key(scope.path, tensor.name)] = tensor

    def seen_from(self, scope: Scope) -> Producers:
        """The same producers, looked up by the names of this graph."""
        seen = copy(self)
        seen._path = scope.path
        return seen

    def at_home(self, name: str) -> Producers:
        """The same producers, looked up by the names of the graph that defines a value."""
        home = self._definitions.home(self._path, name)
        if home == self._path:
            return self
        seen = copy(self)
        seen._path = home
        return seen

    def key(self, name: str) -> tuple[GraphPath, str]:
        """What identifies a value among all of the root, from a graph that reads it."""
        return self._definitions.home(self._path, name), name

    def node(self, name: str) -> NodeProto | None:
        """The node that computes a value, None where no node does."""
        return self._nodes.get(self._definitions.key(self._path, name))

    def constant(self, name: str) -> TensorProto | None:
        """The tensor that a value is in every run, None for inputs and computed values."""
        node = self.node(name)
        if node is None:
            return self._initializers.get(self._definitions.key(self._path, name))
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        return values[0] if node.op_type == "Constant" and values else None
