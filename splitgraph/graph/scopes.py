"""The graphs of a model: main graph, subgraphs in node attributes, bodies of model-local functions, and how each is
addressed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from splitgraph.attribute_values import HOLDING_GRAPHS
from splitgraph.onnx_proto import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

# Where a graph is: () is the main graph, ("F", i) the body of function i; each subgraph adds (node index, attribute
# name, position).
GraphPath = tuple[Any, ...]
MAIN: GraphPath = ()

FunctionKey = tuple[str, str, str]

# How models write the domain ai.onnx.
_PLAIN = ("", "ai.onnx")
# The operators of ai.onnx that have bodies, which a test compares with onnx's schemas. Looking at all attributes of all
# nodes for some takes a tenth of a model's inference.
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
    """True for a model that is older than opset imports, and so means opset 1 of ai.onnx."""
    return not model.opset_import and model.ir_version in (1, 2)


def write_implied_opset(model: ModelProto) -> None:
    """Import the opset that a model of IR version 1 or 2 implies. Imports exist from IR version 3 on."""
    model.opset_import.add(domain="", version=1)
    model.ir_version = 3


def plain_domain(domain: str) -> str:
    """The domain with the alias "ai.onnx" written as ""."""
    return "" if domain in _PLAIN else domain


def function_key(function: FunctionProto) -> FunctionKey:
    """What identifies a model-local function: domain, name, overload."""
    return plain_domain(function.domain), function.name, getattr(function, "overload", "")


def called_function(node: NodeProto) -> FunctionKey:
    """The key of the function that a node calls, if there is one of that name."""
    return plain_domain(node.domain), node.op_type, getattr(node, "overload", "")


def node_label(node: NodeProto, index: int) -> str:
    """The node's name, or its operator and position in the graph where it has none."""
    return node.name or f"{node.op_type}#{index}"


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
    """Names of the model's functions in ai.onnx's own domain."""
    return frozenset(function.name for function in model.functions if plain_domain(function.domain) == "")


def may_have_bodies(node: NodeProto, functions: Container[str]) -> bool:
    """False for a node of an operator that has none, whatever its attributes are. functions: those of ai.onnx's own
    domain, which may be given graphs.
    """
    op_type = node.op_type
    return op_type in OPERATORS_WITH_BODIES or op_type in functions or node.domain not in _PLAIN


def subgraphs(node: NodeProto) -> Iterator[tuple[str, int, GraphProto]]:
    """Each graph in a node's attributes: attribute name, position (0 for a single graph), graph. Of attributes of one
    name only the first counts: a path must lead to one graph.
    """
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.type in HOLDING_GRAPHS and attribute.name not in seen:
            seen.add(attribute.name)
            for position, graph in _graphs_in(attribute):
                yield attribute.name, position, graph


def _graphs_in(attribute: AttributeProto) -> Iterable[tuple[int, GraphProto]]:
    return ((0, attribute.g),) if attribute.type == AttributeProto.GRAPH else enumerate(attribute.graphs)


def subgraph_location(location: str, label: str, attribute: str, position: int) -> str:
    """The location of a subgraph of a node."""
    return f"{location}/{label}/{attribute}" + (f"[{position}]" if position else "")


def function_location(function: FunctionProto) -> str:
    """The location of a function's body as written, apart from any call."""
    domain, name, overload = function_key(function)
    return f"{domain}::{name}" + (f":{overload}" if overload else "")


def scopes(model: ModelProto, having_bodies: HavingBodies | None = None) -> Iterator[Scope]:
    """Every graph of a model: the main graph and its subgraphs in node order, then each function's body and its
    subgraphs. having_bodies: the nodes of a graph, by index, among which are all that have bodies, where that is known.
    """
    functions = plain_functions(model)
    for root in outermost(model):
        yield from _with_subgraphs(root, having_bodies or _all_nodes, functions)


def outermost(model: ModelProto) -> Iterator[Scope]:
    """The main graph and each function's body."""
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
    """The scopes of the main graph, then those of each function, each with its subgraphs."""
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
    """The GraphProto or FunctionProto at a path."""
    found: Any = model.graph
    if path[:1] == ("F",):
        found, path = model.functions[path[1]], path[2:]
    for index, name, position in zip(path[::3], path[1::3], path[2::3], strict=True):
        found = subgraph_at(found.node[index], name, position)
    return found


def subgraph_at(node: NodeProto, attribute: str, position: int) -> GraphProto:
    """The graph in an attribute of a node, by its position there."""
    return next(graph for name, place, graph in subgraphs(node) if (name, place) == (attribute, position))
