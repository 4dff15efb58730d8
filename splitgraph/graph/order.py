"""The topological order of a graph's nodes, which ONNX asks for and runtimes make for themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from heapq import heapify, heappop, heappush

from splitgraph.graph.scopes import scopes, subgraphs
from splitgraph.onnx_proto import GraphProto, ModelProto, NodeProto


def sorted_order(nodes: Sequence[NodeProto]) -> list[int]:
    """The indices of nodes in topological order, the earlier node first where either may come first; values that a
    subgraph reads from outside count. A cycle is cut at one of its nodes.
    """
    producers = {name: index for index in reversed(range(len(nodes))) for name in nodes[index].output if name}
    waits = [{producers[name] for name in _reads(node) if name in producers} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, awaited in enumerate(waits):
        for producer in awaited:
            readers[producer].append(index)
    ready = [index for index, awaited in enumerate(waits) if not awaited]
    heapify(ready)
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(waits):
        index = heappop(ready) if ready else _in_a_cycle(waits, done)
        if index in done:
            continue
        done.add(index)
        order.append(index)
        for reader in readers[index]:
            waits[reader].discard(index)
            if not waits[reader]:
                heappush(ready, reader)
    return order


def sort_nodes(model: ModelProto) -> None:
    """Put the nodes of every graph of a model in topological order; the model is edited."""
    # Inner graphs first: sorting a list of nodes makes other objects of them.
    for scope in reversed(list(scopes(model))):
        nodes = scope.proto.node
        order = sorted_order(nodes)
        if order != list(range(len(order))):
            held = list(nodes)
            place = {id(held[index]): position for position, index in enumerate(order)}
            nodes.sort(key=lambda node, place=place: place[id(node)])


def _in_a_cycle(waits: Sequence[Set[int]], done: Set[int]) -> int:
    """The first node of a cycle: of what is left, some node always waits for another."""
    index = next(index for index in range(len(waits)) if index not in done)
    seen: list[int] = []
    while index not in seen:
        seen.append(index)
        index = min(waits[index])
    return min(seen[seen.index(index) :])


def _reads(node: NodeProto) -> Iterator[str]:
    """The names that a node reads in its graph, itself or in its subgraphs; a name may come again."""
    yield from node.input
    # How many of the subgraphs around what is looked at define a name, which is none of the node's own graph then.
    defined: Counter[str] = Counter()
    waiting: list[GraphProto | set[str]] = [graph for _, _, graph in subgraphs(node)]
    while waiting:
        graph = waiting.pop()
        if isinstance(graph, set):
            # The names of a graph that is left.
            defined.subtract(graph)
            continue
        own = _defined_in(graph)
        defined.update(own)
        waiting.append(own)
        for inner in graph.node:
            yield from (name for name in inner.input if not defined[name])
            waiting += [deeper for _, _, deeper in subgraphs(inner)]
        yield from (value.name for value in graph.output if not defined[value.name])


def _defined_in(graph: GraphProto) -> set[str]:
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    return own | {name for node in graph.node for name in node.output}
