"""Use counts: they find the nodes and initializers that have no reader after a rewrite, but had one before."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from splitgraph.graph.names import Definitions, ValueKey
from splitgraph.graph.scopes import GraphPath, Scope, plain_domain, subgraphs
from splitgraph.onnx_proto import NodeProto


@dataclass(slots=True)
class Effects:
    """What one replacement does to the rest of a root: nodes and initializers without a reader are `gone`; those that
    were gone, and that the new nodes read, are `back`.
    """

    gone: list[tuple[Scope, int]] = field(default_factory=list)
    gone_initializers: list[tuple[GraphPath, str]] = field(default_factory=list)
    back: list[tuple[Scope, int]] = field(default_factory=list)
    back_initializers: list[tuple[GraphPath, str]] = field(default_factory=list)


class UseCounts:
    """For each value of a root (main graph or function, with its subgraphs): how often it is read, and its producer.

    The counts are those of the plan as a whole: a node that lost its last reader comes back when a later replacement
    reads it, so the order of the replacements does not matter.
    """

    def __init__(self, root: Sequence[Scope]) -> None:
        self._root = root
        self._is_counted = False
        self._definitions = Definitions(root)
        self._reads: Counter[ValueKey] = Counter()
        # By position among the nodes of all graphs, one after the other: a tuple for each node would take megabytes.
        self._producers: dict[ValueKey, int] = {}
        self._first_positions: list[int] = []
        self._initializers: dict[ValueKey, Scope] = {}
        # What was removed, and may come back.
        self._gone: dict[ValueKey, int] = {}
        self._gone_initializers: dict[ValueKey, Scope] = {}
        # Nodes that stay or were replaced, so that they are not removed.
        self._held: list[tuple[Scope, int]] = []

    def is_read(self, path: GraphPath, name: str) -> bool:
        """True when a node reads the value with this name, or when a graph outputs it."""
        self._count()
        return self._reads[self._definitions.key(path, name)] > 0

    def hold(self, scope: Scope, index: int) -> None:
        """Record that a node stays, even if nobody reads its outputs."""
        if not self._is_counted:
            self._held.append((scope, index))
            return
        for output in self._keys(scope, scope.nodes[index].output[:]):
            self._producers.pop(output, None)

    def _keys(self, scope: Scope, names: Sequence[str]) -> Sequence[ValueKey]:
        return self._definitions.keys(scope.path, names)

    def exchange(self, scope: Scope, index: int, inputs: Sequence[str]) -> Effects:
        """Record that nodes that read `inputs` replace a node. Returns what is gone afterwards, with everything that
        only this read, and what is back.
        """
        # One by one: Counter's own methods for few names take ten times as long.
        reads, effects = self._reads, Effects()
        needed = self._keys(scope, inputs)
        for value in needed:
            reads[value] = reads.get(value, 0) + 1
        if self._gone or self._gone_initializers:
            self._bring_back(needed, effects)
        self.hold(scope, index)
        released = self._keys(scope, [name for name in scope.nodes[index].input[:] if name])
        for value in released:
            reads[value] = reads.get(value, 0) - 1
        # A value that is read more often than before has a reader, so that nothing needs to be counted.
        self._release([value for value in released if self._is_counted or reads[value] < 0], effects)
        return effects

    def _count(self) -> None:
        # Counted only when asked for: a conversion after which everything is read never asks.
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
        # Reads and producers share one string object for each name: protobuf makes a new one for every message.
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
        # Quantization annotations name scales and zero points, which may have no other reader.
        named = [entry.value for note in notes for entry in note.quant_parameter_tensor_names]
        self._reads.update(self._keys(scope, named))
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # An initializer that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[self._definitions.key(scope.path, tensor.name)] = scope

    def _release(self, values: Iterable[ValueKey], effects: Effects) -> None:
        """Add the nodes and initializers without a reader, given the values that lost one."""
        waiting = list(values)
        if waiting:
            self._count()
        while waiting:
            value = waiting.pop()
            if self._reads[value] > 0:
                continue
            if value in self._initializers:
                scope = self._gone_initializers[value] = self._initializers.pop(value)
                effects.gone_initializers.append((scope.path, _name_of(value)))
            elif value in self._producers:
                position = self._producers[value]
                scope, index = self._place_of(position)
                node = scope.nodes[index]
                if self._is_removable(scope, node):
                    effects.gone.append((scope, index))
                    for output in self._keys(scope, node.output[:]):
                        self._producers.pop(output, None)
                        self._gone[output] = position
                    read = self._keys(scope, [name for name in node.input if name])
                    self._reads.subtract(read)
                    waiting.extend(read)

    def _bring_back(self, values: Iterable[ValueKey], effects: Effects) -> None:
        """Add the nodes and initializers that are gone but read, given the values with a new reader."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if value in self._gone_initializers:
                scope = self._initializers[value] = self._gone_initializers.pop(value)
                effects.back_initializers.append((scope.path, _name_of(value)))
            elif value in self._gone:
                position = self._gone[value]
                scope, index = self._place_of(position)
                effects.back.append((scope, index))
                for output in self._keys(scope, scope.nodes[index].output[:]):
                    self._producers[output] = self._gone.pop(output)
                read = self._keys(scope, [name for name in scope.nodes[index].input if name])
                self._reads.update(read)
                waiting.extend(read)

    def _place_of(self, position: int) -> tuple[Scope, int]:
        # Several graphs begin here when some have no nodes; the last one has nodes.
        which = bisect_right(self._first_positions, position) - 1
        return self._root[which], position - self._first_positions[which]

    def _is_removable(self, scope: Scope, node: NodeProto) -> bool:
        unread = all(self._reads[value] <= 0 for value in self._keys(scope, [name for name in node.output if name]))
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))


def _name_of(value: ValueKey) -> str:
    return value if isinstance(value, str) else value[1]
