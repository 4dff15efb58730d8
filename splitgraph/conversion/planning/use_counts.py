"""What a rewrite leaves without a reader: constants and the nodes that computed lengths; nothing that was unused
before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from splitgraph.graph.definitions import Definitions, ValueKey
from splitgraph.graph.scopes import GraphPath, Scope, plain_domain, subgraphs
from splitgraph.onnx_proto import NodeProto


class Uses:
    """How often each value of a root (main graph or function, with its subgraphs) is read, and what produces it."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._root = root
        self._is_counted = False
        self._definitions = Definitions(root)
        self._reads: Counter[ValueKey] = Counter()
        # By position among the nodes of all graphs, one after the other: a tuple for each node would take megabytes.
        self._producers: dict[ValueKey, int] = {}
        self._first_positions: list[int] = []
        self._initializers: dict[ValueKey, Scope] = {}
        # Nodes that stay, or gave way to others.
        self._held: list[tuple[Scope, int]] = []

    def is_read(self, path: GraphPath, name: str) -> bool:
        """True when a node or a graph's outputs name the value that a graph knows by this name."""
        self._count()
        return self._reads[self._definitions.key(path, name)] > 0

    def hold(self, scope: Scope, index: int) -> None:
        """Note that a node stays where it is, whoever reads its outputs."""
        if not self._is_counted:
            self._held.append((scope, index))
            return
        for output in self._keys(scope, scope.nodes[index].output[:]):
            self._producers.pop(output, None)

    def _keys(self, scope: Scope, names: Sequence[str]) -> Sequence[ValueKey]:
        return self._definitions.keys(scope.path, names)

    def exchange(
        self, scope: Scope, index: int, inputs: Sequence[str]
    ) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """Note that a node gives way to others, which read `inputs`; give the nodes and the initializers that nobody
        reads after it, with all that fed only them.
        """
        # One by one: Counter's own methods for few names take ten times as long.
        reads = self._reads
        for value in self._keys(scope, inputs):
            reads[value] = reads.get(value, 0) + 1
        self.hold(scope, index)
        released = self._keys(scope, [name for name in scope.nodes[index].input[:] if name])
        for value in released:
            reads[value] = reads.get(value, 0) - 1
        # What is read more often than before cannot be without a reader, so that there is nothing to count.
        return self._release([value for value in released if self._is_counted or reads[value] < 0])

    def _count(self) -> None:
        # Only when it is asked for: a conversion that leaves nothing unread need not count.
        if self._is_counted:
            return
        self._is_counted = True
        first = 0
        for scope in self._root:
            self._first_positions.append(first)
            self._read_scope(scope, first)
            first += len(scope.nodes)
        for scope, index in self._held:
            self.hold(scope, index)

    def _read_scope(self, scope: Scope, first: int) -> None:
        # Reads are counted under the same string that the producer is found by: each is a new one in every message.
        reads, producers = self._reads, self._producers
        for position, node in enumerate(scope.nodes, first):
            for value in self._keys(scope, node.output[:]):
                producers[value] = position
                reads.setdefault(value, 0)
        for node in scope.nodes:
            for value in self._keys(scope, node.input[:]):
                reads[value] = reads.get(value, 0) + 1
        if scope.is_function:
            self._reads.update(scope.proto.output)
            return
        self._reads.update(self._keys(scope, [value.name for value in scope.proto.output]))
        notes = scope.proto.quantization_annotation
        # Scales and zero points that are told by their names, whether or not a node reads them too.
        told = [entry.value for note in notes for entry in note.quant_parameter_tensor_names]
        self._reads.update(self._keys(scope, told))
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # One that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[self._definitions.key(scope.path, tensor.name)] = scope

    def _release(self, values: Iterable[ValueKey]) -> tuple[list[tuple[Scope, int]], list[tuple[GraphPath, str]]]:
        """What nobody reads of what was read once less."""
        nodes: list[tuple[Scope, int]] = []
        initializers: list[tuple[GraphPath, str]] = []
        waiting = list(values)
        if waiting:
            self._count()
        while waiting:
            value = waiting.pop()
            if self._reads[value] > 0:
                continue
            if value in self._initializers:
                name = value if isinstance(value, str) else value[1]
                initializers.append((self._initializers.pop(value).path, name))
            elif value in self._producers:
                scope, index = self._place_of(self._producers[value])
                node = scope.nodes[index]
                if self._is_removable(scope, node):
                    nodes.append((scope, index))
                    for output in self._keys(scope, node.output[:]):
                        self._producers.pop(output, None)
                    read = self._keys(scope, [name for name in node.input if name])
                    self._reads.subtract(read)
                    waiting.extend(read)
        return nodes, initializers

    def _place_of(self, position: int) -> tuple[Scope, int]:
        # Of graphs without nodes, the last one that begins here is the one that has some.
        which = bisect_right(self._first_positions, position) - 1
        return self._root[which], position - self._first_positions[which]

    def _is_removable(self, scope: Scope, node: NodeProto) -> bool:
        unread = all(self._reads[value] <= 0 for value in self._keys(scope, [name for name in node.output if name]))
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))
