"""The graphs of a model: the main graph, subgraphs in node attributes, bodies of model-local functions. How each is
addressed, how deep they are nested, and the order of their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
)

# Where a graph is: () is the main graph, ("F", i) the body of function i; each subgraph adds (node index, attribute
# name, position).
GraphPath = tuple[Any, ...]
MAIN: GraphPath = ()

FunctionKey = tuple[str, str, str]

# How models write the domain ai.onnx.
_PLAIN = ("", "ai.onnx")
MACHINE_LEARNING = "ai.onnx.ml"
# The domains whose operators have several versions.
VERSIONED_DOMAINS = ("", MACHINE_LEARNING)
# The operators of ai.onnx with bodies; a test compares them with onnx's schemas. Looking for bodies in all attributes
# of all nodes would take a tenth of a model's inference.
OPERATORS_WITH_BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})


HavingBodies = Callable[["Scope"], Iterable[int]]


def opset_imports(entries: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Imported version of each domain; "ai.onnx" is the domain ""."""
    return {plain_domain(entry.domain): entry.version for entry in entries}


def model_imports(model: ModelProto) -> dict[str, int]:
    """Imported version of each domain in the main graph. A file of IR version 1 or 2 cannot import any: the
    specification takes opset 1 of ai.onnx.
    """
    return {"": 1} if implies_opset(model) else opset_imports(model.opset_import)


def implies_opset(model: ModelProto) -> bool:
    """Return True for a model that is older than opset imports, and so means opset 1 of ai.onnx."""
    return not model.opset_import and model.ir_version in (1, 2)


def write_implied_opset(model: ModelProto) -> None:
    """Import the opset that a model of IR version 1 or 2 implies. Imports exist from IR version 3 on."""
    model.opset_import.add(domain="", version=1)
    model.ir_version = 3


def plain_domain(domain: str) -> str:
    """Return the domain with the alias "ai.onnx" written as ""."""
    return "" if domain in _PLAIN else domain


def named_opset(domain: str, opset: int) -> str:
    """Return a version of a domain in words: "opset 17", or "ai.onnx.ml 3"."""
    return f"{domain} {opset}" if domain else f"opset {opset}"


def function_key(function: FunctionProto) -> FunctionKey:
    """Return what identifies a model-local function: domain, name, overload."""
    return plain_domain(function.domain), function.name, getattr(function, "overload", "")


def called_function(node: NodeProto) -> FunctionKey:
    """Return the key of the function that a node calls, if there is one of that name."""
    return plain_domain(node.domain), node.op_type, getattr(node, "overload", "")


def node_label(node: NodeProto, index: int) -> str:
    """Return the node's name, or its operator and position in the graph if it has no name."""
    return node.name or f"{node.op_type}#{index}"


def operator_name(node: NodeProto) -> str:
    """Return the operator of a node as people write it: "Add", "com.microsoft::Gelu"."""
    domain = plain_domain(node.domain)
    return f"{domain}::{node.op_type}" if domain else node.op_type


@dataclass(frozen=True, slots=True)
class Scope:
    """One graph of a model: a GraphProto or a FunctionProto, its path, its location as people read it, and its opset
    imports.
    """

    proto: Any
    path: GraphPath
    location: str
    imports: dict[str, int]

    @property
    def is_function(self) -> bool:
        """True for the body of a function itself, False for a graph, also for one inside a function."""
        return isinstance(self.proto, FunctionProto)

    @property
    def in_function(self) -> bool:
        """True for the body of a function and every subgraph in it."""
        return bool(self.path) and self.path[0] == "F"

    @property
    def nodes(self) -> Sequence[NodeProto]:
        """The nodes in order."""
        nodes: Sequence[NodeProto] = self.proto.node
        return nodes


def plain_functions(model: ModelProto) -> frozenset[str]:
    """Return names of the model's functions in ai.onnx's own domain."""
    return frozenset(function.name for function in model.functions if plain_domain(function.domain) == "")


def may_have_bodies(node: NodeProto, functions: Container[str]) -> bool:
    """Return False for an operator that has no bodies, whatever its attributes are. functions: the model's functions in
    ai.onnx's own domain, to which graphs may be given.
    """
    op_type = node.op_type
    return op_type in OPERATORS_WITH_BODIES or op_type in functions or node.domain not in _PLAIN


def subgraphs(node: NodeProto) -> Iterator[tuple[str, int, GraphProto]]:
    """Yield each graph in a node's attributes: attribute name, position (0 for a single graph), graph. Of attributes of
    one name only the first counts: a path must lead to one graph.
    """
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.type in HOLDING_GRAPHS and attribute.name not in seen:
            seen.add(attribute.name)
            graphs = (attribute.g,) if attribute.type == AttributeProto.GRAPH else attribute.graphs
            for position, graph in enumerate(graphs):
                yield attribute.name, position, graph


def subgraph_location(location: str, label: str, attribute: str, position: int) -> str:
    """Return the location of a subgraph of a node."""
    return f"{location}/{label}/{attribute}" + (f"[{position}]" if position else "")


def function_location(function: FunctionProto) -> str:
    """Return the location of a function's body as written, apart from any call."""
    domain, name, overload = function_key(function)
    return f"{domain}::{name}" + (f":{overload}" if overload else "")


def scopes(model: ModelProto, having_bodies: HavingBodies | None = None) -> Iterator[Scope]:
    """Yield every graph of a model: the main graph and its subgraphs in node order, then each function's body and its
    subgraphs.

    having_bodies: returns the indices of nodes of a graph; all nodes with bodies are among them.
    """
    functions = plain_functions(model)
    for root in outermost(model):
        yield from _with_subgraphs(root, having_bodies or _all_nodes, functions)


def outermost(model: ModelProto) -> Iterator[Scope]:
    """Yield the main graph and each function's body."""
    yield Scope(model.graph, MAIN, "main", model_imports(model))
    for index, function in enumerate(model.functions):
        yield Scope(function, ("F", index), function_location(function), opset_imports(function.opset_import))


def _all_nodes(scope: Scope) -> Iterable[int]:
    return range(len(scope.nodes))


def _with_subgraphs(root: Scope, having_bodies: HavingBodies, functions: Container[str]) -> Iterator[Scope]:
    waiting = [root]
    while waiting:
        scope = waiting.pop()
        yield scope
        nodes = scope.nodes
        inner = [
            Scope(
                graph,
                (*scope.path, index, attribute, position),
                subgraph_location(scope.location, node_label(node, index), attribute, position),
                scope.imports,
            )
            for index in having_bodies(scope)
            if may_have_bodies(node := nodes[index], functions)
            for attribute, position, graph in subgraphs(node)
        ]
        waiting.extend(reversed(inner))


def roots(every: Sequence[Scope]) -> Iterator[list[Scope]]:
    """Yield the scopes of the main graph, then those of each function, each with its subgraphs."""
    group: list[Scope] = []
    key: object = None
    for scope in every:
        mine = scope.path[:2] if scope.in_function else ()
        if group and mine != key:
            yield group
            group = []
        key = mine
        group.append(scope)
    if group:
        yield group


def graph_at(model: ModelProto, path: GraphPath) -> Any:
    """Return the GraphProto or FunctionProto at a path."""
    graph: Any = model.graph
    if path[:1] == ("F",):
        graph, path = model.functions[path[1]], path[2:]
    for index, name, position in zip(path[::3], path[1::3], path[2::3], strict=True):
        graph = subgraph_at(graph.node[index], name, position)
    return graph


def subgraph_at(node: NodeProto, attribute: str, position: int) -> GraphProto:
    """Return the graph in an attribute of a node, by its position there."""
    return next(graph for name, place, graph in subgraphs(node) if (name, place) == (attribute, position))


# Nesting -------------------------------------------------------------------------------------------------------------


# The levels of messages in one another that protobuf reads; a model's main graph and its functions are the second one.
PROTOBUF_LEVELS = 100
# Those of a graph in the body of another one: a node, its attribute, and the graph.
LEVELS_OF_BODY = 3
# Graphs and types that are nested deeper are not read. Protobuf reads no file with more nested bodies, but functions
# may call functions in theirs. Python's stack has room for about twice as many.
MOST_NESTED = 32


def nested_depth(model: ModelProto) -> int:
    """Return how many graphs of a model are nested in one another: as bodies of nodes, and in the functions that nodes
    call. A function that calls itself is counted once.
    """
    bodies, depths = _bodies(model), dict[_Key, int]()
    for key in _callees_first(bodies):
        within = (depth + depths.get(called, 0) for called, depth in bodies[key].calls)
        depths[key] = max([bodies[key].depth, *within])
    return max(depths.values())


def inlined_nodes(model: ModelProto) -> int:
    """Return how many nodes the main graph of a model has, with its bodies, and with its functions in place of their
    calls.
    """
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
    bodies: dict[_Key, _Body] = {function_key(function): _body(function.node, keys) for function in model.functions}
    bodies[None] = _body(model.graph.node, keys)
    return bodies


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
    """Return the functions so that each comes after those that it calls, except a function that calls itself."""
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


# Order of nodes ------------------------------------------------------------------------------------------------------


def sorted_order(nodes: Sequence[NodeProto]) -> list[int]:
    """Return the indices of nodes in topological order. If either of two nodes may come first, the earlier one does.
    Values that a subgraph reads from outside count. A cycle is cut at one of its nodes.
    """
    producers = {name: index for index in reversed(range(len(nodes))) for name in nodes[index].output if name}
    waits = [{producers[name] for name in reads(node) if name in producers} for node in nodes]
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
            before = list(nodes)
            place = {id(before[index]): position for position, index in enumerate(order)}
            nodes.sort(key=lambda node, place=place: place[id(node)])


def _in_a_cycle(waits: Sequence[Set[int]], done: Set[int]) -> int:
    """Return the first node of a cycle: of what is left, some node always waits for another."""
    index = next(index for index in range(len(waits)) if index not in done)
    seen: list[int] = []
    while index not in seen:
        seen.append(index)
        index = min(waits[index])
    return min(seen[seen.index(index) :])


def reads(node: NodeProto) -> Iterator[str]:
    """Yield the names that a node reads in its graph, itself or in its subgraphs; a name may come again."""
    yield from node.input
    # Counts, for each name, the enclosing subgraphs that define it: such a name is not read from the node's own graph.
    defined: Counter[str] = Counter()
    waiting: list[GraphProto | set[str]] = [graph for _, _, graph in subgraphs(node)]
    while waiting:
        graph = waiting.pop()
        if isinstance(graph, set):
            # The walk leaves a graph that defines these names.
            defined.subtract(graph)
            continue
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {tensor.values.name for tensor in graph.sparse_initializer}
        own |= {name for node in graph.node for name in node.output}
        defined.update(own)
        waiting.append(own)
        for inner in graph.node:
            yield from (name for name in inner.input if not defined[name])
            waiting += [deeper for _, _, deeper in subgraphs(inner)]
        yield from (value.name for value in graph.output if not defined[value.name])


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
