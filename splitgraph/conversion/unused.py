"""What a rewrite leaves without a reader: constants and the nodes that computed lengths; nothing that was unused
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from splitgraph.graph.scopes import GraphPath, Scope, plain_domain, subgraphs
from splitgraph.onnx_proto import NodeProto


class Uses:
    """How often each value of a root (main graph or function, with its subgraphs) is read, and what produces it."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._root = root
        self._is_counted = False
        self._reads: Counter[str] = Counter()
        self._producers: dict[str, tuple[Scope, int]] = {}
        self._initializers: dict[str, Scope] = {}
        # Nodes that stay, or gave way to others.
        self._held: list[tuple[Scope, int]] = []

    def is_read(self, name: str) -> bool:
        """True when a node or a graph's outputs name the value."""
        self._count()
        return self._reads[name] > 0

    def hold(self, scope: Scope, index: int) -> None:
        """Note that a node stays where it is, whoever reads its outputs."""
        if not self._is_counted:
            self._held.append((scope, index))
            return
        for output in scope.nodes[index].output[:]:
            self._producers.pop(output, None)

    def exchange(
        self, scope: Scope, index: int, inputs: Iterable[str]
    ) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """Note that a node gives way to others, which read `inputs`; give the nodes and the initializers that nobody
        reads after it, with all that fed only them.
        """
        # One by one: Counter's own methods for few names take ten times as long.
        reads = self._reads
        for name in inputs:
            reads[name] = reads.get(name, 0) + 1
        self.hold(scope, index)
        released = [name for name in scope.nodes[index].input[:] if name]
        for name in released:
            reads[name] = reads.get(name, 0) - 1
        # What is read more often than before cannot be without a reader, so that nobody need count.
        return self._release([name for name in released if self._is_counted or reads[name] < 0])

    def _count(self) -> None:
        # Only when it is asked for: a conversion that leaves nothing unread need not count.
        if self._is_counted:
            return
        self._is_counted = True
        for scope in self._root:
            self._read_scope(scope)
        for scope, index in self._held:
            self.hold(scope, index)

    def _read_scope(self, scope: Scope) -> None:
        self._reads.update(chain.from_iterable([node.input[:] for node in scope.nodes]))
        self._producers.update({name: (scope, i) for i, node in enumerate(scope.nodes) for name in node.output[:]})
        if scope.is_function:
            self._reads.update(scope.proto.output)
            return
        self._reads.update(value.name for value in scope.proto.output)
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # One that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[tensor.name] = scope

    def _release(self, names: Iterable[str]) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """What nobody reads of what was read once less."""
        nodes: list[tuple[Scope, int]] = []
        initializers: list[tuple[GraphPath, str]] = []
        waiting = list(names)
        if waiting:
            self._count()
        while waiting:
            name = waiting.pop()
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
                    read = [name for name in node.input if name]
                    self._reads.subtract(read)
                    waiting.extend(read)
        return nodes, initializers

    def _is_removable(self, node: NodeProto) -> bool:
        unread = all(not name or self._reads[name] <= 0 for name in node.output)
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))
