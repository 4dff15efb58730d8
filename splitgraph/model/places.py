"""Nodes by their locations, as findings name them ("main/encoder/Split_4")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.model.onnx_proto import FunctionProto, NodeProto
from splitgraph.model.schemas import OperatorVersion, table
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import (
    FunctionKey,
    Scope,
    called_function,
    function_key,
    function_location,
    node_label,
    plain_domain,
)


class LocatedNode(NamedTuple):
    """A node: its graph, and its position there. calls: the calls around the body of a function, the outermost first;
    empty for the body as written.
    """

    scope: Scope
    position: int
    calls: tuple[LocatedNode, ...] = ()

    @property
    def node(self) -> NodeProto:
        return self.scope.nodes[self.position]

    @property
    def label(self) -> str:
        """The name of the node, or its operator and position if it has no name."""
        return node_label(self.node, self.position)

    @property
    def location(self) -> str:
        """The location as written, apart from any call."""
        return f"{self.scope.location}/{self.label}"

    @property
    def operator(self) -> str:
        """The operator of the node, with its version."""
        return operator_label(self.node, version_of(self.node, self.scope.imports))


class LocatedNodes:
    """Finds nodes by location. Only the graphs that a location names are looked through."""

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self.scopes = {scope.path: scope for scope in scopes}
        self._graphs: dict[str, list[Scope]] = {}
        for scope in self.scopes.values():
            self._graphs.setdefault(scope.location, []).append(scope)
        self._labels: dict[str, Mapping[str, Sequence[LocatedNode]]] = {}
        # Findings in nested calls have the starts of their locations in common.
        self._found: dict[str, Sequence[LocatedNode]] = {}
        self._functions: dict[FunctionKey, FunctionProto] = {
            function_key(scope.proto): scope.proto for scope in self.scopes.values() if scope.is_function
        }

    def at(self, location: str) -> Sequence[LocatedNode]:
        """Return the nodes at a location. There are several where nodes share a name, and in the body of a function
        that is called more than once.
        """
        found = self._found.get(location)
        if found is None:
            places = [place for graph, label in _cuts(location) for place in self._of_graph(graph).get(label, ())]
            found = self._found[location] = places or self._in_a_call(location)
        return found

    def function_of(self, node: NodeProto) -> FunctionProto | None:
        """Return the function of the model that a node calls; None for every other node."""
        return self._functions.get(called_function(node))

    def _of_graph(self, location: str) -> Mapping[str, Sequence[LocatedNode]]:
        """Return the nodes of the graph at a location, by label."""
        if location not in self._graphs:
            return {}
        if location not in self._labels:
            labels: dict[str, list[LocatedNode]] = {}
            for scope in self._graphs[location]:
                for position in range(len(scope.nodes)):
                    place = LocatedNode(scope, position)
                    labels.setdefault(place.label, []).append(place)
            self._labels[location] = labels
        return self._labels[location]

    def _in_a_call(self, location: str) -> Sequence[LocatedNode]:
        """Return the nodes in the body of a function at the location of a call: the longest start of it is the call, so
        that what is nested is found once.
        """
        for outer, inside in reversed([*_cuts(location)] if self._functions else []):
            for call in self.at(outer):
                function = self.function_of(call.node)
                inner = [] if function is None else self.at(f"{function_location(function)}/{inside}")
                if inner:
                    calls = *call.calls, call._replace(calls=())
                    return [place._replace(calls=(*calls, *place.calls)) for place in inner]
        return ()


def _cuts(location: str) -> Iterator[tuple[str, str]]:
    """Yield every way to cut a location at a slash: names may have slashes, too."""
    for end, char in enumerate(location):
        if char == "/":
            yield location[:end], location[end + 1 :]


def with_nodes(
    findings: Iterable[Diagnostic],
    scopes: Iterable[Scope],
    operator_of: Callable[[LocatedNode], str] = lambda place: place.operator,
) -> tuple[Diagnostic, ...]:
    """Return findings with the nodes that they are about. scopes: the graphs of the model. operator_of: returns the
    operator of a node.

    A finding about a graph, a value or a file stays as it is. Where several nodes share a name, the operator is known
    if all have the same one.
    """
    named: list[Diagnostic] = []
    places: LocatedNodes | None = None
    for finding in findings:
        if "/" in finding.location and finding.node is None:
            places = LocatedNodes(scopes) if places is None else places
            found = places.at(finding.location)
            operators = set(map(operator_of, found))
            if found:
                operator = operators.pop() if len(operators) == 1 else None
                finding = replace(finding, node=found[0].label, operator=operator)
        named.append(finding)
    return tuple(named)


class NamesOperator(Protocol):
    """A node of a model, or one that a conversion edits."""

    @property
    def op_type(self) -> str: ...
    @property
    def domain(self) -> str: ...


def version_of(node: NamesOperator, imports: Mapping[str, int]) -> OperatorVersion | None:
    """Return the operator version of a node; None for an operator without a schema. imports: opsets by domain."""
    domain = plain_domain(node.domain)
    if not domain:
        return meant_version(node.op_type, imports.get("", 1))
    return table.version_at(domain, node.op_type, imports.get(domain, 1))


def operator_label(node: NamesOperator, version: OperatorVersion | None) -> str:
    """Return the operator of a node with its version, and the domain before it if it is not ai.onnx."""
    domain = plain_domain(node.domain)
    name = f"{domain}.{node.op_type}" if domain else node.op_type
    return name if version is None else f"{name}-{version.since_version}"


def versioned_operator(node: NamesOperator, imports: Mapping[str, int]) -> str:
    """Return the operator of a node with its version, as `operator_label`. imports: opsets by domain."""
    return operator_label(node, version_of(node, imports))
