"""The depth of nested graphs, the number of nodes of a model with its functions inlined, and walks in steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from splitgraph.graph.scopes import FunctionKey, called_function, function_key, subgraphs
from splitgraph.onnx_proto import ModelProto, NodeProto

# The levels of messages in one another that protobuf reads; a model's main graph and its functions are the second one.
PROTOBUF_LEVELS = 100
# Those of a graph in the body of another one: a node, its attribute, and the graph.
LEVELS_OF_BODY = 3
# Graphs and types that are nested deeper are not read. Protobuf reads no file with more nested bodies, but functions
# may call functions in theirs. Python's stack has room for about twice as many.
MOST_NESTED = 32


def nested_depth(model: ModelProto) -> int:
    """How many graphs of a model are nested in one another: as bodies of nodes, and in the functions that nodes call. A
    function that calls itself is counted once.
    """
    bodies, depths = _bodies(model), dict[_Key, int]()
    for key in _callees_first(bodies):
        within = (depth + depths.get(called, 0) for called, depth in bodies[key].calls)
        depths[key] = max([bodies[key].depth, *within])
    return max(depths.values())


def inlined_nodes(model: ModelProto) -> int:
    """How many nodes the main graph of a model has, with its bodies, and with its functions in place of their calls."""
    bodies, counts = _bodies(model), dict[_Key, int]()
    for key in _callees_first(bodies):
        counts[key] = bodies[key].nodes + sum(counts.get(called, 0) for called, _ in bodies[key].calls)
    return counts[None]


# A function, or the main graph.
_Key = FunctionKey | None


class _Body(NamedTuple):
    """How deep graphs are nested in a main graph or function, how many nodes are in them, and which functions they
    call, each call with how deep it is.
    """

    depth: int
    nodes: int
    calls: Collection[tuple[_Key, int]]


def _bodies(model: ModelProto) -> Mapping[_Key, _Body]:
    keys = frozenset(map(function_key, model.functions))
    found: dict[_Key, _Body] = {function_key(function): _body(function.node, keys) for function in model.functions}
    found[None] = _body(model.graph.node, keys)
    return found


def _body(nodes: Iterable[NodeProto], functions: Collection[FunctionKey]) -> _Body:
    deepest, count, calls = 0, 0, list[tuple[_Key, int]]()
    waiting = [(nodes, 0)]
    while waiting:
        graph, depth = waiting.pop()
        deepest = max(deepest, depth)
        for node in graph:
            count += 1
            if (key := called_function(node)) in functions:
                calls.append((key, depth))
            waiting += [(inner.node, depth + 1) for _, _, inner in subgraphs(node)]
    return _Body(deepest, count, calls)


def _callees_first(bodies: Mapping[_Key, _Body]) -> Iterable[_Key]:
    """Each function behind those that it calls, but for one that calls itself."""
    order: dict[_Key, None] = {}
    waiting, entered = list(bodies), set[_Key]()
    while waiting:
        key = waiting[-1]
        callees = () if key in entered else {called for called, _ in bodies[key].calls} - entered
        entered.add(key)
        if callees:
            waiting += callees
        else:
            order.setdefault(waiting.pop())
    return order


# Nested calls of model functions do not nest Python calls, because Python's stack is short.
# A walk, step by step: it gives the walk over the body of each call that it comes to, and goes on when that has ended.
Steps = Iterator["Steps"]


def finish(steps: Steps) -> None:
    """Take all steps of a walk. However deep calls are nested, Python's stack does not grow."""
    waiting = [steps]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        else:
            waiting.append(inner)
