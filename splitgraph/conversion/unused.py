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
        self._reads: Counter[str] = Counter()
        self._producers: dict[str, tuple[Scope, int]] = {}
        self._initializers: dict[str, Scope] = {}

    def is_read(self, name: str) -> bool:
        """True when a node or a graph's outputs name the value."""
        self._count()
        return self._reads[name] > 0

    def exchange(
        self, node: onnx.NodeProto, inputs: Iterable[str]
    ) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """Note that a node gives way to others, which read `inputs`; give the nodes and the initializers that nobody
        reads after it, with all that fed only them.
        """
        self._count()
        for output in node.output:
            self._producers.pop(output, None)
        self._reads.update(inputs)
        return self._release(name for name in node.input if name)

    def _count(self) -> None:
        # Only when it is asked for: a conversion that replaces nothing need not count.
        if not self._producers:
            for scope in self._root:
                self._read_scope(scope)

    def _read_scope(self, scope: Scope) -> None:
        reads, producers = self._reads, self._producers
        for index, node in enumerate(scope.nodes):
            for name in node.input[:]:
                reads[name] += 1
            place = (scope, index)
            for name in node.output[:]:
                producers[name] = place
        if scope.is_function:
            reads.update(scope.proto.output)
            return
        reads.update(value.name for value in scope.proto.output)
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # One that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[tensor.name] = scope

    def _release(self, names: Iterable[str]) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """Take one read away for each name."""
        nodes: list[tuple[Scope, int]] = []
        initializers: list[tuple[GraphPath, str]] = []
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            self._reads[name] -= 1
            if self._reads[name] > 0:
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

    def _is_removable(self, node: onnx.NodeProto) -> bool:
        unread = all(not name or self._reads[name] <= 0 for name in node.output)
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))
