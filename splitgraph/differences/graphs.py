"""A graph of one side as comparison reads it: its nodes in lists, and what its values are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.onnx_proto import NodeProto

Operator = tuple[str, str, str]
# What reads a value: the index of the node, and the position among its inputs.
Reader = tuple[int, int]


class Graph:
    """The nodes of a graph, each list by the index of the node. names, operators, inputs, outputs: of the nodes.
    formal_inputs, formal_outputs, constants: names of the graph's inputs, outputs and initializers.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.nodes: Sequence[NodeProto] = scope.nodes[:]
        self.names = [node.name for node in self.nodes]
        self.operators: list[Operator] = [_operator(node) for node in self.nodes]
        self.inputs = [_without_omitted_end(node.input[:]) for node in self.nodes]
        self.outputs: list[list[str]] = [node.output[:] for node in self.nodes]
        proto = scope.proto
        if scope.is_function:
            self.formal_inputs, self.formal_outputs = list(proto.input), list(proto.output)
            self.constants: list[str] = []
        else:
            self.formal_inputs = [value.name for value in proto.input]
            self.formal_outputs = [value.name for value in proto.output]
            self.constants = [tensor.name for tensor in proto.initializer]
            self.constants += [tensor.values.name for tensor in proto.sparse_initializer]

    @cached_property
    def producers(self) -> dict[str, int]:
        """The index of the node that produces each value."""
        return {name: index for index, names in enumerate(self.outputs) for name in names if name}

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each value among the outputs of its node."""
        return {name: place for names in self.outputs for place, name in enumerate(names) if name}

    @cached_property
    def readers(self) -> dict[str, list[Reader]]:
        """The nodes that read each value, in their order."""
        found = defaultdict(list)
        for index, names in enumerate(self.inputs):
            for position, name in enumerate(names):
                if name:
                    found[name].append((index, position))
        return dict(found)

    @cached_property
    def defined(self) -> dict[str, None]:
        """The names that the graph defines, in their order: inputs, initializers, outputs of nodes."""
        return dict.fromkeys([*self.formal_inputs, *self.constants, *self.producers])

    @property
    def sort_key(self) -> tuple[object, ...]:
        """All that matching reads. Of two graphs, the one with the smaller key is matched first, so that the result
        does not depend on which one is the first of a comparison.
        """
        return self.operators, self.names, self.inputs, self.outputs, self.formal_inputs, self.formal_outputs


def _operator(node: NodeProto) -> Operator:
    return plain_domain(node.domain), node.op_type, getattr(node, "overload", "")


def _without_omitted_end(names: list[str]) -> list[str]:
    """The inputs without omitted ones at the end, which mean the same as no input."""
    while names and not names[-1]:
        names.pop()
    return names
