"""What a rewrite leaves without a reader: constants and the nodes that computed lengths; nothing that was unused
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import onnx

from splitgraph.graph.scopes import GraphPath, Scope, plain_domain, subgraphs


class Uses:
    """How often each value of a root (main graph or function, with its subgraphs) is read, and what produces it."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._root = root
        self.reads: Counter[str] = Counter()
        self._producers: dict[str, tuple[Scope, int]] = {}
        self._initializers: dict[str, Scope] = {}
        for scope in root:
            self._read_scope(scope)

    def _read_scope(self, scope: Scope) -> None:
        for index, node in enumerate(scope.nodes):
            self.reads.update(name for name in node.input if name)
            for name in node.output:
                self._producers[name] = (scope, index)
        if scope.is_function:
            self.reads.update(scope.proto.output)
            return
        self.reads.update(value.name for value in scope.proto.output)
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # One that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[tensor.name] = scope

    def release(self, names: Iterable[str]) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """Take one read away for each name; give the nodes and the initializers that nobody reads after it, with all
        that fed only them.
        """
        nodes: list[tuple[Scope, int]] = []
        initializers: list[tuple[GraphPath, str]] = []
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            self.reads[name] -= 1
            if self.reads[name] > 0:
                continue
            if name in self._initializers:
                initializers.append((self._initializers.pop(name).path, name))
            elif name in self._producers:
                scope, index = self._producers[name]
                node = scope.nodes[index]
                if self._is_removable(node):
                    nodes.append((scope, index))
                    for output in node.output:
                        self._producers.pop(output, None)
                    waiting.extend(read for read in node.input if read)
        return nodes, initializers

    def replaced(self, node: onnx.NodeProto) -> None:
        """Note that a node is replaced: it is not what produces its outputs any more."""
        for output in node.output:
            self._producers.pop(output, None)

    def _is_removable(self, node: onnx.NodeProto) -> bool:
        unread = all(not name or self.reads[name] <= 0 for name in node.output)
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))
